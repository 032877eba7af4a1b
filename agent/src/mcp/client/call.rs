//! Runs one call of a server's tool.

use super::Inner;
use super::connection::Connection;
use super::failure::{challenge, describe};
use super::forms::{elicit_result, form_question};
use super::listing::OfferedTool;
use super::traffic::SentArguments;
use crate::mcp::content::part;
use crate::mcp::output::{is_marked, unwrapped};
use crate::mcp::trace_context;
use crate::panics::catch;
use crate::tool::body::AcceptedArguments;
use crate::tool::forms::AskedRound;
use crate::tool::question::QuestionInput;
use crate::tool::{
    context::ToolContext,
    outcome::{OutcomeCode, ToolOutcome},
    output::ToolOutput,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, ErrorCode, InputRequest, InputRequests, InputResponses,
    RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of requests for one call. A server may answer a request by asking for input, after which the client repeats the call.
const ROUNDS: usize = 10;

const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// Returns the current definition of a tool, and the arguments as parsed by this definition. Fails with the outcome of the call if the
/// tool is gone, if its definition changed and `accept_changes` does not accept the change, or if the arguments do not fit.
fn current(
    inner: &Inner,
    tool: &str,
    known: &OfferedTool,
    arguments: &AcceptedArguments,
) -> Result<(OfferedTool, Map<String, Value>), Box<ToolOutcome>> {
    let now = inner.listing().tools.get(tool).cloned();
    let Some(now) = now else {
        let text = format!("`{tool}` is no longer offered by {}.", inner.server());
        return Err(Box::new(failed("tool_gone", text)));
    };
    let object = |value| match value {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    let refused = |refusal| Box::new(ToolOutcome::from(refusal));
    if now.fingerprint == known.fingerprint {
        return Ok((now, object(arguments.take::<Value>().map_err(refused)?)));
    }
    let is_accepted = inner.config.accept_changes.as_ref().is_some_and(|accept| {
        catch(|| accept(&known.definition, &now.definition)).unwrap_or_else(|panic| {
            tracing::error!(tool, %panic, "the function of `accept_changes` panicked");
            false
        })
    });
    if !is_accepted {
        let text = format!("The definition of `{tool}` changed since it was shown; the call was not made.");
        return Err(Box::new(failed("tool_changed", text)));
    }
    let checked = now.definition.plan().parse::<Value>(arguments.text());
    Ok((now, object(checked.map_err(refused)?.value)))
}

pub(super) async fn call(
    inner: &Inner,
    tool: &str,
    known: &OfferedTool,
    arguments: &AcceptedArguments,
    cx: &ToolContext,
) -> ToolOutcome {
    let limit = inner.config.limits.longest_call;
    let asking = watch::Sender::new(false);
    let expired = expired(limit, asking.subscribe());
    let attempts = attempts(inner, tool, known, arguments, cx, &asking);
    tokio::select! {
        outcome = attempts => outcome,
        // Dropping `attempts` notifies the server that the call is cancelled.
        () = cx.cancelled() => ToolOutcome::aborted(cx.cancel_token().reason().as_deref().unwrap_or("cancelled")),
        () = expired => timed_out(inner, limit),
    }
}

/// Waits until `limit` has passed. The time stops while a person is asked, and then starts again in full length. The time limits of tools
/// have the same rule.
async fn expired(limit: Duration, mut asking: watch::Receiver<bool>) {
    loop {
        let is_asking = *asking.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep(limit), if !is_asking => return,
            Ok(()) = asking.changed() => {}
            else => return,
        }
    }
}

/// Makes the call. Repeats the call at most once for each reason: a refused token, a header mismatch, or a broken connection if trusted
/// hints allow a repetition.
async fn attempts(
    inner: &Inner,
    tool: &str,
    known: &OfferedTool,
    arguments: &AcceptedArguments,
    cx: &ToolContext,
    asking: &watch::Sender<bool>,
) -> ToolOutcome {
    let (mut listed_again, mut token_again, mut sent_again) = (false, false, false);
    loop {
        let connection = match inner.connection().await {
            Ok(connection) => connection,
            Err(error) => {
                inner.set_reachable(false);
                return failed("unavailable", cut(format!("{error}.")));
            }
        };
        // The tools may have been listed again, by this call or another one.
        let (offered, values) = match current(inner, tool, known, arguments) {
            Ok(current) => current,
            Err(outcome) => return *outcome,
        };
        let error = match rounds(inner, &connection, (tool, &values), cx, asking).await {
            Ok(Ok(result)) => {
                inner.set_reachable(true);
                return completed(inner, tool, &offered, result).await;
            }
            Ok(Err(unanswered)) => return failed("input_required", unanswered),
            Err(error) => error,
        };
        match error {
            // The definition of the tool has changed, so other parameters must be sent as headers. The server refused the call before it
            // ran, so the call can be repeated.
            ServiceError::McpError(error) if error.code == ErrorCode::HEADER_MISMATCH && !listed_again => {
                listed_again = true;
                if inner.refresh().await.is_err() {
                    return failed("protocol_error", cut(format!("{}: {}", inner.server(), error.message)));
                }
            }
            ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => {
                return unknown_or(
                    inner,
                    tool,
                    cut(format!("{} refused the call: {}", inner.server(), error.message)),
                )
                .await;
            }
            ServiceError::McpError(error) => {
                let text =
                    format!("{} answered with error {}: {}", inner.server(), error.code.0, error.message);
                return failed("protocol_error", cut(text));
            }
            ServiceError::Timeout { timeout } => return timed_out(inner, timeout),
            ServiceError::Cancelled { .. } => return failed("cancelled", "The server cancelled the call."),
            ServiceError::UnexpectedResponse => {
                return failed("protocol_error", format!("{} sent an unexpected response.", inner.server()));
            }
            error => {
                inner.set_reachable(false);
                if let Some(challenge) = challenge(&error) {
                    inner.drop_connection(&connection);
                    // The server refused the call without running it, so the call can be repeated with a new token.
                    if !token_again && inner.has_token_source() {
                        token_again = true;
                        continue;
                    }
                    let error = challenge.of_server(inner.server());
                    return failed("unauthorized", format!("{error}."));
                }
                tracing::warn!(server = %inner.server(), error = %describe(&inner.config, &connection.tap, &error), "the connection was lost during a call of a server's tool");
                let is_harmless = inner.config.trusts_hints
                    && (offered.hints.idempotent == Some(true) || offered.hints.read_only == Some(true));
                if is_harmless && !sent_again {
                    sent_again = true;
                    continue;
                }
                let text = format!(
                    "The connection to {} broke off. It is not known whether the call took effect.",
                    inner.server()
                );
                return failed("connection_lost", text);
            }
        }
    }
}

/// Sends the call, and repeats it with answers to what the server asks for. Returns the result, or the text of the failure if the server
/// asks for something that it cannot get.
async fn rounds(
    inner: &Inner,
    connection: &Connection,
    (tool, arguments): (&str, &Map<String, Value>),
    cx: &ToolContext,
    asking: &watch::Sender<bool>,
) -> Result<Result<CallToolResult, String>, ServiceError> {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    // If the run was suspended until a person answered, the first request contains the answers.
    if let Some((inputs, asked)) = cx.form_inputs(&inner.server()) {
        let replies = asked.replies.into_iter().chain(inputs.into_iter().map(response));
        params = params.with_input_responses(replies.collect());
        params.request_state = asked.state;
    }
    for _ in 0..ROUNDS {
        match send(inner, connection, (params, arguments), cx).await? {
            ServerResult::CallToolResult(result) => return Ok(Ok(result)),
            ServerResult::InputRequiredResult(asked) => {
                let requests = asked.input_requests.unwrap_or_default();
                if requests.is_empty() && asked.request_state.is_none() {
                    return Ok(Err("The server asks for input, but does not say which.".to_owned()));
                }
                let state = asked.request_state;
                params = CallToolRequestParams::new(tool.to_owned());
                if !requests.is_empty() {
                    let Some(answers) = answers(inner, requests, state.clone(), cx, asking).await else {
                        return Ok(Err(
                            "The server asks for a model's reply, which is not available here.".to_owned()
                        ));
                    };
                    params = params.with_input_responses(answers);
                }
                params.request_state = state;
            }
            _ => return Err(ServiceError::UnexpectedResponse),
        }
    }
    Ok(Err(format!("The server was called {ROUNDS} times, and still asks for input.")))
}

/// Answers the server's requests for input. If the configuration allows questions, a person answers forms. All other questions are
/// declined. A request for roots gets an empty list. Returns `None` if there is any other request, such as one for a model's reply.
async fn answers(
    inner: &Inner,
    requests: InputRequests,
    state: Option<String>,
    cx: &ToolContext,
    asking: &watch::Sender<bool>,
) -> Option<InputResponses> {
    let (mut answers, mut forms) = (InputResponses::new(), Vec::new());
    for (key, request) in requests {
        let answer = match request {
            InputRequest::Elicitation(request) => match form_question(&key, request.params) {
                Some(form) if inner.config.asks => {
                    forms.push(form);
                    continue;
                }
                _ => response((key.clone(), QuestionInput::Decline)).1,
            },
            InputRequest::ListRoots(_) => json!({"roots": []}),
            _ => return None,
        };
        answers.insert(key, answer);
    }
    if !forms.is_empty() {
        asking.send_replace(true);
        let asked = AskedRound { state, replies: answers.clone().into_iter().collect() };
        let inputs = cx.ask_forms(&inner.server(), forms, Some(asked), true).await;
        asking.send_replace(false);
        answers.extend(inputs.into_iter().map(response));
    }
    Some(answers)
}

fn response((key, input): (String, QuestionInput)) -> (String, Value) {
    (key, serde_json::to_value(elicit_result(input)).unwrap_or_default())
}

async fn send(
    inner: &Inner,
    connection: &Connection,
    (params, arguments): (CallToolRequestParams, &Map<String, Value>),
    cx: &ToolContext,
) -> Result<ServerResult, ServiceError> {
    let limits = &inner.config.limits;
    let mut options = PeerRequestOptions::with_timeout(limits.call)
        .reset_timeout_on_progress()
        .with_max_total_timeout(limits.longest_call);
    if let Some(current) = &inner.config.trace_context {
        let trace = catch(|| current()).unwrap_or_else(|panic| {
            tracing::error!(%panic, "the function of `trace_context` panicked");
            HashMap::new()
        });
        if let Some(trace) = trace_context::write(&trace) {
            options = options.with_meta(trace);
        }
    }
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(SentArguments(arguments.clone()));
    let request = ClientRequest::CallToolRequest(request);
    let handle = connection.peer.send_cancellable_request(request, options).await?;
    let progress_cx = cx.clone();
    let _watch = inner
        .notifications
        .watch(handle.progress_token.clone(), Arc::new(move |progress| progress_cx.progress(progress)));
    let _asks = inner.notifications.watch_questions(&inner.server(), cx);
    let mut guard = CancelOnDrop { peer: Some(connection.peer.clone()), id: handle.id.clone() };
    let result = handle.await_response().await;
    guard.peer = None;
    result
}

/// Notifies the server on drop that the call was cancelled. `peer` is `None` after the result arrived.
struct CancelOnDrop {
    peer: Option<Peer<RoleClient>>,
    id: RequestId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(peer), Ok(runtime)) = (self.peer.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let param = CancelledNotificationParam::new(
            Some(self.id.clone()),
            Some("the result is no longer awaited".to_owned()),
        );
        runtime.spawn(async move {
            let sending = peer.send_notification(CancelledNotification::new(param).into());
            // A server that does not read must not keep this task alive.
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, sending).await;
        });
    }
}

