//! Records the start and the end of each tool call of a run, and decides on calls that an earlier process left without an end.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::time::Instant;

use super::keeper::{StoreAccess, now};
use super::owed::UnrecordedEnd;
use crate::loop_core::{CHILD_HANDLE, CallEnd, gone_child};
use crate::message::{ToolCall, ToolResultMessage, UserMessage};
use crate::runtime::assistant::Assistant;
use crate::runtime::body::CallBody;
use crate::runtime::checked::CheckedArguments;
use crate::runtime::config::Config;
use crate::step_key::StepKey;
use crate::store::{InvocationEnd, InvocationRecord, InvocationStatus, StoreError};
use crate::tool::asking::ASK_HANDLE;
use crate::tool::context::ToolContext;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::policy::Effect;
use crate::tool::secrets::SecretArguments;
use crate::tool::value::Tool;

/// Default maximum number of attempts of a call whose process dies during each attempt.
pub(super) const ATTEMPTS: u32 = 3;

pub(in crate::runtime) struct RunRecords {
    pub(super) keeper: StoreAccess,
    session: Option<Arc<str>>,
    source: Option<Arc<str>>,
    /// Whether the run is on a durable engine, which remembers the runs of sub-agents.
    is_on_engine: bool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The calls that have begun in this process and have not ended, in call order.
    open: BTreeSet<StepKey>,
    /// The calls of the current turn that have a record.
    known: HashSet<StepKey>,
    /// The first error of the store.
    failure: Option<StoreError>,
    owed: Vec<UnrecordedEnd>,
}

/// The result of recording that a call begins: its tool runs, or the call ends without running its tool.
enum CallStart {
    Runs { attempt: u32 },
    Ended(Box<CallEnd>),
}

pub(in crate::runtime) enum InterruptedCall {
    Ended(Box<CallEnd>),
    Begun,
}

impl RunRecords {
    pub(in crate::runtime) fn new(
        keeper: &StoreAccess,
        context: &ToolContext,
        session: Option<Arc<str>>,
        is_on_engine: bool,
    ) -> Arc<Self> {
        let source = context.source().and_then(|source| source.label()).map(Arc::from);
        let keeper = keeper.for_run(context.cancel_token());
        Arc::new(Self { keeper, session, source, is_on_engine, inner: Mutex::default() })
    }

