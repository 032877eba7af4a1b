//! HTTP requests and responses, for debugging, with the keys masked.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Secret;
use super::secret::searchable;
use crate::model::ModelError;
use crate::panics::Observer;
use crate::quoted::quoted_forms;

/// A part of an HTTP exchange, as passed to [`HttpOptions::on_traffic`](super::HttpOptions::on_traffic).
///
/// Keys are masked wherever they occur. The texts of people and models are not.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::{HttpModel, HttpOptions, Proxy, Traffic};
/// use std::sync::{Arc, Mutex};
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let lines = log.clone();
/// let options = HttpOptions::default().with_proxy(Proxy::None).with_max_retries(0).on_traffic(move |traffic: &Traffic<'_>| {
///     lines.lock().unwrap().push((traffic.exchange, format!("{:?}", traffic.kind)));
/// });
/// let model = HttpModel::builder("openai/gpt-5").key("s3cret").base_url("http://127.0.0.1:9/v1").options(options).build()?;
/// assert!(model.call(&StepCx::new(), &ModelRequest::default()).await.is_err());           // nobody listens there
///
/// let log = log.lock().unwrap();
/// let ((first, request), (last, end)) = (log.first().unwrap(), log.last().unwrap());
/// assert!(request.contains("http://127.0.0.1:9/v1") && !request.contains("s3cret"));
/// assert!(end.contains("connection"));
/// assert_eq!(first, last);                             // of one exchange
/// # Ok(()) }
/// # #[cfg(not(feature = "openai"))] fn main() {}
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Traffic<'a> {
    /// The number of the exchange: each attempt of each request has its own in this process, counted from 1.
    pub exchange: u64,
    /// The event of the exchange.
    pub kind: TrafficKind<'a>,
}

/// The kinds of [`Traffic`]: a request, then a response, its body in pieces, and the end; or the end without a response.
///
/// ```
/// use agent::provider::http::TrafficKind;
///
/// fn line(kind: &TrafficKind<'_>) -> String {
///     match kind {
///         TrafficKind::Request { method, url, .. } => format!("> {method} {url}"),
///         TrafficKind::Answer { status, .. } => format!("< {status}"),
///         TrafficKind::Body { text, .. } => format!("< {text}"),
///         TrafficKind::End { error: Some(error), .. } => format!("! {error}"),
///         _ => String::new(),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TrafficKind<'a> {
    /// A request is sent.
    #[non_exhaustive]
    Request {
        /// The method, usually `POST`.
        method: &'a str,
        /// The URL, without user, password, query and those parts of the path that may be secrets.
        url: &'a str,
        /// The headers of the request; the values of keys are masked.
        headers: &'a [(String, String)],
        /// The whole body.
        body: &'a str,
    },
    /// A response begins.
    #[non_exhaustive]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Its headers, with names in lower case.
        headers: &'a [(String, String)],
    },
    /// A piece of the response's body. The start of a key or character that may continue in the next piece is held back until then.
    #[non_exhaustive]
    Body {
        /// The text; bytes that are not UTF-8 are replaced.
        text: &'a str,
    },
    /// The response has ended, or is not read any further. Missing if the thread unwinds after a panic.
    #[non_exhaustive]
    End {
        /// The error, if there was one.
        error: Option<&'a ModelError>,
    },
}

