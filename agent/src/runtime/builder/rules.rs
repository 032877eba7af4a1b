//! Builder options for the runs of an assistant: limits, the order of calls, queued messages.

use std::sync::Arc;

use super::AssistantBuilder;
use crate::loop_core::{LoopGuard, MAX_DEPTH, Queue, SteeringPolicy, UsageLimits};
use crate::runtime::child::ChildTool;

impl AssistantBuilder {
    /// Sets the maximum number of turns of a run; 50 by default, at least 1.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.rules.max_turns = turns.max(1);
        self
    }

    /// Sets the maximum depth of nested runs of [assistants as tools](super::Assistant::as_tool) below a run of this assistant: 3 by
    /// default, at most 8. At the limit, the tools that are assistants are hidden from models, and a call of such a tool fails with the
    /// code `depth_limit`. Only the limit of the root run applies.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let expert = Assistant::builder(ScriptedModel::new(["At 8:15."])).build()?;
    /// let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "When?"}"#), reply().text("I do not know.")]);
    /// let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Knows trains.")).max_depth(0).build()?;
    /// assistant.prompt("When?").await?;
    /// assert!(assistant.messages().get(2).unwrap().text().contains("this run is at depth 0, the limit"));
    /// # Ok(()) }
    /// ```
    pub fn max_depth(mut self, runs: u8) -> Self {
        self.max_depth = runs.min(MAX_DEPTH);
        self
    }

    /// Sets the maximum number of runs of [assistants as tools](super::Assistant::as_tool) that a run may start, at all depths together:
    /// 200 by default. A call beyond the limit fails with the code `limit`. Only the limit of the root run applies.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let expert = Assistant::builder(ScriptedModel::from_fn(|_| reply().text("At 8:15."))).build()?;
    /// let asks = || reply().tool_call("ask", r#"{"task": "When?"}"#);
    /// let model = ScriptedModel::new([asks(), asks(), reply().text("At a quarter past eight.")]);
    /// let assistant = Assistant::builder(model).tools(expert.as_tool("ask", "Knows trains.")).max_children(1).build()?;
    /// assistant.prompt("When?").await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "At 8:15.");
    /// assert!(assistant.messages().get(4).unwrap().text().contains("the run has started 1, the limit"));
    /// # Ok(()) }
    /// ```
    pub fn max_children(mut self, runs: u32) -> Self {
        self.max_children = runs;
        self
    }

    /// Sets the maximum number of requests to models that runs of [assistants as tools](super::Assistant::as_tool) make at the same time,
    /// at all depths together: 16 by default, at least 1. A run that waits for its own sub-agents makes no request, so it does not count.
    /// Only the limit of the outermost run applies. On a durable engine, such as Restate, the limits of the engine apply instead.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let expert = Assistant::builder(ScriptedModel::from_fn(|_| reply().text("At 8:15."))).build()?;
    /// let asks = reply().tool_call("ask", r#"{"task": "When?"}"#).tool_call("ask", r#"{"task": "And back?"}"#);
    /// let model = ScriptedModel::new([asks, reply().text("At a quarter past eight.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(expert.as_tool("ask", "Knows trains."))
    ///     .max_requests_in_flight(1)               // the provider takes one after the other
    ///     .build()?;
    /// assert_eq!(assistant.prompt("When?").await?.text(), "At a quarter past eight.");
    /// # Ok(()) }
    /// ```
    pub fn max_requests_in_flight(mut self, requests: usize) -> Self {
        self.max_requests_in_flight = requests.clamp(1, tokio::sync::Semaphore::MAX_PERMITS);
        self
    }

    /// Adds the assistant itself as a tool. Each call starts a run with a conversation of its own, down to the [depth
    /// limit](Self::max_depth).
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("delegate", r#"{"task": "Read chapter 1."}"#),
    ///     reply().text("It is about whales."),                     // the run of the call
    ///     reply().text("The first chapter is about whales."),
    /// ]);
    /// let assistant = Assistant::builder(model).self_as_tool("delegate", "Does a part of the work.").build()?;
    /// assert_eq!(assistant.prompt("Sum up the book.").await?.text(), "The first chapter is about whales.");
    /// # Ok(()) }
    /// ```
    pub fn self_as_tool(self, name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Self {
        self.tools(ChildTool::new(None, name.into(), description.into()))
    }

    /// Limits the requests, tool calls, tokens, time and cost of a run, including those of its sub-agents. By default, none of them is
    /// limited.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, UsageLimits};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).limits(limits).build()?;
    /// let error = assistant.prompt("Hi").await.unwrap_err();
    /// assert!(error.to_string().starts_with("the limit of 0 requests is reached"));
    /// # Ok(()) }
    /// ```
    pub fn limits(mut self, limits: UsageLimits) -> Self {
        self.rules.limits = limits;
        self
    }

    /// Sets how often a model may repeat a call: the same tool, the same validated arguments and, if the call ran, the same result. From
    /// call number `refuse_at` on, the calls do not run: they fail with the code `repeated_call`. Call number `end_at` also ends the run,
    /// after the other calls of its reply. Default: 3 and 5. A user message or another result restarts the count. All answers of a
    /// sub-agent count as the same result. Calls of tools with `allow_repeat` are not counted.
    ///
    /// ```
    /// use agent::run::Limit;
    /// use agent::model::reply;
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Says whether the build is done.
    /// #[tool(read_only)]
    /// fn is_done() -> bool {
    ///     false
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|_| reply().tool_call("is_done", "{}"));
    /// let assistant = Assistant::builder(model).tools(tools![is_done]).loop_guard(2, 3).build()?;
    /// let error = assistant.prompt("Is it done?").await.unwrap_err();
    /// assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::RepeatedCalls));
    /// # Ok(()) }
    /// ```
    pub fn loop_guard(mut self, refuse_at: u32, end_at: u32) -> Self {
        self.rules.loop_guard = Some(LoopGuard { refuse_at, end_at });
        self
    }

    /// Lets a model make the same call as often as the other [limits](Self::limits) permit.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).without_loop_guard().max_turns(200).build()?;
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn without_loop_guard(mut self) -> Self {
        self.rules.loop_guard = None;
        self
    }

    /// Sets how often the model may retry a tool, and how often an answer that does not fit its type or schema is sent back; 2 by default.
    /// A retry follows refused arguments, or a tool's request to try again. A tool with `max_retries = …` has its own number.
    pub fn max_retries(mut self, tries: u32) -> Self {
        self.rules.max_retries = tries;
        self
    }

    /// Continues an answer that was cut at its token limit, up to `times` times in a row. By default 0: a cut answer ends the run.
    ///
    /// For a text, a short message asks the model to continue at the cut, and [`RunOutput::text`](crate::RunOutput::text) has the whole
    /// text. A call, structured output, and thinking without a text cannot be continued. Instead, the request is repeated once with twice
    /// its `max_tokens`, up to the model's maximum. The cut reply stays in the conversation as a failed reply. A request without
    /// `max_tokens`, or with the model's maximum, is not repeated. A reply that ended because the window was full is not continued; see
    /// [`manage_context`](Self::manage_context).
    ///
    /// ```
    /// use agent::message::StopReason;
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().text("It was the best of ti").stop_reason(StopReason::MaxTokens),
    ///     reply().text("mes, it was the worst of times."),
    /// ]);
    /// let assistant = Assistant::builder(model).continue_length(2).build()?;
    /// let output = assistant.prompt("How does it begin?").await?;
    /// assert_eq!(output.text(), "It was the best of times, it was the worst of times.");
    /// assert_eq!(output.turns, 2);
    /// # Ok(()) }
    /// ```
    pub fn continue_length(mut self, times: u32) -> Self {
        self.rules.continue_length = times;
        self
    }

    /// Runs the calls of a reply one after the other, in their order. By default, up to [`max_concurrency`](Self::max_concurrency) of them
    /// run at the same time.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
    /// use std::sync::{Arc, Mutex};
    ///
    /// type Log = Mutex<Vec<String>>;
    ///
    /// /// Copies a folder.
    /// #[tool]
    /// async fn copy(folder: String, log: &Log) {
    ///     log.lock().unwrap().push(format!("{folder} begins"));
    ///     tokio::task::yield_now().await;
    ///     log.lock().unwrap().push(format!("{folder} ends"));
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("copy", r#"{"folder": "a"}"#).tool_call("copy", r#"{"folder": "b"}"#),
    ///     reply().text("Done."),
    /// ]);
    /// let log = Arc::new(Log::default());
    /// let assistant = Assistant::builder(model).tools(tools![copy]).shared_state(log.clone()).sequential().build()?;
    /// assistant.prompt("Copy a and b.").await?;
    /// assert_eq!(*log.lock().unwrap(), ["a begins", "a ends", "b begins", "b ends"]);
    /// # Ok(()) }
    /// ```
    pub fn sequential(mut self) -> Self {
        self.rules.sequential = true;
        self
    }

    /// Sets the effect of a steering message on the calls of the turn in which it arrives. By default, the message has no effect on these
    /// calls ([`SteeringPolicy::AfterBatch`]).
    ///
    /// ```
    /// use agent::run::SteeringPolicy;
    /// use agent::{Assistant, EventKind, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Sends a letter.
    /// #[tool]
    /// fn send(to: String) -> String {
    ///     format!("sent to {to}")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("send", r#"{"to": "Ann"}"#), reply().text("I did not send it.")]);
    /// let assistant =
    ///     Assistant::builder(model).tools(tools![send]).steering_policy(SteeringPolicy::SkipUnstarted).build()?;
    /// let mut run = assistant.prompt("Write to Ann.").stream();
    /// while let Some(event) = run.next().await {
    ///     if let EventKind::ToolExecutionStart { .. } = &event.kind {
    ///         assistant.steer("No, don't.");
    ///     }
    /// }
    /// assert!(assistant.messages().get(2).unwrap().text().starts_with("The call was not run"));
    /// # Ok(()) }
    /// ```
    pub fn steering_policy(mut self, policy: SteeringPolicy) -> Self {
        self.rules.steering = policy;
        self
    }

    /// Delivers all messages of a queue at once. By default, each turn receives only the oldest message.
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel, run::Queue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["One.", "Two and three."]);
    /// let assistant = Assistant::builder(model).deliver_all(Queue::FollowUp).build()?;
    /// assistant.follow_up("And two?");
    /// assistant.follow_up("And three?");
    /// let output = assistant.prompt("One?").await?;
    /// assert_eq!((output.turns, output.messages.len()), (2, 5));
    /// # Ok(()) }
    /// ```
    pub fn deliver_all(mut self, queue: Queue) -> Self {
        self.delivers_all.push(queue);
        self
    }

    /// Sets the maximum size of a result's text in the conversation, in bytes; 64 KiB by default. A tool can set its own size. Longer
    /// texts are cut in the middle, and a line at the cut reports the omission.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.rules.max_result_bytes = bytes;
        self
    }
}
