//! Errors of models.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The error of a request to a model.
///
/// Clones share the error, including its source. An error contains neither the key nor the request.
///
/// ```
/// use agent::model::{ModelError, ModelErrorKind};
///
/// let error = ModelError::new(ModelErrorKind::RateLimit, "too many requests")
///     .with_status(429)
///     .with_code("rate_limit_error")
///     .with_retry_after(std::time::Duration::from_secs(2));
/// assert!(error.is_rate_limit() && error.is_retryable());
/// let text = "rate limit: too many requests (status 429, code rate_limit_error, retry after 2s)";
/// assert_eq!(error.to_string(), text);
/// ```
///
/// The methods of an error return the details that the provider reported:
///
/// ```
/// use agent::model::{ModelError, ModelErrorKind};
/// use std::error::Error as _;
///
/// let body = r#"{"error": {"message": "no such model", "code": "model_not_found"}}"#;
/// let error = ModelError::new(ModelErrorKind::InvalidRequest, "no such model")
///     .with_status(404)
///     .with_code("model_not_found")
///     .with_request_id("req_7")
///     .with_body(body)
///     .with_source(std::io::Error::other("the answer has an error status"));
/// assert_eq!((error.kind(), error.message()), (ModelErrorKind::InvalidRequest, "no such model"));
/// assert_eq!((error.status(), error.code()), (Some(404), Some("model_not_found")));
/// assert_eq!((error.request_id(), error.body()), (Some("req_7"), Some(body)));
/// assert_eq!(error.source().unwrap().to_string(), "the answer has an error status");
/// ```
#[derive(Clone)]
pub struct ModelError {
    inner: Arc<ErrorDetails>,
}

#[derive(Clone)]
struct ErrorDetails {
    kind: ModelErrorKind,
    message: String,
    status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    body: Option<String>,
    /// Whether the same request may succeed later, or `None` if the kind of the error decides.
    retryable: Option<bool>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kinds of [`ModelError`].
///
/// ```
/// use agent::model::{ModelError, ModelErrorKind};
///
/// let error = ModelError::new(ModelErrorKind::RateLimit, "slow down").with_status(429);
/// assert_eq!((error.kind(), error.status()), (ModelErrorKind::RateLimit, Some(429)));
/// assert!(error.is_retryable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, invalid, or lacks a permission.
    Auth,
    /// Too many requests or tokens in too short a time.
    RateLimit,
    /// The provider has no capacity at the moment.
    Overloaded,
    /// The provider failed.
    Server,
    /// The request is invalid, and would fail again.
    InvalidRequest,
    /// The conversation does not fit into the model's context.
    ContextTooLong,
    /// The provider withheld the reply.
    ContentFilter,
    /// The provider could not be reached, or the connection broke.
    Connection,
    /// The provider did not respond in time.
    Timeout,
    /// The response violates the protocol.
    Protocol,
    /// The request was cancelled. The message of the error is the reason.
    Aborted,
    /// Any other error.
    Other,
}

impl ModelErrorKind {
    /// Returns the words with which the text of an error of this kind begins.
    fn description(self) -> &'static str {
        match self {
            Self::Auth => "authentication",
            Self::RateLimit => "rate limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server error",
            Self::InvalidRequest => "invalid request",
            Self::ContextTooLong => "context too long",
            Self::ContentFilter => "content filter",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Aborted => "aborted",
            Self::Other => "model error",
        }
    }

    const ALL: [Self; 12] = [
        Self::Auth,
        Self::RateLimit,
        Self::Overloaded,
        Self::Server,
        Self::InvalidRequest,
        Self::ContextTooLong,
        Self::ContentFilter,
        Self::Connection,
        Self::Timeout,
        Self::Protocol,
        Self::Aborted,
        Self::Other,
    ];

    /// Returns the kind as an identifier for logs and programs, for example `rate_limit`.
    ///
    /// ```
    /// use agent::model::ModelErrorKind;
    ///
    /// assert_eq!(ModelErrorKind::RateLimit.as_str(), "rate_limit");
    /// assert_eq!(ModelErrorKind::from("rate_limit"), ModelErrorKind::RateLimit);      // and back
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::InvalidRequest => "invalid_request",
            Self::ContextTooLong => "context_length",
            Self::ContentFilter => "content_filter",
            Self::Connection => "transport",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Aborted => "cancelled",
            Self::Other => "other",
        }
    }
}

/// Returns the kind with this [identifier](ModelErrorKind::as_str), or [`Other`](ModelErrorKind::Other) if the identifier is unknown.
impl From<&str> for ModelErrorKind {
    fn from(word: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Self::Other)
    }
}

