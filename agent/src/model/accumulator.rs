//! Builds the message of a reply from its events, and checks the order of the events.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{ModelError, ModelEvent, ModelInfo};
use crate::message::{AssistantMessage, Content, Part, StopReason, ToolCall};

/// The reply so far. Text grows in place, so a reply of n deltas takes time linear in its length.
#[derive(Debug)]
pub(super) struct Accumulator {
    /// Boxed, because the message is large and is moved when the reply ends.
    message: Box<AssistantMessage>,
    /// For each part, whether its end is still to come.
    open: Vec<bool>,
    /// The ids of the calls so far. The set stays empty while the reply has only one call and the provider sent an id for it.
    call_ids: HashSet<String>,
    /// For each repeated id, the number to append next. Without it, n equal ids would take n² steps.
    next_numbers: HashMap<String, usize>,
    stopped: bool,
}

impl Accumulator {
    pub(super) fn new(info: &ModelInfo) -> Self {
        let ModelInfo { provider, api, model, .. } = info.clone();
        let message = AssistantMessage { provider, api, model, ..AssistantMessage::default() };
        Self {
            message: Box::new(message),
            open: Vec::new(),
            call_ids: HashSet::new(),
            next_numbers: HashMap::new(),
            stopped: false,
        }
    }

    pub(super) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Returns a copy of the message without its parts, which are large.
    #[cfg(feature = "runtime")]
    pub(super) fn without_parts(&mut self) -> AssistantMessage {
        let parts = std::mem::take(&mut self.message.content);
        let message = (*self.message).clone();
        self.message.content = parts;
        message
    }

    /// Sets the model that gives the reply. The additional fields of `author` record how this model was chosen.
    pub(super) fn set_author(&mut self, author: &AssistantMessage) {
        let AssistantMessage { provider, api, model, extra, .. } = author.clone();
        (self.message.provider, self.message.api, self.message.model) = (provider, api, model);
        self.message.extra.extend(extra);
    }

    pub(super) fn into_message(self) -> Box<AssistantMessage> {
        self.message
    }

