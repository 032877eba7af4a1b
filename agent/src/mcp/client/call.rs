//! Runs one call of a server's tool.

use super::config::{ChangePolicy, ToolChange};
use super::connection::Connection;
use super::failure::{challenge, told};
use super::listing::Offered;
use super::traffic::SentArguments;
use super::{ClientError, Inner};
use crate::mcp::content::part;
use crate::mcp::output::{is_marked, unwrapped};
use crate::panics::catch;
use crate::{FailureCode, ToolContext, ToolOutcome, ToolOutput};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, ErrorCode, InputRequest, InputRequests, InputResponses,
    RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of times that a server may ask for the same call again with its own notes.
const ROUNDS: usize = 10;

/// How long a notification that a call was cancelled may take.
const NOTIFY: Duration = Duration::from_secs(10);

/// Returns the tool as it is offered now, if it may be called.
pub(super) fn current(inner: &Inner, tool: &str, known: &Offered) -> Result<Offered, Box<ToolOutcome>> {
    let now = inner.listing().tools.get(tool).cloned();
    let Some(now) = now else {
        let text = format!("`{tool}` is no longer offered by {}.", inner.server());
        return Err(Box::new(failed("tool_gone", text)));
    };
    if now.fingerprint == known.fingerprint {
        return Ok(now);
    }
    let may_go_on = match &inner.config.on_change {
        ChangePolicy::Block => false,
        ChangePolicy::Accept => true,
        ChangePolicy::Ask(ask) => {
            let change = ToolChange {
                tool: tool.to_owned(),
                before: known.definition.clone(),
                now: Some(now.definition.clone()),
            };
            catch(|| ask(&change)).unwrap_or_else(|panic| {
                tracing::error!(tool, %panic, "the function that decides on a changed tool panicked");
                false
            })
        }
    };
    if may_go_on {
        return Ok(now);
    }
    let text = format!("The definition of `{tool}` changed since it was shown; the call was not made.");
    Err(Box::new(failed("tool_changed", text)))
}

/// Makes the call.
pub(super) async fn call(
    inner: &Inner,
    tool: &str,
    offered: &Offered,
    arguments: Map<String, Value>,
    cx: &ToolContext,
) -> ToolOutcome {
    let limit = inner.config.limits.longest_call;
    let going = attempts(inner, tool, offered, &arguments, cx);
    tokio::select! {
        outcome = going => outcome,
        // Dropping the future notified the server.
        () = cx.cancelled() => ToolOutcome::aborted(cx.cancel_token().reason().as_deref().unwrap_or("cancelled")),
        () = tokio::time::sleep(limit) => timed_out(inner, limit),
    }
}

