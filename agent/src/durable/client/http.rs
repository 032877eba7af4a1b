//! HTTP requests to the durable execution engine.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::durable::DurableClientError;

/// Maximum size of a response of the engine, in bytes.
const MAX_BODY: usize = 64 << 20;

/// The time limit of requests that do not wait for a run.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct IngressClient {
    client: reqwest::Client,
    base: reqwest::Url,
}

impl IngressClient {
    pub(super) fn new(address: &str) -> Result<Self, DurableClientError> {
        let wrong = || DurableClientError::Address { address: crate::address::shown_address(address) };
        let base = reqwest::Url::parse(address).map_err(|_| wrong())?;
        if base.cannot_be_a_base() || !matches!(base.scheme(), "http" | "https") {
            return Err(wrong());
        }
        let client = reqwest::Client::builder().connect_timeout(Duration::from_secs(10)).build();
        Ok(Self { client: client.map_err(no_response)?, base })
    }

    fn url(&self, path: &[&str]) -> Result<reqwest::Url, DurableClientError> {
        // `Url` drops `.`, `..`, tabs and line breaks, so the request would reach another run or another handler. An empty name is
        // never valid.
        let is_lost = |part: &&&str| matches!(**part, "" | "." | "..") || part.contains(['\t', '\n', '\r']);
        if let Some(name) = path.iter().find(is_lost) {
            return Err(refused_name(format!("no address of a run can have the name {name:?}")));
        }
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(url)
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, DurableClientError> {
        let body = serde_json::to_vec(body).map_err(unreadable)?;
        let mut request = self.client.post(self.url(path)?).timeout(TIMEOUT);
        request = request.header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        send(request.body(body)).await
    }

    /// Gets a response that the engine sends at once.
    pub(super) async fn get_now<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, DurableClientError> {
        send(self.client.get(self.url(path)?).timeout(TIMEOUT)).await
    }

    /// Waits for the response without a time limit.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, DurableClientError> {
        send(self.client.get(self.url(path)?)).await
    }
}

async fn send<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, DurableClientError> {
    let mut response = request.send().await.map_err(no_response)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_response)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(unreadable(std::io::Error::other("the response is longer than 64 MiB")));
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(unreadable);
    }
    let message = match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(error)) => error.get("message").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).chars().take(500).collect());
    if matches!(status.as_u16(), 502..=504) {
        let text = format!("status {status}: {message}");
        let source = std::io::Error::other(text.trim_end_matches(": "));
        return Err(DurableClientError::Unreachable { source: Arc::new(source) });
    }
    Err(DurableClientError::Refused { status: status.as_u16(), message })
}

/// Returns the error for a request without a response. It lacks the URL, whose query may be secret.
fn no_response(error: reqwest::Error) -> DurableClientError {
    DurableClientError::Unreachable { source: Arc::new(error.without_url()) }
}

/// Returns the error for a request that is not sent, because the name of the run or the content of the request is invalid.
pub(super) fn refused_name(message: String) -> DurableClientError {
    DurableClientError::Refused { status: 400, message }
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> DurableClientError {
    DurableClientError::Unreadable { source: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_of_a_request_that_cannot_be_written_names_the_request() {
        let http = IngressClient::new("http://127.0.0.1:1/").unwrap();
        let body = std::collections::BTreeMap::from([((1, 2), "no key of an object")]);
        let error = http.post::<Value>(&["Agent", "run", "push"], None, &body).await.unwrap_err();
        assert!(matches!(error, DurableClientError::Unreadable { .. }));
        assert!(error.to_string().starts_with("the request cannot be written"), "{error}");
    }

    #[test]
    fn addresses_are_read_and_names_are_encoded() {
        let http = IngressClient::new("http://127.0.0.1:8080/engine/").unwrap();
        let url = http.url(&["Agent", "run", "a/b c"]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:8080/engine/Agent/run/a%2Fb%20c");
        for wrong in ["", "127.0.0.1:8080", "mailto:ann@example.org", "ftp://127.0.0.1"] {
            assert!(matches!(IngressClient::new(wrong), Err(DurableClientError::Address { .. })), "{wrong}");
        }
        for lost in ["", ".", "..", "a\tb", "a\nb", "\ra"] {
            let error = http.url(&["Agent", lost, "cancel"]).unwrap_err();
            assert!(matches!(error, DurableClientError::Refused { status: 400, .. }), "{lost:?}: {error}");
        }
    }

    #[tokio::test]
    async fn errors_show_the_response_of_a_proxy_and_no_secret_of_the_address() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/?token=SECRET", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let response = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 11\r\n\r\nno upstream";
            let (mut connection, _) = listener.accept().await.unwrap();
            assert_ne!(connection.read(&mut [0; 4096]).await.unwrap(), 0);
            connection.write_all(response.as_bytes()).await.unwrap();
        });
        let http = IngressClient::new(&address).unwrap();
        let mut texts = Vec::new();
        // The second request gets no response, because the proxy is gone.
        for _ in 0..2 {
            let error = http.get::<Value>(&["Agent"]).await.unwrap_err();
            let DurableClientError::Unreachable { source } = error else { panic!("{error}") };
            texts.push(format!("{source} {source:?}"));
        }
        assert!(texts[0].contains("502 Bad Gateway: no upstream"), "{texts:?}");
        assert!(!texts.concat().contains("SECRET"), "{texts:?}");
    }
}
