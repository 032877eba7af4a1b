//! Builder options for approvals: the function that decides on calls, and the keys that sign suspended runs.

use std::sync::Arc;

use super::AssistantBuilder;
use crate::loop_core::ApprovalRequest;
use crate::runtime::approval::Decision;
use crate::tool::question::{Question, QuestionInput};

impl AssistantBuilder {
    /// Sets the function that decides on calls that need approval. Calls that would run at the same time are all decided on before any of
    /// them runs. Without this function, calls that need approval suspend the run. Sub-agents without a function of their own use this
    /// function.
    ///
    /// ```
    /// use agent::{Assistant, Decision, ScriptedModel, model::reply, tool, tools};
    ///
    /// /// Sends money.
    /// #[tool(approval = "always")]
    /// fn send(amount: u64) -> String {
    ///     format!("{amount} sent")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([
    ///     reply().tool_call("send", r#"{"amount": 20}"#).tool_call("send", r#"{"amount": 500}"#),
    ///     reply().text("I sent 20."),
    /// ]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![send])
    ///     .on_approval(|request| async move {
    ///         match request.arg::<u64>("amount") {
    ///             Ok(0..=100) => Decision::Allow,
    ///             _ => Decision::Deny("more than 100 needs a signature".into()),
    ///         }
    ///     })
    ///     .build()?;
    /// assistant.prompt("Send 20, and 500.").await?;
    /// let results: Vec<_> = assistant.messages().iter().skip(2).take(2).map(|message| message.text()).collect();
    /// assert_eq!(results[0], "20 sent");
    /// assert!(results[1].contains("more than 100 needs a signature"));
    /// # Ok(()) }
    /// ```
    pub fn on_approval<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(ApprovalRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Decision> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |request| Box::pin(decide(request))));
        self
    }

    /// Sets the function that answers [questions](crate::ToolContext::ask) of tools, while the tools wait. Without this function, or if it
    /// returns [`QuestionInput::Later`], a question suspends the run. Sub-agents without a function of their own use this function.
    ///
    /// ```
    /// use agent::tool::QuestionInput;
    /// use agent::{Assistant, ScriptedModel, ToolContext, ToolError, json, model::reply, tool, tools};
    ///
    /// /// Deletes a draft.
    /// #[tool]
    /// async fn delete_draft(name: String, cx: &ToolContext) -> Result<String, ToolError> {
    ///     let is_sure: bool = cx.ask(format!("Delete {name} for ever?")).await?;
    ///     Ok(if is_sure { "deleted" } else { "kept" }.to_owned())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([reply().tool_call("delete_draft", r#"{"name": "Poem"}"#), reply().text("It is kept.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![delete_draft])
    ///     .on_question(|question| async move {
    ///         println!("{}", question.message);
    ///         QuestionInput::Accept(json!("false"))                 // read like an argument: `false`
    ///     })
    ///     .build()?;
    /// assistant.prompt("Delete the poem.").await?;
    /// assert_eq!(assistant.messages().get(2).unwrap().text(), "kept");
    /// # Ok(()) }
    /// ```
    pub fn on_question<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = QuestionInput> + Send + 'static,
    {
        self.answerer = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }
}

#[cfg(feature = "approvals-signed")]
impl AssistantBuilder {
    /// Signs suspended runs, so that they can be stored and resumed in another process. The key needs at least 32 bytes. Take the key from
    /// a secret store. No snapshot contains the key.
    ///
    /// Each call that may still run has a signature (HMAC-SHA256). The signature covers the run, the turn, the position and id of the
    /// call, the tool, its schema, the arguments, and the arguments that are shown for the decision. Another signature covers the state of
    /// the run: ended and allowed calls, and counters. A run is not resumed if signed data has changed. A decision is valid only for its
    /// own call. No signature covers the texts of the conversation, so protect snapshots like conversations. A snapshot can be resumed
    /// more than once unless your code prevents that.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, Decisions, ScriptedModel, SuspendedRun, tool, tools};
    ///
    /// /// Closes an account.
    /// #[tool(approval = "always")]
    /// fn close_account(number: u32) -> String {
    ///     format!("{number} is closed")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = [7; 32]; // of your secret store
    /// # let model = ScriptedModel::new([reply().tool_call("close_account", r#"{"number": 5}"#)]);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(key).build()?;
    /// let output = assistant.prompt("Close account 5.").await?;
    /// let stored: String = serde_json::to_string(&output.snapshot.expect("it waits"))?;
    ///
    /// // Another process, tomorrow.
    /// # let model = ScriptedModel::new([reply().text("It is closed.")]);
    /// let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    /// let requests = suspended.requests();
    /// assert_eq!(requests[0].call.args.text(), r#"{"number":5}"#);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(key).build()?;
    /// let output = assistant.resume(&suspended, Decisions::new().allow(&requests[0])).await?;
    /// assert_eq!(output.text(), "It is closed.");
    /// # Ok(()) }
    /// ```
    pub fn approval_key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.approval_keys.set(key.as_ref());
        self
    }

    /// Adds a former approval key. Runs that it signed can be resumed, but nothing new is signed with it. Remove the key once all runs that
    /// it signed have been resumed or dropped.
    ///
    /// ```
    /// use agent::model::reply;
    /// use agent::{Assistant, Decisions, ScriptedModel, SuspendedRun, tool, tools};
    ///
    /// /// Closes an account.
    /// #[tool(approval = "always")]
    /// fn close_account(number: u32) -> String {
    ///     format!("{number} is closed")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (last_year, this_year) = ([7; 32], [8; 32]); // of your secret store
    /// # let model = ScriptedModel::new([reply().tool_call("close_account", r#"{"number": 5}"#)]);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(last_year).build()?;
    /// let stored = serde_json::to_string(&assistant.prompt("Close account 5.").await?.snapshot)?;
    ///
    /// # let model = ScriptedModel::new([reply().text("It is closed.")]);
    /// let assistant = Assistant::builder(model)
    ///     .tools(tools![close_account])
    ///     .approval_key(this_year)
    ///     .former_approval_key(last_year)
    ///     .build()?;
    /// let suspended: SuspendedRun = serde_json::from_str(&stored)?;
    /// let allow = Decisions::new().allow(&suspended.requests()[0]);
    /// assert_eq!(assistant.resume(&suspended, allow).await?.text(), "It is closed.");
    /// # Ok(()) }
    /// ```
    pub fn former_approval_key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.approval_keys.add_former(key.as_ref());
        self
    }
}
