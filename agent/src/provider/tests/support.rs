//! Helpers that encode requests, and read responses as the transport does, without a network.

use std::task::{Context, Poll, Waker};

use serde_json::Value;

use crate::args::{Plan, PlanOptions};
use crate::message::AssistantMessage;
use crate::model::{ModelError, ModelInfo, ModelRequest, ModelStream, StepCx};
use crate::provider::{Protocol, ReplyReader};
use crate::tool::definition::ToolDefinition;

/// Reads a response, and checks that the size of the pieces does not change the result.
pub(in crate::provider) fn read(
    protocol: &dyn Protocol,
    provider: &str,
    status: u16,
    body: &[u8],
) -> (AssistantMessage, Option<ModelError>) {
    let info = ModelInfo::new(provider, protocol.api(), "model");
    let in_pieces = |size: usize| {
        let mut reader = ReplyReader::new(protocol, &info, status, Vec::new());
        let mut events = Vec::new();
        let pushed = body.chunks(size.max(1)).try_for_each(|chunk| reader.push(chunk, &mut events));
        let end = pushed.and_then(|()| reader.finish(protocol, &mut events));
        let events: Vec<_> = events.into_iter().map(Ok).chain(end.err().map(Err)).collect();
        let mut stream = ModelStream::from_events(&StepCx::new(), &info, events);
        let mut error = None;
        while let Some(event) = now(stream.next()) {
            assert!(error.is_none(), "nothing follows an error");
            error = event.err();
        }
        (stream.into_partial(), error)
    };
    let whole = in_pieces(body.len());
    for size in [1, 2, 7, 64] {
        let (message, error) = in_pieces(size);
        assert_eq!(message, whole.0, "in pieces of {size}");
        assert_eq!(
            error.map(|e| e.to_string()),
            whole.1.as_ref().map(ToString::to_string),
            "in pieces of {size}"
        );
    }
    whole
}

pub(in crate::provider) fn reply(protocol: &dyn Protocol, body: &str) -> AssistantMessage {
    let (message, error) = read(protocol, "test", 200, body.as_bytes());
    assert!(error.is_none(), "{error:?}");
    message
}

pub(in crate::provider) fn body(protocol: &dyn Protocol, model: &str, request: &ModelRequest) -> Value {
    protocol.encode(&ModelInfo::new("test", protocol.api(), model), request).unwrap().json()
}

pub(in crate::provider) fn assert_round_trip(protocol: &dyn Protocol, given: &Value) -> ModelRequest {
    let (model, request) = protocol.parse_request("test", given).unwrap();
    assert_eq!(body(protocol, &model, &request), *given);
    request
}

pub(in crate::provider) fn tool(name: &str, schema: &Value) -> ToolDefinition {
    let plan = Plan::compile(name, schema, PlanOptions::default()).unwrap();
    ToolDefinition::new(plan, "Does it.").unwrap()
}

pub(in crate::provider) fn now<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}
