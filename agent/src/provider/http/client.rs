//! The HTTP client of providers, over reqwest: sends a request once, and receives its response.

use std::fmt;
use std::ops::Deref;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::options::{HttpOptions, ProxyChoice, SharedConnections};
use super::secret::{Secret, searchable};
use super::traffic::TrafficReporter;
use crate::address::shown_address;
use crate::model::{ModelError, ModelErrorKind, ModelRequest};
use crate::provider::HttpRequest;
use crate::traffic::OnTraffic;

/// An HTTP client for providers. Clones share its connections.
///
/// The library's own client follows no redirects, because the new address would receive the key. A client of the application keeps its own
/// policy.
#[derive(Clone)]
pub(in crate::provider) struct HttpClient {
    client: reqwest::Client,
    options: HttpOptions,
}

/// The data for logging a request, for reporting it to a listener, and for removing its secrets from errors.
#[derive(Default)]
pub(in crate::provider) struct LoggableRequest {
    /// The body for the log, without secret arguments, or `None` if the body is not logged or cannot be encoded.
    pub(super) body: Option<String>,
    /// The request, if its calls may contain secrets. The provider may quote these secrets in an error.
    pub(super) quotable: Option<ModelRequest>,
    /// A listener in addition to that of the `HttpOptions`.
    pub(super) traffic: Option<OnTraffic>,
}

pub(in crate::provider) struct StreamingResponse {
    response: reqwest::Response,
    headers: Vec<(String, String)>,
    idle: Duration,
    deadline: Instant,
    secrets: Vec<Secret>,
    tap: Option<TrafficReporter>,
}

impl HttpClient {
    pub(in crate::provider) fn new(options: HttpOptions) -> Result<Self, ModelError> {
        let client = match &options.client {
            Some(client) => client.clone(),
            None => shared_client(&options)?,
        };
        Ok(Self { client, options })
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.options
    }

    pub(super) fn deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.options.total_timeout).unwrap_or(now + Duration::from_secs(86_400))
    }

    pub(super) fn logs_bodies() -> bool {
        tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Sends a request once. A secret header replaces a header of the request with the same name. If `loggable` has no body, the log
    /// contains the length of the sent body, but not its text.
    pub(super) async fn attempt(
        &self,
        url: &str,
        request: &HttpRequest,
        secrets: &[(&str, Secret)],
        deadline: Instant,
        loggable: &LoggableRequest,
    ) -> Result<StreamingResponse, ModelError> {
        let body = request.text();
        let shown = shown_address(url);
        tracing::debug!(url = shown, body = loggable.body, bytes = body.len(), "request");
        let listeners: Vec<_> = self.options.on_traffic.iter().chain(&loggable.traffic).cloned().collect();
        let reported_body = (!listeners.is_empty()).then(|| body.clone());
        let is_secret = |name: &str| secrets.iter().any(|(secret, _)| secret.eq_ignore_ascii_case(name));
        let plain: Vec<_> = request.headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect();
        let mut builder = self.client.post(url).body(body);
        if !plain.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            builder = builder.header("content-type", "application/json");
        }
        for (name, value) in &plain {
            builder = builder.header(name, value);
        }
        for (name, secret) in secrets {
            let mut value = reqwest::header::HeaderValue::from_str(secret.expose()).map_err(|_| {
                ModelError::new(
                    ModelErrorKind::Auth,
                    format!("the key has characters that are not allowed in the header `{name}`"),
                )
            })?;
            value.set_sensitive(true);
            builder = builder.header(*name, value);
        }
        let names = secrets.iter().map(|(name, _)| *name);
        let headers = names.map(|name| (name.to_owned(), "[redacted]".to_owned())).chain(plain);
        let headers = reported_body.is_some().then(|| headers.collect());
        let secrets: Vec<Secret> = secrets.iter().flat_map(|(_, secret)| secret_forms(secret)).collect();
        let mut tap = reported_body.is_some().then(|| TrafficReporter::new(listeners, &shown, &secrets));
        if let (Some(tap), Some(headers), Some(body)) = (&tap, headers, reported_body) {
            tap.request(request.method, &shown, headers, &body);
        }
        let first = self.options.first_byte_timeout.saturating_add(self.options.connect_timeout);
        let limit = Instant::now().checked_add(first).unwrap_or(deadline).min(deadline);
        let sent = match timeout_at(limit, builder.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(transport_error(error, &shown, &secrets)),
            Err(_) => {
                let message = if limit == deadline {
                    "no response within the total time"
                } else {
                    "no response in time"
                };
                Err(ModelError::new(ModelErrorKind::Timeout, message))
            }
        };
        let response = sent.inspect_err(|error| tap.iter_mut().for_each(|tap| tap.end(Some(error))))?;
        let status = response.status().as_u16();
        tracing::info!(method = request.method, url = shown, status, "request");
        let headers = response.headers().iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let headers: Vec<_> = headers.collect();
        if let Some(tap) = &tap {
            tap.response(status, &headers);
        }
        Ok(StreamingResponse { response, headers, idle: self.options.idle_timeout, deadline, secrets, tap })
    }
}

