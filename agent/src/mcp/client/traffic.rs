//! Passes each message that a server receives or sends to the configuration's listener. The configuration's secrets are masked.

use super::config::ClientConfig;
use super::last_words::LastWords;
use super::masked::ConfigSecrets;
use crate::traffic::{OnTraffic, Traffic, TrafficKind, next_exchange};
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub(super) struct TrafficTap(Arc<TapState>);

struct TapState {
    on_traffic: Option<OnTraffic>,
    server: String,
    connection: u64,
    secrets: Mutex<ConfigSecrets>,
    last_words: Mutex<LastWords>,
}

impl TrafficTap {
    pub(super) fn new(config: &ClientConfig, server: &str) -> Self {
        Self(Arc::new(TapState {
            on_traffic: config.on_traffic.clone(),
            server: server.to_owned(),
            connection: next_exchange(),
            secrets: Mutex::new(ConfigSecrets::of(config)),
            last_words: Mutex::default(),
        }))
    }

    pub(super) fn hide(&self, token: &str) {
        self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner).add(token);
    }

    pub(super) fn masked(&self, text: &str) -> String {
        self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner).mask(text)
    }

    /// Returns the lines of a program's error output that most likely contain the reason for its end.
    pub(super) fn last_words(&self) -> Option<String> {
        let words = self.0.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        (!words.is_empty()).then(|| words.text())
    }

    pub(super) fn error_output(&self, line: &str) {
        let line = self.masked(line.trim_end());
        tracing::debug!(server = %self.0.server, %line, "the error output of a server");
        self.0.last_words.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        self.notify(|| line, |line| TrafficKind::ErrorOutput { line });
    }

    fn notify(&self, text: impl FnOnce() -> String, kind: impl FnOnce(&str) -> TrafficKind<'_>) {
        let Some(on_traffic) = &self.0.on_traffic else { return };
        let text = self.masked(&text());
        let traffic = Traffic { server: &self.0.server, exchange: self.0.connection, kind: kind(&text) };
        on_traffic.notify(|on_traffic| on_traffic(&traffic));
    }
}

fn text(message: &impl serde::Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// The arguments of a call, passed to the transport outside of the message, because `rmcp` writes messages to its log.
#[derive(Clone)]
pub(super) struct SentArguments(pub(super) Map<String, Value>);

/// A transport that adds [`SentArguments`] to each call, and reports every message to `tap`.
pub(super) struct TappedTransport<T> {
    transport: T,
    tap: TrafficTap,
}

impl<T> TappedTransport<T> {
    pub(super) fn new(transport: T, tap: TrafficTap) -> Self {
        Self { transport, tap }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for TappedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut request.request
            && let Some(SentArguments(arguments)) = call.extensions.remove()
        {
            call.params.arguments = Some(arguments);
        }
        self.tap.notify(|| text(&message), |message| TrafficKind::Sent { message });
        let (sending, tap) = (self.transport.send(message), self.tap.clone());
        async move {
            let sent = sending.await;
            if let Err(error) = &sent {
                tap.notify(|| error.to_string(), |reason| TrafficKind::Failed { reason });
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let received = self.transport.receive().await;
        match &received {
            Some(message) => self.tap.notify(|| text(message), |message| TrafficKind::Received { message }),
            None => self.tap.notify(String::new, |_| TrafficKind::Closed),
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(config: ClientConfig, token: Option<&str>, line: &str) -> String {
        let seen = Arc::new(Mutex::new(String::new()));
        let sink = seen.clone();
        let config = config.on_traffic(move |traffic| {
            let TrafficKind::ErrorOutput { line } = traffic.kind else { panic!("{traffic:?}") };
            *sink.lock().unwrap() = format!("{}: {line}", traffic.server);
        });
        let tap = TrafficTap::new(&config, "s");
        if let Some(token) = token {
            tap.hide(token);
        }
        tap.error_output(line);
        let seen = seen.lock().unwrap();
        seen.clone()
    }

    #[test]
    fn secrets_are_masked() {
        let config =
            || ClientConfig::http("https://x.example").header("X-Api-Key", "k\"1").header("X-Version", "2");
        let line = r#"token t0k, longer t0ken, key k"1, in JSON "k\"1", version 2"#;
        assert_eq!(
            observed(config(), Some("t0k"), line),
            r#"s: token [redacted], longer [redacted]en, key [redacted], in JSON "[redacted]", version 2"#
        );
        let config = ClientConfig::command("x").env("DB_PASSWORD", "p").env("LOG", "w").env("EMPTY_KEY", "");
        assert_eq!(observed(config, None, "p w"), "s: [redacted] w");
    }

    struct Broken;

    impl Transport<RoleClient> for Broken {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Err(std::io::Error::other("t0k is no key")))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            None
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn failures_are_reported() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let config = ClientConfig::http("https://x.example")
            .on_traffic(move |traffic| sink.lock().unwrap().push(format!("{:?}", traffic.kind)));
        let tap = TrafficTap::new(&config, "s");
        tap.hide("t0k");
        let mut tapped = TappedTransport::new(Broken, tap);
        let message = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert!(tapped.send(serde_json::from_value(message).unwrap()).await.is_err());
        assert!(tapped.receive().await.is_none());
        let seen = seen.lock().unwrap();
        assert!(seen[0].starts_with("Sent") && seen[0].contains("notifications/initialized"), "{seen:?}");
        assert_eq!(seen[1..], [r#"Failed { reason: "[redacted] is no key" }"#, "Closed"]);
    }
}
