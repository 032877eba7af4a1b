//! The messages of failed connections: the cause, and at most one suggestion.

use super::McpClientError;
use super::config::{ClientConfig, Endpoint, Era, HttpEndpoint};
use super::error::{Challenge, ConnectErrorKind as Kind};
use super::traffic::TrafficTap;
use http::StatusCode;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// Maximum length of a cause, in characters. The suggestion and the last lines of a program's error output are not counted.
const LONGEST: usize = 600;
/// Maximum length of a quoted text of the server, such as a response body, in characters.
const LONGEST_BODY: usize = 120;
/// The start of the message of `rmcp` when a server refuses `server/discover` with an HTTP status.
const DISCOVER_REFUSED: &str = "server/discover rejected with ";

pub(super) struct ConnectFailure {
    kind: Kind,
    message: String,
}

impl ConnectFailure {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn error(self, config: &ClientConfig, server: &str, tap: &TrafficTap) -> McpClientError {
        let Self { kind, message } = self;
        let server = server.to_owned();
        if kind == Kind::Status(401) {
            return Challenge::default().of_server(server);
        }
        let mut reason: String = tap.masked(&message).chars().take(LONGEST).collect();
        let last_words = tap.last_words();
        if let (Some(words), Kind::Ended | Kind::Timeout) = (&last_words, kind) {
            let _ = write!(reason, "; its last words on standard error: {words}");
        }
        if let Some(hint) = hint(kind, config, last_words.is_some()) {
            let _ = write!(reason, "; {hint}");
        }
        McpClientError::Connect { server, kind, reason }
    }

    pub(super) fn timeout(limit: Duration) -> Self {
        Self::new(Kind::Timeout, format!("it did not answer within {} s", limit.as_secs_f64()))
    }
}

pub(super) fn handshake_error(
    config: &ClientConfig,
    server: &str,
    tap: &TrafficTap,
    error: &ClientInitializeError,
) -> McpClientError {
    if let Some(challenge) = error.auth_challenge() {
        return Challenge::parse(challenge).of_server(server.to_owned());
    }
    handshake(config, tap, error).error(config, server, tap)
}

/// Returns whether the handshake failed because a program ended.
pub(super) fn is_end(config: &ClientConfig, tap: &TrafficTap, error: &ClientInitializeError) -> bool {
    handshake(config, tap, error).kind == Kind::Ended
}

fn handshake(config: &ClientConfig, tap: &TrafficTap, error: &ClientInitializeError) -> ConnectFailure {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport(config, tap, &*error.error),
        ClientInitializeError::ConnectionClosed(_) => closed(config),
        ClientInitializeError::JsonRpcError(error) => {
            match error.message.strip_prefix(DISCOVER_REFUSED).and_then(|text| by_status(tap, text)) {
                Some(failure) => failure,
                None => ConnectFailure::new(
                    Kind::Refused,
                    format!("it refused with error {}: {}", error.code.0, short(tap, &error.message)),
                ),
            }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            ConnectFailure::new(
                Kind::Refused,
                format!("it speaks these versions of MCP only: {}", versions.join(", ")),
            )
        }
        _ => ConnectFailure::new(Kind::NotMcp, "its answer is not one that MCP allows"),
    }
}

/// Describes the failure of a transport. `error` is the inner error: the text of the outer one contains the name of a Rust type.
fn transport(config: &ClientConfig, tap: &TrafficTap, error: &(dyn Error + 'static)) -> ConnectFailure {
    if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        return over_http(config, tap, error);
    }
    if let (Endpoint::Command(_), Some(error)) = (&config.endpoint, error.downcast_ref::<io::Error>())
        && matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
    {
        return closed(config);
    }
    ConnectFailure::new(Kind::Unreachable, with_sources(tap, error))
}

fn closed(config: &ClientConfig) -> ConnectFailure {
    match &config.endpoint {
        Endpoint::Http(_) => ConnectFailure::new(Kind::NotMcp, "it ended the connection without an answer"),
        Endpoint::Command(_) => ConnectFailure::new(Kind::Ended, "the program ended before it answered"),
    }
}

fn over_http(
    config: &ClientConfig,
    tap: &TrafficTap,
    error: &StreamableHttpError<reqwest::Error>,
) -> ConnectFailure {
    type E = StreamableHttpError<reqwest::Error>;
    match error {
        E::Client(error) => request(tap, error),
        E::HttpStatus(error) => status(tap, error.status, ""),
        E::UnexpectedServerResponse(text) => match by_status(tap, text) {
            Some(failure) => failure,
            // The text of `rmcp` contains the names of its Rust types, so the text is not shown.
            None => ConnectFailure::new(Kind::NotMcp, "it answered with JSON that is not a message of MCP"),
        },
        E::UnexpectedContentType(Some(found)) => ConnectFailure::new(
            Kind::NotMcp,
            format!("it answered with `{}`, not with a message of MCP", short(tap, found)),
        ),
        E::UnexpectedContentType(None) => {
            ConnectFailure::new(Kind::NotMcp, "it answered with something that is not a message of MCP")
        }
        E::UnexpectedEndOfStream | E::TransportChannelClosed => closed(config),
        other => ConnectFailure::new(Kind::Unreachable, with_sources(tap, other)),
    }
}

