//! How a tool may be run: facts for whoever runs it, never for the model.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What running a tool does to the world, and so what may happen to a call that was interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Nothing: it may be run any number of times.
    Pure,
    /// The same once or many times, given the same idempotency key.
    Idempotent,
    /// Something that must not happen twice. The default, because it is the safe guess.
    #[default]
    Once,
}

/// How long a body may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timeout {
    /// What the caller says ([`ToolContextBuilder::default_timeout`](crate::ToolContextBuilder::default_timeout)).
    #[default]
    Inherit,
    /// At most this long.
    After(Duration),
    /// No limit.
    Never,
}

/// The policy of a tool, read by whoever runs it.
///
/// ```
/// use agent::{Effect, ToolPolicy};
/// use std::time::Duration;
///
/// let policy = ToolPolicy::default().with_effect(Effect::Pure).with_timeout(Duration::from_secs(10));
/// assert_eq!(policy.effect, Effect::Pure);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// What running it does to the world.
    pub effect: Effect,
    /// How long a body may take; then its token is cancelled, its future dropped and the call has failed with
    /// the code `timeout`.
    pub timeout: Timeout,
    /// Whether the text of the body's errors is kept from the model.
    pub redact_errors: bool,
}

impl ToolPolicy {
    /// Every value at its default.
    pub const DEFAULT: Self = Self { effect: Effect::Once, timeout: Timeout::Inherit, redact_errors: false };

    /// Sets what running it does to the world.
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets how long a body may take.
    pub fn with_timeout(mut self, after: Duration) -> Self {
        self.timeout = Timeout::After(after);
        self
    }

    /// Lets a body take as long as it likes.
    pub fn without_timeout(mut self) -> Self {
        self.timeout = Timeout::Never;
        self
    }

    /// Keeps the text of the body's errors from the model.
    pub fn with_redacted_errors(mut self) -> Self {
        self.redact_errors = true;
        self
    }
}
