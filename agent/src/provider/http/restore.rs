//! Removes the nulls that mean "absent" from calls and answers. A strict schema requires every property, so a model writes null for a
//! property that it would otherwise leave out.

use std::collections::BTreeMap;

use crate::args::{Plan, PlanOptions};
use crate::message::{Content, Part, ProviderData};
use crate::model::{ModelEvent, ModelRequest};
use crate::provider::tools::has_strict_tools;
use crate::schema::{Dialect, render, restore_nulls};
use crate::tool::dialect::tools_in_dialect;

/// A filter of events that removes the nulls for absent properties from complete calls and answers.
pub(super) struct NullRestorer {
    dialect: Dialect,
    plans: Vec<Plan>,
    calls: BTreeMap<usize, Part>,
    /// The compiled schema of the answer, if it is sent as a strict schema.
    answer: Option<Plan>,
    texts: BTreeMap<usize, Part>,
}

impl NullRestorer {
    /// Creates the filter. Returns `None` if no schema of the request is strict in OpenAI's dialect.
    pub(super) fn new(dialect: Dialect, request: &ModelRequest) -> Option<Self> {
        if dialect != Dialect::OpenAiStrict {
            return None;
        }
        let rendered = || tools_in_dialect(&request.tools, dialect, request.strict_tools);
        let plans: Vec<Plan> = if has_strict_tools(request) {
            let tools = request.tools.iter().zip(rendered());
            tools.filter(|(_, rendered)| rendered.is_strict()).map(|(tool, _)| tool.plan().clone()).collect()
        } else {
            Vec::new()
        };
        let answer = request.output.as_ref().and_then(|output| {
            let plan = Plan::compile(&output.name, &output.schema, PlanOptions::default()).ok()?;
            render(&plan, dialect).dialect.is_strict().then_some(plan)
        });
        let is_needed = !plans.is_empty() || answer.is_some();
        is_needed.then(|| Self { dialect, plans, calls: BTreeMap::new(), answer, texts: BTreeMap::new() })
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.texts.clear();
    }

    /// Adds the event to `out`. If the event ends a call or the answer, first adds a [`ModelEvent::Part`] with the rewritten call or
    /// answer.
    pub(super) fn push(&mut self, event: ModelEvent, out: &mut impl Extend<ModelEvent>) {
        match &event {
            ModelEvent::ToolCallStart { content_index, id, name } => {
                self.calls.insert(*content_index, Part::tool_call(id.as_str(), name.as_str(), ""));
            }
            ModelEvent::ToolCallDelta { content_index, delta } => {
                if let Some(Part { content: Content::ToolCall(call), .. }) = self.calls.get_mut(content_index)
                {
                    call.args.push_str(delta);
                }
            }
            ModelEvent::PartData { content_index, data } => {
                let data: &ProviderData = data;
                let part = self.calls.get_mut(content_index).or_else(|| self.texts.get_mut(content_index));
                if let Some(part) = part {
                    part.provider_data = Some(Box::new(data.clone()));
                }
            }
            ModelEvent::ToolCallEnd { content_index } => out.extend(self.restore_call(*content_index)),
            ModelEvent::Part { content_index, part } if part.as_tool_call().is_some() => {
                self.calls.insert(*content_index, *part.clone());
                let last = self.restore_call(*content_index);
                out.extend([last.unwrap_or(event)]);
                return;
            }
            ModelEvent::TextDelta { content_index, delta } if self.answer.is_some() => {
                let part = self.texts.entry(*content_index).or_insert_with(|| Part::text(""));
                if let Content::Text(text) = &mut part.content {
                    text.push_str(delta);
                }
            }
            ModelEvent::Part { content_index, part } if self.answer.is_some() && part.as_text().is_some() => {
                self.texts.insert(*content_index, *part.clone());
            }
            ModelEvent::Stop { .. } => {
                out.extend(self.restore_answer());
                let open: Vec<usize> = self.calls.keys().copied().collect();
                out.extend(open.into_iter().filter_map(|index| self.restore_call(index)));
            }
            _ => {}
        }
        out.extend([event]);
    }

