//! Cancellation as a value: a token, its children, and a reason.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

/// A signal that tells work to stop, with a reason. Clones are the same token. [`child`](CancelToken::child) tokens are cancelled with
/// their parent; cancelling a child does not cancel its parent.
///
/// ```
/// use agent::CancelToken;
///
/// let run = CancelToken::new();
/// let call = run.child();
/// run.cancel("the user pressed stop");
/// run.cancel("too late, the first reason counts");
/// assert!(call.is_cancelled());
/// assert_eq!(call.reason().as_deref(), Some("the user pressed stop"));
/// ```
#[derive(Clone)]
pub struct CancelToken {
    node: Arc<Node>,
}

/// The state of a token. A token has no list of its children: a waiting future registers its waker with the token and with each ancestor.
#[derive(Default)]
struct Node {
    parent: Option<Arc<Node>>,
    reason: OnceLock<Arc<str>>,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    slots: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Node {
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    fn is_cancelled(&self) -> bool {
        self.chain().any(|node| node.reason.get().is_some())
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        // The list of wakers stays valid if a waker panics, so poisoning of the lock is ignored.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the ancestors in a loop: recursion over a long chain would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

impl Waiters {
    /// Registers `waker`, or replaces the waker in `slot`. The caller must release the lock before it drops the returned waker, because a
    /// waker may own a task whose destructor takes the lock again.
    fn enter(&mut self, slot: Option<usize>, waker: &Waker) -> (usize, Option<Waker>) {
        if let Some(slot) = slot {
            let replaced = match self.slots.get_mut(slot) {
                Some(Some(old)) if old.will_wake(waker) => None,
                Some(entry) => entry.replace(waker.clone()),
                None => None,
            };
            return (slot, replaced);
        }
        let slot = if let Some(slot) = self.free.pop() {
            if let Some(entry) = self.slots.get_mut(slot) {
                *entry = Some(waker.clone());
            }
            slot
        } else {
            self.slots.push(Some(waker.clone()));
            self.slots.len() - 1
        };
        (slot, None)
    }

    fn leave(&mut self, slot: usize) -> Option<Waker> {
        let entry = self.slots.get_mut(slot)?;
        self.free.push(slot);
        entry.take()
    }
}

impl CancelToken {
    /// Creates a token without a parent.
    pub fn new() -> Self {
        Self { node: Arc::default() }
    }

    /// Creates a token that is cancelled with this token, and that can also be cancelled alone.
    pub fn child(&self) -> Self {
        Self {
            node: Arc::new(Node {
                parent: Some(self.node.clone()),
                reason: OnceLock::new(),
                waiters: Mutex::default(),
            }),
        }
    }

    /// Cancels this token and its children. The first reason counts; later calls change nothing.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        if self.node.reason.set(reason.into()).is_err() {
            return;
        }
        // The wakers are called outside of the lock, because a waker may poll at once, which locks the waiters again.
        let woken: Vec<Waker> = self.node.waiters().slots.iter_mut().filter_map(Option::take).collect();
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns whether this token or one of its ancestors was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Returns the reason of this token or of its nearest cancelled ancestor; `None` if the token is not cancelled.
    pub fn reason(&self) -> Option<Arc<str>> {
        self.node.chain().find_map(|node| node.reason.get()).cloned()
    }

    /// Returns a future that completes when the token is cancelled, or at once if it already is. Dropping the future removes its waiter.
    ///
    /// ```
    /// # async fn work() {}
    /// # async fn example(token: agent::CancelToken) {
    /// token.cancelled().await;
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + Sync + Unpin + use<> {
        self.cancellation()
    }

    pub(crate) fn cancellation(&self) -> Cancelled {
        Cancelled { node: self.node.clone(), slots: Vec::new() }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("reason", &self.reason()).finish()
    }
}

/// The future of [`CancelToken::cancelled`].
#[must_use = "a future does nothing until it is awaited"]
pub(crate) struct Cancelled {
    node: Arc<Node>,
    /// The positions of this future's waker: one in the [`Waiters`] of the token, and one for each ancestor. Empty until the future waits.
    slots: Vec<usize>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.node.is_cancelled() {
            return Poll::Ready(());
        }
        let this = &mut *self;
        for (at, node) in this.node.chain().enumerate() {
            let (slot, replaced) = node.waiters().enter(this.slots.get(at).copied(), cx.waker());
            drop(replaced);
            if at == this.slots.len() {
                this.slots.push(slot);
            }
        }
        // The check is repeated, because a cancellation between the first check and the registration calls no waker.
        if self.node.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        for (node, slot) in self.node.chain().zip(self.slots.drain(..)) {
            let waker = node.waiters().leave(slot);
            drop(waker);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("is_cancelled", &self.node.is_cancelled()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_parent_wakes_the_waiters_of_its_children_once() {
        let (parent, count) = (CancelToken::new(), Arc::new(Count::default()));
        let child = parent.child().child();
        let waker = Waker::from(count.clone());
        let mut waiting = pin!(child.cancelled());
        for _ in 0..3 {
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        parent.cancel("stop");
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[test]
    fn a_child_does_not_cancel_its_parent() {
        let parent = CancelToken::new();
        let child = parent.child();
        child.cancel("alone");
        assert!(child.is_cancelled() && !parent.is_cancelled() && !parent.child().is_cancelled());
    }

    #[test]
    fn a_dropped_waiter_frees_its_slot() {
        let token = CancelToken::new();
        let waker = Waker::noop();
        for _ in 0..100 {
            let mut waiting = pin!(token.child().cancelled());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        assert_eq!(token.node.waiters().slots.len(), 1);
    }

    #[test]
    fn a_waker_that_owns_another_waiter_is_dropped_without_the_lock() {
        struct Owner(#[expect(dead_code, reason = "it is dropped")] Cancelled);
        impl Wake for Owner {
            fn wake(self: Arc<Self>) {}
        }
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let token = CancelToken::new();
            let owner = || {
                let mut other = token.cancellation();
                assert!(pin!(&mut other).poll(&mut Context::from_waker(Waker::noop())).is_pending());
                Waker::from(Arc::new(Owner(other)))
            };
            let mut waiting = token.cancelled();
            for waker in [owner(), owner()] {
                assert!(pin!(&mut waiting).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            drop(waiting);
            done.send(()).unwrap();
        });
        assert!(is_done.recv_timeout(std::time::Duration::from_secs(20)).is_ok(), "a deadlock");
    }

    #[test]
    fn a_long_chain_is_cancelled_and_dropped() {
        let root = CancelToken::new();
        let mut last = root.child();
        for _ in 0..200_000 {
            last = last.child();
        }
        root.cancel("stop");
        assert!(last.is_cancelled());
        drop(root);
        drop(last);
    }

    #[test]
    fn the_nearest_reason_is_told() {
        let parent = CancelToken::new();
        let child = parent.child();
        child.cancel("mine");
        parent.cancel("theirs");
        assert_eq!(child.reason().as_deref(), Some("mine"));
    }
}
