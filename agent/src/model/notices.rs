//! Notices about a request, which are added before the request is sent and become events of its run.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// A notice about a request. The journals of durable runs store it with the reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub(crate) enum RequestNotice {
    /// The request waited for a limit of the model or of the provider.
    Delayed { waited_ms: u64, limit: String },
    /// At least 80 % of a budget is spent.
    BudgetNear { key: String, budget: String, share: f64 },
}

/// Maximum number of notices. Without a runtime, notices are never taken, and a `StepCx` may be used for any number of requests.
const MAX_NOTICES: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct RequestNotices(Arc<Mutex<Vec<RequestNotice>>>);

impl RequestNotices {
    pub(crate) fn add(&self, notice: RequestNotice) {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < MAX_NOTICES {
            notices.push(notice);
        }
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn take(&self) -> Vec<RequestNotice> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(all(test, feature = "runtime"))]
mod tests {
    use super::*;

    #[test]
    fn notices_that_nobody_takes_are_bounded() {
        let notices = RequestNotices::default();
        for waited_ms in 0..10 * MAX_NOTICES as u64 {
            notices.add(RequestNotice::Delayed { waited_ms, limit: "model".to_owned() });
        }
        assert_eq!(notices.take().len(), MAX_NOTICES);
    }
}
