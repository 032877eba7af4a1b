//! Questions that a running tool asks a person. A function of the application may answer while the tool waits. Otherwise the call is
//! suspended, and the tool is restarted from its beginning when there is an input.

use std::fmt;
use std::future::pending;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::BoxFuture;
use super::arguments::Argument;
use super::context::ToolContext;
use super::policy::{Effect, ToolPolicy};
use super::question::{AskError, Question, QuestionInput, RecordedInput, SECRET_MARK, list_of_issues};
use crate::args::{Plan, PlanOptions, SchemaError, secret_names};
use crate::panics::{DropsQuietly, catch};
use crate::run_path::RunPath;

/// The handle (`ToolOutcome::Deferred`) of a call that is suspended for a question.
pub(crate) const ASK_HANDLE: &str = "agent:ask";
/// The prefix of the handles that are reserved for the library.
pub(crate) const OWN_HANDLES: &str = "agent:";

/// The maximum length of a question's message, in bytes.
pub(super) const MAX_MESSAGE: usize = 4 << 10;
const MAX_QUESTIONS: u32 = 64;
/// The number of refused inputs after which a question fails.
pub(super) const MAX_REFUSALS: u8 = 3;

pub(crate) type Answerer = Arc<dyn Fn(Question) -> BoxFuture<'static, QuestionInput> + Send + Sync>;

/// A notice that a question was asked, or that the question was answered or failed. The input `Later` causes no `Resolved` notice.
#[derive(Debug)]
#[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "runs read them"))]
pub(crate) enum AskNotice {
    Asked(Box<Question>),
    Resolved { request_id: String, call_id: String, accepted: bool },
}

#[derive(Clone, Default)]
pub(crate) struct AskRules {
    pub(crate) answerer: Option<Answerer>,
    pub(crate) suspends: bool,
    /// The inputs that were given before the restart.
    pub(crate) inputs: Arc<[RecordedInput]>,
    pub(crate) path: RunPath,
    pub(crate) notify: Option<Arc<dyn Fn(AskNotice) + Send + Sync>>,
}

impl fmt::Debug for AskRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskRules").field("suspends", &self.suspends).finish_non_exhaustive()
    }
}

/// The state of a running call: whether the call is over, and the questions that the tool asks.
#[derive(Debug, Default)]
pub(super) struct BodyInProgress {
    is_over: AtomicBool,
    /// The call that made this call, if there is one.
    outer: Option<Arc<BodyInProgress>>,
    asking: Mutex<Asking>,
}

