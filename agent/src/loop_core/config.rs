//! The configuration of a run, as plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json_hash::stored_hash;
use crate::message::whole;
use crate::tool::definition::ToolDefinition;
use crate::tool::registry::Registry;
use crate::tool::value::Tool;

/// The configuration of a run. A snapshot contains the configuration, but an assistant that resumes the snapshot uses its own
/// configuration.
///
/// ```
/// use agent::loop_core::{AgentLoop, LoopConfig};
/// use agent::message::{Conversation, Message};
///
/// let mut config = LoopConfig::default();
/// config.max_turns = 5;
/// let run = AgentLoop::new("run-1", config, Conversation::new(), [Message::user("Hi")]);
/// assert_eq!(run.turn(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopConfig {
    /// Maximum number of turns; 50 by default. 0 counts as 1.
    pub max_turns: u32,
    /// Other limits of the run; none by default.
    pub limits: UsageLimits,
    /// The guard against a model that repeats the same call. `None` turns it off.
    pub(crate) loop_guard: Option<LoopGuard>,
    /// Whether every call runs alone.
    pub sequential: bool,
    /// The effect of a steering message on the calls of the turn in which it arrives.
    pub steering: SteeringPolicy,
    /// Maximum number of retries of a tool in a run, unless the tool sets its own number; 2 by default. The model may retry a call if the
    /// arguments were refused, or if the tool asked for another call. A retry after progress does not count. Progress means that some
    /// issues are gone and none is new, or that all issues are new. All retries together are at most three times this maximum.
    pub max_retries: u32,
    /// Maximum number of successive continuations of an answer that the token limit cut; 0 by default. See
    /// [`AssistantBuilder::continue_length`](crate::AssistantBuilder::continue_length).
    #[serde(skip_serializing_if = "is_zero")]
    pub continue_length: u32,
    /// Maximum size of the text of a result in the conversation, in bytes, unless its tool sets its own size; 64 KiB by default. Longer
    /// texts are cut in the middle. The event of the call's end has the full text.
    pub max_result_bytes: usize,
    /// Settings of individual tools. A tool that is not listed has the defaults.
    pub(crate) tools: BTreeMap<String, ToolEntry>,
}

impl LoopConfig {
    pub(crate) fn may_be_steered(&self) -> bool {
        self.steering != SteeringPolicy::AfterBatch
    }

    /// Adds the settings of tools, for example whether a tool runs alone, and its own limits. A tool that is not added has the default
    /// settings.
    ///
    /// ```
    /// use agent::{Registry, loop_core::LoopConfig, tool, tools};
    ///
    /// /// Deploys the site.
    /// #[tool(exclusive)]
    /// fn deploy() {}
    ///
    /// let config = LoopConfig::default().with_tools(&Registry::new(tools![deploy])?);
    /// assert!(config != LoopConfig::default());
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn with_tools(mut self, registry: &Registry) -> Self {
        let named = |name: &str| Some((name.to_owned(), ToolEntry::of(registry.get(name)?)));
        self.tools.extend(registry.names().filter_map(named));
        self
    }

    /// Refuses equal calls from call number `refuse_at` on, and ends the run at call number `end_at`. The first of the equal calls has
    /// number 1. See [`AssistantBuilder::loop_guard`](crate::AssistantBuilder::loop_guard).
    pub fn with_loop_guard(mut self, refuse_at: u32, end_at: u32) -> Self {
        self.loop_guard = Some(LoopGuard { refuse_at, end_at });
        self
    }

    /// Turns the loop guard off, so that a model may make equal calls as often as the other limits permit.
    ///
    /// ```
    /// use agent::loop_core::LoopConfig;
    ///
    /// let (strict, lax) = (LoopConfig::default().with_loop_guard(2, 3), LoopConfig::default().without_loop_guard());
    /// assert!(strict != lax);
    /// ```
    pub fn without_loop_guard(mut self) -> Self {
        self.loop_guard = None;
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            max_turns: 50,
            limits: UsageLimits::default(),
            loop_guard: Some(LoopGuard::default()),
            sequential: false,
            steering: SteeringPolicy::default(),
            max_retries: 2,
            continue_length: 0,
            max_result_bytes: 64 * 1024,
            tools: BTreeMap::new(),
        }
    }
}