/// Returns the client that all clones of these options share. If it was created with another connection timeout, `User-Agent` or proxy, a
/// new client replaces it.
fn shared_client(options: &HttpOptions) -> Result<reqwest::Client, ModelError> {
    let mut shared = options.connections.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = shared.as_ref().filter(|known| {
        known.connect_timeout == options.connect_timeout
            && known.user_agent == options.user_agent
            && known.proxy == options.proxy
    }) {
        return Ok(known.client.clone());
    }
    let client = make_client(options)?;
    *shared = Some(SharedConnections {
        connect_timeout: options.connect_timeout,
        user_agent: options.user_agent.clone(),
        proxy: options.proxy.clone(),
        client: client.clone(),
    });
    Ok(client)
}

fn make_client(options: &HttpOptions) -> Result<reqwest::Client, ModelError> {
    let builder = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(options.user_agent.as_str());
    let builder = match &options.proxy {
        ProxyChoice::Environment => builder,
        ProxyChoice::None => builder.no_proxy(),
        ProxyChoice::Url(url) => builder.proxy(reqwest::Proxy::all(url.expose()).map_err(|_| {
            ModelError::new(ModelErrorKind::InvalidRequest, "the URL of the proxy is not a URL")
        })?),
    };
    builder.build().map_err(|error| {
        ModelError::new(ModelErrorKind::Connection, "the HTTP client could not be set up")
            .with_source(error.without_url())
    })
}

