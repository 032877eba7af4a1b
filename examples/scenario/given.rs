//! The format of a scenario. It is parsed like the arguments of a tool, so an error names the location and what is allowed there.

use std::collections::BTreeMap;
use std::error::Error;

use agent::args::{CoercionPolicy, CoercionRule, Plan, PlanOptions};
use agent::{ToolArgs, ToolOutput, args::Violations};
use serde_json::{Value, json};

/// The whole setup of a scenario.
#[derive(ToolArgs)]
pub(crate) struct Given {
    /// The prompts. If there are none, the run continues from `history`.
    pub(crate) prompt: Option<Vec<String>>,
    #[arg(default)]
    pub(crate) history: Vec<Past>,
    /// Names of tools.
    #[arg(default)]
    pub(crate) tools: Vec<String>,
    /// The replies, one for each request.
    #[arg(default)]
    pub(crate) model: Vec<Scripted>,
    #[arg(default)]
    pub(crate) mode: Mode,
    #[arg(range(1..))]
    pub(crate) max_concurrency: Option<usize>,
    #[arg(range(1..))]
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_retries: Option<u32>,
    #[serde(alias = "usage_limits")]
    pub(crate) limits: Option<Limits>,
    pub(crate) loop_guard: Option<Guard>,
    #[arg(default)]
    pub(crate) steering_mode: Taken,
    #[arg(default)]
    pub(crate) follow_up_mode: Taken,
    #[arg(default)]
    pub(crate) steering_policy: Steering,
    #[arg(default)]
    pub(crate) steering_queued: Vec<String>,
    #[arg(default)]
    pub(crate) follow_up_queued: Vec<String>,
    #[arg(default)]
    pub(crate) hooks: Hooked,
    /// The decisions on approvals, by call id. A call without an entry is allowed.
    #[arg(default)]
    pub(crate) decisions: BTreeMap<String, Ruling>,
    /// The event at which a second listener panics.
    pub(crate) listener_panics_on: Option<Told>,
    #[arg(default)]
    pub(crate) actions: Vec<Action>,
}

impl Given {
    /// Parses the JSON text of `given`.
    pub(crate) fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        // A single value is accepted in place of a list, and null in place of an absent field.
        let policy = CoercionPolicy::exact();
        let policy = policy.allow(CoercionRule::OneValueWrapped).allow(CoercionRule::NullAsAbsent);
        let plan = Plan::for_type::<Self>("given", PlanOptions::default().coercion(policy))?;
        plan.parse::<Self>(text).map(|parsed| parsed.value).map_err(|refusal| {
            let issues: Vec<_> = refusal.issues().iter().map(ToString::to_string).collect();
            issues.join("\n").into()
        })
    }
}

/// A message from before the run.
#[derive(ToolArgs)]
#[arg(validate = one_message)]
pub(crate) struct Past {
    pub(crate) user: Option<String>,
    pub(crate) assistant: Option<String>,
    #[arg(default)]
    pub(crate) calls: Vec<Call>,
    /// The id of the call whose result is in `text`.
    pub(crate) tool_result: Option<String>,
    pub(crate) text: Option<String>,
}

fn one_message(past: &Past) -> Result<(), Violations> {
    let is_reply = past.assistant.is_some() || !past.calls.is_empty();
    let kinds = [past.user.is_some(), is_reply, past.tool_result.is_some()];
    let mut found = Violations::new();
    if kinds.iter().filter(|kind| **kind).count() != 1 {
        found.add("", "is one of `user`, `assistant` with or without `calls`, or `tool_result` with `text`");
    }
    if past.text.is_some() && past.tool_result.is_none() {
        found.add("text", "goes with `tool_result`");
    }
    found.into_result()
}

/// A call of the model.
#[derive(ToolArgs)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Any JSON value. A string is sent as the raw text of the arguments.
    pub(crate) args: Option<Value>,
}

/// A reply, or the failure of a request.
#[derive(ToolArgs)]
#[arg(validate = one_reply)]
pub(crate) struct Scripted {
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<String>,
    #[arg(default)]
    pub(crate) calls: Vec<Call>,
    /// A text in which `{last}` stands for the last message.
    pub(crate) template: Option<String>,
    pub(crate) usage: Option<Tokens>,
    pub(crate) stop_reason: Option<String>,
    /// An error that ends the reply after all other fields.
    pub(crate) error: Option<String>,
    /// The reason for an abort that ends the reply.
    pub(crate) aborted: Option<String>,
    /// An error of the request before anything is sent.
    pub(crate) throws: Option<String>,
}

