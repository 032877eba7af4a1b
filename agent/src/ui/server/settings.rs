//! Options of a server.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{OpenThread, ServerShared, UiServer};
use crate::runtime::Assistant;
use crate::tool::BoxFuture;
use crate::ui::{UiOptions, UiRequestError};

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct UiLimits {
    /// Bytes of a body.
    pub(super) body: usize,
    /// Active runs of one scope.
    pub(super) runs: usize,
    /// Readers of one run.
    pub(super) readers: usize,
    /// Threads that are kept in memory without a run.
    pub(super) threads: usize,
    /// Bytes of the events of a thread.
    pub(super) log: usize,
    /// The time after which an idle stream gets a comment.
    pub(super) keep_alive: Option<Duration>,
}

/// Builds a [`UiServer`].
///
/// ```
/// use agent::ui::{UiOptions, UiServer};
/// use agent::{Assistant, ScriptedModel};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::builder(assistant)
///     .options(UiOptions::default().show_results())
///     .reconnect_time(Duration::from_secs(60))
///     .max_runs(2)
///     .max_readers(4)
///     .max_threads(100)
///     .max_body(1 << 20)
///     .max_log(1 << 20)
///     .keep_alive(Duration::from_secs(30))
///     .single_user()
///     .build();
/// # drop(ui); Ok(()) }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct UiServerBuilder {
    assistant: Assistant,
    options: UiOptions,
    reconnect_time: Duration,
    limits: UiLimits,
    open: Option<OpenThread>,
    continues_runs: bool,
    is_single_user: bool,
}

impl UiServerBuilder {
    pub(super) fn new(assistant: Assistant) -> Self {
        let keep_alive = Some(Duration::from_secs(15));
        let limits = UiLimits { body: 4 << 20, runs: 4, readers: 8, threads: 1000, log: 4 << 20, keep_alive };
        let (options, reconnect_time) = (UiOptions::default(), Duration::ZERO);
        let (continues_runs, is_single_user) = (false, false);
        Self { assistant, options, reconnect_time, limits, open: None, continues_runs, is_single_user }
    }

    /// Sets what front ends get to see.
    pub fn options(mut self, options: UiOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how long a run continues without a reader, so that one may come back; then it is cancelled. By default it is cancelled at
    /// once: a page that is closed, one that loses its connection and one whose user stops the reply look the same.
    pub fn reconnect_time(mut self, time: Duration) -> Self {
        self.reconnect_time = time;
        self
    }

    /// Sets where the assistant of a thread comes from: the function gets the scope and the thread. By default it is a
    /// [fork](Assistant::fork), whose conversation is lost with the process; open a [session](crate::AssistantBuilder::session) here to keep
    /// it. The assistant should have the tools of the one that the builder was given.
    ///
    /// An error is logged, and the request is rejected.
    ///
    /// ```
    /// use agent::ui::UiServer;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let template = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let for_all = template.clone();
    /// let ui = UiServer::builder(template).threads(move |_scope, _thread| {
    ///     let assistant = for_all.fork();
    ///     async move { Ok(assistant) }
    /// });
    /// # drop(ui.build()); Ok(()) }
    /// ```
    pub fn threads<F, Fut>(mut self, open: F) -> Self
    where
        F: Fn(String, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Assistant, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        self.open = Some(Arc::new(move |scope, thread| {
            let opening: BoxFuture<'static, _> = Box::pin(open(scope, thread));
            opening
        }));
        self
    }

    /// Continues runs of sessions that an earlier process of this server left: when a page comes back ([`attach`](UiServer::attach)), or
    /// sends a decision or result. The assistants of [`threads`](Self::threads) need a [session](crate::AssistantBuilder::session). A run that
    /// waits asks again, under the same ids; one that was killed [continues](crate::store#after-a-crash).
    ///
    /// Only for servers that send all requests of a thread to one process: another one would take over a run that is active.
    ///
    /// ```
    /// use agent::store::MemoryStore;
    /// use agent::ui::UiServer;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::new();                                         // a database in an application
    /// let model = ScriptedModel::new(["Hello!"]);
    /// let ui = UiServer::builder(Assistant::builder(model.clone()).build()?)
    ///     .threads(move |scope, thread| {
    ///         let builder = Assistant::builder(model.clone()).store(store.clone());
    ///         async move { Ok(builder.session(format!("{scope}/{thread}")).await?) }
    ///     })
    ///     .continue_runs()
    ///     .build();
    /// # drop(ui); Ok(()) }
    /// ```
    pub fn continue_runs(mut self) -> Self {
        self.continues_runs = true;
        self
    }

    /// Answers without a [scope](UiServer::scoped): every caller is the same user, and reads every thread.
    pub fn single_user(mut self) -> Self {
        self.is_single_user = true;
        self
    }

    /// Sets the maximum size of a body, 4 MiB by default and at most.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.limits.body = bytes;
        self
    }

    /// Sets how many runs of one scope may be active, 4 by default.
    pub fn max_runs(mut self, runs: usize) -> Self {
        self.limits.runs = runs;
        self
    }

    /// Sets how many readers one run may have, 8 by default.
    pub fn max_readers(mut self, readers: usize) -> Self {
        self.limits.readers = readers;
        self
    }

    /// Sets how many threads are kept in memory, 1000 by default. Beyond that, the one that was used least recently is forgotten, unless it
    /// has an active run.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.limits.threads = threads;
        self
    }

    /// Sets how many bytes of the events of a thread's run are kept for readers that come back, 4 MiB by default. Of older parts the
    /// messages are kept, from which the run can still be shown, but not the progress, coercions and times of its calls. Calls that are
    /// active count, and are kept whole.
    pub fn max_log(mut self, bytes: usize) -> Self {
        self.limits.log = bytes;
        self
    }

    /// Sets the time after which a stream without chunks gets a comment, so that no proxy closes it: 15 s by default. `None` sends none.
    pub fn keep_alive(mut self, after: impl Into<Option<Duration>>) -> Self {
        self.limits.keep_alive = after.into();
        self
    }

    /// Builds the server.
    pub fn build(self) -> UiServer {
        let Self { assistant, options, reconnect_time, limits, open, continues_runs, is_single_user } = self;
        let shared = ServerShared {
            assistant,
            options,
            reconnect_time,
            limits,
            open,
            continues_runs,
            threads: Mutex::new(HashMap::new()),
        };
        UiServer { shared: Arc::new(shared), scope: is_single_user.then(|| Arc::from("")) }
    }
}

impl fmt::Debug for UiServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiServerBuilder")
            .field("reconnect_time", &self.reconnect_time)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl UiLimits {
    pub(super) fn check_body(&self, body: &[u8]) -> Result<(), UiRequestError> {
        if body.len() > self.body {
            return Err(UiRequestError::TooLarge { max: self.body });
        }
        Ok(())
    }
}
