//! The policy of a tool, which decides how its calls are run. The code that runs the calls reads the policy; models never see it.

use super::approval::Approval;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The effect of a call of a tool on the world. The effect decides whether an interrupted call may be repeated.
///
/// ```
/// use agent::{Registry, tool, tool::Effect, tools};
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
    /// No effects: the tool may be run any number of times.
    Pure,
    /// Repeated attempts with the same idempotency key have the same effect as one attempt.
    Idempotent,
    /// An effect that must not happen twice. This is the default, because it is the safe assumption.
    #[default]
    Once,
}

/// The part of a tool's [options](crate::tool::ToolOptions) that decides how its calls are run.
///
/// ```
/// use agent::{ToolBuilder, ToolContext, Value, tool::Effect};
/// use std::time::Duration;
///
/// let tool = ToolBuilder::new("look_up")
///     .description("Looks up a word.")
///     .effect(Effect::Pure)
///     .timeout(Duration::from_secs(10))
///     .max_retries(2)                         // two more calls after a bad one
///     .max_result_bytes(65_536)
///     .cache(true)
///     .allow_repeat()
///     .build(|_: Value, _: ToolContext| async { "found" })?;
/// let policy = tool.policy();
/// assert_eq!((policy.effect, policy.timeout), (Effect::Pure, Some(Duration::from_secs(10))));
/// assert_eq!((policy.max_retries, policy.max_result_bytes, policy.cache), (Some(2), Some(65_536), Some(true)));
/// assert!(policy.allow_repeat && !policy.follow_up);
/// # Ok::<(), agent::tool::DefinitionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, with its own name")]
pub struct ToolPolicy {
    /// The effect of a call of the tool on the world.
    pub effect: Effect,
    /// The time limit of the tool's function. When it is reached, the [`CancelToken`](crate::CancelToken) of the call is cancelled, the
    /// function is dropped, and the call fails with the code `timeout`. [`Duration::MAX`] means no limit. `None`: the caller's
    /// [default](crate::ToolContext::with_default_timeout).
    pub timeout: Option<Duration>,
    /// Whether the text of an error that the tool returns is hidden from the model, unless the error has a
    /// [code](crate::ToolError::with_code).
    pub redact_errors: bool,
    /// Maximum number of times that the tool may be started for one call. The tool is started again after a panic, a timeout, or a crash
    /// of the process or of a durable engine such as Restate, but not after an error that the tool returns. A tool with the effect
    /// [`Once`](Effect::Once) is started again only after a question was answered; see [`asks`](Self::asks). `None`: the code that runs
    /// the call decides.
    pub max_attempts: Option<u32>,
    /// Maximum number of retries in a run. The model retries after bad arguments, or after the tool asks for a [better
    /// call](crate::ToolError::retry). A retry does not count if its arguments have only some of the earlier issues, or only new issues.
    /// All retries together are at most three times this number. `None`: the code that runs the call decides.
    pub max_retries: Option<u32>,
    /// The rule that decides whether a call has to be approved.
    pub approval: Approval,
    /// Whether no other call of the same reply runs at the same time.
    pub exclusive: bool,
    /// Whether a later call with the same arguments gets the cached result of an earlier call. If `None`, the code that runs the call
    /// decides; for an assistant, see `AssistantBuilder::cache_results`.
    pub cache: Option<bool>,
    /// Whether the tool has no effect before its last [question](crate::ToolContext::ask). The tool may then be restarted, although its
    /// effect is [`Once`](Effect::Once).
    pub asks: bool,
    /// Whether the same call may be repeated any number of times, as in polling.
    pub allow_repeat: bool,
    /// Whether the model is asked at once when the application records a call that was made outside of a run. See
    /// [`ToolOptions::triggers_follow_up`](crate::tool::ToolOptions::triggers_follow_up).
    pub follow_up: bool,
    /// Whether results of this tool stay when an assistant with a [managed context](crate::AssistantBuilder::manage_context) clears old
    /// results. A summary may still replace these results.
    pub keep_result: bool,
    /// Maximum total length of the texts of a result, in bytes. Longer texts are cut in the middle, and the structured data of the result
    /// is then dropped. Other parts, such as images, are not counted. `None`: the code that runs the call decides.
    pub max_result_bytes: Option<usize>,
}

impl ToolPolicy {
    pub(crate) fn has_time_limit(&self) -> bool {
        self.timeout.is_some_and(|limit| limit < Duration::MAX)
    }

    /// The policy with every value at its default.
    pub const DEFAULT: Self = Self {
        effect: Effect::Once,
        timeout: None,
        redact_errors: false,
        max_attempts: None,
        max_retries: None,
        approval: Approval::NEVER,
        exclusive: false,
        cache: None,
        asks: false,
        allow_repeat: false,
        follow_up: false,
        keep_result: false,
        max_result_bytes: None,
    };
}
