//! Logs of events, shown as lines that a test compares.

use crate::loop_core::{Event, EventKind};
use crate::message::Message;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum length of a shown text, in characters.
const SHOWN: usize = 60;

/// A log of the events of runs. It shows each event as a line, for snapshots and for asserting the order of events. Clones share the
/// events.
///
/// ```
/// use agent::testing::EventLog;
/// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log = EventLog::new();
/// let model = ScriptedModel::new([reply().tool_call("double", r#"{"n": "21"}"#), reply().text("42")]);
/// let assistant = Assistant::builder(model).tools(tools![double]).on_event(log.listener()).build()?;
/// assistant.prompt("Double 21.").await?;
///
/// log.assert_sequence(&["call double", "end double completed \"42\"", "message assistant \"42\"", "run ends: completed"]);
/// assert_eq!(
///     log.outline(),
///     "run begins\n\
///      turn 1 begins\n\
///      message user \"Double 21.\"\n\
///      message assistant calls double\n\
///      call double {\"n\": \"21\"}\n\
///      end double completed \"42\" (/n text_to_integer)\n\
///      message tool_result \"42\"\n\
///      turn 1 ends: tool_use\n\
///      turn 2 begins\n\
///      message assistant \"42\"\n\
///      turn 2 ends: stop\n\
///      run ends: completed"
/// );
/// log.assert_never("end double failed");
///
/// // The events of one turn alone.
/// let second = EventLog::new();
/// for event in log.events().into_iter().filter(|event| event.turn == 2) {
///     second.push(event);
/// }
/// assert!(second.outline().starts_with("turn 2 begins\nmessage assistant \"42\"\nturn 2 ends: stop"));
/// log.clear();
/// assert!(log.outline().is_empty());
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: Arc<Mutex<Vec<Event>>>,
}

