//! Runs one `tools/call`, from the arguments to the result.

use super::ask::{AskState, CallQuestions, binding, input_required, questions};
use super::built::{AdmittedRequest, BuiltServer, RawArguments};
use super::caller::Caller;
use super::catalogue::ToolCatalogue;
use super::progress::ProgressSender;
use super::request_info::RequestInfo;
use crate::mcp::content::block;
use crate::mcp::output::{OutputCheck, mark, wrapped};
use crate::mcp::trace_context;
use crate::message::ToolCall;
use crate::panics::catch;
use crate::serve::QuotaPermit;
use crate::tool::asking::AskRules;
use crate::tool::question::{CANNOT_ASK, Question};
use crate::tool::state::StateMap;
use crate::tool::untrusted::random_id;
use crate::tool::{
    call_error::CallError,
    context::ToolContext,
    invoke::InvokedArguments,
    outcome::{OutcomeCode, ToolOutcome},
    output::ToolOutput,
    registry::Registry,
};
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, MetaObject, NumberOrString,
};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::{Instrument as _, Span};

/// The message to the client for a fault whose details are only logged.
const FAULT: &str = "The tool failed. Its error is not shown here.";

/// Runs a call. `connection` is `None` over HTTP, where no connection stays open.
pub(super) async fn call(
    shared: &BuiltServer,
    admitted: &AdmittedRequest,
    name: &str,
    info: Arc<RequestInfo>,
    connection: Option<Peer<RoleServer>>,
) -> Result<CallToolResponse, ErrorData> {
    // The error is the same for an unknown tool and for a tool that this caller may not see, so that clients cannot find out which tools
    // exist.
    if !admitted.tools.contains(name) {
        return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None));
    }
    // Over HTTP, `admitted` contains the text of the arguments. Over standard input, the transport adds the text to the request.
    let arguments = admitted.arguments.as_ref().or_else(|| info.extension());
    let arguments = arguments.map_or("", RawArguments::text);
    if is_deeper(arguments.as_bytes(), shared.limits.depth) {
        let text = format!("The arguments nest deeper than {} levels.", shared.limits.depth);
        return Ok(failure(text).into());
    }
    let arguments = if arguments == "null" { "" } else { arguments };
    let mut call = ToolCall::new("", name, arguments);
    let session = admitted.session.as_ref();
    let running = session.map(|session| shared.running.enter(&admitted.caller, session, info.id()));
    let gone = async {
        match &running {
            None => info.cancelled().await,
            Some(running) => tokio::select! {
                () = info.cancelled() => {}
                () = running.cancelled() => {}
            },
        }
    };
    let mut gone = pin!(gone);
    let Some(permit) = acquire_permit(shared, admitted, &call, gone.as_mut()).await? else {
        return Ok(failure("The server is busy. Try again in a moment.").into());
    };
    let progress = info.meta().get_progress_token().zip(info.progress_target());
    let progress = progress.map(|(token, target)| ProgressSender::new(target, token, shared.limits.progress));
    let span = linked_span(shared, name, info.meta());
    let sent = admitted.answers.as_ref().or_else(|| info.extension());
    // `binding` is called only if its text is needed, because most calls have no questions.
    let rules = match questions(shared, || binding(admitted, &call), &info, sent, connection)? {
        Some(CallQuestions::Open(state)) => return Ok(ask_client(shared, &binding(admitted, &call), &state)),
        Some(CallQuestions::Rules(rules)) => Some(rules),
        None => None,
    };
    call.id = call_id(rules.as_ref());
    let cx = tool_context(shared, &admitted.caller, info.clone(), progress.as_ref(), rules.clone());
    let outcome = run(shared, &admitted.tools, &call, &cx, gone).instrument(span).await;
    drop(permit);
    if let Some(progress) = progress {
        progress.finish().await;
    }
    let Some((outcome, asked)) = outcome else {
        return Err(cancelled());
    };
    if let (Some(rules), false) = (&rules, asked.is_empty()) {
        return Ok(ask_client(shared, &binding(admitted, &call), &AskState::of(rules, asked)));
    }
    result(shared, admitted, &call, outcome, &info).map(CallToolResponse::from)
}

