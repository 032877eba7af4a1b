//! The messages of a session, written down as they become final.

use std::collections::HashSet;
use std::sync::Arc;

use super::begin::RunRecords;
use super::{UnrecordedEnd, now};
use crate::loop_core::{AgentLoop, outcome_of};
use crate::message::{AssistantMessage, Content, Conversation, Message, ToolCall};
#[cfg(doc)]
use crate::runtime::AssistantBuilder;
use crate::runtime::approval::Resumption;
use crate::runtime::assistant::{Assistant, State};
use crate::runtime::drive::Driver;
use crate::store::{EntryKind, NewInvocation, SessionEntry, StoreError};
use crate::{FailureCode, StepKey, StepKind, ToolOutcome, ToolOutput, Value};

/// Where a session is written down, and how far.
pub(in crate::runtime) struct SessionState {
    pub(super) id: Arc<str>,
    /// Names this opening of it.
    pub(super) writer: String,
    /// The last entry.
    pub(super) seq: u64,
    /// How many messages of the conversation are stored.
    pub(super) stored: usize,
    /// Whether what is stored is not the beginning of the conversation: then all of it is written again.
    pub(super) is_rewritten: bool,
    /// The last run of which anything is stored, and not its end.
    pub(super) run: Option<Arc<str>>,
    /// Whether the run that goes on was told of.
    pub(super) is_told: bool,
    /// What a process that is gone left.
    pub(super) left: Option<LeftRun>,
    /// Calls that nobody will go on with.
    pub(super) lost: Vec<StepKey>,
}

/// A run that was left in the middle.
pub(super) struct LeftRun {
    pub(super) core: AgentLoop,
    pub(super) withheld: HashSet<String>,
    /// Its calls that have begun and not ended.
    pub(super) pending: Vec<StepKey>,
}

/// Where a run was left.
#[derive(Default)]
pub(in crate::runtime) struct Left {
    /// In this turn.
    pub(super) turn: u32,
    /// The calls whose secret arguments were not stored.
    pub(super) withheld: HashSet<String>,
}

/// A run that goes on.
pub(in crate::runtime) struct Restored {
    pub(in crate::runtime) core: AgentLoop,
    pub(in crate::runtime) resumption: Resumption,
}

impl SessionState {
    /// A new run begins: what was left stays as it is.
    pub(in crate::runtime) fn leaves_run(&mut self) {
        self.is_told = false;
        if let Some(left) = self.left.take() {
            self.lost.extend(left.pending);
        }
    }

    /// The conversation as this run left it.
    pub(in crate::runtime) fn left_by(&self, run: &Arc<str>) -> Option<Conversation> {
        let left = self.left.as_ref().filter(|left| left.core.run_id() == run);
        left.map(|left| left.core.conversation().clone())
    }

    /// This run goes on, from wherever it was kept.
    pub(in crate::runtime) fn goes_on_with(&mut self, run: &Arc<str>) {
        match self.left.take() {
            Some(left) if left.core.run_id() != run => self.lost.extend(left.pending),
            _ => {}
        }
        self.is_told = false;
    }
}

impl State {
    /// The run that was left, to go on.
    pub(in crate::runtime) fn restore(&mut self) -> Option<Restored> {
        let session = self.session.as_mut()?;
        let LeftRun { core, withheld, .. } = session.left.take()?;
        session.is_told = false;
        let left = Left { turn: core.turn(), withheld };
        Some(Restored { core, resumption: Resumption { left: Some(left), ..Resumption::default() } })
    }
}

