//! The assistant's model, with a log of the requests that it gets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::cut::{MAX_TEXT, beginning, cut_texts};
use crate::message::AssistantMessage;
use crate::model::{Model, ModelError, ModelInfo, ModelRequest, ModelStream, StepCx};
use crate::tool::BoxFuture;
use crate::tool::secrets::SecretArguments;

/// Maximum number of requests that are kept.
const KEPT: usize = 400;
/// Maximum bytes of the text of an error.
const MAX_ERROR: usize = 2 << 10;

/// A request, as the assistant passed it to its model.
#[derive(Clone)]
pub(super) struct ObservedRequest {
    run: Arc<str>,
    turn: u32,
    attempt: u32,
    at: Instant,
    request: ModelRequest,
    end: Arc<OnceLock<RequestEnd>>,
}

/// How the reply to a request ended.
struct RequestEnd {
    at: Instant,
    error: Option<String>,
}

/// The latest requests of all runs. A request shares its messages with the conversation.
#[derive(Default)]
pub(super) struct RequestLog(Mutex<VecDeque<ObservedRequest>>);

impl RequestLog {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ObservedRequest>> {
        // Nothing that can panic runs under it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a request, and returns where its end is put.
    fn push(&self, cx: &StepCx, request: &ModelRequest) -> Arc<OnceLock<RequestEnd>> {
        let end = Arc::default();
        let Some(key) = &cx.key else { return end };
        let (run, turn, attempt) = (key.run.clone(), key.turn, cx.attempt);
        let (at, request) = (Instant::now(), request.clone());
        let observed = ObservedRequest { run, turn, attempt, at, request, end: end.clone() };
        let mut log = self.lock();
        let oldest = if log.len() < KEPT { None } else { log.pop_front() };
        log.push_back(observed);
        drop(log);
        // It may own much, so it is dropped without the lock.
        drop(oldest);
        end
    }

    /// Returns the requests of a run, oldest first.
    pub(super) fn of_run(&self, run: &str) -> Vec<ObservedRequest> {
        self.lock().iter().filter(|observed| &*observed.run == run).cloned().collect()
    }
}

impl ObservedRequest {
    /// Returns the facts of a request, without its content.
    pub(super) fn summary(&self, began: Instant) -> Value {
        let since =
            |at: Instant| u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
        let end = self.end.get();
        json!({
            "turn": self.turn,
            "attempt": self.attempt,
            "at": since(self.at),
            "end": end.map(|end| since(end.at)),
            "error": end.and_then(|end| end.error.as_ref()),
            "messages": self.request.messages.len(),
        })
    }

    pub(super) fn is_of(&self, turn: u32, attempt: u32) -> bool {
        (self.turn, self.attempt) == (turn, attempt)
    }

    /// Returns the request without secret arguments, and its body as the provider of a model gets it.
    pub(super) fn shown(&self, secrets: &SecretArguments, model: &dyn Model) -> Value {
        let mut request = self.request.clone();
        request.messages = request.messages.iter().map(|message| secrets.shown(message)).collect();
        let request = &request;
        let tools = request.tools.iter().map(|tool| {
            json!({"name": tool.name(), "description": tool.description(), "parameters": tool.parameters()})
        });
        let mut shown = json!({
            "system": request.system,
            "messages": request.messages.iter().map(|message| json!(message)).collect::<Vec<_>>(),
            "tools": tools.collect::<Vec<_>>(),
            "tool_choice": format!("{:?}", request.tool_choice),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop": request.stop,
            "body": model.request_body(request),
            "output": request.output.as_ref().map(|output| &output.schema),
        });
        cut_texts(&mut shown, MAX_TEXT);
        shown
    }
}

/// A model that logs its requests, and passes them on.
pub(super) struct ObservedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) log: Arc<RequestLog>,
}

impl Model for ObservedModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let end = self.log.push(cx, request);
        self.model.stream(cx, request).with_on_end(move |error| record_end(&end, error))
    }

    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn candidates(&self) -> Vec<ModelInfo> {
        self.model.candidates()
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    fn max_output(&self) -> Option<u64> {
        self.model.max_output()
    }

    fn request_body(&self, request: &ModelRequest) -> Option<String> {
        self.model.request_body(request)
    }

    fn count_tokens(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
        self.model.count_tokens(cx, request)
    }

    fn call(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<AssistantMessage, ModelError>> {
        let end = self.log.push(cx, request);
        let reply = self.model.call(cx, request);
        Box::pin(async move {
            let reply = reply.await;
            record_end(&end, reply.as_ref().err());
            reply
        })
    }
}

fn record_end(end: &OnceLock<RequestEnd>, error: Option<&ModelError>) {
    let error = error.map(|error| beginning(&error.to_string(), MAX_ERROR).to_owned());
    end.get_or_init(|| RequestEnd { at: Instant::now(), error });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model with a window and an endpoint that counts.
    struct Counting(ModelInfo);

    impl Model for Counting {
        fn stream(&self, cx: &StepCx, _: &ModelRequest) -> ModelStream {
            ModelStream::from_events(cx, &self.0, [])
        }

        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn context_window(&self) -> Option<u64> {
            Some(1000)
        }

        fn max_output(&self) -> Option<u64> {
            Some(100)
        }

        fn request_body(&self, request: &ModelRequest) -> Option<String> {
            Some(json!(*request.messages).to_string())
        }

        fn count_tokens(
            &self,
            _: &StepCx,
            _: &ModelRequest,
        ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
            Box::pin(std::future::ready(Ok(Some(7))))
        }
    }

    #[tokio::test]
    async fn a_model_that_is_observed_keeps_its_window() {
        let model = Arc::new(Counting(ModelInfo::new("acme", "acme-chat", "large-1")));
        let observed = ObservedModel { model, log: Arc::default() };
        assert_eq!((observed.context_window(), observed.max_output()), (Some(1000), Some(100)));
        let counted = observed.count_tokens(&StepCx::new(), &ModelRequest::default()).await;
        assert_eq!(counted.unwrap(), Some(7));
        let request = ModelRequest::new([crate::message::Message::user("Hi")]);
        assert!(observed.request_body(&request).unwrap().contains("Hi"));
        let report = crate::Assistant::builder(observed).build().unwrap().context();
        assert_eq!((report.window, report.usable), (Some(1000), Some(900)));
    }
}
