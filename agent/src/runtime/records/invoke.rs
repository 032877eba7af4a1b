//! `Registry::invoke`: one call with its record, outside of an assistant.

use std::sync::Arc;

use serde_json::Value;

use super::begin::{ATTEMPTS, not_run};
use super::keeper::{StoreAccess, StoreOptions, now};
use crate::loop_core::fingerprint;
use crate::message::ToolCall;
use crate::runtime::checked::check;
use crate::runtime::new_id;
use crate::step_key::{StepKey, StepKind};
use crate::store::{InvocationEnd, InvocationRecord, InvocationStatus, Store, StoreError};
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::policy::Effect;
use crate::tool::registry::Registry;
use crate::tool::secrets::SecretArguments;
use crate::tool::value::Tool;

/// The error of [`Registry::invoke`].
///
/// ```
/// use agent::message::ToolCall;
/// use agent::store::MemoryStore;
/// use agent::{Registry, ToolContext, run::InvokeError, tool, tools};
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let full = MemoryStore::with_room_for(0);
/// let call = ToolCall::new("call_1", "add", r#"{"a": 40, "b": 2}"#);
/// let error = Registry::new(tools![add])?.invoke(&call, &ToolContext::new(), full).await.unwrap_err();
/// assert!(matches!(error, InvokeError::Store { record: None, .. }));          // it did not run
/// # Ok(()) }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InvokeError {
    /// The store failed.
    #[error("{error}")]
    #[non_exhaustive]
    Store {
        /// The error of the store.
        #[source]
        error: StoreError,
        /// The complete record of the call, or `None` if the call did not run. The stored record may still be pending.
        record: Option<Box<InvocationRecord>>,
    },
    /// The idempotency key is already used by a call with another tool, other parameters or other arguments.
    #[error("the key `{key}` belongs to another call: give each call its own idempotency key")]
    #[non_exhaustive]
    KeyInUse {
        /// The idempotency key.
        key: StepKey,
    },
}

crate::error_text::debug_is_the_sentence!(InvokeError);

impl From<StoreError> for InvokeError {
    fn from(error: StoreError) -> Self {
        Self::Store { error, record: None }
    }
}

impl Registry {
    /// Runs a call like [`call`](Self::call), and records it: the arguments are checked, a pending record is saved, the tool runs, and the
    /// record becomes completed or failed. Returns the record with the outcome, also if the call failed or was refused. The record of a
    /// deferred call stays pending, with the handle of the result.
    ///
    /// A refused call counts as failed. Secret arguments are left out of records. No transaction is open while the tool runs. If the
    /// pending record cannot be saved, the tool does not run.
    ///
    /// The [idempotency key](crate::ToolContext::with_idempotency_key) of the context is the key of the record. If the context has none,
    /// each call gets a new key. A second call with the same key returns the record of the first call and does not run. If the first call
    /// has no recorded end, for example because the process died, the [effect](crate::tool::ToolPolicy::effect) of the tool decides whether
    /// the call runs again, as [after a crash](crate::store#after-a-crash) of an assistant. If the future is dropped, the record ends as
    /// interrupted. Needs a tokio runtime with its timer enabled.
    ///
    /// ```
    /// use agent::message::ToolCall;
    /// use agent::store::{InvocationStatus, MemoryStore};
    /// use agent::{Registry, ToolContext, json, tool, tools};
    ///
    /// /// Books a room.
    /// #[tool]
    /// fn book_room(nights: u32) -> Result<String, String> {
    ///     if nights == 13 { Err("not on a Friday".to_owned()) } else { Ok(format!("{nights} nights booked")) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (registry, store) = (Registry::new(tools![book_room])?, MemoryStore::new());
    /// let cx = ToolContext::new().with_idempotency_key("order-7");
    /// let call = ToolCall::new("call_1", "book_room", r#"{"nights": "3"}"#);
    /// let record = registry.invoke(&call, &cx, store.clone()).await?;
    /// assert_eq!(record.args, json!({"nights": 3}));
    /// assert_eq!(record.result().unwrap().text_content(), "3 nights booked");
    /// assert_eq!(registry.invoke(&call, &cx, store.clone()).await?, record);       // not booked twice
    ///
    /// let call = ToolCall::new("call_2", "book_room", r#"{"nights": 13}"#);
    /// let record = registry.invoke(&call, &ToolContext::new(), store).await?;
    /// assert_eq!((record.status, record.error().as_deref()), (InvocationStatus::Failed, Some("not on a Friday")));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the store fails, or if the idempotency key belongs to another call.
    pub async fn invoke(
        &self,
        call: &ToolCall,
        cx: &ToolContext,
        store: impl Store + 'static,
    ) -> Result<InvocationRecord, InvokeError> {
        let store = StoreAccess::new(Arc::new(store), StoreOptions::default()).for_run(cx.cancel_token());
        let (new, refused) = self.new_record(call, cx);
        let key = new.key.clone();
        let found = store.begin(new.clone()).await?;
        if let Some(found) = &found {
            if !is_same(found, &new) {
                return Err(InvokeError::KeyInUse { key });
            }
            if found.status != InvocationStatus::Pending || found.handle.is_some() {
                return Ok(found.clone());
            }
        }
        let attempt = found.as_ref().map_or(1, |found| found.attempt);
        let pending = PendingRecord { store: Some(store), key, end: None };
        let outcome = match refused {
            Some(outcome) => outcome,
            None if !self.may_begin(call, attempt) => ToolOutcome::lost(),
            None if cx.is_cancelled() => {
                let reason = cx.cancel_token().reason();
                not_run(reason.as_deref().unwrap_or("cancelled"))
            }
            None => {
                let of_call = cx.clone().with_call_id("").with_idempotency_key(pending.key.to_string());
                let max = cx.max_attempts().max(attempt);
                self.call(call, &of_call.with_attempt(attempt, max)).await.outcome
            }
        };
        pending.end(found.unwrap_or(new), outcome).await
    }

