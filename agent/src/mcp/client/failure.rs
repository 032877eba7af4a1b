//! Messages for failed connections: what happened, and one thing to try.

use super::ClientError;
use super::config::{ClientConfig, Era, HttpPlace, Place};
use super::error::{Challenge, ConnectErrorKind as Kind};
use super::traffic::{Secrets, Tap};
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

/// Maximum length of a reason, in characters.
const LONGEST: usize = 600;
/// Maximum length of what a server wrote instead of an answer, in characters.
const LONGEST_BODY: usize = 120;
/// The start of `rmcp`'s message when a server refuses the request for its versions by an HTTP status.
const DISCOVER_REFUSED: &str = "server/discover rejected with ";

/// A failed connection: its kind, and what happened.
pub(super) struct Failure {
    kind: Kind,
    what: String,
}

impl Failure {
    pub(super) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    /// Returns the error of a server, with one thing to try. Text of a server or a program is masked by `tap`.
    pub(super) fn error(self, config: &ClientConfig, server: &str, tap: &Tap) -> ClientError {
        let Self { kind, what } = self;
        let server = server.to_owned();
        if kind == Kind::Status(401) {
            return ClientError::Unauthorized { server, challenge: Challenge::default() };
        }
        let mut reason: String = tap.masked(&what).chars().take(LONGEST).collect();
        let wrote = tap.last_words();
        if let (Some(words), Kind::Ended | Kind::Timeout) = (&wrote, kind) {
            let _ = write!(reason, "; its last words on standard error: {words}");
        }
        if let Some(hint) = hint(kind, config, wrote.is_some()) {
            let _ = write!(reason, "; {hint}");
        }
        ClientError::Connect { server, kind, reason }
    }

    pub(super) fn timeout(limit: Duration) -> Self {
        Self::new(Kind::Timeout, format!("it did not answer within {} s", limit.as_secs_f64()))
    }
}

/// Describes a failed handshake.
pub(super) fn refused(
    config: &ClientConfig,
    server: &str,
    tap: &Tap,
    error: &ClientInitializeError,
) -> ClientError {
    if let Some(challenge) = error.auth_challenge() {
        return ClientError::Unauthorized {
            server: server.to_owned(),
            challenge: Challenge::parse(challenge),
        };
    }
    handshake(config, error).error(config, server, tap)
}

/// Whether the handshake failed because a program ended.
pub(super) fn is_end(config: &ClientConfig, error: &ClientInitializeError) -> bool {
    handshake(config, error).kind == Kind::Ended
}

fn handshake(config: &ClientConfig, error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport(config, &*error.error),
        ClientInitializeError::ConnectionClosed(_) => closed(config),
        ClientInitializeError::JsonRpcError(error) => {
            match error.message.strip_prefix(DISCOVER_REFUSED).and_then(by_status) {
                Some(failure) => failure,
                None => Failure::new(
                    Kind::Refused,
                    format!("it refused with error {}: {}", error.code.0, short(&error.message)),
                ),
            }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            Failure::new(
                Kind::Refused,
                format!("it speaks these versions of MCP only: {}", versions.join(", ")),
            )
        }
        _ => Failure::new(Kind::NotMcp, "it answers, but not as MCP wants it"),
    }
}

/// Describes a failed transport. The names of transport types are removed from the message.
fn transport(config: &ClientConfig, error: &(dyn Error + 'static)) -> Failure {
    if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        return over_http(config, error);
    }
    if let (Place::Command(_), Some(error)) = (&config.place, error.downcast_ref::<io::Error>())
        && matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
    {
        return closed(config);
    }
    Failure::new(Kind::Unreachable, with_sources(config, error))
}

fn closed(config: &ClientConfig) -> Failure {
    match &config.place {
        Place::Http(_) => Failure::new(Kind::NotMcp, "it ended the connection without an answer"),
        Place::Command(_) => Failure::new(Kind::Ended, "the program ended before it answered"),
    }
}

fn over_http(config: &ClientConfig, error: &StreamableHttpError<reqwest::Error>) -> Failure {
    type E = StreamableHttpError<reqwest::Error>;
    match error {
        E::Client(error) => request(config, error),
        E::HttpStatus(error) => status(error.status, ""),
        E::UnexpectedServerResponse(said) => match by_status(said) {
            Some(failure) => failure,
            // `rmcp` says more, in names of its types.
            None => Failure::new(Kind::NotMcp, "it answered with JSON that is not a message of MCP"),
        },
        E::UnexpectedContentType(Some(found)) => Failure::new(
            Kind::NotMcp,
            format!("it answered with `{}`, not with a message of MCP", short(found)),
        ),
        E::UnexpectedContentType(None) => {
            Failure::new(Kind::NotMcp, "it answered with something that is not a message of MCP")
        }
        E::UnexpectedEndOfStream | E::TransportChannelClosed => closed(config),
        other => Failure::new(Kind::Unreachable, with_sources(config, other)),
    }
}

/// Describes a request that got no answer.
fn request(config: &ClientConfig, error: &reqwest::Error) -> Failure {
    let root = root(error);
    let cause = masked(config, root.to_string());
    if let Some(io) = root.downcast_ref::<io::Error>()
        && io.kind() == io::ErrorKind::ConnectionRefused
    {
        return Failure::new(Kind::Unreachable, format!("nothing listens there ({cause})"));
    }
    if error.is_timeout() {
        return Failure::new(Kind::Timeout, "it did not answer in time");
    }
    if error.is_builder() {
        return Failure::new(Kind::Configuration, format!("the request cannot be made ({cause})"));
    }
    if error.is_redirect() {
        return Failure::new(Kind::Redirected, format!("it sends the request elsewhere ({cause})"));
    }
    if error.is_connect() {
        return Failure::new(Kind::Unreachable, format!("there is no connection ({cause})"));
    }
    Failure::new(Kind::NotMcp, format!("what answers does not speak HTTP as it should ({cause})"))
}

