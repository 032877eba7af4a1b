//! A model that tries every tool of its requests.

use super::calls::{Counts, calls};
use crate::args::REFUSAL;
use crate::message::{Message, OutcomeKind};
use crate::model::{Model, ModelInfo, ModelRequest, ModelStream, ScriptedReply, StepCx, reply};
use crate::testing::sample::samples;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of reasons for refusals that the table lists for each tool.
const MAX_REASONS: usize = 8;
/// Maximum number of calls in one reply.
const AT_ONCE: usize = 8;

/// A model that calls every tool of its requests. The arguments are generated from the schemas: valid arguments, values at the limits of
/// the schema and just beyond them, and the mistakes of careless models. After all calls, the model replies with a text.
///
/// Use this model to test all tools of an application: no tool may panic, and no valid call may be refused. The tools are **run**, so give
/// them state that is safe to change. The calls are the same every time. `Display` writes the results of the calls as a table.
///
#[doc = include_str!("../../docs/schema_model.md")]
#[derive(Clone)]
pub struct SchemaModel {
    info: ModelInfo,
    counts: Counts,
    /// The names of the tools to try; empty for all tools.
    only: Vec<String>,
    text: String,
    state: Arc<Mutex<SchemaModelState>>,
}

#[derive(Default)]
struct SchemaModelState {
    known: HashSet<String>,
    waiting: VecDeque<SchemaCall>,
    /// The names of the tools for which no valid call could be generated.
    untried: Vec<String>,
    /// The calls that were made. The id of a call contains its position in this list.
    made: Vec<SchemaCall>,
}

impl Default for SchemaModel {
    fn default() -> Self {
        Self::new()
    }
}

impl SchemaModel {
    /// Creates a model that tries each tool with up to 4 valid calls, 12 calls at the limits of the schema or just beyond them, and 12
    /// calls with the mistakes of careless models.
    pub fn new() -> Self {
        Self {
            info: ModelInfo::new("schema", "schema", "schema"),
            counts: Counts { valid: 4, boundary: 12, slips: 12 },
            only: Vec::new(),
            text: "Every tool was tried.".to_owned(),
            state: Arc::default(),
        }
    }

    /// Sets the maximum number of valid calls for each tool; 4 by default.
    ///
    /// ```
    /// use agent::testing::SchemaModel;
    /// use agent::{Assistant, tool, tools};
    ///
    /// /// Doubles a number.
    /// #[tool]
    /// fn double(n: i64) -> i64 {
    ///     n * 2
    /// }
    ///
    /// /// Halves a number.
    /// #[tool]
    /// fn halve(n: i64) -> i64 {
    ///     n / 2
    /// }
    ///
    /// # #[cfg(feature = "runtime")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = SchemaModel::new().with_valid(2).with_boundaries(1).with_slips(0).only(["double"]).with_text("Tried.");
    /// let assistant = Assistant::builder(model.clone()).tools(tools![double, halve]).build()?;
    /// assert_eq!(assistant.prompt("Try it.").await?.text(), "Tried.");
    /// let tried: Vec<String> = model.calls().iter().map(|call| format!("{} {}", call.tool, call.kind())).collect();
    /// assert_eq!(tried, ["double right", "double right", "double at an edge"]);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "runtime"))]
    /// # fn main() {}
    /// ```
    pub fn with_valid(mut self, calls: usize) -> Self {
        self.counts.valid = calls;
        self
    }

    /// Sets the maximum number of calls per tool at the limits of the tool's schema or just beyond them; 12 by default.
    pub fn with_boundaries(mut self, calls: usize) -> Self {
        self.counts.boundary = calls;
        self
    }

    /// Sets the maximum number of calls with the mistakes of careless models for each tool; 12 by default.
    pub fn with_slips(mut self, calls: usize) -> Self {
        self.counts.slips = calls;
        self
    }

    /// Tries only the tools with these names. By default, the model tries all tools.
    pub fn only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.only = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the text of the final reply.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Returns the calls in order, with the results that the model has received so far.
    pub fn calls(&self) -> Vec<SchemaCall> {
        self.state().made.clone()
    }

    /// Asserts that no tool panicked, timed out, refused arguments that fit its schema, or accepted arguments beyond the schema. A tool
    /// with functions of `#[arg(validate)]` may refuse arguments that fit its schema; the table then lists the reasons.
    ///
    /// # Panics
    /// Panics with the table and the faulty calls if a tool did any of this, or if no valid call of a tool could be generated. Panics if
    /// the model was shown no tools.
    #[track_caller]
    pub fn assert_safe(&self) {
        let (calls, untried) = (self.calls(), self.state().untried.clone());
        let table = Table { calls: &calls, untried: &untried };
        assert!(untried.is_empty() && calls.iter().all(|call| call.fault().is_none()), "{table}");
        assert!(!calls.is_empty(), "nothing was called: the model was shown no tools");
    }