    /// Returns the pending record of a call, and the refusal if the tool is unknown or refuses the arguments.
    fn new_record(&self, call: &ToolCall, cx: &ToolContext) -> (InvocationRecord, Option<ToolOutcome>) {
        let shown = cx.source().and_then(|source| self.definitions_for(Some(source)).ok());
        let secrets = SecretArguments::new([self.definitions()].into_iter().chain(shown));
        let sent = || call.args.value().unwrap_or_else(|| Value::String(call.args.text().to_owned()));
        let (args, refused) = match self.fetch(&call.name) {
            Err(unknown) => {
                (sent(), Some(ToolOutcome::failed(OutcomeCode::UNKNOWN_TOOL, unknown.to_string())))
            }
            Ok(tool) => match check(tool, &call.args, cx.source()) {
                Ok(checked) => (checked.value().clone(), None),
                Err(refused) => (sent(), Some(*refused)),
            },
        };
        let withheld = secrets.value(&call.name, &args);
        let is_withheld = withheld.is_some();
        let key = key_of(call, cx);
        let mut new = InvocationRecord::new(key, &*call.id, &*call.name, withheld.unwrap_or(args)).at(now());
        new.is_withheld = is_withheld;
        new.session = cx.session_id().map(str::to_owned);
        new.source = cx.source().and_then(|source| source.label()).map(str::to_owned);
        new.fingerprint =
            secrets.definitions(&call.name).last().map_or(0, |tool: &ToolDefinition| fingerprint(tool));
        (new, refused)
    }

    fn may_begin(&self, call: &ToolCall, attempt: u32) -> bool {
        let policy = self.get(&call.name).map(Tool::policy);
        attempt == 1
            || policy.is_some_and(|policy| {
                policy.effect != Effect::Once && attempt <= policy.max_attempts.unwrap_or(ATTEMPTS).max(1)
            })
    }
}

fn key_of(call: &ToolCall, cx: &ToolContext) -> StepKey {
    let given = cx.idempotency_key();
    let text = match (cx.call_id().is_empty(), given.is_empty()) {
        (true, true) => new_id("invoke"),
        (true, false) => given.to_owned(),
        // The context belongs to a running call. The record of that call already uses the context's key, so the new call needs another.
        (false, _) => format!("{given}/{}", call.id),
    };
    text.parse().unwrap_or_else(|_| StepKey::new(text, 1, StepKind::Tool, 0))
}

fn is_same(found: &InvocationRecord, new: &InvocationRecord) -> bool {
    (&found.tool, found.fingerprint, &found.args) == (&new.tool, new.fingerprint, &new.args)
}

/// A record whose end is not stored yet. If this value is dropped, a tokio task stores the end of the call. A call that has not ended is
/// recorded as interrupted.
struct PendingRecord {
    /// The store, or `None` once the request to record the end has returned.
    store: Option<StoreAccess>,
    key: StepKey,
    end: Option<InvocationEnd>,
}

impl PendingRecord {
    async fn end(
        mut self,
        mut record: InvocationRecord,
        outcome: ToolOutcome,
    ) -> Result<InvocationRecord, InvokeError> {
        let Some(store) = self.store.clone() else { return Ok(record) };
        let ended = match outcome {
            ToolOutcome::Deferred { handle } => {
                record.handle = Some(handle.clone());
                store.defer(&self.key, &handle).await
            }
            outcome => {
                let end = InvocationEnd::new(outcome, now());
                (record.status, record.end) = (end.status(), Some(end.clone()));
                self.end = Some(end.clone());
                store.finish(&self.key, end).await
            }
        };
        self.store = None;
        // If the record already has another end, the stored record is returned.
        let stored = match ended {
            Ok(true) => return Ok(record),
            Ok(false) => store.get(&self.key).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(Some(stored)) if stored.status != InvocationStatus::Pending => Ok(stored),
            Ok(_) => Ok(record),
            Err(error) => Err(InvokeError::Store { error, record: Some(Box::new(record)) }),
        }
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (key, store) = (self.key.clone(), store.without_run());
        let end = self.end.take();
        runtime.spawn(async move {
            let dropped = || InvocationEnd::new(ToolOutcome::aborted("the caller stopped waiting"), now());
            let end = end.unwrap_or_else(dropped);
            if let Err(error) = store.finish(&key, end).await {
                tracing::error!(%key, %error, "the end of a call was not recorded");
            }
        });
    }
}
