//! Records of tool calls.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Part, ToolArguments, ToolResultMessage, whole};
use crate::step_key::StepKey;
use crate::tool::asking::OWN_HANDLES;
use crate::tool::outcome::{ToolOutcome, ToolResult};
use crate::tool::output::{Control, ToolOutput};

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The end of a call, with its outcome and its time.
///
/// ```
/// use agent::ToolError;
/// use agent::store::{InvocationEnd, InvocationStatus};
///
/// let end = InvocationEnd::new(ToolError::new("the hotel is full").into(), 1_000);
/// assert_eq!(end.status(), InvocationStatus::Failed);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InvocationEnd {
    /// The outcome. A deferred call has not ended: see [`Store::defer`](super::Store::defer).
    pub outcome: ToolOutcome,
    /// Whether the run continues after the call.
    #[serde(default)]
    pub control: Control,
    /// The time at which the call ended, in milliseconds since 1970.
    pub at: i64,
}

impl InvocationEnd {
    /// Creates an end with this outcome. `at` is in milliseconds since 1970.
    pub fn new(outcome: ToolOutcome, at: i64) -> Self {
        let control = outcome.control();
        Self { outcome, control, at }
    }

    /// Returns the status that the outcome gives the record: completed or failed.
    pub fn status(&self) -> InvocationStatus {
        match self.outcome {
            ToolOutcome::Completed(_) => InvocationStatus::Completed,
            _ => InvocationStatus::Failed,
        }
    }
}

/// The status of a call. A completed or failed call keeps its status.
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
    /// The call has begun, and its end is not recorded.
    Pending,
    /// The call returned a result.
    Completed,
    /// The call ended without a result: it failed, was denied, interrupted or refused, or the tool asked for a better call.
    Failed,
}

impl InvocationStatus {
    /// Returns the status as a word, for example `pending`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    #[cfg(feature = "store-sql")]
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Completed, Self::Failed].into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for InvocationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The record of one call.
///
/// ```
/// use agent::store::InvocationRecord;
/// use agent::{json, steps::{StepKey, StepKind}};
///
/// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
/// let record = InvocationRecord::new(key, "call_1", "add", json!({"a": 1})).in_session(Some("ann".into())).at(1_000);
/// assert_eq!((record.tool.as_str(), record.session.as_deref()), ("add", Some("ann")));
/// assert_eq!(record.call_message().tool_calls().next().unwrap().args.text(), r#"{"a":1}"#);
/// assert!(record.result_message().is_none());
/// ```
#[doc = include_str!("../docs/invocation_record.md")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InvocationRecord {
    /// The key of the call, the same on every attempt.
    pub key: StepKey,
    /// The id of the call in the conversation.
    pub call_id: String,
    /// The tool's name, as in the call.
    pub tool: String,
    /// The fingerprint of the tool's name and parameters at the time of the call.
    #[serde(default, with = "whole")]
    pub fingerprint: u64,
    /// The session that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The [label](crate::tool::Source::with_label) of the source on whose behalf the call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The validated arguments, or for a refused call the arguments that the model sent. Secret arguments are [left
    /// out](Self::is_withheld), unless the application stores them.
    #[serde(default)]
    pub args: Value,
    /// Whether secret arguments were left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_withheld: bool,
    /// The text of the reply that contains the call. Only the record of the first call of a reply has the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The time at which the call began, in milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    /// The status of the call.
    pub status: InvocationStatus,
    /// The number of attempts at the call. To continue a call that waited is not another attempt (see [`continues`](Self::continues)).
    #[serde(default = "first")]
    pub attempt: u32,
    /// The handle under which a result from outside will be delivered. If the call waits for a person or a sub-agent, the library itself
    /// sets a handle that begins with `agent:` (see [`continues`](Self::continues)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The end of the call, or `None` while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<InvocationEnd>,
    /// Unknown fields of a stored record, which are preserved.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Omits the arguments, because the text is written to logs.