    /// Returns the rewritten answer, if it changed. An answer in several texts does not follow a schema, so it is not rewritten.
    fn restore_answer(&mut self) -> Option<ModelEvent> {
        let (content_index, mut part) = self.texts.pop_first().filter(|_| self.texts.is_empty())?;
        let Content::Text(text) = &mut part.content else { return None };
        let restored = restore_nulls(self.answer.as_ref()?, self.dialect, text);
        if restored == *text {
            return None;
        }
        *text = restored.into_owned();
        Some(ModelEvent::Part { content_index, part: Box::new(part) })
    }

    fn restore_call(&mut self, content_index: usize) -> Option<ModelEvent> {
        let mut part = self.calls.remove(&content_index)?;
        let Content::ToolCall(call) = &mut part.content else { return None };
        let plan = self.plans.iter().find(|plan| plan.name() == call.name)?;
        let restored = restore_nulls(plan, self.dialect, call.args.text());
        if restored == call.args.text() {
            return None;
        }
        call.args = restored.into_owned().into();
        Some(ModelEvent::Part { content_index, part: Box::new(part) })
    }
}

#[cfg(all(test, feature = "openai"))]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::OutputSchema;
    use crate::tool::definition::ToolDefinition;

    fn answer(texts: &[&str]) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"],
            "additionalProperties": false});
        let request = ModelRequest::default().with_output(OutputSchema::new("answer", schema));
        assert!(NullRestorer::new(Dialect::Plain, &request).is_none());
        let mut restorer = NullRestorer::new(Dialect::OpenAiStrict, &request).unwrap();
        let mut out = Vec::new();
        for (content_index, text) in texts.iter().enumerate() {
            let (head, tail) = text.split_at(5);
            for delta in [head, tail] {
                restorer.push(ModelEvent::TextDelta { content_index, delta: delta.into() }, &mut out);
            }
        }
        restorer.push(
            ModelEvent::Stop { reason: crate::message::StopReason::Stop, detail: None, raw: None },
            &mut out,
        );
        out.into_iter()
            .filter_map(|event| match event {
                ModelEvent::Part { part, .. } => part.as_text().map(str::to_owned),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn nulls_of_absent_fields_are_removed_from_a_strict_answer() {
        assert_eq!(answer(&[r#"{"a": "x", "b": null}"#]), [r#"{"a":"x"}"#]);
        assert!(answer(&[r#"{"a": "x", "b": 3}"#]).is_empty());
        assert!(answer(&["Sorry, null."]).is_empty());
        assert!(
            answer(&["First, ", r#"{"a": "x", "b": null}"#]).is_empty(),
            "of two texts neither is the answer"
        );
    }

    #[test]
    fn the_option_of_a_tool_decides_whether_nulls_of_its_calls_are_removed() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        let is_restored = |own: Option<bool>, asked: bool| {
            let plan = Plan::compile("f", &schema, PlanOptions::default()).unwrap();
            let tool = ToolDefinition::new(plan, "Does it.").unwrap();
            let tool = match own {
                Some(own) => tool.configure(|options| options.strict(own)).unwrap(),
                None => tool,
            };
            let request = ModelRequest::default().with_tools([tool]).with_strict_tools(asked);
            let Some(mut restorer) = NullRestorer::new(Dialect::OpenAiStrict, &request) else { return false };
            let mut out = Vec::new();
            let part = Box::new(Part::tool_call("c", "f", r#"{"a": null}"#));
            restorer.push(ModelEvent::Part { content_index: 0, part }, &mut out);
            matches!(&out[..], [ModelEvent::Part { part, .. }] if part.as_tool_call().unwrap().args.text() == "{}")
        };
        for asked in [false, true] {
            assert!(is_restored(Some(true), asked));
            assert!(!is_restored(Some(false), asked));
            assert_eq!(is_restored(None, asked), asked);
        }
    }
}
