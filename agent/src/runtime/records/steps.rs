//! Writes the messages of a run to the store of its assistant when they become final.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::begin::RunRecords;
use super::keeper::now;
use super::owed::UnrecordedEnd;
use super::session::{InterruptedTurn, SessionState};
use crate::loop_core::{
    AgentLoop, ApprovalRequest, CallDecision, End, Event, ModelReply, Queue, TurnSummary, outcome_of,
};
use crate::message::{AssistantMessage, Content, Message, MessageList, ToolCall, UserMessage, ViewChange};
use crate::model::ModelError;
use crate::runtime::assistant::Assistant;
use crate::runtime::context::ContextState;
use crate::runtime::error::RunError;
use crate::runtime::in_process::InProcessSteps;
use crate::runtime::perform::Performer;
use crate::runtime::turn::{TurnChoices, TurnSteps, next_reply};
use crate::step_key::{StepKey, StepKind};
use crate::steps::{SharedLoop, StepError, Steps};
use crate::store::{EntryKind, InvocationRecord, SessionEntry, StoreError, StoreErrorKind};
use crate::tool::BoxFuture;
use crate::tool::definition::ToolDefinition;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};
use crate::tool::output::ToolOutput;

/// The steps of a run with a store. Records the messages of the session, and the calls that end without running their tools.
/// [`RunRecords`] records the other calls.
pub(in crate::runtime) struct RecordingSteps {
    inner: Box<InProcessSteps>,
    records: Arc<RunRecords>,
    /// The number of messages of the conversation that were already searched for calls without a record.
    seen: usize,
    /// The turn in which the death of an earlier process interrupted the run. `None` for a run that was not interrupted.
    interrupted: Option<InterruptedTurn>,
    /// The first error of the store. Nothing is recorded after this error.
    error: Option<StoreError>,
}

impl RecordingSteps {
    pub(in crate::runtime) fn new(
        inner: Box<InProcessSteps>,
        records: Arc<RunRecords>,
        seen: usize,
        interrupted: Option<InterruptedTurn>,
        ends_at: Option<Instant>,
    ) -> Self {
        if let Some(at) = ends_at {
            records.set_deadline(at);
        }
        Self { inner, records, seen, interrupted, error: None }
    }

    /// Returns the inner steps, and the first error of the store. After an error, the next run of the assistant records the ends of calls
    /// that the store lacks.
    pub(in crate::runtime) fn into_inner(self) -> (Box<InProcessSteps>, Option<StoreError>) {
        if self.error.is_some() {
            let mut owed = self.records.take_owed();
            owed.extend(
                self.not_recorded()
                    .into_iter()
                    .map(|(new, outcome)| UnrecordedEnd::NotRun(Box::new(new), outcome)),
            );
            self.inner.assistant.state().debts.add(owed);
        }
        (self.inner, self.error)
    }
}

/// Forwards every step to `inner`. Methods that record nothing are implemented, too, because the trait's default methods would not call
/// `inner`.
impl Steps for RecordingSteps {
    async fn before_step(&mut self, run: &SharedLoop) -> Result<(), StepError> {
        if self.error.is_none()
            && let Err(error) = Box::pin(self.write()).await
        {
            let message = error.to_string();
            self.error = Some(error);
            // A cancelled or ended run keeps its reason to end. Any other run fails with the error of the store.
            self.inner.check_stop()?;
            if run.lock().end().is_none() {
                return Err(StepError::failed(message));
            }
        }
        self.inner.before_step(run).await
    }

    async fn poll(
        &mut self,
        key: StepKey,
        queue: Queue,
        run: &SharedLoop,
    ) -> Result<Vec<Arc<Message>>, StepError> {
        let mut stored = Vec::new();
        if queue == Queue::Steering {
            let is_empty = self.inner.assistant.state().steering.is_empty();
            let takes_all = self.inner.performer.config.takes_all(queue);
            let room = if takes_all { usize::MAX } else { usize::from(is_empty) };
            stored = Box::pin(self.records.clone().inbox(key.clone(), room)).await;
        }
        let mut messages = self.inner.poll(key, queue, run).await?;
        let run = run.lock();
        let new = stored.into_iter().filter(|message| !is_added(&run, message));
        messages.extend(new.map(|message| Arc::new(message.into())));
        Ok(messages)
    }

    async fn model(
        &mut self,
        key: StepKey,
        messages: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        if !self.inner.performer.config.prepares_requests() {
            return self.inner.model(key, messages, run).await;
        }
        drop(messages);
        let (_place, span) = self.inner.enter_request().await?;
        Box::pin(next_reply(self, key, run)).instrument(span).await
    }