/// Returns the id of the call, which is also its idempotency key: the id that the call had before its questions were answered, or else a
/// new id. The id of the request is not used, because clients choose that id.
fn call_id(rules: Option<&AskRules>) -> String {
    let asked = rules.and_then(|rules| rules.inputs.first()).map(|recorded| &recorded.question.request_id);
    let before = asked.and_then(|request| request.split_once('/')).map(|(id, _)| id.to_owned());
    before.unwrap_or_else(random_id)
}

fn ask_client(shared: &BuiltServer, bound: &str, state: &AskState) -> CallToolResponse {
    match input_required(shared, bound, state) {
        Ok(asks) => asks.into(),
        Err(text) => {
            tracing::error!(reason = %text, "a question of a tool was not asked");
            failure(text).into()
        }
    }
}

/// Returns the span of a call, linked with the trace of the client. Without the function of
/// [`on_trace_context`](super::McpServer::on_trace_context), the span is disabled.
fn linked_span(shared: &BuiltServer, tool: &str, meta: &MetaObject) -> Span {
    let Some(link) = &shared.on_trace else { return Span::none() };
    let span = tracing::info_span!(
        "mcp.call",
        otel.name = %format_args!("tools/call {tool}"),
        otel.kind = "server",
        mcp.method.name = "tools/call",
    );
    if let Some(trace) = trace_context::read(meta)
        && let Err(panic) = span.in_scope(|| catch(|| link(&trace)))
    {
        tracing::error!(%panic, "the function of `on_trace_context` panicked");
    }
    span
}

/// The client ignores the answer to a call that it cancelled, so the text of the error does not matter.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("cancelled", None)
}

/// Waits for a permit for the call, at most for `ServerLimits::wait` and until the client cancels the call. A call with invalid arguments
/// can use the quota `refusals`, so that its issues are still reported.
async fn acquire_permit(
    shared: &BuiltServer,
    admitted: &AdmittedRequest,
    call: &ToolCall,
    gone: impl Future<Output = ()>,
) -> Result<Option<QuotaPermit>, ErrorData> {
    if let Some(permit) = shared.calls.try_enter(admitted.caller.quota_key()) {
        return Ok(Some(permit));
    }
    let is_refused = matches!(admitted.tools.validate(call), Err(CallError::InvalidArguments(_)));
    let quota = if is_refused { &shared.refusals } else { &shared.calls };
    tokio::select! {
        biased;
        () = gone => Err(cancelled()),
        permit = quota.enter(admitted.caller.quota_key(), shared.limits.wait) => Ok(permit),
    }
}

fn tool_context(
    shared: &BuiltServer,
    caller: &Caller,
    info: Arc<RequestInfo>,
    progress: Option<&ProgressSender>,
    rules: Option<AskRules>,
) -> ToolContext {
    let own = own_state(caller, info).over(&shared.state);
    let mut cx = ToolContext::new()
        .with_states(&own)
        .with_default_timeout(shared.limits.call)
        .with_cancel(shared.handle.stop().child());
    if let Some(rules) = rules {
        cx = cx.with_ask_rules(rules);
    }
    if let Some(progress) = progress {
        let queue = progress.queue();
        cx = cx.on_progress(move |_, progress| queue.push(progress));
    }
    cx
}

/// Returns the state of the call: the caller, the request information, and the values that were added to the caller. The caller and the
/// request information take precedence.
pub(super) fn own_state(caller: &Caller, info: Arc<RequestInfo>) -> StateMap {
    let mut own = StateMap::default();
    // The types differ, so no insertion fails.
    let _ = own.insert(Arc::new(caller.clone()));
    let _ = own.insert(info);
    own.over(caller.state())
}

