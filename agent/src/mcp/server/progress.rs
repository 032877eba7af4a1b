//! Sends the progress of a call to the client.

use crate::tool::progress::Progress;
use rmcp::model::{ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage};
use rmcp::{Peer, RoleServer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum number of queued messages. If the queue is full, the oldest message is dropped.
const MAX_WAITING: usize = 16;
/// Maximum time for sending queued messages after the end of a call.
const LAST_MESSAGE: Duration = Duration::from_millis(500);

pub(super) enum ProgressTarget {
    Peer(Peer<RoleServer>),
    /// The stream that answers the call over HTTP.
    Stream(mpsc::Sender<ServerJsonRpcMessage>),
}

impl ProgressTarget {
    /// Sends a message. Returns `false` if the client is gone.
    async fn send(&self, param: ProgressNotificationParam) -> bool {
        match self {
            Self::Peer(peer) => peer.notify_progress(param).await.is_ok(),
            Self::Stream(events) => {
                let notification = ProgressNotification::new(param).into();
                events.send(ServerJsonRpcMessage::notification(notification)).await.is_ok()
            }
        }
    }
}

/// A task that sends the progress messages of a call, in order and at a limited rate. The task stops when this value is dropped.
pub(super) struct ProgressSender {
    queue: Arc<ProgressQueue>,
    sender: JoinHandle<()>,
}

#[derive(Default)]
pub(super) struct ProgressQueue {
    waiting: Mutex<VecDeque<Progress>>,
    changed: Notify,
    is_over: std::sync::atomic::AtomicBool,
}

impl ProgressQueue {
    pub(super) fn push(&self, progress: Progress) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(progress);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Puts a message back into the queue, unless the queue contains newer messages. Does not notify the sending task, because that task
    /// is the caller.
    fn put_back(&self, progress: Progress) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            waiting.push_back(progress);
        }
    }

    fn next(&self) -> Option<Progress> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn newest(&self) -> Option<Progress> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = waiting.pop_back();
        waiting.clear();
        newest
    }

    fn is_over(&self) -> bool {
        self.is_over.load(std::sync::atomic::Ordering::Acquire)
    }
}

impl ProgressSender {
    pub(super) fn new(target: ProgressTarget, token: ProgressToken, per_second: u32) -> Self {
        let queue = Arc::new(ProgressQueue::default());
        let sender = tokio::spawn(send_all(queue.clone(), target, token, per_second));
        Self { queue, sender }
    }

    pub(super) fn queue(&self) -> Arc<ProgressQueue> {
        self.queue.clone()
    }

    /// Sends the messages that are still queued after the end of a call, for at most [`LAST_MESSAGE`]. If the rate limit is spent, only
    /// the newest message is sent.
    pub(super) async fn finish(mut self) {
        self.queue.is_over.store(true, std::sync::atomic::Ordering::Release);
        self.queue.changed.notify_one();
        if timeout(LAST_MESSAGE, &mut self.sender).await.is_err() {
            self.sender.abort();
        }
    }
}

impl Drop for ProgressSender {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

async fn send_all(queue: Arc<ProgressQueue>, target: ProgressTarget, token: ProgressToken, per_second: u32) {
    let mut steps = GrowingValues::default();
    let mut rate = RateLimit::new(per_second);
    loop {
        let is_over = queue.is_over();
        let Some(progress) = (if rate.is_spent() { queue.newest() } else { queue.next() }) else {
            if is_over {
                return;
            }
            queue.changed.notified().await;
            continue;
        };
        // After the end of the call, messages do not wait for the rate limit.
        if !is_over && let Some(until) = rate.wait() {
            tokio::select! {
                () = sleep_until(until) => {}
                () = queue.changed.notified() => {
                    queue.put_back(progress);
                    continue;
                }
            }
        }
        if let Some(param) = steps.param(&token, progress) {
            rate.spend();
            if !target.send(param).await {
                return;
            }
        }
    }
}

/// A limit on messages per second. A burst may have as many messages as the limit allows in one second.
struct RateLimit {
    per_second: f64,
    available: f64,
    updated_at: Instant,
}

impl RateLimit {
    fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, available: per_second, updated_at: Instant::now() }
    }

    fn refill(&mut self) {
        let now = Instant::now();
        self.available =
            (self.available + (now - self.updated_at).as_secs_f64() * self.per_second).min(self.per_second);
        self.updated_at = now;
    }

    fn is_spent(&mut self) -> bool {
        self.refill();
        self.available < 1.0
    }

    /// Returns the time from which the next message may be sent, or `None` if the message may be sent at once.
    fn wait(&mut self) -> Option<Instant> {
        self.is_spent()
            .then(|| self.updated_at + Duration::from_secs_f64((1.0 - self.available) / self.per_second))
    }

    fn spend(&mut self) {
        self.available -= 1.0;
    }
}

/// The progress values of a call. Each value is larger than that of the previous message, as the protocol requires.
#[derive(Default)]
struct GrowingValues {
    last: Option<f64>,
}

impl GrowingValues {
    #[expect(clippy::cast_precision_loss, reason = "the protocol's numbers are floating")]
    fn param(&mut self, token: &ProgressToken, progress: Progress) -> Option<ProgressNotificationParam> {
        let value = match progress.done {
            Some(done) => done as f64,
            None => self.last.map_or(0.0, |last| last + 1.0),
        };
        if self.last.is_some_and(|last| value <= last) {
            return None;
        }
        self.last = Some(value);
        let mut param = ProgressNotificationParam::new(token.clone(), value);
        if let Some(total) = progress.total {
            param = param.with_total(total as f64);
        }
        if !progress.message.is_empty() {
            param = param.with_message(progress.message);
        }
        Some(param)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn values_only_grow() {
        let token = ProgressToken(NumberOrString::Number(1));
        let mut steps = GrowingValues::default();
        let mut value = |progress: Progress| steps.param(&token, progress).map(|param| param.progress);
        assert_eq!(value(Progress::new("a").of(0, 100)), Some(0.0));
        assert_eq!(value(Progress::new("a").of(0, 100)), None);
        assert_eq!(value(Progress::new("b")), Some(1.0));
        assert_eq!(value(Progress::new("c").of(50, 100)), Some(50.0));
        assert_eq!(value(Progress::new("d").of(49, 100)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_wait_after_a_burst() {
        let mut rate = RateLimit::new(2);
        for _ in 0..2 {
            assert_eq!(rate.wait(), None);
            rate.spend();
        }
        let until = rate.wait().unwrap();
        let wait = until.saturating_duration_since(Instant::now());
        assert!(wait <= Duration::from_millis(500), "{wait:?}");
        sleep_until(until + Duration::from_millis(20)).await;
        assert_eq!(rate.wait(), None);
    }

    #[test]
    fn a_full_queue_drops_the_oldest() {
        let queue = ProgressQueue::default();
        for n in 0..=MAX_WAITING {
            queue.push(Progress::new("x").at(n));
        }
        assert_eq!(queue.next().and_then(|progress| progress.done), Some(1));
        assert_eq!(queue.newest().and_then(|progress| progress.done), Some(MAX_WAITING as u64));
        assert!(queue.next().is_none());
    }
}
