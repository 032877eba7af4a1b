//! What a driver tells the loop.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{LimitReached, Signature};
use crate::args::Coercions;
use crate::message::{AssistantMessage, Message, ToolArguments};
use crate::model::ModelEvent;
use crate::{Control, ToolOutcome, ToolReply};

/// The answer to the effect that names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a short-lived answer; boxing a reply would make every driver unwrap it"
)]
pub enum Answer {
    /// What the queue had; nothing when it was empty.
    Messages(Vec<Arc<Message>>),
    /// What the model said.
    Reply(Reply),
    /// What each call of the segment came to before it runs, in call order.
    Prepared(Vec<Prepared>),
    /// Whether each call may run, in the order of the requests.
    Decisions(Vec<Decided>),
    /// How each call ended, in the order of the effect, whatever finished first.
    Outcomes(Vec<CallEnd>),
    /// Whether to go on.
    Verdict(Verdict),
}

/// What the model said: whole, or as far as it came when it failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// The message. A stop reason of `error` or `aborted` ends the run; the message's `error` says why.
    pub message: AssistantMessage,
    /// Whether the token limit of the request cut it although the stop reason does not say so.
    #[serde(default)]
    pub is_cut: bool,
    /// The limit for which the driver ended a reply that is `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReached>,
}

impl Reply {
    /// A reply.
    pub fn new(message: AssistantMessage) -> Self {
        Self { message, is_cut: false, limit: None }
    }
}

/// What a call came to before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepared {
    /// It may run.
    Ready(Ready),
    /// It does not: refused, blocked, or answered from the cache.
    Ended(CallEnd),
}

/// A call that may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Ready {
    /// The arguments to run with, where they are not those of the model: replaced by a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<ToolArguments>,
    /// What it is compared by with earlier calls; none where repeating is fine.
    pub signature: Option<Signature>,
    /// The checked arguments, where somebody has to decide on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolArguments>,
    /// A signature of the call, for a driver that wants to know it again after the run was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The result of an equal call: then this one does not run, unless the loop guard says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<CallEnd>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallEnd {
    /// How. `Deferred` is no end yet: the result comes from outside.
    pub outcome: ToolOutcome,
    /// What was changed in the arguments so that they fit.
    #[serde(default)]
    pub coercions: Coercions,
    /// Whether the run goes on.
    #[serde(default)]
    pub control: Control,
    /// Whether the body had its turn.
    #[serde(default)]
    pub ran: bool,
    /// Whether the result is that of an earlier call.
    #[serde(default)]
    pub cached: bool,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// What all of a long result is read by, where the driver keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The arguments that it ran with, where a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_args: Option<ToolArguments>,
    /// What a call that was refused after its check is compared by with earlier calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl CallEnd {
    /// A call that did not run. The control is that of the output, when it has one.
    pub fn new(reply: impl Into<ToolReply>) -> Self {
        let ToolReply { outcome, coercions } = reply.into();
        let control = outcome.output().map_or(Control::Continue, |output| output.control);
        Self {
            outcome,
            coercions,
            control,
            ran: false,
            cached: false,
            attempt: 1,
            duration_ms: 0,
            handle: None,
            edited_args: None,
            signature: None,
        }
    }

    /// A call that ran.
    pub fn ran(reply: impl Into<ToolReply>, duration_ms: u64) -> Self {
        Self { ran: true, duration_ms, ..Self::new(reply) }
    }
}

/// What was changed in the arguments of one call so that they fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallCoercions {
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// What, in order.
    pub coercions: Coercions,
}

impl CallCoercions {
    pub(super) fn new(call_id: String, tool: String, coercions: Coercions) -> Self {
        Self { call_id, tool, coercions }
    }
}

/// What was decided on a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a short-lived answer, one for each call")]
pub enum Decided {
    /// It runs, with these arguments where somebody changed them (checked by the driver).
    Allow(Option<ToolArguments>),
    /// It was allowed and does not run all the same: changed arguments that were refused, or a tool that is another
    /// one by now.
    AllowEnded(CallEnd),
    /// It does not run, for this reason.
    Deny(String),
    /// Nobody knows yet: then all calls of the segment go on waiting.
    Later,
}

/// What the hook at the end of a turn says, and whether messages wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// Whether the run ends (`Some(false)`), goes on (`Some(true)`), or the hook does not mind.
    pub go_on: Option<bool>,
    /// Whether a queue holds messages.
    pub is_queued: bool,
}

/// What a live driver tells while it works on an effect, so that events come when things happen. All of it is
/// optional: what was not told follows from the answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// The reply begins; the message in its first, empty state.
    ReplyStarted(Arc<Message>),
    /// The reply grows.
    ReplyUpdated(ModelEvent),
    /// The call at this position of its message is looked at.
    CallStarted(u32),
    /// What the call at this position came to before it runs.
    CallPrepared(u32, Prepared),
    /// The call at this position is so far. After its end it is ignored.
    CallUpdated(u32, crate::Progress),
    /// The call at this position ended, or its result arrived from outside.
    CallEnded(u32, CallEnd),
}

/// An answer or a note that does not fit. The loop is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Protocol {
    /// Another answer is wanted.
    #[error("the pending effect wants {wanted}")]
    #[non_exhaustive]
    WrongKind {
        /// Which.
        wanted: &'static str,
    },
    /// One for each call is wanted.
    #[error("{wanted} answers are wanted, {got} were given")]
    #[non_exhaustive]
    WrongCount {
        /// How many calls there are.
        wanted: usize,
        /// How many answers.
        got: usize,
    },
    /// The note is about a call that the pending effect does not ask for.
    #[error("no call {ord} is worked on")]
    #[non_exhaustive]
    NoSuchCall {
        /// The position.
        ord: u32,
    },
    /// The run is over.
    #[error("the run is over")]
    Over,
}
