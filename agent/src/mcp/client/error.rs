//! Why a server cannot be used.

/// An error that makes a server unusable. Its text says what happened and what to try, and contains no secrets.
///
/// ```
/// use agent::mcp::{Client, client::{ClientConfig, ClientError, ConnectErrorKind}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = Client::connect(ClientConfig::command("no-such-program-here")).await.unwrap_err();
/// assert!(matches!(error, ClientError::Connect { kind: ConnectErrorKind::NotStarted, .. }));
/// let text = error.to_string();
/// assert!(text.starts_with("cannot connect to no-such-program-here: the program cannot be started ("), "{text}");
/// assert!(text.ends_with("check its name, and that it is installed where `PATH` looks"), "{text}");
/// # }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection failed.
    #[error("cannot connect to {server}: {reason}")]
    #[non_exhaustive]
    Connect {
        /// The name of the server, or else its URL or program.
        server: String,
        /// What kind of failure it was.
        kind: ConnectErrorKind,
        /// What happened, with the system's message, and what to try.
        reason: String,
    },
    /// The server requires authorization, or more than the token allows.
    #[error("{server} wants authorization: {challenge}")]
    #[non_exhaustive]
    Unauthorized {
        /// The name of the server.
        server: String,
        /// What the server requires.
        challenge: Challenge,
    },
    /// Its tools cannot be listed.
    #[error("the tools of {server} cannot be listed: {reason}")]
    #[non_exhaustive]
    List {
        /// The name of the server.
        server: String,
        /// Why the list failed.
        reason: String,
    },
    /// The configuration gives the same name to two of its tools.
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

crate::error_text::debug_is_the_sentence!(ClientError);

/// The kind of a failure to connect.
///
/// ```
/// use agent::mcp::{Client, client::{ClientConfig, ClientError, ConnectErrorKind}};
///
/// # async fn example() -> Result<(), ClientError> {
/// match Client::connect(ClientConfig::http("http://127.0.0.1:8080/mcp")).await {
///     // It may be starting: worth another try.
///     Err(ClientError::Connect { kind: ConnectErrorKind::Unreachable | ConnectErrorKind::Timeout, .. }) => {}
///     connected => drop(connected?),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The URL, a header or the token is invalid, or a setting belongs to the other kind of server (a token for a command, an
    /// argument for a URL). Nothing was sent or started.
    Configuration,
    /// Nothing listens at the address, its name is unknown, or a secure connection cannot be made.
    Unreachable,
    /// The server answered with this HTTP status. (For 401 the error is [`ClientError::Unauthorized`].)
    Status(u16),
    /// The server redirects to another origin, which is not followed.
    Redirected,
    /// The other side is not an MCP server.
    NotMcp,
    /// The MCP server refused: it shares no version of the protocol, or said so.
    Refused,
    /// The program cannot be started.
    NotStarted,
    /// The program ended before it answered.
    Ended,
    /// There was no answer within [`ClientLimits::connect`](super::ClientLimits::connect).
    Timeout,
    /// Reconnecting to a server that worked before failed too often.
    GivenUp,
}

/// What a server says with a 401 or 403: the parameters of `WWW-Authenticate`.
///
/// ```no_run
/// use agent::mcp::{Client, client::{ClientConfig, ClientError}};
///
/// # async fn example() {
/// match Client::connect(ClientConfig::http("https://docs.example/mcp")).await {
///     Err(ClientError::Unauthorized { challenge, .. }) => {
///         println!("a token with the scope {:?} is needed, see {:?}", challenge.scope, challenge.resource_metadata);
///     }
///     connected => println!("{}", connected.is_ok()),
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The URL of the document that names the authorization server (RFC 9728).
    pub resource_metadata: Option<String>,
    /// The scope that a token needs.
    pub scope: Option<String>,
    /// What is wrong with the token that was sent.
    pub error: Option<String>,
}

impl Challenge {
    /// Parses the header; parts that cannot be parsed are left out.
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut rest = header.trim();
        if let Some((_scheme, parameters)) = rest.split_once(' ') {
            rest = parameters;
        }
        while let Some((name, after)) = rest.split_once('=') {
            let name = name.trim_matches([' ', ',', '\t']).to_ascii_lowercase();
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
}

/// Parses a token or a quoted text, and returns it with the rest.
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

impl std::fmt::Display for Challenge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = self.error.as_deref().map(|error| match error {
            "invalid_token" => "the token was refused (invalid_token)".to_owned(),
            "insufficient_scope" => "the token does not allow it (insufficient_scope)".to_owned(),
            other => format!("error {other}"),
        });
        let scope = self.scope.as_ref().map(|scope| format!("scope {scope}"));
        let metadata = self.resource_metadata.as_ref().map(|url| format!("resource metadata {url}"));
        let told: Vec<String> = [error, scope, metadata].into_iter().flatten().collect();
        if told.is_empty() {
            return f.write_str("give a token by `ClientConfig::bearer_token`, or another one");
        }
        f.write_str(&told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_they_come() {
        let full = r#"Bearer error="invalid_token", scope="a b", resource_metadata="https://x/.well-known/y", other=1"#;
        let challenge = Challenge::parse(full);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        assert_eq!(challenge.scope.as_deref(), Some("a b"));
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/.well-known/y"));
        assert_eq!(Challenge::parse(r#"Bearer scope=a,error="q\"x"#).error.as_deref(), Some("q\"x"));
        for nothing in ["", "Bearer", "Basic realm=\"x\"", "=", "Bearer =\""] {
            assert_eq!(Challenge::parse(nothing), Challenge::default(), "{nothing}");
        }
        assert!(Challenge::default().to_string().starts_with("give a token by `ClientConfig::bearer_token`"));
        assert_eq!(Challenge::parse("Bearer scope=a").to_string(), "scope a");
        assert_eq!(
            Challenge::parse("Bearer error=invalid_token, scope=a").to_string(),
            "the token was refused (invalid_token), scope a"
        );
    }
}
