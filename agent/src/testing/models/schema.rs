//! A model that tries every tool it is shown.

use super::calls::{Counts, calls};
use crate::message::{Message, OutcomeKind};
use crate::model::{Model, ModelInfo, ModelRequest, ModelStream, Reply, StepCx, reply};
use crate::testing::sample::samples;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls in one reply.
const AT_ONCE: usize = 8;

/// A model that calls every tool it is shown with arguments made from their schemas: right ones, those at the edges of what is
/// taken and just beyond, and those that careless models write. Then it says that it is done.
///
/// It is for the tools of an application as a whole: nothing may panic, no right call may be refused. The tools are **run**,
/// so give them a world of their own. Everything is made the same way each time.
///
#[doc = include_str!("../../docs/schema_model.md")]
#[derive(Clone)]
pub struct SchemaModel {
    info: ModelInfo,
    counts: Counts,
    /// The tools that are tried; all if none are named.
    only: Vec<String>,
    text: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: HashSet<String>,
    left: VecDeque<SchemaCall>,
    /// Those that were asked for; their ids are their numbers.
    made: Vec<SchemaCall>,
}

impl Default for SchemaModel {
    fn default() -> Self {
        Self::new()
    }
}

impl SchemaModel {
    /// A model that tries each tool with 4 right calls, 12 at the edges and 12 careless ones.
    pub fn new() -> Self {
        Self {
            info: ModelInfo::new("schema", "schema", "schema"),
            counts: Counts { valid: 4, boundary: 12, slips: 12 },
            only: Vec::new(),
            text: "Every tool was tried.".to_owned(),
            state: Arc::default(),
        }
    }

    /// Sets how many right calls each tool gets, at most; 4 by default.
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
    /// let tried: Vec<String> = model.report().calls().iter().map(|call| format!("{} {}", call.tool, call.kind)).collect();
    /// assert_eq!(tried, ["double right", "double right", "double at an edge"]);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "runtime"))]
    /// # fn main() {}
    /// ```
    pub fn with_valid(mut self, calls: usize) -> Self {
        self.counts.valid = calls;
        self
    }

    /// Sets how many calls at the edges of its schema each tool gets, at most, just beyond them included; 12 by default.
    pub fn with_boundaries(mut self, calls: usize) -> Self {
        self.counts.boundary = calls;
        self
    }

    /// Sets how many careless calls each tool gets, at most; 12 by default.
    pub fn with_slips(mut self, calls: usize) -> Self {
        self.counts.slips = calls;
        self
    }