    async fn prepare(
        &mut self,
        key: StepKey,
        calls: Vec<Arc<ToolCall>>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        if let Some(interrupted) =
            self.interrupted.as_ref().filter(|interrupted| interrupted.turn == key.turn)
        {
            for (ord, call) in (key.ord..).zip(&calls) {
                let is_withheld = interrupted.withheld.contains(&call.id);
                let key = StepKey::new(key.run.clone(), key.turn, StepKind::Tool, ord);
                let Performer { config, context, .. } = &self.inner.performer;
                let found = self.records.look_up(config, context, &key, call, is_withheld);
                let found = Box::pin(found).await;
                if let Some(found) = found {
                    self.inner.found.insert(ord, found);
                }
            }
        }
        self.inner.prepare(key, calls, run).await
    }

    async fn approvals(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
        run: &SharedLoop,
    ) -> Result<Vec<CallDecision>, StepError> {
        self.inner.approvals(requests, run).await
    }

    async fn tools(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        self.inner.tools(calls, run).await
    }

    async fn turn_end(
        &mut self,
        key: StepKey,
        summary: TurnSummary,
        run: &SharedLoop,
    ) -> Result<Option<bool>, StepError> {
        self.inner.turn_end(key, summary, run).await
    }

    async fn is_steered(&mut self, run: &SharedLoop) -> Result<bool, StepError> {
        self.inner.is_steered(run).await
    }

    async fn event(&mut self, event: Event, run: &SharedLoop) -> Result<(), StepError> {
        self.inner.event(event, run).await
    }
}

/// Makes the requests with `inner`. A change of the messages that the model sees is stored before the request that uses it.
impl TurnSteps for RecordingSteps {
    const REMEMBERS: bool = InProcessSteps::REMEMBERS;

    fn parts(&mut self) -> (&Performer, &mut TurnChoices) {
        self.inner.parts()
    }

    fn replace_context(&mut self, context: ContextState) -> ContextState {
        self.inner.replace_context(context)
    }

    async fn perform<T: Serialize + DeserializeOwned + Send + 'static>(
        &mut self,
        name: impl fmt::Display + Send,
        work: BoxFuture<'static, T>,
    ) -> Result<T, StepError> {
        self.inner.perform(name, work).await
    }

    async fn ask(
        &mut self,
        key: &StepKey,
        attempt: &'static str,
        tools: Arc<[ToolDefinition]>,
    ) -> Result<(ModelReply, Option<ModelError>), StepError> {
        self.inner.ask(key, attempt, tools).await
    }

    async fn check_run(&mut self) -> Result<(), StepError> {
        self.inner.check_stop()
    }

    async fn notify(&mut self) -> Result<(), StepError> {
        TurnSteps::notify(&mut *self.inner).await
    }

    async fn store_view(&mut self) -> Result<(), StepError> {
        let changes = self.inner.run.lock().conversation().view_changes().len();
        let stored = self.inner.assistant.state().session.as_deref().map(SessionState::stored_changes);
        if stored.is_none_or(|stored| stored == changes) {
            return Ok(());
        }
        let written = self.write().await;
        written.map_err(|error| {
            let message = error.to_string();
            self.error = Some(error);
            StepError::failed(message)
        })
    }

    fn push_first(&mut self, report: UserMessage) {
        self.inner.push_first(report);
    }

    async fn has_messages(&mut self) -> Result<bool, StepError> {
        self.inner.has_messages().await
    }

    fn failed(&mut self, error: RunError) -> StepError {
        self.inner.failed(error)
    }
}

/// Returns whether the run already contains `message`, because an earlier process of the run took the message from the inbox.
fn is_added(run: &AgentLoop, message: &UserMessage) -> bool {
    let mut added = run.added().iter();
    added
        .any(|added| matches!(&**added, Message::User(added) if added.id.is_some() && added.id == message.id))
}

struct UnrecordedMessages {
    messages: Vec<Arc<Message>>,
    changes: Vec<ViewChange>,
    /// The position of the first of `changes` among all changes of the conversation.
    changes_from: usize,
    /// The position of the first of `messages` in the conversation.
    from: usize,
    /// The position of the run's first message in the conversation.
    added_from: usize,
    turn: u32,
    is_cut: bool,
    end: Option<End>,
}

impl RecordingSteps {
    /// Writes the messages, changes and ends that became final since the last step.
    async fn write(&mut self) -> Result<(), StoreError> {
        match self.write_new().await {
            Err(error) if error.is_conflict() && self.adopt_entries().await? => self.write_new().await,
            written => written,
        }
    }