    /// Returns the message so far, without the calls whose arguments are not complete.
    pub(super) fn into_partial(mut self) -> Box<AssistantMessage> {
        let mut open = self.open.into_iter();
        self.message.content.retain(|part| !(open.next() == Some(true) && part.as_tool_call().is_some()));
        self.message
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Applies an event of the adapter to the message. Appends the resulting events for the reader of the stream to `out`.
    /// [`ModelStream::new`](super::ModelStream::new) describes how the resulting events differ from the adapter's events.
    pub(super) fn push(
        &mut self,
        event: ModelEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        use ModelEvent as E;
        let may_follow_stop = matches!(event, E::Usage { .. } | E::PartData { .. } | E::MessageData { .. });
        if self.stopped && !may_follow_stop {
            return Err(ModelError::protocol("the reply went on after its end"));
        }
        match event {
            E::ReplyStart { ref response_id, ref model } => {
                if let Some(id) = response_id.as_ref().filter(|id| !id.is_empty()) {
                    self.message.response_id = Some(id.clone());
                }
                // `self.message.model` keeps the requested name, because provider data is sent back only to the model with this name.
                if let Some(model) = model.as_ref().filter(|model| !model.is_empty()) {
                    if self.message.model.is_empty() {
                        self.message.model.clone_from(model);
                    }
                    self.message.response_model =
                        Some(model.clone()).filter(|model| *model != self.message.model);
                }
                out.push_back(event);
            }
            E::TextStart { content_index } => self.start_part(content_index, Part::text(""), out)?,
            E::ThinkingStart { content_index } => self.start_part(content_index, Part::thinking(""), out)?,
            E::ToolCallStart { content_index, id, name } => {
                self.start_part(content_index, Part::tool_call(id, name, ""), out)?;
            }
            E::TextDelta { content_index, .. } => {
                if content_index == self.open.len() {
                    self.start_part(content_index, Part::text(""), out)?;
                }
                self.append(event, out)?;
            }
            E::ThinkingDelta { content_index, .. } => {
                if content_index == self.open.len() {
                    self.start_part(content_index, Part::thinking(""), out)?;
                }
                self.append(event, out)?;
            }
            E::ToolCallDelta { .. } => self.append(event, out)?,
            // Argument events of an adapter are dropped, because `ModelStream::with_argument_events` derives them from the text of the
            // arguments.
            E::ToolCallArgument { .. } => {}
            E::TextEnd { content_index }
            | E::ThinkingEnd { content_index }
            | E::ToolCallEnd { content_index } => {
                self.part(content_index)?;
                self.end_part(content_index, out);
            }
            E::Part { content_index, part } => self.complete_part(content_index, *part, out)?,
            E::PartData { content_index, ref data } => {
                self.part(content_index)?.provider_data = Some(Box::new(data.clone()));
                out.push_back(event);
            }
            E::MessageData { ref data } => {
                self.message.provider_data = Some(Box::new(data.clone()));
                out.push_back(event);
            }
            E::Usage { ref usage } => {
                self.message.usage.clone_from(usage);
                out.push_back(event);
            }
            E::Stop { reason, detail, raw } => self.stop(reason, detail, raw, out),
        }
        Ok(())
    }

    /// Appends a delta to an unfinished part, as a fast path for the most frequent events. Returns `false` and changes nothing if
    /// [`push`](Self::push) has to process the event.
    pub(super) fn append_to_open(&mut self, event: &ModelEvent) -> bool {
        let (Some(index), Some(delta)) = (event.content_index(), event.delta()) else { return false };
        if self.stopped || delta.is_empty() || self.open.get(index) != Some(&true) {
            return false;
        }
        match (self.message.content.get_mut(index).map(|part| &mut part.content), event) {
            (Some(Content::Text(text)), ModelEvent::TextDelta { .. })
            | (Some(Content::Thinking { text, .. }), ModelEvent::ThinkingDelta { .. }) => {
                text.push_str(delta);
            }
            (Some(Content::ToolCall(call)), ModelEvent::ToolCallDelta { .. }) => call.args.push_str(delta),
            _ => return false,
        }
        true
    }

    fn part(&mut self, index: usize) -> Result<&mut Part, ModelError> {
        let missing = || ModelError::protocol(format!("part {index} of the reply was not begun"));
        self.message.content.get_mut(index).ok_or_else(missing)
    }

    fn start_part(
        &mut self,
        index: usize,
        mut part: Part,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        if index != self.open.len() {
            let next = self.open.len();
            return Err(ModelError::protocol(format!(
                "part {index} of the reply began where part {next} is next"
            )));
        }
        if let Content::ToolCall(call) = &mut part.content {
            call.id = self.unique_id(std::mem::take(&mut call.id));
        }
        out.extend(start_event(index, &part.content));
        // Room is reserved for exactly one part, because most replies have one part and parts are large.
        if index == 0 {
            self.message.content.reserve_exact(1);
        }
        self.message.content.push(part);
        self.open.push(true);
        Ok(())
    }

    /// Returns an id that no other call of the reply has, because results are matched to calls by id, and not every provider sends unique
    /// ids.
    fn unique_id(&mut self, id: String) -> String {
        let mut others = self.message.tool_calls().peekable();
        if !id.is_empty() && others.peek().is_none() {
            return id;
        }
        if self.call_ids.is_empty() {
            self.call_ids.extend(others.map(|call| call.id.clone()));
        }
        let base = if id.is_empty() { "call" } else { &id };
        if !id.is_empty() && self.call_ids.insert(id.clone()) {
            return id;
        }
        let next = self.next_numbers.entry(base.to_owned()).or_insert(0);
        *next = (*next).max(self.open.len() + 1);
        loop {
            let unique = format!("{base}_{next}");
            *next += 1;
            if self.call_ids.insert(unique.clone()) {
                return unique;
            }
        }
    }

    fn append(&mut self, event: ModelEvent, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let (Some(index), Some(delta)) = (event.content_index(), event.delta()) else { return Ok(()) };
        let is_open = self.open.get(index).is_some_and(|open| *open);
        let part = self.part(index)?;
        match (&mut part.content, &event) {
            _ if !is_open => {
                return Err(ModelError::protocol(format!("part {index} of the reply went on after its end")));
            }
            (Content::Text(text), ModelEvent::TextDelta { .. })
            | (Content::Thinking { text, .. }, ModelEvent::ThinkingDelta { .. }) => text.push_str(delta),
            (Content::ToolCall(call), ModelEvent::ToolCallDelta { .. }) => call.args.push_str(delta),
            _ => return Err(ModelError::protocol(format!("part {index} of the reply changed its kind"))),
        }
        if !delta.is_empty() {
            out.push_back(event);
        }
        Ok(())
    }

    /// Appends `{` to the empty arguments of an unfinished call. Otherwise, the call would look complete, because empty arguments mean
    /// `{}`.
    fn leave_open(&mut self, index: usize, out: &mut VecDeque<ModelEvent>) {
        let is_open = self.open.get(index) == Some(&true);
        let Some(Content::ToolCall(call)) = self.message.content.get_mut(index).map(|part| &mut part.content)
        else {
            return;
        };
        if is_open && call.args.text() == "{}" {
            call.args.push_str("{");
            out.push_back(ModelEvent::ToolCallDelta { content_index: index, delta: "{".to_owned() });
        }
    }

    fn end_part(&mut self, index: usize, out: &mut VecDeque<ModelEvent>) {
        let open = self.open.get_mut(index).map(std::mem::take);
        if let (Some(true), Some(part)) = (open, self.message.content.get(index)) {
            out.extend(end_event(index, &part.content));
        }
    }

    fn complete_part(
        &mut self,
        index: usize,
        part: Part,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        if index != self.open.len() {
            let kind = std::mem::discriminant(&self.part(index)?.content);
            if kind != std::mem::discriminant(&part.content) {
                return Err(ModelError::protocol(format!("part {index} of the reply changed its kind")));
            }
            self.end_part(index, out);
            let old = self.part(index)?;
            let id = old.as_tool_call().map(|call| call.id.clone());
            let is_told = end_event(index, &part.content).is_some() || *old == part;
            *old = part;
            // The call keeps the id of its start event, because listeners have already received that id.
            if let (Some(id), Content::ToolCall(call)) = (id, &mut old.content) {
                call.id = id;
            }
            if !is_told {
                out.push_back(ModelEvent::Part { content_index: index, part: Box::new(old.clone()) });
            }
            return Ok(());
        }
        let delta = match &part.content {
            Content::Text(text) => Some(ModelEvent::TextDelta { content_index: index, delta: text.clone() }),
            Content::Thinking { text, .. } => {
                Some(ModelEvent::ThinkingDelta { content_index: index, delta: text.clone() })
            }
            Content::ToolCall(call) => {
                let delta = call.args.text().to_owned();
                Some(ModelEvent::ToolCallDelta { content_index: index, delta })
            }
            _ => None,
        };
        if delta.is_none() {
            out.push_back(ModelEvent::Part { content_index: index, part: Box::new(part.clone()) });
        }
        self.start_part(index, part, out)?;
        out.extend(delta.filter(|delta| delta.delta() != Some("")));
        self.end_part(index, out);
        Ok(())
    }

    fn stop(
        &mut self,
        reason: StopReason,
        detail: Option<String>,
        raw: Option<String>,
        out: &mut VecDeque<ModelEvent>,
    ) {
        let is_broken = matches!(reason, StopReason::ContentFilter | StopReason::Error);
        for index in 0..self.open.len() {
            if is_broken {
                self.leave_open(index, out);
            }
            self.end_part(index, out);
        }
        self.stopped = true;
        // Some providers report `stop` even when the model calls tools.
        let asks = self.message.tool_calls().next().is_some();
        let reason = if reason == StopReason::Stop && asks { StopReason::ToolUse } else { reason };
        self.message.stop_reason = reason.clone();
        self.message.error.clone_from(&detail);
        self.message.provider_stop_reason.clone_from(&raw);
        out.push_back(ModelEvent::Stop { reason, detail, raw });
    }
}

fn start_event(content_index: usize, content: &Content) -> Option<ModelEvent> {
    Some(match content {
        Content::Text(_) => ModelEvent::TextStart { content_index },
        Content::Thinking { .. } => ModelEvent::ThinkingStart { content_index },
        Content::ToolCall(ToolCall { id, name, .. }) => {
            ModelEvent::ToolCallStart { content_index, id: id.clone(), name: name.clone() }
        }
        _ => return None,
    })
}

fn end_event(content_index: usize, content: &Content) -> Option<ModelEvent> {
    Some(match content {
        Content::Text(_) => ModelEvent::TextEnd { content_index },
        Content::Thinking { .. } => ModelEvent::ThinkingEnd { content_index },
        Content::ToolCall(_) => ModelEvent::ToolCallEnd { content_index },
        _ => return None,
    })
}
