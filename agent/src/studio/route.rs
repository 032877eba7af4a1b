//! Checks requests, and answers them.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::assets;
use super::response::{Rejection, StudioResponse, json_response};
use super::run::{StudioRun, drive};
use super::run_log::LogPosition;
use super::shared::StudioShared;
use super::waiting::PageDecision;
use crate::serve::{BodyError, read_body};

/// Maximum length of a request's body, in bytes.
const MAX_BODY: usize = 4 << 20;
const BODY_TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentsBody {
    text: String,
    #[serde(default)]
    confirmed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptBody {
    text: String,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SteerBody {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecideBody {
    decisions: Vec<PageDecision>,
}

#[derive(Deserialize)]
struct EmptyBody {}

pub(super) async fn respond(shared: Arc<StudioShared>, request: Request<Incoming>) -> StudioResponse {
    try_respond(shared, request).await.unwrap_or_else(Rejection::into_response)
}

async fn try_respond(
    shared: Arc<StudioShared>,
    request: Request<Incoming>,
) -> Result<StudioResponse, Rejection> {
    let (head, body) = request.into_parts();
    let denied = |message: &str| Rejection::new(StatusCode::FORBIDDEN, "forbidden", message);
    shared.hosts.check(&head).map_err(denied)?;
    let path = head.uri.path();
    if let Some(file) = assets::file(path).filter(|_| head.method == Method::GET) {
        return Ok(file);
    }
    check_token(&shared, &head)?;
    let segments: Vec<String> = path
        .split('/')
        .skip(1)
        .map(decoded)
        .collect::<Option<_>>()
        .ok_or_else(|| Rejection::invalid("The path is not UTF-8 text."))?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match head.method {
        Method::GET => get(&shared, &segments, &head).await,
        Method::POST => post(&shared, &segments, &head, body).await,
        _ => Err(Rejection::new(StatusCode::METHOD_NOT_ALLOWED, "method", "Use GET or POST.")),
    }
}

fn check_token(shared: &StudioShared, head: &Parts) -> Result<(), Rejection> {
    let given = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if shared.has_token(given) {
        return Ok(());
    }
    let message = "The token is missing or wrong: open the address that the studio printed when it started.";
    Err(Rejection::new(StatusCode::UNAUTHORIZED, "token", message))
}

async fn get(shared: &Arc<StudioShared>, path: &[&str], head: &Parts) -> Result<StudioResponse, Rejection> {
    let value = match path {
        ["api", "info"] => info(shared),
        ["api", "tools"] => shared.tool_list(),
        ["api", "tools", name] => shared.tool_schemas(name)?,
        ["api", "runs"] => shared.run_list(),
        ["api", "sessions"] => json!({"open": shared.open_conversations()}),
        ["api", "stored"] => {
            let text = query(head, "query").unwrap_or_default();
            let with_children = query(head, "children").is_some();
            shared.stored_sessions(&text, query(head, "after").as_deref(), with_children).await?
        }
        ["api", "sessions", id] => {
            let after = query(head, "after").and_then(|after| after.parse().ok()).unwrap_or(0);
            let conversation = shared.conversation(Some(id)).await?;
            shared.messages(&conversation, after)
        }
        ["api", "sessions", id, "window"] => {
            let conversation = shared.conversation(Some(id)).await?;
            window(&conversation.assistant)
        }
        ["api", "window"] => window(&shared.template),
        ["api", "runs", id, "events"] => {
            let run = shared.conversations.run(id)?;
            let from = query(head, "after").map_or(Ok(LogPosition::default()), |after| {
                after.parse().map_err(|()| Rejection::invalid("`after` is not a position of this run."))
            })?;
            return Ok(run.events(from, &shared.lifecycle));
        }
        ["api", "runs", id, "steps"] => {
            let run = shared.conversations.run(id)?;
            shared.requests.of_run(id).iter().map(|request| request.summary(run.began)).collect()
        }
        ["api", "runs", id, "steps", turn, attempt] => {
            let (turn, attempt) = (turn.parse().unwrap_or(0), attempt.parse().unwrap_or(0));
            // The query may name the run of a sub-agent within this run.
            let run = query(head, "run").unwrap_or_else(|| (*id).to_owned());
            let requests = shared.requests.of_run(id);
            let request = requests.iter().find(|request| request.is_of(&run, turn, attempt));
            request.ok_or_else(|| Rejection::not_found("request"))?.shown(&shared.secrets)
        }
        ["api", "runs", id, "calls", call] => {
            let run = shared.conversations.run(id)?;
            whole_result(shared, &run, call)?
        }
        _ => return Err(Rejection::not_found("page")),
    };
    Ok(json_response(&value))
}

async fn post(
    shared: &Arc<StudioShared>,
    path: &[&str],
    head: &Parts,
    body: Incoming,
) -> Result<StudioResponse, Rejection> {
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    // Another website can send bodies of other types with a form, without the user's consent, so only JSON is accepted.
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = "The content type must be `application/json`.";
        return Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", message));
    }
    let body = read_body(body, MAX_BODY, BODY_TIME).await.map_err(|error| match error {
        BodyError::TooLong => {
            let message = format!("A request has at most {MAX_BODY} bytes.");
            Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, "too_long", message)
        }
        BodyError::TooSlow => {
            Rejection::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "The request took too long.")
        }
        BodyError::Broken => Rejection::invalid("The request broke off."),
    })?;
    let value = match path {
        ["api", "tools", name, "check"] => shared.check(name, parse::<ArgumentsBody>(&body)?.text)?,
        ["api", "tools", name, "call"] => {
            let ArgumentsBody { text, confirmed } = parse(&body)?;
            shared.call(name, text, confirmed).await?
        }
        ["api", "runs"] => begin(shared, parse(&body)?).await?,
        ["api", "runs", id, "steer"] => {
            shared.conversations.run(id)?.steer(parse::<SteerBody>(&body)?.text)?;
            json!({})
        }
        ["api", "runs", id, "cancel"] => {
            let EmptyBody {} = parse(&body)?;
            shared.conversations.run(id)?.cancel("cancelled in the studio");
            json!({})
        }
        ["api", "runs", id, "decide"] => {
            shared.conversations.run(id)?.decide(parse::<DecideBody>(&body)?.decisions)?;
            json!({})
        }
        _ => return Err(Rejection::not_found("page")),
    };
    Ok(json_response(&value))
}

