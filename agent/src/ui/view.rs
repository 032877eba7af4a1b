//! Decides how arguments, results and errors are shown to a front end.

use serde_json::{Map, Value, json};

use super::{ResultView, UiOptions};
use crate::args::{Coercion, InvalidArguments};
use crate::message::{Content, Media, MediaSource, OutcomeKind, Part, ProviderTool, ToolArguments, Usage};
use crate::panics::catch;
use crate::tool::outcome::{OutcomeCode, ToolOutcome, ToolResult};
use crate::tool::registry::Registry;
use crate::tool::secrets::SecretArguments;

/// Maximum size of the arguments of an unknown tool that are sent to a front end, in bytes. Longer arguments are cut, because no schema
/// checks them.
pub(super) const MAX_UNKNOWN: usize = 4096;
/// Maximum number of issues of one call that are sent to a front end.
const MAX_ISSUES: usize = 64;

pub(super) const PROVIDER_FAILED: &str = "The provider's tool failed.";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShownEnd {
    Output(Value),
    Denied,
    Refused { text: String, issues: Vec<Value> },
    Error(String),
}

/// The conversion of a run's values to values for a front end. It depends only on the options and the definitions of the tools.
#[derive(Clone)]
pub(super) struct View {
    secrets: SecretArguments,
    pub(super) options: UiOptions,
}

impl View {
    pub(super) fn new(registry: &Registry, options: &UiOptions) -> Self {
        let secrets = SecretArguments::new([registry.definitions()]);
        Self { secrets, options: options.clone() }
    }

    pub(super) fn runs_in_browser(&self, tool: &str) -> bool {
        self.options.browser.contains(tool)
    }

    pub(super) fn is_known(&self, tool: &str) -> bool {
        self.secrets.definitions(tool).next().is_some()
    }

    /// Returns whether the text of the arguments may be sent while the arguments are still arriving.
    pub(super) fn streams(&self, tool: &str) -> bool {
        self.options.args && !self.secrets.may_hide(tool)
    }

    /// Returns the arguments as a front end receives them: without secrets, or an empty object if the options hide arguments. `tool` is
    /// `None` for a sub-agent's call, whose events contain no secrets.
    pub(super) fn input(&self, tool: Option<&str>, args: &ToolArguments) -> Value {
        if self.options.args { self.input_to_decide(tool, args) } else { json!({}) }
    }

    /// Returns the arguments, without secrets, for a person who decides on the call. The options cannot hide them. `tool` is `None` for a
    /// call of a sub-agent, whose events contain no secrets.
    pub(super) fn input_to_decide(&self, tool: Option<&str>, args: &ToolArguments) -> Value {
        let Some(tool) = tool else { return value_or_text(args) };
        if let Some(less) = self.secrets.arguments(tool, args) {
            return value_or_text(&less);
        }
        if !self.is_known(tool) && args.text().len() > MAX_UNKNOWN {
            return Value::String(cut(args.text(), MAX_UNKNOWN));
        }
        value_or_text(args)
    }

    pub(super) fn schema(&self, tool: &str) -> Option<Value> {
        self.secrets.definitions(tool).next().map(|definition| definition.parameters().clone())
    }

    /// Returns the end of a call in the form for a front end. `sent` contains the arguments that the model sent.
    pub(super) fn end(
        &self,
        result: &ToolResult,
        ran: bool,
        sent: Option<&ToolArguments>,
        was_denied: bool,
    ) -> ShownEnd {
        match &result.outcome {
            ToolOutcome::Completed(_) => ShownEnd::Output(self.output(result)),
            ToolOutcome::Denied { code, .. } if was_denied && *code == OutcomeCode::DENIED => {
                ShownEnd::Denied
            }
            ToolOutcome::Failed { code, .. } if !ran && *code == OutcomeCode::INVALID_ARGUMENTS => {
                let issues = sent.map(|args| self.issues(&result.tool, args)).unwrap_or_default();
                ShownEnd::Refused { text: self.error_text(result), issues }
            }
            _ => ShownEnd::Error(self.error_text(result)),
        }
    }

