//! The part of a reply that has arrived, for code that reads a run while it streams.

use std::sync::Arc;

use crate::message::{AssistantMessage, Content, Message, Part, ToolCall};
use crate::model::ModelEvent;

pub(super) struct GrowingReply {
    /// The message without its parts.
    message: Arc<Message>,
    /// The parts in order of first appearance, each with its index.
    parts: Vec<(usize, Part)>,
}

impl GrowingReply {
    pub(super) fn new(message: Arc<Message>) -> Self {
        // Room for one part is reserved, because most replies have one part, and parts are large.
        Self { message, parts: Vec::with_capacity(1) }
    }

    pub(super) fn grow(&mut self, event: &ModelEvent) {
        let begun = match event {
            ModelEvent::TextStart { .. } => Part::text(""),
            ModelEvent::ThinkingStart { .. } => Part::thinking(""),
            ModelEvent::ToolCallStart { id, name, .. } => Part::tool_call(id, name, ""),
            ModelEvent::Part { part, .. } => *part.clone(),
            _ => return self.append(event),
        };
        let Some(index) = event.content_index() else { return };
        match self.parts.iter_mut().find(|(at, _)| *at == index) {
            Some((_, part)) => *part = begun,
            None => self.parts.push((index, begun)),
        }
    }

    fn append(&mut self, event: &ModelEvent) {
        let (Some(index), Some(delta)) = (event.content_index(), event.delta()) else { return };
        // The search begins at the end, because nearly always the last part grows.
        let Some((_, part)) = self.parts.iter_mut().rev().find(|(at, _)| *at == index) else { return };
        match &mut part.content {
            Content::Text(text) | Content::Thinking { text, .. } => text.push_str(delta),
            Content::ToolCall(ToolCall { args, .. }) => args.push_str(delta),
            _ => {}
        }
    }

    pub(super) fn message(&self) -> AssistantMessage {
        let mut message = self.message.as_assistant().cloned().unwrap_or_default();
        message.content = self.parts.iter().map(|(_, part)| part.clone()).collect();
        message
    }
}
