//! The settings of a server.

use std::sync::Arc;
use std::time::Duration;

use super::{ServerShared, UiServer};
use crate::runtime::Assistant;
use crate::tool::BoxFuture;
use crate::ui::{UiOptions, UiRequestError};

/// Limits of a server.
#[derive(Clone, Copy)]
pub(super) struct UiLimits {
    /// Maximum size of a request's body, in bytes.
    pub(super) body: usize,
    /// Maximum number of active runs of one scope.
    pub(super) runs: usize,
    /// Maximum number of readers of one run.
    pub(super) readers: usize,
    /// Maximum number of threads in memory. Threads with an active run or a reader are kept even above this number.
    pub(super) threads: usize,
    /// Maximum size of the kept events of a thread, in bytes.
    pub(super) log: usize,
    /// The time after which an idle stream gets a comment.
    pub(super) keep_alive: Option<Duration>,
}

impl Default for UiLimits {
    fn default() -> Self {
        let keep_alive = Some(Duration::from_secs(15));
        Self { body: 4 << 20, runs: 4, readers: 8, threads: 1000, log: 4 << 20, keep_alive }
    }
}

/// Settings. A setter changes this value and clones that are made of it later, but not earlier clones. All clones share their threads.
///
/// ```
/// use agent::ui::{UiOptions, UiServer};
/// use agent::{Assistant, ScriptedModel};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::new(assistant)
///     .options(UiOptions::default().show_results())
///     .reconnect_time(Duration::from_secs(60))
///     .max_runs(2)
///     .max_readers(4)
///     .max_threads(100)
///     .max_body(1 << 20)
///     .max_log(1 << 20)
///     .keep_alive(Duration::from_secs(30))
///     .single_user();
/// # drop(ui); Ok(()) }
/// ```
impl UiServer {
    fn set(mut self, change: impl FnOnce(&mut ServerShared)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }

    /// Sets which parts of runs front ends receive.
    pub fn options(self, options: UiOptions) -> Self {
        self.set(|shared| shared.options = options)
    }

    /// Sets how long a run continues without a reader, before it is cancelled, so that a reader can reconnect. By default a run is
    /// cancelled at once, because the server cannot tell a page that loses its connection from one that is closed or whose user stops the
    /// reply.
    pub fn reconnect_time(self, time: Duration) -> Self {
        self.set(|shared| shared.reconnect_time = time)
    }

    /// Sets the function that creates the assistant of a thread from the scope and the id of the thread. By default the assistant is a
    /// [fork](Assistant::fork), whose conversation is lost when the process ends; to keep conversations, open a
    /// [session](crate::AssistantBuilder::session) in this function. The assistant should have the tools of the assistant that the server
    /// was created with.
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
    /// let ui = UiServer::new(template).threads(move |_scope, _thread| {
    ///     let assistant = for_all.fork();
    ///     async move { Ok(assistant) }
    /// });
    /// # drop(ui); Ok(()) }
    /// ```
    pub fn threads<F, Fut>(self, open: F) -> Self
    where
        F: Fn(String, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Assistant, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        self.set(|shared| {
            shared.open = Some(Arc::new(move |scope, thread| {
                let opening: BoxFuture<'static, _> = Box::pin(open(scope, thread));
                opening
            }));
        })
    }

    /// Continues runs of sessions that an earlier process of this server left: when a page comes back ([`attach`](Self::attach)), or
    /// sends a decision or result. The assistants of [`threads`](Self::threads) need a [session](crate::AssistantBuilder::session). A
    /// suspended run asks again, under the same ids; a run that was killed [continues](crate::store#after-a-crash).
    ///
    /// Use this only if all requests of a thread are sent to one process: another process would take over an active run.
    ///
    /// ```
    /// use agent::store::MemoryStore;
    /// use agent::ui::UiServer;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::new();                                         // a database in an application
    /// let model = ScriptedModel::new(["Hello!"]);
    /// let ui = UiServer::new(Assistant::builder(model.clone()).build()?)
    ///     .threads(move |scope, thread| {
    ///         let builder = Assistant::builder(model.clone()).store(store.clone());
    ///         async move { Ok(builder.session(format!("{scope}/{thread}")).await?) }
    ///     })
    ///     .continue_runs();
    /// # drop(ui); Ok(()) }
    /// ```
    pub fn continue_runs(self) -> Self {
        self.set(|shared| shared.continues_runs = true)
    }

    /// Answers without a [scope](Self::scoped): every caller is the same user, and reads every thread.
    pub fn single_user(mut self) -> Self {
        self.scope = Some("".into());
        self
    }

    /// Sets the maximum size of a body, 4 MiB by default and at most.
    pub fn max_body(self, bytes: usize) -> Self {
        self.set(|shared| shared.limits.body = bytes)
    }

    /// Sets how many runs of one scope may be active, 4 by default.
    pub fn max_runs(self, runs: usize) -> Self {
        self.set(|shared| shared.limits.runs = runs)
    }

    /// Sets how many readers one run may have, 8 by default.
    pub fn max_readers(self, readers: usize) -> Self {
        self.set(|shared| shared.limits.readers = readers)
    }

    /// Sets how many threads are kept in memory, 1000 by default. Beyond this number, the least recently used thread without an active run
    /// and without readers is forgotten.
    pub fn max_threads(self, threads: usize) -> Self {
        self.set(|shared| shared.limits.threads = threads)
    }

    /// Sets how many bytes of the events of a thread's run are kept for readers that reconnect, 4 MiB by default. Of older parts of the
    /// run, only the messages are kept, so these parts are shown without the progress, coercions and times of calls. The events of active
    /// calls count towards this limit, but are always kept.
    pub fn max_log(self, bytes: usize) -> Self {
        self.set(|shared| shared.limits.log = bytes)
    }

    /// Sets the time after which a stream without chunks gets a comment, so that no proxy closes it: 15 s by default. `None` sends none.
    pub fn keep_alive(self, after: impl Into<Option<Duration>>) -> Self {
        self.set(|shared| shared.limits.keep_alive = after.into())
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
