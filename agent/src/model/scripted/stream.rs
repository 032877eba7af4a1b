//! The stream of a scripted reply. An asynchronous function may have to create the reply first.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::reply::{Chunks, ReplyEvents, ScriptedReply};
use super::{ScriptState, ScriptedModel, lock};
use crate::model::{ModelError, ModelEvent, ModelRequest};
use crate::tool::BoxFuture;

pub(super) enum ScriptStream {
    Waiting { reply: BoxFuture<'static, ScriptedReply>, request: Box<ModelRequest>, player: Player },
    Playing(ReplyEvents),
}

pub(super) struct Player {
    state: Arc<Mutex<ScriptState>>,
    chunks: Chunks,
}

impl Player {
    fn play(&self, reply: ScriptedReply, request: &ModelRequest) -> ReplyEvents {
        let mut reply = reply.resolve(request);
        reply.number_calls(&mut lock(&self.state).calls);
        reply.play(self.chunks)
    }
}

impl ScriptStream {
    pub(super) fn waiting(
        reply: BoxFuture<'static, ScriptedReply>,
        request: &ModelRequest,
        model: &ScriptedModel,
    ) -> Self {
        Self::Waiting { reply, request: Box::new(request.clone()), player: model.player() }
    }

    pub(super) fn playing(reply: ScriptedReply, request: &ModelRequest, model: &ScriptedModel) -> Self {
        Self::Playing(model.player().play(reply, request))
    }
}

impl ScriptedModel {
    fn player(&self) -> Player {
        Player { state: self.state.clone(), chunks: self.chunks }
    }
}

impl Stream for ScriptStream {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut *self {
                Self::Playing(events) => return Pin::new(events).poll_next(cx),
                Self::Waiting { reply, request, player } => {
                    let reply = ready!(reply.as_mut().poll(cx));
                    let events = player.play(reply, request);
                    *self = Self::Playing(events);
                }
            }
        }
    }
}