/// Runs the call for at most `ServerLimits::longest_call`. Returns its outcome and the questions that have no answer yet, or `None` if the
/// client cancelled the call. `gone` completes when the client cancels the call.
async fn run(
    shared: &BuiltServer,
    tools: &Registry,
    call: &ToolCall,
    cx: &ToolContext,
    gone: impl Future<Output = ()>,
) -> Option<(ToolOutcome, Vec<Question>)> {
    let limit = shared.limits.longest_call;
    let sent = InvokedArguments::Sent(call.args.text());
    let mut running = pin!(tools.run_call(call, sent, cx));
    let mut gone = pin!(gone);
    let mut is_gone = false;
    let mut timeout = pin!(tokio::time::sleep(limit));
    let outcome = std::future::poll_fn(|task| {
        use std::task::Poll;
        if let Poll::Ready(result) = running.as_mut().poll(task) {
            return Poll::Ready(Some((result.outcome, result.asked)));
        }
        if !is_gone && gone.as_mut().poll(task).is_ready() {
            is_gone = true;
            // The call is polled further, because it ends by itself, at the latest after its grace period.
            cx.cancel_token().cancel("the client cancelled the call");
            task.waker().wake_by_ref();
        }
        timeout.as_mut().poll(task).map(|()| None)
    })
    .await;
    if is_gone {
        return None;
    }
    Some(outcome.unwrap_or_else(|| {
        cx.cancel_token().cancel("the call takes too long");
        let text = format!("The tool did not finish within {} s.", limit.as_secs_f64());
        (ToolOutcome::failed(OutcomeCode::TIMEOUT, text), Vec::new())
    }))
}

fn result(
    shared: &BuiltServer,
    admitted: &AdmittedRequest,
    call: &ToolCall,
    outcome: ToolOutcome,
    info: &RequestInfo,
) -> Result<CallToolResult, ErrorData> {
    let is_redacted = admitted.tools.get(&call.name).is_some_and(|tool| tool.policy().redact_errors);
    let result = match outcome {
        ToolOutcome::Completed(output) => completed(&admitted.catalogue, call, output),
        ToolOutcome::Failed { message, .. } if info.failed_for(&message).is_some() => {
            let missing = info.failed_for(&message).unwrap_or_default();
            return Err(ErrorData::missing_required_client_capability(required(&missing)));
        }
        ToolOutcome::Failed { code, .. } if code.as_str() == CANNOT_ASK && !info.asks_by_form() => {
            return Err(ErrorData::missing_required_client_capability(required("elicitation")));
        }
        ToolOutcome::Failed { code, message, .. }
            if code == OutcomeCode::PANIC || is_redacted && code == OutcomeCode::TOOL_ERROR =>
        {
            Err((message, format!("the call ended as `{code}`")))
        }
        ToolOutcome::Deferred { .. } => Err((
            "The tool defers its result, which is not supported here.".to_owned(),
            "a tool that defers its result was called over MCP".to_owned(),
        )),
        other => Ok(failure(other.text())),
    };
    let result = result.unwrap_or_else(|(text, detail)| {
        let reference = reference();
        tracing::error!(tool = %call.name, call = %id_text(info.id()), %reference, %detail, "a tool failed");
        failure(format!("{text} Reference: {reference}."))
    });
    Ok(limit_length(result, shared.limits.result))
}

/// Converts the output to a result. The error consists of the message to the client and the detail for the log.
fn completed(
    catalogue: &ToolCatalogue,
    call: &ToolCall,
    mut output: ToolOutput,
) -> Result<CallToolResult, (String, String)> {
    let check = catalogue.output(&call.name);
    if let Some(check) = check {
        if check.is_wrapped() && output.structured.is_none() {
            output.structured = value_of_text(&output, check);
        }
        let Some(structured) = &output.structured else {
            return Err((
                FAULT.to_owned(),
                "the tool has an output schema, but returned no structured result".to_owned(),
            ));
        };
        if let Some(detail) = check.fault(structured) {
            return Err((
                FAULT.to_owned(),
                format!("the result does not fit the output schema of the tool: {detail}"),
            ));
        }
    }
    let mut content: Vec<ContentBlock> = output.content.iter().filter_map(block).collect();
    // Clients of older protocol versions read only text. So if the result has no content, the structured value is also sent as text.
    if let (Some(structured), true) = (&output.structured, content.is_empty()) {
        content.push(ContentBlock::text(structured.to_string()));
    }
    let mut result = CallToolResult::success(content);
    if check.is_some_and(OutputCheck::is_wrapped) {
        result.structured_content = output.structured.as_ref().map(wrapped);
        let (key, value) = mark();
        result.meta.get_or_insert_default().insert(key, value);
    } else {
        // If the tool has no output schema, structured data is sent only if it is an object, because some clients accept no other values.
        result.structured_content = output.structured.filter(Value::is_object);
    }
    Ok(result)
}

