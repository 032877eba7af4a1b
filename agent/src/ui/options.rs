//! Options of `UiEncoder` and `UiServer`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::loop_core::Event;
use crate::tool::outcome::ToolResult;

/// A protocol of front ends.
///
/// ```
/// use agent::ui::UiProtocol;
///
/// let headers = UiProtocol::AiSdk.headers();
/// assert!(headers.contains(&("x-vercel-ai-ui-message-stream", "v1")));
/// assert_eq!(UiProtocol::AiSdk.end_mark(), "data: [DONE]\n\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UiProtocol {
    /// The UI message stream of the AI SDK (npm `ai` 7), which `useChat` reads.
    #[cfg(feature = "ui-ai-sdk")]
    AiSdk,
    /// AG-UI 1.0, which `HttpAgent` reads.
    #[cfg(feature = "ui-ag-ui")]
    AgUi,
}

impl UiProtocol {
    /// Returns the headers of a stream.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        const STREAM: [(&str, &str); 4] = [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
            ("x-vercel-ai-ui-message-stream", "v1"),
        ];
        match self {
            #[cfg(feature = "ui-ai-sdk")]
            Self::AiSdk => &STREAM,
            #[cfg(feature = "ui-ag-ui")]
            Self::AgUi => &STREAM[..3],
        }
    }

    /// Returns the text after the last chunk of a stream, which is empty for AG-UI.
    pub fn end_mark(self) -> &'static str {
        match self {
            #[cfg(feature = "ui-ai-sdk")]
            Self::AiSdk => "data: [DONE]\n\n",
            #[cfg(feature = "ui-ag-ui")]
            Self::AgUi => "",
        }
    }
}

#[derive(Clone)]
pub(super) enum ResultView {
    /// The person sees the text `completed` in place of the result, or in place of an error its code and a fixed sentence.
    Hidden,
    ForModel,
    /// The value that this function returns, for results and errors. If the function panics, the result is hidden.
    Custom(Arc<dyn Fn(&ToolResult) -> Value + Send + Sync>),
}

impl fmt::Debug for ResultView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "Hidden",
            Self::ForModel => "ForModel",
            Self::Custom(_) => "Custom(..)",
        })
    }
}

/// The treatment of a message that a user sends while a run of the thread is active.
#[derive(Clone, Copy, Debug)]
pub(super) enum WhileBusy {
    Reject,
    Steer,
    FollowUp,
}

/// A part with data of the application: `data-{name}` for the AI SDK, an event `CUSTOM` for AG-UI.
///
/// ```
/// use agent::ui::UiData;
///
/// let part = UiData::new("weather", agent::json!({"city": "Rome"})).with_id("rome");
/// assert_eq!(part.id.as_deref(), Some("rome"));
/// assert!(UiData::new("progress", 0.5).transient().is_transient);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UiData {
    /// The name of the part, by which a front end recognizes the kind of data.
    pub name: String,
    /// The data.
    pub data: Value,
    /// The id, for the AI SDK: a later part with the same name and id replaces this part. AG-UI sends no id.
    pub id: Option<String>,
    /// Whether the front end receives the part without adding it to the message. AG-UI ignores this, because its events do not become
    /// parts of messages.
    pub is_transient: bool,
}

impl UiData {
    /// Creates a part that stays in the message.
    pub fn new(name: impl Into<String>, data: impl Into<Value>) -> Self {
        Self { name: name.into(), data: data.into(), id: None, is_transient: false }
    }

    /// Sets the id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sends the part without adding it to the message.
    pub fn transient(mut self) -> Self {
        self.is_transient = true;
        self
    }
}

type DataOfEvent = Arc<dyn Fn(&Event) -> Vec<UiData> + Send + Sync>;

/// The options of an encoder or a server: which data of a run front ends receive, and what front ends may do.
///
/// By default, arguments, reasoning, sources and token counts are sent. The content of results is not sent. Instead, front ends receive
/// `{"outcome": "completed"}`, or the code of an error and a fixed sentence. Secret arguments, metadata, provider data, handles of
/// deferred calls and the texts of errors of a run are never sent.
///
/// ```
/// use agent::ui::UiOptions;
///
/// let options = UiOptions::default().show_results().reasoning(false);
/// # let _ = options;
/// ```
///
/// The other options:
///
/// ```
/// use agent::EventKind;
/// use agent::ui::{UiData, UiOptions};
///
/// let options = UiOptions::default()
///     .args(false)                                                            // except in approvals
///     .sources(false)
///     .usage(false)
///     .run_in_browser(["pick_color"])
///     .client_tools()
///     .custom_messages()
///     .follow_up_while_busy()
///     .ai_sdk_version(6)
///     .data(|event| match &event.kind {
///         EventKind::TurnStart => vec![UiData::new("turn", event.turn).with_id("turn")],
///         _ => Vec::new(),
///     });
/// # let _ = options;
/// ```
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[must_use = "options are for an encoder or a server"]
pub struct UiOptions {
    pub(super) results: ResultView,
    pub(super) args: bool,
    pub(super) reasoning: bool,
    pub(super) sources: bool,
    pub(super) usage: bool,
    pub(super) browser: BTreeSet<String>,
    pub(super) client_tools: bool,
    pub(super) custom_messages: bool,
    pub(super) while_busy: WhileBusy,
    pub(super) ai_sdk_version: u8,
    pub(super) data: Option<DataOfEvent>,
}

