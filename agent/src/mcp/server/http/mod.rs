//! The server over Streamable HTTP: the order of the checks before the protocol handles a request.

mod direct;
mod layer;
mod listen;
mod message;

pub(super) use layer::HttpLayer;
pub(super) use listen::bind;
pub(super) use message::Envelope;
use message::ResponseBody;

use super::built::{AdmittedRequest, BuiltServer, RawArguments, ServiceFailure};
use super::call::reference;
use super::caller::AuthRefusal;
use super::handler::ProtocolHandler;
use super::metadata::WELL_KNOWN;
use super::running::{SESSION, SessionId};
use crate::mcp::ErrorCode;
use crate::panics::catch_future;
use crate::serve::{BodyError, read_body};
use ::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use ::http::request::Parts;
use ::http::{Method, Request, StatusCode, Version};
use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use message::{MalformedMessage, ServerResponse, document, plain, rpc_error};
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

/// The error of a response body.
pub(super) type RequestError = Box<dyn std::error::Error + Send + Sync>;

/// A server as a `tower_service::Service`. Cloning is cheap. The service never fails: every request has a response.
#[derive(Clone)]
pub(super) struct HttpService {
    shared: Arc<BuiltServer>,
    protocol: Arc<StreamableHttpService<ProtocolHandler, NeverSessionManager>>,
}

