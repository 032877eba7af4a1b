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

#[derive(Clone, Debug, Default)]
pub(crate) struct RequestNotices(Arc<Mutex<Vec<RequestNotice>>>);

impl RequestNotices {
    pub(crate) fn add(&self, notice: RequestNotice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn take(&self) -> Vec<RequestNotice> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
