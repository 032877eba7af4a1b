//! A model that consists of several models: if one model fails, the next model is asked.

mod breaker;
mod record;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use breaker::Breaker;
use record::FallbackRecord;
pub use record::ModelAttempt;
use stream::FallbackEvents;

use super::{Capabilities, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, StepCx};
use crate::tool::BoxFuture;
use crate::tool::executor::Executor;

/// The kinds of errors after which the next model is asked, unless [`Fallback::on`] sets others.
const DEFAULT_KINDS: [ModelErrorKind; 5] = [
    ModelErrorKind::Overloaded,
    ModelErrorKind::RateLimit,
    ModelErrorKind::Connection,
    ModelErrorKind::Timeout,
    ModelErrorKind::Server,
];

/// A model that asks several models in order until one of them gives a reply.
///
/// ```
/// use agent::message::Message;
/// use agent::model::{Fallback, Model as _, ModelError, ModelErrorKind, ModelRequest, StepCx};
/// use agent::ScriptedModel;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::model::ModelError> {
/// // In a program: `Fallback::new([agent::model("anthropic/claude-sonnet-5")?, agent::model("openai-responses/gpt-5.4")?])`.
/// let busy = ModelError::new(ModelErrorKind::Overloaded, "busy");
/// let model = Fallback::new([ScriptedModel::from_fn(move |_| busy.clone().into()), ScriptedModel::new(["Hello!"])]);
/// assert_eq!(model.call(&StepCx::new(), &ModelRequest::new([Message::user("Hi")])).await?.text(), "Hello!");
/// # Ok(()) }
/// ```
///
/// * **Errors.** The next model is asked after [`Overloaded`](ModelErrorKind::Overloaded), [`RateLimit`](ModelErrorKind::RateLimit),
///   [`Connection`](ModelErrorKind::Connection), [`Timeout`](ModelErrorKind::Timeout) and [`Server`](ModelErrorKind::Server), or after the
///   kinds that [`on`](Self::on) names. After any other error, the reply fails with this error, because a bad key or an invalid request
///   would otherwise go unnoticed.
/// * **In mid-stream.** If a reply fails before any of its content arrives, the next model is asked. Emitted content cannot be withdrawn,
///   so a later failure is the error of the reply. Thinking is content, too.
/// * **Attempts.** Each model makes one attempt, or two if a rate limit is soon over ([`max_wait`](Self::max_wait)). Only the last model
///   that can be asked keeps its own retries. If all models fail, the reply fails with the error of the first model that was asked. The
///   text of this error names the other models.
/// * **Breakers.** After three failures within a minute, a model is not asked for 30 s, or for the time that the error asks to wait. After
///   the pause, one request tries the model again. If this request fails, the pause is doubled, up to 10 min. If [`on`](Self::on) names
///   `Auth`, a bad key opens the breaker at once for 5 min. If the breakers of all models are open, the model whose pause ends first is
///   asked. Clones share the breakers.
/// * **The reply** has the names of the model that gave it, and a record of the [attempts before it](ModelAttempt::before). If another
///   model gave the previous reply, the record also counts the parts of the conversation that the new model did not get. Each model gets
///   its own [hand-off](crate::model::ModelInfo::hand_off) of the messages.
/// * **Identity.** [`info`](Model::info) is the identity of the first model, with the capabilities that all models have.
#[derive(Clone)]
pub struct Fallback {
    models: Arc<[Arc<dyn Model>]>,
    info: ModelInfo,
    kinds: Arc<[ModelErrorKind]>,
    max_wait: Duration,
    breakers: Breakers,
    clock: Arc<dyn Executor>,
}

impl Fallback {
    /// Creates a model that asks these models in their order. An empty list does not compile.
    ///
    /// Models of different types are added with [`or`](Self::or).
    pub fn new<M: Model + 'static, const N: usize>(models: [M; N]) -> Self {
        const { assert!(N > 0, "a `Fallback` needs at least one model") }
        Self::of(models.into_iter().map(|model| Arc::new(model) as Arc<dyn Model>).collect())
    }

    fn of(models: Vec<Arc<dyn Model>>) -> Self {
        let mut info = models.first().map(|first| first.info().clone()).unwrap_or_default();
        info.is_fallback = true;
        for model in models.iter().skip(1) {
            info.capabilities = common_capabilities(info.capabilities, model.info().capabilities);
        }
        Self {
            breakers: Breakers(models.iter().map(|_| Mutex::default()).collect()),
            models: models.into(),
            info,
            kinds: DEFAULT_KINDS.into(),
            max_wait: Duration::from_secs(5),
            clock: crate::default_clock(),
        }
    }

    /// Adds a model that is asked after the others. The result has new breakers, which are all closed.
    ///
    /// ```
    /// use agent::model::{Fallback, Model as _};
    /// use agent::ScriptedModel;
    /// use std::sync::Arc;
    ///
    /// let model = Fallback::new([ScriptedModel::new(["Hello!"])]).or(Arc::new(ScriptedModel::new(["Good morning."])));
    /// assert_eq!(model.candidates().len(), 2);
    /// ```
    pub fn or(self, model: impl Model + 'static) -> Self {
        let last: Arc<dyn Model> = Arc::new(model);
        let models = self.models.iter().cloned().chain([last]).collect();
        Self { kinds: self.kinds, max_wait: self.max_wait, clock: self.clock, ..Self::of(models) }
    }

    /// Sets the kinds of errors after which the next model is asked. After a cancelled request, no other model is asked.
    ///
    /// ```
    /// use agent::model::{Fallback, ModelErrorKind};
    /// use agent::ScriptedModel;
    ///
    /// let model = Fallback::new([ScriptedModel::new(["Hello!"]), ScriptedModel::new(["Good morning."])])
    ///     .on([ModelErrorKind::Overloaded, ModelErrorKind::Auth]);
    /// # drop(model);
    /// ```
    pub fn on(mut self, kinds: impl IntoIterator<Item = ModelErrorKind>) -> Self {
        self.kinds = kinds.into_iter().filter(|kind| *kind != ModelErrorKind::Aborted).collect();
        self
    }

    /// Sets the maximum pause after a rate limit. If the provider asks for a pause of at most this length, the same model is asked once
    /// more after the pause. Otherwise, the next model is asked at once. The last model is not asked again, because it makes its own
    /// retries. Default: 5 s.
    ///
    /// ```
    /// use agent::model::Fallback;
    /// use agent::ScriptedModel;
    /// use std::time::Duration;
    ///
    /// let model = Fallback::new([ScriptedModel::new(["Hello!"])]).max_wait(Duration::ZERO);     // never waits
    /// # drop(model);
    /// ```
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets the executor whose clock measures pauses and durations. Default: the clock of tokio.
    ///
    /// ```
    /// use agent::ScriptedModel;
    /// use agent::model::{Fallback, Model as _, RateLimits};
    /// use agent::tool::Executor;
    /// use std::sync::Arc;
    ///
    /// fn timed(clock: Arc<dyn Executor>) -> Fallback {
    ///     let limits = RateLimits::new().concurrency(1).clock(clock.clone());
    ///     Fallback::new([ScriptedModel::new(["Hello!"]).limited(limits)]).with_clock(clock)
    /// }
    /// # let _: fn(Arc<dyn Executor>) -> Fallback = timed;
    /// ```
    pub fn with_clock(mut self, clock: Arc<dyn Executor>) -> Self {
        self.clock = clock;
        self
    }
}

