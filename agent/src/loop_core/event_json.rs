//! Events as JSON.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::event::{Event, EventKind};
use super::secrets::EventSecrets;
use super::{PendingCall, RunPath, RunStop};
use crate::args::Coercion;
use crate::message::{HandOffLosses, Message, StopReason, ToolArguments, ToolResultMessage, Usage};
use crate::model::ModelEvent;
use crate::tool::outcome::ToolResult;
use crate::tool::output::Control;
use crate::tool::progress::Progress;

/// Writes the event without secret arguments.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EventJson::new(self, &self.shown).serialize(serializer)
    }
}

impl Event {
    /// The JSON Schema (draft 2020-12) of an event as JSON. The file `events.schema.json` of this package has the same text. Later versions
    /// may add fields and kinds, and the schema allows both.
    ///
    /// ```
    /// use agent::{Event, Value};
    ///
    /// let schema: Value = serde_json::from_str(Event::JSON_SCHEMA)?;
    /// assert_eq!(schema["$defs"]["agent_start"]["properties"]["seq"]["minimum"], 1);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub const JSON_SCHEMA: &str = include_str!("../../events.schema.json");

    /// Returns a value that serializes the event with its secret arguments. Write this JSON only to stores and logs that are protected like
    /// the stored conversation.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    /// use std::sync::{Arc, Mutex};
    ///
    /// /// Signs in.
    /// #[tool]
    /// fn log_in(user: String, #[arg(secret)] password: String) -> String {
    ///     format!("{user} is in")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (log, all) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(String::new())));
    /// let (to_log, to_all) = (log.clone(), all.clone());
    /// let call = r#"{"user": "ann", "password": "hunter2"}"#;
    /// let model = ScriptedModel::new([reply().tool_call("log_in", call), reply().text("You are in.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![log_in])
    ///     .on_event(move |event| {
    ///         *to_log.lock().unwrap() += &serde_json::to_string(event).unwrap();
    ///         *to_all.lock().unwrap() += &serde_json::to_string(&event.with_secrets()).unwrap();
    ///     })
    ///     .build()?;
    /// assistant.prompt("Log me in.").await?;
    /// assert!(!log.lock().unwrap().contains("hunter2") && log.lock().unwrap().contains("[secret]"));
    /// assert!(all.lock().unwrap().contains("hunter2"));
    /// # Ok(()) }
    /// ```
    pub fn with_secrets(&self) -> impl Serialize + '_ {
        struct WithSecrets<'a>(&'a Event);

        impl Serialize for WithSecrets<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                EventJson::new(self.0, &EventSecrets::default()).serialize(serializer)
            }
        }

        WithSecrets(self)
    }

    #[cfg(feature = "testing")]
    pub(crate) fn shown_args<'a>(&self, tool: &str, args: &'a ToolArguments) -> Cow<'a, ToolArguments> {
        shown_args(&self.shown, tool, args)
    }
}

fn shown_args<'a>(shown: &EventSecrets, tool: &str, args: &'a ToolArguments) -> Cow<'a, ToolArguments> {
    shown.secrets.arguments(tool, args).map_or(Cow::Borrowed(args), Cow::Owned)
}

fn shown_message<'a>(shown: &EventSecrets, message: &'a Arc<Message>) -> Cow<'a, Message> {
    shown.secrets.message(message).map_or(Cow::Borrowed(&**message), Cow::Owned)
}

#[derive(Serialize)]
struct EventJson<'a> {
    run_id: &'a str,
    turn: u32,
    seq: u64,
    #[serde(skip_serializing_if = "RunPath::is_root")]
    path: &'a RunPath,
    #[serde(flatten)]
    kind: EventKindJson<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EventKindJson<'a> {
    AgentStart,
    TurnStart,
    MessageStart {
        message: Cow<'a, Message>,
    },
    MessageUpdate {
        #[serde(flatten)]
        update: Cow<'a, ModelEvent>,
    },
    MessageEnd {
        message: Cow<'a, Message>,
        #[serde(skip_serializing_if = "Option::is_none")]
        queued_id: Option<&'a str>,
    },
    ToolExecutionStart {
        call_id: &'a str,
        tool: &'a str,
        args: Cow<'a, ToolArguments>,
    },
    ToolExecutionUpdate {
        call_id: &'a str,
        tool: &'a str,
        partial: &'a Progress,
    },
    ApprovalRequired {
        call_id: &'a str,
        tool: &'a str,
        args: Cow<'a, ToolArguments>,
        request_id: &'a str,
    },
    ApprovalResolved {
        call_id: &'a str,
        decision: &'static str,
        edited: bool,
    },
    QuestionAsked {
        request_id: &'a str,
        call_id: &'a str,
        tool: &'a str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<&'a str>,
    },
    QuestionResolved {
        request_id: &'a str,
        call_id: &'a str,
        accepted: bool,
    },
    ToolExecutionEnd {
        #[serde(flatten)]
        result: CallEndJson<'a>,
        #[serde(skip_serializing_if = "is_continue")]
        control: Control,
        ran: bool,
        cached: bool,
        attempt: u32,
        duration_ms: u64,
    },
    TurnEnd {
        assistant: Option<&'a StopReason>,
        tool_results: &'a [String],
        usage: &'a Usage,
    },
    RunSuspended {
        pending: &'a [PendingCall],
    },
    RunResumed,
    AgentEnd {
        stop: RunStop,
        detail: Option<&'a str>,
        messages: Vec<Cow<'a, Message>>,
        usage: &'a Usage,
    },
    ContextNear {
        used: u64,
        usable: u64,
    },
    ContextCleared {
        results: usize,
        tokens_before: u64,
        tokens_after: u64,
        generation: u32,
    },
    CompactionStart {
        reason: &'static str,
        messages: usize,
        tokens: u64,
    },
    CompactionEnd {
        tokens_before: u64,
        tokens_after: u64,
        usage: &'a Usage,
        model: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    ReplyContinued {
        count: u32,
    },
    RequestDelayed {
        waited_ms: u64,
        limit: &'a str,
    },
    BudgetNear {
        budget: &'a str,
        share: f64,
    },
    ModelSwitched {
        from: &'a str,
        to: &'a str,
        losses: &'a HandOffLosses,
    },
}

