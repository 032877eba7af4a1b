//! Writes the parts of a reply, as they arrive or as a whole.

use serde_json::{Value, json};

use super::super::chunk::ChunkWriter;
use super::super::view::{MAX_UNKNOWN, PROVIDER_FAILED, ShownEnd, file_of, start};
use super::UiEncoder;
use super::calls::{CallEnding, CallProgress};
use super::wire::{TextKind, UiPart, WireFormat};
use crate::message::{AssistantMessage, Content, Part, ProviderTool, ToolCall, Usage};
use crate::model::ModelEvent;

pub(super) struct OpenText {
    id: String,
    kind: TextKind,
    /// The number of bytes that were sent. The part is announced when its first bytes are sent.
    sent: usize,
    is_closed: bool,
}

impl UiEncoder {
    pub(super) fn reply_start(&mut self, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        self.close_texts(w, format);
        self.texts.clear();
        self.call_parts.clear();
        self.reply += 1;
        self.has_updates = false;
        self.message_id = format!("{}.{}", self.run_id, self.reply_name());
        format.reply_start(w, &self.message_id);
    }

    /// Returns the number of the turn, such as `3`. From the second reply of a turn on, the number of the reply follows: `3-2`.
    fn reply_name(&self) -> String {
        match self.reply {
            0 | 1 => self.turn.to_string(),
            n => format!("{}-{n}", self.turn),
        }
    }

    fn part_id(&self, index: usize) -> String {
        format!("{}.{index}", self.reply_name())
    }

    pub(super) fn update(
        &mut self,
        update: &ModelEvent,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        self.has_updates = true;
        match update {
            ModelEvent::TextDelta { content_index, delta } => {
                self.text(*content_index, TextKind::Text, delta, w, format);
            }
            ModelEvent::ThinkingDelta { content_index, delta } => {
                self.text(*content_index, TextKind::Reasoning, delta, w, format);
            }
            ModelEvent::TextEnd { content_index } | ModelEvent::ThinkingEnd { content_index } => {
                self.text_end(*content_index, w, format);
            }
            ModelEvent::ToolCallStart { content_index, id, name } => {
                self.call_part(*content_index, id, name, w, format);
            }
            ModelEvent::ToolCallDelta { content_index, delta } => {
                self.call_delta(*content_index, delta, w, format);
            }
            ModelEvent::Part { content_index, part } => self.part(*content_index, part, w, format),
            _ => {}
        }
    }

    pub(super) fn reply_end(
        &mut self,
        message: &AssistantMessage,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        if !self.has_updates {
            for (index, part) in message.content.iter().enumerate() {
                self.part(index, part, w, format);
            }
        }
        self.close_texts(w, format);
        for call in message.tool_calls() {
            if let Some(at) = self.calls.unstarted(&call.id) {
                self.complete_call(at, call, w, format);
            }
        }
        self.add_usage(message);
    }

    pub(super) fn add_usage(&mut self, message: &AssistantMessage) {
        let AssistantMessage { provider, model, usage, .. } = message;
        match self.by_model.iter_mut().find(|(of, name, _)| of == provider && name == model) {
            Some((_, _, sum)) => *sum += usage,
            None => self.by_model.push((provider.clone(), model.clone(), usage.clone())),
        }
    }

    pub(super) fn usage_by_model(&self) -> Option<Value> {
        let entry = |(provider, model, usage): &(String, String, Usage)| {
            let mut entry = self.view.usage(usage)?;
            for (key, name) in [("provider", provider), ("model", model)] {
                if !name.is_empty() {
                    entry[key] = json!(name);
                }
            }
            Some(entry)
        };
        let list: Vec<Value> = self.by_model.iter().filter_map(entry).collect();
        (!list.is_empty()).then(|| list.into())
    }

    fn text(
        &mut self,
        index: usize,
        kind: TextKind,
        delta: &str,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        if delta.is_empty() || (kind == TextKind::Reasoning && !self.view.options.reasoning) {
            return;
        }
        let id = self.part_id(index);
        let text =
            self.texts.entry(index).or_insert_with(|| OpenText { id, kind, sent: 0, is_closed: false });
        if text.is_closed {
            return;
        }
        if text.sent == 0 {
            format.text_start(w, kind, &text.id);
        }
        text.sent += delta.len();
        format.text_delta(w, kind, &text.id, delta);
    }

    fn text_end(&mut self, index: usize, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        if let Some(text) = self.texts.get_mut(&index)
            && !std::mem::replace(&mut text.is_closed, true)
        {
            format.text_end(w, text.kind, &text.id);
        }
    }