impl HttpService {
    pub(super) fn new(shared: Arc<BuiltServer>) -> Self {
        // This service checks hosts, origins and the length of bodies before `rmcp` receives a request, so `rmcp` does not check them
        // again.
        let transport = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX)
            .with_legacy_session_mode(false)
            .with_json_response(true);
        let own = shared.clone();
        let handler = move || {
            // `ADMITTED` is set, because `rmcp` receives only requests that passed the checks of this service.
            let admitted = ADMITTED.try_with(Arc::clone).map_err(std::io::Error::other)?;
            Ok(ProtocolHandler { shared: own.clone(), admitted: Some(admitted) })
        };
        let protocol = StreamableHttpService::new(handler, Arc::default(), transport);
        Self { shared, protocol: Arc::new(protocol) }
    }

    async fn respond<B>(self, request: Request<B>) -> ServerResponse
    where
        B: Body + Send + 'static,
    {
        // Panics are caught, because reading the body may run code of the application.
        let response = catch_future(|| Box::pin(self.clone().check_and_dispatch(request))).await;
        response.unwrap_or_else(|panic| {
            self.failure_response(&ServiceFailure::Panicked(format!(
                "handling the request panicked: {panic}"
            )))
        })
    }

    async fn check_and_dispatch<B>(self, request: Request<B>) -> ServerResponse
    where
        B: Body + Send + 'static,
    {
        let _running = self.shared.handle.begin();
        let (head, body) = request.into_parts();
        let version = head.version;
        let admitted = match self.shared.hosts.check(&head) {
            Err(text) => Err(Box::new(forbidden(text))),
            Ok(()) => match self.metadata(&head) {
                Some(response) if response.status().is_success() => return response,
                Some(refusal) => Err(Box::new(refusal)),
                None => self.admit(head, body).await,
            },
        };
        match admitted {
            Ok((admitted, head, body)) => Box::pin(self.dispatch(admitted, head, body)).await,
            Err(mut refusal) => {
                // The response closes the connection, so that a rejected client cannot send more requests over the connection. HTTP/2 and
                // later do not have this header.
                if version <= Version::HTTP_11 {
                    refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                *refusal
            }
        }
    }

    async fn admit<B>(
        &self,
        head: Parts,
        body: B,
    ) -> Result<(AdmittedRequest, Parts, Bytes), Box<ServerResponse>>
    where
        B: Body + Send + 'static,
    {
        let refusal = |status, text| Box::new(plain(status, text));
        if head.method != Method::POST {
            return Err(Box::new(not_allowed("Only POST is allowed here.", "POST")));
        }
        if !self.shared.handle.is_open() {
            return Err(refusal(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down."));
        }
        let limits = &self.shared.limits;
        let admitted = tokio::time::timeout(limits.load, self.authenticate(&head)).await;
        let admitted = admitted.unwrap_or_else(|_| {
            let reason = "authenticating and loading the tools took too long".to_owned();
            Err(Box::new(self.failure_response(&ServiceFailure::Unavailable(reason))))
        })?;
        let body = read_body(body, limits.body, limits.receive).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLong => refusal(StatusCode::PAYLOAD_TOO_LARGE, "The body is too long."),
            BodyError::TooSlow => refusal(StatusCode::REQUEST_TIMEOUT, "The body takes too long."),
            BodyError::Broken => refusal(StatusCode::BAD_REQUEST, "The body cannot be read."),
        })?;
        Ok((admitted, head, body))
    }

    async fn authenticate(&self, head: &Parts) -> Result<AdmittedRequest, Box<ServerResponse>> {
        let caller = match &self.shared.authenticator {
            None => self.shared.local.clone(),
            Some(authenticator) => match catch_future(|| authenticator.authenticate(head)).await {
                Ok(Ok(caller)) if caller.is_expired() => {
                    return Err(Box::new(self.rejection(&AuthRefusal::invalid_token())));
                }
                Ok(caller) => caller.map_err(|refusal| Box::new(self.rejection(&refusal)))?,
                Err(panic) => {
                    let reason = format!("the authenticator panicked: {panic}");
                    return Err(Box::new(self.failure_response(&ServiceFailure::Panicked(reason))));
                }
            },
        };
        self.shared.load(caller).await.map_err(|failure| Box::new(self.failure_response(&failure)))
    }

    fn rejection(&self, refusal: &AuthRefusal) -> ServerResponse {
        let (mut response, mut challenge) = match refusal {
            AuthRefusal::Unauthorized { scope, error } => (
                rpc_error(StatusCode::UNAUTHORIZED, None, ErrorCode::Unauthorized, "Unauthorized", None),
                challenge(error.as_deref(), scope.as_deref()),
            ),
            AuthRefusal::Forbidden { scope } => (
                forbidden("The token does not allow this."),
                challenge(Some("insufficient_scope"), Some(scope)),
            ),
            AuthRefusal::Unavailable { reason } => {
                return self.failure_response(&ServiceFailure::Unavailable(reason.clone()));
            }
        };
        if let Some(metadata) = &self.shared.metadata {
            push_parameter(&mut challenge, "resource_metadata", &metadata.url());
        }
        let challenge = HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"));
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }

    fn failure_response(&self, failure: &ServiceFailure) -> ServerResponse {
        let (reference, reason) = (reference(), failure.reason());
        tracing::error!(server = %self.shared.config.server_info.name, %reference, %reason, "a request cannot be served");
        let (status, text) = match failure {
            ServiceFailure::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "The server is unavailable."),
            ServiceFailure::Panicked(_) => (StatusCode::INTERNAL_SERVER_ERROR, "The server failed."),
        };
        let text = format!("{text} Reference: {reference}.");
        rpc_error(status, None, ErrorCode::InternalError, &text, None)
    }

    /// Returns the response to a request below [`WELL_KNOWN`]: the metadata document, or 404 for the path of another document. Returns
    /// `None` for all other requests, and if the server has no metadata.
    fn metadata(&self, head: &Parts) -> Option<ServerResponse> {
        let metadata = self.shared.metadata.as_ref()?;
        if !head.uri.path().starts_with(WELL_KNOWN) {
            return None;
        }
        if !metadata.is_at(head.uri.path()) {
            return Some(plain(StatusCode::NOT_FOUND, "There is no such resource here."));
        }
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Some(not_allowed("Only GET and HEAD are allowed here.", "GET, HEAD"));
        }
        let mut response = document(StatusCode::OK, metadata);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
        Some(response)
    }

    async fn dispatch(&self, mut admitted: AdmittedRequest, head: Parts, body: Bytes) -> ServerResponse {
        let session = SessionId::of(&head.headers);
        let (rest, id, is_initialize) = match Envelope::read(&body) {
            Err(MalformedMessage(code, text)) => {
                return rpc_error(StatusCode::BAD_REQUEST, None, code, text, None);
            }
            Ok(envelope) => {
                if let Some(response) = old_version(&envelope, &head) {
                    return response;
                }
                admitted.arguments = envelope.arguments().map(|arguments| RawArguments::of(&body, arguments));
                admitted.answers = match envelope.answers() {
                    Ok(answers) => answers,
                    Err(MalformedMessage(code, text)) => {
                        return rpc_error(StatusCode::BAD_REQUEST, envelope.id, code, text, None);
                    }
                };
                if let (Some(session), Some(request)) = (&session, envelope.cancelled_request()) {
                    self.shared.running.cancel(&admitted.caller, session, &request);
                }
                // Only clients of the older versions cancel a call in a session. In the newer versions, a client cancels a call by
                // ending the request.
                admitted.session = session.filter(|_| envelope.version().is_none());
                if let Some(call) = direct::call(&envelope, &head.headers, &admitted.catalogue) {
                    return self.answer_directly(call, admitted).await;
                }
                let kept = |tool: &str, arguments: &str| admitted.catalogue.header_arguments(tool, arguments);
                let rest = envelope.without_arguments(kept);
                (rest.map_or_else(|| body.clone(), Bytes::from), envelope.id, envelope.is_initialize())
            }
        };
        let is_json = head
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let request = Request::from_parts(head, Full::new(rest));
        let mut response = ADMITTED.scope(Arc::new(admitted), self.protocol.handle(request)).await;
        if is_initialize
            && response.status() == StatusCode::OK
            && let Ok(session) = HeaderValue::from_str(SessionId::random().as_str())
        {
            response.headers_mut().insert(SESSION, session);
        }
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // If JSON is not a message of the protocol, `rmcp` responds with an error text of its deserializer. This response replaces
            // that text.
            let text = "Invalid request: not a message of the protocol";
            return rpc_error(StatusCode::BAD_REQUEST, id, ErrorCode::InvalidRequest, text, None);
        }
        response.map(ResponseBody::wrap)
    }
}