impl fmt::Display for ModelErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Maximum number of bytes that are kept of a response's body: enough to recognize the response.
const MAX_BODY: usize = 2048;

/// The text between the kept part of a response's body and the number of omitted bytes.
const CUT: &str = "… (";

#[cfg(feature = "http")]
const REDACTED: &str = "[redacted]";

impl ModelError {
    /// Creates an error of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let inner = ErrorDetails {
            kind,
            message: message.into(),
            status: None,
            code: None,
            request_id: None,
            retry_after: None,
            body: None,
            retryable: None,
            source: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Creates an error of kind [`Aborted`](ModelErrorKind::Aborted): the request was cancelled for this reason.
    ///
    /// ```
    /// use agent::model::ModelError;
    ///
    /// let error = ModelError::aborted("the user left");
    /// assert!(error.is_aborted() && !error.is_retryable());
    /// assert_eq!(error.message(), "the user left");
    /// ```
    pub fn aborted(reason: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Aborted, reason)
    }

    /// Creates an error of kind [`Protocol`](ModelErrorKind::Protocol): the response violates the protocol.
    ///
    /// ```
    /// use agent::model::{ModelError, ModelErrorKind};
    ///
    /// let error = ModelError::protocol("the reply has no choices");
    /// assert_eq!(error.kind(), ModelErrorKind::Protocol);
    /// assert!(!error.is_retryable());
    /// ```
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Protocol, message)
    }

    fn edit(mut self, edit: impl FnOnce(&mut ErrorDetails)) -> Self {
        edit(Arc::make_mut(&mut self.inner));
        self
    }

    pub(super) fn with_notes(self, notes: &str) -> Self {
        self.edit(|inner| inner.message.push_str(notes))
    }

    /// Sets the HTTP status.
    pub fn with_status(self, status: u16) -> Self {
        self.edit(|inner| inner.status = Some(status))
    }

    /// Sets the code of the error, which is usually the provider's own.
    pub fn with_code(self, code: impl Into<String>) -> Self {
        self.edit(|inner| inner.code = Some(code.into()))
    }

    /// Sets the provider's id of the request.
    pub fn with_request_id(self, id: impl Into<String>) -> Self {
        self.edit(|inner| inner.request_id = Some(id.into()))
    }

    /// Sets the time that the provider asks to wait before a retry.
    pub fn with_retry_after(self, delay: Duration) -> Self {
        self.edit(|inner| inner.retry_after = Some(delay))
    }

    /// Adds the address and a hint to the message if the status, or a web page as the body of the response, suggests that the address is
    /// wrong.
    #[cfg(feature = "http")]
    pub(crate) fn with_address(self, address: &str) -> Self {
        let is_page = self.body().is_some_and(|body| body.starts_with('<'));
        let hint = match self.status() {
            Some(404) => "check `base_url` and the name of the model",
            Some(405) => "check `base_url`",
            None | Some(..=403) if is_page => "check `base_url`",
            _ => return self,
        };
        self.edit(|inner| inner.message = format!("{}, from {address}: {hint}", inner.message))
    }

    /// Removes secrets, and their forms with JSON escapes, from every text of the error. A source that contains a secret is replaced by a
    /// text without the secret.
    #[cfg(feature = "http")]
    pub(crate) fn without_secrets(self, secrets: &[&str]) -> Self {
        let secrets: Vec<String> = secrets
            .iter()
            .filter(|secret| !secret.is_empty())
            .flat_map(|secret| crate::quoted::quoted_forms(secret))
            .collect();
        let clean = |text: &mut String| {
            for secret in &secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), REDACTED);
                }
                // If a body was cut within a secret, the beginning of the secret before the cut is removed, too.
                let Some(cut) = text.rfind(CUT) else { continue };
                let (head, tail) = text.split_at(cut);
                let begun = secret.char_indices().skip(1).map(|(at, _)| &secret[..at]);
                if let Some(begun) = begun.filter(|begun| head.ends_with(begun)).last() {
                    *text = format!("{}{REDACTED}{tail}", &head[..head.len() - begun.len()]);
                }
            }
        };
        self.edit(|inner| {
            clean(&mut inner.message);
            inner.code.iter_mut().for_each(clean);
            inner.body.iter_mut().for_each(clean);
            inner.request_id.iter_mut().for_each(clean);
            if let Some(source) = &inner.source {
                let text = crate::error_text::with_sources(&**source);
                let mut cleaned = text.clone();
                clean(&mut cleaned);
                if cleaned != text {
                    inner.source = Some(Box::<dyn Error + Send + Sync>::from(cleaned).into());
                }
            }
        })
    }

    /// Sets the body of the response, cut to 2 KiB. The caller must have removed all secrets from it.
    pub fn with_body(self, body: &str) -> Self {
        let cut = (0..=MAX_BODY.min(body.len())).rev().find(|&at| body.is_char_boundary(at)).unwrap_or(0);
        let (head, rest) = body.split_at(cut);
        let omitted =
            if rest.is_empty() { String::new() } else { format!("{CUT}{} more bytes)", rest.len()) };
        self.edit(|inner| inner.body = Some(format!("{head}{omitted}")))
    }

    /// Sets whether the same request may succeed later. By default, the kind of the error decides.
    ///
    /// ```
    /// use agent::model::{ModelError, ModelErrorKind};
    ///
    /// let error = ModelError::new(ModelErrorKind::Server, "the model is gone for good").with_retryable(false);
    /// assert!(!error.is_retryable());
    /// ```
    pub fn with_retryable(self, retryable: bool) -> Self {
        self.edit(|inner| inner.retryable = Some(retryable))
    }

    /// Sets the source.
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.edit(|inner| inner.source = Some(source.into().into()))
    }

    /// Returns the kind.
    pub fn kind(&self) -> ModelErrorKind {
        self.inner.kind
    }

    /// Returns the message, which is the provider's text if the provider sent one.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns the HTTP status, if any.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// Returns the code of the error, if any. It is usually the provider's own.
    pub fn code(&self) -> Option<&str> {
        self.inner.code.as_deref()
    }

    /// Returns the provider's id of the request, if any.
    pub fn request_id(&self) -> Option<&str> {
        self.inner.request_id.as_deref()
    }

    /// Returns the time that the provider asks to wait before a retry, if it names one.
    ///
    /// ```
    /// use agent::model::{ModelError, ModelErrorKind};
    /// use std::time::Duration;
    ///
    /// let error = ModelError::new(ModelErrorKind::RateLimit, "slow down").with_retry_after(Duration::from_secs(3));
    /// assert!(error.is_retryable());
    /// assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// Returns the body of the response, cut to 2 KiB, if there is one.
    pub fn body(&self) -> Option<&str> {
        self.inner.body.as_deref()
    }

    /// Returns whether the key is missing, invalid, or lacks a permission.
    pub fn is_auth(&self) -> bool {
        self.kind() == ModelErrorKind::Auth
    }

    /// Returns whether the request exceeded a limit on requests or tokens.
    pub fn is_rate_limit(&self) -> bool {
        self.kind() == ModelErrorKind::RateLimit
    }

    /// Returns whether the provider had no capacity.
    pub fn is_overloaded(&self) -> bool {
        self.kind() == ModelErrorKind::Overloaded
    }

    /// Returns whether the request itself is invalid.
    pub fn is_invalid_request(&self) -> bool {
        self.kind() == ModelErrorKind::InvalidRequest
    }

    /// Returns whether the conversation does not fit into the model's context.
    pub fn is_context_too_long(&self) -> bool {
        self.kind() == ModelErrorKind::ContextTooLong
    }

    /// Returns whether the provider withheld the reply.
    pub fn is_content_filter(&self) -> bool {
        self.kind() == ModelErrorKind::ContentFilter
    }

    /// Returns whether the provider could not be reached, or the connection broke.
    pub fn is_connection(&self) -> bool {
        self.kind() == ModelErrorKind::Connection
    }

    /// Returns whether the provider did not respond in time.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ModelErrorKind::Timeout
    }

    /// Returns whether the request was cancelled.
    pub fn is_aborted(&self) -> bool {
        self.kind() == ModelErrorKind::Aborted
    }

    /// Returns whether the same request may succeed later: as set by [`with_retryable`](Self::with_retryable), or else by the kind. Rate
    /// limits, overloaded or failing providers, broken connections and timeouts are retryable.
    ///
    /// ```
    /// use agent::model::{ModelError, ModelErrorKind};
    ///
    /// fn advice(error: &ModelError) -> &'static str {
    ///     if error.is_auth() {
    ///         "check the key"
    ///     } else if error.is_context_too_long() {
    ///         "begin a new conversation"
    ///     } else if error.is_content_filter() || error.is_invalid_request() {
    ///         "ask for something else"
    ///     } else if error.is_aborted() {
    ///         "ask again"
    ///     } else if error.is_connection() || error.is_timeout() {
    ///         "check the network"
    ///     } else if error.is_rate_limit() || error.is_overloaded() || error.is_retryable() {
    ///         "wait a minute"
    ///     } else {
    ///         "report this"
    ///     }
    /// }
    ///
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::Auth, "no such key")), "check the key");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::ContextTooLong, "250,000 tokens")), "begin a new conversation");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::ContentFilter, "withheld")), "ask for something else");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::InvalidRequest, "no messages")), "ask for something else");
    /// assert_eq!(advice(&ModelError::aborted("the user left")), "ask again");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::Connection, "refused")), "check the network");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::Timeout, "no answer in time")), "check the network");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::Overloaded, "no capacity")), "wait a minute");
    /// assert_eq!(advice(&ModelError::new(ModelErrorKind::Server, "bad gateway")), "wait a minute");
    /// assert_eq!(advice(&ModelError::protocol("no JSON")), "report this");
    /// ```
    pub fn is_retryable(&self) -> bool {
        use ModelErrorKind::{Connection, Overloaded, RateLimit, Server, Timeout};
        let by_kind = matches!(self.kind(), RateLimit | Overloaded | Server | Connection | Timeout);
        self.inner.retryable.unwrap_or(by_kind)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorDetails { kind, message, status, code, request_id, retry_after, .. } = &*self.inner;
        write!(f, "{}: {message}", kind.description())?;
        let details = [
            status.map(|status| format!("status {status}")),
            code.as_ref().map(|code| format!("code {code}")),
            request_id.as_ref().map(|id| format!("request {id}")),
            retry_after.map(|pause| format!("retry after {pause:?}")),
        ];
        let details: Vec<String> = details.into_iter().flatten().collect();
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

/// Writes the text of the error and, on a separate line, the body of the response unless it equals the message.
impl fmt::Debug for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::error_text::write(self, f)?;
        match &self.inner.body {
            Some(body) if !body.is_empty() && *body != self.inner.message => {
                write!(f, "\nThe body was: {body}")
            }
            _ => Ok(()),
        }
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_on_a_character_border() {
        let body = "é".repeat(2000);
        let error = ModelError::protocol("no JSON").with_body(&body);
        let kept = error.body().unwrap();
        assert!(kept.starts_with("éé") && kept.ends_with("é… (1952 more bytes)"), "{kept}");
        assert_eq!(ModelError::protocol("x").with_body("short").body(), Some("short"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn secrets_are_taken_out_also_where_the_body_was_cut() {
        for before in MAX_BODY - 12..MAX_BODY + 2 {
            let body = format!("{}sk-secret!{}", "x".repeat(before), "y".repeat(50));
            let error = ModelError::protocol("sk-secret!").with_body(&body);
            let source = std::io::Error::other("no route to https://x/?key=sk-secret!");
            let error = error.with_source(source).without_secrets(&["sk-secret!"]);
            let shown = format!("{error:?}");
            assert!(!shown.contains("sk") && !shown.contains("xs…"), "{before}: {shown}");
        }
    }

    #[test]
    #[cfg(feature = "http")]
    fn secrets_are_taken_out_as_json_quotes_them() {
        let secret = "p\u{e4}ss/\"word\"\\1";
        let json = serde_json::to_string(secret).unwrap();
        let again = serde_json::to_string(&json).unwrap();
        let python = r#""p\u00e4ss/\"word\"\\1""#;
        let php = r#""p\u00e4ss\/\"word\"\\1""#;
        let dotnet = r#""p\u00E4ss/\u0022word\u0022\\1""#;
        for quoted in [&json, &again, python, php, dotnet, secret] {
            let body = format!("{{\"error\": {quoted}}}");
            let error =
                ModelError::protocol(quoted).with_code(quoted).with_body(&body).with_request_id(quoted);
            let error = error.without_secrets(&[secret]);
            for shown in
                [error.message(), error.code().unwrap(), error.body().unwrap(), error.request_id().unwrap()]
            {
                assert!(!shown.contains("word") && shown.contains(REDACTED), "{shown}");
            }
            let before = MAX_BODY - 8;
            let cut = format!("{}{quoted}{}", "x".repeat(before), "y".repeat(50));
            let cut = ModelError::protocol("m").with_body(&cut).without_secrets(&[secret]);
            assert!(
                !cut.body().unwrap().contains("p\u{e4}") && !cut.body().unwrap().contains("u00"),
                "{quoted}"
            );
        }
    }

    #[test]
    fn kinds_are_read_by_their_names() {
        for kind in ModelErrorKind::ALL {
            assert_eq!(ModelErrorKind::from(kind.as_str()), kind);
        }
        assert_eq!(ModelErrorKind::from("sunset"), ModelErrorKind::Other);
    }

    #[test]
    fn the_source_is_kept_and_shared() {
        let io = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset");
        let error =
            ModelError::new(ModelErrorKind::Connection, "lost").with_source(io).clone().with_status(502);
        assert_eq!(error.source().unwrap().to_string(), "reset");
        assert_eq!(error.to_string(), "connection: lost (status 502)");
        assert!(error.is_retryable() && !error.is_aborted());
    }
}
