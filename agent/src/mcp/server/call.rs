//! Runs one `tools/call`, from the arguments to the result.

use super::Shared;
use super::caller::Caller;
use super::catalogue::Catalogue;
use super::gate::Place;
use super::handler::{RawArguments, Visit};
use super::progress::ProgressSender;
use super::request_info::{ClientCapability, RequestInfo};
use crate::mcp::content::block;
use crate::mcp::output::{OutputCheck, mark, wrapped};
use crate::message::ToolCall;
use crate::tool::state::StateMap;
use crate::{CallError, FailureCode, Registry, ToolContext, ToolOutcome, ToolOutput};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::NumberOrString};
use serde_json::Value;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The client's message for faults whose details are not for it.
const FAULT: &str = "The tool failed. Its error is not shown here.";

/// Runs a call.
pub(super) async fn call(
    shared: &Shared,
    visit: &Visit,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let name = &*request.name;
    // A tool that does not exist and a tool that this caller may not see get the same answer.
    if !visit.tools.contains(name) {
        return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None));
    }
    // The text of the arguments as it was sent, where it is known.
    let arguments = match visit.arguments.as_ref().or_else(|| context.extensions.get()) {
        Some(raw) => RawArguments::text(raw).to_owned(),
        None => request.arguments.map_or_else(String::new, |map| Value::Object(map).to_string()),
    };
    if is_deeper(arguments.as_bytes(), shared.limits.depth) {
        let text = format!("The arguments nest deeper than {} levels.", shared.limits.depth);
        return Ok(failure(text));
    }
    let arguments = if arguments == "null" { String::new() } else { arguments };
    let call = ToolCall::new(id_text(&context.id), name, arguments);
    let session = visit.session.as_ref();
    let running = session.map(|session| shared.running.enter(&visit.caller, session, &context.id));
    let Some(place) = place(shared, visit, &call).await? else {
        return Ok(failure("The server is busy. Try again in a moment."));
    };
    let progress = context
        .meta
        .get_progress_token()
        .map(|token| ProgressSender::new(context.peer.clone(), token, shared.limits.progress));
    let info = Arc::new(RequestInfo::of(context));
    let cx = tool_context(shared, &visit.caller, info.clone(), progress.as_ref())
        .map_err(|reason| fault(&call.name, &reason))?;
    let gone = async {
        match &running {
            None => info.given_up().await,
            Some(running) => tokio::select! {
                () = info.given_up() => {}
                () = running.cancelled() => {}
            },
        }
    };
    let outcome = run(shared, &visit.tools, &call, &cx, gone).await;
    drop(place);
    if let Some(progress) = progress {
        progress.finish().await;
    }
    let Some(outcome) = outcome else {
        // The client takes no answer; the transport drops it where it can.
        return Err(ErrorData::internal_error("cancelled", None));
    };
    result(shared, visit, &call, outcome, &info)
}

/// Takes a slot for the call; `None` if the server is busy. Calls with invalid arguments have a quota of their own, so that even a
/// busy server reports them.
async fn place(shared: &Shared, visit: &Visit, call: &ToolCall) -> Result<Option<Place>, ErrorData> {
    if let Some(place) = shared.calls.try_enter(&visit.caller) {
        return Ok(Some(place));
    }
    if let Err(CallError::InvalidArguments(_)) = visit.tools.validate(call) {
        // The call itself reports the problems, and runs nothing.
        return Ok(Some(shared.refusals.enter(&visit.caller, shared.limits.wait).await).flatten());
    }
    Ok(shared.calls.enter(&visit.caller, shared.limits.wait).await)
}

fn tool_context(
    shared: &Shared,
    caller: &Caller,
    info: Arc<RequestInfo>,
    progress: Option<&ProgressSender>,
) -> Result<ToolContext, String> {
    let own = own_state(caller, info).over(&shared.state);
    let mut builder = ToolContext::builder()
        .states(&own)
        .default_timeout(shared.limits.call)
        .cancel(shared.handle.stop().child());
    if let Some(progress) = progress {
        let queue = progress.queue();
        builder = builder.on_progress(move |update| queue.push(update.progress));
    }
    builder.build().map_err(|error| error.to_string())
}

/// The state of the call: what the caller provides, the caller itself and the request information.
pub(super) fn own_state(caller: &Caller, info: Arc<RequestInfo>) -> StateMap {
    let mut own = caller.state().clone();
    // Only the types of this module are added, which a caller cannot provide.
    let _ = own.insert(Arc::new(caller.clone()));
    let _ = own.insert(info);
    own
}

/// Runs the call; `None` when the client cancelled it, which is when `gone` completes.
async fn run(
    shared: &Shared,
    tools: &Registry,
    call: &ToolCall,
    cx: &ToolContext,
    gone: impl Future<Output = ()>,
) -> Option<ToolOutcome> {
    let limit = shared.limits.longest_call;
    let mut running = pin!(tools.call(call, cx));
    let mut gone = pin!(gone);
    let mut is_gone = false;
    let mut late = pin!(tokio::time::sleep(limit));
    let ended = std::future::poll_fn(|task| {
        use std::task::Poll;
        if let Poll::Ready(result) = running.as_mut().poll(task) {
            return Poll::Ready(Some(result.outcome));
        }
        if !is_gone && gone.as_mut().poll(task).is_ready() {
            is_gone = true;
            // The call ends by itself now, at the latest after its grace period.
            cx.cancel_token().cancel("the client cancelled the call");
            task.waker().wake_by_ref();
        }
        late.as_mut().poll(task).map(|()| None)
    })
    .await;
    if is_gone {
        return None;
    }
    Some(ended.unwrap_or_else(|| {
        cx.cancel_token().cancel("the call takes too long");
        let text = format!("The tool did not finish within {} s.", limit.as_secs());
        ToolOutcome::failed(FailureCode::TIMEOUT, text)
    }))
}