impl EventLog {
    /// Creates an empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a listener that adds events to this log, for [`AssistantBuilder::on_event`](crate::AssistantBuilder::on_event).
    pub fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let log = self.clone();
        move |event| log.push(event.clone())
    }

    /// Appends an event.
    pub fn push(&self, event: Event) {
        self.lock().push(event);
    }

    /// Returns the events so far, oldest first, including those without a line in the [outline](Self::outline).
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Removes all events, so that the next run can be examined alone.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Returns one line for each event, except for [`MessageStart`](EventKind::MessageStart),
    /// [`MessageUpdate`](EventKind::MessageUpdate) and [`ContextNear`](EventKind::ContextNear). Texts are cut to 60 characters of their
    /// first line. Lines of sub-agents begin with their [path](crate::Event::path).
    pub fn outline(&self) -> String {
        self.lines().join("\n")
    }

    fn lines(&self) -> Vec<String> {
        self.lock().iter().filter_map(line).collect()
    }

    /// Asserts that lines of the [outline](Self::outline) begin with these texts, in this order. Other lines may be between them.
    ///
    /// # Panics
    /// Panics with the outline, the lines that were found, and the first text that was not found.
    #[track_caller]
    pub fn assert_sequence(&self, wanted: &[&str]) {
        let mut found = 0;
        let mut shown = String::new();
        for line in self.lines() {
            let is_next = wanted.get(found).is_some_and(|wanted| line.starts_with(wanted));
            found += usize::from(is_next);
            // Writing to a String cannot fail.
            let _ = writeln!(shown, "{} {line}", if is_next { '>' } else { ' ' });
        }
        if let Some(missing) = wanted.get(found) {
            panic!("no line begins with {missing:?} after the {found} that were found (>):\n{shown}");
        }
    }

    /// Asserts that no line of the [outline](Self::outline) begins with this text.
    ///
    /// # Panics
    /// Panics with the outline if a line begins with the text.
    #[track_caller]
    pub fn assert_never(&self, unwanted: &str) {
        let lines = self.lines();
        assert!(
            !lines.iter().any(|line| line.starts_with(unwanted)),
            "a line begins with {unwanted:?}:\n{}",
            lines.join("\n")
        );
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(event: &Event) -> Option<String> {
    let line = own_line(event)?;
    Some(if event.is_own() { line } else { format!("{}: {line}", event.path) })
}

fn own_line(event: &Event) -> Option<String> {
    let turn = event.turn;
    Some(match &event.kind {
        EventKind::AgentStart => "run begins".to_owned(),
        EventKind::TurnStart => format!("turn {turn} begins"),
        EventKind::MessageEnd { message, .. } => said(message),
        EventKind::ToolExecutionStart { call } => {
            format!("call {} {}", call.name, cut(event.shown_args(&call.name, &call.args).text()))
        }
        EventKind::ToolExecutionUpdate { tool, partial, .. } => {
            format!("progress {tool} {:?}", cut(&partial.message))
        }
        EventKind::ApprovalRequired { tool, args, .. } => {
            format!("approval of {tool} {}", cut(event.shown_args(tool, args).text()))
        }
        EventKind::ApprovalResolved { allowed, edited, .. } => {
            let edited = if *edited { ", edited" } else { "" };
            format!("decision {}{edited}", if *allowed { "allow" } else { "deny" }).to_lowercase()
        }
        EventKind::QuestionAsked { question } => {
            format!("question of {} {:?}", question.tool, cut(&question.message))
        }
        EventKind::QuestionResolved { accepted, .. } => {
            format!("question {}", if *accepted { "answered" } else { "declined" })
        }
        EventKind::ToolExecutionEnd { result, ran, cached, .. } => {
            let mut line = format!("end {} {}", result.tool, ending(result));
            if !result.coercions.is_empty() {
                let coerced =
                    result.coercions.iter().map(|coercion| format!("{} {}", coercion.path, coercion.rule));
                let _ = write!(line, " ({})", coerced.collect::<Vec<_>>().join(", "));
            }
            if *cached {
                line.push_str(", cached");
            } else if !ran {
                line.push_str(", not run");
            }
            line
        }
        EventKind::TurnEnd { assistant, .. } => {
            let reason = assistant.as_ref().map_or("no reply", |reason| reason.as_str());
            format!("turn {turn} ends: {reason}")
        }
        EventKind::RunSuspended { pending } => format!("run waits for {}", pending.len()),
        EventKind::RunResumed => "run goes on".to_owned(),
        EventKind::AgentEnd { stop, detail, .. } => match detail {
            Some(detail) => format!("run ends: {stop}, {}", cut(detail)),
            None => format!("run ends: {stop}"),
        },
        EventKind::ContextCleared { results, .. } => format!("context clears {results} results"),
        EventKind::CompactionStart { reason, messages, .. } => {
            format!("compaction begins: {reason}, {messages} messages")
        }
        EventKind::CompactionEnd { error, .. } => match error {
            Some(error) => format!("compaction fails: {}", cut(error)),
            None => "compaction ends".to_owned(),
        },
        EventKind::ReplyContinued { count } => format!("answer is continued: {count}"),
        EventKind::RequestDelayed { limit, .. } => format!("request waited: {limit}"),
        EventKind::BudgetNear { budget, share } => format!("budget {budget} is near: {:.0} %", share * 100.0),
        EventKind::ModelSwitched { from, to, losses } => format!("model {from} to {to}, lost {losses}"),
        _ => return None,
    })
}

fn ending(result: &crate::tool::outcome::ToolResult) -> String {
    let text = cut(&result.outcome.text());
    match (result.outcome.kind(), result.outcome.code()) {
        (None, _) => "deferred".to_owned(),
        (Some(kind), Some(code)) => format!("{} {code} {text:?}", kind.as_str()),
        (Some(kind), None) => format!("{} {text:?}", kind.as_str()),
    }
}

fn said(message: &Message) -> String {
    let mut line = format!("message {}", message.role());
    let text = message.text();
    if !text.is_empty() {
        let _ = write!(line, " {:?}", cut(&text));
    }
    if let Message::Assistant(message) = message {
        let names: Vec<&str> = message.tool_calls().map(|call| call.name.as_str()).collect();
        if !names.is_empty() {
            let _ = write!(line, " calls {}", names.join(", "));
        }
    }
    line
}

fn cut(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None if first.len() < text.trim_end().len() => format!("{first}…"),
        None => first.to_owned(),
    }
}
