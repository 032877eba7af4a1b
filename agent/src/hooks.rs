//! Hooks: code of the application that may change what a run does.
//!
//! [`Hooks`] has a method for each moment of a run. An assistant calls its hooks in the order in which they were added.
//!
//! ```
//! use agent::hooks::{HookError, Hooks, ToolCallInfo};
//! use agent::model::reply;
//! use agent::{Assistant, BeforeCall, BoxFuture, ScriptedModel, tool, tools};
//!
//! /// Refuses payments above a limit.
//! struct Cap(u64);
//!
//! impl Hooks for Cap {
//!     fn before_tool_call(&self, call: ToolCallInfo) -> BoxFuture<'_, Result<BeforeCall, HookError>> {
//!         Box::pin(async move {
//!             let amount: u64 = call.arg("amount")?;
//!             Ok(if amount > self.0 { BeforeCall::block("too much") } else { BeforeCall::Continue })
//!         })
//!     }
//! }
//!
//! /// Pays a bill.
//! #[tool]
//! fn pay(amount: u64) -> String {
//!     format!("{amount} paid")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([
//!     reply().tool_call("pay", r#"{"amount": 500}"#),
//!     reply().text("I may not pay that much."),
//! ]);
//! let assistant = Assistant::builder(model).tools(tools![pay]).hooks(Cap(100)).build()?;
//! let output = assistant.prompt("Pay 500.").await?;
//! assert_eq!(output.messages[2].text(), "too much");
//! # Ok(()) }
//! ```

pub use crate::runtime::{AfterCall, HookError, Hooks, ToolCallInfo, TurnStart};