pub(super) type OnTraffic = Observer<dyn Fn(&Traffic<'_>) + Send + Sync>;

const REDACTED: &str = "[redacted]";

/// The minimum length of the start of a key that is masked at the end of an incomplete body, in bytes.
const MIN_PARTIAL_SECRET: usize = 4;

/// Reports one exchange, and its end on drop.
pub(super) struct TrafficReporter {
    listener: OnTraffic,
    exchange: u64,
    mask: SecretMask,
    secrets: Vec<Secret>,
    has_ended: bool,
}

impl TrafficReporter {
    pub(super) fn new(listener: &OnTraffic, secrets: &[Secret]) -> Self {
        static EXCHANGES: AtomicU64 = AtomicU64::new(0);
        let exchange = EXCHANGES.fetch_add(1, Ordering::Relaxed) + 1;
        let mask = SecretMask::new(&searchable(secrets));
        Self { listener: listener.clone(), exchange, mask, secrets: secrets.to_vec(), has_ended: false }
    }

    fn notify(&self, kind: TrafficKind<'_>) {
        self.listener.notify(|listener| listener(&Traffic { exchange: self.exchange, kind }));
    }

    pub(super) fn request(&self, method: &str, url: &str, headers: Vec<(String, String)>, body: &str) {
        let (headers, body) = (self.mask_headers(headers), self.mask.mask(body));
        self.notify(TrafficKind::Request { method, url, headers: &headers, body: &body });
    }

    pub(super) fn answer(&self, status: u16, headers: &[(String, String)]) {
        let headers = self.mask_headers(headers.to_vec());
        self.notify(TrafficKind::Answer { status, headers: &headers });
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

/// Masks secrets in text that arrives in pieces.
struct SecretMask {
    /// Each secret in all [forms](quoted_forms); longest first, so that of two with the same start the longer one is masked whole.
    secrets: Vec<Vec<u8>>,
    /// The end of the input that may be the start of a secret or of a character.
    held_back: Vec<u8>,
}

impl SecretMask {
    fn new(secrets: &[&str]) -> Self {
        let mut all: Vec<Vec<u8>> =
            secrets.iter().flat_map(|secret| quoted_forms(secret)).map(String::into_bytes).collect();
        all.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self { secrets: all, held_back: Vec::new() }
    }

    fn mask(&self, text: &str) -> String {
        Self { secrets: self.secrets.clone(), held_back: Vec::new() }.push(text.as_bytes(), true)
    }

    /// Returns the text that can be shown so far.
    fn push(&mut self, bytes: &[u8], is_last: bool) -> String {
        self.held_back.extend_from_slice(bytes);
        let (mut shown, mut at) = (Vec::with_capacity(self.held_back.len()), 0);
        while let Some(rest) = self.held_back.get(at..).filter(|rest| !rest.is_empty()) {
            // Finds the longest secret, or the longest one that further input may complete.
            let found = self.secrets.iter().find(|secret| {
                rest.starts_with(secret) || (secret.len() > rest.len() && secret.starts_with(rest))
            });
            match found {
                Some(secret) if rest.starts_with(secret) => {
                    shown.extend_from_slice(REDACTED.as_bytes());
                    at += secret.len();
                }
                Some(_) if !is_last => break,
                Some(_) if rest.len() >= MIN_PARTIAL_SECRET => {
                    shown.extend_from_slice(REDACTED.as_bytes());
                    at = self.held_back.len();
                }
                _ => {
                    shown.push(rest[0]);
                    at += 1;
                }
            }
        }
        self.held_back.drain(..at);
        // A character that continues in the next piece is shown whole.
        if !is_last && self.held_back.is_empty() {
            let cut = unfinished_length(&shown);
            self.held_back = shown.split_off(shown.len() - cut);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }
}

/// Returns the number of bytes at the end that are an incomplete character.
fn unfinished_length(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let begins = tail.iter().rposition(|byte| *byte >= 0xC0);
    begins.map_or(0, |at| {
        let (have, first) = (tail.len() - at, tail[at]);
        let wanted = if first >= 0xF0 {
            4
        } else if first >= 0xE0 {
            3
        } else {
            2
        };
        if have < wanted { have } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(secrets: &[&str], text: &str, size: usize) -> String {
        let mut mask = SecretMask::new(secrets);
        let mut shown: String = text.as_bytes().chunks(size).map(|piece| mask.push(piece, false)).collect();
        shown.push_str(&mask.push(&[], true));
        shown
    }

    #[test]
    fn secrets_are_taken_out_wherever_pieces_end() {
        let secrets = ["abab", "Bearer sk-1", "sk-1", "sk-123", "q\"x"];
        for (text, expected) in [
            ("xababab", "x[redacted]ab"),
            ("Bearer sk-1!", "[redacted]!"),
            ("Bearer sk-x", "Bearer sk-x"),
            ("sk-123 sk-12 sk-1", "[redacted] [redacted]2 [redacted]"),
            (r#"{"k":"q\"x"}"#, r#"{"k":"[redacted]"}"#),
            (r#"{"k":"{\"k\":\"q\\\"x\"}"}"#, r#"{"k":"{\"k\":\"[redacted]\"}"}"#),
            (r#"{"k":"q\u0022x"}"#, r#"{"k":"[redacted]"}"#),
            ("größer – 🦀", "größer – 🦀"),
            ("cut at Bearer s", "cut at [redacted]"),
            ("cut at Be", "cut at Be"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(in_pieces(&secrets, text, size), expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn invalid_text_is_replaced() {
        let mut mask = SecretMask::new(&[]);
        assert_eq!(mask.push(b"a\xff\xe2\x82", false), "a\u{fffd}");
        assert_eq!(mask.push(b"\xac", false), "€");
        assert_eq!(mask.push(b"\xf0\x9f", true), "\u{fffd}");
    }
}
