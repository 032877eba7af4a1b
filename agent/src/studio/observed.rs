//! Wraps the assistant's models, so that the studio logs their requests and HTTP exchanges.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::cut::{MAX_TEXT, beginning, cut_texts};
use crate::message::AssistantMessage;
use crate::model::wrapped::answered_by_model;
use crate::model::{Model, ModelError, ModelRequest, ModelStream, StepCx};
use crate::tool::BoxFuture;
use crate::tool::secrets::SecretArguments;

const KEPT: usize = 400;
/// Maximum length of the text of an error, in bytes.
const MAX_ERROR: usize = 2 << 10;

#[derive(Clone)]
pub(super) struct ObservedRequest {
    /// The id of the run that made the request: a run that was started in the browser, or the run of one of its sub-agents.
    run: Arc<str>,
    turn: u32,
    attempt: u32,
    at: Instant,
    request: ModelRequest,
    model: Arc<dyn Model>,
    progress: Arc<RequestProgress>,
}

#[derive(Default)]
struct RequestProgress {
    end: Mutex<Option<RequestEnd>>,
    #[cfg(feature = "http")]
    exchanges: super::exchanges::Exchanges,
}

struct RequestEnd {
    at: Instant,
    error: Option<String>,
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only responses of HTTP are shown"))]
    calls: Vec<String>,
}

impl RequestProgress {
    fn end(&self) -> MutexGuard<'_, Option<RequestEnd>> {
        // Poisoning is ignored, because no code that can panic runs under this lock.
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_end(&self, reply: Option<&AssistantMessage>, error: Option<&ModelError>) {
        let error = error.map(|error| beginning(&error.to_string(), MAX_ERROR).to_owned());
        let calls = reply.iter().flat_map(|reply| reply.tool_calls()).map(|call| call.name.clone()).collect();
        self.end().get_or_insert(RequestEnd { at: Instant::now(), error, calls });
    }
}

/// The latest [`KEPT`] requests of all runs.
#[derive(Default)]
pub(super) struct RequestLog(Mutex<VecDeque<ObservedRequest>>);

impl RequestLog {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ObservedRequest>> {
        // Poisoning is ignored, because no code that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, observed: ObservedRequest) {
        let mut log = self.lock();
        let oldest = if log.len() < KEPT { None } else { log.pop_front() };
        log.push_back(observed);
        drop(log);
        // The oldest request is dropped after the lock is released, because dropping a large request takes time.
        drop(oldest);
    }

    /// Returns the requests of a run and of the runs of its sub-agents, oldest first.
    pub(super) fn of_run(&self, run: &str) -> Vec<ObservedRequest> {
        let is_within =
            |of: &str| of.strip_prefix(run).is_some_and(|rest| rest.starts_with('/') || rest.is_empty());
        self.lock().iter().filter(|observed| is_within(&observed.run)).cloned().collect()
    }
}

impl ObservedRequest {
    /// Returns a summary of the request, without its content. Times are in milliseconds since `began`.
    pub(super) fn summary(&self, began: Instant) -> Value {
        let since =
            |at: Instant| u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX);
        let end = self.progress.end();
        json!({
            "run": self.run,
            "turn": self.turn,
            "attempt": self.attempt,
            "at": since(self.at),
            "end": end.as_ref().map(|end| since(end.at)),
            "error": end.as_ref().and_then(|end| end.error.as_ref()),
            "messages": self.request.messages.len(),
            "exchanges": self.exchanges(&since),
        })
    }

    pub(super) fn is_of(&self, run: &str, turn: u32, attempt: u32) -> bool {
        (&*self.run, self.turn, self.attempt) == (run, turn, attempt)
    }

    /// Returns the request, the HTTP body that the provider gets, and the last response that was received, without secret arguments.
    /// `secrets` contains the secret parameters of the assistant's own tools.
    pub(super) fn shown(&self, secrets: &SecretArguments) -> Value {
        let mut secrets = secrets.clone();
        if self.run.contains('/') {
            // For a sub-agent, only the tools in this request are known, so the arguments of calls of other tools are hidden.
            secrets.add(self.request.tools.clone());
            secrets = secrets.hiding_unknown();
        }
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
            "body": self.model.request_body(request),
            "received": self.received(&secrets),
            "output": request.output.as_ref().map(|output| &output.schema),
        });
        cut_texts(&mut shown, MAX_TEXT);
        shown
    }

    /// Returns the last response as it was received. A secret that arrives in pieces cannot be masked. The response's body is therefore
    /// withheld if the reply calls a tool with secret arguments, or if it is incomplete and may call one.
    #[cfg(feature = "http")]
    fn received(&self, secrets: &SecretArguments) -> Value {
        let is_open = match &*self.progress.end() {
            Some(end) if end.error.is_none() => !end.calls.iter().any(|tool| secrets.may_hide(tool)),
            _ => !secrets.is_needed(),
        };
        self.progress.exchanges.received(is_open, &secrets.texts(&*self.request.messages))
    }

    #[cfg(not(feature = "http"))]
    fn received(&self, _: &SecretArguments) -> Value {
        Value::Null
    }

    #[cfg(feature = "http")]
    fn exchanges(&self, since: &dyn Fn(Instant) -> u64) -> Value {
        self.progress.exchanges.summary(since)
    }

    #[cfg(not(feature = "http"))]
    fn exchanges(&self, _: &dyn Fn(Instant) -> u64) -> Value {
        json!([])
    }
}

pub(super) struct ObservedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) log: Arc<RequestLog>,
}

impl ObservedModel {
    /// Logs a request that belongs to a step of a run. Returns the context for the wrapped model, and the progress in which the end of the
    /// request is recorded.
    fn observe(&self, cx: &StepCx, request: &ModelRequest) -> (StepCx, Arc<RequestProgress>) {
        let progress = Arc::<RequestProgress>::default();
        let Some(key) = &cx.key else { return (cx.clone(), progress) };
        self.log.push(ObservedRequest {
            run: key.run.clone(),
            turn: key.turn,
            attempt: cx.attempt,
            at: Instant::now(),
            request: request.clone(),
            model: self.model.clone(),
            progress: progress.clone(),
        });
        #[cfg(feature = "http")]
        let cx = &StepCx { traffic: Some(progress.exchanges.listener()), ..cx.clone() };
        (cx.clone(), progress)
    }
}

impl Model for ObservedModel {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let (cx, progress) = self.observe(cx, request);
        self.model
            .stream(&cx, request)
            .with_on_end(move |reply, error| progress.record_end(Some(reply), error))
    }

    fn call(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<AssistantMessage, ModelError>> {
        let (cx, progress) = self.observe(cx, request);
        let reply = self.model.call(&cx, request);
        Box::pin(async move {
            let reply = reply.await;
            progress.record_end(reply.as_ref().ok(), reply.as_ref().err());
            reply
        })
    }

    answered_by_model!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelInfo;

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
