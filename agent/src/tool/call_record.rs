//! A call with its result, as passed to its tool again.

use crate::message::{ToolArguments, ToolCall, ToolResultMessage};

/// A call and its result, as the conversation has them. They are passed to
/// [`format_result`](crate::tool::ToolOptions::format_result) and [`triggers_follow_up`](crate::tool::ToolOptions::triggers_follow_up).
///
/// ```
/// use agent::tool::CallRecord;
/// use agent::message::{OutcomeKind, ToolCall, ToolResultMessage};
///
/// let call = ToolCall::new("call_1", "job", r#"{"id": 7}"#);
/// let result = ToolResultMessage::new("call_1", "job", OutcomeKind::Completed).with_content("started");
/// let record = CallRecord::new(&call, &result);
/// assert_eq!((record.args().text(), record.result.text().as_str()), (r#"{"id": 7}"#, "started"));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRecord<'r> {
    /// The call, as the model made it.
    pub call: &'r ToolCall,
    /// The result: how the call ended, its content, and the metadata that only the application sees.
    pub result: &'r ToolResultMessage,
}

impl<'r> CallRecord<'r> {
    /// Creates a record of a call and its result.
    pub fn new(call: &'r ToolCall, result: &'r ToolResultMessage) -> Self {
        Self { call, result }
    }

    /// Returns the arguments that the call ran with: the model's, or those that a person changed.
    pub fn args(&self) -> &'r ToolArguments {
        self.result.edited_args.as_ref().unwrap_or(&self.call.args)
    }
}
