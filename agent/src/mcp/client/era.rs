//! Determines which form of the protocol a server speaks.
//!
//! `rmcp` would do so itself, but waits for a fixed time that no limit changes, and takes an answer that arrives later for the answer to its
//! next request. A program that starts slowly is asked in both forms here, and both answers are awaited.

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

/// How long a program may leave the first request of the newer form unanswered before it gets that of the older form, too.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// How long the second answer is awaited once one of the two says enough.
const SECOND_ANSWER: Duration = Duration::from_secs(1);
/// The ids of the two requests. `rmcp` counts its own from zero.
const DISCOVER: i64 = i32::MAX as i64;
const INITIALIZE: i64 = DISCOVER - 1;

type Received = RxJsonRpcMessage<RoleClient>;

/// The newer form of the protocol.
pub(super) fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// Returns how long a program has to answer in the newer form, within the limit of the whole connection.
pub(super) fn patience(limit: Duration) -> Duration {
    FIRST_REQUEST.min(limit / 2)
}

/// A transport whose first request may already have been answered.
pub(super) struct Probed<T: Transport<RoleClient>> {
    transport: T,
    /// What became of the first request, if it was made before `rmcp` makes it.
    first: Option<FirstRequest<T::Error>>,
    /// The answer to the first request, with the id that `rmcp` expects.
    ready: Option<Box<Received>>,
    /// The ids of requests whose answers are not awaited.
    given_up: Vec<RequestId>,
}

enum FirstRequest<E> {
    Answered(Box<Received>),
    Failed(E),
    /// The connection ended without an answer.
    Closed,
}

impl<T: Transport<RoleClient>> Probed<T> {
    /// A transport on which nothing was sent.
    pub(super) fn unused(transport: T) -> Self {
        Self { transport, first: None, ready: None, given_up: Vec::new() }
    }

    /// Asks a server in the newer form of the protocol, and after `patience` also in the older one. Returns the form that it speaks, for
    /// `rmcp` to begin with, which then gets the answer that the server gave here.
    ///
    /// Completes when the server answered, however long that takes.
    pub(super) async fn determine(
        transport: T,
        client: &ClientConfig,
        patience: Option<Duration>,
    ) -> (Self, ClientLifecycleMode) {
        let mut probed = Self::unused(transport);
        let mut answers = Answers::default();
        let mode = match probed.ask(client, patience, &mut answers).await {
            Ok(Form::Older) => {
                probed.first = answers.older.take().map(FirstRequest::Answered);
                ClientLifecycleMode::Initialize
            }
            Ok(Form::Newer) => {
                probed.first = answers.newer.take().map(FirstRequest::Answered);
                modern()
            }
            Err(failed) => {
                probed.first = Some(failed);
                modern()
            }
        };
        probed.given_up = answers.outstanding;
        (probed, mode)
    }

