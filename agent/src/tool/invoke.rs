//! Runs one call so that it cannot fail: catches panics, enforces the timeout, handles cancellation.

use super::BoxFuture;
use super::cancel::Cancelled;
use super::context::ToolContext;
use super::error::ToolError;
use super::outcome::{FailureCode, ToolOutcome, ToolReply};
use super::policy::{Timeout, ToolPolicy};
use super::trace;
use super::traits::Tool;
pub(crate) use crate::panics::panic_text;
use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tracing::Span;

/// The message for the model when a tool redacts its errors.
const REDACTED: &str = "The tool failed. Its error is not shown here.";

/// Runs `tool` once. `cx` is the context of this call, with its own token.
pub(super) async fn invoke(tool: &dyn Tool, arguments: &str, cx: &ToolContext) -> ToolReply {
    if let Some(reason) = cx.cancel_token().reason() {
        return ToolReply::new(ToolOutcome::aborted(&reason));
    }
    let facts = catch_unwind(AssertUnwindSafe(|| {
        (tool.requires().iter().find(|key| !cx.has(key)).copied(), tool.policy().clone())
    }));
    let (missing, policy) = match facts {
        Ok(facts) => facts,
        Err(payload) => return panicked(cx, &panic_text(payload)),
    };
    if let Some(missing) = missing {
        tracing::error!(
            tool = cx.tool(),
            state = missing.name(),
            "the call was not run: no `.state(…)` or `.with_state(…)` gives the state that the tool takes"
        );
        return failed(FailureCode::TOOL_ERROR, "The tool cannot run: the application did not set it up.");
    }
    let prepared = match prepared(tool, arguments) {
        Ok(prepared) => prepared,
        Err(error) => return failed(FailureCode::PREPARE_ERROR, error.message()),
    };
    let arguments = prepared.as_deref().unwrap_or(arguments);
    let limit = match policy.timeout {
        Timeout::After(limit) => Some(limit),
        Timeout::Inherit => cx.default_timeout(),
        Timeout::Never => None,
    };
    let timer = match limit.map(|limit| cx.executor().sleep(limit)) {
        None => None,
        Some(Some(timer)) => Some(timer),
        Some(None) => {
            tracing::error!(
                tool = cx.tool(),
                "a timeout needs an executor with a clock, such as a tokio runtime"
            );
            return failed(
                FailureCode::TOOL_ERROR,
                "The tool cannot run: the application cannot keep its time limit.",
            );
        }
    };
    let (mut call, cancelled) = (Call::start(tool, arguments, cx), cx.cancelled());
    let end = supervise(&mut call, timer, cancelled, cx).await;
    match &end {
        End::TimedOut => call.stop("the tool's time is up"),
        End::Replied(_) | End::Panicked(_) | End::Cancelled => call.finish(),
    }
    let mut reply = match end {
        End::Replied(reply) => reply,
        End::Panicked(message) => panicked(cx, &message),
        End::TimedOut => failed(
            FailureCode::TIMEOUT,
            format!("The tool did not finish within {}.", seconds(limit.unwrap_or_default())),
        ),
        End::Cancelled => ToolReply::new(aborted(cx)),
    };
    // A body that gives up because it was told to stop was interrupted; it did not fail.
    if cx.is_cancelled() && is_own_error(&reply.outcome) {
        reply.outcome = aborted(cx);
    }
    redact(&policy, cx, &mut reply.outcome);
    trace::warn_of_dropped(tool, &reply.coercions, cx);
    trace::end_call(&call.span, tool, arguments, &reply.outcome, &reply.coercions, cx);
    reply
}

/// Returns the arguments that the tool wants checked, if it changes them. A panic becomes an error.
pub(crate) fn prepared(tool: &dyn Tool, arguments: &str) -> Result<Option<String>, ToolError> {
    catch_unwind(AssertUnwindSafe(|| tool.prepare(arguments))).unwrap_or_else(|panic| {
        let panic = panic_text(panic);
        tracing::error!(tool = tool.definition().name(), %panic, "a tool panicked while it prepared arguments");
        Err(ToolError::new("The tool could not prepare the arguments."))
    })
}

/// Returns what is said of a call whose check panicked, such as a `validate` function. The body has not started then.
pub(crate) fn crashed_check(tool: &str, payload: Box<dyn Any + Send>) -> &'static str {
    let panic = panic_text(payload);
    tracing::error!(tool, %panic, "a check of a tool's arguments panicked");
    "The check of the tool's arguments crashed. The tool was not run."
}

fn failed(code: FailureCode, message: impl Into<String>) -> ToolReply {
    ToolReply::new(ToolOutcome::failed(code, message))
}