impl Assistant {
    /// The run that another process left in the middle of this [session](AssistantBuilder::session), until it goes on with
    /// [`continue_run`](Self::continue_run) or a prompt leaves it.
    ///
    /// ```
    /// # use agent::{Assistant, RunError, RunOutput};
    /// # async fn example(assistant: Assistant) -> Result<(), RunError> {
    /// if assistant.unfinished_run().is_some() {
    ///     println!("{}", assistant.continue_run().await?.text());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn unfinished_run(&self) -> Option<Arc<str>> {
        let state = self.state();
        Some(state.session.as_ref()?.left.as_ref()?.core.run_id().clone())
    }

    /// How many messages are in the session.
    pub(in crate::runtime) fn stored(&self) -> Option<usize> {
        Some(self.state().session.as_ref()?.stored)
    }

    /// The id of the session.
    pub(in crate::runtime) fn session(&self) -> Option<Arc<str>> {
        Some(self.state().session.as_ref()?.id.clone())
    }

    /// Everything is forgotten: the session is told.
    pub(in crate::runtime) async fn forget_session(&self) {
        let Some(keeper) = self.config().keeper.clone() else { return };
        let told = {
            let mut state = self.state();
            let Some(session) = &mut state.session else { return };
            session.leaves_run();
            (session.stored, session.run, session.is_rewritten) = (0, None, true);
            let entry = SessionEntry::new(EntryKind::Reset).written_by(&*session.writer, now());
            (session.id.clone(), session.seq, entry)
        };
        let (id, seq, entry) = told;
        match keeper.append(&id, seq, vec![entry]).await {
            Ok(seq) => {
                if let Some(session) = &mut self.state().session {
                    (session.seq, session.is_rewritten) = (seq, false);
                }
            }
            Err(error) => tracing::error!(%error, "the session was not told that everything is forgotten"),
        }
    }
}

/// What is new in a run.
struct News {
    messages: Vec<Arc<Message>>,
    /// The position of the first of them.
    from: usize,
    /// Where the run's own begin.
    added_from: usize,
    turn: u32,
    is_cut: bool,
    stop: Option<&'static str>,
}

impl Driver {
    /// Writes down what became final. Where that is not possible the run ends; true when it ended just now.
    pub(in crate::runtime) async fn write_down(&mut self) -> bool {
        let Some(records) = self.records.clone().filter(|_| self.store_error.is_none()) else { return false };
        let written = match records.failure() {
            Some(error) => Err(error),
            None => self.write(&records).await,
        };
        let Err(error) = written else { return false };
        let text = error.to_string();
        self.store_error = Some(error);
        let goes_on = self.core(|core, _| core.end().is_none()).unwrap_or_default();
        if goes_on && self.stop.is_set() {
            // It had to end anyway, and ends as what it was told to.
            self.abort();
        } else {
            self.core(|core, _| core.fail(&text));
        }
        goes_on
    }

    async fn write(&mut self, records: &Arc<RunRecords>) -> Result<(), StoreError> {
        let Some(news) = self.news() else { return Ok(()) };
        let lost = self.assistant.state().session.as_mut().map(|session| std::mem::take(&mut session.lost));
        self.assistant.state().debts.add(lost.unwrap_or_default().into_iter().map(UnrecordedEnd::lost));
        let assistant = self.assistant.clone();
        records.record_missed(&assistant).await?;
        for (new, outcome) in self.not_noted(records) {
            records.keeper.record_ended(new, outcome).await?;
        }
        self.seen = news.from + news.messages.len();
        records.forget_turns_before(news.turn);
        let Some((id, seq, entries)) = self.entries(records, &news) else { return Ok(()) };
        if entries.is_empty() {
            return Ok(());
        }
        let seq = records.keeper.append(&id, seq, entries).await?;
        if let Some(session) = &mut self.assistant.state().session {
            session.seq = seq;
            session.stored = self.seen;
            (session.is_rewritten, session.is_told) = (false, true);
            session.run = news.stop.is_none().then(|| self.run_id.clone());
        }
        Ok(())
    }

    /// What neither a record nor the session has.
    fn news(&self) -> Option<News> {
        let (stored, is_rewritten) = {
            let state = self.assistant.state();
            let session = state.session.as_ref();
            (session.map(|session| session.stored), session.is_some_and(|session| session.is_rewritten))
        };
        let from = if is_rewritten { 0 } else { stored.map_or(self.seen, |stored| stored.min(self.seen)) };
        self.core(|core, _| {
            let all = core.conversation().shared();
            News {
                messages: all.get(from..).unwrap_or_default().to_vec(),
                from,
                added_from: all.len() - core.added().len(),
                turn: core.turn(),
                is_cut: core.is_cut(),
                stop: core.end().map(|end| end.stop().as_str()),
            }
        })
    }

