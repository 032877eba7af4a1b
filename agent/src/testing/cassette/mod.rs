//! Recorded replies of models.

mod compare;
mod exchange;
mod file;
mod scrub;
mod secrets;

use crate::message::AssistantMessage;
use crate::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx,
};
use compare::{differences, matches, nearest};
use exchange::RecordedExchange;
use file::{MAX_OUTPUT, Tape, WINDOW, request_json};
use futures_core::Stream;
use scrub::Scrubber;
use secrets::SecretValues;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

/// The name of the environment variable that makes [`Cassette::open`] record.
const VARIABLE: &str = "AGENT_CASSETTES";

/// A model that replays a file with recorded replies of another model, or records such a file. Clones share the replies: each reply is
/// played only once.
///
/// The JSON file is independent of the provider, readable, and meant to be committed to a repository. Record a conversation with a real
/// model once, and the test replays it offline, with the same result every time. Each recorded reply is played once, for the request it was
/// recorded with, in any order. Any other request is an error, which shows the most similar recorded request and its differences.
///
/// ```
/// use agent::testing::Cassette;
/// use agent::{Assistant, ScriptedModel, model::reply, tool, tools};
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: i64) -> i64 {
///     n * 2
/// }
///
/// # #[cfg(feature = "runtime")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("agent-doc-{}", std::process::id()));
/// # let path = folder.join("double.json");
/// # // Any model; a real one in your tests: `|| agent::model("anthropic/claude-sonnet-5")`.
/// # let script = || ScriptedModel::new([reply().tool_call("double", r#"{"n": 21}"#), reply().text("It is 42.")]);
/// # let recording = Cassette::record(&path, script());
/// # Assistant::builder(recording).tools(tools![double]).build()?.prompt("Double 21.").await?;
/// // Plays the file; with `AGENT_CASSETTES=record cargo test` it asks the model, and writes the file.
/// let model = Cassette::open(&path, || Ok::<_, std::io::Error>(script()))?;
/// let assistant = Assistant::builder(model.clone()).tools(tools![double]).build()?;
/// assert_eq!(assistant.prompt("Double 21.").await?.text(), "It is 42.");
/// model.assert_played();
///
/// // Another prompt is another request: the run fails, and says where the two differ.
/// let assistant = Assistant::builder(Cassette::play(&path)?).tools(tools![double]).build()?;
/// let error = assistant.prompt("Double 22.").await.unwrap_err().to_string();
/// assert!(error.contains("Double 21.") && error.contains("Double 22."), "{error}");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(()) }
/// # #[cfg(not(feature = "runtime"))]
/// # fn main() {}
/// ```
///
/// # Contents
/// For each request, the file contains the system prompt, the messages, the tools and the settings that are set. For each reply, it
/// contains the complete message with its usage, or the error. Messages that an exchange shares with an earlier exchange are written once.
/// Replies are replayed whole, because the pieces in which they arrived are not recorded.
///
/// # Secrets
/// The file contains the conversation: the texts of people, models and tools, except for the secrets described here. Review a recording
/// before you commit it.
///
/// The file has `[secret]` instead of arguments with `#[arg(secret)]`. Secrets of four or more characters are also replaced in other
/// texts, except in names, ids and the definitions of tools. If any tool has secret arguments, the arguments of calls to unknown tools are
/// left out.
///
/// On replay, `[secret]` matches any text. The tool receives a substitute: `"[secret]"`, or another value that the parameter accepts, such
/// as a number. A refused call is refused again, and the report about the refusal is not compared. The run fails, and shows the
/// difference, if a function of `#[arg(validate)]` refuses the substitute, or if the result of a tool depends on the secret.
///
/// A cassette never receives keys in headers. Before anything is written or compared, `[scrubbed]` replaces text that looks like a key
/// (`sk-…`, `Bearer …`, a JWT and the like), and texts and numbers in fields with names such as `api_key` or `password`, also in JSON
/// within a text. `[scrubbed]` also replaces the values of environment variables whose names end in `_KEY`, `_TOKEN`, `_SECRET` or
/// `_PASSWORD`, if the values have 12 or more bytes. Add your own secrets with [`secret`](Self::secret) and [`scrub`](Self::scrub). On
/// replay, a tool that was called with a replaced value receives `[scrubbed]`.
#[derive(Clone)]
pub struct Cassette {
    settings: Arc<CassetteSettings>,
    info: ModelInfo,
    state: Arc<Mutex<CassetteState>>,
}

#[derive(Clone)]
struct CassetteSettings {
    path: PathBuf,
    scrubber: Scrubber,
}

struct CassetteState {
    tape: Tape,
    played: Vec<bool>,
    /// The model that is recorded; `None` on replay.
    source: Option<Arc<dyn Model>>,
    secrets: SecretValues,
}

impl Cassette {
    /// Replays the file. If the environment variable `AGENT_CASSETTES` is `record`, records the file anew with the model that `make`
    /// creates.
    ///
    /// # Errors
    /// Returns an error if the file does not exist or is not a cassette, if the variable is neither `record` nor `play`, or if the model
    /// cannot be created.
    pub fn open<M, E>(
        path: impl Into<PathBuf>,
        make: impl FnOnce() -> Result<M, E>,
    ) -> Result<Self, ModelError>
    where
        M: Model + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match std::env::var(VARIABLE).as_deref() {
            Ok("record") => {
                let model = make().map_err(|error| {
                    let source = error.into();
                    unusable(format!("the model to record could not be created: {source}"))
                        .with_source(source)
                })?;
                Ok(Self::record(path, model))
            }
            Ok("" | "play") | Err(_) => Self::play(path),
            Ok(other) => {
                Err(unusable(format!("{VARIABLE} is `{other}`: set it to `record` or `play`, or unset it")))
            }
        }
    }

    /// Replays the file.
    ///
    /// ```
    /// use agent::testing::Cassette;
    ///
    /// let error = Cassette::play("no/such/file.json").unwrap_err();
    /// assert!(error.to_string().contains("AGENT_CASSETTES=record"));
    /// ```
    ///
    /// # Errors
    /// Returns an error if the file does not exist or is not a cassette.
    pub fn play(path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        let tape = Tape::read(&path)?;
        let info = tape.info();
        let played = vec![false; tape.exchanges.len()];
        let state = CassetteState { tape, played, source: None, secrets: SecretValues::default() };
        Ok(Self::with_state(path, info, state))
    }

    /// Sends requests to `model`, and writes each exchange to the file when its reply ends, completely or with an error. The first exchange
    /// replaces the previous contents of the file.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::testing::Cassette;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join(format!("agent-doc-model-{}.json", std::process::id()));
    /// let model = Cassette::record(&path, ScriptedModel::new(["Hello!"]));
    /// assert!(model.is_recording() && model.is_empty());
    /// model.call(&StepCx::new(), &ModelRequest::default()).await?;
    /// assert_eq!(model.len(), 1);
    ///
    /// let model = Cassette::play(&path)?;
    /// assert!(!model.is_recording());
    /// assert_eq!(model.call(&StepCx::new(), &ModelRequest::default()).await?.text(), "Hello!");
    /// model.assert_played();                           // fails where a recorded reply was not asked for
    /// # std::fs::remove_file(&path)?;
    /// # Ok(()) }
    /// ```
    pub fn record(path: impl Into<PathBuf>, model: impl Model + 'static) -> Self {
        let info = model.info().clone();
        let tape = Tape::new(&model);
        let source: Option<Arc<dyn Model>> = Some(Arc::new(model));
        let state = CassetteState { tape, played: Vec::new(), source, secrets: SecretValues::default() };
        Self::with_state(path.into(), info, state)
    }

    fn with_state(path: PathBuf, info: ModelInfo, state: CassetteState) -> Self {
        let settings = Arc::new(CassetteSettings { path, scrubber: Scrubber::new() });
        Self { settings, info, state: Arc::new(Mutex::new(state)) }
    }

    /// Replaces this text with `[scrubbed]` in all requests and replies. Call this method before the first request.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::testing::Cassette;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join(format!("agent-doc-secret-{}.json", std::process::id()));
    /// let model = Cassette::record(&path, ScriptedModel::new(["Welcome."])).secret("hunter2");
    /// model.call(&StepCx::new(), &ModelRequest::new([Message::user("My word is hunter2.")])).await?;
    /// let file = std::fs::read_to_string(&path)?;
    /// assert!(file.contains("My word is [scrubbed]."), "{file}");
    /// # std::fs::remove_file(&path)?;
    /// # Ok(()) }
    /// ```
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.settings).scrubber.add_secret(&secret.into());
        self
    }

    /// Applies `change` to every text of a request before the request is written or compared. `change` can replace, for example, dates,
    /// paths and host names that differ between runs. Call this method before the first request. Applying the change twice must give the
    /// same result as applying it once. Replies are not changed.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::message::Message;
    /// use agent::model::{Model as _, ModelRequest, StepCx};
    /// use agent::testing::Cassette;
    ///
    /// /// Dates differ from day to day.
    /// fn undated(text: &str) -> String {
    ///     let words = text.split(' ').map(|word| if word.starts_with("2026-") { "[date]" } else { word });
    ///     words.collect::<Vec<_>>().join(" ")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join(format!("agent-doc-scrub-{}.json", std::process::id()));
    /// let ask = |today: &str| ModelRequest::new([Message::user("Is it warm?")]).with_system(format!("Today is {today} ."));
    /// let recording = Cassette::record(&path, ScriptedModel::new(["No."])).scrub(undated);
    /// recording.call(&StepCx::new(), &ask("2026-11-22")).await?;
    /// let playing = Cassette::play(&path)?.scrub(undated);
    /// assert_eq!(playing.call(&StepCx::new(), &ask("2026-11-23")).await?.text(), "No.");
    /// # std::fs::remove_file(&path)?;
    /// # Ok(()) }
    /// ```
    pub fn scrub(mut self, change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.settings).scrubber.add_change(Arc::new(change));
        self
    }

    /// Returns the number of exchanges in the cassette, including those that were played.
    pub fn len(&self) -> usize {
        self.lock().tape.exchanges.len()
    }

    /// Returns whether the cassette has no exchanges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the replies of a model are being recorded.
    pub fn is_recording(&self) -> bool {
        self.lock().source.is_some()
    }

    /// Asserts that every recorded reply was requested. While recording, it asserts nothing.
    ///
    /// # Panics
    /// Panics with the numbers of the exchanges that were not requested, counted from 1.
    #[track_caller]
    pub fn assert_played(&self) {
        let state = self.lock();
        let left: Vec<usize> =
            (1..).zip(&state.played).filter(|(_, played)| !**played).map(|(number, _)| number).collect();
        assert!(
            state.source.is_some() || left.is_empty(),
            "exchanges {left:?} of {} in `{}` were not requested",
            state.tape.exchanges.len(),
            self.settings.path.display()
        );
    }

    fn lock(&self) -> MutexGuard<'_, CassetteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replay(&self, mut request: Value) -> Result<AssistantMessage, ModelError> {
        let mut state = self.lock();
        let CassetteState { tape, played, .. } = &mut *state;
        tape.adapt(&mut request, &self.settings.scrubber);
        let same = |exchange: &&RecordedExchange| matches(&exchange.request, &request);
        let next = (0..)
            .zip(&tape.exchanges)
            .find(|(at, exchange)| same(exchange) && !played.get(*at).copied().unwrap_or(true));
        let Some((at, exchange)) = next else {
            return Err(self.miss(tape, &request, tape.exchanges.iter().any(|exchange| same(&exchange))));
        };
        if let Some(played) = played.get_mut(at) {
            *played = true;
        }
        exchange.reply()
    }

    fn miss(&self, tape: &Tape, request: &Value, is_known: bool) -> ModelError {
        let (path, count) = (self.settings.path.display(), tape.exchanges.len());
        let message = if is_known {
            format!(
                "the reply to this request in cassette `{path}` was played already: the run makes more requests than the recorded one"
            )
        } else {
            let requests = tape.exchanges.iter().map(|exchange| &exchange.request);
            match nearest(requests, request) {
                None => format!("cassette `{path}` is empty"),
                Some((number, recorded)) => format!(
                    "cassette `{path}` has no reply to this request. Of {count} recorded, number {number} is the nearest; it differs in\n{}\n\
                     If the change is intended, record again with {VARIABLE}=record",
                    differences(recorded, request)
                ),
            }
        };
        unusable(message)
    }
}