fn request(tap: &TrafficTap, error: &reqwest::Error) -> ConnectFailure {
    let root = root(error);
    let cause = tap.masked(&root.to_string());
    if let Some(io) = root.downcast_ref::<io::Error>()
        && io.kind() == io::ErrorKind::ConnectionRefused
    {
        return ConnectFailure::new(Kind::Unreachable, format!("nothing listens there ({cause})"));
    }
    if error.is_timeout() {
        return ConnectFailure::new(Kind::Timeout, "it did not answer in time");
    }
    if error.is_builder() {
        return ConnectFailure::new(Kind::Configuration, format!("the request cannot be made ({cause})"));
    }
    if error.is_redirect() {
        return ConnectFailure::new(Kind::Redirected, format!("it sends the request elsewhere ({cause})"));
    }
    if error.is_connect() {
        return ConnectFailure::new(Kind::Unreachable, format!("there is no connection ({cause})"));
    }
    ConnectFailure::new(Kind::NotMcp, format!("it does not answer with valid HTTP ({cause})"))
}

/// Describes a response that `rmcp` reports as a text such as `HTTP 404 Not Found: body`. Returns `None` for any other text.
fn by_status(tap: &TrafficTap, text: &str) -> Option<ConnectFailure> {
    let (code, body) = code_and_body(text)?;
    Some(status(tap, code, body))
}

fn code_and_body(text: &str) -> Option<(u16, &str)> {
    let (code, rest) = text.strip_prefix("HTTP ")?.split_at_checked(3)?;
    Some((code.parse().ok()?, rest.split_once(':').map_or("", |(_, body)| body.trim())))
}

fn status(tap: &TrafficTap, code: u16, body: &str) -> ConnectFailure {
    let name =
        StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let mut message = format!("it answered with HTTP status {code} {name}").trim_end().to_owned();
    // HTML pages are for browsers, so their text is omitted.
    if !body.is_empty() && !body.starts_with('<') {
        let _ = write!(message, ": {}", short(tap, body).trim_end_matches('.'));
    }
    ConnectFailure::new(Kind::Status(code), message)
}

