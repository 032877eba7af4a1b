//! The content of the context window, by source.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::anchor::{self, ONE, TokenEstimate, ratio, scale};
use super::sizes::MessageSize;
use super::{CountWith, MESSAGE, REQUEST, SizeCounter, TOOL, TokenCounter, TokenEstimator};
#[cfg(feature = "runtime")]
use crate::message::ConversationView;
use crate::message::Message;
use crate::model::{ModelInfo, ModelRequest};

/// The content of a model's context window, by source. Its `Display` is a table.
///
/// The parts add up to [`used`](Self::used). Tokens that belong to no other source, such as text that the provider adds, are
/// [`ContextSource::Framing`].
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ContextReport, ContextSource, ModelInfo, ModelRequest};
///
/// let request = ModelRequest::new([Message::user("How is the weather in Paris?")]).with_system("Answer briefly, in one sentence.");
/// let info = ModelInfo::new("acme", "acme-chat", "large-1");
/// let report = ContextReport::of(&request, &info).with_window(200_000, 32_000);
/// assert_eq!((report.used, report.usable), (27, Some(168_000)));
/// assert_eq!(report.tokens_of(&ContextSource::User), 7);
/// assert_eq!(
///     report.to_string(),
///     "\
/// acme/large-1: about 27 of 168,000 tokens (0 %), up to 10 more; 32,000 are left for the reply
/// framing               12   44 %      1
/// system                 8   30 %      1
/// user                   7   26 %      1
/// "
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextReport {
    /// The model, as `provider/model`.
    pub model: String,
    /// The size of the context window in tokens, or `None` if it was not set.
    pub window: Option<u64>,
    /// The number of tokens that a request may use: the window without the tokens that are reserved for the reply. `None` if the window was
    /// not set.
    pub usable: Option<u64>,
    /// The estimated tokens of the request.
    pub used: u64,
    /// The possible error of the estimate, in tokens: 35 % of the estimate. If [`is_anchored`](Self::is_anchored), it is only 10 %, or
    /// more if earlier estimates in this conversation were worse.
    pub error: u64,
    /// Whether the usage of a reply corrects the estimate.
    pub is_anchored: bool,
    /// The parts of the request, the largest first.
    pub parts: Vec<ContextPart>,
}

/// One source of tokens in a request.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{ContextPart, ContextReport, ContextSource, ModelInfo, ModelRequest};
///
/// let request = ModelRequest::new([Message::user("How is the weather in Rome?")]);
/// let report = ContextReport::of(&request, &ModelInfo::new("acme", "acme-chat", "large-1"));
/// let from_user = |part: &&ContextPart| part.source == ContextSource::User;
/// assert_eq!(report.parts.iter().find(from_user).unwrap().items, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextPart {
    /// The source.
    pub source: ContextSource,
    /// The estimated tokens of the source.
    pub tokens: u64,
    /// The number of items of the source. Each part of a message, each tool definition, the system prompt and the schema for the answer
    /// count as one item. The framing also counts as one item.
    pub items: usize,
}

/// A source of tokens in a request.
///
/// ```
/// use agent::model::ContextSource;
///
/// assert_eq!(ContextSource::System.to_string(), "system");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextSource {
    /// The system prompt, with the schema for the answer.
    System,
    /// The definition of a tool.
    Tool(String),
    /// The results of a tool.
    ToolResults(String),
    /// Messages of the user and of the application.
    User,
    /// Replies of the model, with their calls.
    Replies,
    /// Thinking of the model.
    Thinking,
    /// Images, documents and audio.
    Media,
    /// The summary of earlier messages.
    Summary,
    /// Everything else: the tokens around each message, each tool definition and the request, and text that the provider adds.
    Framing,
}

impl fmt::Display for ContextSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.pad("system"),
            Self::Tool(name) => f.pad(&format!("tool {name}")),
            Self::ToolResults(name) => f.pad(&format!("results of {name}")),
            Self::User => f.pad("user"),
            Self::Replies => f.pad("replies"),
            Self::Thinking => f.pad("thinking"),
            Self::Media => f.pad("media"),
            Self::Summary => f.pad("summary"),
            Self::Framing => f.pad("framing"),
        }
    }
}

/// The kind of a source. The variants have the order of [`ContextSource`], without `Framing`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SourceKind {
    System,
    Tool,
    ToolResults,
    User,
    Replies,
    Thinking,
    Media,
    Summary,
}

type NamedSource<'a> = (SourceKind, &'a str);

/// The tokens and the number of items of each source.
#[derive(Default)]
struct SourceSums<'a> {
    /// The sums of the sources without a name, indexed by kind.
    unnamed: [(u64, usize); SourceKind::COUNT],
    named: BTreeMap<NamedSource<'a>, (u64, usize)>,
}

