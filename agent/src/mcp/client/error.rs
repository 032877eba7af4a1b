//! The errors of connecting to a server and of listing its tools.

/// An error that makes a server unusable. Its text contains the cause and often a suggestion, but no secrets.
///
/// ```
/// use agent::mcp::{McpClient, ClientConfig, McpClientError, ConnectErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = McpClient::connect(ClientConfig::command("no-such-program-here")).await.unwrap_err();
/// assert!(matches!(error, McpClientError::Connect { kind: ConnectErrorKind::NotStarted, .. }));
/// let text = error.to_string();
/// assert!(text.starts_with("cannot connect to no-such-program-here: the program cannot be started ("), "{text}");
/// assert!(text.ends_with("check its name, and that it is installed where `PATH` looks"), "{text}");
/// # }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum McpClientError {
    /// The connection failed.
    #[error("cannot connect to {server}: {reason}")]
    #[non_exhaustive]
    Connect {
        /// The name of the server. Without a configured or reported name: its URL or program.
        server: String,
        /// The kind of the failure.
        kind: ConnectErrorKind,
        /// The cause, and a suggestion if there is one.
        reason: String,
    },
    /// The server requires authorization: the token is missing or invalid, or does not allow the request.
    ///
    /// ```no_run
    /// use agent::mcp::{ClientConfig, McpClient, McpClientError};
    ///
    /// # async fn example() {
    /// match McpClient::connect(ClientConfig::http("https://docs.example/mcp")).await {
    ///     Err(McpClientError::Unauthorized { scope, resource_metadata, .. }) => {
    ///         println!("a token with the scope {scope:?} is needed, see {resource_metadata:?}");
    ///     }
    ///     connected => println!("{}", connected.is_ok()),
    /// }
    /// # }
    /// ```
    #[error("{server} requires authorization: {}", requirements(error.as_deref(), scope.as_deref(), resource_metadata.as_deref()))]
    #[non_exhaustive]
    Unauthorized {
        /// The name of the server, or its URL or program, as in [`McpClientError::Connect`].
        server: String,
        /// The URL of the document that names the authorization server (RFC 9728), if the server reports it.
        resource_metadata: Option<String>,
        /// The scope that a token needs, if the server reports it.
        scope: Option<String>,
        /// The error code for the token that was sent, such as `invalid_token`, if the server reports it.
        error: Option<String>,
    },
    /// The tools of the server cannot be listed.
    #[error("the tools of {server} cannot be listed: {reason}")]
    #[non_exhaustive]
    List {
        /// The name of the server, or its URL or program, as in [`McpClientError::Connect`].
        server: String,
        /// The reason.
        reason: String,
    },
    /// The configuration gives the same name to two tools of the server.
    #[error("the tools {first:?} and {second:?} of {server} would both be called `{name}`: rename one")]
    #[non_exhaustive]
    Names {
        /// The name of the server.
        server: String,
        /// The name that both tools would have.
        name: String,
        /// The server's name of one tool.
        first: String,
        /// The server's name of the other tool.
        second: String,
    },
}

crate::error_text::debug_is_the_sentence!(McpClientError);

