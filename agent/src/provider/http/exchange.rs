//! Requests one reply of a provider, with retries, and returns the events of the reply.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_core::Stream;
use futures_util::stream::unfold;
use tokio::time::Instant;

use super::client::{LoggableRequest, StreamingResponse};
use super::model::ModelEndpoint;
use super::options::Retry;
use super::restore::NullRestorer;
use super::retry::Retries;
use super::secret::{Secret, searchable};
use crate::address::shown_address;
use crate::message::Usage;
use crate::model::{ModelError, ModelEvent, ProviderQuota, QuotaListener};
use crate::provider::quota::provider_quota;
use crate::provider::{HttpRequest, ReplyReader};
use crate::tool::secrets::SecretArguments;

/// The attempts for one reply. Dropping this value ends the current attempt.
pub(super) struct Exchange {
    model: Arc<ModelEndpoint>,
    request: HttpRequest,
    deadline: Option<Instant>,
    retries: Retries,
    phase: ExchangePhase,
    events: VecDeque<ModelEvent>,
    /// Whether an event was returned. If so, no further attempt is made.
    has_delivered: bool,
    usage: Option<Usage>,
    restorer: Option<NullRestorer>,
    shown: LoggableRequest,
    quota: Option<QuotaListener>,
}

enum ExchangePhase {
    Start,
    Pause(Duration),
    Reading(Box<(StreamingResponse, ReplyReader)>, Vec<Secret>),
    Failed(ModelError),
    Complete,
    Over,
}

impl Exchange {
    pub(super) fn new(
        model: Arc<ModelEndpoint>,
        request: Result<HttpRequest, ModelError>,
        restorer: Option<NullRestorer>,
        shown: LoggableRequest,
    ) -> Self {
        let (request, phase) = match request {
            Ok(request) => (request, ExchangePhase::Start),
            Err(error) => (HttpRequest::post("", serde_json::Value::Null), ExchangePhase::Failed(error)),
        };
        Self {
            model,
            request,
            deadline: None,
            retries: Retries::default(),
            phase,
            events: VecDeque::new(),
            has_delivered: false,
            usage: None,
            restorer,
            shown,
            quota: None,
        }
    }

    pub(super) fn with_quota(mut self, listener: Option<QuotaListener>) -> Self {
        self.quota = listener;
        self
    }

