//! Buffers the progress and the questions of running calls until the run reads them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::tool::asking::AskNotice;
use crate::tool::progress::Progress;

pub(super) enum CallReport {
    Progress { call_id: Arc<str>, progress: Progress },
    Question(AskNotice),
}

/// Maximum number of buffered reports. At the limit, the oldest progress is dropped, because newer progress supersedes it. If there is no
/// progress, the oldest question is dropped.
const MAX_WAITING: usize = 1024;

#[derive(Default)]
pub(super) struct Updates {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<CallReport>,
    run: Option<Waker>,
}

impl Updates {
    pub(super) fn push(&self, report: CallReport) {
        let mut inner = self.lock();
        if inner.waiting.len() >= MAX_WAITING {
            let is_progress = |report: &CallReport| matches!(report, CallReport::Progress { .. });
            let oldest = inner.waiting.iter().position(is_progress).unwrap_or_default();
            inner.waiting.remove(oldest);
        }
        inner.waiting.push_back(report);
        let run = inner.run.take();
        drop(inner);
        run.into_iter().for_each(Waker::wake);
    }

    /// Removes and returns the buffered reports. If there are none, the next report wakes the task of `cx`.
    pub(super) fn take(&self, cx: &Context<'_>) -> VecDeque<CallReport> {
        let mut inner = self.lock();
        // The replaced waker is dropped after the lock is released, because a waker may own a task, whose drop runs other code.
        let replaced = if inner.waiting.is_empty() { inner.run.replace(cx.waker().clone()) } else { None };
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(replaced);
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs while the lock is held, so it is never poisoned.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
