//! Describes the events of a run in words.

use crate::look::{Kind, Look, count, fit, fit_end, harmless, one_line};
use crate::screen::{Show, below};
use agent::args::Coercion;
use agent::message::{AssistantMessage, Content, Media, Message, Part, StopReason, ToolCall, Usage};
use agent::model::ModelEvent;
use agent::{Decision, Event, EventKind, Progress, Registry, ToolOutcome, ToolResult, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The most lines shown of a result. `/show` has the rest.
const LINES: usize = 6;
/// The most lines shown of a report on invalid arguments.
const REPORT: usize = 16;
/// The length to which a line is cut.
const LINE: usize = 240;

/// A finished call, as `/show` prints it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) result: String,
}

struct Running {
    id: String,
    tool: String,
    args: String,
    /// Whether the person changed the arguments.
    is_edited: bool,
    began: Instant,
    progress: Option<Progress>,
}

/// The state of the model.
enum Doing {
    /// No part of the reply has arrived.
    Waiting,
    Replying,
    /// The model summarizes old messages.
    Summarizing,
    /// The model writes the arguments of a call to this tool.
    Calling(String),
    /// The reply is complete: tools run, or a person is asked.
    Nothing,
}

/// Shows the events of one run.
pub(crate) struct Teller {
    look: Look,
    model: String,
    began: Instant,
    doing: Doing,
    running: Vec<Running>,
    /// The messages that were typed during the run and that the model has not received yet: ID and text.
    pub(crate) waiting: Vec<(String, String)>,
    pub(crate) shown: Vec<Shown>,
    /// The indexes of the parts that arrived in one piece.
    told: BTreeSet<usize>,
    /// The arguments of the running calls of sub-agents. The keys have the form `run/call`.
    within: BTreeMap<String, String>,
    /// The number that `/show` has for the first entry of `shown`.
    first: usize,
    pub(crate) usage: Usage,
    pub(crate) turns: u64,
    calls: u64,
}

impl Teller {
    pub(crate) fn new(look: Look, model: &str, first: usize) -> Self {
        Self {
            look,
            model: model.to_owned(),
            began: Instant::now(),
            doing: Doing::Waiting,
            running: Vec::new(),
            waiting: Vec::new(),
            shown: Vec::new(),
            told: BTreeSet::new(),
            within: BTreeMap::new(),
            first,
            usage: Usage::default(),
            turns: 0,
            calls: 0,
        }
    }

    /// Shows one event.
    pub(crate) fn tell(&mut self, event: &Event, registry: &Registry, show: &mut impl Show) {
        if !event.is_own() {
            return self.tell_of_sub_agent(event, show);
        }
        match &event.kind {
            EventKind::TurnStart => {
                self.turns += 1;
                self.doing = Doing::Waiting;
            }
            EventKind::MessageUpdate { update, .. } => self.grow(update, show),
            EventKind::MessageEnd { message, queued_id, .. } => {
                show.end_text();
                self.doing = if message.as_assistant().is_some() { Doing::Nothing } else { Doing::Waiting };
                if let Some(id) = queued_id {
                    self.heard(id, message, event.turn, show);
                }
                if let Some(reply) = message.as_assistant() {
                    self.replied(reply, show);
                }
            }
            EventKind::ToolExecutionStart { call, .. } => {
                self.calls += 1;
                self.running.push(Running {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    args: shown(registry, call).unwrap_or_else(|| call.args.text().to_owned()),
                    is_edited: false,
                    began: Instant::now(),
                    progress: None,
                });
            }
            EventKind::ToolExecutionUpdate { call_id, partial, .. } => {
                if let Some(call) = self.running.iter_mut().find(|call| call.id == *call_id) {
                    call.progress = Some(partial.clone());
                }
            }
            EventKind::ApprovalResolved { call_id, allowed: true, .. } => {
                // The wait for the approval does not count as running time.
                if let Some(call) = self.running.iter_mut().find(|call| call.id == *call_id) {
                    call.began = Instant::now();
                }
            }
            EventKind::ToolExecutionEnd { result, ran, cached, .. } => {
                self.ended(result, *ran, *cached, show);
            }
            EventKind::AgentEnd { usage, .. } => self.usage = usage.clone(),
            EventKind::CompactionStart { .. } => self.doing = Doing::Summarizing,
            other => {
                if let Some((kind, text)) = about_context(other) {
                    self.doing = Doing::Waiting;
                    show.line(&self.look.paint(kind, &text));
                }
            }
        }
    }

