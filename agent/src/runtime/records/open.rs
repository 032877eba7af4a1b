//! Opens a session: restores its conversation and its interrupted run from the store.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::begin::result_message;
use super::keeper::{StoreAccess, now};
use super::session::{EndedRun, InterruptedRun, SessionState, StoredRun};
use crate::loop_core::{AgentLoop, StoredMessage};
use crate::message::{Conversation, Message, ToolCall, ViewChange};
use crate::runtime::assistant::Assistant;
use crate::runtime::builder::AssistantBuilder;
use crate::runtime::config::Config;
use crate::runtime::error::BuildError;
use crate::step_key::{StepKey, StepKind, refuse_reserved_name};
use crate::store::{EntryKind, InvocationStatus, SessionEntry, Store, StoreError};
use crate::tool::output::Control;

impl AssistantBuilder {
    /// Records every tool call in a store: the tool, the arguments, the outcome, the times and the attempt. With a
    /// [session](Self::session), the store also keeps the conversation.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Stores the arguments that are marked `secret`, too, in records and messages. By default, they are left out.
    pub fn store_secrets(mut self) -> Self {
        self.store_options.keeps_secrets = true;
        self
    }

    /// Sets the timeout of one request to the store. Default: 10 s. If the run is cancelled or reaches its time limit, a pending request to
    /// the store gets at most 1 s more.
    ///
    /// ```
    /// use agent::store::{InvocationQuery, Store as _, MemoryStore};
    /// use agent::{Assistant, ScriptedModel, json, model::reply, tool, tools};
    /// use std::time::Duration;
    ///
    /// /// Logs in.
    /// #[tool]
    /// fn log_in(user: String, #[arg(secret)] password: String) -> String {
    ///     format!("{user} is in")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// for keeps_secrets in [false, true] {
    ///     let store = MemoryStore::new();
    ///     let model = ScriptedModel::new([
    ///         reply().tool_call("log_in", r#"{"user": "ann", "password": "hunter2"}"#),
    ///         reply().text("You are in."),
    ///     ]);
    ///     let mut builder =
    ///         Assistant::builder(model).tools(tools![log_in]).store(store.clone()).store_timeout(Duration::from_secs(2));
    ///     if keeps_secrets {
    ///         builder = builder.store_secrets();
    ///     }
    ///     builder.build()?.prompt("Log me in.").await?;
    ///     let record = &store.list(InvocationQuery::new()).await?[0];
    ///     assert_eq!(record.is_withheld, !keeps_secrets);
    ///     assert_eq!(record.args["password"] == json!("hunter2"), keeps_secrets);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn store_timeout(mut self, after: Duration) -> Self {
        self.store_options.timeout = after;
        self
    }

    /// Builds the assistant of a session. The assistant begins with the conversation that is stored under this name, and stores each new
    /// message once it is final. A new session begins with the builder's [conversation](Self::conversation).
    ///
    /// This method ends the builder as [`build`](Self::build) does, so all options come before it, in any order.
    ///
    /// The stored conversation is [repaired](Conversation::repair): until the run continues, a call that still waits, for example for a
    /// decision, has a placeholder result, which says that no result was recorded. If an earlier process left a run unfinished (see
    /// [`agent::store`](crate::store)), [`continue_run`](Assistant::continue_run) continues this run, and [`prompt`](Assistant::prompt)
    /// abandons it and begins another one.
    ///
    /// ```
    /// use agent::store::MemoryStore;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::new();
    /// let ann = Assistant::builder(ScriptedModel::new(["Hello Ann."])).store(store.clone()).session("ann").await?;
    /// ann.prompt("I am Ann.").await?;
    /// let later = Assistant::builder(ScriptedModel::new(["You are Ann."]))
    ///     .store(store)
    ///     .system("Be brief.")
    ///     .session("ann")                                          // last
    ///     .await?;
    /// assert_eq!(later.prompt("Who am I?").await?.messages.len(), 2);
    /// assert_eq!(later.messages().len(), 4);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the assistant cannot be [built](Self::build) or has no store, or if the session cannot be read. Also fails if the name of
    /// the session has the form of sub-agents' names, `RUN/TURN/tool/POSITION`.
    pub async fn session(self, id: impl Into<Arc<str>>) -> Result<Assistant, BuildError> {
        let id = id.into();
        refuse_reserved_name(&id).map_err(|message| BuildError::ReservedName { message })?;
        self.build()?.into_session(id).await
    }
}

impl Assistant {
    /// Opens a session with this assistant. The caller has the only reference to the assistant, so no run can be active.
    pub(in crate::runtime) async fn into_session(self, id: Arc<str>) -> Result<Assistant, BuildError> {
        let config = self.config().clone();
        let Some(keeper) = &config.keeper else { return Err(BuildError::NoStore) };
        let stored = StoredSession::read(keeper.load(&id).await?);
        let opened = stored.open(keeper, &config, id).await?;
        let OpenedSession { session, conversation } = opened;
        let mut state = self.state();
        if session.seq > 0 {
            state.conversation = conversation;
        }
        state.session = Some(Box::new(session));
        drop(state);
        Ok(self)
    }

