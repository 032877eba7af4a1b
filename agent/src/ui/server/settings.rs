//! The settings of a server.

use std::sync::Arc;
use std::time::Duration;

use super::{ServerShared, UiServer};
use crate::runtime::Assistant;
use crate::tool::BoxFuture;
use crate::ui::{UiOptions, UiRequestError};

#[derive(Clone, Copy)]
pub(super) struct UiLimits {
    /// Maximum size of a request's body, in bytes.
    pub(super) body: usize,
    /// Maximum number of active runs of one caller.
    pub(super) runs: usize,
    pub(super) readers: usize,
    /// Maximum number of threads in memory. Threads with an active run or a reader are kept even above this number.
    pub(super) threads: usize,
    /// Maximum size of the kept events of a thread, in bytes.
    pub(super) log: usize,
    /// The time after which an idle stream receives a comment. `None` if there are no comments.
    pub(super) keep_alive: Option<Duration>,
}

impl Default for UiLimits {
    fn default() -> Self {
        let keep_alive = Some(Duration::from_secs(15));
        Self { body: 4 << 20, runs: 4, readers: 8, threads: 1000, log: 4 << 20, keep_alive }
    }
}

/// Settings of the server. A setter changes this value and its later clones, but not its earlier clones. All clones share their threads.
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

    /// Sets the options: which data of runs front ends receive, and what front ends may do.
    pub fn options(self, options: UiOptions) -> Self {
        self.set(|shared| shared.options = options)
    }

    /// Sets the time for which a run continues without a reader before it is cancelled, so that a reader can reconnect. By default, a run
    /// is cancelled at once: the server cannot distinguish a lost connection from a closed page or from a user who stops the reply.
    pub fn reconnect_time(self, time: Duration) -> Self {
        self.set(|shared| shared.reconnect_time = time)
    }

    /// Sets the function that creates the assistant of a thread from the name of the caller (see [`scoped`](Self::scoped)) and the id of
    /// the thread. By default, the assistant is a [fork](Assistant::fork), whose conversation is lost when the process ends. To keep
    /// conversations, open a [session](crate::AssistantBuilder::session) in this function. The assistant should have the same tools as the
    /// assistant of [`UiServer::new`].
    ///
    /// If the function fails, the error is logged, and the request is rejected.
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

    /// Continues runs that an earlier process of this server did not finish. The assistants of [`threads`](Self::threads) need a
    /// [session](crate::AssistantBuilder::session). A run continues when a front end reconnects ([`attach`](Self::attach)), or sends a
    /// decision or result. A suspended run asks again, under the same ids. A killed run continues as
    /// [after a crash](crate::store#after-a-crash).
    ///
    /// Call this method only if all requests of a thread are sent to one process: another process would take over an active run.
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

    /// Responds without a [scope](Self::scoped): every caller is the same user, and can read every thread.
    pub fn single_user(mut self) -> Self {
        self.scope = Some("".into());
        self
    }

    /// Sets the maximum size of a request's body, in bytes. Default and upper limit: 4 MiB.
    pub fn max_body(self, bytes: usize) -> Self {
        self.set(|shared| shared.limits.body = bytes)
    }

    /// Sets the maximum number of active runs of one [caller](Self::scoped). Default: 4.
    pub fn max_runs(self, runs: usize) -> Self {
        self.set(|shared| shared.limits.runs = runs)
    }

    /// Sets the maximum number of readers of one run. Default: 8.
    pub fn max_readers(self, readers: usize) -> Self {
        self.set(|shared| shared.limits.readers = readers)
    }

    /// Sets the maximum number of threads in memory. Default: 1000. Beyond this number, the least recently used thread without an active
    /// run and without readers is forgotten.
    pub fn max_threads(self, threads: usize) -> Self {
        self.set(|shared| shared.limits.threads = threads)
    }

    /// Sets the maximum size, in bytes, of the events that a thread keeps for readers that reconnect. Default: 4 MiB. Beyond this size,
    /// only the messages of the oldest events are kept. Events of active calls count, but are kept, except old progress and old events of
    /// sub-agents.
    pub fn max_log(self, bytes: usize) -> Self {
        self.set(|shared| shared.limits.log = bytes)
    }

    /// Sets the time after which an idle stream receives a comment, so that no proxy closes the stream. Default: 15 s. `None` turns
    /// comments off.
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
