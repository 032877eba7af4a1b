//! Records of tool calls.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Part, ToolArguments, ToolResultMessage, whole};
use crate::{Control, StepKey, ToolOutcome, ToolOutput, ToolResult};

/// A call that is about to run.
///
/// ```
/// use agent::store::NewInvocation;
/// use agent::{StepKey, StepKind, json};
///
/// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
/// let call = NewInvocation::new(key, "call_1", "add", json!({"a": 1})).in_session(Some("ann".into())).at(1_000);
/// assert_eq!((call.tool.as_str(), call.session.as_deref()), ("add", Some("ann")));
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NewInvocation {
    /// Names the call, the same on every attempt.
    #[serde(skip, default = "no_key")]
    pub key: StepKey,
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool's name, as the call had it.
    pub tool: String,
    /// Of the tool's parameters when it was called.
    #[serde(default, with = "whole")]
    pub fingerprint: u64,
    /// The session that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// On whose behalf it was made: the [label](crate::Source::with_label) of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The checked arguments; of a call that was refused, as the model sent them. Secret ones are
    /// [left out](Self::is_withheld).
    #[serde(default)]
    pub args: Value,
    /// Whether secret arguments were left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_withheld: bool,
    /// What the model said beside the calls of the reply; with the first of them only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// When it began, in milliseconds since 1970.
    #[serde(skip)]
    pub created_at: i64,
    /// Stored fields that this version does not know, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn no_key() -> StepKey {
    StepKey::new("", 0, crate::StepKind::Tool, 0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl NewInvocation {
    /// A call with the arguments that it runs with.
    pub fn new(key: StepKey, call_id: impl Into<String>, tool: impl Into<String>, args: Value) -> Self {
        Self {
            key,
            call_id: call_id.into(),
            tool: tool.into(),
            fingerprint: 0,
            session: None,
            source: None,
            args,
            is_withheld: false,
            text: String::new(),
            created_at: 0,
            extra: Map::new(),
        }
    }

    /// Sets when it began, in milliseconds since 1970.
    pub fn at(mut self, created_at: i64) -> Self {
        self.created_at = created_at;
        self
    }

    /// Sets the session.
    pub fn in_session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }
}

/// Without the arguments: this text goes into logs.
impl fmt::Debug for NewInvocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewInvocation")
            .field("key", &self.key)
            .field("call_id", &self.call_id)
            .field("tool", &self.tool)
            .field("session", &self.session)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}

/// How a call ended.
///
/// ```
/// use agent::ToolError;
/// use agent::store::{InvocationEnd, InvocationStatus};
///
/// let end = InvocationEnd::new(ToolError::new("the hotel is full").into(), 1_000);
/// assert_eq!(end.status(), InvocationStatus::Failed);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InvocationEnd {
    /// How. What is deferred has not ended: see [`InvocationStore::defer`](super::InvocationStore::defer).
    pub outcome: ToolOutcome,
    /// Whether the run goes on.
    pub control: Control,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

impl InvocationEnd {
    /// An end.
    pub fn new(outcome: ToolOutcome, at: i64) -> Self {
        let control = outcome.output().map_or(Control::Continue, |output| output.control);
        Self { outcome, control, at }
    }

    /// Whether its record is completed or failed.
    pub fn status(&self) -> InvocationStatus {
        match self.outcome {
            ToolOutcome::Completed(_) => InvocationStatus::Completed,
            _ => InvocationStatus::Failed,
        }
    }
}

/// Where a call stands. It never goes back.
///
/// ```
/// use agent::store::InvocationStatus;
///
/// assert_eq!(InvocationStatus::Pending.as_str(), "pending");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InvocationStatus {
    /// It began and has not ended, as far as is known.
    Pending,
    /// It gave a result.
    Completed,
    /// It ended otherwise: failed, denied, interrupted, refused, or asked for a better call.
    Failed,
}