impl<'a> SourceSums<'a> {
    fn add(&mut self, source: NamedSource<'a>, (tokens, items): (u64, usize)) {
        let (sum, all) = match source {
            (kind, "") => &mut self.unnamed[kind as usize],
            named => self.named.entry(named).or_default(),
        };
        *sum = sum.saturating_add(tokens);
        *all += items;
    }

    /// Returns the sources that have items, in the order of [`ContextSource`].
    fn into_sources(mut self) -> BTreeMap<NamedSource<'a>, (u64, usize)> {
        let unnamed = SourceKind::ALL.into_iter().map(|kind| (kind, "")).zip(self.unnamed);
        self.named.extend(unnamed);
        self.named.retain(|_, (_, items)| *items > 0);
        self.named
    }

    fn add_request(&mut self, request: &'a ModelRequest, size: SizeCounter<'_>) {
        if let Some(system) = &request.system {
            self.add((SourceKind::System, ""), (size.counter.count_text(system), 1));
        }
        if let Some(output) = &request.output {
            self.add((SourceKind::System, ""), (size.counter.count_json(&output.schema.to_string()), 1));
        }
        for tool in &*request.tools {
            let tokens = size.tool(tool).saturating_sub(TOOL);
            self.add((SourceKind::Tool, tool.name()), (tokens, 1));
        }
        size.sizes(&request.messages, |message, size| self.add_message(message, size));
    }

    fn add_message(&mut self, message: &'a Message, size: MessageSize) {
        let source = match message {
            Message::ToolResult(result) => (SourceKind::ToolResults, &*result.tool),
            Message::Assistant(_) => (SourceKind::Replies, ""),
            Message::User(user) if user.is_summary() => (SourceKind::Summary, ""),
            _ => (SourceKind::User, ""),
        };
        self.add(source, size.others);
        // Empty sums are skipped, because most messages have neither thinking nor media.
        for (kind, size) in [(SourceKind::Thinking, size.thinking), (SourceKind::Media, size.media)] {
            if size.1 > 0 {
                self.add((kind, ""), size);
            }
        }
    }
}

impl SourceKind {
    const COUNT: usize = 8;
    const ALL: [Self; Self::COUNT] = [
        Self::System,
        Self::Tool,
        Self::ToolResults,
        Self::User,
        Self::Replies,
        Self::Thinking,
        Self::Media,
        Self::Summary,
    ];

    fn source(self, name: &str) -> ContextSource {
        match self {
            Self::System => ContextSource::System,
            Self::Tool => ContextSource::Tool(name.to_owned()),
            Self::ToolResults => ContextSource::ToolResults(name.to_owned()),
            Self::User => ContextSource::User,
            Self::Replies => ContextSource::Replies,
            Self::Thinking => ContextSource::Thinking,
            Self::Media => ContextSource::Media,
            Self::Summary => ContextSource::Summary,
        }
    }
}

impl ContextReport {
    /// Reports the content of the model's context window, if this request is sent to the model.
    ///
    /// Tokens are estimated from bytes. A token is 4 bytes of ASCII text, 3 bytes of other text, 2 bytes of encoded data, or 5 bytes of
    /// JSON. A Chinese, Japanese or Korean character counts 1.1 tokens.
    ///
    /// If replies of this model report their usage, only the messages after the newest of these replies are estimated, and the usage of
    /// the earlier replies corrects the estimate. Tools and system prompt are assumed to be unchanged since the newest of these replies,
    /// except in runs with a [managed context](crate::AssistantBuilder::manage_context). Tools that the provider runs are not counted. The
    /// result depends only on the arguments.
    ///
    /// ```
    /// use agent::message::{AssistantMessage, Message, Usage};
    /// use agent::model::{ContextReport, ModelInfo, ModelRequest};
    ///
    /// let info = ModelInfo::new("acme", "acme-chat", "large-1");
    /// let mut reply = AssistantMessage::from("It is warm.");
    /// (reply.provider, reply.api, reply.model) = ("acme".into(), "acme-chat".into(), "large-1".into());
    /// reply.usage = Usage::new(812, 6);
    ///
    /// let request = ModelRequest::new([Message::user("How is the weather?"), reply.into(), Message::user("And tomorrow?")]);
    /// let report = ContextReport::of(&request, &info);
    /// assert_eq!((report.used, report.is_anchored), (812 + 6 + 8, true));
    /// ```
    pub fn of(request: &ModelRequest, info: &ModelInfo) -> Self {
        Self::counted(request, info, &TokenEstimator)
    }