    /// Shows each call of a sub-agent in one line, indented by depth.
    fn tell_of_sub_agent(&mut self, event: &Event, show: &mut impl Show) {
        let key = |call_id: &str| format!("{}/{call_id}", event.run_id);
        match &event.kind {
            EventKind::ToolExecutionStart { call, .. } => {
                // The JSON of an event hides secret arguments. The assistant's registry may not have the sub-agent's tools.
                let shown =
                    serde_json::to_value(event).map(|event| event["args"].to_string()).unwrap_or_default();
                self.within.insert(key(&call.id), shown);
            }
            EventKind::ToolExecutionEnd { result, .. } => {
                show.end_text();
                let args = self.within.remove(&key(&result.call_id)).unwrap_or_default();
                let indent = "  ".repeat(event.path.calls().len());
                let sign = if result.outcome.is_error() { "✗" } else { "✓" };
                let text = one_line(&harmless(&result.outcome.text()));
                let line = format!("{} > {} {} {sign} {text}", event.path, result.tool, one_line(&args));
                show.line(&format!("{indent}{}", self.look.paint(Kind::Dim, &fit(&harmless(&line), LINE))));
            }
            _ => {}
        }
    }

    /// Stores the arguments of a call that the person edited before allowing it.
    pub(crate) fn decided(&mut self, call: &ToolCall, decision: &Decision, registry: &Registry) {
        let Decision::AllowWith(arguments) = decision else { return };
        let running = self.running.iter_mut().find(|running| running.id == call.id);
        if let Some(running) = running {
            let edited = ToolCall::new(call.id.clone(), call.name.clone(), arguments.to_string());
            running.args = shown(registry, &edited).unwrap_or_else(|| edited.args.text().to_owned());
            running.is_edited = true;
        }
    }

    fn grow(&mut self, update: &ModelEvent, show: &mut impl Show) {
        match update {
            ModelEvent::Part { content_index, part, .. } => self.part(*content_index, part, show),
            ModelEvent::TextDelta { delta, .. } => show.text(Kind::Said, delta),
            ModelEvent::ThinkingDelta { delta, .. } => show.text(Kind::Dim, delta),
            ModelEvent::TextEnd { .. } | ModelEvent::ThinkingEnd { .. } => show.end_text(),
            ModelEvent::ToolCallStart { name, .. } => {
                self.doing = Doing::Calling(one_line(name));
                return;
            }
            _ => {}
        }
        if matches!(self.doing, Doing::Waiting) {
            self.doing = Doing::Replying;
        }
    }

    /// Shows a part that arrives in one piece. Later events for the same part are ignored.
    fn part(&mut self, index: usize, part: &Part, show: &mut impl Show) {
        if !self.told.insert(index) {
            return;
        }
        let told = match &part.content {
            Content::Refusal(text) => {
                show.text(Kind::Bad, text);
                return show.end_text();
            }
            Content::ProviderTool(tool) => format!("⚙ {} ran at the provider", one_line(&tool.name)),
            Content::Text(_) | Content::Thinking { .. } | Content::ToolCall(_) => return,
            _ => one_line(&readable(part)),
        };
        show.end_text();
        show.line(&self.look.paint(Kind::Dim, &told));
    }

    /// Shows why a complete reply was cut short, if it was.
    fn replied(&mut self, reply: &AssistantMessage, show: &mut impl Show) {
        self.told.clear();
        if let Some(cut) = cut(reply) {
            show.line(&self.look.paint(Kind::Notice, &cut));
        }
    }

    fn heard(&mut self, id: &str, message: &Message, turn: u32, show: &mut impl Show) {
        self.waiting.retain(|(waiting, _)| waiting != id);
        let begin: String = message.text().chars().take(LINE + 1).collect();
        let text = fit(&one_line(&begin), LINE);
        show.line(&self.look.paint(Kind::User, &format!("» heard before turn {turn}: {text}")));
    }

