//! The keys with which an assistant signs suspended runs.

use std::sync::Arc;

use super::Signer;
#[cfg(feature = "approvals-signed")]
use super::sign::SigningKey;
#[cfg(feature = "approvals-signed")]
use crate::runtime::AssistantBuilder;
use crate::runtime::BuildError;

/// The keys of a builder.
#[derive(Default)]
pub(in crate::runtime) struct ApprovalKeys {
    #[cfg(feature = "approvals-signed")]
    current: Option<SigningKey>,
    #[cfg(feature = "approvals-signed")]
    former: Vec<SigningKey>,
    /// The length of a key that is too short.
    #[cfg(feature = "approvals-signed")]
    short: Option<usize>,
}

#[cfg(feature = "approvals-signed")]
impl ApprovalKeys {
    /// Returns the signer, or `None` if no key was set.
    pub(in crate::runtime) fn signer(self) -> Result<Option<Arc<Signer>>, BuildError> {
        if let Some(length) = self.short {
            return Err(BuildError::ShortApprovalKey { length });
        }
        match self.current {
            Some(current) => Ok(Some(Arc::new(Signer::new(current, self.former)))),
            None if self.former.is_empty() => Ok(None),
            None => Err(BuildError::NoApprovalKey),
        }
    }

    fn parse(&mut self, key: &[u8]) -> Option<SigningKey> {
        let parsed = SigningKey::new(key);
        if parsed.is_none() {
            self.short = Some(key.len());
        }
        parsed
    }
}

#[cfg(not(feature = "approvals-signed"))]
impl ApprovalKeys {
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is that with the feature"
    )]
    pub(in crate::runtime) fn signer(self) -> Result<Option<Arc<Signer>>, BuildError> {
        Ok(None)
    }
}

#[cfg(feature = "approvals-signed")]
impl AssistantBuilder {
    /// Signs suspended runs, so that they can be stored and resumed in another process. The key needs at least 32 bytes. Take it from a
    /// secret store. It is in no snapshot.
    ///
    /// A signature (HMAC-SHA256) binds each call that may still run: its run, turn and position, the call id, the tool and its schema, the
    /// arguments, and those that the person who decides is shown. Another signature binds the state of the run: the calls that ended or are
    /// allowed, and the counters. A stored run in which any of these differs is not resumed, and a decision is valid only for the call that
    /// it was made on. The texts of the conversation are not bound, so protect snapshots like conversations. A snapshot can be resumed more
    /// than once unless your code prevents that.
    ///
    /// ```
    /// use agent::loop_core::AgentLoop;
    /// use agent::model::reply;
    /// use agent::{Assistant, Decisions, ScriptedModel, tool, tools};
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
    /// let suspended: AgentLoop = serde_json::from_str(&stored)?;
    /// let requests = suspended.approval_requests();
    /// assert_eq!(requests[0].call.args.text(), r#"{"number":5}"#);
    /// let assistant = Assistant::builder(model).tools(tools![close_account]).approval_key(key).build()?;
    /// let output = assistant.resume(&suspended, Decisions::new().allow(&requests[0])).await?;
    /// assert_eq!(output.text(), "It is closed.");
    /// # Ok(()) }
    /// ```
    pub fn approval_key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.approval_keys.current = self.approval_keys.parse(key.as_ref());
        self
    }

    /// Adds a key that signed runs before. Runs with its signature can be resumed, but nothing new is signed with it. Remove it once no run
    /// that it signed has to be resumed.
    ///
    /// ```
    /// use agent::loop_core::AgentLoop;
    /// use agent::model::reply;
    /// use agent::{Assistant, Decisions, ScriptedModel, tool, tools};
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
    /// let suspended: AgentLoop = serde_json::from_str(&stored)?;
    /// let allow = Decisions::new().allow(&suspended.approval_requests()[0]);
    /// assert_eq!(assistant.resume(&suspended, allow).await?.text(), "It is closed.");
    /// # Ok(()) }
    /// ```
    pub fn former_approval_key(mut self, key: impl AsRef<[u8]>) -> Self {
        let parsed = self.approval_keys.parse(key.as_ref());
        self.approval_keys.former.extend(parsed);
        self
    }
}