/// Limits of a run. `None` means no limit.
///
/// Requests, tokens and cost are checked before each request, and calls before they run; these limits do not cut a reply that has begun.
/// The run ends with [`End::Limit`](super::End::Limit) if a limit forbids a further request or call, or if the time is over.
///
/// ```
/// use agent::UsageLimits;
///
/// let limits = UsageLimits { total_tokens: Some(100_000), ..UsageLimits::default() };
/// assert_eq!(limits.requests, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageLimits {
    /// Maximum number of requests to the model. Repeated requests count, too, for example after a cut reply.
    pub requests: Option<u64>,
    /// Maximum number of calls whose tool runs. Calls beyond this number fail with the code `limit`.
    pub tool_calls: Option<u64>,
    /// Maximum number of input tokens of all requests together.
    pub input_tokens: Option<u64>,
    /// Maximum number of output tokens of all replies together.
    pub output_tokens: Option<u64>,
    /// Maximum number of input and output tokens together.
    pub total_tokens: Option<u64>,
    /// Maximum wall-clock time, measured by the driver (which performs the steps). This limit ends a run at any point.
    pub wall_time: Option<Duration>,
    /// Maximum cost, in the currency of the price list. Only replies with known prices count.
    pub cost: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoopGuard {
    /// The number of the first equal call that is refused, counted from 1.
    pub(crate) refuse_at: u32,
    /// The number of equal calls after which the run ends, at the end of the turn.
    pub(crate) end_at: u32,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self { refuse_at: 3, end_at: 5 }
    }
}

/// The effect of a steering message on the calls of the turn in which it arrives.
///
/// The policy applies to messages that arrive during a turn, after the turn took its messages from the queue. An older message does not
/// affect the calls, even if it is still queued. With every policy, each call has its result before the message is delivered.
///
/// ```
/// use agent::{Assistant, ScriptedModel, run::SteeringPolicy};
///
/// // "Stop that" stops what runs, not only what comes next.
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .steering_policy(SteeringPolicy::CancelRunning)
///     .build()?;
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SteeringPolicy {
    /// No effect: all calls run.
    #[default]
    AfterBatch,
    /// Calls that have not begun are skipped.
    SkipUnstarted,
    /// Calls that have not begun are skipped, and running calls are cancelled.
    CancelRunning,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct ToolEntry {
    /// Whether a call of the tool runs alone, without other calls of the same reply.
    pub(crate) exclusive: bool,
    pub(crate) max_retries: Option<u32>,
    pub(crate) allow_repeat: bool,
    pub(crate) max_result_bytes: Option<usize>,
    /// A fingerprint of the tool's name and parameters. An approval for another fingerprint is stale.
    #[serde(with = "whole")]
    pub(crate) fingerprint: u64,
    /// Whether the prompt of the run added the tool. All other tools belong to the assistant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_prompt: bool,
    /// Whether a call of the tool is a run of an assistant. The loop guard compares the arguments of these calls, but not their results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_assistant: bool,
}

impl ToolEntry {
    pub(crate) fn of(tool: &Tool) -> Self {
        let (definition, policy) = (tool.definition(), tool.policy());
        Self {
            exclusive: policy.exclusive,
            max_retries: policy.max_retries,
            allow_repeat: policy.allow_repeat,
            max_result_bytes: policy.max_result_bytes,
            fingerprint: fingerprint(definition),
            of_prompt: false,
            of_assistant: tool.is_of_assistant(),
        }
    }
}

/// Returns a hash of the tool's name and parameters. Stored runs contain the hash, so that a tool that has changed is detected.
pub(crate) fn fingerprint(definition: &ToolDefinition) -> u64 {
    stored_hash(definition.name(), definition.parameters())
}