fn one_reply(reply: &Scripted) -> Result<(), Violations> {
    let mut found = Violations::new();
    if reply.text.is_some() && reply.template.is_some() {
        found.add("template", "does not go with `text`");
    }
    if reply.error.is_some() && reply.aborted.is_some() {
        found.add("aborted", "does not go with `error`");
    }
    let says =
        [&reply.text, &reply.thinking, &reply.template, &reply.stop_reason, &reply.error, &reply.aborted];
    let says = says.into_iter().any(Option::is_some) || !reply.calls.is_empty() || reply.usage.is_some();
    if reply.throws.is_some() && says {
        found.add("throws", "stands alone: nothing is sent");
    }
    found.into_result()
}

/// The token usage of a reply.
#[derive(ToolArgs)]
pub(crate) struct Tokens {
    #[arg(default)]
    pub(crate) input: u64,
    #[arg(default)]
    pub(crate) output: u64,
    #[arg(default)]
    pub(crate) cache_read: u64,
    #[arg(default)]
    pub(crate) cache_write: u64,
    #[arg(default)]
    pub(crate) reasoning: u64,
    /// The default is the sum of input and output.
    pub(crate) total: Option<u64>,
    pub(crate) cost: Option<Money>,
}

/// The cost of a reply in money.
#[derive(ToolArgs)]
pub(crate) struct Money {
    #[arg(default)]
    pub(crate) input: f64,
    #[arg(default)]
    pub(crate) output: f64,
    pub(crate) total: f64,
}

/// How the calls of a reply run.
#[derive(ToolArgs, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    Parallel,
    Sequential,
}

/// How many queued messages are delivered at the beginning of a turn.
#[derive(ToolArgs, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Taken {
    #[default]
    OneAtATime,
    All,
}

/// The effect of a steering message on calls.
#[derive(ToolArgs, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Steering {
    #[default]
    AfterBatch,
    SkipUnstarted,
    CancelRunning,
}

#[derive(ToolArgs)]
pub(crate) struct Limits {
    pub(crate) requests: Option<u64>,
    pub(crate) tool_calls: Option<u64>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) total_tokens: Option<u64>,
    pub(crate) wall_time_ms: Option<u64>,
    #[arg(range(0.0..))]
    pub(crate) cost: Option<f64>,
}

/// The loop guard: on or off, or how many identical calls it takes until a call is refused and until the run ends.
#[derive(ToolArgs)]
#[serde(untagged)]
pub(crate) enum Guard {
    Switch(bool),
    Own {
        #[arg(default = 3)]
        refuse_at: u32,
        #[arg(default = 5)]
        end_at: u32,
    },
}

#[derive(ToolArgs, Default)]
pub(crate) struct Hooked {
    pub(crate) before_tool_call: Option<Before>,
    pub(crate) after_tool_call: Option<After>,
}

/// A hook for calls to `tool`. Without `tool`, the hook is for all calls.
#[derive(ToolArgs, Clone)]
#[arg(validate = one_answer)]
pub(crate) struct Before {
    pub(crate) tool: Option<String>,
    #[arg(default)]
    pub(crate) block: bool,
    pub(crate) reason: Option<String>,
    pub(crate) args: Option<Value>,
    pub(crate) error: Option<String>,
}

fn one_answer(before: &Before) -> Result<(), Violations> {
    let mut found = Violations::new();
    let answers = [before.block, before.args.is_some(), before.error.is_some()];
    if answers.iter().filter(|answer| **answer).count() > 1 {
        found.add("", "says one of `block`, `args` and `error`");
    }
    if before.reason.is_some() && !before.block {
        found.add("reason", "goes with `block`");
    }
    found.into_result()
}

/// A hook for results of `tool`. Without `tool`, the hook is for all results.
#[derive(ToolArgs, Clone)]
#[arg(validate = change_or_error)]
pub(crate) struct After {
    pub(crate) tool: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) metadata: Option<BTreeMap<String, Value>>,
    pub(crate) is_error: Option<bool>,
    pub(crate) control: Option<Going>,
    pub(crate) error: Option<String>,
}

