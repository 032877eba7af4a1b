//! Serves the runs of threads over HTTP.

mod attach;
mod client_tools;
mod drive;
mod earlier;
mod history;
mod log;
mod response;
mod settings;
mod thread;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Response;
use serde_json::Value;
use tokio::sync::OnceCell;

pub use response::UiBody;

use self::client_tools::ClientTools;
use self::settings::UiLimits;
use self::thread::UiThread;
use super::options::WhileBusy;
use super::request::{UiAnswer, check_id};
use super::{UiOptions, UiProtocol, UiRequest, UiRequestError};
use crate::message::{Part, UserMessage};
use crate::runtime::{Assistant, RunHandle};
use crate::tool::BoxFuture;
use crate::tool::registry::Registry;

type OpenThread = Arc<
    dyn Fn(String, String) -> BoxFuture<'static, Result<Assistant, Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Sync,
>;

/// A server for front ends. It runs an assistant for each thread, keeps the events of active runs, and lets several readers follow a run.
///
/// The server opens no port: the application passes the bodies of requests to the server, and sends the server's responses. The
/// application authenticates the caller, checks that the content type is JSON (an HTML form on another site cannot send this type), and
/// calls [`scoped`](Self::scoped).
///
/// ```
/// use agent::ui::{UiProtocol, UiServer};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let ui = UiServer::new(assistant);
/// let body = br#"{"id": "c1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}"#;
///
/// let mut response = ui.scoped("ann").post(UiProtocol::AiSdk, body).await;
/// assert_eq!(response.status(), 200);
/// let mut text = String::new();
/// while let Some(bytes) = response.body_mut().next().await {
///     text += std::str::from_utf8(&bytes)?;
/// }
/// assert!(text.contains(r#""delta":"Hello!""#) && text.ends_with("data: [DONE]\n\n"));
///
/// // Without a scope every request is refused.
/// assert_eq!(ui.post(UiProtocol::AiSdk, body).await.status(), 403);
///
/// // A browser that loads the page gets the history, and follows the run if one is active.
/// let ann = ui.scoped("ann");
/// assert_eq!(ann.messages(UiProtocol::AiSdk, "c1").await?.as_array().map(Vec::len), Some(2));
/// if ann.run("c1").is_none() {
///     println!("nothing to follow: {}", ann.attach(UiProtocol::AiSdk, "c1", None).await.status());
/// }
/// ui.disconnect();                                                            // the process stops
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it answers requests"]
pub struct UiServer {
    shared: Arc<ServerShared>,
    scope: Option<Arc<str>>,
}

/// Time in which a run of an earlier process must ask its question again, before the answer in the request is rejected.
const CONTINUE_WAIT: Duration = Duration::from_secs(10);

/// The prefix of a caller's scope (the key of the caller's threads). It distinguishes a caller with an empty name from the single user,
/// whose scope is empty.
const CALLER: &str = "caller ";

type Threads = HashMap<(Arc<str>, String), Arc<OnceCell<Arc<UiThread>>>>;

#[derive(Clone)]
struct ServerShared {
    assistant: Assistant,
    options: UiOptions,
    reconnect_time: Duration,
    limits: UiLimits,
    open: Option<OpenThread>,
    continues_runs: bool,
    threads: Arc<Mutex<Threads>>,
}

impl ServerShared {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        // Poisoning is ignored, because no code that can panic runs under this lock.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, scope: &Arc<str>, thread: &str) -> Option<Arc<UiThread>> {
        let cell = self.threads().get(&(scope.clone(), thread.to_owned())).cloned()?;
        cell.get().cloned()
    }

    async fn thread(&self, scope: &Arc<str>, thread: &str) -> Result<Arc<UiThread>, UiRequestError> {
        // The id is checked here, because the application may pass an unchecked id of the front end.
        check_id(thread, "thread")?;
        let (cell, forgotten) = {
            let mut threads = self.threads();
            let key = (scope.clone(), thread.to_owned());
            let forgotten =
                if threads.contains_key(&key) { None } else { self.make_room(scope, &mut threads) };
            (threads.entry(key).or_default().clone(), forgotten)
        };
        // The forgotten thread is dropped without the lock, because dropping its assistant may run code of the application.
        drop(forgotten);
        let open = || async {
            let assistant = match &self.open {
                None => Ok(self.assistant.fork()),
                Some(open) => {
                    let caller = scope.strip_prefix(CALLER).unwrap_or(scope);
                    open(caller.to_owned(), thread.to_owned()).await
                }
            };
            let assistant = assistant.map_err(|error| {
                let error = crate::error_text::with_sources(&*error);
                tracing::error!(%error, "the assistant of a thread cannot be opened");
                UiRequestError::Unavailable
            })?;
            Ok(Arc::new(UiThread::new(assistant, self.limits.log)))
        };
        cell.get_or_try_init(open).await.cloned()
    }

    /// If there are too many threads, removes the least recently used idle thread, and returns the thread. If this scope has more than a
    /// tenth of the allowed threads, only threads of this scope are removed.
    fn make_room(&self, scope: &Arc<str>, threads: &mut Threads) -> Option<Arc<OnceCell<Arc<UiThread>>>> {
        let max = self.limits.threads.max(1);
        if threads.len() >= max {
            // An empty cell that only this map holds belongs to a thread that could not be opened.
            threads.retain(|_, cell| cell.initialized() || Arc::strong_count(cell) > 1);
        }
        if threads.len() < max {
            return None;
        }
        let has_many = threads.keys().filter(|(of, _)| of == scope).count() > max / 10;
        let candidates = threads.iter().filter(|((of, _), _)| !has_many || of == scope);
        let idle = candidates.filter_map(|(key, cell)| Some((key, cell.get()?.idle_since()?)));
        let oldest: Option<(_, Instant)> = idle.min_by_key(|(_, since)| *since);
        let key = oldest.map(|(key, _)| key.clone())?;
        threads.remove(&key)
    }

    /// Returns an error if the scope has too many runs. The thread of the new run must be reserved, so that the new run counts.
    fn check_runs(&self, scope: &Arc<str>) -> Result<(), UiRequestError> {
        let max = self.limits.runs;
        if self.active_runs(scope) > max { Err(UiRequestError::TooManyRuns { max }) } else { Ok(()) }
    }

    fn active_runs(&self, scope: &Arc<str>) -> usize {
        let threads: Vec<_> = {
            let all = self.threads();
            let own = all.iter().filter(|((of, _), _)| of == scope);
            own.filter_map(|(_, cell)| cell.get().cloned()).collect()
        };
        threads.iter().filter(|thread| thread.is_busy()).count()
    }
}