    fn ended(&mut self, result: &ToolResult, ran: bool, cached: bool, show: &mut impl Show) {
        let at = self.running.iter().position(|call| call.id == result.call_id);
        let (args, is_edited, took) = at.map_or_else(Default::default, |at| {
            let call = self.running.remove(at);
            (call.args, call.is_edited, call.began.elapsed())
        });
        let look = self.look;
        let name = look.paint(Kind::Bold, &one_line(&result.tool));
        let edited = if is_edited { " (as you changed it)" } else { "" };
        show.line(&format!("⚙ {name} {}{edited}", look.paint(Kind::Dim, &fit(&one_line(&args), LINE))));
        for line in coerced(look, &result.coercions) {
            show.line(&line);
        }
        let text = match &result.outcome {
            ToolOutcome::Completed(output) => {
                output.content.iter().map(readable).collect::<Vec<_>>().join("\n")
            }
            other => other.text().into_owned(),
        };
        let number = self.first + self.shown.len();
        let time =
            if took >= Duration::from_millis(100) { format!(" ({})", seconds(took)) } else { String::new() };
        let (kind, head, most) = match &result.outcome {
            ToolOutcome::Completed(_) if cached => (Kind::Good, format!("✓ known already{time}"), LINES),
            ToolOutcome::Completed(_) => (Kind::Good, format!("✓{time}"), LINES),
            ToolOutcome::Failed { code, .. } if code.as_str() == "invalid_arguments" => {
                (Kind::Bad, "✗ refused: it was not run, and the model is told".to_owned(), REPORT)
            }
            ToolOutcome::Denied { .. } => (Kind::Bad, "✗ not allowed".to_owned(), LINES),
            ToolOutcome::Interrupted { .. } => (Kind::Bad, format!("✗ stopped{time}"), LINES),
            ToolOutcome::Retry { .. } => (Kind::Bad, format!("✗ asks for a better call{time}"), LINES),
            ToolOutcome::Deferred { .. } => (Kind::Notice, "… its result comes later".to_owned(), LINES),
            other => {
                let ran = if ran { "" } else { ", not run" };
                (
                    Kind::Bad,
                    format!("✗ failed: {}{ran}{time}", one_line(other.code().unwrap_or("unknown"))),
                    LINES,
                )
            }
        };
        let text = harmless(&text);
        let mut lines = text.lines();
        // A result of one line is shown in the row of its sign.
        if text.lines().count() <= 1 {
            let line = lines.next().unwrap_or_default();
            show.line(&format!("  {} {}", look.paint(kind, &head), look.paint(Kind::Dim, &fit(line, LINE))));
        } else {
            show.line(&format!("  {}", look.paint(kind, &head)));
        }
        for line in lines.by_ref().take(most) {
            show.line(&look.paint(Kind::Dim, &format!("    {}", fit(line, LINE))));
        }
        let more = lines.count() as u64;
        if more > 0 {
            let more = format!("    … {} more: /show {number}", count(more, "line"));
            show.line(&look.paint(Kind::Dim, &more));
        }
        self.shown.push(Shown { tool: one_line(&result.tool), args: harmless(&args), result: text });
    }

    /// Returns time, turns, calls, tokens and cost in one line.
    pub(crate) fn summary(&self) -> String {
        let mut parts = vec![seconds(self.began.elapsed()), count(self.turns, "turn")];
        if self.calls > 0 {
            parts.push(count(self.calls, "call"));
        }
        if self.usage.total > 0 {
            parts.push(count(self.usage.total, "token"));
        }
        parts.extend(self.usage.cost.map(|cost| format!("${:.4}", cost.total)));
        parts.join(" · ")
    }

    /// Returns the rows below the output: running calls, the state, waiting messages, and the typed text.
    pub(crate) fn rows(&self, typed: &str, is_cancelled: bool, columns: usize) -> Vec<String> {
        let look = self.look;
        let spin = spinner(self.began.elapsed());
        let mut rows: Vec<String> =
            self.running.iter().map(|call| self.running_row(call, spin, columns)).collect();
        let keys = if is_cancelled { "stopping; Ctrl-C quits" } else { "type to steer, Ctrl-C stops" };
        let doing = match &self.doing {
            Doing::Waiting => format!("{} is asked", self.model),
            Doing::Replying => format!("{} replies", self.model),
            Doing::Summarizing => format!("{} summarizes what was said before", self.model),
            Doing::Calling(tool) => format!("{} calls {tool}", self.model),
            Doing::Nothing => "working".to_owned(),
        };
        let status = format!("{spin} {doing} · {} · {keys}", seconds(self.began.elapsed()));
        rows.push(below(look, Kind::Dim, &status, columns));
        for (_, text) in &self.waiting {
            let begin: String = text.chars().take(columns).collect();
            let text = format!("» waits for the next turn: {}", one_line(&begin));
            rows.push(below(look, Kind::User, &text, columns));
        }
        // Only the end of a long text fits. The rest is skipped early, because this runs for every frame.
        let end = typed.char_indices().rev().nth(columns + 1).map_or(0, |(at, _)| at);
        let typed = one_line(&typed[end..]);
        rows.push(look.paint(Kind::User, &fit_end(&format!("› {typed}"), columns)));
        rows
    }

