//! The server over Streamable HTTP: the order of the checks before the protocol handles a request.

mod hosts;
mod layer;
mod listen;
mod message;

pub(super) use hosts::HostPolicy;
pub use layer::{HttpLayer, Mounted};
pub use listen::BoundServer;
pub(super) use listen::bind;
pub(super) use message::Envelope;
pub use message::ResponseBody;

use super::call::reference;
use super::caller::{AuthRefusal, RequestHead};
use super::handler::{Handler, RawArguments, Visit};
use super::metadata::WELL_KNOWN;
use super::running::{SESSION, SessionId};
use super::{Shared, Unserved};
use crate::mcp::ErrorCode;
use crate::panics::catch_future;
use ::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use ::http::request::Parts;
use ::http::{Method, Request, StatusCode, Version};
use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use message::{Answer, Malformed, Unread, document, plain, rpc_error};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Why a body cannot be read, as the error of the type that reads it.
///
/// ```
/// use agent::mcp::server::RequestError;
///
/// let error: RequestError = "the connection broke".into();
/// assert_eq!(error.to_string(), "the connection broke");
/// ```
pub type RequestError = Box<dyn std::error::Error + Send + Sync>;

/// A server as a `tower_service::Service`, to mount in an application. Cloning is cheap. The service never fails: every request
/// gets an answer.
///
/// ```
/// use agent::mcp::{Server, server::{Bearer, Caller, HttpService}};
/// use agent::tools;
///
/// // `axum::Router::new().nest_service("/mcp", service)`
/// let service: HttpService = Server::new(tools![])
///     .authenticator(Bearer::new([("s3cret", Caller::new("ann"))]))
///     .allowed_hosts(["tools.example"])
///     .into_service()?;
/// service.handle().tools_changed();
/// # Ok::<(), agent::mcp::server::ServerError>(())
/// ```
#[derive(Clone)]
pub struct HttpService {
    shared: Arc<Shared>,
    protocol: Arc<StreamableHttpService<Handler, NeverSessionManager>>,
}

