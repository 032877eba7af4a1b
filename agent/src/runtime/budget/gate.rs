//! Delays a request until its cost is reserved, and the end of its reply until the real cost replaces the reserved cost.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{BoundBudgets, HeldBudgets};
use crate::message::AssistantMessage;
use crate::model::{Model, ModelError, ModelRequest, StepCx};
use crate::tool::BoxFuture;

pub(in crate::runtime) struct BudgetGate {
    phase: GatePhase,
}

enum GatePhase {
    Reserve(BoxFuture<'static, Result<(HeldBudgets, ModelRequest), ModelError>>),
    Read(HeldBudgets),
    Settle(BoxFuture<'static, ()>),
    Over,
}

impl BudgetGate {
    pub(in crate::runtime) fn new(
        bound: BoundBudgets,
        step: &StepCx,
        model: Arc<dyn Model>,
        mut request: ModelRequest,
    ) -> Self {
        let step = step.clone();
        let reserve = Box::pin(async move {
            let (held, limited) = bound.reserve(&step, model, &request).await?;
            if limited.is_some() {
                request.max_tokens = limited;
            }
            Ok((held, request))
        });
        Self { phase: GatePhase::Reserve(reserve) }
    }

    /// Waits until the cost is reserved, and returns the request, which may then be sent. Later calls return `None`.
    pub(in crate::runtime) fn poll_request(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<ModelRequest>, ModelError>> {
        let GatePhase::Reserve(reserve) = &mut self.phase else { return Poll::Ready(Ok(None)) };
        match std::task::ready!(reserve.as_mut().poll(cx)) {
            Ok((held, request)) => {
                self.phase = GatePhase::Read(held);
                Poll::Ready(Ok(Some(request)))
            }
            Err(error) => {
                self.phase = GatePhase::Over;
                Poll::Ready(Err(error))
            }
        }
    }

    /// Begins to replace the reserved cost by the real cost, at the end of a reply. Has an effect only once, and only after
    /// [`poll_request`](Self::poll_request) has returned the request.
    pub(in crate::runtime) fn end(&mut self, reply: &AssistantMessage, error: Option<&ModelError>) {
        if let Some(settle) = self.settle(reply, error) {
            self.phase = GatePhase::Settle(settle);
        }
    }

    pub(in crate::runtime) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let GatePhase::Settle(settle) = &mut self.phase {
            std::task::ready!(settle.as_mut().poll(cx));
            self.phase = GatePhase::Over;
        }
        Poll::Ready(())
    }

    /// Replaces the reserved cost of a reply by the real cost in a separate task, even if the reply was not read to its end.
    pub(in crate::runtime) fn settle_later(mut self, reply: &AssistantMessage) {
        self.end(reply, Some(&ModelError::aborted("stopped")));
    }

    fn settle(
        &mut self,
        reply: &AssistantMessage,
        error: Option<&ModelError>,
    ) -> Option<BoxFuture<'static, ()>> {
        let phase = std::mem::replace(&mut self.phase, GatePhase::Over);
        let GatePhase::Read(held) = phase else {
            self.phase = phase;
            return None;
        };
        Some(held.settle(reply, error))
    }
}

impl Drop for BudgetGate {
    fn drop(&mut self) {
        let rest: BoxFuture<'static, ()> = match std::mem::replace(&mut self.phase, GatePhase::Over) {
            GatePhase::Settle(settle) => settle,
            // The store may have reserved the cost although its answer has not arrived.
            GatePhase::Reserve(reserve) => Box::pin(async move {
                if let Ok((held, _)) = reserve.await {
                    held.release().await;
                }
            }),
            // The `HeldBudgets` in `Read` replace the reserved cost when they are dropped.
            GatePhase::Read(_) | GatePhase::Over => return,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(rest);
        }
    }
}