    /// Returns the id of the unfinished run that another process left in this [session](AssistantBuilder::session). Returns `None` once
    /// [`continue_run`](Self::continue_run) continues the run, or a prompt or a [reset](Self::reset) abandons it.
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
        Some(state.session.as_ref()?.interrupted.as_ref()?.core.run_id().clone())
    }

    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
    pub(crate) fn unfinished_messages(&self) -> Option<(Arc<str>, Vec<Arc<Message>>)> {
        let state = self.state();
        let core = &state.session.as_ref()?.interrupted.as_ref()?.core;
        Some((core.run_id().clone(), core.added().to_vec()))
    }

    /// Returns the messages that the session had when it was opened, each with its run and turn.
    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
    pub(crate) fn stored_messages(&self) -> Vec<(Arc<Message>, Arc<str>, u32)> {
        let state = self.state();
        let places = state.session.iter().flat_map(|session| &session.places);
        let with_place = state.conversation.shared().iter().cloned().zip(places);
        with_place.map(|(message, (run, turn))| (message, run.clone(), *turn)).collect()
    }

    /// Returns the stored state of a sub-agent's run, which is the only run of its session.
    pub(in crate::runtime) fn stored_run(&self) -> StoredRun {
        self.state().session.as_deref().map_or(StoredRun::New, SessionState::only_run)
    }

    pub(in crate::runtime) fn session(&self) -> Option<Arc<str>> {
        Some(self.state().session.as_ref()?.id.clone())
    }

    /// Records in the session that the conversation was reset. If the store fails, the reset is recorded with the next prompt.
    pub(in crate::runtime) async fn record_reset(&self) {
        let Some(keeper) = self.config().keeper.clone() else { return };
        let reset = {
            let mut state = self.state();
            let Some(session) = &mut state.session else { return };
            session.abandon_interrupted_run();
            (session.stored, session.stored_changes, session.run, session.is_rewritten) = (0, 0, None, true);
            #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
            session.places.clear();
            let entry = SessionEntry::new(EntryKind::Reset).written_by(&*session.writer, now());
            (session.id.clone(), session.seq, entry)
        };
        let (id, seq, entry) = reset;
        match keeper.append(&id, seq, vec![entry]).await {
            Ok(seq) => {
                if let Some(session) = &mut self.state().session {
                    (session.seq, session.is_rewritten) = (seq, false);
                }
            }
            Err(error) => tracing::error!(%error, "the reset of the session was not recorded"),
        }
    }

    /// Records the [`ViewChange`]s that were made outside of a run. If the store fails, they are recorded with the next prompt.
    pub(in crate::runtime) async fn record_view(&self) {
        let Some(keeper) = self.config().keeper.clone() else { return };
        let (id, seq, entries) = {
            let state = self.state();
            let Some(session) = state.session.as_ref().filter(|session| !session.is_rewritten) else {
                return;
            };
            // In the session, a `ViewChange` must follow its messages. If some are not stored yet, the next prompt stores both.
            if session.stored < state.conversation.len() {
                return;
            }
            let changes = state.conversation.view_changes().iter().skip(session.stored_changes());
            let at = now();
            let entry = |change: &ViewChange| {
                SessionEntry::new(EntryKind::view(change.clone())).written_by(&*session.writer, at)
            };
            (session.id.clone(), session.seq, changes.map(entry).collect::<Vec<_>>())
        };
        let count = entries.len();
        if count == 0 {
            return;
        }
        match keeper.append(&id, seq, entries).await {
            Ok(seq) => {
                if let Some(session) = &mut self.state().session {
                    (session.seq, session.stored_changes) = (seq, session.stored_changes + count);
                }
            }
            Err(error) => tracing::error!(%error, "the change of the view was not recorded"),
        }
    }
}

#[derive(Default)]
struct StoredSession {
    seq: u64,
    messages: Vec<Arc<Message>>,
    changes: Vec<ViewChange>,
    /// The last run with a stored end.
    ended: Option<EndedRun>,
    /// The id of the last run if it has no stored end, with the position of the run's first message.
    run: Option<(Arc<str>, usize)>,
    run_messages: Vec<StoredMessage>,
    /// The ids of the calls whose secret arguments were not stored.
    withheld: HashSet<String>,
    /// The run and turn of each message.
    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
    places: Vec<(Arc<str>, u32)>,
}

struct OpenedSession {
    session: SessionState,
    conversation: Conversation,
}

impl StoredSession {
    fn read(entries: Vec<(u64, SessionEntry)>) -> Self {
        let mut stored = Self::default();
        for (seq, entry) in entries {
            stored.seq = seq;
            match entry.kind {
                EntryKind::RunBegin => {
                    stored.run = Some((entry.run.into(), stored.messages.len()));
                    stored.run_messages.clear();
                    stored.withheld.clear();
                }
                EntryKind::Message { message, withheld, is_cut } => {
                    stored.withheld.extend(withheld);
                    #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
                    stored.places.push((entry.run.into(), entry.turn));
                    stored.run_messages.push(StoredMessage {
                        turn: entry.turn,
                        message: message.clone(),
                        is_cut,
                        control: Control::Continue,
                    });
                    stored.messages.push(message);
                }
                EntryKind::RunEnd { stop, detail } => {
                    stored.ended = stored.run.take().map(|(_, from)| EndedRun { from, stop, detail });
                }
                EntryKind::Reset => stored = Self { seq, ..Self::default() },
                EntryKind::View { change } => stored.changes.push(*change),
                EntryKind::RunResume => {}
                EntryKind::Unknown(_) => {
                    tracing::warn!(seq, "skipped an entry of a later version");
                }
            }
        }
        stored
    }

