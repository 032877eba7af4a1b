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
        Ok(Self { client: client.map_err(unreachable)?, base })
    }

    fn url(&self, path: &[&str]) -> reqwest::Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, DurableClientError> {
        let body = serde_json::to_vec(body).map_err(unreadable)?;
        let mut request = self.client.post(self.url(path)).timeout(TIMEOUT);
        request = request.header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        send(request.body(body)).await
    }

    /// Waits for the response without a time limit.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, DurableClientError> {
        send(self.client.get(self.url(path))).await
    }
}

async fn send<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, DurableClientError> {
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(unreadable(std::io::Error::other("the response is longer than 64 MiB")));
        }
        body.extend_from_slice(&chunk);
    }
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(unreadable);
    }
    if matches!(status.as_u16(), 502..=504) {
        return Err(unreachable(std::io::Error::other(format!("status {status}"))));
    }
    let message = match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(error)) => error.get("message").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).chars().take(500).collect());
    Err(DurableClientError::Refused { status: status.as_u16(), message })
}

fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> DurableClientError {
    DurableClientError::Unreachable { source: Arc::new(error) }
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
        let url = http.url(&["Agent", "run", "a/b c"]);
        assert_eq!(url.as_str(), "http://127.0.0.1:8080/engine/Agent/run/a%2Fb%20c");
        for wrong in ["", "127.0.0.1:8080", "mailto:ann@example.org", "ftp://127.0.0.1"] {
            assert!(matches!(IngressClient::new(wrong), Err(DurableClientError::Address { .. })), "{wrong}");
        }
    }
}