/// Makes the call, and repeats it where the server has not run it.
async fn attempts(
    inner: &Inner,
    tool: &str,
    offered: &Offered,
    arguments: &Map<String, Value>,
    cx: &ToolContext,
) -> ToolOutcome {
    let (mut listed_again, mut token_again, mut sent_again) = (false, false, false);
    loop {
        let connection = match inner.connection().await {
            Ok(connection) => connection,
            Err(error) => return failed("unavailable", cut(format!("{error}."))),
        };
        let error = match rounds(inner, &connection, tool, arguments, cx).await {
            Ok(result) => {
                inner.works(true);
                return completed(inner, tool, offered, result).await;
            }
            Err(error) => error,
        };
        match error {
            // The headers of the tool have changed; the server has not run the call.
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
                return failed("protocol_error", format!("{} answered with something else.", inner.server()));
            }
            ServiceError::InputRequiredRoundsExceeded { .. } => {
                return failed("input_required", NEEDS_USER);
            }
            error => {
                inner.works(false);
                if let Some(challenge) = challenge(&error) {
                    inner.forget(&connection).await;
                    // The call was refused before it ran: a new token may help.
                    if !token_again && inner.has_token_source() {
                        token_again = true;
                        continue;
                    }
                    let server = inner.server();
                    let error = ClientError::Unauthorized { server, challenge };
                    return failed("unauthorized", format!("{error}."));
                }
                tracing::warn!(server = %inner.server(), error = %told(&inner.config, &error), "a call of a server's tool broke off");
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

const NEEDS_USER: &str = "The server wants to ask its user something, which cannot be done here.";

/// Makes the call, and repeats it as often as the server asks for it with its own notes.
async fn rounds(
    inner: &Inner,
    connection: &Connection,
    tool: &str,
    arguments: &Map<String, Value>,
    cx: &ToolContext,
) -> Result<CallToolResult, ServiceError> {
    let mut params = CallToolRequestParams::new(tool.to_owned());
    for _ in 0..ROUNDS {
        match send(inner, connection, (params, arguments), cx).await? {
            ServerResult::CallToolResult(result) => return Ok(result),
            ServerResult::InputRequiredResult(asked) => {
                let requests = asked.input_requests.unwrap_or_default();
                if requests.is_empty() && asked.request_state.is_none() {
                    break;
                }
                params = CallToolRequestParams::new(tool.to_owned());
                if !requests.is_empty() {
                    let Some(answers) = answers(&requests) else { break };
                    params = params.with_input_responses(answers);
                }
                // The server's note goes back unchanged, and only if it sent one.
                params.request_state = asked.request_state;
            }
            _ => return Err(ServiceError::UnexpectedResponse),
        }
    }
    Err(ServiceError::InputRequiredRoundsExceeded { max_rounds: ROUNDS })
}

/// Answers the server's questions: there is no user to ask, and there are no folders to name. `None` if it asks for a model's reply.
fn answers(requests: &InputRequests) -> Option<InputResponses> {
    let answer = |(key, request): (&String, &InputRequest)| {
        let answer = match request {
            InputRequest::Elicitation(_) => json!({"action": "decline"}),
            InputRequest::ListRoots(_) => json!({"roots": []}),
            _ => return None,
        };
        Some((key.clone(), answer))
    };
    requests.iter().map(answer).collect()
}

async fn send(
    inner: &Inner,
    connection: &Connection,
    (params, arguments): (CallToolRequestParams, &Map<String, Value>),
    cx: &ToolContext,
) -> Result<ServerResult, ServiceError> {
    let limits = &inner.config.limits;
    let options = PeerRequestOptions::with_timeout(limits.call)
        .reset_timeout_on_progress()
        .with_max_total_timeout(limits.longest_call);
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(SentArguments(arguments.clone()));
    let request = ClientRequest::CallToolRequest(request);
    let handle = connection.peer.send_cancellable_request(request, options).await?;
    let told = cx.clone();
    let _watch =
        inner.news.watch(handle.progress_token.clone(), Arc::new(move |progress| told.progress(progress)));
    let mut guard = CancelOnDrop { peer: Some(connection.peer.clone()), id: handle.id.clone() };
    let result = handle.await_response().await;
    guard.peer = None;
    result
}

/// Tells the server on drop that the result is no longer awaited.
struct CancelOnDrop {
    peer: Option<Peer<RoleClient>>,
    id: RequestId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(peer), Ok(runtime)) = (self.peer.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let param =
            CancelledNotificationParam::new(Some(self.id.clone()), Some("nobody waits any more".to_owned()));
        runtime.spawn(async move {
            let sending = peer.send_notification(CancelledNotification::new(param).into());
            // A server that does not read gets no notification.
            let _ = tokio::time::timeout(NOTIFY, sending).await;
        });
    }
}

async fn completed(inner: &Inner, tool: &str, offered: &Offered, result: CallToolResult) -> ToolOutcome {
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
        let text = output.text_content().into_owned();
        let text = if text.is_empty() { "The tool failed and does not say why.".to_owned() } else { text };
        return if says_unknown(&text) {
            unknown_or(inner, tool, text).await
        } else {
            ToolOutcome::failed(FailureCode::TOOL_ERROR, text)
        };
    }
    if let Some(check) = &offered.output {
        let fault = match &structured {
            Some(structured) => check.fault(structured),
            None => Some("there is none".to_owned()),
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

/// Servers report an unknown tool in words, some of them as a result.
fn says_unknown(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("unknown tool") || text.contains("tool") && text.contains("not found")
}

/// The tool may be gone: lists the tools again. Only if it is not in the list, that is the answer; otherwise the server's words are.
async fn unknown_or(inner: &Inner, tool: &str, text: String) -> ToolOutcome {
    inner.refresh_at_times().await;
    if !inner.listing().tools.contains_key(tool) {
        return failed("tool_gone", format!("`{tool}` is no longer offered by {}.", inner.server()));
    }
    ToolOutcome::failed(FailureCode::TOOL_ERROR, text)
}

fn timed_out(inner: &Inner, limit: Duration) -> ToolOutcome {
    let text = format!("{} did not answer within {} s.", inner.server(), limit.as_secs_f64());
    ToolOutcome::failed(FailureCode::TIMEOUT, text)
}

fn failed(code: &'static str, text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::failed(FailureCode::new(code), text)
}

/// Cuts a server's text to a bounded length for an error.
fn cut(text: String) -> String {
    if text.len() <= 2_000 { text } else { text.chars().take(2_000).collect() }
}