    pub(in crate::runtime) fn set_deadline(&self, at: Instant) {
        self.keeper.set_deadline(at);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs while the lock is held, so the data behind a poisoned lock is sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failure(&self) -> Option<StoreError> {
        self.lock().failure.clone()
    }

    pub(super) fn fail(&self, error: StoreError) {
        tracing::error!(%error, "the store failed");
        self.lock().failure.get_or_insert(error);
    }

    pub(super) fn take_owed(&self) -> Vec<UnrecordedEnd> {
        std::mem::take(&mut self.lock().owed)
    }

    pub(super) fn is_known(&self, key: &StepKey) -> bool {
        self.lock().known.contains(key)
    }

    pub(super) fn forget_turns_before(&self, turn: u32) {
        self.lock().known.retain(|key| key.turn >= turn);
    }

    /// Returns the rules by which secret arguments are withheld, or `None` if the application stores secrets.
    pub(super) fn secrets(&self, config: &Config) -> Option<Arc<SecretArguments>> {
        (!self.keeper.options.keeps_secrets).then(|| config.secrets())
    }

    /// Returns a record of a call. Secret arguments are left out, unless the application stores them. `text` is the text of the reply that
    /// contains the call.
    pub(super) fn new_record(
        &self,
        config: &Config,
        key: &StepKey,
        call: &ToolCall,
        args: Value,
        text: &str,
    ) -> InvocationRecord {
        let shown = self.secrets(config).and_then(|secrets| secrets.value(&call.name, &args));
        let is_withheld = shown.is_some();
        let mut new = self.new_plain_record(config, key, call, shown.unwrap_or(args), text);
        new.is_withheld = is_withheld;
        new
    }

    pub(super) fn new_plain_record(
        &self,
        config: &Config,
        key: &StepKey,
        call: &ToolCall,
        args: Value,
        text: &str,
    ) -> InvocationRecord {
        let mut new = InvocationRecord::new(key.clone(), &*call.id, &*call.name, args).at(now());
        new.session = self.session.as_deref().map(str::to_owned);
        new.source = self.source.as_deref().map(str::to_owned);
        new.fingerprint = config.rules.tools.get(&call.name).map_or(0, |tool| tool.fingerprint);
        new.text = if key.ord == 0 { text.to_owned() } else { String::new() };
        new
    }

    /// Runs the body of a call, and records its start and its end. If the body does not run, returns the end of the call as the error.
    /// `text` is the text of the reply with the call.
    pub(in crate::runtime) async fn around(
        &self,
        body: &CallBody,
        text: &str,
    ) -> Result<CallEnd, Box<CallEnd>> {
        let CallBody { config, key, call, context, checked, continues_child, .. } = body;
        // The futures of the store are boxed to keep this future small, because it lives as long as the body runs.
        let begin = self.begin(config, key, call, checked.as_deref(), text, *continues_child);
        let begin = Box::pin(begin).await;
        let attempt = match begin {
            CallStart::Runs { attempt } => attempt,
            CallStart::Ended(end) => return Err(end),
        };
        if context.is_cancelled() {
            let reason = context.cancel_token().reason();
            let reason = reason.as_deref().unwrap_or("cancelled");
            return Err(Box::new(Box::pin(self.end_unstarted(key, attempt, reason)).await));
        }
        let end = body.perform(attempt).await;
        Box::pin(self.finish(key, &end)).await;
        Ok(end)
    }

    /// Records that a call begins. A call that cannot be recorded does not run.
    async fn begin(
        &self,
        config: &Config,
        key: &StepKey,
        call: &ToolCall,
        checked: Option<&CheckedArguments>,
        text: &str,
        continues_child: bool,
    ) -> CallStart {
        if self.failure().is_some() {
            return CallStart::Ended(Box::new(not_recorded_end()));
        }
        let args = checked.map(|checked| checked.value().clone()).unwrap_or_default();
        let new = self.new_record(config, key, call, args, text);
        let again = new.clone();
        let begin = match self.keeper.begin(new).await {
            Ok(begin) => begin,
            Err(error) => {
                self.fail(error);
                return CallStart::Ended(Box::new(not_recorded_end()));
            }
        };
        self.lock().known.insert(key.clone());
        match begin {
            None => {
                self.lock().open.insert(key.clone());
                CallStart::Runs { attempt: 1 }
            }
            Some(record) if record.status == InvocationStatus::Pending => {
                let attempt = record.attempt;
                if let Some(end) = self.resolve_begun(config, &record, &again, attempt, continues_child).await
                {
                    return CallStart::Ended(Box::new(end));
                }
                self.lock().open.insert(key.clone());
                tracing::warn!(%key, attempt, "a call that had begun before is run again");
                CallStart::Runs { attempt }
            }
            Some(record) => CallStart::Ended(Box::new(recorded_end(&record))),
        }
    }

    /// Handles a call that had begun, but has no recorded end. Returns `None` if the call runs again, or else its end.
    async fn resolve_begun(
        &self,
        config: &Config,
        found: &InvocationRecord,
        again: &InvocationRecord,
        attempt: u32,
        continues_child: bool,
    ) -> Option<CallEnd> {
        let tool = config.registry.get(&again.tool);
        // The call of a sub-agent may run again if the sub-agent's steps are stored, because its run then continues after the last stored
        // step. The steps are in the session, in a durable engine, or in the suspended run.
        let is_known = self.session.is_some()
            || self.is_on_engine
            || continues_child
            || found.handle.as_deref() == Some(CHILD_HANDLE);
        let is_child = tool.is_some_and(Tool::is_of_assistant) && is_known;
        // A tool asks its questions before it has any effect, so a call that waits for inputs may run again.
        let continues = is_child || found.handle.as_deref() == Some(ASK_HANDLE);
        if let Some(handle) = found.handle.as_ref().filter(|_| !continues) {
            if handle == CHILD_HANDLE {
                let end = CallEnd::new(gone_child());
                self.finish(&again.key, &end).await;
                return Some(end);
            }
            return Some(CallEnd::new(ToolOutcome::Deferred { handle: handle.clone() }));
        }
        let policy = tool.map(Tool::policy);
        let is_the_same =
            found.tool == again.tool && found.fingerprint == again.fingerprint && found.args == again.args;
        let may_run = continues
            || policy.is_some_and(|policy| {
                policy.effect != Effect::Once && attempt <= policy.max_attempts.unwrap_or(ATTEMPTS).max(1)
            });
        if may_run && is_the_same {
            return None;
        }
        Some(self.give_up(&again.key).await)
    }

    /// Ends a call that had begun in another process and must not run again. Returns the recorded end, or an end with an unknown outcome.
    #[cfg(feature = "durable-restate")]
    pub(in crate::runtime) async fn end_lost(
        &self,
        config: &Config,
        key: &StepKey,
        call: &ToolCall,
        context: &ToolContext,
        text: &str,
    ) -> CallEnd {
        let checked = config.checked(call, context);
        match self.begin(config, key, call, checked.as_deref(), text, false).await {
            CallStart::Ended(end) => *end,
            CallStart::Runs { .. } => self.give_up(key).await,
        }
    }

    /// Ends a call that must not run again, with an unknown outcome. If an end was recorded meanwhile, returns that end instead.
    async fn give_up(&self, key: &StepKey) -> CallEnd {
        let lost = ToolOutcome::lost();
        let end = InvocationEnd::new(lost.clone(), now());
        let recorded = match self.keeper.finish(key, end).await {
            Ok(true) => Ok(None),
            Ok(false) => self.keeper.get(key).await,
            Err(error) => Err(error),
        };
        match recorded {
            Ok(Some(record)) if record.status != InvocationStatus::Pending => recorded_end(&record),
            Ok(_) => CallEnd::new(lost),
            Err(error) => {
                self.fail(error);
                CallEnd::new(lost)
            }
        }
    }

    /// Records the end of a call. If the store fails, the end is kept for the next run.
    pub(in crate::runtime) async fn finish(&self, key: &StepKey, end: &CallEnd) {
        let owed = UnrecordedEnd::of_end(key, end);
        let done = self.keeper.record(owed.clone()).await;
        let mut inner = self.lock();
        inner.open.remove(key);
        inner.known.insert(key.clone());
        let Err(error) = done else { return };
        inner.owed.push(owed);
        drop(inner);
        self.fail(error);
    }

    /// Ends a call that was cancelled before its tool ran. If an earlier attempt had begun, the outcome is unknown.
    async fn end_unstarted(&self, key: &StepKey, attempt: u32, reason: &str) -> CallEnd {
        if attempt > 1 {
            return self.give_up(key).await;
        }
        let end = CallEnd::new(not_run(reason));
        self.finish(key, &end).await;
        end
    }

    /// Takes at most `room` messages that other processes put into the session's inbox. Returns no messages without a session, or if the
    /// store fails.
    pub(in crate::runtime) async fn inbox(self: Arc<Self>, key: StepKey, room: usize) -> Vec<UserMessage> {
        let Some(session) = self.session.as_deref().filter(|_| room > 0) else { return Vec::new() };
        match self.keeper.take_steering(session, &key, room).await {
            Ok(messages) => messages,
            Err(error) => {
                self.fail(error);
                Vec::new()
            }
        }
    }

    /// Ends the calls that a dropped run had begun. A separate task ends them, because a drop cannot wait for the store. The next run of
    /// the assistant records the ends that could not be recorded. Outside of a tokio runtime, the next run records all ends.
    pub(in crate::runtime) fn abandon(&self, reason: &'static str, assistant: &Assistant) {
        let open = std::mem::take(&mut self.lock().open);
        let aborted = || InvocationEnd::new(ToolOutcome::aborted(reason), now());
        let ends = open.into_iter().map(|key| UnrecordedEnd::Ended(key, aborted()));
        let ends: Vec<_> = self.take_owed().into_iter().chain(ends).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return assistant.state().debts.add(ends);
        };
        if ends.is_empty() {
            return;
        }
        let (keeper, assistant) = (self.keeper.without_run(), assistant.clone());
        runtime.spawn(async move {
            for end in ends {
                if let Err(error) = keeper.record(end.clone()).await {
                    tracing::error!(key = %end.key(), %error, "the end of a call was not recorded");
                    assistant.state().debts.add([end]);
                }
            }
        });
    }
}

