//! `Registry::invoke`: one call with its record, outside of an assistant.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument as _;

use super::begin::{ATTEMPTS, not_run};
use super::keeper::{StoreAccess, StoreOptions, now};
use super::owed::UnrecordedEnd;
use crate::loop_core::fingerprint;
use crate::message::ToolCall;
use crate::runtime::checked::check;
use crate::runtime::new_id;
use crate::step_key::{StepKey, StepKind};
use crate::store::{InvocationEnd, InvocationRecord, InvocationStatus, Store, StoreError, StoreErrorKind};
use crate::tool::asking::AskRules;
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
    /// each call gets a new key. A second call with the same key returns the record of the first call and does not run. While the first
    /// call runs in this process, the second waits for its end; if the second is cancelled meanwhile, it returns the pending record. If
    /// the first call has no recorded end, because another process runs the call or died while it ran the call, the
    /// [effect](crate::tool::ToolPolicy::effect) of the tool decides whether the call runs again, as [after a
    /// crash](crate::store#after-a-crash) of an assistant. So processes that share a store must not make calls with the same key at the
    /// same time.
    ///
    /// If the future is dropped before the tool ends, the record ends as interrupted. A [question](ToolContext::ask) of the tool cannot
    /// suspend the call: it fails if no function answers it. Needs a tokio runtime with its timer enabled.
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
        let mut known = new.clone();
        let (pending, record) = loop {
            let mut open = RunningInvocation::of(&known);
            if !open.is_held_at_once() {
                // A tool that passes its own key on must not wait for itself.
                if let Some(found) = store.get(&new.key).await?
                    && !is_same(&found, &new)
                {
                    return Err(InvokeError::KeyInUse { key: found.key });
                }
                if !open.hold(cx).await {
                    return Ok(known);
                }
            }
            match begin(&store, &new, open, has_key(cx)).await? {
                Begun::Runs(pending, record) => break (pending, *record),
                Begun::Before(record) => return Ok(*record),
                Begun::Meanwhile(record) => known = *record,
            }
        };
        let attempt = record.attempt;
        let outcome = match refused {
            Some(outcome) => outcome,
            None if !self.may_begin(call, attempt) => ToolOutcome::lost(),
            None if cx.is_cancelled() => {
                let reason = cx.cancel_token().reason();
                not_run(reason.as_deref().unwrap_or("cancelled"))
            }
            None => {
                let mut of_call = cx.clone().with_call_id("").with_idempotency_key(pending.key.to_string());
                if let Some(rules) = cx.ask_rules() {
                    // This call is never resumed, and the inputs of the context belong to the call around this call.
                    let rules = AskRules { suspends: false, inputs: Arc::default(), ..rules.clone() };
                    of_call = of_call.with_ask_rules(rules);
                }
                let max = cx.max_attempts().max(attempt);
                self.call(call, &of_call.with_attempt(attempt, max)).await.outcome
            }
        };
        pending.end(record, outcome).await
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

fn has_key(cx: &ToolContext) -> bool {
    !cx.call_id().is_empty() || !cx.idempotency_key().is_empty()
}

fn key_of(call: &ToolCall, cx: &ToolContext) -> StepKey {
    let given = cx.idempotency_key();
    let text = match (has_key(cx), cx.call_id().is_empty()) {
        (false, _) => new_id("invoke"),
        (true, true) => given.to_owned(),
        // The context belongs to a running call. The record of that call already uses the context's key, so the new call needs another.
        (true, false) => format!("{given}/{}", call.id),
    };
    text.parse().unwrap_or_else(|_| StepKey::new(text, 1, StepKind::Tool, 0))
}

fn is_same(found: &InvocationRecord, new: &InvocationRecord) -> bool {
    (&found.tool, found.fingerprint, &found.args) == (&new.tool, new.fingerprint, &new.args)
}

/// The locks of the calls that are open in this process. Each lock is found by the key of the record and the time at which the record was
/// created. Because of the time, calls with the same key in different stores do not wait for each other.
static OPEN_CALLS: Mutex<OpenCalls> = Mutex::new(BTreeMap::new());

type OpenCalls = BTreeMap<(StepKey, i64), Arc<tokio::sync::Mutex<()>>>;

fn open_calls() -> MutexGuard<'static, OpenCalls> {
    // No code that can panic runs while the lock is held, so the data behind a poisoned lock is sound.
    OPEN_CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is open in this process and holds the lock of its record, or that waits for this lock.
