//! What a run may do, as plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::whole;

/// What a run may do. Everything in it is part of a snapshot.
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
    /// How many replies a run may take; 50 by default.
    pub max_turns: u32,
    /// What else a run may use; nothing is limited by default.
    pub limits: UsageLimits,
    /// What is done about a model that repeats itself; none switches it off.
    pub loop_guard: Option<LoopGuard>,
    /// Whether every call runs alone.
    pub sequential: bool,
    /// What a steering message does to the calls of the turn it arrives in.
    pub steering: SteeringPolicy,
    /// How many more tries a tool gets in a run after it asked for a better call or its arguments were refused,
    /// where it says nothing itself; 2 by default.
    pub max_retries: u32,
    /// How many bytes of text a result has in the conversation, where its tool says nothing itself; longer ones are cut
    /// in the middle. 64 KiB by default. The event of the call's end has all of it.
    pub max_result_bytes: usize,
    /// The tools of which something is to be known; any other is like [`ToolEntry::default`].
    pub tools: BTreeMap<String, ToolEntry>,
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
            max_result_bytes: 64 * 1024,
            tools: BTreeMap::new(),
        }
    }
}

/// What a run may use. Requests and tokens are checked before each request, calls before they run; a reply that has
/// begun is not cut. Each ends the run with [`End::Limit`](super::End::Limit).
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
    /// Requests to the model.
    pub requests: Option<u64>,
    /// Calls whose body runs. Those beyond it fail with the code `limit`.
    pub tool_calls: Option<u64>,
    /// Tokens of all requests.
    pub input_tokens: Option<u64>,
    /// Tokens of all replies.
    pub output_tokens: Option<u64>,
    /// Tokens of both.
    pub total_tokens: Option<u64>,
    /// Time, measured by the driver. It ends a run wherever it stands.
    pub wall_time: Option<Duration>,
    /// Money, in the currency of the price list; of replies whose prices are known.
    pub cost: Option<f64>,
}

/// What is done about a model that makes the same call again and again: the same tool, the same checked arguments
/// and, when it ran, the same result. A user message starts the count again.
///
/// ```
/// use agent::{Assistant, LoopGuard, ScriptedModel};
///
/// let guard = LoopGuard { refuse_at: 2, end_at: 3 };
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).loop_guard(Some(guard)).build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopGuard {
    /// The call of this number is not run, and fails with the code `repeated_call`; 3 by default.
    pub refuse_at: u32,
    /// The call of this number ends the run after its batch; 5 by default.
    pub end_at: u32,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self { refuse_at: 3, end_at: 5 }
    }
}

/// What a steering message does to the calls of the turn it arrives in: from the poll that begins the turn to its last
/// call. One that was in the queue before, and was left there because a turn begins with one message, does nothing to them.
/// Whatever it is, each call has its result before the message is delivered.
///
/// ```
/// use agent::{Assistant, ScriptedModel, SteeringPolicy};
///
/// // "Stop that" stops what runs, not only what comes next.
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
///     .steering_policy(SteeringPolicy::CancelRunning)
///     .build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SteeringPolicy {
    /// Nothing: all of them run.
    #[default]
    AfterBatch,
    /// Those that have not begun do not begin.
    SkipUnstarted,
    /// As above, and those that run are cancelled.
    CancelRunning,
}

/// What the loop knows of a tool.
///
/// ```
/// use agent::loop_core::{LoopConfig, ToolEntry};
///
/// let mut deploy = ToolEntry::default();
/// deploy.exclusive = true;                             // never beside another call
/// let mut config = LoopConfig::default();
/// config.tools.insert("deploy".into(), deploy);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolEntry {
    /// Whether nothing else of the same reply runs beside it.
    pub exclusive: bool,
    /// How many more tries it gets in a run.
    pub max_retries: Option<u32>,
    /// Whether the same call may be made over and over.
    pub allow_repeat: bool,
    /// How many bytes of text a result has in the conversation.
    pub max_result_bytes: Option<usize>,
    /// Changes when its schema does: an approval given for another schema is stale.
    #[serde(with = "whole")]
    pub fingerprint: u64,
}