#[derive(Debug, Default)]
struct Asking {
    may_restart: bool,
    count: u32,
    /// Number of questions of this call and its nested calls that the [`Answerer`] is answering.
    in_place: u32,
    /// The numbers of the questions from before the restart that were asked again.
    repeated: Vec<u32>,
    open: Vec<Question>,
    /// The inputs that the [`Answerer`] gave.
    given: Vec<RecordedInput>,
    stop: Option<AskStop>,
    body: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AskStop {
    Suspended,
    /// The restarted tool asked a different question than before.
    Changed,
}

impl BodyInProgress {
    pub(super) fn within(outer: Option<Arc<Self>>) -> Self {
        Self { outer, ..Self::default() }
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        // The state stays valid if a waker panics, so poisoning of the lock is ignored.
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn begin(&self, policy: &ToolPolicy) {
        self.asking().may_restart = policy.effect != Effect::Once || policy.asks;
    }

    /// Returns the reason to stop the tool, if there is one. Otherwise registers the task, so that [`stop`](Self::stop) wakes it. A tool
    /// is not suspended while the [`Answerer`] answers another question, because the input would be lost.
    pub(super) fn poll_stop(&self, task: &Context<'_>) -> Option<AskStop> {
        let mut asking = self.asking();
        let stop = asking.stop.filter(|stop| *stop == AskStop::Changed || asking.in_place == 0);
        let replaced = match stop {
            Some(_) => None,
            None if asking.body.as_ref().is_some_and(|body| body.will_wake(task.waker())) => None,
            None => asking.body.replace(task.waker().clone()),
        };
        drop(asking);
        // The old waker is dropped after the lock is released, because it may own a task whose destructor runs other code.
        drop(replaced);
        stop
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.asking().in_place > 0
    }

    /// Takes the questions that have no input yet. The inputs to the answered questions are put into the first open question.
    pub(super) fn take_questions(&self) -> Vec<Question> {
        let mut asking = self.asking();
        let (mut open, given) = (std::mem::take(&mut asking.open), std::mem::take(&mut asking.given));
        drop(asking);
        if let Some(first) = open.first_mut() {
            first.given = given;
        }
        open
    }

    /// Keeps an input for a restart of the tool.
    pub(super) fn keep(&self, question: Question, input: QuestionInput) {
        let mut asking = self.asking();
        asking.given.retain(|earlier| earlier.question.number != question.number);
        asking.given.push(RecordedInput { question, input });
    }

    pub(super) fn outermost(&self) -> &Self {
        self.outer.as_deref().map_or(self, Self::outermost)
    }

    /// Returns whether the call can wait for the input to a question of an MCP server. A direct call of the server's tool can wait,
    /// because the server continues the call. If another tool made the call, the outermost tool must be allowed to restart.
    #[cfg(feature = "mcp-client")]
    pub(super) fn may_continue(&self) -> bool {
        self.outer.as_deref().is_none_or(|outer| outer.outermost().asking().may_restart)
    }

    /// Returns the number of the next round of questions of an MCP server. `inputs` are the inputs from before the restart.
    #[cfg(feature = "mcp-client")]
    pub(super) fn next_round(&self, inputs: &[RecordedInput]) -> u32 {
        let asking = self.asking();
        let all = inputs.iter().chain(&asking.given);
        let rounds = all.filter_map(|recorded| recorded.question.continuation.as_ref());
        rounds.map(|asked| asked.round + 1).max().unwrap_or_default()
    }

    /// Requests that the tool is stopped, and wakes the task that polls the tool's future. Of several reasons, the first one counts.
    pub(super) fn stop(&self, stop: AskStop, question: Option<Question>) {
        let mut asking = self.asking();
        asking.open.extend(question);
        asking.stop.get_or_insert(stop);
        let body = asking.body.take();
        drop(asking);
        body.into_iter().for_each(Waker::wake);
    }
}

/// A guard that pauses the time limits of a call and of all outer calls while the [`Answerer`] answers. It counts the question in the
/// `in_place` of each call.
struct WaitsInPlace<'c>(&'c BodyInProgress);

impl<'c> WaitsInPlace<'c> {
    fn new(call: &'c BodyInProgress) -> Self {
        Self::count(call, 1);
        Self(call)
    }

    fn count(call: &BodyInProgress, change: i32) {
        let mut call = Some(call);
        while let Some(running) = call {
            let mut asking = running.asking();
            asking.in_place = asking.in_place.saturating_add_signed(change);
            // One task supervises the call, and measures its time. The question may be asked from another task, so the supervising task is
            // woken.
            let body = asking.body.take();
            drop(asking);
            body.into_iter().for_each(Waker::wake);
            call = running.outer.as_deref();
        }
    }
}

impl Drop for WaitsInPlace<'_> {
    fn drop(&mut self) {
        Self::count(self.0, -1);
    }
}

// Wraps an input whose type is not an object. This is not a doc comment, because a doc comment would appear in the question's schema.
#[derive(Deserialize, JsonSchema)]
struct ValueField<T> {
    value: T,
}