impl HttpService {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        // Hosts, origins and the length of bodies are checked here, first.
        let transport = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX)
            .with_legacy_session_mode(false)
            .with_json_response(true);
        let own = shared.clone();
        let handler = move || {
            // `rmcp` only answers requests that passed the checks of this service.
            let visit = VISIT.try_with(Arc::clone).map_err(std::io::Error::other)?;
            Ok(Handler { shared: own.clone(), visit: Some(visit) })
        };
        let protocol = StreamableHttpService::new(handler, Arc::default(), transport);
        Self { shared, protocol: Arc::new(protocol) }
    }

    /// Returns a handle that notifies the running server of changed tools, and ends it.
    pub fn handle(&self) -> super::ServerHandle {
        self.shared.handle.clone()
    }

    /// Answers a request, whatever happens.
    async fn answer<B>(self, request: Request<B>) -> Answer
    where
        B: Body + Send + 'static,
    {
        // The request's body is code of the application, too.
        let answer = catch_future(|| Box::pin(self.clone().respond(request))).await;
        answer.unwrap_or_else(|panic| {
            self.unserved(&Unserved::Panicked(format!("handling the request panicked: {panic}")))
        })
    }

    async fn respond<B>(self, request: Request<B>) -> Answer
    where
        B: Body + Send + 'static,
    {
        let _running = self.shared.handle.begin();
        let (head, body) = request.into_parts();
        let version = head.version;
        let admitted = match self.shared.hosts.check(&head) {
            Err(told) => Err(Box::new(forbidden(told))),
            Ok(()) => match self.metadata(&head) {
                Some(answer) => return answer,
                None => self.admit(head, body).await,
            },
        };
        match admitted {
            Ok((visit, head, body)) => Box::pin(self.dispatch(visit, head, body)).await,
            Err(mut refusal) => {
                // A refused client may not send more on this connection. Later versions of HTTP have no such header.
                if version <= Version::HTTP_11 {
                    refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                *refusal
            }
        }
    }

    /// Determines the caller and its tools, and reads the body. The error is the refusal.
    async fn admit<B>(&self, head: Parts, body: B) -> Result<(Visit, Parts, Bytes), Box<Answer>>
    where
        B: Body + Send + 'static,
    {
        let refusal = |status, told| Box::new(plain(status, told));
        if head.method != Method::POST {
            let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "Only POST is answered here.");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return Err(answer);
        }
        if !self.shared.handle.is_open() {
            return Err(refusal(StatusCode::SERVICE_UNAVAILABLE, "The server ends."));
        }
        let (head, limits) = (RequestHead::new(head), &self.shared.limits);
        let visit = tokio::time::timeout(limits.load, self.visit(&head)).await;
        let visit = visit.unwrap_or_else(|_| {
            let reason = "authenticating and loading the tools took too long".to_owned();
            Err(Box::new(self.unserved(&Unserved::Unavailable(reason))))
        })?;
        let lost = || refusal(StatusCode::INTERNAL_SERVER_ERROR, "The request is lost.");
        let head = head.into_parts().ok_or_else(lost)?;
        let body = message::read(body, limits.body, limits.receive).await;
        let body = body.map_err(|unread| match unread {
            Unread::TooLong => refusal(StatusCode::PAYLOAD_TOO_LARGE, "The body is too long."),
            Unread::TooSlow => refusal(StatusCode::REQUEST_TIMEOUT, "The body takes too long."),
            Unread::Broken => refusal(StatusCode::BAD_REQUEST, "The body cannot be read."),
        })?;
        Ok((visit, head, body))
    }

    /// Determines the caller and its tools.
    async fn visit(&self, head: &RequestHead) -> Result<Visit, Box<Answer>> {
        let caller = match &self.shared.authenticator {
            None => self.shared.local.clone(),
            Some(authenticator) => match catch_future(|| authenticator.authenticate(head)).await {
                Ok(caller) => caller.map_err(|refusal| Box::new(self.refused(&refusal)))?,
                Err(panic) => {
                    let reason = format!("the authenticator panicked: {panic}");
                    return Err(Box::new(self.unserved(&Unserved::Panicked(reason))));
                }
            },
        };
        self.shared.load(caller, head).await.map_err(|unserved| Box::new(self.unserved(&unserved)))
    }

    fn refused(&self, refusal: &AuthRefusal) -> Answer {
        let (mut answer, mut challenge) = match refusal {
            AuthRefusal::Unauthorized { scope, error } => (
                rpc_error(StatusCode::UNAUTHORIZED, None, ErrorCode::Unauthorized, "Unauthorized", None),
                challenge(error.as_deref(), scope.as_deref()),
            ),
            AuthRefusal::Forbidden { scope } => (
                forbidden("The token does not allow this."),
                challenge(Some("insufficient_scope"), Some(scope)),
            ),
            AuthRefusal::Unavailable { reason } => {
                return self.unserved(&Unserved::Unavailable(reason.clone()));
            }
        };
        if let Some(metadata) = &self.shared.metadata {
            push_parameter(&mut challenge, "resource_metadata", &metadata.url());
        }
        let challenge = HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"));
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        answer
    }

    /// Answers that the server cannot serve the request. The reason goes to the log.
    fn unserved(&self, unserved: &Unserved) -> Answer {
        let (reference, reason) = (reference(), unserved.reason());
        tracing::error!(server = %self.shared.config.server_info.name, %reference, %reason, "a request cannot be served");
        let (status, told) = match unserved {
            Unserved::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "The server is unavailable."),
            Unserved::Panicked(_) => (StatusCode::INTERNAL_SERVER_ERROR, "The server failed."),
        };
        let told = format!("{told} Reference: {reference}.");
        rpc_error(status, None, ErrorCode::InternalError, &told, None)
    }

    /// The metadata document for clients without a token, at its path.
    fn metadata(&self, head: &Parts) -> Option<Answer> {
        let metadata = self.shared.metadata.as_ref()?;
        if head.method != Method::GET || !head.uri.path().starts_with(WELL_KNOWN) {
            return None;
        }
        if head.uri.path() != metadata.path() {
            return Some(plain(StatusCode::NOT_FOUND, "There is no such resource here."));
        }
        let mut answer = document(StatusCode::OK, metadata);
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
        Some(answer)
    }

    /// Passes a message with its caller's tools to the protocol.
    async fn dispatch(&self, mut visit: Visit, head: Parts, body: Bytes) -> Answer {
        let session = SessionId::of(&head.headers);
        let (rest, id, is_initialize) = match Envelope::read(&body) {
            Err(Malformed(code, told)) => {
                return rpc_error(StatusCode::BAD_REQUEST, None, code, told, None);
            }
            Ok(envelope) => {
                if let Some(answer) = old_version(&envelope, &head) {
                    return answer;
                }
                visit.arguments = envelope.arguments().map(|arguments| RawArguments::of(&body, arguments));
                if let (Some(session), Some(request)) = (&session, envelope.cancelled_request()) {
                    self.shared.running.cancel(&visit.caller, session, &request);
                }
                // A request of the newer versions is cancelled by its end.
                visit.session = session.filter(|_| envelope.version().is_none());
                let kept = |tool: &str, arguments: &str| visit.catalogue.header_arguments(tool, arguments);
                let rest = envelope.without_arguments(kept);
                (rest.map_or_else(|| body.clone(), Bytes::from), envelope.id, envelope.is_initialize())
            }
        };
        let is_json = head
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let request = Request::from_parts(head, Full::new(rest));
        let mut answer = VISIT.scope(Arc::new(visit), self.protocol.handle(request)).await;
        if is_initialize
            && answer.status() == StatusCode::OK
            && let Ok(session) = HeaderValue::from_str(SessionId::random().as_str())
        {
            answer.headers_mut().insert(SESSION, session);
        }
        if is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // JSON that is not a message of the protocol, with the words of the deserializer.
            let told = "Invalid request: no message of the protocol";
            return rpc_error(StatusCode::BAD_REQUEST, id, ErrorCode::InvalidRequest, told, None);
        }
        answer.map(ResponseBody::wrap)
    }
}