    fn state(&self) -> MutexGuard<'_, SchemaModelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_reply(&self, request: &ModelRequest) -> ScriptedReply {
        let mut state = self.state();
        state.read_results(request);
        for tool in request.tools.iter() {
            let is_selected = self.only.is_empty() || self.only.iter().any(|name| name == tool.name());
            if is_selected && state.known.insert(tool.name().to_owned()) {
                let has_checks = tool.plan().source().is_some_and(has_checks);
                let Some(made) = calls(tool, self.counts) else {
                    state.untried.push(tool.name().to_owned());
                    continue;
                };
                let made = made.into_iter().map(|(kind, arguments)| SchemaCall {
                    tool: tool.name().to_owned(),
                    kind,
                    arguments,
                    outcome: None,
                    code: None,
                    text: String::new(),
                    has_checks,
                });
                state.waiting.extend(made);
            }
        }
        if state.waiting.is_empty() {
            let value =
                request.output.as_ref().and_then(|output| samples(&output.schema, 1, 0).into_iter().next());
            return value.map_or_else(|| reply().text(&*self.text), |value| reply().text(value.to_string()));
        }
        let mut next = reply();
        for _ in 0..AT_ONCE {
            let Some(call) = state.waiting.pop_front() else { break };
            next = next.tool_call_with_id(id(state.made.len()), &*call.tool, &*call.arguments);
            state.made.push(call);
        }
        next
    }
}

/// Returns whether `x-checked` in a schema says that the application has functions of `#[arg(validate)]`. Durations and Base64 do not
/// count, because `HumanDuration` and `Base64` of this crate set `x-checked`, too.
fn has_checks(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let says = |key: &str, word: &str| map.get(key).is_some_and(|value| value == word);
            let is_own = says("format", "duration") || says("contentEncoding", "base64");
            map.get("x-checked") == Some(&Value::Bool(true)) && !is_own || map.values().any(has_checks)
        }
        Value::Array(items) => items.iter().any(has_checks),
        _ => false,
    }
}

fn id(number: usize) -> String {
    format!("try_{number}")
}

impl SchemaModelState {
    /// Stores the results of the latest calls, which are among the last messages of the request.
    fn read_results(&mut self, request: &ModelRequest) {
        for message in request.messages.iter().rev().take(AT_ONCE * 2) {
            let Message::ToolResult(result) = &**message else { continue };
            let number = result.call_id.strip_prefix("try_").and_then(|number| number.parse::<usize>().ok());
            if let Some(call) = number.and_then(|number| self.made.get_mut(number)) {
                (call.outcome, call.code) = (Some(result.outcome.clone()), result.code.clone());
                call.text = result.text();
            }
        }
    }
}

impl Model for SchemaModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let events = self.next_reply(request).into_events(request, &mut 0);
        ModelStream::new(cx, &self.info, events).with_argument_events(request)
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }
}

impl fmt::Debug for SchemaModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SchemaModel")
            .field("made", &state.made.len())
            .field("waiting", &state.waiting.len())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Valid,
    /// An argument is at a limit of the schema.
    Boundary,
    /// An argument is just beyond a limit, so the call must be refused.
    Beyond,
    Slip(&'static str),
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.write_str("right"),
            Self::Boundary => f.write_str("at an edge"),
            Self::Beyond => f.write_str("beyond an edge"),
            Self::Slip(slip) => write!(f, "slip: {slip}"),
        }
    }
}

/// A call of a [`SchemaModel`].
///
/// ```
/// use agent::testing::{SchemaCall, SchemaModel};
/// use agent::{Assistant, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(#[arg(range(0..=100), validate = is_even)] n: i64) -> i64 {
///     n * 2
/// }
///
/// fn is_even(n: &i64) -> Result<(), &'static str> {
///     if n % 2 == 0 { Ok(()) } else { Err("even numbers only") }
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = SchemaModel::new();
/// Assistant::builder(model.clone()).tools(tools![double]).build()?.prompt("Try it.").await?;
/// let calls = model.calls();
/// let of_kind = |kind: &'static str| calls.iter().filter(move |call| call.kind().to_string() == kind);
/// assert!(of_kind("beyond an edge").all(SchemaCall::is_refused));
/// assert!(of_kind("right").all(|call| call.is_completed() || call.is_refused_by_check()));
/// let odd = calls.iter().find(|call| call.is_refused_by_check()).unwrap();
/// assert!(odd.reasons().next().unwrap().contains("even numbers only"));
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchemaCall {
    /// The name of the tool.
    pub tool: String,
    kind: CallKind,
    /// The arguments as they were sent.
    pub arguments: String,
    /// The outcome of the call, or `None` if the model has not received the result.
    pub outcome: Option<OutcomeKind>,
    /// The code of the outcome, for example `invalid_arguments`.
    pub code: Option<String>,
    /// The text of the result.
    pub text: String,
    has_checks: bool,
}

impl SchemaCall {
    /// Returns the kind of the call in words: `right`, `at an edge` of the schema, `beyond an edge`, or the mistake of a careless model,
    /// for example `slip: a number as text`.
    pub fn kind(&self) -> impl fmt::Display {
        self.kind
    }

