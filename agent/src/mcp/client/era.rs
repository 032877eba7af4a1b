//! Detects whether a server speaks the newer form of the protocol (since 2026-07-28, without sessions) or the older form (with
//! `initialize`).
//!
//! The detection of `rmcp` is not used: it has a fixed time limit, and it mistakes an answer that arrives after this limit for the answer
//! to the next request. This module sends a request in both forms to a slow program, and waits for both answers.

use futures_util::future::{Either, ready};
use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams, ErrorCode,
    InitializeRequest, JsonRpcMessage, NumberOrString, ProtocolVersion, RequestId, RequestMetaObject,
    ServerRequest,
};
use rmcp::service::{ClientLifecycleMode, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Maximum wait for the answer to the request of the newer form. After this time, the request of the older form is sent as well.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// Maximum wait for the second answer, after the first answer has arrived.
const SECOND_ANSWER: Duration = Duration::from_secs(1);
/// The ids of the two requests that find out which form of the protocol the server speaks. The requests of `rmcp` have lower ids, because
/// `rmcp` counts from zero.
const DISCOVER: i64 = i32::MAX as i64;
const INITIALIZE: i64 = DISCOVER - 1;

type ServerMessage = RxJsonRpcMessage<RoleClient>;

pub(super) fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// Returns the maximum wait for the first answer. At least half of `limit`, the time to connect, is left for the request in the older
/// form.
pub(super) fn patience(limit: Duration) -> Duration {
    FIRST_ANSWER.min(limit / 2)
}

pub(super) struct ProbedTransport<T: Transport<RoleClient>> {
    transport: T,
    /// The outcome of the request that detected the form of the protocol. `rmcp` gets this outcome for its first request, which is not
    /// sent.
    first: Option<FirstRequestOutcome<T::Error>>,
    ready: Option<Box<ServerMessage>>,
    /// The ids of unanswered requests from the detection. Late answers to these requests are dropped.
    ignored: Vec<RequestId>,
}

enum FirstRequestOutcome<E> {
    Answered(Box<ServerMessage>),
    Failed(E),
    Closed,
}

impl<T: Transport<RoleClient>> ProbedTransport<T> {
    pub(super) fn unused(transport: T) -> Self {
        Self { transport, first: None, ready: None, ignored: Vec::new() }
    }

    /// Sends a request in the newer form of the protocol. If the server does not answer within `patience`, also sends a request in the
    /// older form. Returns the lifecycle of the form that the server speaks. The returned transport passes the server's answer, or the
    /// failure of the connection, to `rmcp`.
    ///
    /// This function has no time limit: the caller must set one.
    pub(super) async fn determine(
        transport: T,
        client: &ClientConfig,
        patience: Option<Duration>,
    ) -> (Self, ClientLifecycleMode) {
        let mut probing = Self::unused(transport);
        let mut answers = ProbeAnswers::default();
        let mode = match probing.ask(client, patience, &mut answers).await {
            Ok(ProtocolForm::Older) => {
                probing.first = answers.older.take().map(FirstRequestOutcome::Answered);
                ClientLifecycleMode::Initialize
            }
            Ok(ProtocolForm::Newer) => {
                probing.first = answers.newer.take().map(FirstRequestOutcome::Answered);
                modern()
            }
            Err(failed) => {
                probing.first = Some(failed);
                modern()
            }
        };
        probing.ignored = answers.outstanding;
        (probing, mode)
    }

    async fn ask(
        &mut self,
        client: &ClientConfig,
        patience: Option<Duration>,
        answers: &mut ProbeAnswers,
    ) -> Result<ProtocolForm, FirstRequestOutcome<T::Error>> {
        let mut sending = JoinSet::new();
        sending.spawn(self.transport.send(discover(client)));
        answers.outstanding.push(NumberOrString::Number(DISCOVER));
        let mut alarm = patience.map(|patience| Instant::now() + patience);
        loop {
            tokio::select! {
                // Sending is polled first, because the error of a request says more than the end of the connection.
                biased;
                Some(sent) = sending.join_next() => {
                    if let Ok(Err(error)) = sent {
                        return Err(FirstRequestOutcome::Failed(error));
                    }
                }
                received = self.transport.receive() => match received {
                    Some(JsonRpcMessage::Request(request)) => {
                        // Some servers send a ping, and answer `initialize` only after the client answers the ping. Other requests of the
                        // server are ignored.
                        if answers.both_sent && matches!(request.request, ServerRequest::PingRequest(_)) {
                            let pong = JsonRpcMessage::response(ClientResult::empty(()), request.id);
                            sending.spawn(self.transport.send(pong));
                        }
                    }
                    Some(message) => {
                        if answers.record(message) && answers.both_sent {
                            alarm = Some(Instant::now() + SECOND_ANSWER);
                        }
                    }
                    None => {
                        while let Some(sent) = sending.join_next().await {
                            if let Ok(Err(error)) = sent {
                                return Err(FirstRequestOutcome::Failed(error));
                            }
                        }
                        return Err(FirstRequestOutcome::Closed);
                    }
                },
                () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                    alarm = None;
                    if answers.both_sent {
                        answers.is_late = true;
                    } else {
                        answers.both_sent = true;
                        answers.outstanding.push(NumberOrString::Number(INITIALIZE));
                        sending.spawn(self.transport.send(initialize(client)));
                    }
                }
            }
            if let Some(form) = answers.form() {
                // Messages that are still being sent are completed in the background, because a message that is cut off would make the next
                // message unreadable.
                sending.detach_all();
                return Ok(form);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtocolForm {
    Newer,
    Older,
}

#[derive(Default)]
struct ProbeAnswers {
    newer: Option<Box<ServerMessage>>,
    older: Option<Box<ServerMessage>>,
    both_sent: bool,
    is_late: bool,
    outstanding: Vec<RequestId>,
}

impl ProbeAnswers {
    /// Keeps the message and returns `true`, if it answers a request.
    fn record(&mut self, message: ServerMessage) -> bool {
        let Some(at) = position(&self.outstanding, &message) else { return false };
        let slot = match self.outstanding.swap_remove(at) {
            NumberOrString::Number(INITIALIZE) => &mut self.older,
            _ => &mut self.newer,
        };
        *slot = Some(Box::new(message));
        true
    }

    /// Returns the protocol form of the server, or `None` if the client must wait for another answer.
    fn form(&self) -> Option<ProtocolForm> {
        match (&self.newer, &self.older) {
            (None, None) => None,
            // A server that accepted `initialize` now expects the older form, even if it also supports the newer form.
            (_, Some(older)) if matches!(**older, JsonRpcMessage::Response(_)) => Some(ProtocolForm::Older),
            (None, Some(_)) => self.is_late.then_some(ProtocolForm::Older),
            (Some(newer), Some(_)) => {
                Some(if is_unknown_method(newer) { ProtocolForm::Older } else { ProtocolForm::Newer })
            }
            (Some(newer), None) if is_unknown_method(newer) => {
                (!self.both_sent).then_some(ProtocolForm::Older)
            }
            (Some(_), None) => (!self.both_sent || self.is_late).then_some(ProtocolForm::Newer),
        }
    }
}

/// Returns whether the answer to the `DISCOVER` request is an error of a server that does not support the newer form.
fn is_unknown_method(answer: &ServerMessage) -> bool {
    match answer {
        JsonRpcMessage::Error(error) => !matches!(
            error.error.code,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
                | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
                | ErrorCode::HEADER_MISMATCH
        ),
        _ => false,
    }
}

/// Returns the position of the request that the message answers. An error without an id counts as the answer to the first request.
fn position(requests: &[RequestId], message: &ServerMessage) -> Option<usize> {
    let id = match message {
        JsonRpcMessage::Response(response) => &response.id,
        JsonRpcMessage::Error(error) => match &error.id {
            Some(id) => id,
            None => return (!requests.is_empty()).then_some(0),
        },
        _ => return None,
    };
    // Some servers return the number of the id as text, so the ids are compared as texts.
    requests.iter().position(|own| own == id || own.to_string() == id.to_string())
}

fn discover(client: &ClientConfig) -> TxJsonRpcMessage<RoleClient> {
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    request.extensions.insert(RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        client.client_info.clone(),
        client.capabilities.clone(),
    ));
    JsonRpcMessage::request(ClientRequest::DiscoverRequest(request), NumberOrString::Number(DISCOVER))
}

fn initialize(client: &ClientConfig) -> TxJsonRpcMessage<RoleClient> {
    let request = InitializeRequest::new(client.clone());
    JsonRpcMessage::request(ClientRequest::InitializeRequest(request), NumberOrString::Number(INITIALIZE))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProbedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let JsonRpcMessage::Request(request) = &message else {
            return Either::Left(self.transport.send(message));
        };
        match self.first.take() {
            None => Either::Left(self.transport.send(message)),
            Some(FirstRequestOutcome::Failed(error)) => Either::Right(ready(Err(error))),
            Some(FirstRequestOutcome::Closed) => Either::Right(ready(Ok(()))),
            Some(FirstRequestOutcome::Answered(mut answer)) => {
                match &mut *answer {
                    JsonRpcMessage::Response(response) => response.id = request.id.clone(),
                    JsonRpcMessage::Error(error) => error.id = Some(request.id.clone()),
                    _ => {}
                }
                self.ready = Some(answer);
                Either::Right(ready(Ok(())))
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerMessage> {
        if let Some(answer) = self.ready.take() {
            return Some(*answer);
        }
        loop {
            let message = self.transport.receive().await?;
            let has_id = !matches!(&message, JsonRpcMessage::Error(error) if error.id.is_none());
            match position(&self.ignored, &message).filter(|_| has_id) {
                Some(at) => _ = self.ignored.swap_remove(at),
                None => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(id: i64, what: &serde_json::Value) -> ServerMessage {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        message.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn the_answers_decide_on_the_form_in_every_order() {
        let yes = || json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}});
        let discovered = || json!({"result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}});
        let no = |code: i64| json!({"error": {"code": code, "message": "no"}});
        // Each row: the answer to the newer request, the answer to the older request, the detected form, and the form after the timeout.
        for (newer, older, in_time, late) in [
            (None, None, None, None),
            (Some(discovered()), None, None, Some(ProtocolForm::Newer)),
            (Some(no(-32022)), None, None, Some(ProtocolForm::Newer)),
            (Some(no(-32601)), None, None, None),
            (None, Some(yes()), Some(ProtocolForm::Older), Some(ProtocolForm::Older)),
            (None, Some(no(-32601)), None, Some(ProtocolForm::Older)),
            (Some(discovered()), Some(yes()), Some(ProtocolForm::Older), Some(ProtocolForm::Older)),
            (Some(discovered()), Some(no(-32601)), Some(ProtocolForm::Newer), Some(ProtocolForm::Newer)),
            (Some(no(-32601)), Some(yes()), Some(ProtocolForm::Older), Some(ProtocolForm::Older)),
            (Some(no(-32601)), Some(no(-32000)), Some(ProtocolForm::Older), Some(ProtocolForm::Older)),
        ] {
            let outstanding = vec![NumberOrString::Number(DISCOVER), NumberOrString::Number(INITIALIZE)];
            let mut answers = ProbeAnswers { both_sent: true, outstanding, ..ProbeAnswers::default() };
            for (id, answer_to) in [(INITIALIZE, &older), (DISCOVER, &newer)] {
                if let Some(what) = answer_to {
                    assert!(answers.record(answer(id, what)));
                    assert!(!answers.record(answer(id, what)), "an answer counts once");
                }
            }
            assert_eq!(answers.form(), in_time, "{newer:?} {older:?}");
            answers.is_late = true;
            assert_eq!(answers.form(), late, "{newer:?} {older:?}");
        }
    }

    #[test]
    fn an_answer_belongs_to_its_request() {
        let requests = [NumberOrString::Number(DISCOVER), NumberOrString::Number(INITIALIZE)];
        let text =
            json!({"jsonrpc": "2.0", "id": INITIALIZE.to_string(), "error": {"code": 1, "message": ""}});
        assert_eq!(position(&requests, &serde_json::from_value(text).unwrap()), Some(1));
        let nameless = json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": ""}});
        assert_eq!(position(&requests, &serde_json::from_value(nameless).unwrap()), Some(0));
        assert_eq!(position(&requests, &answer(0, &json!({"result": {}}))), None);
    }
}
