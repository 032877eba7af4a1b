//! How a tool may be run: facts for whoever runs it, never for the model.

use super::approval::Approval;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What running a tool does to the world, and so what may happen to a call that was interrupted.
///
/// ```
/// use agent::{Effect, Registry, tool, tools};
///
/// /// Sends a letter: never twice, so never again after a crash.
/// #[tool]
/// fn send_letter(to: String) {}
///
/// /// Reads a letter.
/// #[tool(read_only)]
/// fn read_letter(from: String) -> String {
///     format!("from {from}")
/// }
///
/// let registry = Registry::new(tools![send_letter, read_letter])?;
/// assert_eq!(registry.fetch("send_letter")?.policy().effect, Effect::Once);
/// assert_eq!(registry.fetch("read_letter")?.policy().effect, Effect::Pure);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use agent::{Registry, Timeout, tool, tools};
/// use std::time::Duration;
///
/// /// Looks something up.
/// #[tool(timeout = "10s")]
/// async fn look_up(word: String) -> String {
///     word
/// }
///
/// let registry = Registry::new(tools![look_up])?;
/// assert_eq!(registry.fetch("look_up")?.policy().timeout, Timeout::After(Duration::from_secs(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
/// use agent::{Effect, Timeout, ToolPolicy};
/// use std::time::Duration;
///
/// let policy = ToolPolicy::default()
///     .with_effect(Effect::Pure)
///     .with_timeout(Duration::from_secs(10))
///     .with_max_retries(2)                    // two more calls after a bad one
///     .with_max_result_bytes(65_536)
///     .with_cache(true)
///     .with_repeats()
///     .with_follow_up()
///     .with_redacted_errors();
/// assert_eq!((policy.effect, policy.timeout), (Effect::Pure, Timeout::After(Duration::from_secs(10))));
/// assert_eq!((policy.max_retries, policy.max_result_bytes, policy.cache), (Some(2), Some(65_536), Some(true)));
/// assert!(policy.allow_repeat && policy.follow_up && policy.redact_errors);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, with its own name")]
pub struct ToolPolicy {
    /// What running it does to the world.
    pub effect: Effect,
    /// How long a body may take; then its token is cancelled, its future dropped and the call has failed with
    /// the code `timeout`.
    pub timeout: Timeout,
    /// Whether the text of the body's errors is kept from the model.
    pub redact_errors: bool,
    /// How often the body may be started for one call when something outside of it goes wrong: a crash, a lost engine.
    /// A body with the effect [`Once`](Effect::Once) is never started again. `None`: what the driver says.
    pub max_attempts: Option<u32>,
    /// How many more calls a model gets in a run after bad arguments, or after the body asked for a
    /// [better call](crate::ToolError::retry). `None`: what the driver says.
    pub max_retries: Option<u32>,
    /// Whether a call waits for somebody's word.
    pub approval: Approval,
    /// Whether nothing else of the same reply runs beside it.
    pub exclusive: bool,
    /// Whether a completed result is kept for the same arguments. `None`: what the driver says.
    pub cache: Option<bool>,
    /// Whether the same call may be made over and over, as when something is polled.
    pub allow_repeat: bool,
    /// Whether the model is asked at once when a call is recorded that was made outside of a run; see
    /// [`Tool::triggers_follow_up`](crate::Tool::triggers_follow_up).
    pub follow_up: bool,
    /// Longer results are cut, in bytes. `None`: what the driver says.
    pub max_result_bytes: Option<usize>,
}

impl ToolPolicy {
    /// Every value at its default.
    pub const DEFAULT: Self = Self {
        effect: Effect::Once,
        timeout: Timeout::Inherit,
        redact_errors: false,
        max_attempts: None,
        max_retries: None,
        approval: Approval::Never,
        exclusive: false,
        cache: None,
        allow_repeat: false,
        follow_up: false,
        max_result_bytes: None,
    };

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

    /// Sets how often the body may be started for one call.
    pub fn with_max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets how many more calls a model gets in a run after one with bad arguments.
    pub fn with_max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// Sets whether a call waits for somebody's word.
    ///
    /// ```
    /// use agent::{Approval, Timeout, ToolPolicy};
    ///
    /// let policy = ToolPolicy::default().with_approval(Approval::Always).with_exclusive().with_max_attempts(1).without_timeout();
    /// assert_eq!((policy.approval, policy.exclusive), (Approval::Always, true));
    /// assert_eq!((policy.max_attempts, policy.timeout), (Some(1), Timeout::Never));
    /// ```
    pub fn with_approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Lets nothing else of the same reply run beside it.
    pub fn with_exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Sets whether a completed result is kept for the same arguments.
    pub fn with_cache(mut self, cache: bool) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Lets the same call be made over and over, as when something is polled: a loop guard does not count it.
    pub fn with_repeats(mut self) -> Self {
        self.allow_repeat = true;
        self
    }

    /// Has the model asked at once when a call that was made outside of a run is recorded (`Assistant::record`).
    pub fn with_follow_up(mut self) -> Self {
        self.follow_up = true;
        self
    }

    /// Sets how long a result may be, in bytes; what is longer is cut.
    pub fn with_max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }
}
