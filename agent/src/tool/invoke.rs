//! Runs one call so that it cannot fail: catches panics, enforces the timeout, handles cancellation.

use super::BoxFuture;
use super::asking::{ASK_HANDLE, AskStop, OWN_HANDLES};
use super::body::AcceptedArguments;
use super::call_error::CallError;
use super::cancel::Cancelled;
use super::context::ToolContext;
#[cfg(feature = "runtime")]
use super::current::Running;
use super::error::REDACTED;
use super::outcome::{OutcomeCode, ToolOutcome, ToolResult};
use super::policy::ToolPolicy;
use super::question::Question;
use super::state::StateMap;
use super::trace;
use super::untrusted;
use super::value::Tool;
use crate::args::Coercion;
use crate::message::ToolCall;
use crate::panics::catch;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tracing::Span;

/// The outcome of a call, with the questions for which the call is suspended, if there are any.
pub(crate) struct InvokedCall {
    pub(crate) outcome: ToolOutcome,
    pub(crate) coercions: Vec<Coercion>,
    #[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "only runs and servers are suspended"))]
    pub(crate) asked: Vec<Question>,
}

impl InvokedCall {
    pub(super) fn into_result(self, call: &ToolCall) -> ToolResult {
        ToolResult::new(&*call.id, &*call.name, self.outcome).with_coercions(self.coercions)
    }
}

pub(crate) enum InvokedArguments<'a> {
    Sent(&'a str),
    Accepted(&'a AcceptedArguments),
}

/// Runs one call of `tool`: checks the arguments, unless they were checked before, and runs the tool's code at most once. `cx` must be the
/// context of this call only, because stopping the call cancels the token of `cx`. Returns the outcome and the coercions of the arguments.
pub(super) async fn invoke(
    tool: &Tool,
    arguments: InvokedArguments<'_>,
    cx: &ToolContext,
) -> (ToolOutcome, Vec<Coercion>) {
    let uncoerced = |outcome| (outcome, Vec::new());
    if let Some(reason) = cx.cancel_token().reason() {
        return uncoerced(ToolOutcome::aborted(&reason));
    }
    let span = trace::call_span(cx.tool(), cx.call_id());
    let not_run = |outcome: ToolOutcome| {
        let text = match arguments {
            InvokedArguments::Sent(text) => text,
            InvokedArguments::Accepted(accepted) => accepted.text(),
        };
        trace::end_call(&span, tool, text, &outcome, Err(None), cx);
        uncoerced(outcome)
    };
    let missing = match catch(|| tool.requires().iter().find(|key| !cx.has(key)).copied()) {
        Ok(missing) => missing,
        Err(panic) => return not_run(panicked(cx, &panic)),
    };
    if let Some(missing) = missing {
        tracing::error!(
            tool = cx.tool(),
            state = missing.name(),
            "the call was not run: no `.state(…)` or `.with_state(…)` gives the state that the tool takes"
        );
        return not_run(failed(
            OutcomeCode::TOOL_ERROR,
            "The tool cannot run: the application did not set it up.",
        ));
    }
    let policy = tool.policy();
    let limit = policy.timeout.or(cx.default_timeout()).filter(|limit| *limit < Duration::MAX);
    let checked;
    let accepted = match arguments {
        InvokedArguments::Accepted(accepted) => accepted,
        InvokedArguments::Sent(text) => match span.in_scope(|| tool.check(text, cx.source())) {
            Ok(accepted) => {
                checked = accepted;
                &checked
            }
            Err(error) => {
                let refusal = match &error {
                    CallError::InvalidArguments(report) => Some(report.clone()),
                    _ => None,
                };
                let mut outcome = error.into_outcome(cx.tool());
                redact(policy, cx, &mut outcome);
                trace::end_call(&span, tool, text, &outcome, Err(refusal.as_ref()), cx);
                return uncoerced(outcome);
            }
        },
    };
    let timer = match limit.map(|limit| cx.executor().sleep(limit)) {
        None => None,
        Some(Some(timer)) => Some(timer),
        Some(None) => {
            tracing::error!(
                tool = cx.tool(),
                "a timeout needs an executor with a clock, such as a tokio runtime"
            );
            return not_run(failed(
                OutcomeCode::TOOL_ERROR,
                "The tool cannot run: the application cannot keep its time limit.",
            ));
        }
    };
    let (mut call, cancelled) =
        (SupervisedBody::start(tool, accepted, cx, span), cx.cancel_token().cancellation());
    let timer = BodyTimer::new(timer, limit);
    let end = supervise(&mut call, timer, cancelled, cx).await;
    let is_cancelled = cx.is_cancelled();
    match &end {
        BodyEnd::TimedOut => call.stop("the tool's time is up"),
        BodyEnd::Asks(_) => call.stop("the tool waits for an answer"),
        BodyEnd::Ended(_) | BodyEnd::Panicked(_) | BodyEnd::Cancelled => call.finish(),
    }
    let mut outcome = match end {
        BodyEnd::Ended(mut outcome) => {
            redact(policy, cx, &mut outcome);
            mark_untrusted(tool, &mut outcome);
            refuse_own_handle(tool, cx, &mut outcome);
            outcome
        }
        BodyEnd::Asks(AskStop::Suspended) => return (waits_for_person(), accepted.coercions().to_vec()),
        BodyEnd::Asks(AskStop::Changed) => failed(
            OutcomeCode::new("ask_changed"),
            "The tool asks something else than before it waited for an answer. Call it again.",
        ),
        BodyEnd::Panicked(message) => panicked(cx, &message),
        BodyEnd::TimedOut => timed_out(limit.unwrap_or_default()),
        BodyEnd::Cancelled => aborted(cx),
    };
    // The tool has ended, so questions that it asked in its last poll are dropped.
    cx.take_questions();
    // A tool that returns an error after its call was cancelled did not fail: it was interrupted.
    if is_cancelled && is_own_error(&outcome) {
        outcome = aborted(cx);
    }
    let coercions = accepted.coercions();
    trace::warn_of_dropped(tool, coercions, cx);
    trace::end_call(&call.span, tool, accepted.text(), &outcome, Ok(coercions), cx);
    (outcome, coercions.to_vec())
}

impl Tool {
    /// Runs one call of this tool, as [`Registry::call`](crate::Registry::call) does, but without the state of a registry.
    ///
    /// Dropping the future stops the call.
    pub async fn call(&self, arguments: &str, cx: &ToolContext) -> ToolResult {
        let name = self.definition().shared_name();
        let cx = cx.for_call(cx.call_id(), name, &StateMap::default());
        let (outcome, coercions) = invoke(self, InvokedArguments::Sent(arguments), &cx).await;
        ToolResult::new(cx.call_id(), &**name, outcome).with_coercions(coercions)
    }
}

fn failed(code: OutcomeCode, message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::failed(code, message)
}

fn panicked(cx: &ToolContext, message: &str) -> ToolOutcome {
    tracing::error!(tool = cx.tool(), panic = %message, "a tool panicked");
    failed(OutcomeCode::PANIC, "The tool crashed. It is not known whether it took effect.")
}

fn aborted(cx: &ToolContext) -> ToolOutcome {
    ToolOutcome::aborted(cx.cancel_token().reason().as_deref().unwrap_or("cancelled"))
}

fn waits_for_person() -> ToolOutcome {
    ToolOutcome::Deferred { handle: ASK_HANDLE.to_owned() }
}

/// Returns whether the tool itself returned an error. Refused arguments, a panic and a timeout do not count.
fn is_own_error(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Retry { .. } => true,
        ToolOutcome::Failed { code, .. } => {
            *code != OutcomeCode::INVALID_ARGUMENTS
                && *code != OutcomeCode::PANIC
                && *code != OutcomeCode::TIMEOUT
        }
        _ => false,
    }
}