    /// Accepts entries of an earlier prompt that are in the store although their write returned an error, for example a timeout. The next
    /// write stores the whole conversation again after these entries. Returns `false` if there are no such entries, or if another writer
    /// added entries.
    async fn adopt_entries(&mut self) -> Result<bool, StoreError> {
        let position = |session: &SessionState| (session.id.clone(), session.seq, session.writer.clone());
        let found = self.inner.assistant.state().session.as_deref().map(position);
        let Some((id, seq, writer)) = found else { return Ok(false) };
        let Some(last) = self.records.keeper.last_of_writer(&id, seq, &writer).await? else {
            return Ok(false);
        };
        if let Some(session) = &mut self.inner.assistant.state().session {
            (session.seq, session.is_rewritten, session.is_begin_stored) = (last, true, false);
        }
        Ok(true)
    }

    async fn write_new(&mut self) -> Result<(), StoreError> {
        let (records, assistant) = (self.records.clone(), self.inner.assistant.clone());
        if let Some(error) = records.failure() {
            return Err(error);
        }
        let new = self.unrecorded();
        let lost = assistant.state().session.as_mut().map(|session| std::mem::take(&mut session.lost));
        assistant.state().debts.add(lost.unwrap_or_default().into_iter().map(UnrecordedEnd::lost));
        records.record_missed(&assistant).await?;
        for (record, outcome) in self.not_recorded() {
            records.keeper.record_ended(record, outcome).await?;
        }
        self.seen = new.from + new.messages.len();
        records.forget_turns_before(new.turn);
        let Some((id, seq, entries)) = self.entries(&new) else { return Ok(()) };
        if entries.is_empty() {
            return Ok(());
        }
        let seq = records.keeper.append(&id, seq, entries).await?;
        if let Some(session) = &mut assistant.state().session {
            session.seq = seq;
            session.stored = self.seen;
            session.stored_changes = new.changes_from + new.changes.len();
            (session.is_rewritten, session.is_begin_stored) = (false, true);
            session.run = new.end.is_none().then(|| self.run_id().clone());
        }
        Ok(())
    }

    fn run_id(&self) -> &Arc<str> {
        &self.inner.performer.run_id
    }

    fn unrecorded(&self) -> UnrecordedMessages {
        let (stored, changes_from, is_rewritten) = {
            let state = self.inner.assistant.state();
            let session = state.session.as_deref();
            let changes_from = session.map_or(0, SessionState::stored_changes);
            let is_rewritten = session.is_some_and(|session| session.is_rewritten);
            (session.map(|session| session.stored), changes_from, is_rewritten)
        };
        let from = if is_rewritten { 0 } else { stored.map_or(self.seen, |stored| stored.min(self.seen)) };
        let run = self.inner.run.lock();
        let all = run.conversation().shared();
        UnrecordedMessages {
            messages: all.get(from..).unwrap_or_default().to_vec(),
            changes: run.conversation().view_changes().get(changes_from..).unwrap_or_default().to_vec(),
            changes_from,
            from,
            added_from: all.len() - run.added().len(),
            turn: run.turn(),
            is_cut: run.is_cut(),
            end: run.end().cloned(),
        }
    }

    /// Returns a record and an outcome for each new call that ended without running its tool, and for each new call that the provider ran.
    fn not_recorded(&self) -> Vec<(InvocationRecord, ToolOutcome)> {
        let (records, config) = (&self.records, &self.inner.performer.config);
        let (list, added_from, turn) = {
            let run = self.inner.run.lock();
            let list = run.conversation().list();
            let added_from = list.len() - run.added().len();
            (list, added_from, run.turn())
        };
        let mut notes = Vec::new();
        for (at, message) in list.iter().enumerate().skip(added_from.max(self.seen)) {
            if let Message::Assistant(reply) = &**message {
                for (ord, call, args, outcome) in at_the_provider(reply) {
                    let key = StepKey::new(self.run_id().clone(), turn, StepKind::Model, ord);
                    notes.push((records.new_plain_record(config, &key, &call, args, ""), outcome));
                }
            }
            let Message::ToolResult(result) = &**message else { continue };
            let reply = list.iter().take(at).rev().find_map(|message| message.as_assistant());
            let Some(reply) = reply else { continue };
            let call = (0..).zip(reply.tool_calls()).find(|(_, call)| call.id == result.call_id);
            let Some((ord, call)) = call else { continue };
            let key = StepKey::new(self.run_id().clone(), turn, StepKind::Tool, ord);
            if records.is_known(&key) {
                continue;
            }
            let args = call.args.value().unwrap_or_else(|| Value::String(call.args.text().to_owned()));
            notes.push((records.new_record(config, &key, call, args, &reply.text()), outcome_of(result)));
        }
        notes
    }

