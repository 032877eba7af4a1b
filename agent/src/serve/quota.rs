//! Limits the concurrency of calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit on concurrency, in total and for each authenticated caller.
pub(crate) struct Quota {
    all: Arc<Semaphore>,
    each: usize,
    callers: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl Quota {
    pub(crate) fn new(all: usize, each: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, each: each.min(Semaphore::MAX_PERMITS), callers: Mutex::default() })
    }

    /// Returns `None` if no permit is free. Callers that are not authenticated have no id, so only the total limit applies to them.
    pub(crate) fn try_enter(self: &Arc<Self>, caller: Option<&Arc<str>>) -> Option<QuotaPermit> {
        let mut permit = self.unfilled(caller);
        if let Some(own) = &permit.own {
            permit.own_permit = Some(own.clone().try_acquire_owned().ok()?);
        }
        permit.global = Some(self.all.clone().try_acquire_owned().ok()?);
        Some(permit)
    }

    pub(crate) async fn enter(
        self: &Arc<Self>,
        caller: Option<&Arc<str>>,
        wait: Duration,
    ) -> Option<QuotaPermit> {
        let turn = async {
            let mut permit = self.unfilled(caller);
            // The caller's own permit is acquired first. A caller at its own limit then does not take one of the permits that all callers
            // share.
            if let Some(own) = &permit.own {
                permit.own_permit = Some(own.clone().acquire_owned().await.ok()?);
            }
            permit.global = Some(self.all.clone().acquire_owned().await.ok()?);
            Some(permit)
        };
        tokio::time::timeout(wait, turn).await.ok().flatten()
    }

    fn unfilled(self: &Arc<Self>, caller: Option<&Arc<str>>) -> QuotaPermit {
        let own = caller.map(|caller| {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            callers.entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
        });
        QuotaPermit { quota: self.clone(), caller: caller.cloned(), global: None, own_permit: None, own }
    }
}

pub(crate) struct QuotaPermit {
    quota: Arc<Quota>,
    caller: Option<Arc<str>>,
    global: Option<OwnedSemaphorePermit>,
    own_permit: Option<OwnedSemaphorePermit>,
    /// The caller's semaphore, if the caller is authenticated.
    own: Option<Arc<Semaphore>>,
}

impl Drop for QuotaPermit {
    /// Removes the entry of a caller that has no other permit, so that the map does not grow.
    fn drop(&mut self) {
        drop((self.global.take(), self.own_permit.take()));
        let Some(caller) = &self.caller else { return };
        let mut callers = self.quota.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // The semaphore is dropped under the lock. If several permits are dropped at once, the last permit then finds only the map's
        // reference.
        drop(self.own.take());
        // If only the map refers to the semaphore, the caller has no other permit.
        if callers.get(caller).is_some_and(|own| Arc::strong_count(own) == 1) {
            callers.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_caller_over_its_limit_waits_while_others_pass() {
        let quota = Quota::new(3, 1);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let first = quota.try_enter(Some(&ann)).unwrap();
        assert!(quota.try_enter(Some(&ann)).is_none());
        let other = quota.try_enter(Some(&bob)).unwrap();
        assert!(quota.enter(Some(&ann), Duration::from_millis(10)).await.is_none());
        drop(first);
        let again = quota.enter(Some(&ann), Duration::from_millis(10)).await;
        assert!(again.is_some());
        drop((again, other));
        assert!(quota.callers.lock().unwrap().is_empty());
        let crowd: Vec<_> = (0..3).map(|_| quota.try_enter(None).unwrap()).collect();
        assert!(quota.try_enter(Some(&bob)).is_none());
        assert_eq!(crowd.len(), 3);
        assert!(quota.callers.lock().unwrap().is_empty());
    }
}
