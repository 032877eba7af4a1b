//! Decisions on calls: asking for them, and continuing with those that arrived later.

use std::pin::pin;

use futures_util::future::{Either, join_all, select};

use super::{Decision, Resumption};
use crate::args::Plan;
use crate::loop_core::{ApprovalRequest, CallDecision, CallEnd, SteeringPolicy, Step};
use crate::panics::catch;
use crate::runtime::in_process::InProcessSteps;
use crate::runtime::perform::Performer;
use crate::runtime::segment::keep_whole;
use crate::step_key::{StepKey, StepKind};
use crate::steps::StepError;
use crate::tool::outcome::{OutcomeCode, ToolOutcome};

impl InProcessSteps {
    /// Asks the application's function whether calls may run. Returns nothing if a steering message ended them meanwhile.
    pub(in crate::runtime) async fn decide(
        &mut self,
        requests: Vec<(StepKey, ApprovalRequest)>,
    ) -> Result<Vec<CallDecision>, StepError> {
        if self.is_steered() {
            return Ok(Vec::new());
        }
        let config = self.performer.config.clone();
        let Some(approver) = &config.approver else { return Ok(vec![CallDecision::Later; requests.len()]) };
        let asked = requests.iter().map(|(_, request)| {
            let (approver, plan) = (approver.clone(), self.own_plan(&request.call.name));
            let request = request.clone().with_plan(plan);
            async move { approver(request).await }
        });
        let asked: Vec<_> = asked.collect();
        let watches = config.rules.steering != SteeringPolicy::AfterBatch;
        let assistant = self.assistant.clone();
        let decisions = self.performer.hook(|| {
            Box::pin(async move {
                let mut decided = join_all(asked);
                loop {
                    if !watches {
                        return Ok(Some(decided.await));
                    }
                    match select(decided, pin!(assistant.steered())).await {
                        Either::Left((decisions, _)) => return Ok(Some(decisions)),
                        Either::Right(((), _)) if assistant.is_steered() => return Ok(None),
                        // A message that was taken before.
                        Either::Right(((), open)) => decided = open,
                    }
                }
            })
        });
        let decisions = match decisions.await.ok_or_else(|| self.stopped())? {
            Ok(None) => {
                self.is_steered();
                return Ok(Vec::new());
            }
            Ok(Some(decisions)) => decisions,
            Err(error) => {
                let text = format!("the decision could not be made: {error}");
                vec![Decision::Deny(text); requests.len()]
            }
        };
        if decisions.contains(&Decision::Later) {
            return Ok(vec![CallDecision::Later; requests.len()]);
        }
        let made = requests.into_iter().map(|(_, request)| request).zip(decisions);
        self.decided(made.collect()).await
    }

    /// Returns the plan of the tool as the source of the run is shown it, if that is another one.
    fn own_plan(&self, tool: &str) -> Option<Plan> {
        let Performer { config, context, .. } = &self.performer;
        let (source, tool) = (context.source()?, config.registry.get(tool)?);
        let own = catch(|| tool.definition_for(source)).ok()?;
        own.ok().flatten().map(|own| own.plan().clone())
    }

    /// Returns what follows from decisions.
    async fn decided(
        &mut self,
        made: Vec<(ApprovalRequest, Decision)>,
    ) -> Result<Vec<CallDecision>, StepError> {
        let reply = self.run.lock().conversation().shared().last().cloned();
        let mut all = Vec::with_capacity(made.len());
        for (request, decision) in made {
            let mut decided = self.performer.decided(&request, decision);
            // All calls of a resumed run are checked again before they run.
            if !self.checks_again {
                let asked = self.performer.ask_about_edit(request, decided, reply.clone()).await;
                decided = asked.ok_or_else(|| self.stopped())?;
            }
            all.push(decided);
        }
        Ok(all)
    }

    /// Continues a suspended run with the decisions and results that arrived meanwhile.
    pub(in crate::runtime) async fn continue_with(
        &mut self,
        resumption: Resumption,
    ) -> Result<(), StepError> {
        let Resumption { decided, arrived } = resumption;
        if decided.is_empty() && arrived.is_empty() {
            // With records of calls, it is known which of them had begun.
            if self.records.is_none() {
                self.give_up_lost().await?;
            }
            return Ok(());
        }
        if !decided.is_empty() {
            let decided = self.decided(decided).await?;
            self.run.lock().record_decisions(decided)?;
            self.emit().await;
        }
        for (ord, outcome) in arrived {
            let mut end = CallEnd::ran(outcome, 0);
            let key =
                StepKey::new(self.performer.run_id.clone(), self.run.lock().turn(), StepKind::Tool, ord);
            keep_whole(&self.performer.config, &self.assistant, &key, None, &mut end).await;
            if let Some(records) = self.records.clone() {
                Box::pin(records.finish(&key, &end)).await;
            }
            self.run.lock().record_call_end(ord, end)?;
            self.emit().await;
        }
        Ok(())
    }

    /// Ends calls of `once` tools: they may have begun before the run was stored.
    async fn give_up_lost(&mut self) -> Result<(), StepError> {
        let next = self.run.lock().next();
        let Step::CallTools { calls } = next else { return Ok(()) };
        for (key, call) in calls {
            let effect = self.performer.config.registry.get(&call.name).map(|tool| tool.policy().effect);
            if effect.unwrap_or_default() == crate::tool::policy::Effect::Once {
                let reason = crate::message::LOST.to_owned();
                let lost = ToolOutcome::Interrupted { code: OutcomeCode::LOST, reason };
                self.run.lock().record_call_end(key.ord, CallEnd::new(lost))?;
                self.emit().await;
            }
        }
        Ok(())
    }
}