fn panicked(cx: &ToolContext, message: &str) -> ToolReply {
    tracing::error!(tool = cx.tool(), panic = %message, "a tool panicked");
    failed(FailureCode::PANIC, "The tool crashed. It is not known whether it took effect.")
}

fn aborted(cx: &ToolContext) -> ToolOutcome {
    ToolOutcome::aborted(cx.cancel_token().reason().as_deref().unwrap_or("cancelled"))
}

/// Whether the body itself reported that it failed.
fn is_own_error(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Retry { .. } => true,
        ToolOutcome::Failed { code, .. } => {
            *code != FailureCode::INVALID_ARGUMENTS
                && *code != FailureCode::PANIC
                && *code != FailureCode::TIMEOUT
        }
        _ => false,
    }
}

fn redact(policy: &ToolPolicy, cx: &ToolContext, outcome: &mut ToolOutcome) {
    if let ToolOutcome::Failed { code, message, .. } = outcome
        && policy.redact_errors
        && *code == FailureCode::TOOL_ERROR
    {
        tracing::warn!(tool = cx.tool(), error = %message, "a tool failed");
        REDACTED.clone_into(message);
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

enum End {
    Replied(ToolReply),
    Panicked(String),
    TimedOut,
    Cancelled,
}

/// Waits for the body, its timeout, and cancellation, which leaves the body a grace period.
async fn supervise(
    call: &mut Call<'_>,
    mut timer: Option<BoxFuture<'static, ()>>,
    mut cancelled: Cancelled,
    cx: &ToolContext,
) -> End {
    let mut grace: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|task| {
        match call.poll(task) {
            Ok(Poll::Ready(reply)) => return Poll::Ready(End::Replied(reply)),
            Ok(Poll::Pending) => {}
            Err(message) => return Poll::Ready(End::Panicked(message)),
        }
        if grace.is_none() && Pin::new(&mut cancelled).poll(task).is_ready() {
            match cx.executor().sleep(cx.cancel_grace()) {
                Some(wait) => grace = Some(wait),
                // No clock to measure a grace period with.
                None => return Poll::Ready(End::Cancelled),
            }
        }
        // Who was told to stop is not late: it was interrupted.
        let is_late = timer.as_mut().is_some_and(|timer| timer.as_mut().poll(task).is_ready());
        match (is_late, &grace) {
            (true, None) => return Poll::Ready(End::TimedOut),
            (true, Some(_)) => return Poll::Ready(End::Cancelled),
            (false, _) => {}
        }
        match grace.as_mut().map(|wait| wait.as_mut().poll(task)) {
            Some(Poll::Ready(())) => Poll::Ready(End::Cancelled),
            _ => Poll::Pending,
        }
    })
    .await
}

/// A body whose panics become values when it is created, polled and dropped. Dropped before its end, it cancels what it started
/// elsewhere, such as work on a blocking pool.
struct Call<'a> {
    body: Option<BoxFuture<'a, ToolReply>>,
    panicked: Option<String>,
    cx: &'a ToolContext,
    /// The span for what the body logs, on any thread.
    span: Span,
}

impl<'a> Call<'a> {
    fn start(tool: &'a dyn Tool, arguments: &'a str, cx: &'a ToolContext) -> Self {
        let span = trace::call_span(cx.tool(), cx.call_id());
        match span.in_scope(|| catch_unwind(AssertUnwindSafe(|| tool.call(arguments, cx)))) {
            Ok(body) => Self { body: Some(body), panicked: None, cx, span },
            Err(payload) => Self { body: None, panicked: Some(panic_text(payload)), cx, span },
        }
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Result<Poll<ToolReply>, String> {
        if let Some(message) = self.panicked.take() {
            return Err(message);
        }
        let Some(body) = &mut self.body else { return Ok(Poll::Pending) };
        match self.span.in_scope(|| catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(task)))) {
            Ok(poll) => Ok(poll),
            Err(payload) => {
                self.finish();
                Err(panic_text(payload))
            }
        }
    }

    /// Stops the body before its end.
    fn stop(&mut self, reason: &str) {
        if self.body.is_some() {
            self.cx.cancel_token().cancel(reason);
        }
        self.finish();
    }

    fn finish(&mut self) {
        let body = self.body.take();
        self.cx.close();
        if let Err(payload) = self.span.in_scope(|| catch_unwind(AssertUnwindSafe(|| drop(body)))) {
            tracing::error!(panic = %panic_text(payload), "a tool panicked while it was stopped");
        }
    }
}

impl Drop for Call<'_> {
    /// The caller may drop the call at any time.
    fn drop(&mut self) {
        self.stop("the caller stopped waiting");
    }
}