    /// Returns the id of the session, the number of its last entry, and the entries to append. Returns `None` without a session.
    fn entries(&self, new: &UnrecordedMessages) -> Option<(Arc<str>, u64, Vec<SessionEntry>)> {
        let state = self.inner.assistant.state();
        let session = state.session.as_ref()?;
        let is_resumed = session.run.as_ref() == Some(self.run_id());
        let at = now();
        let mut kinds = Vec::new();
        if session.is_rewritten {
            kinds.push((EntryKind::Reset, false));
        }
        let mut is_begin_stored = session.is_begin_stored;
        let begin = || if is_resumed { EntryKind::RunResume } else { EntryKind::RunBegin };
        for (index, message) in (new.from..).zip(&new.messages) {
            if index < session.stored && !session.is_rewritten {
                continue;
            }
            let is_own = index >= new.added_from;
            if is_own && !std::mem::replace(&mut is_begin_stored, true) {
                kinds.push((begin(), true));
            }
            kinds.push((self.message_entry(message, new.is_cut), is_own));
        }
        if !is_begin_stored {
            kinds.push((begin(), true));
        }
        kinds.extend(new.changes.iter().map(|change| (EntryKind::view(change.clone()), true)));
        if let Some(end) = &new.end {
            let detail = match end {
                End::Limit(reached) => Some(reached.to_string()),
                other => other.detail().map(str::to_owned),
            };
            kinds.push((EntryKind::RunEnd { stop: end.stop().to_string(), detail }, true));
        }
        let entry = |(kind, is_own): (EntryKind, bool)| {
            let entry = SessionEntry::new(kind).written_by(&*session.writer, at);
            if is_own { entry.in_run(&**self.run_id(), new.turn) } else { entry }
        };
        Some((session.id.clone(), session.seq, kinds.into_iter().map(entry).collect()))
    }

    /// Returns the entry of a message. Secret arguments of calls are left out, unless the application stores them.
    fn message_entry(&self, message: &Arc<Message>, is_cut: bool) -> EntryKind {
        let secrets = self.records.secrets(&self.inner.performer.config);
        let (message, left_out) = match secrets.and_then(|secrets| secrets.message(message)) {
            Some((less, left_out)) => (Arc::new(less), left_out),
            None => (message.clone(), Vec::new()),
        };
        match &*message {
            Message::Assistant(_) => EntryKind::message_without(message, left_out, is_cut),
            _ => EntryKind::message(message),
        }
    }
}

/// Returns the calls that the provider ran, if the reply contains their output. Each has its position, input and outcome. Positions begin
/// at 1, because 0 is the request.
fn at_the_provider(reply: &AssistantMessage) -> Vec<(u32, ToolCall, Value, ToolOutcome)> {
    let tools = || {
        (1..).zip(&reply.content).filter_map(|(ord, part)| match &part.content {
            Content::ProviderTool(tool) => Some((ord, tool)),
            _ => None,
        })
    };
    let ran = tools().filter_map(|(ord, tool)| {
        let output = tool.output.as_ref()?;
        // The input and the output of a call may be in two parts with the same id.
        let asked =
            tools().find(|(_, other)| other.id.is_some() && other.id == tool.id && other.input.is_some());
        let input = tool.input.as_ref().or(asked.and_then(|(_, asked)| asked.input.as_ref()));
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        let outcome = if tool.is_error {
            ToolOutcome::failed(OutcomeCode::TOOL_ERROR, text)
        } else {
            ToolOutcome::Completed(ToolOutput::text(text))
        };
        let call = ToolCall::new(tool.id.as_deref().unwrap_or_default(), &*tool.name, "{}");
        Some((ord, call, input.cloned().unwrap_or_default(), outcome))
    });
    ran.collect()
}

impl RunRecords {
    async fn record_missed(&self, assistant: &Assistant) -> Result<(), StoreError> {
        let next = || assistant.state().debts.first();
        while let Some(end) = next() {
            let key = end.key().clone();
            match self.keeper.record(end).await {
                Ok(()) => {}
                Err(error) if can_be_recorded_later(error.kind()) => return Err(error),
                // The end is dropped, because it would keep all later ends from being recorded.
                Err(error) => tracing::error!(%key, %error, "the end of a call was not recorded"),
            }
            assistant.state().debts.remove_first();
        }
        Ok(())
    }
}

fn can_be_recorded_later(kind: StoreErrorKind) -> bool {
    !matches!(kind, StoreErrorKind::Corrupt | StoreErrorKind::Conflict | StoreErrorKind::Other)
}
