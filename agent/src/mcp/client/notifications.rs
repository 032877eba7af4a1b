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
use tokio::sync::watch;

type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

#[derive(Default)]
pub(super) struct Notifications {
    changed: AtomicBool,
    listeners: Mutex<HashMap<ProgressToken, WatchedProgress>>,
    /// The calls that the server has not answered, in the order in which they began.
    calls: watch::Sender<Vec<OpenServerCall>>,
    count: AtomicU64,
}

struct WatchedProgress {
    listener: ProgressListener,
    /// Whether a number of this call was a fraction, or its total was at most 1. From then on, the numbers of the call are given in
    /// thousandths, because small steps would be lost in whole numbers.
    in_thousandths: bool,
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
        let watched = WatchedProgress { listener, in_thousandths: false };
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), watched);
        ProgressGuard { notifications: self.clone(), token }
    }

    /// Lets the server ask questions during this call, until the guard is dropped.
    pub(super) fn watch_questions(self: &Arc<Self>, server: &str, context: &ToolContext) -> QuestionGuard {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let call = OpenServerCall { number, server: server.into(), context: context.clone() };
        self.calls.send_modify(|calls| calls.push(call));
        QuestionGuard { notifications: self.clone(), number }
    }

    /// Asks a person in the context of the newest call. The server's question does not say which call it belongs to, so the question ends
    /// when no call is open. If calls of several runs are open, the question is declined, because the runs may belong to different
    /// persons.
    async fn ask(&self, params: ElicitRequestParams) -> QuestionInput {
        const KEY: &str = "question";
        let mut calls = self.calls.subscribe();
        let call = {
            let calls = calls.borrow();
            let run = calls.first().and_then(|call| call.context.run_id());
            let is_of_one_run = run.is_some() && calls.iter().all(|call| call.context.run_id() == run);
            calls.last().filter(|_| calls.len() == 1 || is_of_one_run).cloned()
        };
        let (Some(call), Some(form)) = (call, form_question(KEY, params)) else {
            return QuestionInput::Decline;
        };
        let asked = call.context.ask_forms(&call.server, vec![form], None, false);
        let ended = async { drop(calls.wait_for(Vec::is_empty).await) };
        let mut inputs = tokio::select! {
            inputs = asked => inputs,
            () = call.context.cancelled() => return QuestionInput::Cancel,
            () = ended => return QuestionInput::Cancel,
        };
        inputs.remove(KEY).unwrap_or(QuestionInput::Cancel)
    }

    fn progress(&self, param: &ProgressNotificationParam) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = listeners.get_mut(&param.progress_token) else { return };
        let is_fraction = |number: f64| number.fract() != 0.0;
        watched.in_thousandths |= is_fraction(param.progress)
            || param.total.is_some_and(|total| total <= 1.0 || is_fraction(total));
        let (listener, scale) =
            (watched.listener.clone(), if watched.in_thousandths { 1_000.0 } else { 1.0 });
        drop(listeners);
        listener(progress(param, scale));
    }
}

/// Converts progress to whole numbers: multiplies its numbers by `scale`, and rounds them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn progress(param: &ProgressNotificationParam, scale: f64) -> Progress {
    let progress = Progress::new(param.message.clone().unwrap_or_default());
    let whole = |number: f64| (number * scale).round() as u64;
    match param.total {
        Some(total) => progress.of(whole(param.progress), whole(total)),
        None => progress.at(whole(param.progress)),
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
        // The call is dropped after the lock is released.
        let mut removed = None;
        self.notifications.calls.send_modify(|calls| {
            let at = calls.iter().position(|call| call.number == self.number);
            removed = at.map(|at| calls.remove(at));
        });
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
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !self.asks {
            return Ok(elicit_result(QuestionInput::Decline));
        }
        let input = tokio::select! {
            input = self.notifications.ask(request) => input,
            // The server no longer waits for the answer.
            () = context.ct.cancelled() => QuestionInput::Cancel,
        };
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
    use crate::tool::BoxFuture;
    use crate::tool::asking::AskRules;
    use crate::tool::question::Question;
    use rmcp::model::NumberOrString;
    use serde_json::json;
    use std::future::pending;
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

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

    #[test]
    fn fractions_of_progress_are_kept_and_numbers_still_grow() {
        let notifications = Arc::new(Notifications::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let token = ProgressToken(NumberOrString::Number(1));
        let sink = seen.clone();
        let listener = Arc::new(move |progress: Progress| sink.lock().unwrap().push(progress.done));
        let _watch = notifications.watch(token.clone(), listener);
        for (progress, total) in [(1.0, Some(4.0)), (1.57, Some(4.0)), (2.0, Some(4.0)), (2.5, None)] {
            let param = ProgressNotificationParam::new(token.clone(), progress);
            notifications.progress(&match total {
                Some(total) => param.with_total(total),
                None => param,
            });
        }
        assert_eq!(*seen.lock().unwrap(), [1, 1_570, 2_000, 2_500].map(Some));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_ends_with_the_last_open_call() {
        let notifications = Arc::new(Notifications::default());
        let answerer = Arc::new(|_: Question| -> BoxFuture<'static, QuestionInput> { Box::pin(pending()) });
        let rules = AskRules { answerer: Some(answerer), ..AskRules::default() };
        let context = ToolContext::new().with_ask_rules(rules).with_run_id("r");
        let calls = [1, 2].map(|_| notifications.watch_questions("docs", &context));
        let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        let params = json!({"message": "Are you sure?", "requestedSchema": schema});
        let asked = notifications.ask(serde_json::from_value(params).unwrap());
        let ending = async {
            for call in calls {
                sleep(Duration::from_secs(30)).await;
                drop(call);
            }
        };
        let began = tokio::time::Instant::now();
        let (input, ()) = tokio::join!(timeout(Duration::from_secs(90), asked), ending);
        assert_eq!((input, began.elapsed().as_secs()), (Ok(QuestionInput::Cancel), 60));
    }

    #[tokio::test]
    async fn a_question_is_declined_while_calls_of_several_runs_are_open() {
        let notifications = Arc::new(Notifications::default());
        let context = |run: &str| {
            let context = ToolContext::new();
            let context = context.on_question(|_| async { QuestionInput::Accept(json!({"sure": true})) });
            context.with_run_id(run)
        };
        let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        let params = json!({"message": "Are you sure?", "requestedSchema": schema});
        let accepted = QuestionInput::Accept(json!({"sure": true}));
        let asked = || notifications.ask(serde_json::from_value(params.clone()).unwrap());
        let _ann = notifications.watch_questions("docs", &context("ann's"));
        assert_eq!(asked().await, accepted);
        let bob = notifications.watch_questions("docs", &context("bob's"));
        assert_eq!(asked().await, QuestionInput::Decline);
        drop(bob);
        assert_eq!(asked().await, accepted);
    }
}
