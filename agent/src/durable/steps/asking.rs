//! Requests to the model, as recorded steps of a durable run.

use std::fmt;
use std::sync::Arc;

use crate::durable::journal::{Recordable, RetryPolicy, RunJournal, Transient};
use crate::loop_core::{ModelReply, Spent};
use crate::message::{StopReason, UserMessage};
use crate::model::{ModelError, ModelErrorKind};
use crate::runtime::{ContextState, Performer, RunError, TurnChoices, TurnSteps};
use crate::step_key::StepKey;
use crate::steps::StepError;
use crate::tool::{BoxFuture, definition::ToolDefinition};

use super::JournalSteps;

impl<J: RunJournal> JournalSteps<'_, J> {
    pub(super) fn asking(&self) -> &Performer {
        self.choices.performer(&self.performer)
    }
}

/// Each request, each summary, and each choice or decision of the hooks is a step of the journal.
impl<J: RunJournal> TurnSteps for JournalSteps<'_, J> {
    const REMEMBERS: bool = true;

    fn parts(&mut self) -> (&Performer, &mut TurnChoices) {
        (&self.performer, &mut self.choices)
    }

    fn replace_context(&mut self, context: ContextState) -> ContextState {
        std::mem::replace(&mut self.context, context)
    }

    async fn perform<T: Recordable>(
        &mut self,
        name: impl fmt::Display + Send,
        work: BoxFuture<'static, T>,
    ) -> Result<T, StepError> {
        let work = Box::pin(async move { Ok(work.await) });
        self.step(name, RetryPolicy::ONE_ATTEMPT, work).await
    }

    async fn ask(
        &mut self,
        key: &StepKey,
        attempt: &'static str,
        tools: Arc<[ToolDefinition]>,
    ) -> Result<(ModelReply, Option<ModelError>), StepError> {
        let (run, name) = (self.run.clone(), format!("{key}{attempt}"));
        let (key, messages) = (key.clone(), run.lock().conversation().list());
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
            // All attempts failed, so the run gets a failed reply.
            Err(StepError::Terminal { message }) => {
                self.asking().no_reply(&ModelError::new(ModelErrorKind::Other, message))
            }
            asked => asked?,
        };
        self.performer.record_notices(std::mem::take(&mut reply.notices), &run);
        self.asking().record_switch(self.context.view.messages(), &reply.message, &run);
        let too_long = reply.too_long.take();
        Ok((reply, too_long.map(|text| ModelError::new(ModelErrorKind::ContextTooLong, text))))
    }

    async fn count_request(&mut self) -> Result<(), StepError> {
        if self.limits.shared.is_none() {
            return Ok(());
        }
        let reserved = self.reserve(Spent { requests: 1, ..Spent::default() }).await?;
        reserved.reached.map_or(Ok(()), |reached| Err(StepError::Limit(reached)))
    }

    fn push_first(&mut self, report: UserMessage) {
        self.report = Some(Arc::new(report.into()));
    }

    async fn has_messages(&mut self) -> Result<bool, StepError> {
        self.count_messages().await?;
        Ok(!self.left.is_empty())
    }

    async fn check_run(&mut self) -> Result<(), StepError> {
        self.check_stop().await
    }

    fn failed(&mut self, error: RunError) -> StepError {
        StepError::failed(error.to_string())
    }
}