impl InvocationStatus {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status of this word.
    #[cfg(feature = "store-sql")]
    pub(super) fn read(word: &str) -> Option<Self> {
        [Self::Pending, Self::Completed, Self::Failed].into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for InvocationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of one call.
///
/// ```
/// use agent::store::{InvocationRecord, NewInvocation};
/// use agent::{StepKey, StepKind, json};
///
/// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
/// let record = InvocationRecord::begun(NewInvocation::new(key, "call_1", "add", json!({"a": 1})));
/// assert_eq!(record.call_message().tool_calls().next().unwrap().args.text(), r#"{"a":1}"#);
/// assert!(record.result_message().is_none());
/// ```
#[doc = include_str!("../docs/invocation_record.md")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InvocationRecord {
    /// The call.
    pub call: NewInvocation,
    /// Where it stands.
    pub status: InvocationStatus,
    /// How often it was begun.
    pub attempt: u32,
    /// What its result will be delivered under, where that comes from outside.
    pub handle: Option<String>,
    /// How it ended.
    pub end: Option<InvocationEnd>,
}

impl InvocationRecord {
    /// A call that has begun.
    pub fn begun(call: NewInvocation) -> Self {
        Self { call, status: InvocationStatus::Pending, attempt: 1, handle: None, end: None }
    }

    /// Names the call: the step that it is.
    pub fn key(&self) -> &StepKey {
        &self.call.key
    }

    /// How it ended; none while it is pending.
    pub fn outcome(&self) -> Option<&ToolOutcome> {
        self.end.as_ref().map(|end| &end.outcome)
    }

    /// The result of a completed call.
    pub fn result(&self) -> Option<&ToolOutput> {
        self.outcome()?.output()
    }

    /// The code of a failed one, for example `invalid_arguments`; `retry` where it asked for a better call.
    pub fn error_code(&self) -> Option<&str> {
        match self.outcome()? {
            ToolOutcome::Retry { .. } => Some("retry"),
            outcome => outcome.code(),
        }
    }

    /// What the model was told of a failed one.
    pub fn error(&self) -> Option<String> {
        self.outcome().filter(|outcome| outcome.is_error()).map(|outcome| outcome.text().into_owned())
    }

    /// What the tool of a completed call said to the application.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.result().map(|output| &output.metadata)
    }

    /// When it completed, in milliseconds since 1970; none where it did not.
    pub fn completed_at(&self) -> Option<i64> {
        self.ended(InvocationStatus::Completed)
    }

    /// When it failed, in milliseconds since 1970; none where it did not.
    pub fn failed_at(&self) -> Option<i64> {
        self.ended(InvocationStatus::Failed)
    }

    fn ended(&self, status: InvocationStatus) -> Option<i64> {
        self.end.as_ref().filter(|_| self.status == status).map(|end| end.at)
    }

    /// The message that made the call. Of the calls of one reply only the first carries what the model said beside them.
    pub fn call_message(&self) -> AssistantMessage {
        let call = &self.call;
        let text = Some(Part::text(&*call.text)).filter(|_| !call.text.is_empty());
        let args = match &call.args {
            Value::String(text) => ToolArguments::from(&**text),
            value => ToolArguments::from(value.clone()),
        };
        let asks = Part::tool_call(&*call.call_id, &*call.tool, args);
        AssistantMessage::new(text.into_iter().chain([asks]))
    }

    /// The message that answers it; none while it has not ended.
    pub fn result_message(&self) -> Option<ToolResultMessage> {
        let outcome = self.outcome()?.clone();
        ToolResult::new(&*self.call.call_id, &*self.call.tool, outcome).to_message()
    }
}

/// What a call finds that begins.
///
/// ```
/// use agent::store::{Begin, InvocationRecord, InvocationStore as _, MemoryStore, NewInvocation};
/// use agent::{StepKey, StepKind, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// let store = MemoryStore::new();
/// let call = NewInvocation::new(StepKey::new("run-1", 1, StepKind::Tool, 0), "call_1", "add", json!({}));
/// assert_eq!(store.begin(call.clone()).await?, Begin::Fresh);
/// assert!(matches!(store.begin(call.clone()).await?, Begin::Retry(record) if record.attempt == 2));
///
/// // A store of one's own says what it found by the record's status.
/// let found = Begin::found(InvocationRecord::begun(call));
/// assert!(matches!(found, Begin::Retry(record) if record.attempt == 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Begin {
    /// It was not begun before.
    Fresh,
    /// It was begun and no end was recorded: this is a further attempt.
    Retry(Box<InvocationRecord>),
    /// It has its result.
    Completed(Box<InvocationRecord>),
    /// It ended otherwise.
    Failed(Box<InvocationRecord>),
}