    pub(super) fn without_retries(mut self) -> Self {
        self.retries = Retries::none();
        self
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static {
        unfold(self, |mut exchange| async move { Some((exchange.next().await?, exchange)) })
    }

    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            let is_held = !self.has_delivered && matches!(self.phase, ExchangePhase::Reading(..));
            if (!is_held || self.events.iter().any(is_content))
                && let Some(event) = self.next_event()
            {
                return Some(Ok(event));
            }
            match std::mem::replace(&mut self.phase, ExchangePhase::Over) {
                ExchangePhase::Over => return None,
                ExchangePhase::Complete => self.report_usage(),
                ExchangePhase::Failed(error) => {
                    self.report_usage();
                    return Some(Err(error));
                }
                ExchangePhase::Start => self.phase = self.start().await,
                ExchangePhase::Pause(delay) => {
                    tokio::time::sleep(delay).await;
                    self.phase = ExchangePhase::Start;
                }
                ExchangePhase::Reading(reading, secrets) => self.read_piece(reading, secrets).await,
            }
        }
    }

    fn next_event(&mut self) -> Option<ModelEvent> {
        let event = self.events.pop_front()?;
        self.has_delivered = true;
        if let ModelEvent::Usage { usage } = &event {
            self.usage = Some(*usage.clone());
        }
        Some(event)
    }

    async fn start(&mut self) -> ExchangePhase {
        let client = &self.model.client;
        let deadline = *self.deadline.get_or_insert_with(|| client.deadline());
        let secrets = match self.model.secrets(deadline).await {
            Ok(secrets) => secrets,
            Err(error) => return ExchangePhase::Failed(error),
        };
        let url = self.request.url(&self.model.base_url);
        let secrets: Vec<(&str, Secret)> =
            secrets.iter().map(|(name, value)| (&**name, value.clone())).collect();
        match client.attempt(&url, &self.request, &secrets, deadline, &self.shown).await {
            Ok(response) => {
                if let Some(listener) = &self.quota {
                    listener.notify(provider_quota(response.headers(), SystemTime::now()));
                }
                let (protocol, info) = (&*self.model.protocol, &self.model.info);
                let reader = ReplyReader::new(protocol, info, response.status(), response.headers().to_vec());
                let reader = reader.with_limits(client.options().reply_limits());
                let shown = response.secrets().to_vec();
                ExchangePhase::Reading(Box::new((response, reader)), shown)
            }
            Err(error) => self.handle_failure(error),
        }
    }

    async fn read_piece(&mut self, mut reading: Box<(StreamingResponse, ReplyReader)>, secrets: Vec<Secret>) {
        let (response, reader) = &mut *reading;
        let mut events = Vec::new();
        let chunk = response.chunk().await;
        let protocol = &*self.model.protocol;
        let end = match chunk {
            Ok(Some(bytes)) => match reader.push(&bytes, &mut events) {
                Ok(()) if reader.is_complete() => reading.1.finish(protocol, &mut events),
                Ok(()) => {
                    self.queue_events(events.into_iter());
                    self.phase = ExchangePhase::Reading(reading, secrets);
                    return;
                }
                Err(error) => Err(error),
            },
            Ok(None) => reading.1.finish(protocol, &mut events),
            Err(error) => reading.1.break_off(protocol, error, &mut events),
        };
        self.queue_events(events.into_iter());
        self.phase = match end {
            Ok(()) => ExchangePhase::Complete,
            Err(error) => {
                let address = shown_address(&self.request.url(&self.model.base_url));
                self.handle_failure(error.with_address(&address).without_secrets(&searchable(&secrets)))
            }
        };
    }

    fn queue_events(&mut self, events: impl Iterator<Item = ModelEvent>) {
        let prices = self.model.facts.as_ref().and_then(|facts| facts.prices);
        let events = events.map(|mut event| {
            if let (ModelEvent::Usage { usage }, Some(prices)) = (&mut event, prices) {
                usage.cost = usage.cost.or_else(|| Some(prices.cost(usage)));
            }
            event
        });
        match &mut self.restorer {
            Some(restorer) => events.for_each(|event| restorer.push(event, &mut self.events)),
            None => self.events.extend(events),
        }
    }

    /// Returns the phase after a failure. There is no retry after content was read or an event was returned.
    fn handle_failure(&mut self, error: ModelError) -> ExchangePhase {
        let error = match &self.shown.quotable {
            Some(request) => {
                let secrets = SecretArguments::new([request.tools.clone()]).texts(&*request.messages);
                error.without_secrets(&secrets.iter().map(String::as_str).collect::<Vec<_>>())
            }
            None => error,
        };
        let options = self.model.client.options();
        let untouched = !self.has_delivered && !self.events.iter().any(is_content);
        let delay = if untouched { self.retries.next_pause(options, &error, self.deadline) } else { None };
        let Some(delay) = delay else { return ExchangePhase::Failed(error) };
        if let Some(listener) = self.quota.as_ref().filter(|_| error.is_rate_limit()) {
            listener.notify(ProviderQuota { pause: error.retry_after(), ..ProviderQuota::default() });
        }
        self.events.clear();
        self.restorer.iter_mut().for_each(NullRestorer::clear);
        let retry = Retry { model: &self.model.info, number: self.retries.number(), delay, error: &error };
        tracing::warn!(
            provider = self.model.info.provider,
            model = self.model.info.model,
            retry = retry.number,
            delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            %error,
            "the request is sent again"
        );
        if let Some(listener) = &options.on_retry {
            listener.notify(|listener| listener(&retry));
        }
        ExchangePhase::Pause(delay)
    }

    fn report_usage(&self) {
        let listener = self.model.client.options().on_usage.as_ref();
        if let (Some(listener), Some(usage)) = (listener, &self.usage) {
            listener.notify(|listener| listener(&self.model.info, usage));
        }
    }
}

/// Returns whether an event carries content. Without content, a failed attempt may be repeated.
fn is_content(event: &ModelEvent) -> bool {
    !matches!(
        event,
        ModelEvent::ReplyStart { .. } | ModelEvent::Usage { .. } | ModelEvent::MessageData { .. }
    )
}