struct InputReader<T> {
    plan: Plan,
    is_wrapped: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Argument> InputReader<T> {
    fn new() -> Result<Self, AskError> {
        let options = PlanOptions::default();
        let plan = catch(|| match Plan::for_type::<T>("input", options) {
            Ok(plan) if plan.schema()["type"] == "object" => Ok((plan, false)),
            _ => Plan::for_type::<ValueField<T>>("input", options).map(|plan| (plan, true)),
        });
        let invalid = |message| AskError::Invalid { message };
        let plan = plan.map_err(invalid)?.map_err(|error: SchemaError| invalid(error.to_string()));
        plan.map(|(plan, is_wrapped)| Self { plan, is_wrapped, of: PhantomData })
    }

    /// Parses an input. The error lists the issues. If the schema has only the property `value`, the input may be an object, or only the
    /// value, so both are tried.
    fn read(&self, question: &Question, input: &Value) -> Result<T, String> {
        let [first, second] = question.texts(input);
        match self.parse(&first) {
            Err(_) if first != second => self.parse(&second),
            read => read,
        }
    }

    fn parse(&self, text: &str) -> Result<T, String> {
        let parsed = catch(|| {
            if self.is_wrapped {
                self.plan.parse::<ValueField<T>>(text).map(|parsed| parsed.value.value)
            } else {
                self.plan.parse::<T>(text).map(|parsed| parsed.value)
            }
        });
        parsed.map_err(|_| "it cannot be read".to_owned())?.map_err(|report| list_of_issues(&report))
    }
}

/// Returns the schema of an input with its secret fields marked. Forms hide the input of marked fields, and reports leave out their
/// values.
fn marked_schema(plan: &Plan) -> Value {
    let mut schema = plan.schema().clone();
    let names = secret_names(plan.graph());
    if !names.is_empty() {
        mark_secrets(&mut schema, &names);
    }
    schema
}

fn mark_secrets(schema: &mut Value, names: &[&str]) {
    match schema {
        Value::Object(keywords) => {
            let properties = keywords.get_mut("properties").and_then(Value::as_object_mut);
            for (_, property) in
                properties.into_iter().flatten().filter(|(name, _)| names.contains(&&***name))
            {
                match property {
                    Value::Object(property) => drop(property.insert(SECRET_MARK.to_owned(), true.into())),
                    Value::Bool(true) => *property = serde_json::json!({SECRET_MARK: true}),
                    _ => {}
                }
            }
            keywords.values_mut().for_each(|inner| mark_secrets(inner, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| mark_secrets(inner, names)),
        _ => {}
    }
}

impl ToolContext {
    /// Asks a person for a value of type `T`. The schema of `T` describes the input to forms. The input is checked and coerced like
    /// arguments. If an input is refused, the question is asked again with a list of the issues. The third refused input is an error.
    ///
    /// A function of the application can answer questions. [`AssistantBuilder::on_question`](crate::AssistantBuilder::on_question) sets
    /// the function of an assistant. Sub-agents without a function of their own use this function, too. [`on_question`](Self::on_question)
    /// sets the function of a context. The time limit of the tool stops while the tool waits for the function, and starts again in full
    /// when the input arrives.
    ///
    /// If no function answers questions, or the function returns [`QuestionInput::Later`], the run is suspended. The suspended run then
    /// lists the question among [its questions](crate::SuspendedRun::questions). A waiting tool cannot be stored. The tool is therefore
    /// stopped, and **started again from its beginning** with the same arguments when there is an input. Questions that were answered
    /// before return their inputs at once, so code before the last question runs more than once. A restart is allowed for tools with the
    /// effect `pure` or `idempotent`. It is also allowed for tools with the option [`asks`](crate::tool::ToolOptions::asks), which states
    /// that the tool has no effect before its last question. If a restarted tool asks a different question than before, the call ends with
    /// the code `ask_changed`. Questions that are asked at the same time, with `join!`, wait together.
    ///
    /// A message has at most 4 KiB, and a call at most 64 questions.
    ///
    /// ```
    /// use agent::{Assistant, Decisions, RunStop, ScriptedModel, ToolArgs, ToolContext, ToolError, json, model::reply, tool, tools};
    ///
    /// #[derive(ToolArgs)]
    /// struct Payment {
    ///     /// The account that is charged.
    ///     account: String,
    ///     #[arg(range(1..=12))]
    ///     instalments: u8,
    /// }
    ///
    /// /// Buys a ticket.
    /// #[tool(asks)]
    /// async fn buy(to: String, cx: &ToolContext) -> Result<String, ToolError> {
    ///     let payment: Payment = cx.ask(format!("How do you pay for {to}?")).await?;
    ///     Ok(format!("{to}, paid by {} in {}", payment.account, payment.instalments))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("buy", r#"{"to": "Rome"}"#), reply().text("You have it.")]);
    /// let assistant = Assistant::builder(model).tools(tools![buy]).build()?;
    /// let output = assistant.prompt("To Rome, please.").await?;
    /// assert_eq!(output.stop, RunStop::Suspended);
    ///
    /// let suspended = output.snapshot.expect("it waits");
    /// let question = &suspended.questions()[0];
    /// assert_eq!(question.message, "How do you pay for Rome?");
    /// let input = Decisions::new().accept(question, json!({"account": "A-7", "instalments": "3"}));
    /// assistant.resume(&suspended, input).await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "Rome, paid by A-7 in 3");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the person declines, if no person can be asked, and for the other reasons of [`AskError`].
    pub async fn ask<T: Argument>(&self, message: impl Into<String>) -> Result<T, AskError> {
        let reader = InputReader::<T>::new()?;
        let mut question = self.new_question(message.into(), &reader.plan)?;
        let mut recorded = self.recorded_input(&mut question).await?;
        loop {
            let input = match recorded.take() {
                Some(input) => input,
                None => self.input(question.clone()).await?,
            };
            let report = match input {
                QuestionInput::Accept(value) => match reader.read(&question, &value) {
                    Ok(value) => return Ok(value),
                    Err(report) => report,
                },
                QuestionInput::Decline => return Err(AskError::Declined),
                QuestionInput::Cancel => return Err(AskError::Dismissed),
                QuestionInput::Later => continue,
            };
            question.refusals += 1;
            if question.refusals >= MAX_REFUSALS {
                return Err(AskError::Refused { report });
            }
            question.request_id = self.question_id(question.number, question.refusals);
            question.report = Some(report);
        }
    }

    pub(super) fn new_question(&self, message: String, plan: &Plan) -> Result<Question, AskError> {
        let invalid = |message: &str| AskError::Invalid { message: message.to_owned() };
        if message.len() > MAX_MESSAGE {
            return Err(invalid("its message is longer than 4 KiB"));
        }
        if self.running_call().is_over() {
            return Err(AskError::Over);
        }
        let rules = self.ask_rules().ok_or(AskError::Unavailable)?;
        Ok(Question {
            request_id: String::new(),
            path: rules.path.clone(),
            call_id: self.call_id().to_owned(),
            tool: self.tool().to_owned(),
            server: None,
            message,
            schema: marked_schema(plan),
            report: None,
            number: 0,
            refusals: 0,
            is_secret: plan.graph().has_secrets(),
            continuation: None,
            is_announced: false,
            given: Vec::new(),
        })
    }

    /// Gives the question a number that no other question of the call has, also none from before the restart.
    pub(super) fn number_question(&self, question: &mut Question) -> Result<(), AskError> {
        let inputs = self.ask_rules().map(|rules| &*rules.inputs).unwrap_or_default();
        let mut asking = self.running_call().outermost().asking();
        let is_free = |number: &u32| inputs.iter().all(|recorded| recorded.question.number != *number);
        let Some(number) = (asking.count..MAX_QUESTIONS).find(is_free) else {
            return Err(AskError::Invalid { message: "a call may ask 64 questions".to_owned() });
        };
        asking.count = number + 1;
        drop(asking);
        question.number = number;
        question.request_id = self.question_id(number, 0);
        Ok(())
    }

    /// Returns the id of a question. A question that is asked again after a refused input has a new id.
    pub(super) fn question_id(&self, number: u32, refusals: u8) -> String {
        let key = self.idempotency_key();
        match refusals {
            0 => format!("{key}/ask/{number}"),
            more => format!("{key}/ask/{number}/{}", more + 1),
        }
    }

    /// Numbers the question, and returns the input from before the restart, if any. If the restarted tool asks a different question, stops
    /// the call and never completes.
    async fn recorded_input(&self, question: &mut Question) -> Result<Option<QuestionInput>, AskError> {
        match self.repeat_question(question) {
            Ok(Some(recorded)) => {
                question.number = recorded.question.number;
                question.refusals = recorded.question.refusals;
                question.request_id.clone_from(&recorded.question.request_id);
                Ok(Some(recorded.input.clone()))
            }
            Ok(None) => self.number_question(question).map(|()| None),
            Err(stop) => {
                self.running_call().outermost().stop(stop, None);
                pending().await
            }
        }
    }

    /// Returns the same question from before the restart, if there is one that was not asked again yet. Questions of futures that run
    /// concurrently may come in another order than before, so their numbers do not identify them.
    fn repeat_question(&self, question: &Question) -> Result<Option<&RecordedInput>, AskStop> {
        let inputs = self.ask_rules().map(|rules| &*rules.inputs).unwrap_or_default();
        let mut asking = self.running_call().outermost().asking();
        let (mut same, mut is_other) = (None::<&RecordedInput>, false);
        for recorded in inputs.iter().filter(|recorded| recorded.question.continuation.is_none()) {
            let number = recorded.question.number;
            if asking.repeated.contains(&number) {
                continue;
            }
            let is_same = self.asked(&recorded.question) && recorded.question.asks_like(question);
            if is_same && same.is_none_or(|first| number < first.question.number) {
                same = Some(recorded);
            }
            is_other |= number == asking.count;
        }
        let Some(recorded) = same else {
            return if is_other { Err(AskStop::Changed) } else { Ok(None) };
        };
        asking.repeated.push(recorded.question.number);
        asking.count += 1;
        Ok(Some(recorded))
    }

    /// Returns whether this call asked the question, perhaps before the restart.
    pub(super) fn asked(&self, question: &Question) -> bool {
        let call = question.request_id.rsplit_once("/ask/").map(|(call, _)| call);
        call == Some(self.idempotency_key()) && question.tool == self.tool()
    }

    /// Returns the input that the [`Answerer`] gives. If there is no `Answerer`, or it gives no input yet, suspends the call and never
    /// completes.
    async fn input(&self, mut question: Question) -> Result<QuestionInput, AskError> {
        let call = self.running_call();
        if call.is_over() || self.is_cancelled() {
            return Err(AskError::Over);
        }
        let rules = self.ask_rules().ok_or(AskError::Unavailable)?;
        if let Some(answerer) = &rules.answerer {
            match self.answer_in_place(rules, answerer, &question).await? {
                QuestionInput::Later => question.is_announced = rules.notify.is_some(),
                input => {
                    if rules.suspends {
                        call.outermost().keep(question, input.clone());
                    }
                    return Ok(input);
                }
            }
        }
        if !rules.suspends {
            return Err(AskError::Unavailable);
        }
        let call = call.outermost();
        if !call.asking().may_restart {
            tracing::error!(
                tool = self.tool(),
                "a question cannot wait: the effect of the tool is `once`, and it does not have the option `asks`"
            );
            return Err(AskError::CannotWait { tool: self.tool().to_owned() });
        }
        call.stop(AskStop::Suspended, Some(question));
        pending().await
    }

    pub(super) async fn answer_in_place(
        &self,
        rules: &AskRules,
        answerer: &Answerer,
        question: &Question,
    ) -> Result<QuestionInput, AskError> {
        let notify = |notice: &dyn Fn() -> AskNotice| {
            if let Some(notify) = &rules.notify {
                notify(notice());
            }
        };
        notify(&|| AskNotice::Asked(Box::new(question.clone())));
        let waits = WaitsInPlace::new(self.running_call());
        let input = self.call_answerer(answerer, question).await;
        drop(waits);
        if !matches!(input, Ok(QuestionInput::Later)) {
            let accepted = matches!(input, Ok(QuestionInput::Accept(_)));
            let (request_id, call_id) = (&question.request_id, &question.call_id);
            notify(&|| AskNotice::Resolved {
                request_id: request_id.clone(),
                call_id: call_id.clone(),
                accepted,
            });
        }
        input
    }

    async fn call_answerer(
        &self,
        answerer: &Answerer,
        question: &Question,
    ) -> Result<QuestionInput, AskError> {
        let failed = |panic: String| {
            tracing::error!(tool = self.tool(), %panic, "the function that answers questions panicked");
            AskError::Failed
        };
        let mut answer = DropsQuietly(Some(catch(|| answerer(question.clone())).map_err(failed)?));
        let mut cancelled = self.cancelled();
        std::future::poll_fn(|task| {
            use std::pin::Pin;
            use std::task::Poll;
            let Some(answer) = &mut answer.0 else { return Poll::Pending };
            match catch(|| answer.as_mut().poll(task)) {
                Err(panic) => return Poll::Ready(Err(failed(panic))),
                Ok(Poll::Ready(input)) => return Poll::Ready(Ok(input)),
                Ok(Poll::Pending) => {}
            }
            Pin::new(&mut cancelled).poll(task).map(|()| Err(AskError::Over))
        })
        .await
    }
}