impl UiServer {
    /// Creates a server. The assistant is the template of all threads.
    pub fn new(assistant: Assistant) -> Self {
        let shared = ServerShared {
            assistant,
            options: UiOptions::default(),
            reconnect_time: Duration::ZERO,
            limits: UiLimits::default(),
            open: None,
            continues_runs: false,
            threads: Arc::default(),
        };
        Self { shared: Arc::new(shared), scope: None }
    }

    /// Returns the server for one caller, who can read and continue only threads of the same caller. `caller` must identify an account of
    /// the application, and must not be a name that the front end sends.
    pub fn scoped(&self, caller: &str) -> UiServer {
        Self { shared: self.shared.clone(), scope: Some(format!("{CALLER}{caller}").into()) }
    }

    /// Responds to a request: begins a run, resumes a suspended run, adds a message to an active run, or shows a suspended run again. The
    /// response to a rejected request contains the error.
    pub async fn post(&self, protocol: UiProtocol, body: &[u8]) -> Response<UiBody> {
        match self.try_post(protocol, body).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(code = error.code(), "a request of a front end is rejected");
                error.into_response()
            }
        }
    }

    async fn try_post(&self, protocol: UiProtocol, body: &[u8]) -> Result<Response<UiBody>, UiRequestError> {
        let scope = self.scope()?;
        self.shared.limits.check_body(body)?;
        let mut request = UiRequest::decode(protocol, body)?;
        if request.regenerates {
            return Err(UiRequestError::Regenerate);
        }
        if request.prompt.is_none() && request.answers.is_empty() {
            return Err(UiRequestError::Empty);
        }
        let thread = self.shared.thread(scope, &request.thread).await?;
        let declared = if self.shared.options.client_tools {
            ClientTools::of(&request, thread.assistant.registry())?
        } else {
            None
        };
        if request.prompt.is_none() && thread.assistant.unfinished_run().is_some() {
            // The request may answer a question of a run that began in an earlier process. The run first has to continue until it asks the
            // question again.
            self.continue_unfinished(scope, &thread, declared.clone()).await?;
            thread.until_settled(CONTINUE_WAIT).await;
        }
        if let Some(response) = self.queue(&thread, protocol, &request)? {
            return Ok(response);
        }
        // If the front end only asks for the state of waiting calls, the response repeats the suspended run.
        let asks = |answer: &UiAnswer| matches!(answer, UiAnswer::Waiting { is_abandoned: false, .. });
        if request.prompt.is_none() && thread.suspended().is_some() && request.answers.iter().all(asks) {
            return self.attach_to(&thread, protocol, &request, None);
        }
        let reserved = thread.reserve()?;
        self.shared.check_runs(scope)?;
        let assistant = &thread.assistant;
        // A run resumes with the declared tools of the request that began it.
        let tools = if request.prompt.is_some() { declared } else { thread.client_tools().or(declared) };
        let names = tools.iter().flat_map(|tools| &tools.names);
        let names: Vec<String> = self.shared.options.browser.iter().chain(names).cloned().collect();
        request = request.with_browser_tools(names);
        let (prompt, is_resumed) = match (&request.prompt, thread.suspended()) {
            (Some(prompt), _) => {
                let prompt = prompt.clone();
                let prompt = match &request.context {
                    Some(context) => assistant.prompt(context.clone()).with_message(prompt),
                    None => assistant.prompt(prompt),
                };
                (prompt, false)
            }
            (None, Some(suspended)) => (assistant.resume(&suspended, request.decisions(&suspended)?), true),
            (None, None) => return Err(UiRequestError::NotPending),
        };
        let run = match &tools {
            Some(tools) => prompt.with_tools(tools.tools.clone()).stream(),
            None => prompt.stream(),
        };
        self.begin(reserved, protocol, &request, run, is_resumed, tools).await
    }

    fn shown_by(&self, thread: &UiThread) -> (Registry, UiOptions) {
        let options = self.shared.options.clone();
        match thread.client_tools() {
            Some(tools) => (tools.registry, options.run_in_browser(tools.names)),
            None => (thread.assistant.registry().clone(), options),
        }
    }

    /// Adds the message to the active run or rejects the request, as `UiOptions::while_busy` says. Returns `None` if no run is active.
    fn queue(
        &self,
        thread: &Arc<UiThread>,
        protocol: UiProtocol,
        request: &UiRequest,
    ) -> Result<Option<Response<UiBody>>, UiRequestError> {
        let Some(run) = thread.active_run() else { return Ok(None) };
        let busy = UiRequestError::Busy { run_id: run.run_id().to_owned() };
        let Some(mut prompt) = request.prompt.clone() else { return Err(busy) };
        if let Some(context) = &request.context {
            // The request's context and the prompt become one message, because a run may take one message of a queue at a time.
            prompt.content.insert(0, Part::text(format!("{}\n\n", context.text())));
        }
        let queue: fn(&RunHandle, UserMessage) = match self.shared.options.while_busy {
            WhileBusy::Reject => return Err(busy),
            WhileBusy::Steer => |run, prompt| drop(run.steer(prompt)),
            WhileBusy::FollowUp => |run, prompt| drop(run.follow_up(prompt)),
        };
        // The reader is added first, because a rejected request must not queue a message.
        let response = self.attach_to(thread, protocol, request, None)?;
        queue(&run, prompt);
        Ok(Some(response))
    }

    /// Lets a reader follow the run of a thread: sends the run so far, and then further chunks as they arrive. The status is 204 if the
    /// thread has no run that is active, is suspended, or ended less than a minute ago. The status is also 204 if an earlier process began
    /// the run with tools that the front end declared. Only a request that declares these tools continues the run.
    ///
    /// `after` is the id of the last chunk that the client received. The client then receives only later chunks. If some events after this
    /// chunk are no longer kept, the client receives the whole run from its beginning.
    pub async fn attach(&self, protocol: UiProtocol, thread: &str, after: Option<&str>) -> Response<UiBody> {
        self.try_attach(protocol, thread, after).await.unwrap_or_else(UiRequestError::into_response)
    }

    async fn try_attach(
        &self,
        protocol: UiProtocol,
        thread: &str,
        after: Option<&str>,
    ) -> Result<Response<UiBody>, UiRequestError> {
        let scope = self.scope()?;
        let known = if self.shared.continues_runs && self.shared.open.is_some() {
            let opened = self.shared.thread(scope, thread).await?;
            self.continue_unfinished(scope, &opened, None).await?;
            // The run continues only after a request has declared the front end's tools. Until then, the response is empty.
            if opened.assistant.unfinished_run().is_some() && !opened.is_busy() {
                return Ok(response::empty());
            }
            opened
        } else {
            let Some(known) = self.shared.known(scope, thread) else { return Ok(response::empty()) };
            known
        };
        let mut request = UiRequest::new(thread);
        // The front end that reconnects is most likely the front end that began the run, so it supports the same version of AG-UI.
        request.is_current = known.is_current();
        self.attach_to(&known, protocol, &request, after)
    }

    /// Returns the conversation of a thread as a list of messages of the protocol, for a browser page that loads.
    ///
    /// # Errors
    /// Returns an error if the server has no [scope](Self::scoped), or if the thread cannot be opened.
    pub async fn messages(&self, protocol: UiProtocol, thread: &str) -> Result<Value, UiRequestError> {
        let scope = self.scope()?;
        // Without a store, a thread that is not in memory has no messages. Reading must not create the thread.
        if self.shared.open.is_none() && self.shared.known(scope, thread).is_none() {
            return Ok(Value::Array(Vec::new()));
        }
        let thread = self.shared.thread(scope, thread).await?;
        Ok(self.history(protocol, &thread))
    }

    /// Returns the active run of a thread, if there is one, to steer or cancel it.
    pub fn run(&self, thread: &str) -> Option<RunHandle> {
        self.shared.known(self.scope.as_ref()?, thread)?.active_run()
    }

    /// Ends the responses of all readers, for a server that stops. Clients may reconnect to another server.
    pub fn disconnect(&self) {
        let threads: Vec<_> = self.shared.threads().values().filter_map(|cell| cell.get().cloned()).collect();
        for thread in threads {
            thread.disconnect("restart");
        }
    }

    fn scope(&self) -> Result<&Arc<str>, UiRequestError> {
        self.scope.as_ref().ok_or(UiRequestError::NotScoped)
    }
}

impl fmt::Debug for UiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiServer").field("is_scoped", &self.scope.is_some()).finish_non_exhaustive()
    }
}