    fn output(&self, result: &ToolResult) -> Value {
        let hidden = || json!({"outcome": "completed"});
        match &self.options.results {
            ResultView::Hidden => hidden(),
            ResultView::ForModel => for_model(&result.outcome),
            ResultView::Custom(view) => catch(|| view(result)).unwrap_or_else(|_| hidden()),
        }
    }

    fn error_text(&self, result: &ToolResult) -> String {
        let hidden = || fixed_text(&result.outcome);
        match &self.options.results {
            ResultView::Hidden => hidden(),
            ResultView::ForModel => result.outcome.text().into_owned(),
            ResultView::Custom(view) => match catch(|| view(result)) {
                Ok(Value::String(text)) => text,
                Ok(value) => value.to_string(),
                Err(_) => hidden(),
            },
        }
    }

    /// Returns the issues of the arguments, without secrets.
    fn issues(&self, tool: &str, sent: &ToolArguments) -> Vec<Value> {
        if !self.options.args {
            return Vec::new();
        }
        let plan = self.secrets.plan(tool);
        let refused = plan.and_then(|plan| plan.parse::<Value>(sent.text()).err());
        let issues = refused.iter().flat_map(InvalidArguments::issues).take(MAX_ISSUES);
        issues
            .map(|issue| {
                let mut shown = json!({"path": issue.path, "code": issue.code, "problem": issue.problem});
                for (key, text) in [("expected", &issue.expected), ("received", &issue.received)] {
                    if let Some(text) = text {
                        shown[key] = json!(text);
                    }
                }
                if !issue.suggestions.is_empty() {
                    shown["suggestions"] = json!(issue.suggestions);
                }
                shown
            })
            .collect()
    }

    pub(super) fn coercions(&self, coercions: &[Coercion]) -> Option<Value> {
        (self.options.args && !coercions.is_empty()).then(|| json!(coercions))
    }

    /// Returns the partial result of a call that still runs. Only [`ResultView::ForModel`] shows partial results.
    pub(super) fn preliminary(&self, content: &[Part]) -> Option<Value> {
        let is_shown = matches!(self.options.results, ResultView::ForModel) && !content.is_empty();
        is_shown.then(|| content_value(content))
    }

    /// Returns the address, title and media type of a source, unless the options hide sources.
    pub(super) fn source_of<'c>(
        &self,
        content: &'c Content,
    ) -> Option<(&'c str, Option<&'c str>, Option<&'c str>)> {
        match content {
            _ if !self.options.sources => None,
            Content::Resource(resource) => {
                let media_type = resource.mime_type.as_deref().or(resource.as_text().map(|_| "text/plain"));
                Some((&resource.uri, None, media_type))
            }
            Content::ResourceLink(link) => {
                let title = link.title.as_deref().or(link.name.as_deref());
                Some((&link.uri, title, link.mime_type.as_deref()))
            }
            _ => None,
        }
    }

    pub(super) fn provider_input(&self, tool: &ProviderTool) -> Value {
        tool.input.clone().filter(|_| self.options.args).unwrap_or_else(|| json!({}))
    }

    pub(super) fn provider_output(&self, output: &Value) -> Value {
        match self.options.results {
            ResultView::ForModel => output.clone(),
            _ => json!({"outcome": "completed"}),
        }
    }

    pub(super) fn usage(&self, usage: &Usage) -> Option<Value> {
        (self.options.usage && !usage.is_empty()).then(|| token_counts(usage))
    }
}

pub(super) fn token_counts(usage: &Usage) -> Value {
    let mut counts = Map::new();
    for (key, count) in [
        ("inputTokens", usage.input),
        ("outputTokens", usage.output),
        ("totalTokens", usage.total),
        ("reasoningTokens", usage.reasoning),
        ("cachedInputTokens", usage.cache_read),
        ("cacheWriteInputTokens", usage.cache_write),
    ] {
        // The first three counts are always sent. Any other count is left out if it is zero, because zero may mean that the provider does
        // not report it.
        if counts.len() < 3 || count > 0 {
            counts.insert(key.to_owned(), count.into());
        }
    }
    Value::Object(counts)
}

