//! Notifications of a server.

use crate::Progress;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Watcher = Arc<dyn Fn(Progress) + Send + Sync>;

/// What a server notified about.
#[derive(Default)]
pub(super) struct News {
    changed: AtomicBool,
    watchers: Mutex<HashMap<ProgressToken, Watcher>>,
}

impl News {
    pub(super) fn list_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Whether the list changed since the last call of this method.
    pub(super) fn take_change(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Forwards the progress of a call until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken, watcher: Watcher) -> Watch {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), watcher);
        Watch { news: self.clone(), token }
    }

    fn progress(&self, param: &ProgressNotificationParam) {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = watchers.get(&param.progress_token).cloned();
        drop(watchers);
        if let Some(watcher) = watcher {
            watcher(progress(param));
        }
    }
}

/// The protocol's progress may be fractional; ours is integral. A total of at most one is counted in thousandths.
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

/// Forwards the progress of a call while it exists.
pub(super) struct Watch {
    news: Arc<News>,
    token: ProgressToken,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.news.watchers.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// Receives a server's notifications from `rmcp`.
pub(super) struct Listener(pub(super) Arc<News>);

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, param: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.progress(&param);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.list_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn progress_goes_to_its_call_alone_and_ends_with_it() {
        let news = Arc::new(News::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let token = |n| ProgressToken(NumberOrString::Number(n));
        let sink = seen.clone();
        let watch = news.watch(token(1), Arc::new(move |progress| sink.lock().unwrap().push(progress)));
        news.progress(&ProgressNotificationParam::new(token(1), 0.5).with_total(1.0));
        news.progress(&ProgressNotificationParam::new(token(2), 3.0));
        drop(watch);
        news.progress(&ProgressNotificationParam::new(token(1), 1.0));
        assert_eq!(*seen.lock().unwrap(), [Progress::new("").of(500, 1_000)]);
        news.list_changed();
        assert!(news.take_change() && !news.take_change());
    }
}