impl Model for Fallback {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let author = Arc::new(OnceLock::new());
        let events = FallbackEvents::new(self.clone(), cx, request, author.clone());
        ModelStream::new(cx, &self.info, events).with_author(author).with_argument_events(request)
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn candidates(&self) -> Vec<ModelInfo> {
        self.models.iter().flat_map(Model::candidates).collect()
    }

    /// Returns the smallest window of all models, because any model may answer. Returns `None` if the window of any model is unknown.
    fn context_window(&self) -> Option<u64> {
        self.models.iter().map(Model::context_window).min().flatten()
    }

    /// Returns the lowest of the models' maximum reply lengths, or `None` if one of them is unknown.
    fn max_output(&self) -> Option<u64> {
        self.models.iter().map(Model::max_output).min().flatten()
    }

    /// Returns the body that the first model would send, because the first model usually gives the reply.
    fn request_body(&self, request: &ModelRequest) -> Option<String> {
        self.models.first()?.request_body(request)
    }

    /// Asks the provider of the first model, because the first model usually gives the reply.
    fn count_tokens(
        &self,
        cx: &StepCx,
        request: &ModelRequest,
    ) -> BoxFuture<'static, Result<Option<u64>, ModelError>> {
        match self.models.first() {
            Some(model) => model.count_tokens(cx, request),
            None => Box::pin(std::future::ready(Ok(None))),
        }
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.models.iter().map(|model| full_name(model.info())).collect();
        f.debug_struct("Fallback").field("models", &models).field("on", &self.kinds).finish_non_exhaustive()
    }
}

fn common_capabilities(one: Capabilities, other: Capabilities) -> Capabilities {
    let same_dialect = one.output_dialect == other.output_dialect;
    Capabilities {
        images: one.images && other.images,
        documents: one.documents && other.documents,
        audio: one.audio && other.audio,
        // A schema in one dialect may be invalid in another, so models with different dialects have no common native output.
        native_output: one.native_output && other.native_output && same_dialect,
        output_dialect: one.output_dialect.or(other.output_dialect),
        web_search: one.web_search && other.web_search,
        web_fetch: one.web_fetch && other.web_fetch,
        code_execution: one.code_execution && other.code_execution,
        image_generation: one.image_generation && other.image_generation,
    }
}

fn full_name(info: &ModelInfo) -> String {
    format!("{}/{}", info.provider, info.model)
}

#[derive(Clone)]
struct Breakers(Arc<[Mutex<Breaker>]>);

impl Breakers {
    fn get(&self, index: usize) -> Option<MutexGuard<'_, Breaker>> {
        self.0.get(index).map(|breaker| breaker.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_admitting(&self, index: usize, now: Duration) -> bool {
        self.get(index).is_some_and(|breaker| breaker.is_admitting(now))
    }

    fn first_to_reopen(&self) -> Option<usize> {
        (0..self.0.len()).min_by_key(|index| self.get(*index).map(|breaker| breaker.reopens_at()))
    }

    fn admit(&self, index: usize, now: Duration, is_forced: bool) -> Option<Admission> {
        let mut breaker = self.get(index)?;
        if !is_forced && !breaker.is_admitting(now) {
            return None;
        }
        let is_probe = breaker.admit();
        drop(breaker);
        Some(Admission { breakers: self.clone(), index, is_probe, is_settled: false })
    }
}

struct Admission {
    breakers: Breakers,
    index: usize,
    is_probe: bool,
    is_settled: bool,
}

impl Admission {
    fn record_success(&mut self) {
        self.is_settled = true;
        if let Some(mut breaker) = self.breakers.get(self.index) {
            breaker.record_success();
        }
    }

    fn record_failure(&mut self, now: Duration, error: &ModelError) {
        self.is_settled = true;
        if let Some(mut breaker) = self.breakers.get(self.index) {
            breaker.record_failure(now, error, self.is_probe);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.is_probe
            && !self.is_settled
            && let Some(mut breaker) = self.breakers.get(self.index)
        {
            breaker.release_probe();
        }
    }
}