impl Default for UiOptions {
    fn default() -> Self {
        Self {
            results: ResultView::Hidden,
            args: true,
            reasoning: true,
            sources: true,
            usage: true,
            browser: BTreeSet::new(),
            client_tools: false,
            custom_messages: false,
            while_busy: WhileBusy::Reject,
            ai_sdk_version: 7,
            data: None,
        }
    }
}

impl UiOptions {
    /// Sends the results and errors of tools in the form that the model reads. Also sends the content that calls report before they end,
    /// the results of the provider's tools, and the texts of sub-agents.
    pub fn show_results(mut self) -> Self {
        self.results = ResultView::ForModel;
        self
    }

    /// Sends the value that `view` returns for each result or error. If `view` panics, the content is hidden as by default.
    ///
    /// ```
    /// use agent::ui::UiOptions;
    ///
    /// // Sends only the degrees, not the whole weather.
    /// let options = UiOptions::default().show_results_as(|result| match result.outcome.output() {
    ///     Some(output) => output.structured.as_ref().map_or_else(Default::default, |value| value["degrees"].clone()),
    ///     None => "no thermometer".into(),
    /// });
    /// # let _ = options;
    /// ```
    pub fn show_results_as(mut self, view: impl Fn(&ToolResult) -> Value + Send + Sync + 'static) -> Self {
        self.results = ResultView::Custom(Arc::new(view));
        self
    }

    /// Sets whether the arguments of calls are sent. The arguments of calls that wait for approval are always sent, because a person needs
    /// them for the decision. Without arguments, coercions and the issues of refused arguments are not sent either.
    pub fn args(mut self, are_sent: bool) -> Self {
        self.args = are_sent;
        self
    }

    /// Sets whether the thinking of the model is sent.
    pub fn reasoning(mut self, is_sent: bool) -> Self {
        self.reasoning = is_sent;
        self
    }

    /// Sets whether the sources of a reply are sent: its resources and links.
    pub fn sources(mut self, are_sent: bool) -> Self {
        self.sources = are_sent;
        self
    }

    /// Sets whether token counts are sent. Costs are never sent.
    pub fn usage(mut self, is_sent: bool) -> Self {
        self.usage = is_sent;
        self
    }

    /// Adds tools whose results the browser delivers. These tools return [`ToolOutcome::Deferred`](crate::ToolOutcome::Deferred).
    pub fn run_in_browser(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.browser.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Gives a run the tools that its front end declares. The front end runs these tools, and the run waits for their results. A request
    /// is rejected if the schema of a declared tool is not supported, or if a tool of the application has the same name. By default,
    /// declared tools are ignored.
    pub fn client_tools(mut self) -> Self {
        self.client_tools = true;
        self
    }

    /// Sends [custom messages](crate::message::CustomMessage) with their data: parts `data-agent-message` of the AI SDK, or events
    /// `agent.message` of AG-UI. By default, they are not sent.
    pub fn custom_messages(mut self) -> Self {
        self.custom_messages = true;
        self
    }

    /// If a message arrives while a run of its thread is active, adds the message to the run's next request to the model. The response
    /// repeats the run from its start, so the front end should remove the part of the run that it already shows. By default, the message
    /// is rejected with the status 409; the chat of the AI SDK queues messages itself.
    ///
    /// ```
    /// use agent::ui::UiOptions;
    ///
    /// let options = UiOptions::default().steer_while_busy();
    /// # let _ = options;
    /// ```
    pub fn steer_while_busy(mut self) -> Self {
        self.while_busy = WhileBusy::Steer;
        self
    }

    /// Works like [`steer_while_busy`](Self::steer_while_busy), but adds the message when the run would end.
    pub fn follow_up_while_busy(mut self) -> Self {
        self.while_busy = WhileBusy::FollowUp;
        self
    }

    /// Sets the major version of npm `ai` that reads the stream, 7 by default. For version 6, chunks that only version 7 knows are left
    /// out.
    pub fn ai_sdk_version(mut self, major: u8) -> Self {
        self.ai_sdk_version = major;
        self
    }

    /// Adds parts with data of the application. The function is called for every event of the run, except updates of a reply, events of
    /// sub-agents, and the event that suspends or ends the run. It is called again when a client reconnects, so it should return the same
    /// parts for the same event. The parts are sent unchanged.
    pub fn data(mut self, data: impl Fn(&Event) -> Vec<UiData> + Send + Sync + 'static) -> Self {
        self.data = Some(Arc::new(data));
        self
    }
}

impl fmt::Debug for UiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiOptions")
            .field("results", &self.results)
            .field("args", &self.args)
            .field("reasoning", &self.reasoning)
            .field("while_busy", &self.while_busy)
            .finish_non_exhaustive()
    }
}
