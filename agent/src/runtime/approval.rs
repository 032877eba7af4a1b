//! Asking whether a call may run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::loop_core::ApprovalRequest;

/// What is said to a call that needs approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// It runs.
    Allow,
    /// It runs with these arguments, which are checked.
    AllowWith(Value),
    /// It does not run; the model is told why.
    Deny(String),
    /// Nobody knows yet: the run is suspended.
    Later,
}

/// Who decides.
pub(super) type Approver = Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Decision> + Send + Sync>;
