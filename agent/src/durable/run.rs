//! The input and the output of a run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deadline::SharedDeadline;
use crate::loop_core::{AgentLoop, ApprovalRequest, End, RecordedTurn, RunState, RunStop, StateError};
use crate::message::{Message, Usage, continued::answer_text};
use crate::run_path::RunPath;
use crate::runtime::ChildReport;
use crate::step_key::{StepKey, refuse_reserved_name};
use crate::tool::question::Question;

/// Maximum length of the name of a run, in bytes.
const MAX_NAME: usize = 200;

/// Maximum length of the name of a sub-agent's run, in bytes. The name begins with the name of the parent.
const MAX_CHILD_NAME: usize = 2 * MAX_NAME;

/// A request to start a run.
///
/// The JSON form is the body of an HTTP request to the service at the address of the run (`/Agent/order-7/run`):
/// `{"run": "order-7", "prompt": "Cancel order 7"}`. The field `run` is optional, because the address contains the name.
///
/// ```
/// use agent::durable::RunRequest;
///
/// let request = RunRequest::new("order-7", "Cancel order 7");
/// assert_eq!(serde_json::to_string(&request)?, r#"{"run":"order-7","prompt":"Cancel order 7"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RunRequest {
    /// The name of the run, of 1 to 200 bytes. The ending `/TURN/tool/POSITION` is reserved for sub-agents. A request with the name of an
    /// existing run finds this run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The text of the user's message; empty if the run begins without this message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Messages after the prompt, such as pictures or messages of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The conversation so far, for example the messages of an earlier [outcome](Outcome). If it is empty, the run continues the
    /// conversation of the served assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Arc<Message>>,
    /// Calls that were made outside of a run. These calls follow the prompt. See [`Assistant::record`](crate::Assistant::record).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedTurn>,
    #[serde(default, skip_serializing_if = "RunState::is_empty", with = "state_values")]
    pub(super) state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<ChildLink>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ChildLink {
    /// The path from the root to the child. The tools on the path determine the assistant of the child.
    pub(super) path: RunPath,
    /// The earliest time limit of the runs above the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time_limit: Option<SharedDeadline>,
    /// Maximum working time of the child, set by the tools on its path. Waiting for answers from outside does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) work_limit: Option<Duration>,
    /// The id of a promise in the engine. The sub-agent's run resolves the promise at its first wait; the parent can then start another
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waits: Option<String>,
}

/// Reads and writes the state of a request as JSON values instead of texts that contain JSON, so that any client can write the state.
mod state_values {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serializer};
    use serde_json::value::RawValue;

    use crate::loop_core::RunState;

    pub(super) fn serialize<S: Serializer>(state: &RunState, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |text: &str| RawValue::from_string(text.to_owned()).map_err(serde::ser::Error::custom);
        let values = state.iter().map(|(name, text)| Ok((name, value(text)?)));
        serializer.collect_map(values.collect::<Result<Vec<_>, S::Error>>()?)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunState, D::Error> {
        let values = BTreeMap::<Arc<str>, Box<RawValue>>::deserialize(deserializer)?;
        let mut state = RunState::default();
        for (name, value) in values {
            state.insert(name, Box::<str>::from(value).into_string());
        }
        Ok(state)
    }
}

impl RunRequest {
    /// Creates a request for a run with this name and this prompt.
    pub fn new(run: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { run: run.into(), prompt: prompt.into(), ..Self::default() }
    }

    /// Adds a message of the user or of the application after the prompt. See [`with_history`](Self::with_history) for an example.
    pub fn with_message(mut self, message: impl Into<Message>) -> Self {
        self.messages.push(message.into());
        self
    }

    /// Continues this conversation, instead of the conversation of the served assistant.
    ///
    /// ```
    /// use agent::durable::{Rehearsal, RunRequest, Service};
    /// use agent::message::Message;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["I cancelled it.", "It was order 7."]);
    /// let service = || Service::new(&Assistant::builder(model.clone()).build().unwrap());
    /// let first = RunRequest::new("order-7", "Cancel order 7").with_message(Message::user("It is urgent."));
    /// let earlier = Rehearsal::new(service()?, first).play().await?;
    ///
    /// let second = RunRequest::new("question-1", "Which one was it?").with_history(earlier.messages);
    /// let answer = Rehearsal::new(service()?, second).play().await?;
    /// assert_eq!(answer.text(), "It was order 7.");
    /// let texts: Vec<_> = model.requests()[1].messages.iter().map(|message| message.text()).collect();
    /// assert_eq!(texts, ["Cancel order 7", "It is urgent.", "I cancelled it.", "Which one was it?"]);
    /// # Ok(()) }
    /// ```
    pub fn with_history(mut self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        self.history = messages.into_iter().collect();
        self
    }