struct RunningInvocation {
    id: (StepKey, i64),
    lock: Arc<tokio::sync::Mutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl RunningInvocation {
    fn of(record: &InvocationRecord) -> Self {
        let id = (record.key.clone(), record.created_at);
        let lock = open_calls().entry(id.clone()).or_default().clone();
        Self { id, lock, held: None }
    }

    fn is_held_at_once(&mut self) -> bool {
        self.held = self.lock.clone().try_lock_owned().ok();
        self.held.is_some()
    }

    /// Waits for the lock of the record. Returns `false` if the call is cancelled first.
    async fn hold(&mut self, cx: &ToolContext) -> bool {
        let lock = pin!(self.lock.clone().lock_owned());
        if let Either::Left((held, _)) = select(lock, cx.cancelled()).await {
            self.held = Some(held);
        }
        self.held.is_some()
    }
}

impl Drop for RunningInvocation {
    fn drop(&mut self) {
        self.held = None;
        let mut open = open_calls();
        // Only the map and this call have the lock, so no other call waits for it.
        if Arc::strong_count(&self.lock) == 2 {
            open.remove(&self.id);
        }
    }
}

enum Begun {
    Runs(Box<PendingRecord>, Box<InvocationRecord>),
    /// An earlier call with this key has ended or is deferred.
    Before(Box<InvocationRecord>),
    /// An earlier call with this key has no recorded end. It may be open in this process.
    Meanwhile(Box<InvocationRecord>),
}

impl Begun {
    /// Returns `None` if the call may begin: the record that was found is pending without a handle, and `open` is for that record.
    fn of_found(
        found: &InvocationRecord,
        new: &InvocationRecord,
        open: &RunningInvocation,
    ) -> Result<Option<Self>, InvokeError> {
        if !is_same(found, new) {
            return Err(InvokeError::KeyInUse { key: found.key.clone() });
        }
        let found_at = found.created_at;
        Ok(if found.status != InvocationStatus::Pending || found.handle.is_some() {
            Some(Self::Before(Box::new(found.clone())))
        } else if open.id.1 == new.created_at && open.id.1 != found_at {
            Some(Self::Meanwhile(Box::new(found.clone())))
        } else {
            None
        })
    }
}

/// Begins a record in a tokio task of its own. If the caller stops waiting meanwhile, the record that has begun still gets an end.
async fn begin(
    store: &StoreAccess,
    new: &InvocationRecord,
    open: RunningInvocation,
    has_key: bool,
) -> Result<Begun, InvokeError> {
    let (store, new) = (store.clone(), new.clone());
    let begun = async move {
        // `Store::begin` counts an attempt of a pending record, even if the record belongs to another call. So the record is read first.
        if has_key
            && let Some(found) = store.get(&new.key).await?
            && let Some(begun) = Begun::of_found(&found, &new, &open)?
        {
            return Ok(begun);
        }
        let found = store.begin(new.clone()).await?;
        if let Some(found) = &found
            && let Some(begun) = Begun::of_found(found, &new, &open)?
        {
            return Ok(begun);
        }
        let pending = PendingRecord { store: Some(store), key: new.key.clone(), end: None, open: Some(open) };
        Ok(Begun::Runs(Box::new(pending), Box::new(found.unwrap_or(new))))
    };
    tokio::spawn(begun.in_current_span()).await.unwrap_or_else(|error| {
        let text = "the task that began the record was stopped";
        Err(StoreError::new(StoreErrorKind::Other, text).with_source(error).into())
    })
}

/// A record whose end is not stored yet. If this value is dropped, a tokio task stores the end of the call. A call that has not ended is
/// recorded as interrupted.
struct PendingRecord {
    /// The store, or `None` once the request to record the end has returned.
    store: Option<StoreAccess>,
    key: StepKey,
    end: Option<UnrecordedEnd>,
    open: Option<RunningInvocation>,
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
                self.end = Some(UnrecordedEnd::Deferred(self.key.clone(), handle.clone()));
                store.defer(&self.key, &handle).await
            }
            outcome => {
                let end = InvocationEnd::new(outcome, now());
                (record.status, record.end) = (end.status(), Some(end.clone()));
                self.end = Some(UnrecordedEnd::Ended(self.key.clone(), end.clone()));
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
        let (key, store, open) = (self.key.clone(), store.without_run(), self.open.take());
        let dropped = || InvocationEnd::new(ToolOutcome::aborted("the caller stopped waiting"), now());
        let end = self.end.take().unwrap_or_else(|| UnrecordedEnd::Ended(key.clone(), dropped()));
        runtime.spawn(async move {
            if let Err(error) = store.record(end).await {
                tracing::error!(%key, %error, "the end of a call was not recorded");
            }
            // A call with the same key waits until the end is recorded.
            drop(open);
        });
    }
}
