//! Runs the tools of a reply's calls. A tool that asked a person runs again when its questions have inputs.

use super::JournalSteps;
use crate::durable::PendingAsk;
use crate::durable::journal::{RunJournal, StepResult, ToolRequest};
use crate::durable::play::call_tool;
use crate::loop_core::{CallEnd, Prepared, Spent};
use crate::message::ToolCall;
use crate::step_key::StepKey;
use crate::steps::{SharedLoop, StepError};
use crate::tool::outcome::ToolOutcome;
use crate::tool::question::{Question, QuestionInput};
use serde_json::Value;
use std::sync::Arc;

impl<J: RunJournal> JournalSteps<'_, J> {
    /// Reserves the calls that would run, within the limit that a root run shares with its sub-agents. The `AgentLoop` refuses calls
    /// beyond the reserved number.
    pub(super) async fn reserve_calls(&mut self, prepared: &[Prepared]) -> Result<(), StepError> {
        if self.limits.shared.as_ref().is_none_or(|limits| limits.tool_calls.is_none()) {
            return Ok(());
        }
        let runs =
            |prepared: &&Prepared| matches!(prepared, Prepared::Ready(ready) if ready.cached.is_none());
        let tool_calls = u64::try_from(prepared.iter().filter(runs).count()).unwrap_or(u64::MAX);
        let reserved = self.reserve(Spent { tool_calls, ..Spent::default() }).await?;
        self.limits.calls.set_calls(reserved.tool_calls);
        Ok(())
    }

    /// Runs calls. For a tool that is an assistant, only starts the run. Calls that asked a person run again once all questions have
    /// inputs.
    pub(super) async fn run_calls(
        &mut self,
        calls: Vec<(StepKey, Arc<ToolCall>)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        let calls = self.start_children(calls, run).await?;
        let mut calls = self.read_results(calls, run)?;
        let mut restart = 0;
        while !calls.is_empty() {
            let ends = self.call_tools(&calls, restart, run).await?;
            let asks = |end: &CallEnd| !end.asked.is_empty();
            let asking: Vec<bool> = ends.iter().map(asks).collect();
            let mut questions = Vec::new();
            {
                let mut run = run.lock();
                for ((key, _), end) in calls.iter().zip(ends) {
                    questions.extend(end.asked.iter().map(|question| (key.ord, question.clone())));
                    run.record_call_end(key.ord, end)?;
                }
            }
            let mut asking = asking.into_iter();
            calls.retain(|_| asking.next() == Some(true));
            if !calls.is_empty() {
                self.ask_person(questions, run).await?;
            }
            restart += 1;
        }
        Ok(())
    }

    /// Waits for a person's inputs to these questions, and records them. Each question comes with the position of its call.
    async fn ask_person(
        &mut self,
        questions: Vec<(u32, Question)>,
        run: &SharedLoop,
    ) -> Result<(), StepError> {
        let asks = questions.iter().map(|(_, question)| PendingAsk::Question { question: question.clone() });
        let inputs = self.wait(asks.collect()).await?.into_iter().map(input);
        let mut of_calls: Vec<(u32, Vec<QuestionInput>)> = Vec::new();
        for ((ord, _), input) in questions.iter().zip(inputs) {
            match of_calls.last_mut() {
                Some((last, inputs)) if last == ord => inputs.push(input),
                _ => of_calls.push((*ord, vec![input])),
            }
        }
        let mut run = run.lock();
        for (ord, inputs) in of_calls {
            run.record_inputs(ord, inputs);
        }
        Ok(())
    }

    /// Runs calls. A single call is a step of the run's journal; several calls run concurrently, each with its own journal.
    async fn call_tools(
        &mut self,
        calls: &[(StepKey, Arc<ToolCall>)],
        restart: u32,
        run: &SharedLoop,
    ) -> Result<Vec<CallEnd>, StepError> {
        let reply = self.reply.clone();
        let text = reply.as_ref().map(|reply| reply.text()).unwrap_or_default();
        let mut requests = {
            let run = run.lock();
            let request = |(key, call): &(StepKey, Arc<ToolCall>)| ToolRequest {
                key: key.clone(),
                call: call.clone(),
                text: if key.ord == 0 { text.clone() } else { String::new() },
                state: run.state().clone(),
                inputs: run.inputs_of(key.ord).to_vec(),
                restart,
                path: run.path().clone(),
                limit: self.work.remaining(),
            };
            calls.iter().map(request).collect::<Vec<_>>()
        };
        if requests.len() == 1
            && let Some(request) = requests.pop()
        {
            let cancel = self.performer.cancel_token().clone();
            let known = (reply, self.take_checked(request.key.ord));
            let ended = call_tool(self.served, self.journal, request, known, cancel).await?;
            self.work.add(ended.took);
            self.end_step(ended.stop, ended.at);
            return Ok(vec![ended.value]);
        }
        let batch = self.journal.call_tools(requests).await?;
        let stop = batch.stop;
        let longest = batch.ends.iter().flatten().map(|end| end.took).max();
        self.work.add(longest.unwrap_or_default());
        self.end_step(stop.clone(), None);
        let end = |end: Option<StepResult<CallEnd>>| match (end, &stop) {
            (Some(end), _) => {
                self.end_step(end.stop, end.at);
                end.value
            }
            (None, Some(reason)) => CallEnd::new(ToolOutcome::aborted(reason)),
            (None, None) => CallEnd::new(ToolOutcome::lost()),
        };
        Ok(batch.ends.into_iter().map(end).collect())
    }
}

/// Reads a person's input. A missing, postponed or unreadable input dismisses the question. The tool itself checks the input, and asks
/// again if it does not fit.
fn input(answer: Option<Value>) -> QuestionInput {
    match answer.map(serde_json::from_value) {
        Some(Ok(QuestionInput::Later) | Err(_)) | None => QuestionInput::Cancel,
        Some(Ok(input)) => input,
    }
}