async fn begin(shared: &Arc<StudioShared>, body: PromptBody) -> Result<Value, Rejection> {
    if body.text.trim().is_empty() {
        return Err(Rejection::invalid("The message is empty."));
    }
    let conversation = shared.conversation(body.session.as_deref()).await?;
    let stream = conversation.assistant.prompt(body.text).stream();
    let run = StudioRun::new(conversation.clone(), stream.handle());
    shared.conversations.add_run(run.clone())?;
    let answer = json!({"run": run.id(), "session": conversation.id});
    tokio::spawn(drive(run, stream, None));
    Ok(answer)
}

fn info(shared: &StudioShared) -> Value {
    let model = shared.template.model();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "instance": shared.instance,
        "provider": model.provider,
        "model": model.model,
        "has_store": shared.template.has_store(),
    })
}

fn window(assistant: &crate::runtime::Assistant) -> Value {
    json!(assistant.context())
}

/// Returns the result of a call of this run. Other runs of the conversation may have calls with the same id.
fn whole_result(shared: &StudioShared, run: &StudioRun, call_id: &str) -> Result<Value, Rejection> {
    let messages = run.conversation.assistant.messages();
    let until = shared.conversations.end_of(run).unwrap_or(messages.len());
    let mut own = messages.shared().iter().take(until).skip(run.from).rev();
    let found = own.find(|message| message.as_tool_result().is_some_and(|result| result.call_id == call_id));
    Ok(json!(shared.secrets.shown(found.ok_or_else(|| Rejection::not_found("result"))?)))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Rejection> {
    serde_json::from_slice(body)
        .map_err(|error| Rejection::invalid(format!("The body is not as expected: {error}")))
}

/// Returns the decoded value of a query parameter, or `None` if the parameter is missing or badly encoded.
fn query(head: &Parts, name: &str) -> Option<String> {
    let mut pairs = head.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).and_then(|(_, value)| decoded(value))
}

/// Decodes percent-encoded text. Returns `None` if an escape is invalid, or if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