impl RunRecords {
    /// Looks up a call of a process that died. Returns `None` if the call has not begun and can still run. A call whose secret arguments
    /// were not stored (`is_withheld`) ends without running.
    pub(super) async fn look_up(
        &self,
        config: &Config,
        context: &ToolContext,
        key: &StepKey,
        call: &ToolCall,
        is_withheld: bool,
    ) -> Option<InterruptedCall> {
        let record = match self.keeper.get(key).await {
            Ok(record) => record,
            Err(error) => {
                self.fail(error);
                return Some(InterruptedCall::Ended(Box::new(not_recorded_end())));
            }
        };
        let found = match record {
            // An unknown tool is reported later, when the call is prepared.
            None if is_withheld && config.registry.get(&call.name).is_some() => {
                Some(CallEnd::new(secrets_not_kept()))
            }
            None => return None,
            Some(record) if record.status != InvocationStatus::Pending => Some(recorded_end(&record)),
            Some(_) if is_withheld => Some(self.give_up(key).await),
            Some(record) => {
                let checked = config.checked(call, context);
                let args = checked.map(|checked| checked.value().clone()).unwrap_or_default();
                let again = self.new_record(config, key, call, args, "");
                self.resolve_begun(config, &record, &again, record.attempt.saturating_add(1), false).await
            }
        };
        let Some(end) = found else { return Some(InterruptedCall::Begun) };
        self.lock().known.insert(key.clone());
        Some(InterruptedCall::Ended(Box::new(end)))
    }
}

fn recorded_end(record: &InvocationRecord) -> CallEnd {
    let outcome = record.outcome().cloned().unwrap_or_else(ToolOutcome::lost);
    let mut end = CallEnd::ran(outcome, 0);
    end.attempt = record.attempt;
    if let Some(stored) = &record.end {
        end.control = stored.control;
    }
    end
}

fn not_recorded_end() -> CallEnd {
    CallEnd::new(not_run("it could not be recorded"))
}

pub(super) fn not_run(reason: &str) -> ToolOutcome {
    let reason = format!("The call was not run: {reason}.");
    ToolOutcome::Interrupted { code: OutcomeCode::ABORTED, reason }
}

fn secrets_not_kept() -> ToolOutcome {
    let text = "The call was not run: the program ended before, and its secret arguments were not kept. Make the call again.";
    ToolOutcome::failed(OutcomeCode::new("secrets_not_kept"), text)
}

/// Returns the result message of a recorded call, cut to `max` bytes, or `None` if the record has no result.
pub(super) fn result_message(record: &InvocationRecord, max: usize) -> Option<ToolResultMessage> {
    let mut message = record.result_message()?;
    crate::loop_core::cut(&mut message, max, None);
    Some(message)
}