fn change_or_error(after: &After) -> Result<(), Violations> {
    let changes = after.text.is_some() || after.metadata.is_some() || after.is_error.is_some();
    let found = Violations::new();
    if after.error.is_some() && (changes || after.control.is_some()) {
        return found.at("error", "stands alone: what a hook says that fails is not known").into_result();
    }
    found.into_result()
}

/// Whether the run continues.
#[derive(ToolArgs, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Going {
    Continue,
    EndIfAll,
    EndNow,
}

/// The decision on a call that needs approval.
#[derive(ToolArgs)]
#[arg(validate = fitting)]
pub(crate) struct Ruling {
    #[arg(default)]
    pub(crate) decision: Word,
    pub(crate) args: Option<Value>,
    pub(crate) message: Option<String>,
}

#[derive(ToolArgs, Clone, Copy, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    #[default]
    Allow,
    Deny,
    Later,
}

fn fitting(ruling: &Ruling) -> Result<(), Violations> {
    let mut found = Violations::new();
    if ruling.args.is_some() && ruling.decision != Word::Allow {
        found.add("args", "goes with `allow`");
    }
    if ruling.message.is_some() && ruling.decision != Word::Deny {
        found.add("message", "goes with `deny`");
    }
    found.into_result()
}

/// An action that an event triggers.
#[derive(ToolArgs, Clone, Debug)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Action {
    #[serde(alias = "cancel")]
    Abort {
        when: When,
        #[arg(default)]
        after_ms: u64,
        reason: Option<String>,
    },
    Reset {
        when: When,
        #[arg(default)]
        after_ms: u64,
    },
    Steer {
        when: When,
        #[arg(default)]
        after_ms: u64,
        #[serde(alias = "message")]
        messages: Vec<String>,
    },
    FollowUp {
        when: When,
        #[arg(default)]
        after_ms: u64,
        #[serde(alias = "message")]
        messages: Vec<String>,
    },
    Prompt {
        when: When,
        #[arg(default)]
        after_ms: u64,
        #[serde(alias = "prompt", alias = "message")]
        text: String,
    },
}

impl Action {
    /// Returns the event that triggers the action, and the delay in milliseconds.
    pub(crate) fn when(&self) -> (&When, u64) {
        match self {
            Self::Abort { when, after_ms, .. }
            | Self::Reset { when, after_ms }
            | Self::Steer { when, after_ms, .. }
            | Self::FollowUp { when, after_ms, .. }
            | Self::Prompt { when, after_ms, .. } => (when, *after_ms),
        }
    }
}

/// The event that triggers an action: the `nth` one that matches all the other fields.
#[derive(ToolArgs, Clone, Debug)]
pub(crate) struct When {
    pub(crate) event: Told,
    #[arg(default = 1, range(1..))]
    pub(crate) nth: u64,
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) role: Option<Role>,
    pub(crate) update: Option<Update>,
    pub(crate) turn: Option<u32>,
}

/// The types of events.
#[derive(ToolArgs, ToolOutput, Clone, Debug, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    AgentStart,
    TurnStart,
    MessageStart,
    MessageUpdate,
    MessageEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ApprovalRequired,
    ApprovalResolved,
    ToolExecutionEnd,
    TurnEnd,
    RunSuspended,
    RunResumed,
    AgentEnd,
}

#[derive(ToolArgs, ToolOutput, Clone, Debug, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    User,
    Assistant,
    ToolResult,
    Custom,
}

/// The kinds of `message_update` events.
#[derive(ToolArgs, ToolOutput, Clone, Debug, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Update {
    TextStart,
    TextDelta,
    TextEnd,
    ThinkingStart,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallStart,
    ToolCallDelta,
    ToolCallEnd,
}

impl When {
    /// Returns whether all fields that are given match the output of `shown::event`.
    pub(crate) fn fits(&self, shown: &Value) -> bool {
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let wanted = [
            ("type", Some(json!(self.event))),
            ("call_id", text(&self.call_id)),
            ("tool", text(&self.tool)),
            ("role", self.role.map(|role| json!(role))),
            ("update", self.update.map(|update| json!(update))),
            ("turn", self.turn.map(Value::from)),
        ];
        wanted.into_iter().all(|(key, wanted)| wanted.is_none_or(|wanted| shown[key] == wanted))
    }
}