    /// Adds a value to the state of the run. `name` is the name under which the served assistant
    /// [registers](crate::AssistantBuilder::serialized_state) the type of the value. A run does not start if a name is not registered, if
    /// a value does not have the registered type, or if state that tools need is missing. An HTTP client then receives the status 400, and
    /// a rehearsal fails with [`StepError::State`](crate::steps::StepError::State).
    ///
    /// A client that does not have the Rust type can pass the value as JSON.
    ///
    /// ```
    /// use agent::durable::RunRequest;
    /// use agent::json;
    ///
    /// let request = RunRequest::new("order-7", "Cancel it")
    ///     .with_serialized_state("customer", &json!({"id": 7}))?;
    /// let body = r#"{"run":"order-7","prompt":"Cancel it","state":{"customer":{"id":7}}}"#;
    /// assert_eq!(serde_json::to_string(&request)?, body);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the request has a value of this name, if the value cannot be written as JSON, or if all state together has more than 64
    /// KiB.
    pub fn with_serialized_state(
        mut self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self, StateError> {
        self.state.add(name, value)?;
        Ok(self)
    }

    /// Creates a request for a run that begins with calls made outside of a run. The model is asked only if messages are queued, or if the
    /// tool of a call [triggers a follow-up](crate::tool::ToolOptions::triggers_follow_up). The run continues its
    /// [history](Self::with_history) or, without a history, the conversation of the served assistant.
    ///
    /// ```
    /// use agent::run::RecordedTurn;
    /// use agent::durable::RunRequest;
    /// use agent::message::ToolCall;
    ///
    /// let done = ToolCall::new("job_7", "export", r#"{"table": "orders"}"#);
    /// let request = RunRequest::recorded("export-7", RecordedTurn::new().with_call(done, "1,200 rows"));
    /// assert!(request.prompt.is_empty());
    /// ```
    pub fn recorded(run: impl Into<String>, turn: RecordedTurn) -> Self {
        Self { run: run.into(), recorded: Some(turn), ..Self::default() }
    }

    /// Checks that the request can start a run with this name, and sets the name. The error says why it cannot.
    pub(super) fn named(mut self, run: &str) -> Result<Self, String> {
        self.check(run)?;
        run.clone_into(&mut self.run);
        Ok(self)
    }

    pub(super) fn check(&self, run: &str) -> Result<(), String> {
        let path = self.path();
        let (is_child, own) = (!path.is_root(), path.calls().last().map(|call| &*call.run_id));
        if own.is_some_and(|own| own != run) {
            return Err(format!(
                "the request is that of the run {own:?}, and its address has the name {run:?}"
            ));
        }
        let max = if is_child { MAX_CHILD_NAME } else { MAX_NAME };
        if run.is_empty() || run.len() > max {
            return Err(format!(
                "the name of the run has {} bytes; give it a name of 1 to {max} bytes",
                run.len()
            ));
        }
        if !is_child {
            refuse_reserved_name(run)?;
        }
        if !self.run.is_empty() && self.run != run {
            return Err(format!(
                "the request has the name {:?} and its address the name {run:?}; use one name, or omit `run`",
                self.run
            ));
        }
        let is_input = |message: &&Message| matches!(message, Message::User(_) | Message::Custom(_));
        if let Some(wrong) = self.messages.iter().find(|message| !is_input(message)) {
            let role = wrong.role();
            return Err(format!(
                "one of the `messages` has the role `{role}`; a run begins with messages of the roles `user` and `custom`"
            ));
        }
        Ok(())
    }

    pub(super) fn path(&self) -> RunPath {
        self.child.as_ref().map(|child| child.path.clone()).unwrap_or_default()
    }

    pub(super) fn prompts(&mut self) -> Vec<Message> {
        let text = (!self.prompt.is_empty()).then(|| Message::user(std::mem::take(&mut self.prompt)));
        text.into_iter().chain(std::mem::take(&mut self.messages)).collect()
    }
}

/// Shows only the name of the run, because `Debug` texts are written to logs.
impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest").field("run", &self.run).finish_non_exhaustive()
    }
}