    async fn open(
        self,
        keeper: &StoreAccess,
        config: &Config,
        id: Arc<str>,
    ) -> Result<OpenedSession, StoreError> {
        let Self { seq, messages, changes, run, ended, mut run_messages, withheld, .. } = self;
        let mut conversation: Conversation = messages.iter().cloned().collect();
        for change in &changes {
            conversation.record_view_change(change.clone());
        }
        let (mut interrupted, mut lost) = (None, Vec::new());
        if let Some((run, from)) = run.clone() {
            let pending =
                add_recorded_results(keeper, config, &run, &run_messages, &mut conversation).await?;
            add_recorded_controls(keeper, &run, &mut run_messages).await?;
            let before = messages.get(..from).unwrap_or_default();
            let is_sound = before.iter().cloned().collect::<Conversation>().is_sound();
            let core =
                AgentLoop::restore(run, config.rules.clone(), before, &run_messages).filter(|_| is_sound);
            match core {
                Some(mut core) => {
                    core.restore_view(changes.iter().cloned());
                    interrupted = Some(InterruptedRun { core, withheld, pending });
                }
                // The run is not resumed: it cannot be restored, or the messages before it are not sound.
                None => lost = pending,
            }
        }
        for repair in conversation.repair() {
            tracing::warn!(session = %id, %repair, "the conversation was repaired");
        }
        // If the repair only added messages at the end, the next run appends them. If it changed other messages, the next run stores the
        // whole conversation again.
        let repaired = conversation.shared().get(..messages.len());
        let is_same = repaired.is_some_and(|repaired| {
            repaired.iter().zip(&messages).all(|(one, other)| Arc::ptr_eq(one, other))
        });
        let session = SessionState {
            id,
            writer: crate::runtime::new_id("writer"),
            seq,
            stored: if is_same { messages.len() } else { 0 },
            stored_changes: if is_same { changes.len() } else { 0 },
            is_rewritten: !is_same,
            ended,
            run: run.map(|(run, _)| run),
            is_begin_stored: false,
            interrupted: interrupted.filter(|_| is_same),
            lost,
            #[cfg(any(feature = "ui-ai-sdk", feature = "ui-ag-ui"))]
            places: if is_same { self.places } else { Vec::new() },
        };
        Ok(OpenedSession { session, conversation })
    }
}

/// Sets the `control` of each result of the last turn, which says whether the run continues, to the value in the record of the call.
async fn add_recorded_controls(
    keeper: &StoreAccess,
    run: &Arc<str>,
    run_messages: &mut [StoredMessage],
) -> Result<(), StoreError> {
    let after_reply = run_messages.iter().rposition(|stored| stored.message.as_assistant().is_some());
    let Some((reply, results)) = after_reply.and_then(|at| run_messages.get_mut(at..)?.split_first_mut())
    else {
        return Ok(());
    };
    if results.iter().any(|stored| stored.message.as_tool_result().is_none()) {
        return Ok(());
    }
    for (ord, stored) in (0..).zip(results) {
        let key = StepKey::new(run.clone(), reply.turn, StepKind::Tool, ord);
        if let Some(end) = keeper.get(&key).await?.and_then(|record| record.end) {
            stored.control = end.control;
        }
    }
    Ok(())
}

/// Adds recorded results to the conversation, for the calls of the last reply that have no result yet. Returns the keys of the calls that
/// have begun and not ended.
async fn add_recorded_results(
    keeper: &StoreAccess,
    config: &Config,
    run: &Arc<str>,
    run_messages: &[StoredMessage],
    conversation: &mut Conversation,
) -> Result<Vec<StepKey>, StoreError> {
    let (mut pending, mut results) = (Vec::new(), Vec::new());
    let last = run_messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, stored)| Some((at, stored.turn, stored.message.as_assistant()?)));
    let Some((at, turn, reply)) = last else { return Ok(pending) };
    let ended = run_messages.get(at + 1..).unwrap_or_default().len();
    let calls: Vec<(u32, &ToolCall)> = (0..).zip(reply.tool_calls()).skip(ended).collect();
    for (ord, call) in calls {
        let key = StepKey::new(run.clone(), turn, StepKind::Tool, ord);
        let Some(record) = keeper.get(&key).await? else { continue };
        if record.status == InvocationStatus::Pending {
            pending.push(key);
            continue;
        }
        let own = config.rules.tools.get(&call.name).and_then(|tool| tool.max_result_bytes);
        results.extend(result_message(&record, own.unwrap_or(config.rules.max_result_bytes)));
    }
    conversation.extend(results.into_iter().map(Message::ToolResult));
    Ok(pending)
}