impl Model for Cassette {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let (mut asked, source) = {
            let mut state = self.lock();
            state.secrets.add_request(request);
            let mut asked = request_json(request, &state.secrets);
            // Secrets are removed before the scrubber runs. The scrubber changes JSON within texts, so a secret that contains JSON would
            // not be found afterwards.
            if state.source.is_some() {
                state.secrets.clean_request(&mut asked);
            }
            (asked, state.source.clone())
        };
        self.settings.scrubber.clean(&mut asked);
        match source {
            None => {
                let reply = self.replay(asked);
                let replied = std::future::ready(reply);
                ModelStream::from_reply(cx, &self.info, replied).with_argument_events(request)
            }
            Some(source) => {
                // The outer stream emits the argument events, so the source must not emit them as well.
                let plain = ModelRequest { argument_events: false, ..request.clone() };
                let events = source.stream(cx, &plain);
                ModelStream::new(
                    cx,
                    &self.info,
                    Recording { events, request: Some(asked), model: self.clone() },
                )
                .with_argument_events(request)
            }
        }
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn context_window(&self) -> Option<u64> {
        self.lock().tape.tokens(WINDOW)
    }

    fn max_output(&self) -> Option<u64> {
        self.lock().tape.tokens(MAX_OUTPUT)
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette")
            .field("path", &self.settings.path)
            .field("exchanges", &self.len())
            .finish_non_exhaustive()
    }
}