/// The kind of a failure to connect.
///
/// ```
/// use agent::mcp::{McpClient, ClientConfig, McpClientError, ConnectErrorKind};
///
/// # async fn example() -> Result<(), McpClientError> {
/// match McpClient::connect(ClientConfig::http("http://127.0.0.1:8080/mcp")).await {
///     // The server may be starting: try again later.
///     Err(McpClientError::Connect { kind: ConnectErrorKind::Unreachable | ConnectErrorKind::Timeout, .. }) => {}
///     connected => drop(connected?),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The URL, a header or the token is not usable, a setting is for another kind of server, or
    /// [`public_addresses_only`](super::ClientConfig::public_addresses_only) forbids the address. No request was sent, and no program was
    /// started.
    Configuration,
    /// Nothing listens at the address, the host name is unknown, a secure connection cannot be made, or the connection failed in another
    /// way.
    Unreachable,
    /// The server responded with this HTTP status. For the status 401, and for the status 403 with a `WWW-Authenticate` header, the error
    /// is [`McpClientError::Unauthorized`] instead.
    Status(u16),
    /// The server redirects to another origin, which the client does not follow, or redirects too often.
    Redirected,
    /// The server does not speak MCP or valid HTTP, or ends an HTTP connection without an answer.
    NotMcp,
    /// The MCP server refused the connection, or supports no common version of the protocol.
    Refused,
    /// The program cannot be started.
    NotStarted,
    /// The program ended before its first answer.
    Ended,
    /// The server did not answer within [`ClientConfig::connect_timeout`](super::ClientConfig::connect_timeout).
    Timeout,
    /// Too many attempts to reconnect failed, or led to a connection that was soon lost. The client waits a minute before the next attempt.
    GivenUp,
}

/// The parameters of `WWW-Authenticate` in a response with the status 401 or 403.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    resource_metadata: Option<String>,
    scope: Option<String>,
    error: Option<String>,
}

impl Challenge {
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut rest = header;
        while let Some((name, after)) = rest.split_once('=') {
            // The scheme of a challenge, such as `Bearer`, precedes the first parameter.
            let name =
                name.trim_end().rsplit([' ', ',', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            let (value, left) = value(after);
            match &*name {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scope = Some(value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
            rest = left;
        }
        challenge
    }

    pub(super) fn of_server(self, server: String) -> McpClientError {
        let Self { resource_metadata, scope, error } = self;
        McpClientError::Unauthorized { server, resource_metadata, scope, error }
    }
}

/// Parses the value of a parameter: a token or a quoted text. Returns the value and the remaining text.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, char) in quoted.char_indices() {
        match char {
            _ if is_escaped => {
                value.push(char);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(char),
        }
    }
    (value, "")
}

fn requirements(error: Option<&str>, scope: Option<&str>, resource_metadata: Option<&str>) -> String {
    let error = error.map(|error| match error {
        "invalid_token" => "the token was refused (invalid_token)".to_owned(),
        "insufficient_scope" => "the token does not allow it (insufficient_scope)".to_owned(),
        other => format!("error {other}"),
    });
    let scope = scope.map(|scope| format!("scope {scope}"));
    let metadata = resource_metadata.map(|url| format!("resource metadata {url}"));
    let parts: Vec<String> = [error, scope, metadata].into_iter().flatten().collect();
    if parts.is_empty() {
        return "set a valid token with `ClientConfig::bearer_token`".to_owned();
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_challenges_are_read_in_part() {
        let full = r#"Bearer error="invalid_token", scope="a b", resource_metadata="https://x/.well-known/y", other=1"#;
        let challenge = Challenge::parse(full);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        assert_eq!(challenge.scope.as_deref(), Some("a b"));
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/.well-known/y"));
        assert_eq!(Challenge::parse(r#"Bearer scope=a,error="q\"x"#).error.as_deref(), Some("q\"x"));
        let second =
            Challenge::parse(r#"Negotiate abc==, Basic realm="x", Bearer error="invalid_token", scope="a""#);
        assert_eq!((second.error.as_deref(), second.scope.as_deref()), (Some("invalid_token"), Some("a")));
        for nothing in ["", "Bearer", "Basic realm=\"x\"", "=", "Bearer =\""] {
            assert_eq!(Challenge::parse(nothing), Challenge::default(), "{nothing}");
        }
        for (header, required) in [
            ("", "set a valid token with `ClientConfig::bearer_token`"),
            ("Bearer scope=a", "scope a"),
            ("Bearer error=invalid_token, scope=a", "the token was refused (invalid_token), scope a"),
        ] {
            let error = Challenge::parse(header).of_server("docs".to_owned());
            assert_eq!(error.to_string(), format!("docs requires authorization: {required}"));
        }
    }
}
