//! Strict schemas ask for null where a parameter is left out; here it is left out again.

use std::collections::BTreeMap;

use crate::args::Plan;
use crate::message::{Content, Part, ProviderData};
use crate::model::{ModelEvent, ModelRequest};
use crate::schema::{Dialect, restore_nulls};
use crate::tool::dialect::tools_in_dialect;

/// Rewrites the calls of tools that were sent with a strict schema, when they are complete.
pub(super) struct NullRestorer {
    dialect: Dialect,
    /// The tools that were sent so.
    plans: Vec<Plan>,
    calls: BTreeMap<usize, Part>,
}

impl NullRestorer {
    /// None if there is nothing to rewrite.
    pub(super) fn new(dialect: Dialect, request: &ModelRequest) -> Option<Self> {
        if dialect != Dialect::OpenAiStrict || !request.strict_tools {
            return None;
        }
        let rendered = tools_in_dialect(&request.tools, dialect);
        let strict = request.tools.iter().zip(rendered).filter(|(_, rendered)| rendered.strict);
        let plans: Vec<Plan> = strict.map(|(tool, _)| tool.plan().clone()).collect();
        (!plans.is_empty()).then(|| Self { dialect, plans, calls: BTreeMap::new() })
    }

    /// Another attempt begins.
    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }

    /// The event, and before it the last word on the calls that it ends.
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
                if let Some(part) = self.calls.get_mut(content_index) {
                    part.provider_data = Some(data.clone());
                }
            }
            ModelEvent::ToolCallEnd { content_index } => out.extend(self.restored(*content_index)),
            ModelEvent::Part { content_index, part } if part.as_tool_call().is_some() => {
                self.calls.insert(*content_index, part.clone());
                let last = self.restored(*content_index);
                out.extend([last.unwrap_or(event)]);
                return;
            }
            ModelEvent::Stop { .. } => {
                let open: Vec<usize> = self.calls.keys().copied().collect();
                out.extend(open.into_iter().filter_map(|index| self.restored(index)));
            }
            _ => {}
        }
        out.extend([event]);
    }

    /// The whole call, if something in it stands for nothing.
    fn restored(&mut self, content_index: usize) -> Option<ModelEvent> {
        let mut part = self.calls.remove(&content_index)?;
        let Content::ToolCall(call) = &mut part.content else { return None };
        let plan = self.plans.iter().find(|plan| plan.name() == call.name)?;
        let restored = restore_nulls(plan, self.dialect, call.args.text());
        if restored == call.args.text() {
            return None;
        }
        call.args = restored.into_owned().into();
        Some(ModelEvent::Part { content_index, part })
    }
}
