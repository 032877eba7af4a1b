//! What running bodies tell, on its way to the run.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::ToolUpdate;

/// How many updates wait; then the oldest goes. Who is told how far something is wants the newest.
const MAX_WAITING: usize = 1024;

/// Updates that the run has not told yet.
#[derive(Default)]
pub(super) struct Updates {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<ToolUpdate>,
    run: Option<Waker>,
}

impl Updates {
    pub(super) fn push(&self, update: ToolUpdate) {
        let mut inner = self.lock();
        if inner.waiting.len() >= MAX_WAITING {
            inner.waiting.pop_front();
        }
        inner.waiting.push_back(update);
        let run = inner.run.take();
        drop(inner);
        run.into_iter().for_each(Waker::wake);
    }

    /// What was told since; otherwise the task is woken when there is something.
    pub(super) fn take(&self, cx: &Context<'_>) -> VecDeque<ToolUpdate> {
        let mut inner = self.lock();
        // Dropped without the lock: a waker may own a task.
        let replaced = if inner.waiting.is_empty() { inner.run.replace(cx.waker().clone()) } else { None };
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(replaced);
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that can panic runs under it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