async fn completed(inner: &Inner, tool: &str, offered: &OfferedTool, result: CallToolResult) -> ToolOutcome {
    let limit = inner.config.limits.result;
    if serde_json::to_string(&result).map_or(true, |text| text.len() > limit) {
        return failed(
            "result_too_long",
            format!("The result is longer than {limit} bytes. Ask for less of it."),
        );
    }
    let structured = result.structured_content;
    let mut output = ToolOutput::parts(result.content.into_iter().map(part).collect());
    if result.is_error == Some(true) {
        let text = match (output.text_content().into_owned(), structured) {
            (text, Some(structured)) if text.is_empty() && !structured.is_null() => structured.to_string(),
            (text, _) if text.is_empty() => "The tool failed and gave no reason.".to_owned(),
            (text, _) => text,
        };
        return if reports_unknown_tool(&text) {
            unknown_or(inner, tool, text).await
        } else {
            ToolOutcome::failed(OutcomeCode::TOOL_ERROR, text)
        };
    }
    if let Some(check) = &offered.output {
        let fault = match &structured {
            Some(structured) => check.fault(structured),
            None => Some("there is no structured result".to_owned()),
        };
        if let Some(fault) = fault {
            tracing::warn!(server = %inner.server(), tool, %fault, "a structured result does not fit its schema");
            let text = format!("The result of `{tool}` does not fit the schema that its server announced.");
            return failed("invalid_result", text);
        }
    }
    if let Some(structured) = structured {
        if output.content.is_empty() {
            output.content.push(crate::message::Part::text(structured.to_string()));
        }
        let is_wrapped = offered.is_wrapped || result.meta.as_ref().is_some_and(|meta| is_marked(meta));
        output = output.with_structured(if is_wrapped { unwrapped(structured) } else { structured });
    }
    ToolOutcome::Completed(output)
}