fn value_or_text(args: &ToolArguments) -> Value {
    match args.value() {
        Some(value) => value,
        None if args.text().trim().is_empty() => json!({}),
        None => Value::String(args.text().to_owned()),
    }
}

pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}…", start(text, max))
}

/// Returns the longest start of the text that has at most `max` bytes.
pub(super) fn start(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// Returns the content that the model reads. If the content is the structured value as JSON text, returns the value itself.
fn for_model(outcome: &ToolOutcome) -> Value {
    let Some(output) = outcome.output() else { return Value::Null };
    if let Some(structured) = &output.structured
        && let [only] = &output.content[..]
        && only
            .as_text()
            .is_some_and(|text| serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured))
    {
        return structured.clone();
    }
    content_value(&output.content)
}

/// Returns a text if the content consists only of texts, or else a list of parts.
pub(super) fn content_value(content: &[Part]) -> Value {
    if content.iter().all(|part| part.as_text().is_some()) {
        let texts: Vec<&str> = content.iter().filter_map(Part::as_text).collect();
        return Value::String(texts.join("\n"));
    }
    content.iter().filter_map(shown_part).collect()
}

fn shown_part(part: &Part) -> Option<Value> {
    if let Some(text) = part.as_text() {
        return Some(json!({"type": "text", "text": text}));
    }
    if let Some((url, media_type)) = file_of(&part.content) {
        return Some(json!({"type": "file", "url": url, "mediaType": media_type}));
    }
    match &part.content {
        Content::ResourceLink(link) => Some(json!({"type": "source", "url": link.uri})),
        Content::Resource(resource) => Some(json!({"type": "source", "url": resource.uri})),
        _ => None,
    }
}

/// Returns the address and media type of a file that a front end can show. Returns `None` for other content, and for a file that has
/// neither data nor a web address.
pub(super) fn file_of(content: &Content) -> Option<(String, String)> {
    let (media, kind) = match content {
        Content::Image(media) => (media, "image/*"),
        Content::Document(media) => (media, "application/octet-stream"),
        Content::Audio(media) => (media, "audio/*"),
        _ => return None,
    };
    let Media { source, mime_type, .. } = media;
    let media_type = mime_type.clone().unwrap_or_else(|| kind.to_owned());
    match source {
        MediaSource::Data(blob) => {
            Some((format!("data:{media_type};base64,{}", blob.to_base64()), media_type))
        }
        MediaSource::Url(url) if is_web(url) => Some((url.clone(), media_type)),
        _ => None,
    }
}

/// Returns a source as a part of a message of the AI SDK. The chunk of a source has the same form as the part.
#[cfg(feature = "ui-ai-sdk")]
pub(super) fn source_part(id: &str, uri: &str, title: Option<&str>, media_type: Option<&str>) -> Value {
    let mut part = if is_web(uri) {
        json!({"type": "source-url", "sourceId": id, "url": uri})
    } else {
        let media_type = media_type.unwrap_or("application/octet-stream");
        json!({"type": "source-document", "sourceId": id, "mediaType": media_type, "title": title.unwrap_or(uri)})
    };
    if let Some(title) = title {
        part["title"] = json!(title);
    }
    part
}

fn is_web(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

fn fixed_text(outcome: &ToolOutcome) -> String {
    let sentence = match outcome.kind() {
        Some(OutcomeKind::Retry) => "The tool asked for a better call.",
        Some(OutcomeKind::Denied) => "The call was not allowed.",
        Some(OutcomeKind::Interrupted) => "The call was stopped.",
        _ => match outcome.code() {
            Some("unknown_tool") => "There is no such tool.",
            Some("invalid_arguments") => "The arguments were refused.",
            Some("timeout") => "The tool took too long.",
            _ => "The tool failed.",
        },
    };
    match outcome.code() {
        Some(code) => format!("{}: {sentence}", cut(code, 64)),
        None => sentence.to_owned(),
    }
}
