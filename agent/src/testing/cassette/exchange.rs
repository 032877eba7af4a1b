//! One recorded request, with its reply or error.

use super::scrub::Scrubber;
use crate::message::AssistantMessage;
use crate::model::{ModelError, ModelErrorKind};
use serde_json::{Value, json};
use std::time::Duration;

/// A request with all its messages and tools, and its reply or error. In the file, messages and tools that several exchanges share occur
/// only once.
pub(super) struct RecordedExchange {
    pub(super) request: Value,
    pub(super) reply: Option<Value>,
    pub(super) error: Option<Value>,
}

impl RecordedExchange {
    pub(super) fn of_reply(request: Value, reply: &AssistantMessage) -> Self {
        Self { request, reply: serde_json::to_value(reply).ok(), error: None }
    }

    pub(super) fn clean(&mut self, scrubber: &Scrubber) {
        [&mut self.reply, &mut self.error]
            .into_iter()
            .flatten()
            .for_each(|value| scrubber.remove_secrets(value));
    }

    pub(super) fn reply(&self) -> Result<AssistantMessage, ModelError> {
        if let Some(error) = &self.error {
            let text = |key: &str| error.get(key).and_then(Value::as_str);
            let mut made = ModelError::new(
                ModelErrorKind::from(text("kind").unwrap_or_default()),
                text("message").unwrap_or_default(),
            );
            if let Some(code) = text("code") {
                made = made.with_code(code);
            }
            if let Some(status) =
                error.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok())
            {
                made = made.with_status(status);
            }
            if let Some(seconds) = error.get("retry_after").and_then(Value::as_f64) {
                made = made.with_retry_after(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            }
            if let Some(retryable) = error.get("retryable").and_then(Value::as_bool) {
                made = made.with_retryable(retryable);
            }
            return Err(made);
        }
        let text = self.reply.as_ref().unwrap_or(&Value::Null).to_string();
        serde_json::from_str(&text).map_err(|error| {
            ModelError::new(
                ModelErrorKind::Other,
                format!("a reply in the cassette is not a message: {error}"),
            )
            .with_source(error)
        })
    }

    pub(super) fn of_error(request: Value, error: &ModelError) -> Self {
        let mut kept = json!({"kind": error.kind().as_str(), "message": error.message()});
        if let Some(code) = error.code() {
            kept["code"] = code.into();
        }
        if let Some(status) = error.status() {
            kept["status"] = status.into();
        }
        if let Some(delay) = error.retry_after() {
            kept["retry_after"] = delay.as_secs_f64().into();
        }
        if error.is_retryable() != ModelError::new(error.kind(), "").is_retryable() {
            kept["retryable"] = error.is_retryable().into();
        }
        Self { request, reply: None, error: Some(kept) }
    }
}