/// A reply that is recorded at its end, whether the reply is complete or fails.
struct Recording {
    events: ModelStream,
    /// The request; `None` once the exchange is recorded.
    request: Option<Value>,
    model: Cassette,
}

impl Recording {
    fn record(&mut self, end: Result<(), &ModelError>) -> Result<(), ModelError> {
        let Some(request) = self.request.take() else { return Ok(()) };
        let mut state = self.model.lock();
        let scrubber = &self.model.settings.scrubber;
        let exchange = match end {
            Ok(()) => {
                let reply = state.secrets.add_reply(self.events.partial());
                let mut exchange = RecordedExchange::of_reply(request, &reply);
                state.secrets.clean(&mut exchange);
                exchange.clean(scrubber);
                state.secrets.restore(&mut exchange, &reply);
                exchange
            }
            Err(error) => {
                let mut exchange = RecordedExchange::of_error(request, error);
                exchange.clean(scrubber);
                exchange
            }
        };
        let CassetteState { tape, secrets, .. } = &mut *state;
        tape.exchanges.push(exchange);
        // A secret of this call may also occur in an earlier exchange, for example in the prompt. So all exchanges are cleaned.
        for exchange in &mut tape.exchanges {
            secrets.clean(exchange);
        }
        state.tape.write(&self.model.settings.path).map_err(|error| {
            let text = format!("the cassette could not be written: {error}");
            ModelError::new(ModelErrorKind::Other, text).with_source(error)
        })
    }
}

impl Stream for Recording {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(Pin::new(&mut self.events).poll_next(cx)) {
            Some(Ok(event)) => Poll::Ready(Some(Ok(event))),
            Some(Err(error)) => {
                let error = match self.record(Err(&error)) {
                    Ok(()) => error,
                    Err(unwritten) => unwritten.with_source(error),
                };
                Poll::Ready(Some(Err(error)))
            }
            None => Poll::Ready(self.record(Ok(())).err().map(Err)),
        }
    }
}

fn unusable(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Other, message).with_code("cassette").with_retryable(false)
}

fn not_a_cassette(path: &Path, reason: impl fmt::Display) -> ModelError {
    unusable(format!("`{}` is not a cassette: {reason}", path.display()))
}
