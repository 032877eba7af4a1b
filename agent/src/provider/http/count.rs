//! Asks a provider how many tokens a request has.

use std::pin::pin;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use super::client::LoggableRequest;
use super::model::{HttpModel, ModelEndpoint};
use super::retry::Retries;
use super::secret::{Secret, searchable};
use crate::address::shown_address;
use crate::model::{ModelError, ModelRequest, StepCx};
use crate::provider::HttpRequest;
use crate::tool::secrets::SecretArguments;

/// Maximum length of a response, in bytes. A response contains only a few numbers.
const MAX_ANSWER: usize = 64 * 1024;

impl HttpModel {
    /// Returns the number of tokens of a request, or `None` if the protocol has no endpoint for counting.
    pub(super) async fn count(self, cx: StepCx, request: ModelRequest) -> Result<Option<u64>, ModelError> {
        let Some((http, number)) = self.inner.encode_count(&request)? else { return Ok(None) };
        let counted = pin!(self.inner.count(&cx, &http, number));
        let counted = match select(cx.cancel.cancelled(), counted).await {
            Either::Left(_) => {
                let reason = cx.cancel.reason();
                return Err(ModelError::aborted(reason.as_deref().unwrap_or("cancelled")));
            }
            Either::Right((counted, _)) => counted,
        };
        // A provider may quote the request in an error, so secrets are removed from the error.
        let quotable = SecretArguments::new([request.tools.clone()]).texts(&*request.messages);
        let quotable: Vec<&str> = quotable.iter().map(String::as_str).collect();
        counted.map(Some).map_err(|error| error.without_secrets(&quotable))
    }
}

impl ModelEndpoint {
    /// Sends the request, with retries, and returns the number at the JSON Pointer `number` of the response.
    async fn count(&self, cx: &StepCx, http: &HttpRequest, number: &str) -> Result<u64, ModelError> {
        let deadline = self.client.deadline();
        let secrets = self.secrets(deadline).await?;
        let secrets: Vec<(&str, Secret)> =
            secrets.iter().map(|(name, value)| (&**name, value.clone())).collect();
        let url = http.url(&self.base_url);
        let mut retries = if cx.is_retried { Retries::none() } else { Retries::default() };
        loop {
            let counted = self.count_once(&url, http, &secrets, deadline, number).await;
            let error = counted.as_ref().err();
            let delay =
                error.and_then(|error| retries.next_pause(self.client.options(), error, Some(deadline)));
            let Some(delay) = delay else { return counted };
            tracing::warn!(
                url = shown_address(&url),
                retry = retries.number(),
                ?delay,
                "the request is sent again"
            );
            tokio::time::sleep(delay).await;
        }
    }

    async fn count_once(
        &self,
        url: &str,
        http: &HttpRequest,
        secrets: &[(&str, Secret)],
        deadline: Instant,
        number: &str,
    ) -> Result<u64, ModelError> {
        let mut response =
            self.client.attempt(url, http, secrets, deadline, &LoggableRequest::default()).await?;
        let is_error = response.status() >= 300;
        let mut body = Vec::new();
        loop {
            let bytes = match response.chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                // The status and the start of the body say what failed.
                Err(_) if is_error => break,
                Err(error) => return Err(error),
            };
            if body.len().saturating_add(bytes.len()) > MAX_ANSWER {
                if is_error {
                    break;
                }
                return Err(ModelError::protocol("the answer with a number of tokens is longer than 64 KiB"));
            }
            body.extend_from_slice(&bytes);
        }
        let error = if is_error {
            self.protocol.error(response.status(), response.headers(), &body)
        } else {
            let value: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            match value.as_ref().and_then(|value| value.pointer(number)?.as_u64()) {
                Some(tokens) => return Ok(tokens),
                None => ModelError::protocol(format!("the answer has no number of tokens at `{number}`")),
            }
        };
        Err(error.with_address(&shown_address(url)).without_secrets(&searchable(response.secrets())))
    }
}