    fn running_row(&self, call: &Running, spin: char, columns: usize) -> String {
        let progress = call.progress.as_ref().map(|progress| {
            match (progress.done, progress.total, progress.fraction()) {
                (Some(done), Some(total), Some(share)) => {
                    format!(" · {} {done}/{total} {}", one_line(&progress.message), bar(share))
                }
                (Some(done), ..) => format!(" · {} {done}", one_line(&progress.message)),
                _ => format!(" · {}", one_line(&progress.message)),
            }
        });
        let (tool, args) = (one_line(&call.tool), fit(&one_line(&call.args), columns / 2));
        let time = seconds(call.began.elapsed());
        below(
            self.look,
            Kind::Notice,
            &format!("{spin} {tool} {args} {time}{}", progress.unwrap_or_default()),
            columns,
        )
    }
}

/// Describes events about the context, limits, budgets and model switches.
fn about_context(kind: &EventKind) -> Option<(Kind, String)> {
    Some(match kind {
        EventKind::ContextCleared { results, tokens_before, tokens_after, .. } => {
            let results = count(*results as u64, "result");
            (
                Kind::Dim,
                format!("✂ {results} left out for the model: {tokens_before} to {tokens_after} tokens"),
            )
        }
        EventKind::CompactionEnd { error: Some(error), .. } => {
            (Kind::Bad, format!("✗ there is no summary: {}", fit(&one_line(error), LINE)))
        }
        EventKind::CompactionEnd { tokens_before, tokens_after, .. } => (
            Kind::Dim,
            format!("✂ old messages are a summary for the model: {tokens_before} to {tokens_after} tokens"),
        ),
        EventKind::ContextNear { used, usable, .. } => {
            (Kind::Notice, format!("the conversation has about {used} of {usable} tokens"))
        }
        EventKind::RequestDelayed { waited_ms, limit, .. } => {
            (Kind::Dim, format!("the request waited {waited_ms} ms for a limit: {limit}"))
        }
        EventKind::BudgetNear { budget, share, .. } => {
            (Kind::Notice, format!("{:.0} % of the budget `{}` are spent", share * 100.0, one_line(budget)))
        }
        EventKind::ModelSwitched { to, losses, .. } => {
            (Kind::Notice, format!("{} answers; lost: {losses}", one_line(to)))
        }
        _ => return None,
    })
}

/// Returns the arguments of a call with secrets hidden. Returns `None` if the tool is unknown or has no secrets.
pub(crate) fn shown(registry: &Registry, call: &ToolCall) -> Option<String> {
    let sent = call.args.value().unwrap_or_else(|| Value::from(call.args.text()));
    Some(registry.get(&call.name)?.definition().plan().without_secrets(&sent)?.to_string())
}

/// Describes each coercion in one line.
pub(crate) fn coerced(look: Look, coercions: &[Coercion]) -> Vec<String> {
    let line = |one: &Coercion| {
        let path = if one.path.is_empty() { "the arguments" } else { &one.path };
        let change = format!("  ~ {path}: {} became {} ({})", one.from, one.to, one.rule);
        look.paint(Kind::Notice, &fit(&one_line(&change), LINE))
    };
    coercions.iter().map(line).collect()
}

/// Returns the text of a part, or a placeholder.
fn readable(part: &Part) -> String {
    let media = |what: &str, media: &Media| {
        let kind = media.mime_type.as_deref().unwrap_or("of no known kind");
        let name = media.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("[{what}{name}, {kind}]")
    };
    match &part.content {
        Content::Text(text) => text.clone(),
        Content::Image(image) => media("picture", image),
        Content::Document(document) => media("document", document),
        Content::Audio(audio) => media("sound", audio),
        Content::Resource(_) => "[a resource]".to_owned(),
        Content::ResourceLink(_) => "[a link to a resource]".to_owned(),
        _ => "[something else]".to_owned(),
    }
}

/// Explains why a reply was cut short. Returns `None` if it was not.
fn cut(reply: &AssistantMessage) -> Option<String> {
    match reply.stop_reason {
        StopReason::MaxTokens => Some("✂ the reply reached its limit of tokens".to_owned()),
        StopReason::ContextFull => Some("✂ the context window is full".to_owned()),
        StopReason::ContentFilter => {
            let why = reply.error.as_ref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
            Some(format!("✂ the reply was withheld{why}"))
        }
        _ => None,
    }
}

fn spinner(elapsed: Duration) -> char {
    const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    FRAMES[usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % FRAMES.len()]
}

fn bar(share: f64) -> String {
    (0..10).map(|at| if f64::from(at) < share * 10.0 { '▓' } else { '░' }).collect()
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests;