    /// Creates a report like [`of`](Self::of), with a function that counts the tokens of a text, for example with the vocabulary of the
    /// model. The function must return the same number for the same text.
    ///
    /// ```
    /// use agent::message::Message;
    /// use agent::model::{ContextReport, ModelInfo, ModelRequest};
    ///
    /// let request = ModelRequest::new([Message::user("How is the weather?")]);
    /// let info = ModelInfo::new("acme", "acme-chat", "large-1");
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// assert_eq!(ContextReport::counted_by(&request, &info, words).used, 4 + 4 + 8);     // 4 words, a message, a request
    /// ```
    pub fn counted_by(
        request: &ModelRequest,
        info: &ModelInfo,
        counter: impl Fn(&str) -> u64 + Send + Sync,
    ) -> Self {
        Self::counted(request, info, &CountWith::once(counter))
    }

    fn counted(request: &ModelRequest, info: &ModelInfo, counter: &dyn TokenCounter) -> Self {
        Self::with_estimate(request, request.estimate_tokens(info, counter), info, counter)
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn of_view(
        request: &ModelRequest,
        view: &ConversationView,
        info: &ModelInfo,
        counter: &dyn TokenCounter,
    ) -> Self {
        Self::with_estimate(request, request.estimate_view(view, info, counter), info, counter)
    }

    fn with_estimate(
        request: &ModelRequest,
        estimate: TokenEstimate,
        info: &ModelInfo,
        counter: &dyn TokenCounter,
    ) -> Self {
        let size = SizeCounter { counter, api: &info.api };
        let mut sums = SourceSums::default();
        sums.add_request(request, size);
        let sums = sums.into_sources();
        let TokenEstimate { tokens: used, error, is_anchored } = estimate;

        let factor = if is_anchored {
            anchor::correction(&request.messages, &[], &anchor::anchors(&request.messages, info), size).0
        } else {
            ONE
        };
        let framing = (request.messages.len() as u64)
            .saturating_mul(MESSAGE)
            .saturating_add((request.tools.len() as u64).saturating_mul(TOOL))
            .saturating_add(REQUEST);
        let raw = sums.values().map(|(tokens, _)| *tokens).fold(0, u64::saturating_add);
        let scaled = scale(raw, factor);
        let all = scaled.saturating_add(scale(framing, factor));
        // If the sources and the framing add up to more than `used`, each source gets its share of `used`.
        let (total, of) = if all > used { (used, raw.saturating_add(framing)) } else { (scaled, raw) };
        let mut left = used;
        let mut parts: Vec<ContextPart> = Vec::with_capacity(sums.len() + 1);
        for ((kind, name), (tokens, items)) in sums {
            let source = kind.source(name);
            let tokens = ratio(tokens, total, of).min(left);
            left -= tokens;
            parts.push(ContextPart { source, tokens, items });
        }
        parts.push(ContextPart { source: ContextSource::Framing, tokens: left, items: 1 });
        parts.sort_by(|one, other| other.tokens.cmp(&one.tokens).then_with(|| one.source.cmp(&other.source)));
        let model = format!("{}/{}", info.provider, info.model);
        Self { model, window: None, usable: None, used, error, is_anchored, parts }
    }

    /// Sets the size of the context window, and the number of its tokens that are reserved for the reply. At most half of the window is
    /// reserved.
    pub fn with_window(mut self, window: u64, reserved: u64) -> Self {
        self.window = Some(window);
        self.usable = Some(window - reserved.min(window / 2));
        self
    }

    /// Returns the number of tokens of one source, or 0 if the request has none.
    pub fn tokens_of(&self, source: &ContextSource) -> u64 {
        self.parts.iter().find(|part| part.source == *source).map_or(0, |part| part.tokens)
    }
}

impl fmt::Display for ContextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: about {}", self.model, grouped(self.used))?;
        if let Some(usable) = self.usable {
            write!(f, " of {}", grouped(usable))?;
        }
        write!(f, " tokens")?;
        if let Some(usable) = self.usable {
            write!(f, " ({} %)", percent(self.used, usable))?;
        }
        write!(f, ", up to {} more", grouped(self.error))?;
        if let Some(reply) =
            self.window.zip(self.usable).map(|(window, usable)| window.saturating_sub(usable))
        {
            write!(f, "; {} are left for the reply", grouped(reply))?;
        }
        writeln!(f)?;
        let names = self.parts.iter().map(|part| part.source.to_string().chars().count());
        let width = names.max().unwrap_or_default().max(12);
        for ContextPart { source, tokens, items } in &self.parts {
            let share = percent(*tokens, self.used);
            writeln!(f, "{source:width$} {:>11} {share:>4} % {items:>6}", grouped(*tokens))?;
        }
        Ok(())
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    u64::try_from((u128::from(part) * 200 + whole) / (whole * 2)).unwrap_or(u64::MAX)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
