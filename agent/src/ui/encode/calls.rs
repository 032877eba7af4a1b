//! The calls of a run, as the front end knows them.
#![cfg_attr(
    not(all(feature = "ui-ag-ui", feature = "ui-ai-sdk")),
    allow(dead_code, reason = "each format reads its own part")
)]

use std::collections::HashMap;

use super::super::view::{ShownEnd, cut};
use crate::message::ToolArguments;
use crate::tool::outcome::ToolResult;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct UiCall {
    /// The id of the call in events. Several calls of a run may have the same id.
    pub(super) id: String,
    pub(super) unique_id: String,
    pub(super) tool: String,
    pub(super) args: Option<ToolArguments>,
    pub(super) progress: CallProgress,
    /// The number of bytes of the arguments that were sent, or cut off, so far.
    pub(super) streamed: usize,
    /// The id of the open approval request, or of the first question, that the front end has received.
    pub(super) request: Option<String>,
    /// The id of the approval request that the run announced, which the front end may not have received yet.
    pub(super) wanted_request: Option<String>,
    /// The ids of the questions that the front end was asked. The first id is also in `request`.
    pub(super) questions: Vec<String>,
    pub(super) was_denied: bool,
    pub(super) was_edited: bool,
    /// The end of a call whose arguments a person edited. It waits for the result message, which contains the edited arguments.
    pub(super) held_end: Option<Box<CallEnding>>,
    pub(super) is_provider: bool,
    /// For a call that a sub-agent made: the id of the main run's call within which the sub-agent runs.
    pub(super) within: Option<String>,
    /// For a call that a sub-agent made: the id of the sub-agent's run, if the front end knows it.
    pub(super) child: Option<String>,
    /// Whether the call was sent to the front end as a tool call of the protocol. Calls that sub-agents make may be sent as data instead.
    pub(super) is_part: bool,
    /// The id of the reply with the call, or an empty text if the reply is unknown.
    pub(super) message_id: String,
}

impl UiCall {
    /// Returns the name of the tool. Returns `None` for a call of a sub-agent, because only the sub-agent has the definition.
    pub(super) fn own_tool(&self) -> Option<&str> {
        self.within.is_none().then_some(&*self.tool)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallProgress {
    Streaming,
    Complete,
    Started,
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct CallEnding {
    pub(super) shown: ShownEnd,
    pub(super) outcome: String,
    pub(super) code: Option<String>,
}

impl CallEnding {
    /// Returns `None` if the call is deferred, because a deferred call has not ended.
    pub(super) fn new(shown: ShownEnd, result: &ToolResult) -> Option<Self> {
        let outcome = result.outcome.kind()?.as_str().to_owned();
        Some(Self { shown, outcome, code: result.outcome.code().map(|code| cut(code, 64)) })
    }
}

/// All calls so far, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(super) struct UiCalls {
    list: Vec<UiCall>,
    /// The number of calls with each id.
    used: HashMap<String, usize>,
    /// A position before which all calls have ended.
    settled: usize,
}

impl UiCalls {
    pub(super) fn add(&mut self, id: &str, tool: &str, message_id: &str) -> usize {
        let used = self.used.entry(id.to_owned()).or_default();
        *used += 1;
        let unique_id = if *used == 1 { id.to_owned() } else { format!("{id}~{used}") };
        self.list.push(UiCall {
            id: id.to_owned(),
            unique_id,
            tool: tool.to_owned(),
            args: None,
            progress: CallProgress::Streaming,
            streamed: 0,
            request: None,
            wanted_request: None,
            questions: Vec::new(),
            was_denied: false,
            was_edited: false,
            held_end: None,
            is_provider: false,
            within: None,
            child: None,
            is_part: true,
            message_id: message_id.to_owned(),
        });
        self.list.len() - 1
    }

    /// Returns the position of the last call with this id that has not ended.
    pub(super) fn open(&self, id: &str) -> Option<usize> {
        let is_open = |call: &UiCall| call.id == id && call.progress < CallProgress::Ended;
        self.list.get(self.settled..)?.iter().rposition(is_open).map(|at| at + self.settled)
    }

    pub(super) fn unstarted(&self, id: &str) -> Option<usize> {
        self.open(id)
            .filter(|&at| self.list.get(at).is_some_and(|call| call.progress < CallProgress::Started))
    }

    pub(super) fn held(&self, id: &str) -> Option<usize> {
        self.list.iter().rposition(|call| call.id == id && call.held_end.is_some())
    }

    pub(super) fn get(&self, at: usize) -> Option<&UiCall> {
        self.list.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut UiCall> {
        self.list.get_mut(at)
    }

    /// Returns the positions of the calls that have not ended, except the calls that were sent as data.
    pub(super) fn open_calls(&mut self) -> Vec<usize> {
        let mut open = self.open_calls_and_data();
        open.retain(|&at| self.list.get(at).is_some_and(|call| call.is_part));
        open
    }

    /// Returns the positions of the calls that have not ended, including the calls that were sent as data.
    pub(super) fn open_calls_and_data(&mut self) -> Vec<usize> {
        let is_over = |call: &UiCall| call.progress == CallProgress::Ended && call.held_end.is_none();
        while self.list.get(self.settled).is_some_and(is_over) {
            self.settled += 1;
        }
        let rest = self.list.iter().enumerate().skip(self.settled);
        rest.filter(|(_, call)| call.progress < CallProgress::Ended).map(|(at, _)| at).collect()
    }

    pub(super) fn held_calls(&self) -> Vec<usize> {
        let all = self.list.iter().enumerate();
        all.filter(|(_, call)| call.held_end.is_some()).map(|(at, _)| at).collect()
    }
}
