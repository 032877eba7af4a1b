//! What a run begins with, and what is beside its loop.

use super::Decisions;
use super::cache::ResultCache;
use super::growing::Growing;
use super::listener::Listeners;
use super::queue::MessageQueue;
use crate::loop_core::{AgentLoop, RecordedTurn};
use crate::message::{HandOff, Message};

/// What a run begins with.
pub(super) enum Begin {
    Prompts(Vec<Message>),
    /// Calls that were made elsewhere, behind what was said to the model before.
    Recorded {
        turn: RecordedTurn,
        messages: Vec<Message>,
    },
    /// The conversation as it is.
    Continue,
    Resume {
        run: Box<(AgentLoop, Decisions)>,
        /// What is said to it before its next request.
        messages: Vec<Message>,
    },
}

impl Begin {
    /// The calls that were made elsewhere; what is left are prompts.
    pub(super) fn take_recorded(&mut self) -> Option<RecordedTurn> {
        let Self::Recorded { turn, messages } = self else { return None };
        let (turn, messages) = (std::mem::take(turn), std::mem::take(messages));
        *self = Self::Prompts(messages);
        Some(turn)
    }
}

/// The state of an assistant beside its loop.
pub(super) struct Rest<'a> {
    pub(super) steering: &'a mut MessageQueue,
    pub(super) follow_ups: &'a mut MessageQueue,
    pub(super) listeners: &'a Listeners,
    pub(super) hand_off: &'a mut HandOff,
    pub(super) cache: &'a mut ResultCache,
    pub(super) growing: &'a mut Option<Box<Growing>>,
}