/// Applies two options of the tool. `neutralizes` makes control characters and delimiters of chat templates harmless. `untrusted` encloses
/// the result in tags that mark it as data, not instructions.
pub(crate) fn mark_untrusted(tool: &Tool, outcome: &mut ToolOutcome) {
    let options = tool.options();
    if options.neutralizes {
        untrusted::neutralize(outcome);
    }
    if options.untrusted {
        untrusted::envelop(outcome);
    }
}

/// Fails a call whose tool deferred its result under a handle that is reserved for the library, unless the tool runs an assistant.
fn refuse_own_handle(tool: &Tool, cx: &ToolContext, outcome: &mut ToolOutcome) {
    if tool.options().of_assistant.is_none()
        && matches!(outcome, ToolOutcome::Deferred { handle } if handle.starts_with(OWN_HANDLES))
    {
        tracing::error!(
            tool = cx.tool(),
            "a tool deferred its result under a handle that begins with `agent:`"
        );
        *outcome = failed(OutcomeCode::TOOL_ERROR, "The tool failed: its handle is reserved.");
    }
}

fn redact(policy: &ToolPolicy, cx: &ToolContext, outcome: &mut ToolOutcome) {
    if let ToolOutcome::Failed { code, message, .. } = outcome
        && policy.redact_errors
        && *code == OutcomeCode::TOOL_ERROR
    {
        tracing::warn!(tool = cx.tool(), error = %message, "a tool failed");
        REDACTED.clone_into(message);
    }
}

