//! Requests of a run on an engine: the model that was chosen, summaries and replies are remembered.

use crate::durable::journal::{RetryPolicy, RunJournal, Transient};
use crate::loop_core::{LimitReached, ModelReply};
use crate::message::{MessageList, StopReason};
use crate::model::{ModelError, ModelErrorKind};
use crate::runtime::{FitRequest, Performer, RunError, SummaryOutcome, ViewKeeper};
use crate::step_key::{StepKey, StepKind};
use crate::steps::{SharedLoop, StepError};
use crate::tool::{BoxFuture, combine::shown_after};

use super::JournalSteps;

/// Takes the error of a request that was too long from its reply. A reply that began stays in the conversation as one that failed.
pub(super) fn overflow_of(reply: &mut ModelReply, run: &SharedLoop) -> Result<Option<ModelError>, StepError> {
    let Some(text) = reply.too_long.take() else { return Ok(None) };
    if reply.message.stop_reason == StopReason::ContextFull {
        run.lock().record_replaced_reply(std::mem::take(&mut reply.message))?;
    } else {
        run.lock().record_refused_request();
    }
    Ok(Some(ModelError::new(ModelErrorKind::ContextTooLong, text)))
}

impl<J: RunJournal> JournalSteps<'_, J> {
    /// Returns the performer of the requests of this turn.
    pub(super) fn asking(&self) -> &Performer {
        self.asking.as_ref().map_or(&self.performer, |(_, performer)| performer)
    }

    /// Asks the model, in a step of this name.
    pub(super) async fn ask(
        &mut self,
        key: StepKey,
        name: String,
        messages: MessageList,
        run: &SharedLoop,
    ) -> Result<ModelReply, StepError> {
        let tools = match self.turn_tools(key.turn, &messages, run).await? {
            Ok(tools) => tools.unwrap_or_else(|| self.served.assistant.all_definitions()),
            Err(error) => {
                let error = ModelError::new(ModelErrorKind::InvalidRequest, error);
                return Ok(self.performer.no_reply(&error));
            }
        };
        // Computed before the view leaves messages out, so that a tool that was found stays available.
        let tools = shown_after(&tools, messages.iter().map(|message| &**message));
        let messages =
            if self.performer.manages_context() { self.context.view.messages().clone() } else { messages };
        let (performer, time_limit) = (self.asking().clone(), self.time_limit);
        let (served, timeout) = (self.served.clone(), self.served.model_timeout);
        let work = Box::pin(async move {
            let reply = performer.whole_reply(key, messages, tools, timeout).await;
            let mut reply = reply.map_err(|error| Transient(error.to_string()))?;
            if reply.message.stop_reason == StopReason::Aborted {
                let is_over = || time_limit.and_then(|limit| limit.reached(served.clock.now()));
                reply.limit = reply.limit.or_else(is_over);
            }
            Ok(reply)
        });
        let mut reply = match self.step(name, self.served.model_retry, work).await {
            // The last attempt failed.
            Err(StepError::Terminal { message }) => {
                self.asking().no_reply(&ModelError::new(ModelErrorKind::Other, message))
            }
            asked => asked?,
        };
        for notice in std::mem::take(&mut reply.notices) {
            if let Some(event) = self.performer.notice_event(notice) {
                run.lock().record_event(event);
            }
        }
        Ok(reply)
    }

    /// Has the application choose the model of the turn. The name is remembered.
    pub(super) async fn select_model(&mut self, key: &StepKey, run: &SharedLoop) -> Result<(), StepError> {
        self.asking.take_if(|(turn, _)| *turn != key.turn);
        let (turn, so_far) = {
            let run = run.lock();
            (key.turn, (key.turn, run.conversation().list(), run.usage().clone()))
        };
        if !self.performer.chooses_model(so_far.clone()) {
            return Ok(());
        }
        let performer = self.performer.clone();
        let work = Box::pin(async move {
            Ok(match performer.select_model(so_far).await {
                Some(chosen) => chosen.map_err(|error| error.to_string()),
                None => Err(performer.stop_reason().to_string()),
            })
        });
        let name = StepKey::new(key.run.clone(), turn, StepKind::Select, 0);
        let chosen: Result<Option<String>, String> = self.step(name, RetryPolicy::ONE_ATTEMPT, work).await?;
        let chosen = chosen.map_err(StepError::failed)?;
        let performer = self.performer.with_model(chosen.as_deref());
        self.asking = Some((turn, performer.map_err(|error| StepError::failed(error.to_string()))?));
        Ok(())
    }

    /// Changes the view of the conversation until the next request fits.
    pub(super) async fn fit_context(
        &mut self,
        key: &StepKey,
        run: &SharedLoop,
        overflow: Option<ModelError>,
    ) -> Result<(), StepError> {
        if !self.performer.manages_context() {
            return Ok(());
        }
        let (performer, mut context) = (self.asking().clone(), std::mem::take(&mut self.context));
        let request = FitRequest { key: key.clone(), overflow };
        let fitted = performer.fit_context(&mut context, run, request, self).await;
        self.context = context;
        fitted?.map_err(|error| StepError::failed(RunError::from(error).to_string()))
    }

    /// Fails if a request was too long although it was changed.
    pub(super) fn refuse_overflow(&self, reply: &mut ModelReply, run: &SharedLoop) -> Result<(), StepError> {
        let Some(overflow) = overflow_of(reply, run)? else { return Ok(()) };
        let error = self.asking().still_too_long(&self.context, overflow);
        Err(StepError::failed(RunError::from(error).to_string()))
    }

    /// Emits an event if another model answered than that of the last reply.
    pub(super) fn announce_switch(&self, run: &SharedLoop, reply: &ModelReply) {
        let mut run = run.lock();
        let event =
            self.asking().switch_event(run.conversation(), self.context.view.messages(), &reply.message);
        if let Some(event) = event {
            run.record_event(event);
        }
    }
}

impl<J: RunJournal> ViewKeeper for JournalSteps<'_, J> {
    async fn take_summary_request(
        &mut self,
        run: &SharedLoop,
    ) -> Result<Result<(), LimitReached>, StepError> {
        if let Err(reached) = run.lock().take_summary_request() {
            return Ok(Err(reached));
        }
        match self.reserve_request().await {
            Err(StepError::Limit(reached)) => Ok(Err(reached)),
            reserved => reserved.map(Ok),
        }
    }

    async fn summarize(
        &mut self,
        key: StepKey,
        work: BoxFuture<'static, SummaryOutcome>,
    ) -> Result<SummaryOutcome, StepError> {
        let work = Box::pin(async move { Ok(work.await) });
        self.step(key, RetryPolicy::ONE_ATTEMPT, work).await
    }

    async fn notify(&mut self) -> Result<(), StepError> {
        // The driver emits the events after the step.
        Ok(())
    }
}
