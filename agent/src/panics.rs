//! Calls code of the application, and catches its panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message of a panic.
///
/// A payload that is not text is leaked, because its `Drop` is code of the application and may panic, too.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => (*text).to_owned(),
            Err(payload) => {
                std::mem::forget(payload);
                "a panic without a text".to_owned()
            }
        },
    }
}

pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(panic_text)
}

/// Runs the future that `start` creates. Returns the message of a panic as the error. A panic of the future's `Drop` is caught as well,
/// even if the future has not completed.
#[cfg(any(feature = "http", feature = "mcp-server", feature = "mcp-client", feature = "runtime"))]
pub(crate) async fn catch_future<F: Future + Unpin>(start: impl FnOnce() -> F) -> Result<F::Output, String> {
    use std::pin::Pin;
    use std::task::Poll;

    let mut future = DropsQuietly(Some(catch(start)?));
    let end = std::future::poll_fn(|task| {
        let Some(running) = &mut future.0 else { return Poll::Pending };
        match catch(|| Pin::new(running).poll(task)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    });
    let end = end.await;
    match catch(|| drop(future.0.take())) {
        Ok(()) => end,
        Err(panic) => end.and(Err(panic)),
    }
}

/// A value of the application. A panic of its `Drop` is caught and logged.
pub(crate) struct DropsQuietly<T>(pub(crate) Option<T>);

impl<T> Drop for DropsQuietly<T> {
    fn drop(&mut self) {
        let Some(value) = self.0.take() else { return };
        if let Err(panic) = catch(|| drop(value)) {
            tracing::error!(%panic, "a value of the application panicked when it was dropped");
        }
    }
}

/// A function of the application that only observes. After a panic, no clone of this observer calls the function again.
#[cfg(any(feature = "http", feature = "mcp-client"))]
pub(crate) struct Observer<F: ?Sized> {
    observe: std::sync::Arc<F>,
    option: &'static str,
    has_panicked: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(any(feature = "http", feature = "mcp-client"))]
impl<F: ?Sized> Observer<F> {
    pub(crate) fn new(option: &'static str, observe: std::sync::Arc<F>) -> Self {
        Self { observe, option, has_panicked: std::sync::Arc::default() }
    }

    /// Passes the function to `call`, unless the function has panicked before. Does nothing during a panic, because the values that the
    /// function reads may be inconsistent.
    pub(crate) fn notify(&self, call: impl FnOnce(&F)) {
        use std::sync::atomic::Ordering;

        if self.has_panicked.load(Ordering::Acquire) || std::thread::panicking() {
            return;
        }
        if let Err(panic) = catch(|| call(&self.observe))
            && !self.has_panicked.swap(true, Ordering::AcqRel)
        {
            tracing::error!(option = self.option, %panic, "a listener panicked and is not called again");
        }
    }
}

#[cfg(any(feature = "http", feature = "mcp-client"))]
impl<F: ?Sized> Clone for Observer<F> {
    fn clone(&self) -> Self {
        let Self { observe, option, has_panicked } = self;
        Self { observe: observe.clone(), option, has_panicked: has_panicked.clone() }
    }
}

#[cfg(any(feature = "http", feature = "mcp-client"))]
impl<F: ?Sized> std::fmt::Debug for Observer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("option", &self.option).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload panics");
        }
    }

    #[test]
    fn a_payload_whose_drop_panics_is_leaked() {
        assert_eq!(catch(|| std::panic::panic_any(Bomb)), Err::<(), _>("a panic without a text".to_owned()));
        assert_eq!(catch(|| panic!("it is {}", 1)), Err::<(), _>("it is 1".to_owned()));
        assert_eq!(catch(|| std::panic::panic_any("it is")), Err::<(), _>("it is".to_owned()));
        assert_eq!(catch(|| 1), Ok(1));
    }

    #[cfg(feature = "http")]
    struct OnDrop(Observer<dyn Fn(bool) + Send + Sync>);

    #[cfg(feature = "http")]
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify(|observe| observe(false));
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn an_observer_that_panics_is_called_once_and_never_while_unwinding() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};

        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let observe: Arc<dyn Fn(bool) + Send + Sync> = Arc::new(move |panics| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "it panics");
        });
        let observer = Observer::new("on_test", observe);
        drop(OnDrop(observer.clone()));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let other = OnDrop(observer.clone());
        let unwinds = move || {
            let _other = other;
            panic!("it unwinds")
        };
        assert_eq!(catch(unwinds), Err::<(), _>("it unwinds".to_owned()));
        assert_eq!(calls.load(Ordering::Relaxed), 1, "while the thread unwinds");
        observer.clone().notify(|observe| observe(true));
        observer.notify(|observe| observe(false));
        assert_eq!(calls.load(Ordering::Relaxed), 2, "after the panic");
    }
}