pub(crate) fn timed_out(limit: Duration) -> ToolOutcome {
    failed(OutcomeCode::TIMEOUT, format!("The tool did not finish within {}.", seconds(limit)))
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Time limit of a running tool. It is paused while a function of the application answers a question of the tool. It starts again in full
/// length when the answer arrives.
struct BodyTimer {
    timer: BoxFuture<'static, ()>,
    limit: Duration,
    stands_still: bool,
}

impl BodyTimer {
    fn new(timer: Option<BoxFuture<'static, ()>>, limit: Option<Duration>) -> Option<Self> {
        timer.zip(limit).map(|(timer, limit)| Self { timer, limit, stands_still: false })
    }

    fn is_late(&mut self, task: &mut Context<'_>, cx: &ToolContext) -> bool {
        if cx.running_call().is_waiting() {
            self.stands_still = true;
            return false;
        }
        if std::mem::take(&mut self.stands_still)
            && let Some(timer) = cx.executor().sleep(self.limit)
        {
            self.timer = timer;
        }
        self.timer.as_mut().poll(task).is_ready()
    }
}

enum BodyEnd {
    Asks(AskStop),
    Ended(ToolOutcome),
    Panicked(String),
    TimedOut,
    Cancelled,
}

async fn supervise(
    call: &mut SupervisedBody<'_>,
    mut timer: Option<BodyTimer>,
    mut cancelled: Cancelled,
    cx: &ToolContext,
) -> BodyEnd {
    let mut grace: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|task| {
        match call.poll(task) {
            Ok(Poll::Ready(outcome)) => return Poll::Ready(BodyEnd::Ended(outcome)),
            Ok(Poll::Pending) => {}
            Err(message) => return Poll::Ready(BodyEnd::Panicked(message)),
        }
        if let Some(stop) = cx.running_call().poll_stop(task) {
            let is_cancelled = stop == AskStop::Suspended && cx.is_cancelled();
            return Poll::Ready(if is_cancelled { BodyEnd::Cancelled } else { BodyEnd::Asks(stop) });
        }
        if grace.is_none() && Pin::new(&mut cancelled).poll(task).is_ready() {
            match cx.executor().sleep(cx.cancel_grace()) {
                Some(wait) => grace = Some(wait),
                // Without a clock, a grace period cannot be measured, so the tool is stopped at once.
                None => return Poll::Ready(BodyEnd::Cancelled),
            }
        }
        // Cancellation takes precedence over the timeout.
        let is_late = timer.as_mut().is_some_and(|timer| timer.is_late(task, cx));
        match (is_late, &grace) {
            (true, None) => return Poll::Ready(BodyEnd::TimedOut),
            (true, Some(_)) => return Poll::Ready(BodyEnd::Cancelled),
            (false, _) => {}
        }
        match grace.as_mut().map(|wait| wait.as_mut().poll(task)) {
            Some(Poll::Ready(())) => Poll::Ready(BodyEnd::Cancelled),
            _ => Poll::Pending,
        }
    })
    .await
}

/// The future of a tool's function. Panics are caught when the future is created, polled and dropped. If this value is dropped before the
/// function ends, it cancels the token of the call. This stops work that the function started elsewhere, for example on a thread for
/// blocking work.
struct SupervisedBody<'a> {
    body: Option<BoxFuture<'a, ToolOutcome>>,
    panicked: Option<String>,
    cx: &'a ToolContext,
    span: Span,
}

impl<'a> SupervisedBody<'a> {
    fn start(tool: &'a Tool, arguments: &'a AcceptedArguments, cx: &'a ToolContext, span: Span) -> Self {
        #[cfg(feature = "runtime")]
        let _running = Running::new(cx.shared_tool());
        cx.running_call().begin(tool.policy());
        let started = span.in_scope(|| catch(|| tool.start(arguments, cx)));
        match started {
            Ok(body) => Self { body: Some(body), panicked: None, cx, span },
            Err(panic) => Self { body: None, panicked: Some(panic), cx, span },
        }
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Result<Poll<ToolOutcome>, String> {
        if let Some(message) = self.panicked.take() {
            return Err(message);
        }
        let Some(body) = &mut self.body else { return Ok(Poll::Pending) };
        #[cfg(feature = "runtime")]
        let running = Running::new(self.cx.shared_tool());
        let polled = self.span.in_scope(|| catch(|| body.as_mut().poll(task)));
        #[cfg(feature = "runtime")]
        drop(running);
        if polled.is_err() {
            self.finish();
        }
        polled
    }

    fn stop(&mut self, reason: &str) {
        if self.body.is_some() {
            self.cx.cancel_token().cancel(reason);
        }
        self.finish();
    }

    fn finish(&mut self) {
        let body = self.body.take();
        self.cx.close();
        if let Err(panic) = self.span.in_scope(|| catch(|| drop(body))) {
            tracing::error!(%panic, "a tool panicked while it was stopped");
        }
    }
}

impl Drop for SupervisedBody<'_> {
    fn drop(&mut self) {
        self.stop("the caller stopped waiting");
    }
}