impl Begin {
    /// What a store says that found a record.
    pub fn found(record: InvocationRecord) -> Self {
        match record.status {
            InvocationStatus::Pending => Self::Retry(Box::new(record)),
            InvocationStatus::Completed => Self::Completed(Box::new(record)),
            InvocationStatus::Failed => Self::Failed(Box::new(record)),
        }
    }
}

/// Which records to list; by default the first hundred of all.
///
/// ```
/// use agent::store::{InvocationQuery, InvocationStatus};
///
/// let failed = InvocationQuery::new().tool("send").status(InvocationStatus::Failed).limit(20);
/// assert_eq!(failed.limit, 20);
/// ```
#[doc = include_str!("../docs/invocation_query.md")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvocationQuery {
    /// Of this run.
    pub run: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// That stand so.
    pub status: Option<InvocationStatus>,
    /// That began at or after this time, in milliseconds since 1970.
    pub from: Option<i64>,
    /// That began before this time.
    pub until: Option<i64>,
    /// That come after the [end](InvocationPage::next) of an earlier page.
    pub after: Option<String>,
    /// At most so many; never more than 1,000.
    pub limit: usize,
}

/// The most that one page holds.
pub(super) const MAX_PAGE: usize = 1000;

impl Default for InvocationQuery {
    fn default() -> Self {
        Self {
            run: None,
            session: None,
            tool: None,
            status: None,
            from: None,
            until: None,
            after: None,
            limit: 100,
        }
    }
}

impl InvocationQuery {
    /// All, a hundred at a time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of a run.
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Those of a session.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Those of a tool.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Those of this status.
    pub fn status(mut self, status: InvocationStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Those that began in this time, in milliseconds since 1970, the end not included.
    pub fn between(mut self, from: i64, until: i64) -> Self {
        (self.from, self.until) = (Some(from), Some(until));
        self
    }

    /// Those that come after an earlier page, by its [end](InvocationPage::next). A text that is no such end is an error of
    /// [`list`](super::InvocationStore::list).
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// At most so many on a page, 1 to 1,000; 100 by default.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    pub(super) fn page_size(&self) -> usize {
        self.limit.clamp(1, MAX_PAGE)
    }

    pub(super) fn position(&self) -> Result<Option<Position>, super::StoreError> {
        let read = |text: &String| {
            Position::read(text).ok_or_else(|| {
                super::StoreError::new(
                    super::StoreErrorKind::Other,
                    "the query goes on after no page of this store",
                )
            })
        };
        self.after.as_ref().map(read).transpose()
    }
}

/// Some records, oldest first.
///
/// ```
/// use agent::store::{InvocationQuery, InvocationStore as _, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
/// # let store = MemoryStore::new();
/// let mut query = InvocationQuery::new();
/// loop {
///     let page = store.list(query.clone()).await?;
///     for record in &page.records {
///         println!("{} {}", record.call.tool, record.status);
///     }
///     let Some(next) = page.next else { break };
///     query = query.after(next);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InvocationPage {
    /// The records.
    pub records: Vec<InvocationRecord>,
    /// What [`InvocationQuery::after`] wants for the next page; none when this was the last one.
    pub next: Option<String>,
}

impl InvocationPage {
    /// A page of records of which one more was asked for than the page holds.
    pub(super) fn of(mut records: Vec<InvocationRecord>, size: usize) -> Self {
        let has_more = records.len() > size;
        records.truncate(size);
        let next = records.last().filter(|_| has_more).map(|last| Position::of(last).to_string());
        Self { records, next }
    }
}

/// Where a record stands among all: by its time, then by turn and position, then by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) created_at: i64,
    pub(super) turn: u32,
    pub(super) ord: u32,
    pub(super) id: String,
}

impl Position {
    pub(super) fn of(record: &InvocationRecord) -> Self {
        let (call, key) = (&record.call, record.key());
        Self { created_at: call.created_at, turn: key.turn, ord: key.ord, id: key.to_string() }
    }

    fn read(text: &str) -> Option<Self> {
        let (created_at, id) = text.split_once('@')?;
        let key: StepKey = id.parse().ok()?;
        Some(Self { created_at: created_at.parse().ok()?, turn: key.turn, ord: key.ord, id: id.to_owned() })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.created_at, self.id)
    }
}