/// `HTTP 404 Not Found: body`.
fn by_status(said: &str) -> Option<Failure> {
    let (code, rest) = said.strip_prefix("HTTP ")?.split_at_checked(3)?;
    let body = rest.split_once(':').map_or("", |(_, body)| body.trim());
    Some(status(code.parse().ok()?, body))
}

fn status(code: u16, body: &str) -> Failure {
    let name =
        StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let mut what = format!("it answered with HTTP status {code} {name}").trim_end().to_owned();
    // HTML pages are meant for browsers, so their text is left out.
    if !body.is_empty() && !body.starts_with('<') {
        let _ = write!(what, ": {}", short(body).trim_end_matches('.'));
    }
    Failure::new(Kind::Status(code), what)
}

/// Returns the hint that is most likely to help, if there is one.
fn hint(kind: Kind, config: &ClientConfig, has_words: bool) -> Option<String> {
    let hint = match (kind, &config.place) {
        (Kind::Unreachable, Place::Http(place)) if place.url.starts_with("https:") => {
            "check that the server runs, host and port, and that it speaks TLS: without it the URL begins with `http:`"
        }
        (Kind::Unreachable, _) => "check that the server runs, and host and port",
        (Kind::Redirected, _) => "give the URL that it leads to",
        (Kind::Status(404 | 405) | Kind::NotMcp, Place::Http(place)) => return Some(path_hint(place)),
        (Kind::Status(403), _) => "check the token and what it allows",
        (Kind::Status(429), _) => "try again later",
        (Kind::Status(500..), _) => "the server failed: its log says why",
        (Kind::Status(_) | Kind::Refused, _) if config.era == Era::Modern => {
            "if it speaks 2025-11-25 or older, leave `.era(Era::Modern)` away"
        }
        (Kind::Ended, _) if !has_words => "run the command by hand to see why",
        (Kind::Timeout, Place::Http(_)) if config.era == Era::Auto => {
            "if it is slow, give it more with `ClientLimits::connect`; if it is old and silent about what is new, say so with `.era(Era::Legacy)`"
        }
        (Kind::Timeout, Place::Http(_)) => "if it is slow, give it more with `ClientLimits::connect`",
        (Kind::Timeout, Place::Command(_)) => {
            "check that it is a server that speaks MCP over standard input; if it starts slowly, give it more with `ClientLimits::connect`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The most common mistake in a URL.
fn path_hint(place: &HttpPlace) -> String {
    let path = place.url.split(['?', '#']).next().unwrap_or_default();
    if path.trim_end_matches('/').ends_with("/mcp") {
        "check the URL: there is no MCP server at this path".to_owned()
    } else {
        "check the path of the URL: for most servers it is `/mcp`".to_owned()
    }
}

/// Describes a failed request after the handshake, in the same words.
pub(super) fn told(config: &ClientConfig, error: &ServiceError) -> String {
    let text = match error {
        ServiceError::TransportSend(error) => transport(config, &*error.error).what,
        ServiceError::TransportClosed => closed(config).what,
        other => with_sources(config, other),
    };
    text.chars().take(LONGEST).collect()
}

/// The text of an error with its sources, each included once.
fn with_sources(config: &ClientConfig, error: &(dyn Error + 'static)) -> String {
    masked(config, crate::error_text::with_sources(error))
}

/// Masks the URL, and the other secrets of the configuration.
fn masked(config: &ClientConfig, text: String) -> String {
    Secrets::of(config).mask(text)
}

/// The innermost source of an error.
fn root<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error)
}

/// Foreign text as one short line.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST_BODY) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns what a server requires first, if that is why a request failed.
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
        source = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_the_secrets_of_a_url() {
        let config = ClientConfig::http("https://x.example/mcp?key=s3cret");
        let error = io::Error::other("cannot reach https://x.example/mcp?key=s3cret");
        assert_eq!(with_sources(&config, &error), "cannot reach https://x.example/mcp");
    }

    #[test]
    fn what_a_server_wrote_is_one_short_line_without_secrets() {
        let config = ClientConfig::http("https://x.example/").bearer_token("t0k");
        let tap = Tap::new(&config, "x");
        tap.hide("t0k");
        let body = format!("HTTP 404 Not Found: no t0k here {}\nand more", "x".repeat(500));
        let error = by_status(&body).unwrap().error(&config, "x", &tap).to_string();
        assert!(error.starts_with(
            "cannot connect to x: it answered with HTTP status 404 Not Found: no [redacted] here xxx"
        ));
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
        for no_status in ["HTTP", "HTTP 4", "HTTP x04 Not Found", "404", "HTTP 4\u{e9}"] {
            assert!(by_status(no_status).is_none(), "{no_status}");
        }
    }

    #[test]
    fn a_hint_about_the_path_is_given_where_it_helps() {
        let hint = |url: &str| {
            let config = ClientConfig::http(url);
            let tap = Tap::new(&config, "x");
            status(404, "").error(&config, "x", &tap).to_string()
        };
        assert!(hint("http://x.example/").contains("for most servers it is `/mcp`"));
        assert!(hint("http://x.example/mcp?x=/y").contains("there is no MCP server at this path"));
    }
}