#[derive(Serialize)]
struct CallEndJson<'a> {
    #[serde(flatten)]
    message: Option<ToolResultMessage>,
    coercions: &'a [Coercion],
}

impl<'a> CallEndJson<'a> {
    fn new(result: &'a ToolResult) -> Self {
        Self { message: result.to_message(), coercions: &result.coercions }
    }
}

impl<'a> EventJson<'a> {
    fn new(event: &'a Event, shown: &EventSecrets) -> Self {
        let Event { run_id, turn, seq, path, kind, .. } = event;
        Self { run_id, turn: *turn, seq: *seq, path, kind: EventKindJson::new(kind, shown) }
    }
}

impl<'a> EventKindJson<'a> {
    fn new(kind: &'a EventKind, shown: &EventSecrets) -> Self {
        match kind {
            EventKind::AgentStart => Self::AgentStart,
            EventKind::TurnStart => Self::TurnStart,
            EventKind::MessageStart { message } => {
                Self::MessageStart { message: shown_message(shown, message) }
            }
            EventKind::MessageUpdate { update } if shown.hides_update => {
                Self::MessageUpdate { update: Cow::Owned(shown.secrets.update(update)) }
            }
            EventKind::MessageUpdate { update } => Self::MessageUpdate { update: Cow::Borrowed(update) },
            EventKind::MessageEnd { message, queued_id } => {
                Self::MessageEnd { message: shown_message(shown, message), queued_id: queued_id.as_deref() }
            }
            EventKind::ToolExecutionStart { call } => Self::ToolExecutionStart {
                call_id: &call.id,
                tool: &call.name,
                args: shown_args(shown, &call.name, &call.args),
            },
            EventKind::ToolExecutionUpdate { call_id, tool, partial } => {
                Self::ToolExecutionUpdate { call_id, tool, partial }
            }
            EventKind::ApprovalRequired { call_id, tool, args, request_id } => {
                Self::ApprovalRequired { call_id, tool, args: shown_args(shown, tool, args), request_id }
            }
            EventKind::ApprovalResolved { call_id, allowed, edited } => Self::ApprovalResolved {
                call_id,
                decision: if *allowed { "allow" } else { "deny" },
                edited: *edited,
            },
            EventKind::QuestionAsked { question } => Self::QuestionAsked {
                request_id: &question.request_id,
                call_id: &question.call_id,
                tool: &question.tool,
                message: &question.message,
                report: question.report.as_deref(),
            },
            EventKind::QuestionResolved { request_id, call_id, accepted } => {
                Self::QuestionResolved { request_id, call_id, accepted: *accepted }
            }
            EventKind::ToolExecutionEnd { result, control, ran, cached, attempt, duration_ms } => {
                Self::ToolExecutionEnd {
                    result: CallEndJson::new(result),
                    control: *control,
                    ran: *ran,
                    cached: *cached,
                    attempt: *attempt,
                    duration_ms: *duration_ms,
                }
            }
            EventKind::TurnEnd { assistant, tool_results, usage } => {
                Self::TurnEnd { assistant: assistant.as_ref(), tool_results, usage }
            }
            EventKind::RunSuspended { pending } => Self::RunSuspended { pending },
            EventKind::RunResumed => Self::RunResumed,
            EventKind::AgentEnd { stop, detail, messages, usage } => Self::AgentEnd {
                stop: *stop,
                detail: detail.as_deref(),
                messages: messages.iter().map(|message| shown_message(shown, message)).collect(),
                usage,
            },
            EventKind::ContextNear { used, usable } => Self::ContextNear { used: *used, usable: *usable },
            EventKind::ContextCleared { results, tokens_before, tokens_after, generation } => {
                Self::ContextCleared {
                    results: *results,
                    tokens_before: *tokens_before,
                    tokens_after: *tokens_after,
                    generation: *generation,
                }
            }
            EventKind::CompactionStart { reason, messages, tokens } => {
                Self::CompactionStart { reason, messages: *messages, tokens: *tokens }
            }
            EventKind::CompactionEnd { tokens_before, tokens_after, usage, model, error } => {
                Self::CompactionEnd {
                    tokens_before: *tokens_before,
                    tokens_after: *tokens_after,
                    usage,
                    model,
                    error: error.as_deref(),
                }
            }
            EventKind::ReplyContinued { count } => Self::ReplyContinued { count: *count },
            EventKind::RequestDelayed { waited_ms, limit } => {
                Self::RequestDelayed { waited_ms: *waited_ms, limit }
            }
            EventKind::BudgetNear { budget, share } => Self::BudgetNear { budget, share: *share },
            EventKind::ModelSwitched { from, to, losses } => Self::ModelSwitched { from, to, losses },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_continue(control: &Control) -> bool {
    *control == Control::Continue
}