    /// Returns whether the tool returned a value.
    pub fn is_completed(&self) -> bool {
        self.outcome == Some(OutcomeKind::Completed)
    }

    /// Returns whether the arguments were refused.
    pub fn is_refused(&self) -> bool {
        match self.code.as_deref() {
            Some("invalid_arguments") => true,
            // A tool that asks for a better call too often also fails with this code, so the beginning of the report is compared.
            Some("retries_exhausted") => self.text.starts_with(REFUSAL),
            _ => false,
        }
    }

    /// Returns whether the arguments fit the schema, and a function of `#[arg(validate)]` refused them. This is allowed, because such a
    /// function can have rules that a schema cannot express.
    pub fn is_refused_by_check(&self) -> bool {
        matches!(self.kind, CallKind::Valid | CallKind::Boundary) && self.has_checks && self.is_refused()
    }

    /// Returns the issues of refused arguments as the model read them, one line each, for example `/nights: …`.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().skip(1).filter(|_| self.is_refused());
        lines.map_while(|line| {
            let (number, reason) = line.split_once(". ")?;
            number.bytes().all(|byte| byte.is_ascii_digit()).then_some(reason)
        })
    }

    /// Returns why the result is a fault of the tool, or `None` if it is not.
    fn fault(&self) -> Option<&'static str> {
        match (self.kind, self.code.as_deref()) {
            (_, Some("panic")) => Some("the tool panicked"),
            (_, Some("timeout")) => Some("the tool did not end in time"),
            (CallKind::Valid | CallKind::Boundary, _) if self.is_refused() && !self.has_checks => {
                Some("arguments that fit the schema were refused")
            }
            (CallKind::Beyond, _) if self.is_completed() => {
                Some("arguments that do not fit the schema were accepted")
            }
            _ => None,
        }
    }
}

impl fmt::Display for SchemaModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let untried = self.state().untried.clone();
        Table { calls: &self.calls(), untried: &untried }.fmt(f)
    }
}

struct Table<'a> {
    calls: &'a [SchemaCall],
    untried: &'a [String],
}

impl Table<'_> {
    /// Writes results that are not faults, but that may be important to the author of the tool.
    fn notes(&self, tool: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_tool = || self.calls.iter().filter(|call| call.tool == tool);
        let mut by_reason: Vec<(&str, usize)> = Vec::new();
        for reason in of_tool().filter(|call| call.is_refused_by_check()).flat_map(SchemaCall::reasons) {
            // The sent value is removed, because it differs from call to call.
            let reason = reason.rsplit_once("; got ").map_or(reason, |(reason, _)| reason);
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => by_reason.push((reason, 1)),
            }
        }
        for (reason, count) in by_reason.iter().take(MAX_REASONS) {
            write!(f, "\n- `{tool}`: refused by a check, {count}×: {}", cut(reason))?;
        }
        if by_reason.len() > MAX_REASONS {
            write!(f, "\n- `{tool}`: refused by checks for {} more reasons", by_reason.len() - MAX_REASONS)?;
        }
        if self.untried.iter().any(|untried| untried == tool) {
            write!(f, "\n- `{tool}`: no call that fits its schema could be generated, so it was not tried")?;
        }
        let is_tried = of_tool().any(|call| call.kind == CallKind::Valid && call.outcome.is_some());
        if is_tried && !of_tool().any(SchemaCall::is_completed) {
            write!(f, "\n- `{tool}`: no call completed, so what it does with good arguments was not tried")?;
        }
        Ok(())
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tools: Vec<&str> = Vec::new();
        for tool in self.calls.iter().map(|call| &call.tool).chain(self.untried) {
            if !tools.contains(&tool.as_str()) {
                tools.push(tool);
            }
        }
        let names = tools.clone();
        let width = tools.iter().map(|tool| tool.len()).max().unwrap_or(0).max(4);
        write!(f, "{:width$}  calls  completed  refused  failed", "tool")?;
        for tool in tools {
            let of_tool = || self.calls.iter().filter(|call| call.tool == tool);
            let completed = of_tool().filter(|call| call.is_completed()).count();
            let refused = of_tool().filter(|call| call.is_refused()).count();
            let all = of_tool().count();
            write!(
                f,
                "\n{tool:width$}  {all:>5}  {completed:>9}  {refused:>7}  {:>6}",
                all - completed - refused
            )?;
        }
        for call in self.calls {
            if let Some(fault) = call.fault() {
                let reasons = call.reasons().collect::<Vec<_>>().join("; ");
                let result =
                    if reasons.is_empty() { call.text.lines().next().unwrap_or_default() } else { &reasons };
                write!(
                    f,
                    "\n- `{}`, {}: {fault}\n  sent: {}\n  result: {result}",
                    call.tool,
                    call.kind,
                    cut(&call.arguments)
                )?;
            }
        }
        for tool in names {
            self.notes(tool, f)?;
        }
        Ok(())
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