/// Returns whether a text reports an unknown tool. The protocol has no error code for unknown tools, so some servers report them as a
/// result.
fn reports_unknown_tool(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("unknown tool") || text.contains("tool") && text.contains("not found")
}

/// Returns the outcome of a call after an error that may mean an unknown tool: `tool_gone` if the tool is no longer listed, or else a
/// failure with the server's text.
async fn unknown_or(inner: &Inner, tool: &str, text: String) -> ToolOutcome {
    inner.refresh_for_unknown_tool().await;
    if !inner.listing().tools.contains_key(tool) {
        return failed("tool_gone", format!("`{tool}` is no longer offered by {}.", inner.server()));
    }
    ToolOutcome::failed(OutcomeCode::TOOL_ERROR, text)
}

fn timed_out(inner: &Inner, limit: Duration) -> ToolOutcome {
    let text = format!("{} did not answer within {} s.", inner.server(), limit.as_secs_f64());
    ToolOutcome::failed(OutcomeCode::TIMEOUT, text)
}

fn failed(code: &'static str, text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::failed(OutcomeCode::new(code), text)
}

fn cut(text: String) -> String {
    if text.len() <= 2_000 { text } else { text.chars().take(2_000).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::client::ClientConfig;
    use crate::tool::value::Tool;

    #[tokio::test(start_paused = true)]
    async fn a_client_whose_calls_cannot_connect_is_degraded() {
        let inner = Inner::unconnected(ClientConfig::command("/no/such/program"));
        let tool = Tool::new("t", "Does it.", json!({"type": "object"}), |_args, _cx| async { "done" });
        let offered = OfferedTool {
            definition: tool.unwrap().definition().clone(),
            output: None,
            is_wrapped: false,
            hints: crate::tool::annotations::ToolAnnotations::default(),
            fingerprint: [0; 32],
        };
        let arguments = AcceptedArguments::new(&offered.definition, "{}", Vec::new());
        let outcome = call(&inner, "t", &offered, &arguments, &ToolContext::new()).await;
        assert_eq!(outcome.code(), Some("unavailable"), "{}", outcome.text());
        assert!(!inner.is_reachable.load(std::sync::atomic::Ordering::Acquire));
    }
}