impl fmt::Debug for InvocationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvocationRecord")
            .field("key", &self.key)
            .field("call_id", &self.call_id)
            .field("tool", &self.tool)
            .field("session", &self.session)
            .field("created_at", &self.created_at)
            .field("status", &self.status)
            .field("attempt", &self.attempt)
            .field("handle", &self.handle)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl InvocationRecord {
    /// Creates a pending record of the first attempt at a call.
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
            status: InvocationStatus::Pending,
            attempt: 1,
            handle: None,
            end: None,
            extra: Map::new(),
        }
    }

    /// Sets the time at which the call began, in milliseconds since 1970.
    pub fn at(mut self, created_at: i64) -> Self {
        self.created_at = created_at;
        self
    }

    /// Sets the session.
    pub fn in_session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }

    /// Returns whether the call waits for a person, or for the run of a sub-agent. Such a call has a handle that begins with `agent:`.
    /// When the call continues, [`Store::begin`](super::Store::begin) removes the handle and counts no attempt.
    ///
    /// ```
    /// use agent::store::InvocationRecord;
    /// use agent::{json, steps::{StepKey, StepKind}};
    ///
    /// let key = StepKey::new("run-1", 1, StepKind::Tool, 0);
    /// let mut record = InvocationRecord::new(key, "call_1", "add", json!({"a": 1}));
    /// assert!(!record.continues());
    /// record.handle = Some("agent:ask".into());
    /// assert!(record.continues());
    /// ```
    pub fn continues(&self) -> bool {
        self.handle.as_deref().is_some_and(|handle| handle.starts_with(OWN_HANDLES))
    }

    /// Returns the outcome, or `None` while the call is pending.
    pub fn outcome(&self) -> Option<&ToolOutcome> {
        self.end.as_ref().map(|end| &end.outcome)
    }

    /// Returns the result of a completed call, or `None` for any other call.
    pub fn result(&self) -> Option<&ToolOutput> {
        self.outcome()?.output()
    }

    /// Returns the code of a failed call, for example `invalid_arguments`, or `retry` if the tool asked for a better call. Returns `None`
    /// for any other call.
    pub fn error_code(&self) -> Option<&str> {
        match self.outcome()? {
            ToolOutcome::Retry { .. } => Some("retry"),
            outcome => outcome.code(),
        }
    }

    /// Returns the error text that the model read, or `None` if the call did not fail.
    pub fn error(&self) -> Option<String> {
        self.outcome().filter(|outcome| outcome.is_error()).map(|outcome| outcome.text().into_owned())
    }

    /// Returns the metadata that the tool gave to the application, whether the call completed or failed.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        self.outcome()?.metadata()
    }

    /// Returns the time at which the call completed, in milliseconds since 1970, or `None` if it did not complete.
    pub fn completed_at(&self) -> Option<i64> {
        self.ended_at(InvocationStatus::Completed)
    }

    /// Returns the time at which the call failed, in milliseconds since 1970, or `None` if it did not fail.
    pub fn failed_at(&self) -> Option<i64> {
        self.ended_at(InvocationStatus::Failed)
    }

    fn ended_at(&self, status: InvocationStatus) -> Option<i64> {
        self.end.as_ref().filter(|_| self.status == status).map(|end| end.at)
    }

    /// Returns the message that made the call. Only the message of the first call of a reply has the text of the reply.
    pub fn call_message(&self) -> AssistantMessage {
        let text = Some(Part::text(&*self.text)).filter(|_| !self.text.is_empty());
        let args = match &self.args {
            Value::String(text) => ToolArguments::from(&**text),
            value => ToolArguments::from(value.clone()),
        };
        let request = Part::tool_call(&*self.call_id, &*self.tool, args);
        AssistantMessage::new(text.into_iter().chain([request]))
    }

    /// Returns the message that answers the call, or `None` if the call has not ended.
    pub fn result_message(&self) -> Option<ToolResultMessage> {
        let outcome = self.outcome()?.clone();
        ToolResult::new(&*self.call_id, &*self.tool, outcome).to_message()
    }
}

/// A query for records. By default it matches all records and returns the first hundred.
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
    /// The run whose records match. `None` matches every run.
    pub run: Option<String>,
    /// The session whose records match. `None` matches every session, and records without a session.
    pub session: Option<String>,
    /// The tool whose records match. `None` matches every tool.
    pub tool: Option<String>,
    /// The status of the records that match. `None` matches every status.
    pub status: Option<InvocationStatus>,
    /// The earliest start of a matching call, in milliseconds since 1970.
    pub from: Option<i64>,
    /// The time before which all matching calls began, in milliseconds since 1970.
    pub until: Option<i64>,
    /// The key and the [begin](InvocationRecord::created_at) of the last record of an earlier page. Only later records match.
    pub after: Option<(StepKey, i64)>,
    /// Maximum number of records on a page, from 1 to 1,000. A number outside of this range counts as the nearest one within it.
    pub limit: usize,
}

/// Maximum number of records or sessions on a page.
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
    /// Creates a query for all records, a hundred per page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the records of a run.
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Selects the records of a session.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Selects the records of a tool.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Selects the records with this status.
    pub fn status(mut self, status: InvocationStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Selects the calls that began at or after `from` and before `until`, in milliseconds since 1970.
    pub fn between(mut self, from: i64, until: i64) -> Self {
        (self.from, self.until) = (Some(from), Some(until));
        self
    }

    /// Selects the records after `record`, which is the last one of an earlier page. A page that is not full is the last page.
    ///
    /// ```
    /// use agent::store::{InvocationQuery, MemoryStore, Store as _};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::store::StoreError> {
    /// # let store = MemoryStore::new();
    /// let mut query = InvocationQuery::new();
    /// loop {
    ///     let page = store.list(query.clone()).await?;
    ///     for record in &page {
    ///         println!("{} {}", record.tool, record.status);
    ///     }
    ///     let Some(last) = page.last() else { break };
    ///     query = query.after(last);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn after(mut self, record: &InvocationRecord) -> Self {
        self.after = Some((record.key.clone(), record.created_at));
        self
    }

    /// Sets the page size, from 1 to 1,000; 100 by default.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    pub(super) fn page_size(&self) -> usize {
        self.limit.clamp(1, MAX_PAGE)
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.after.as_ref().map(|(key, created_at)| Position::new(key, *created_at))
    }
}

/// The position of a record in the order of all records: by time, turn, ordinal and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) created_at: i64,
    pub(super) turn: u32,
    pub(super) ord: u32,
    pub(super) id: String,
}

impl Position {
    fn new(key: &StepKey, created_at: i64) -> Self {
        Self { created_at, turn: key.turn, ord: key.ord, id: key.to_string() }
    }

    pub(super) fn of(record: &InvocationRecord) -> Self {
        Self::new(&record.key, record.created_at)
    }
}