/// Returns the value of a single text that fits the output schema: the parsed JSON, or else the text itself.
fn value_of_text(output: &ToolOutput, check: &OutputCheck) -> Option<Value> {
    let [part] = &*output.content else { return None };
    let text = part.as_text()?;
    let json = serde_json::from_str(text).ok();
    json.into_iter().chain([Value::from(text)]).find(|value| check.fault(value).is_none())
}

fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Returns the result, or a failed result if the result is longer than `limit` bytes. A long result is not cut, because a cut result could
/// mislead the model.
fn limit_length(result: CallToolResult, limit: usize) -> CallToolResult {
    if result.structured_content.is_none() && most_bytes(&result.content).is_some_and(|most| most <= limit) {
        return result;
    }
    let mut length = ByteCounter { bytes: 0, limit };
    match serde_json::to_writer(&mut length, &result) {
        Ok(()) => result,
        Err(_) => failure(format!("The result is longer than {limit} bytes. Ask for less of it.")),
    }
}

/// Returns an upper bound for the length of the content as JSON, in bytes. Returns `None` if a block is not a text or has metadata.
fn most_bytes(content: &[ContentBlock]) -> Option<usize> {
    // The JSON around a text has fewer than `OVERHEAD` bytes. A byte of a text becomes at most six bytes, as in the escape `\u0000`.
    const OVERHEAD: usize = 200;
    content.iter().try_fold(OVERHEAD, |sum, block| {
        let text = block.as_text().filter(|text| text.meta.is_none())?;
        Some(sum + OVERHEAD + 6 * text.text.len())
    })
}

struct ByteCounter {
    bytes: usize,
    limit: usize,
}

impl std::io::Write for ByteCounter {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.limit { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(text.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn required(capability: &str) -> ClientCapabilities {
    serde_json::from_value(json!({capability: {}})).unwrap_or_default()
}

/// Logs an internal error, and returns an error without details for the client.
pub(super) fn fault(what: &str, reason: &dyn std::fmt::Display) -> ErrorData {
    let reference = reference();
    tracing::error!(%what, %reference, %reason, "the server cannot answer");
    ErrorData::internal_error(format!("The server cannot answer. Reference: {reference}."), None)
}

pub(super) fn reference() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    format!("{seconds:x}-{:x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn id_text(id: &NumberOrString) -> String {
    match id {
        NumberOrString::Number(number) => number.to_string(),
        NumberOrString::String(text) => text.to_string(),
    }
}

/// Returns whether the JSON, which may be invalid, nests deeper than the limit.
pub(super) fn is_deeper(json: &[u8], limit: usize) -> bool {
    // Text with few brackets cannot nest deeply, and counting brackets is faster than following the nesting.
    if json.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() <= limit {
        return false;
    }
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match (in_text, *byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_the_brackets_outside_of_texts() {
        assert!(!is_deeper(br#"{"a": "[[[[[[", "b": "\"[[["}"#, 1));
        assert!(!is_deeper(b"[[],[],[]]", 2));
        assert!(is_deeper(b"[[[", 2));
        assert!(!is_deeper(b"]]]]", 0));
    }

    #[test]
    fn a_long_result_is_an_error() {
        let result = || CallToolResult::success(vec![ContentBlock::text("x".repeat(100))]);
        assert_eq!(limit_length(result(), 1_000), result());
        let cut = limit_length(result(), 100);
        assert_eq!(cut.is_error, Some(true));
        assert!(serde_json::to_string(&cut).unwrap().contains("longer than 100 bytes"));
    }

    #[test]
    fn tools_receive_the_caller_that_was_authenticated() {
        let caller = Caller::new("ann").with(Caller::new("bob")).unwrap().with(7_u8).unwrap();
        let own = own_state(&caller, Arc::new(RequestInfo::none()));
        assert_eq!(own.get::<Caller>().map(Caller::id), Some("ann"));
        assert_eq!(own.get::<u8>(), Some(&7));
        assert!(own.get::<RequestInfo>().is_some());
    }

    #[test]
    fn references_differ() {
        assert_ne!(reference(), reference());
    }
}
