//! The results of tools that the provider ran.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::Value;

use super::parts::some_text;
use super::protocol;
use crate::message::{AssistantMessage, Content, ProviderTool, ResourceLink};
use crate::model::ManagedResult;

/// Returns the results of the tools that the provider ran for this reply, in order, in the same form for every provider.
///
/// The results are read from the parts and the provider data of the reply, so the function also works on a stored conversation. It knows
/// the protocols of this library that are compiled in, and returns an empty list for a reply of any other protocol. For a protocol of your
/// own, call its [`Protocol::managed_results`](super::Protocol::managed_results).
///
/// ```
/// # #[cfg(feature = "gemini")] {
/// use agent::model::{ManagedResult, ModelInfo, ModelStream, StepCx};
/// use agent::provider::{ReplyReader, gemini::Gemini, managed_results};
///
/// # tokio_test(async {
/// let info = ModelInfo::new("gemini", "gemini-generate-content", "gemini-3-flash-preview");
/// let mut reader = ReplyReader::new(&Gemini::default(), &info, 200, Vec::new());
/// let body = br#"{"candidates": [{"finishReason": "STOP", "content": {"parts": [
///     {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}},
///     {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}, {"text": "It is 42."}]}}]}"#;
/// let mut events = Vec::new();
/// reader.push(body, &mut events)?;
/// reader.finish(&Gemini::default(), &mut events)?;
/// let reply = ModelStream::from_events(&StepCx::new(), &info, events.into_iter().map(Ok)).reply().await?;
///
/// let results = managed_results(&reply);
/// let [ManagedResult::CodeExecution { code, stdout, .. }] = &results[..] else { panic!("{results:?}") };
/// assert_eq!((code.as_deref(), stdout.as_str()), (Some("print(6 * 7)"), "42\n"));
/// # Ok::<(), agent::model::ModelError>(()) }).unwrap();
/// # }
/// # #[cfg(feature = "gemini")]
/// # fn tokio_test<F: Future>(future: F) -> F::Output {
/// #     tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
/// # }
/// ```
pub fn managed_results(reply: &AssistantMessage) -> Vec<ManagedResult> {
    protocol(&reply.api).map(|protocol| protocol.managed_results(reply)).unwrap_or_default()
}

/// A call of a tool that the provider ran, and its result. In a reply, the call and its result are one part or two.
#[derive(Clone, Copy, Debug)]
pub(super) struct ManagedCall<'a> {
    call: Option<&'a ProviderTool>,
    result: Option<&'a ProviderTool>,
}

impl<'a> ManagedCall<'a> {
    /// Returns the calls in a reply, each with its result, if there is one. A result without a call is returned, too.
    pub(super) fn all(reply: &'a AssistantMessage) -> Vec<Self> {
        let mut calls: Vec<Self> = Vec::new();
        for tool in reply.content.iter().filter_map(|part| match &part.content {
            Content::ProviderTool(tool) => Some(tool),
            _ => None,
        }) {
            let is_unanswered = |open: &&mut Self| {
                open.result.is_none()
                    && open.call.is_some_and(|call| call.id == tool.id && is_result_of(call, tool))
            };
            let open = if tool.output.is_some() { calls.iter_mut().rev().find(is_unanswered) } else { None };
            match open {
                Some(open) => open.result = Some(tool),
                None if tool.output.is_some() && tool.input.is_none() => {
                    calls.push(Self { call: None, result: Some(tool) });
                }
                None => calls.push(Self { call: Some(tool), result: tool.output.is_some().then_some(tool) }),
            }
        }
        calls
    }

    pub(super) fn name(&self) -> &'a str {
        self.call.or(self.result).map_or("", |tool| tool.name.as_str())
    }

    pub(super) fn input(&self) -> &'a Value {
        self.call.and_then(|call| call.input.as_ref()).unwrap_or(&Value::Null)
    }

    pub(super) fn output(&self) -> &'a Value {
        self.result.and_then(|result| result.output.as_ref()).unwrap_or(&Value::Null)
    }

    pub(super) fn is_error(&self) -> bool {
        self.result.or(self.call).is_some_and(|tool| tool.is_error)
    }

    /// Returns the provider's error code in the field `key` of the output, or `None` if the call did not fail.
    pub(super) fn error(&self, key: &str) -> Option<String> {
        self.is_error().then(|| some_text(self.output(), key).unwrap_or("failed").to_owned())
    }
}

/// Returns whether a part is the result of a call. The caller has checked that their ids are equal. If both have no id, their names must
/// be equal.
fn is_result_of(call: &ProviderTool, result: &ProviderTool) -> bool {
    result.input.is_none() && (call.id.is_some() || call.name == result.name)
}

pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Creates a source from the JSON of a web page. `url` and `title` are the keys of the page's fields.
pub(super) fn source(page: &Value, url: &str, title: &str) -> Option<ResourceLink> {
    let mut source = ResourceLink::new(some_text(page, url)?);
    source.title = some_text(page, title).map(str::to_owned);
    Some(source)
}

/// Adds the web pages that a reply cites to the sources of its last web search, without duplicates. If there is no web search, adds one.
pub(super) fn add_cited(results: &mut Vec<ManagedResult>, cited: impl IntoIterator<Item = ResourceLink>) {
    let mut cited = cited.into_iter().peekable();
    if cited.peek().is_none() {
        return;
    }
    let is_search = |result: &ManagedResult| matches!(result, ManagedResult::WebSearch { .. });
    let at = results.iter().rposition(is_search).unwrap_or_else(|| {
        results.push(ManagedResult::WebSearch { queries: Vec::new(), sources: Vec::new(), error: None });
        results.len() - 1
    });
    if let Some(ManagedResult::WebSearch { sources, .. }) = results.get_mut(at) {
        for source in cited {
            if sources.iter().all(|known| known.uri != source.uri) {
                sources.push(source);
            }
        }
    }
}

pub(super) fn add_generated_images(results: &mut Vec<ManagedResult>, reply: &AssistantMessage) {
    results.extend(reply.content.iter().filter_map(|part| match &part.content {
        Content::Image(image) => {
            Some(ManagedResult::ImageGeneration { image: Some(image.clone()), prompt: None, error: None })
        }
        _ => None,
    }));
}