tokio::task_local! {
    /// The context of the current request, from which the protocol's handler is made.
    static VISIT: Arc<Visit>;
}

fn forbidden(told: &str) -> Answer {
    rpc_error(StatusCode::FORBIDDEN, None, ErrorCode::Forbidden, told, None)
}

/// A request that names its version is one of 2026-07-28 or later. An older version in it is a mistake, and would be taken for
/// the older protocol.
fn old_version(envelope: &Envelope<'_>, head: &Parts) -> Option<Answer> {
    let in_header = head.headers.get("mcp-protocol-version")?.to_str().ok()?;
    if *in_header >= *ProtocolVersion::V_2026_07_28.as_str() {
        return None;
    }
    // A difference between the two is the mistake to report.
    let version = envelope.version().filter(|version| *in_header == **version)?;
    let supported: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let data = json!({"supported": supported, "requested": version});
    let told = "Unsupported protocol version";
    let code = ErrorCode::UnsupportedVersion;
    Some(rpc_error(StatusCode::BAD_REQUEST, envelope.id, code, told, Some(data)))
}

/// A challenge of RFC 6750.
fn challenge(error: Option<&str>, scope: Option<&str>) -> String {
    let mut challenge = "Bearer".to_owned();
    for (name, value) in [("error", error), ("scope", scope)] {
        if let Some(value) = value {
            push_parameter(&mut challenge, name, value);
        }
    }
    challenge
}

fn push_parameter(challenge: &mut String, name: &str, value: &str) {
    challenge.push_str(if challenge.contains('=') { ", " } else { " " });
    let quoted = value.chars().filter(|char| matches!(char, ' '..='~') && !matches!(char, '"' | '\\'));
    challenge.push_str(name);
    challenge.push_str("=\"");
    challenge.extend(quoted);
    challenge.push('"');
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _task: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.clone().answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("handle", &self.shared.handle).finish_non_exhaustive()
    }
}