    async fn ask(
        &mut self,
        client: &ClientConfig,
        patience: Option<Duration>,
        answers: &mut Answers,
    ) -> Result<Form, FirstRequest<T::Error>> {
        let mut sending = JoinSet::new();
        sending.spawn(self.transport.send(discover(client)));
        answers.outstanding.push(NumberOrString::Number(DISCOVER));
        let mut alarm = patience.map(|patience| Instant::now() + patience);
        loop {
            tokio::select! {
                // Why a request was not sent says more than the end of the connection.
                biased;
                Some(sent) = sending.join_next() => {
                    if let Ok(Err(error)) = sent {
                        return Err(FirstRequest::Failed(error));
                    }
                }
                received = self.transport.receive() => match received {
                    Some(JsonRpcMessage::Request(request)) => {
                        // The newer form has no such requests, and a server may wait for the answer.
                        if answers.asked_both && matches!(request.request, ServerRequest::PingRequest(_)) {
                            let pong = JsonRpcMessage::response(ClientResult::empty(()), request.id);
                            sending.spawn(self.transport.send(pong));
                        }
                    }
                    Some(message) => {
                        if answers.note(message) && answers.asked_both {
                            alarm = Some(Instant::now() + SECOND_ANSWER);
                        }
                    }
                    None => {
                        while let Some(sent) = sending.join_next().await {
                            if let Ok(Err(error)) = sent {
                                return Err(FirstRequest::Failed(error));
                            }
                        }
                        return Err(FirstRequest::Closed);
                    }
                },
                () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                    alarm = None;
                    if answers.asked_both {
                        answers.is_late = true;
                    } else {
                        answers.asked_both = true;
                        answers.outstanding.push(NumberOrString::Number(INITIALIZE));
                        sending.spawn(self.transport.send(initialize(client)));
                    }
                }
            }
            if let Some(form) = answers.form() {
                // A message that is cut off would spoil the next one.
                sending.detach_all();
                return Ok(form);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Newer,
    Older,
}

/// What a server answered so far.
#[derive(Default)]
struct Answers {
    newer: Option<Box<Received>>,
    older: Option<Box<Received>>,
    asked_both: bool,
    /// Whether one answer has been awaited for long enough after the other.
    is_late: bool,
    outstanding: Vec<RequestId>,
}

impl Answers {
    /// Keeps the message, if it is an answer. Returns whether it is.
    fn note(&mut self, message: Received) -> bool {
        let Some(at) = position(&self.outstanding, &message) else { return false };
        let place = match self.outstanding.swap_remove(at) {
            NumberOrString::Number(INITIALIZE) => &mut self.older,
            _ => &mut self.newer,
        };
        *place = Some(Box::new(message));
        true
    }

    /// Returns the form that the server speaks, if that is known.
    fn form(&self) -> Option<Form> {
        match (&self.newer, &self.older) {
            (None, None) => None,
            // The server waits for what follows `initialize`, whatever it said about the newer form.
            (_, Some(older)) if matches!(**older, JsonRpcMessage::Response(_)) => Some(Form::Older),
            (None, Some(_)) => self.is_late.then_some(Form::Older),
            (Some(newer), Some(_)) => Some(if knows_none(newer) { Form::Older } else { Form::Newer }),
            (Some(newer), None) if knows_none(newer) => (!self.asked_both).then_some(Form::Older),
            (Some(_), None) => (!self.asked_both || self.is_late).then_some(Form::Newer),
        }
    }
}

/// Whether the answer to the newer form is that of a server that does not know it.
fn knows_none(answer: &Received) -> bool {
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

/// Returns which of the requests the message answers. An error without an id answers the first one.
fn position(requests: &[RequestId], message: &Received) -> Option<usize> {
    let id = match message {
        JsonRpcMessage::Response(response) => &response.id,
        JsonRpcMessage::Error(error) => match &error.id {
            Some(id) => id,
            None => return (!requests.is_empty()).then_some(0),
        },
        _ => return None,
    };
    // Some servers answer with the number as a text.
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

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probed<T> {
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
            Some(FirstRequest::Failed(error)) => Either::Right(ready(Err(error))),
            Some(FirstRequest::Closed) => Either::Right(ready(Ok(()))),
            Some(FirstRequest::Answered(mut answer)) => {
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

    async fn receive(&mut self) -> Option<Received> {
        if let Some(answer) = self.ready.take() {
            return Some(*answer);
        }
        loop {
            let message = self.transport.receive().await?;
            let has_id = !matches!(&message, JsonRpcMessage::Error(error) if error.id.is_none());
            match position(&self.given_up, &message).filter(|_| has_id) {
                Some(at) => _ = self.given_up.swap_remove(at),
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

    fn answer(id: i64, what: &serde_json::Value) -> Received {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        message.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn what_a_server_said_decides_in_every_order() {
        let yes = || json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}});
        let discovered = || json!({"result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}});
        let no = |code: i64| json!({"error": {"code": code, "message": "no"}});
        // Both answers, and the form: in time, and when the other answer is late.
        for (newer, older, in_time, late) in [
            (None, None, None, None),
            (Some(discovered()), None, None, Some(Form::Newer)),
            (Some(no(-32022)), None, None, Some(Form::Newer)),
            (Some(no(-32601)), None, None, None),
            (None, Some(yes()), Some(Form::Older), Some(Form::Older)),
            (None, Some(no(-32601)), None, Some(Form::Older)),
            (Some(discovered()), Some(yes()), Some(Form::Older), Some(Form::Older)),
            (Some(discovered()), Some(no(-32601)), Some(Form::Newer), Some(Form::Newer)),
            (Some(no(-32601)), Some(yes()), Some(Form::Older), Some(Form::Older)),
            (Some(no(-32601)), Some(no(-32000)), Some(Form::Older), Some(Form::Older)),
        ] {
            let outstanding = vec![NumberOrString::Number(DISCOVER), NumberOrString::Number(INITIALIZE)];
            let mut answers = Answers { asked_both: true, outstanding, ..Answers::default() };
            for (id, answer_to) in [(INITIALIZE, &older), (DISCOVER, &newer)] {
                if let Some(what) = answer_to {
                    assert!(answers.note(answer(id, what)));
                    assert!(!answers.note(answer(id, what)), "an answer counts once");
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
