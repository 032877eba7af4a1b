//! What a run begins with, and what is beside its loop.

use super::Decisions;
use super::cache::ResultCache;
use super::growing::Growing;
use super::listener::Listeners;
use super::queue::MessageQueue;
use crate::loop_core::AgentLoop;
use crate::message::{HandOff, Message};

/// What a run begins with.
pub(super) enum Begin {
    Prompts(Vec<Message>),
    /// The conversation as it is.
    Continue,
    Resume {
        run: Box<(AgentLoop, Decisions)>,
        /// What is said to it before its next request.
        messages: Vec<Message>,
    },
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
