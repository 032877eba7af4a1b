//! A call and what it came to, as its tool is asked about it again.

use crate::message::{ToolArguments, ToolCall, ToolResultMessage};

/// A call and its result, as the conversation has them: what [`Tool::format_result`](crate::Tool::format_result) and
/// [`Tool::triggers_follow_up`](crate::Tool::triggers_follow_up) are asked about.
///
/// ```
/// use agent::CallRecord;
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
    /// What it came to: how it ended, the content, what only the application sees.
    pub result: &'r ToolResultMessage,
}

impl<'r> CallRecord<'r> {
    /// A call with its result.
    pub fn new(call: &'r ToolCall, result: &'r ToolResultMessage) -> Self {
        Self { call, result }
    }

    /// What it ran with: the arguments of the call, or those that a person made of them.
    pub fn args(&self) -> &'r ToolArguments {
        self.result.edited_args.as_ref().unwrap_or(&self.call.args)
    }
}