/// The result of a run. A run that failed, was cancelled or reached a limit has an outcome too.
///
/// ```
/// use agent::durable::{Outcome, Rehearsal, RunRequest, Service};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Service::new(&Assistant::builder(ScriptedModel::new(["Hello!"])).build()?)?;
/// let outcome: Outcome = Rehearsal::new(service, RunRequest::new("greeting", "Hi")).play().await?;
/// assert!(outcome.is_completed() && outcome.text() == "Hello!");
/// assert_eq!((&*outcome.run, outcome.messages.len(), outcome.turns), ("greeting", 2, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the run.
    pub run: Arc<str>,
    /// The kind of the run's end.
    pub stop: RunStop,
    /// The limit that was reached, the reason of the cancellation, or the error. `None` for any other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// All messages that the run added, starting with the prompt. The outcome of a sub-agent's run has only the last message.
    pub messages: Vec<Arc<Message>>,
    /// The tokens and cost of the run.
    pub usage: Usage,
    /// The number of turns that began.
    pub turns: u32,
    /// The answer, if the served assistant has a [schema](crate::model::ModelRequest::output) for answers. If the answer does not fit the
    /// schema, the run ends with [`RunStop::Error`], and `detail` lists the issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The report to the parent, if this is the outcome of a sub-agent's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<Box<ChildReport>>,
}

impl Outcome {
    /// Creates the outcome of a run. `answer` is the checked answer, or the reason why no answer fits.
    pub(super) fn new(core: &AgentLoop, answer: Result<Option<Value>, String>) -> Self {
        let end = core.end();
        let mut outcome = Self {
            run: core.run_id().clone(),
            stop: end.map_or(RunStop::Suspended, End::stop),
            detail: end.and_then(End::detail).map(str::to_owned),
            messages: core.added().to_vec(),
            usage: core.usage().clone(),
            turns: core.turn(),
            answer: None,
            report: None,
        };
        match answer {
            Ok(answer) => outcome.answer = answer,
            Err(error) => (outcome.stop, outcome.detail) = (RunStop::Error, Some(error)),
        }
        outcome
    }

    /// Adds the report of a sub-agent's run. Removes all messages but the last, because the parent's journal stores a copy of the outcome.
    pub(super) fn of_call(mut self, report: ChildReport) -> Self {
        self.messages = self.messages.split_off(self.messages.len().saturating_sub(1));
        self.report = Some(Box::new(report));
        self
    }

    /// Returns whether the model finished, so that the run ended with [`RunStop::Completed`].
    pub fn is_completed(&self) -> bool {
        self.stop == RunStop::Completed
    }

    /// Returns the text of the last reply. If this reply continues earlier ones
    /// ([`continue_length`](crate::AssistantBuilder::continue_length)), their texts come first.
    pub fn text(&self) -> String {
        answer_text(&self.messages)
    }
}

/// A decision, an input or a result that a run waits for.
///
/// ```
/// use agent::durable::PendingAsk;
///
/// /// A line for the person who decides.
/// fn line(ask: &PendingAsk) -> String {
///     match ask {
///         PendingAsk::Approval { request, .. } => format!("may {} run?", request.call.name),
///         PendingAsk::Deferred { handle, .. } => format!("the result of {handle} is outstanding"),
///         other => other.id().to_owned(),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingAsk {
    /// The run waits for a decision on a call.
    #[non_exhaustive]
    Approval {
        /// The request, with the call and its validated arguments. Secret arguments are withheld.
        request: ApprovalRequest,
    },
    /// The run waits for the result of a deferred call.
    #[non_exhaustive]
    Deferred {
        /// The step of the call.
        step: StepKey,
        /// The handle that the tool returned, under which the result is delivered.
        handle: String,
    },
    /// The run waits for a person's input to a question of a tool.
    #[non_exhaustive]
    Question {
        /// The question.
        question: Question,
    },
}

impl PendingAsk {
    /// Returns the id under which the decision, the input or the result is sent: the id of the approval request or of the question, or the
    /// handle that the tool returned.
    pub fn id(&self) -> &str {
        match self {
            Self::Approval { request } => &request.request_id,
            Self::Deferred { handle, .. } => handle,
            Self::Question { question } => &question.request_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_refused_with_its_limit() {
        let child = |name: &str| RunRequest {
            child: Some(ChildLink {
                path: RunPath::default().with("c", "t", &name.into()),
                time_limit: None,
                work_limit: None,
                waits: None,
            }),
            ..RunRequest::default()
        };
        let refused = |request: RunRequest, name: &str| request.named(name).unwrap_err();
        let long = "r".repeat(MAX_CHILD_NAME + 1);
        assert!(refused(child(&long), &long).ends_with("give it a name of 1 to 400 bytes"));
        let long = "r".repeat(MAX_NAME + 1);
        assert!(child(&long).named(&long).is_ok());
        assert!(refused(RunRequest::default(), &long).ends_with("give it a name of 1 to 200 bytes"));
        assert!(refused(RunRequest::default(), "").ends_with("give it a name of 1 to 200 bytes"));
    }
}
