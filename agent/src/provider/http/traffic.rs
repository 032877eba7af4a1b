//! Reports HTTP requests and responses to their listeners, with the keys masked.

use super::secret::{Secret, searchable};
use crate::masking::SecretMask;
use crate::model::ModelError;
use crate::traffic::{OnTraffic, Traffic, TrafficKind, next_exchange};

const REDACTED: &str = "[redacted]";

/// The reporter of one request and its response. Dropping the reporter reports the end of the response, if it was not reported before.
pub(super) struct TrafficReporter {
    listeners: Vec<OnTraffic>,
    server: String,
    exchange: u64,
    mask: SecretMask,
    secrets: Vec<Secret>,
    has_ended: bool,
}

impl TrafficReporter {
    pub(super) fn new(listeners: Vec<OnTraffic>, address: &str, secrets: &[Secret]) -> Self {
        // `Traffic::server` is the address without its path, for example `https://host:443`.
        let path = address.match_indices('/').nth(2).map_or(address.len(), |(at, _)| at);
        Self {
            listeners,
            server: address.get(..path).unwrap_or_default().to_owned(),
            exchange: next_exchange(),
            mask: SecretMask::of(searchable(secrets)),
            secrets: secrets.to_vec(),
            has_ended: false,
        }
    }

    fn notify(&self, kind: TrafficKind<'_>) {
        let traffic = Traffic { server: &self.server, exchange: self.exchange, kind };
        for listener in &self.listeners {
            listener.notify(|listener| listener(&traffic));
        }
    }

    pub(super) fn request(&self, method: &str, url: &str, headers: Vec<(String, String)>, body: &str) {
        let (headers, body) = (self.mask_headers(headers), self.mask.mask(body));
        self.notify(TrafficKind::Request { method, url, headers: &headers, body: &body });
    }

    pub(super) fn response(&self, status: u16, headers: &[(String, String)]) {
        let headers = self.mask_headers(headers.to_vec());
        self.notify(TrafficKind::Response { status, headers: &headers });
    }

    pub(super) fn body(&mut self, bytes: &[u8]) {
        let text = self.mask.push(bytes, false);
        if !text.is_empty() {
            self.notify(TrafficKind::Body { text: &text });
        }
    }

    pub(super) fn end(&mut self, error: Option<&ModelError>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let text = self.mask.push(&[], true);
        if !text.is_empty() {
            self.notify(TrafficKind::Body { text: &text });
        }
        self.notify(TrafficKind::End { error });
    }

    fn mask_headers(&self, headers: Vec<(String, String)>) -> Vec<(String, String)> {
        let masked = headers.into_iter().map(|(name, value)| {
            let is_secret = name.contains("cookie") || self.secrets.iter().any(|one| one.expose() == value);
            let value = if is_secret { REDACTED.to_owned() } else { self.mask.mask(&value) };
            (name, value)
        });
        masked.collect()
    }
}

impl Drop for TrafficReporter {
    fn drop(&mut self) {
        self.end(None);
    }
}