impl StreamingResponse {
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns the headers, with names in lower case.
    pub(super) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<impl Deref<Target = [u8]> + use<>>, ModelError> {
        let limit = Instant::now().checked_add(self.idle).unwrap_or(self.deadline).min(self.deadline);
        let read = match timeout_at(limit, self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => {
                let url = shown_address(self.response.url().as_str());
                Err(transport_error(error, &url, &self.secrets).with_status(self.status()))
            }
            Err(_) => {
                let message = if limit == self.deadline {
                    "the response took longer than the total time".to_owned()
                } else {
                    format!("the response stalled: nothing was received for {:?}", self.idle)
                };
                Err(ModelError::new(ModelErrorKind::Timeout, message).with_status(self.status()))
            }
        };
        if let Some(tap) = &mut self.tap {
            match &read {
                Ok(Some(bytes)) => tap.body(bytes),
                Ok(None) => tap.end(None),
                Err(error) => tap.end(Some(error)),
            }
        }
        read
    }

    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

/// Leaves out the client of `reqwest`, whose text shows the passwords of proxies.
impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Leaves out the response of `reqwest`, whose text shows the whole URL.
impl fmt::Debug for StreamingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// Returns the texts that must not be shown: the value of the header, such as `Bearer sk-123`, and the key in it.
fn secret_forms(secret: &Secret) -> Vec<Secret> {
    let key = secret.expose().rsplit(' ').next().unwrap_or_default();
    if key == secret.expose() { vec![secret.clone()] } else { vec![secret.clone(), key.into()] }
}

/// Creates the error for a request that could not be sent, or whose response broke off. `address` is the URL without its secrets.
fn transport_error(error: reqwest::Error, address: &str, secrets: &[Secret]) -> ModelError {
    let error = error.without_url();
    let (kind, message) = if error.is_timeout() {
        (ModelErrorKind::Timeout, format!("{address} could not be reached in time"))
    } else if error.is_builder() {
        (
            ModelErrorKind::InvalidRequest,
            format!("the request cannot be sent: a header, or {address}, is malformed"),
        )
    } else if error.is_connect() {
        (ModelErrorKind::Connection, format!("{address} could not be reached{}", system_reason(&error)))
    } else if error.is_body() || error.is_decode() {
        (ModelErrorKind::Connection, "the connection broke in the middle of the response".to_owned())
    } else {
        (ModelErrorKind::Connection, format!("the connection to {address} broke{}", system_reason(&error)))
    };
    ModelError::new(kind, message).with_source(error).without_secrets(&searchable(secrets))
}

/// Returns the message of the operating system, for example `: Connection refused (os error 111)`, or an empty text.
fn system_reason(error: &reqwest::Error) -> String {
    let sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let of_system = sources.filter_map(|error| error.downcast_ref::<std::io::Error>()).last();
    of_system.map(|error| format!(": {error}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn send(
        client: &HttpClient,
        url: &str,
        request: &HttpRequest,
    ) -> Result<StreamingResponse, ModelError> {
        let url = request.url(url);
        client.attempt(&url, request, &[], client.deadline(), &LoggableRequest::default()).await
    }

    #[tokio::test]
    async fn a_custom_client_sends_requests() {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (String::new(), [0; 1024]);
            while !request.ends_with("{\"a\":1}") {
                let read = stream.read(&mut buffer).unwrap();
                request.push_str(str::from_utf8(&buffer[..read]).unwrap());
            }
            stream.write_all(b"HTTP/1.1 204 X\r\nconnection: close\r\n\r\n").unwrap();
            request
        });
        let own = reqwest::Client::builder().user_agent("own/1").no_proxy().build().unwrap();
        let client = HttpClient::new(HttpOptions::default().with_client(own)).unwrap();
        let request = HttpRequest::post("/x", serde_json::json!({"a": 1}));
        let response = send(&client, &url, &request).await.unwrap();
        assert_eq!(response.status(), 204);
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /x") && request.contains("user-agent: own/1\r\n"), "{request}");
    }

    #[tokio::test]
    async fn clones_of_options_share_connections() {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // A server that accepts only one connection and answers any number of requests on it.
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (String::new(), [0; 1024]);
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                request.push_str(str::from_utf8(&buffer[..read]).unwrap());
                if request.ends_with("{}") {
                    request.clear();
                    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                }
            }
        });
        let options = HttpOptions::default().without_proxy();
        let request = HttpRequest::post("/x", serde_json::json!({}));
        let quick = options.clone().with_first_byte_timeout(Duration::from_secs(5));
        for options in [options.clone(), quick] {
            let client = HttpClient::new(options).unwrap();
            let mut response = send(&client, &url, &request).await.unwrap();
            assert!(response.chunk().await.unwrap().is_none());
            // A task of the client needs time to return the connection to the pool of idle connections.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Options with another connection timeout get another client, whose new connection gets no answer.
        let other = options.with_connect_timeout(Duration::from_millis(200));
        let other = HttpClient::new(other.with_first_byte_timeout(Duration::from_millis(200))).unwrap();
        assert!(send(&other, &url, &request).await.is_err());
    }
}
