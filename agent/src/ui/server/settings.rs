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

impl Default for UiLimits {
    fn default() -> Self {
        let keep_alive = Some(Duration::from_secs(15));
        Self { body: 4 << 20, runs: 4, readers: 8, threads: 1000, log: 4 << 20, keep_alive }
    }
}

/// Settings. A setter changes this value and later clones of it, not earlier ones; all of them share their threads.
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

    /// Sets what front ends get to see.
    pub fn options(self, options: UiOptions) -> Self {
        self.set(|shared| shared.options = options)
    }

    /// Sets how long a run continues without a reader, so that one may come back; then it is cancelled. By default it is cancelled at
    /// once: a page that is closed, one that loses its connection and one whose user stops the reply look the same.
    pub fn reconnect_time(self, time: Duration) -> Self {
        self.set(|shared| shared.reconnect_time = time)
    }

    /// Sets where the assistant of a thread comes from: the function gets the scope and the thread. By default it is a
    /// [fork](Assistant::fork), whose conversation is lost with the process; open a [session](crate::AssistantBuilder::session) here to keep
    /// it. The assistant should have the tools of the one that the server was given.
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

    /// Sets how many threads are kept in memory, 1000 by default. Beyond that, the one that was used least recently is forgotten, unless it
    /// has an active run.
    pub fn max_threads(self, threads: usize) -> Self {
        self.set(|shared| shared.limits.threads = threads)
    }

    /// Sets how many bytes of the events of a thread's run are kept for readers that come back, 4 MiB by default. Of older parts the
    /// messages are kept, from which the run can still be shown, but not the progress, coercions and times of its calls. Calls that are
    /// active count, and are kept whole.
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