    pub(super) fn close_texts(&mut self, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        let indexes: Vec<usize> = self.texts.keys().copied().collect();
        for index in indexes {
            self.text_end(index, w, format);
        }
    }

    fn call_part(
        &mut self,
        index: usize,
        id: &str,
        tool: &str,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        // The id is empty only if the loop is driven without a `ModelStream`. Such a call is not announced until it starts.
        if id.is_empty() || self.call_parts.contains_key(&index) {
            return;
        }
        let at = self.calls.add(id, tool, &self.message_id);
        self.call_parts.insert(index, at);
        if let Some(call) = self.calls.get(at) {
            format.call_start(w, call);
        }
    }

    fn call_delta(
        &mut self,
        index: usize,
        delta: &str,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let Some(call) = self.call_parts.get(&index).and_then(|&at| self.calls.get_mut(at)) else { return };
        if call.progress > CallProgress::Streaming || !self.view.streams(&call.tool) {
            return;
        }
        let shown = if self.view.is_known(&call.tool) {
            delta
        } else {
            start(delta, MAX_UNKNOWN.saturating_sub(call.streamed))
        };
        if !shown.is_empty() {
            format.call_delta(w, call, shown);
        }
        // The whole delta counts, so that nothing is sent after a delta that was cut.
        call.streamed += delta.len();
    }

    /// Writes a complete part. If a text was already written in pieces, only the missing end is written.
    fn part(&mut self, index: usize, part: &Part, w: &mut ChunkWriter<'_>, format: &mut dyn WireFormat) {
        let kind = match &part.content {
            Content::Thinking { redacted: true, .. } => return,
            Content::Text(_) => Some(TextKind::Text),
            Content::Thinking { .. } => Some(TextKind::Reasoning),
            _ => None,
        };
        match &part.content {
            Content::Text(text) | Content::Thinking { text, .. } => {
                let Some(kind) = kind else { return };
                let sent = self.texts.get(&index).map_or(0, |text| text.sent);
                self.text(index, kind, text.get(sent..).unwrap_or_default(), w, format);
                self.text_end(index, w, format);
            }
            Content::ToolCall(call) => self.whole_call(index, call, w, format),
            Content::ProviderTool(tool) => self.provider_tool(index, tool, w, format),
            Content::Refusal(text) => {
                format.part(w, &self.part_id(index), &UiPart::Refusal(text));
            }
            content => {
                if let Some((url, media_type)) = file_of(content) {
                    let file = UiPart::File { url: &url, media_type: &media_type };
                    format.part(w, &self.part_id(index), &file);
                } else if let Some((uri, title, media_type)) = self.view.source_of(content) {
                    format.part(w, &self.part_id(index), &UiPart::Source { uri, title, media_type });
                }
            }
        }
    }

    fn whole_call(
        &mut self,
        index: usize,
        call: &ToolCall,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        self.call_part(index, &call.id, &call.name, w, format);
        let Some(&at) = self.call_parts.get(&index) else { return };
        if self.calls.get(at).is_some_and(|known| known.streamed == 0) {
            self.call_delta(index, call.args.text(), w, format);
        }
        self.complete_call(at, call, w, format);
    }

    /// Writes the call of a tool that the provider ran. The input and the output of the call may be in one part or in two parts.
    fn provider_tool(
        &mut self,
        index: usize,
        tool: &ProviderTool,
        w: &mut ChunkWriter<'_>,
        format: &mut dyn WireFormat,
    ) {
        let id = tool.id.clone().unwrap_or_else(|| format!("provider.{}", self.part_id(index)));
        let known = self.calls.open(&id);
        let at = known.unwrap_or_else(|| self.calls.add(&id, &tool.name, &self.message_id));
        let input = self.view.provider_input(tool);
        let Some(call) = self.calls.get_mut(at) else { return };
        if known.is_none() {
            call.is_provider = true;
            format.call_start(w, call);
            format.call_complete(w, call, &input);
            call.progress = CallProgress::Started;
            format.input(w, call, &input);
        }
        let Some(output) = &tool.output else { return };
        let shown = if tool.is_error {
            ShownEnd::Error(PROVIDER_FAILED.to_owned())
        } else {
            ShownEnd::Output(self.view.provider_output(output))
        };
        let outcome = if tool.is_error { "failed" } else { "completed" };
        let end = CallEnding { shown, outcome: outcome.to_owned(), code: None };
        format.call_end(w, call, &input, &end);
        call.progress = CallProgress::Ended;
    }
}