fn hint(kind: Kind, config: &ClientConfig, has_words: bool) -> Option<String> {
    let hint = match (kind, &config.endpoint) {
        (Kind::Unreachable, Endpoint::Http(endpoint)) if endpoint.url.starts_with("https:") => {
            "check that the server runs, the host, the port, and that the server uses TLS: without TLS, the URL begins with `http:`"
        }
        (Kind::Unreachable, _) => "check that the server runs, the host and the port",
        (Kind::Redirected, _) => "use the URL of the redirect's target",
        (Kind::Status(404 | 405) | Kind::NotMcp, Endpoint::Http(endpoint)) => {
            return Some(path_hint(endpoint));
        }
        (Kind::Status(403), _) => "check the token and what it allows",
        (Kind::Status(429), _) => "try again later",
        (Kind::Status(500..), _) => "the server failed: see its log",
        (Kind::Status(_) | Kind::Refused, _) if config.era == Era::Modern => {
            "if it speaks 2025-11-25 or older, remove `.modern()`"
        }
        (Kind::Ended, _) if !has_words => "run the command by hand to see why",
        (Kind::Timeout, Endpoint::Http(_)) if config.era == Era::Auto => {
            "if it is slow, raise `ClientConfig::connect_timeout`; if it is older and ignores unknown requests, set `.legacy()`"
        }
        (Kind::Timeout, Endpoint::Http(_)) => "if it is slow, raise `ClientConfig::connect_timeout`",
        (Kind::Timeout, Endpoint::Command(_)) => {
            "check that it is a server that speaks MCP over standard input; if it starts slowly, raise `ClientConfig::connect_timeout`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Suggests a check of the path, the part of a URL in which most mistakes are made.
fn path_hint(endpoint: &HttpEndpoint) -> String {
    let path = endpoint.url.split(['?', '#']).next().unwrap_or_default();
    if path.trim_end_matches('/').ends_with("/mcp") {
        "check the URL: there is no MCP server at this path".to_owned()
    } else {
        "check the path of the URL: for most servers it is `/mcp`".to_owned()
    }
}

/// Describes a request that failed after the handshake, in the same words as a failed connection.
pub(super) fn describe(config: &ClientConfig, tap: &TrafficTap, error: &ServiceError) -> String {
    let text = match error {
        ServiceError::TransportSend(error) => transport(config, tap, &*error.error).message,
        ServiceError::TransportClosed => closed(config).message,
        other => with_sources(tap, other),
    };
    text.chars().take(LONGEST).collect()
}

fn with_sources(tap: &TrafficTap, error: &(dyn Error + 'static)) -> String {
    tap.masked(&crate::error_text::with_sources(error))
}

fn root<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error)
}

/// Returns the first line of a text of the server, masked and then cut. If the text were cut first, the start of a secret could remain.
fn short(tap: &TrafficTap, text: &str) -> String {
    let text = tap.masked(text);
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST_BODY) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns the challenge of the server if the server refused the token of the request. For a response with the status 401 and no
/// `WWW-Authenticate`, `rmcp` reports only a text.
pub(super) fn challenge(error: &ServiceError) -> Option<Challenge> {
    let ServiceError::TransportSend(error) = error else { return None };
    let mut source: Option<&(dyn Error + 'static)> = Some(&*error.error);
    while let Some(cause) = source {
        if let Some(required) = cause.downcast_ref::<AuthRequiredError>() {
            return Some(Challenge::parse(&required.www_authenticate_header));
        }
        if let Some(scope) = cause.downcast_ref::<InsufficientScopeError>() {
            return Some(Challenge::parse(&scope.www_authenticate_header));
        }
        if let Some(StreamableHttpError::<reqwest::Error>::UnexpectedServerResponse(text)) =
            cause.downcast_ref()
            && code_and_body(text).is_some_and(|(code, _)| code == 401)
        {
            return Some(Challenge::default());
        }
        source = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::transport::DynamicTransportError;

    #[test]
    fn errors_do_not_contain_the_secrets_of_a_url() {
        let config = ClientConfig::http("https://x.example/mcp?key=s3cret");
        let error = io::Error::other("cannot reach https://x.example/mcp?key=s3cret");
        assert_eq!(
            with_sources(&TrafficTap::new(&config, "x"), &error),
            "cannot reach https://x.example/mcp"
        );
    }

    #[test]
    fn the_body_of_a_response_is_one_short_line_without_secrets() {
        let config = ClientConfig::http("https://x.example/").bearer_token("t0k");
        let tap = TrafficTap::new(&config, "x");
        tap.hide("t0k");
        let body = format!("HTTP 404 Not Found: no t0k here {}\nand more", "x".repeat(500));
        let error = by_status(&tap, &body).unwrap().error(&config, "x", &tap).to_string();
        assert!(error.starts_with(
            "cannot connect to x: it answered with HTTP status 404 Not Found: no [redacted] here xxx"
        ));
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
        for no_status in ["HTTP", "HTTP 4", "HTTP x04 Not Found", "404", "HTTP 4\u{e9}"] {
            assert!(code_and_body(no_status).is_none(), "{no_status}");
        }
        // A secret at the place where the body is cut.
        let body = format!("HTTP 404 Not Found: {}t0k", "x".repeat(LONGEST_BODY - 2));
        let error = by_status(&tap, &body).unwrap().error(&config, "x", &tap).to_string();
        assert!(error.contains("xx[r…") && !error.contains("t0"), "{error}");
    }

    #[test]
    fn a_refused_token_is_recognized_by_its_status_and_not_shown() {
        let config = ClientConfig::http("https://x.example/");
        let tap = TrafficTap::new(&config, "x");
        tap.hide("t0k");
        let error = |text: &'static str| {
            let error = StreamableHttpError::<reqwest::Error>::UnexpectedServerResponse(text.into());
            let kind = std::any::TypeId::of::<()>();
            ServiceError::TransportSend(DynamicTransportError::from_parts("x", kind, Box::new(error)))
        };
        assert_eq!(challenge(&error("HTTP 401 Unauthorized: ")), Some(Challenge::default()));
        let other = error("HTTP 400 Bad Request: t0k has 3 letters");
        assert_eq!(challenge(&other), None);
        let text = describe(&config, &tap, &other);
        assert_eq!(text, "it answered with HTTP status 400 Bad Request: [redacted] has 3 letters");
    }

    #[test]
    fn the_hint_depends_on_the_path() {
        let hint = |url: &str| {
            let config = ClientConfig::http(url);
            let tap = TrafficTap::new(&config, "x");
            status(&tap, 404, "").error(&config, "x", &tap).to_string()
        };
        assert!(hint("http://x.example/").contains("for most servers it is `/mcp`"));
        assert!(hint("http://x.example/mcp?x=/y").contains("there is no MCP server at this path"));
    }
}