    /// Calls that ended without having run, and what the provider ran itself, have records, too.
    pub(super) fn not_noted(&self, records: &RunRecords) -> Vec<(NewInvocation, ToolOutcome)> {
        let said = |core: &mut AgentLoop| {
            let list = core.conversation().list();
            let added_from = list.len() - core.added().len();
            (list, added_from, core.turn())
        };
        let Some((list, added_from, turn)) = self.core(|core, _| said(core)) else { return Vec::new() };
        let mut notes = Vec::new();
        for (at, message) in list.iter().enumerate().skip(added_from.max(self.seen)) {
            if let Message::Assistant(reply) = &**message {
                for (ord, call, args, outcome) in at_the_provider(reply) {
                    let key = StepKey::new(self.run_id.clone(), turn, StepKind::Model, ord);
                    notes.push((records.whole_record(&self.config, &key, &call, args, ""), outcome));
                }
            }
            let Message::ToolResult(result) = &**message else { continue };
            let reply = list.iter().take(at).rev().find_map(|message| message.as_assistant());
            let Some(reply) = reply else { continue };
            let call = (0..).zip(reply.tool_calls()).find(|(_, call)| call.id == result.call_id);
            let Some((ord, call)) = call else { continue };
            let key = StepKey::new(self.run_id.clone(), turn, StepKind::Tool, ord);
            if records.is_known(&key) {
                continue;
            }
            let args = call.args.value().unwrap_or_else(|| Value::String(call.args.text().to_owned()));
            notes.push((
                records.new_record(&self.config, &key, call, args, &reply.text()),
                outcome_of(result),
            ));
        }
        notes
    }

    /// The entries of what is new, for the session if there is one.
    fn entries(&self, records: &RunRecords, news: &News) -> Option<(Arc<str>, u64, Vec<SessionEntry>)> {
        let state = self.assistant.state();
        let session = state.session.as_ref()?;
        let is_resumed = session.run.as_ref() == Some(&self.run_id);
        let at = now();
        let mut kinds = Vec::new();
        if session.is_rewritten {
            kinds.push((EntryKind::Reset, false));
        }
        let mut is_told = session.is_told;
        let begin = || if is_resumed { EntryKind::RunResume } else { EntryKind::RunBegin };
        for (index, message) in (news.from..).zip(&news.messages) {
            if index < session.stored && !session.is_rewritten {
                continue;
            }
            let is_own = index >= news.added_from;
            if is_own && !std::mem::replace(&mut is_told, true) {
                kinds.push((begin(), true));
            }
            kinds.push((self.message_entry(records, message, news.is_cut), is_own));
        }
        if !is_told {
            kinds.push((begin(), true));
        }
        if let Some(stop) = news.stop {
            kinds.push((EntryKind::run_end(stop), true));
        }
        let entry = |(kind, is_own): (EntryKind, bool)| {
            let entry = SessionEntry::new(kind).written_by(&*session.writer, at);
            if is_own { entry.in_run(&*self.run_id, news.turn) } else { entry }
        };
        Some((session.id.clone(), session.seq, kinds.into_iter().map(entry).collect()))
    }

    /// Returns the entry of a message. Secret arguments of calls are left out.
    fn message_entry(&self, records: &RunRecords, message: &Arc<Message>, is_cut: bool) -> EntryKind {
        let secrets = records.secrets(&self.config);
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

/// What the provider ran itself, with the position of the answer behind the request for it, which is 0.
fn at_the_provider(reply: &AssistantMessage) -> Vec<(u32, ToolCall, Value, ToolOutcome)> {
    let tools = || {
        (1..).zip(&reply.content).filter_map(|(ord, part)| match &part.content {
            Content::ProviderTool(tool) => Some((ord, tool)),
            _ => None,
        })
    };
    let ran = tools().filter_map(|(ord, tool)| {
        let output = tool.output.as_ref()?;
        // Its call may be a part of its own.
        let asked =
            tools().find(|(_, other)| other.id.is_some() && other.id == tool.id && other.input.is_some());
        let input = tool.input.as_ref().or(asked.and_then(|(_, asked)| asked.input.as_ref()));
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        let outcome = if tool.is_error {
            ToolOutcome::failed(FailureCode::TOOL_ERROR, text)
        } else {
            ToolOutcome::Completed(ToolOutput::text(text))
        };
        let call = ToolCall::new(tool.id.as_deref().unwrap_or_default(), &*tool.name, "{}");
        Some((ord, call, input.cloned().unwrap_or_default(), outcome))
    });
    ran.collect()
}
