//! The HTTP exchanges of a request to a model: its attempts, and the last response as it was received.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::cut::beginning;
use crate::masking::SecretMask;
use crate::panics::Observer;
use crate::traffic::{OnTraffic, Traffic, TrafficKind};

/// Maximum number of kept exchanges per request. After that, each new exchange replaces the last one.
const KEPT: usize = 32;
/// Maximum length of the kept part of a response, in bytes.
const MAX_BODY: usize = 64 << 10;

struct ObservedExchange {
    number: u64,
    server: String,
    at: Instant,
    status: Option<u16>,
    end: Option<Instant>,
    error: Option<String>,
    body: String,
    /// The length of the whole body in bytes, including the part that is not kept.
    length: usize,
}

/// The kept attempts of a request, oldest first.
#[derive(Default)]
pub(super) struct Exchanges(Arc<Mutex<Vec<ObservedExchange>>>);

impl Exchanges {
    pub(super) fn listener(&self) -> OnTraffic {
        let exchanges = self.0.clone();
        Observer::new(
            "studio",
            Arc::new(move |traffic: &Traffic<'_>| {
                observe(&mut exchanges.lock().unwrap_or_else(PoisonError::into_inner), traffic);
            }),
        )
    }

    pub(super) fn summary(&self, since: &dyn Fn(Instant) -> u64) -> Value {
        let exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = exchanges.iter().map(|exchange| {
            json!({
                "server": exchange.server,
                "at": since(exchange.at),
                "end": exchange.end.map(since),
                "status": exchange.status,
                "error": exchange.error,
            })
        });
        shown.collect()
    }

    /// Returns the last response, or null if there is none. The response may quote `secrets`, so they are masked.
    pub(super) fn received(&self, is_open: bool, secrets: &[String]) -> Value {
        let exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = exchanges.last() else { return Value::Null };
        let body = is_open.then(|| SecretMask::of(secrets.iter().map(String::as_str)).mask(&last.body));
        json!({"status": last.status, "length": last.length, "kept": last.body.len(), "body": body})
    }
}

fn observe(exchanges: &mut Vec<ObservedExchange>, traffic: &Traffic<'_>) {
    if let TrafficKind::Request { .. } = traffic.kind {
        // Only the body of the last response is kept.
        for earlier in exchanges.iter_mut() {
            earlier.body = String::new();
        }
        exchanges.truncate(KEPT - 1);
        return exchanges.push(ObservedExchange {
            number: traffic.exchange,
            server: traffic.server.to_owned(),
            at: Instant::now(),
            status: None,
            end: None,
            error: None,
            body: String::new(),
            length: 0,
        });
    }
    let Some(exchange) = exchanges.iter_mut().rfind(|one| one.number == traffic.exchange) else { return };
    match traffic.kind {
        TrafficKind::Response { status, .. } => exchange.status = Some(status),
        TrafficKind::Body { text } => {
            // After a piece was cut, no later piece is added, because the kept body would then have a gap.
            if exchange.body.len() == exchange.length {
                exchange.body.push_str(beginning(text, MAX_BODY.saturating_sub(exchange.length)));
            }
            exchange.length += text.len();
        }
        TrafficKind::End { error } => {
            exchange.end = Some(Instant::now());
            exchange.error = error.map(ToString::to_string);
        }
        _ => {}
    }
}