    /// Tries the tools of these names and no others; all by default.
    pub fn only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.only = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what it says when every tool was tried.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// What became of its calls, as far as it was told.
    pub fn report(&self) -> SchemaReport {
        SchemaReport { calls: self.state().made.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &ModelRequest) -> Reply {
        let mut state = self.state();
        state.learn(request);
        for tool in request.tools.iter() {
            let is_meant = self.only.is_empty() || self.only.iter().any(|name| name == tool.name());
            if is_meant && state.known.insert(tool.name().to_owned()) {
                let made = calls(tool, self.counts).into_iter().map(|(kind, arguments)| SchemaCall {
                    tool: tool.name().to_owned(),
                    kind,
                    arguments,
                    outcome: None,
                    code: None,
                    text: String::new(),
                });
                state.left.extend(made);
            }
        }
        if state.left.is_empty() {
            let value =
                request.output.as_ref().and_then(|output| samples(&output.schema, 1, 0).into_iter().next());
            return value.map_or_else(|| reply().text(&*self.text), |value| reply().text(value.to_string()));
        }
        let mut asked = reply();
        for _ in 0..AT_ONCE {
            let Some(call) = state.left.pop_front() else { break };
            asked = asked.tool_call_with_id(id(state.made.len()), &*call.tool, &*call.arguments);
            state.made.push(call);
        }
        asked
    }
}

fn id(number: usize) -> String {
    format!("try_{number}")
}

impl State {
    /// What became of the calls so far.
    fn learn(&mut self, request: &ModelRequest) {
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
        let events = self.answer(request).into_events(request, &mut 0);
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
            .field("left", &state.left.len())
            .finish_non_exhaustive()
    }
}

/// What kind of call it is.
///
/// ```
/// use agent::testing::CallKind;
///
/// assert_eq!(CallKind::Slip("a number as text").to_string(), "slip: a number as text");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// Its schema takes it.
    Valid,
    /// It lies at an edge of what is taken.
    Boundary,
    /// It lies just beyond, and has to be refused.
    Beyond,
    /// As a careless model writes it; the slip in words, for example `a number as text`.
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

/// One call of a [`SchemaModel`].
///
/// ```
/// use agent::testing::{CallKind, SchemaCall, SchemaModel};
/// use agent::{Assistant, tool, tools};
///
/// /// What a good tool never does.
/// fn is_bad(call: &SchemaCall) -> bool {
///     matches!(call.kind, CallKind::Beyond) && !call.is_refused()
/// }
///
/// /// Doubles a number.
/// #[tool]
/// fn double(#[arg(range(0..=100))] n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = SchemaModel::new();
/// Assistant::builder(model.clone()).tools(tools![double]).build()?.prompt("Try it.").await?;
/// let report = model.report();
/// assert!(!report.calls().iter().any(is_bad));
/// assert!(report.calls().iter().all(|call| call.kind != CallKind::Valid || call.is_completed()));
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchemaCall {
    /// The tool.
    pub tool: String,
    /// What kind of call.
    pub kind: CallKind,
    /// The arguments as they were sent.
    pub arguments: String,
    /// How it ended; none if the model was not told.
    pub outcome: Option<OutcomeKind>,
    /// More exactly, for example `invalid_arguments`.
    pub code: Option<String>,
    /// What the model was told.
    pub text: String,
}

impl SchemaCall {
    /// Whether the body returned a value.
    pub fn is_completed(&self) -> bool {
        self.outcome == Some(OutcomeKind::Completed)
    }

    /// Whether its arguments were refused.
    pub fn is_refused(&self) -> bool {
        self.code.as_deref().is_some_and(|code| code == "invalid_arguments" || code == "retries_exhausted")
    }

    /// What should not have happened, in words.
    fn fault(&self) -> Option<&'static str> {
        match (self.kind, self.code.as_deref()) {
            (_, Some("panic")) => Some("the tool panicked"),
            (_, Some("timeout")) => Some("the tool did not end in time"),
            (CallKind::Valid | CallKind::Boundary, Some("invalid_arguments")) => {
                Some("what the schema takes was refused")
            }
            (CallKind::Beyond, _) if self.is_completed() => {
                Some("what the schema does not take was accepted")
            }
            _ => None,
        }
    }
}

/// What became of the calls of a [`SchemaModel`]. `Display` is a table.
///
/// ```
/// use agent::testing::SchemaModel;
/// use agent::{Assistant, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(#[arg(range(0..=100))] n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = SchemaModel::new();
/// Assistant::builder(model.clone()).tools(tools![double]).build()?.prompt("Try it.").await?;
/// let report = model.report();
/// report.assert_safe();
/// assert!(report.calls().iter().any(|call| call.arguments == r#"{"n":101}"# && call.is_refused()));
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a test fails by `assert_safe`"]
pub struct SchemaReport {
    calls: Vec<SchemaCall>,
}

impl SchemaReport {
    /// The calls, in order.
    pub fn calls(&self) -> &[SchemaCall] {
        &self.calls
    }

    /// No tool panicked or was late, none refused what its schema takes, and none took what lies beyond it.
    ///
    /// # Panics
    /// With the table and the calls, if that is not so; also when nothing was called.
    #[track_caller]
    pub fn assert_safe(&self) {
        assert!(!self.calls.is_empty(), "nothing was called: the model was shown no tools");
        assert!(self.calls.iter().all(|call| call.fault().is_none()), "{self}");
    }
}

impl fmt::Display for SchemaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tools: Vec<&str> = Vec::new();
        for call in &self.calls {
            if !tools.contains(&call.tool.as_str()) {
                tools.push(&call.tool);
            }
        }
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
        for call in &self.calls {
            if let Some(fault) = call.fault() {
                let told = call.text.lines().next().unwrap_or_default();
                write!(
                    f,
                    "\n- `{}`, {}: {fault}\n  sent: {}\n  told: {told}",
                    call.tool,
                    call.kind,
                    cut(&call.arguments)
                )?;
            }
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
