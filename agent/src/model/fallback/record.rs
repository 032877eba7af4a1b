//! The record of the models that were asked before a reply, as a field of the reply.

use serde::{Deserialize, Serialize};

use crate::message::{AssistantMessage, HandOffLosses};
use crate::model::{ModelError, ModelInfo};

const FIELD: &str = "fallback";

/// The kind of an attempt that was not made, because the breaker of the model was open.
pub(super) const BREAKER_OPEN: &str = "breaker_open";

/// The data that a [`Fallback`](super::Fallback) adds to a reply: failed attempts, and a change of the model since the previous reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FallbackRecord {
    pub(super) attempts: Vec<ModelAttempt>,
    /// The model of the previous reply, as `provider/model`, if it is not the model of this reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) switched_from: Option<String>,
    /// The parts of the conversation that the new model did not get, if the model changed.
    #[serde(skip_serializing_if = "HandOffLosses::is_empty")]
    pub(super) losses: HandOffLosses,
}

/// An attempt of a [`Fallback`](super::Fallback) that gave no reply.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{Fallback, Model as _, ModelAttempt, ModelError, ModelErrorKind, ModelInfo, ModelRequest, StepCx};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// let busy = ModelError::new(ModelErrorKind::Overloaded, "busy").with_status(529);
/// let first = ScriptedModel::from_fn(move |_| busy.clone().into()).with_info(ModelInfo::new("acme", "acme-chat", "large"));
/// let second = ScriptedModel::new(["Hello!"]).with_info(ModelInfo::new("other", "other-chat", "small"));
/// let model = Fallback::new([first, second]);
///
/// let reply = model.call(&StepCx::new(), &ModelRequest::new([Message::user("Hi")])).await?;
/// assert_eq!((reply.provider.as_str(), reply.model.as_str()), ("other", "small"));
/// let attempt = &ModelAttempt::before(&reply)[0];
/// assert_eq!((attempt.model.as_str(), attempt.kind.as_str(), attempt.status), ("large", "overloaded", Some(529)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelAttempt {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The [kind](crate::model::ModelErrorKind::as_str) of the error, or `breaker_open` if the model was not asked.
    pub kind: String,
    /// The HTTP status of the error, if the error has a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The duration of the attempt, in milliseconds.
    pub ms: u64,
}

impl ModelAttempt {
    /// Returns the attempts before a reply, in order. The reply has the attempts as JSON in the field `fallback` of
    /// [`extra`](AssistantMessage::extra), and this field is stored with the reply.
    pub fn before(reply: &AssistantMessage) -> Vec<Self> {
        FallbackRecord::of(reply).map(|record| record.attempts).unwrap_or_default()
    }

    /// Returns whether the provider may charge for the attempt: the model was asked, and the status is not between 400 and 499.
    #[cfg(feature = "runtime")]
    pub(crate) fn was_made(&self) -> bool {
        self.was_sent() && !self.status.is_some_and(|status| (400..500).contains(&status))
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn was_sent(&self) -> bool {
        self.kind != BREAKER_OPEN
    }

    pub(super) fn failed(info: &ModelInfo, error: &ModelError, ms: u64) -> Self {
        let (provider, model) = (info.provider.clone(), info.model.clone());
        Self { provider, model, kind: error.kind().as_str().to_owned(), status: error.status(), ms }
    }

    pub(super) fn skipped(info: &ModelInfo) -> Self {
        let (provider, model) = (info.provider.clone(), info.model.clone());
        Self { provider, model, kind: BREAKER_OPEN.to_owned(), ..Self::default() }
    }
}

impl FallbackRecord {
    pub(super) fn of(reply: &AssistantMessage) -> Option<Self> {
        Self::deserialize(reply.extra.get(FIELD)?).ok()
    }

    pub(super) fn write(&self, reply: &mut AssistantMessage) {
        if *self == Self::default() {
            return;
        }
        if let Ok(value) = serde_json::to_value(self) {
            reply.extra.insert(FIELD.to_owned(), value);
        }
    }
}