fn result(
    shared: &Shared,
    visit: &Visit,
    call: &ToolCall,
    outcome: ToolOutcome,
    info: &RequestInfo,
) -> Result<CallToolResult, ErrorData> {
    let is_redacted = visit.tools.get(&call.name).is_some_and(|tool| tool.policy().redact_errors);
    let answer = match outcome {
        ToolOutcome::Completed(output) => completed(&visit.catalogue, call, output),
        ToolOutcome::Failed { message, .. } if info.failed_for(&message).is_some() => {
            let missing = info.failed_for(&message);
            return Err(ErrorData::missing_required_client_capability(required(missing)));
        }
        ToolOutcome::Failed { code, message, .. }
            if code == FailureCode::PANIC || is_redacted && code == FailureCode::TOOL_ERROR =>
        {
            Err((message, format!("the call ended as `{code}`")))
        }
        ToolOutcome::Deferred { .. } => Err((
            "The tool's result comes later, and cannot be waited for here.".to_owned(),
            "a tool that defers its result was called over MCP".to_owned(),
        )),
        other => Ok(failure(other.text())),
    };
    let answer = answer.unwrap_or_else(|(told, detail)| {
        let reference = reference();
        tracing::error!(tool = %call.name, call = %call.id, %reference, %detail, "a tool failed");
        failure(format!("{told} Reference: {reference}."))
    });
    Ok(fitting(answer, shared.limits.result))
}

/// Converts the outcome to the client's result and the operator's log entry.
fn completed(
    catalogue: &Catalogue,
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
                "it gave no structured result, and has an output schema".to_owned(),
            ));
        };
        if let Some(detail) = check.fault(structured) {
            return Err((FAULT.to_owned(), format!("its result does not fit its output schema: {detail}")));
        }
    }
    let mut content: Vec<ContentBlock> = output.content.iter().filter_map(block).collect();
    // Clients of the older versions read only the text.
    if let (Some(structured), true) = (&output.structured, content.is_empty()) {
        content.push(ContentBlock::text(structured.to_string()));
    }
    let mut result = CallToolResult::success(content);
    if check.is_some_and(OutputCheck::is_wrapped) {
        result.structured_content = output.structured.as_ref().map(wrapped);
        let (key, value) = mark();
        result.meta.get_or_insert_default().insert(key, value);
    } else {
        // What is announced by no schema is text for most clients, and only objects are data for all.
        result.structured_content = output.structured.filter(Value::is_object);
    }
    Ok(result)
}

/// Returns the value that a result has only as text: a number, a truth value, a list as JSON, or the text itself.
fn value_of_text(output: &ToolOutput, check: &OutputCheck) -> Option<Value> {
    let [part] = &*output.content else { return None };
    let text = part.as_text()?;
    let json = serde_json::from_str(text).ok();
    json.into_iter().chain([Value::from(text)]).find(|value| check.fault(value).is_none())
}

fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Returns the result, or an error if it is too long. Nothing is cut.
fn fitting(result: CallToolResult, limit: usize) -> CallToolResult {
    if result.structured_content.is_none() && most_bytes(&result.content).is_some_and(|most| most <= limit) {
        return result;
    }
    let mut length = Length { bytes: 0, limit };
    match serde_json::to_writer(&mut length, &result) {
        Ok(()) => result,
        Err(_) => failure(format!("The result is longer than {limit} bytes. Ask for less of it.")),
    }
}

/// An upper bound of the length of texts as JSON; `None` if there are other blocks.
fn most_bytes(content: &[ContentBlock]) -> Option<usize> {
    // A control character takes six bytes, and what surrounds a text takes less than this.
    const AROUND: usize = 200;
    content.iter().try_fold(AROUND, |sum, block| {
        let text = block.as_text().filter(|text| text.meta.is_none())?;
        Some(sum + AROUND + 6 * text.text.len())
    })
}

/// Counts bytes, up to a limit.
struct Length {
    bytes: usize,
    limit: usize,
}

impl std::io::Write for Length {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.limit { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(text.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[expect(deprecated, reason = "clients of the older versions declare them, and tools may ask")]
fn required(capability: Option<ClientCapability>) -> ClientCapabilities {
    let builder = ClientCapabilities::builder();
    match capability {
        Some(ClientCapability::Sampling) => builder.enable_sampling().build(),
        Some(ClientCapability::Elicitation) => builder.enable_elicitation().build(),
        Some(ClientCapability::Roots) => builder.enable_roots().build(),
        None => builder.build(),
    }
}

/// Reports an internal error: the client learns that there is one, the log gets the details.
pub(super) fn fault(what: &str, reason: &dyn std::fmt::Display) -> ErrorData {
    let reference = reference();
    tracing::error!(%what, %reference, %reason, "the server cannot answer");
    ErrorData::internal_error(format!("The server cannot answer. Reference: {reference}."), None)
}

/// Returns a reference by which a log line can be found. It reveals nothing else.
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

/// Whether the JSON nests deeper than the limit. It need not be valid.
pub(super) fn is_deeper(json: &[u8], limit: usize) -> bool {
    // Text with few brackets cannot nest deeply, and counting them is faster.
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
    fn a_long_result_is_an_error_that_says_so() {
        let result = || CallToolResult::success(vec![ContentBlock::text("x".repeat(100))]);
        assert_eq!(fitting(result(), 1_000), result());
        let cut = fitting(result(), 100);
        assert_eq!(cut.is_error, Some(true));
        assert!(serde_json::to_string(&cut).unwrap().contains("longer than 100 bytes"));
    }

    #[test]
    fn references_differ() {
        assert_ne!(reference(), reference());
    }
}
