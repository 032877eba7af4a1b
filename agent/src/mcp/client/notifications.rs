//! Handles the notifications and the questions of a server.

use super::forms::{elicit_result, form_question};
use crate::tool::context::ToolContext;
use crate::tool::progress::Progress;
use crate::tool::question::QuestionInput;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

#[derive(Default)]
pub(super) struct Notifications {
    changed: AtomicBool,
    listeners: Mutex<HashMap<ProgressToken, ProgressListener>>,
    /// The calls that the server has not answered, in the order in which they began.
    calls: Mutex<Vec<OpenServerCall>>,
    count: AtomicU64,
}

#[derive(Clone)]
struct OpenServerCall {
    number: u64,
    server: Arc<str>,
    context: ToolContext,
}

impl Notifications {
    pub(super) fn list_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    pub(super) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Calls the listener with the progress of a call until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken, listener: ProgressListener) -> ProgressGuard {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), listener);
        ProgressGuard { notifications: self.clone(), token }
    }

    /// Lets the server ask questions during this call, until the guard is dropped.
    pub(super) fn watch_questions(self: &Arc<Self>, server: &str, context: &ToolContext) -> QuestionGuard {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let call = OpenServerCall { number, server: server.into(), context: context.clone() };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        QuestionGuard { notifications: self.clone(), number }
    }

    /// Asks a person in the context of the newest call. The server's question does not say which call it belongs to.
    async fn ask(&self, params: ElicitRequestParams) -> QuestionInput {
        const KEY: &str = "question";
        let call = self.calls.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let (Some(call), Some(form)) = (call, form_question(KEY, params)) else {
            return QuestionInput::Decline;
        };
        let asked = call.context.ask_forms(&call.server, vec![form], None, false);
        let mut inputs = tokio::select! {
            inputs = asked => inputs,
            () = call.context.cancelled() => return QuestionInput::Cancel,
        };
        inputs.remove(KEY).unwrap_or(QuestionInput::Cancel)
    }

    fn progress(&self, param: &ProgressNotificationParam) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listeners.get(&param.progress_token).cloned();
        drop(listeners);
        if let Some(listener) = listener {
            listener(progress(param));
        }
    }
}

/// Converts progress to whole numbers. With a total of at most one, progress is a fraction, which is converted to thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn progress(param: &ProgressNotificationParam) -> Progress {
    let scale = if param.total.is_some_and(|total| total <= 1.0) { 1_000.0 } else { 1.0 };
    let message = param.message.clone().unwrap_or_default();
    let progress = Progress::new(message);
    match param.total {
        Some(total) => progress.of((param.progress * scale) as u64, (total * scale) as u64),
        None => progress.at((param.progress * scale) as u64),
    }
}

pub(super) struct ProgressGuard {
    notifications: Arc<Notifications>,
    token: ProgressToken,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.notifications.listeners.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

pub(super) struct QuestionGuard {
    notifications: Arc<Notifications>,
    number: u64,
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let mut calls = self.notifications.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls.iter().position(|call| call.number == self.number);
        let removed = at.map(|at| calls.remove(at));
        drop(calls);
        drop(removed);
    }
}

pub(super) struct NotificationHandler {
    pub(super) notifications: Arc<Notifications>,
    pub(super) asks: bool,
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        if self.asks {
            let modes = ElicitationCapability::default().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(modes);
        }
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let input = if self.asks { self.notifications.ask(request).await } else { QuestionInput::Decline };
        Ok(elicit_result(input))
    }

    async fn on_progress(&self, param: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.notifications.progress(&param);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.notifications.list_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn progress_reaches_only_its_call_and_ends_with_it() {
        let notifications = Arc::new(Notifications::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let token = |n| ProgressToken(NumberOrString::Number(n));
        let sink = seen.clone();
        let watch =
            notifications.watch(token(1), Arc::new(move |progress| sink.lock().unwrap().push(progress)));
        notifications.progress(&ProgressNotificationParam::new(token(1), 0.5).with_total(1.0));
        notifications.progress(&ProgressNotificationParam::new(token(2), 3.0));
        drop(watch);
        notifications.progress(&ProgressNotificationParam::new(token(1), 1.0));
        assert_eq!(*seen.lock().unwrap(), [Progress::new("").of(500, 1_000)]);
        notifications.list_changed();
        assert!(notifications.take_change() && !notifications.take_change());
    }
}
