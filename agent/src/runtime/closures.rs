//! Single hooks, given to the builder as closures.

use super::{AfterCall, AssistantBuilder, BeforeCall, HookError, Hooks, ToolCallInfo};
use crate::loop_core::TurnSummary;
use crate::message::{CustomMessage, MessageList, Part};
use crate::model::ModelRequest;
use crate::{BoxFuture, CancelToken, ToolOutcome};

macro_rules! closures {
    ($($name:ident: $method:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        struct $name<F>(F);

        impl<F, Fut> Hooks for $name<F>
        where
            F: Fn($($type),*) -> Fut + Send + Sync,
            Fut: Future<Output = Result<$out, HookError>> + Send + 'static,
        {
            fn $method(&self, $($arg: $type),*) -> BoxFuture<'_, Result<$out, HookError>> {
                Box::pin((self.0)($($arg),*))
            }
        }
    )*};
}

closures! {
    TransformContext: transform_context(messages: MessageList, cancel: CancelToken) -> MessageList;
    BeforeRequest: before_request(request: ModelRequest) -> ModelRequest;
    BeforeToolCall: before_tool_call(call: ToolCallInfo) -> BeforeCall;
    AfterToolCall: after_tool_call(call: ToolCallInfo, outcome: ToolOutcome) -> AfterCall;
    OnTurnEnd: on_turn_end(summary: TurnSummary) -> Option<bool>;
}

struct Convert<F>(F);

impl<F: Fn(&CustomMessage) -> Option<Vec<Part>> + Send + Sync> Hooks for Convert<F> {
    fn convert(&self, message: &CustomMessage) -> Option<Vec<Part>> {
        (self.0)(message)
    }
}

impl AssistantBuilder {
    /// Adds a hook that chooses the messages of a request: [`Hooks::transform_context`].
    pub fn transform_context<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(MessageList, CancelToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<MessageList, HookError>> + Send + 'static,
    {
        self.hooks(TransformContext(hook))
    }

    /// Adds a hook that says what a model is sent of the application's own messages: [`Hooks::convert`].
    pub fn convert(self, hook: impl Fn(&CustomMessage) -> Option<Vec<Part>> + Send + Sync + 'static) -> Self {
        self.hooks(Convert(hook))
    }

    /// Adds a hook that changes a request: [`Hooks::before_request`].
    pub fn before_request<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ModelRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ModelRequest, HookError>> + Send + 'static,
    {
        self.hooks(BeforeRequest(hook))
    }

    /// Adds a hook that is asked before a call runs: [`Hooks::before_tool_call`].
    ///
    /// ```
    /// use agent::model::ScriptedModel;
    /// use agent::{Assistant, BeforeCall};
    ///
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .before_tool_call(|call| async move {
    ///         let is_fine = call.args()["path"].as_str().is_none_or(|path| !path.starts_with('/'));
    ///         Ok(if is_fine { BeforeCall::Continue } else { BeforeCall::block("only relative paths") })
    ///     })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn before_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeCall, HookError>> + Send + 'static,
    {
        self.hooks(BeforeToolCall(hook))
    }

    /// Adds a hook that changes results: [`Hooks::after_tool_call`].
    pub fn after_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallInfo, ToolOutcome) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<AfterCall, HookError>> + Send + 'static,
    {
        self.hooks(AfterToolCall(hook))
    }

    /// Adds a hook that says whether a run goes on: [`Hooks::on_turn_end`].
    pub fn on_turn_end<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(TurnSummary) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<bool>, HookError>> + Send + 'static,
    {
        self.hooks(OnTurnEnd(hook))
    }
}