tokio::task_local! {
    /// The current request. `rmcp` creates a handler without arguments, so the handler takes the request from here.
    static ADMITTED: Arc<AdmittedRequest>;
}

fn not_allowed(text: &'static str, allowed: &'static str) -> ServerResponse {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn forbidden(text: &str) -> ServerResponse {
    rpc_error(StatusCode::FORBIDDEN, None, ErrorCode::Forbidden, text, None)
}

/// Returns an error if the header and the body name the same version before 2026-07-28. A body must not name such a version, but `rmcp`
/// would accept the request.
fn old_version(envelope: &Envelope<'_>, head: &Parts) -> Option<ServerResponse> {
    let in_header = head.headers.get("mcp-protocol-version")?.to_str().ok()?;
    if *in_header >= *ProtocolVersion::V_2026_07_28.as_str() {
        return None;
    }
    // If the versions in the header and the body differ, `rmcp` reports the difference.
    let version = envelope.version().filter(|version| *in_header == **version)?;
    let supported: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let data = json!({"supported": supported, "requested": version});
    let text = "Unsupported protocol version";
    let code = ErrorCode::UnsupportedVersion;
    Some(rpc_error(StatusCode::BAD_REQUEST, envelope.id, code, text, Some(data)))
}

/// Returns the value of the header `WWW-Authenticate`, a challenge of RFC 6750.
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
    type Response = ServerResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<ServerResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _task: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let response = self.clone().respond(request);
        Box::pin(async move { Ok(response.await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("handle", &self.shared.handle).finish_non_exhaustive()
    }
}
