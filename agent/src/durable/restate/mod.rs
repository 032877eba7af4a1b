//! Runs on Restate. This is the only module that names the SDK of Restate.

mod context;
mod handlers;
mod listen;
mod slots;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use restate_sdk::endpoint::{Builder, Endpoint, HandlerOptions, ServiceOptions};
use restate_sdk::service::IntoServiceDefinition;

use self::handlers::{AgentHandlers, InboxHandlers, ToolHandlers};
use super::ServiceError;
use super::play::SharedService;
use crate::tool::cancel::CancelToken;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) identity_key: Option<String>,
    /// Whether the service may listen beyond loopback without a key.
    pub(super) is_open: bool,
    pub(super) retention: Duration,
}

/// The name of the workflow that performs runs and receives requests from outside. The name of a run is the key of its workflow. The
/// attributes in `handlers` repeat this name and the next two names, because attributes take no constants.
pub(super) const AGENT: &str = "Agent";

/// The name of the service that runs concurrent calls, each in its own invocation.
const TOOLS: &str = "ToolRunner";

/// The name of the Restate virtual object for inboxes. Its key is the name of a run, so each run has its own inbox.
const INBOX: &str = "Inbox";

/// Time for the engine and the network. Each timeout is this much longer than the longest step.
const MARGIN: Duration = Duration::from_secs(60);

/// Maximum number of attempts at an invocation. The pauses between them take about a quarter of an hour together. After the last attempt,
/// the engine pauses the invocation until an operator acts.
const ATTEMPTS: u64 = 100;

/// Returns a time that the SDK can add to the present and count in milliseconds: at most 100 years.
fn countable(time: Duration) -> Duration {
    time.min(Duration::from_secs(100 * 365 * 24 * 60 * 60))
}

pub(super) fn check_key(key: &str) -> Result<(), ServiceError> {
    let checked = Builder::new().identity_key(key);
    checked.map(drop).map_err(|error| ServiceError::IdentityKey { message: error.to_string() })
}

pub(super) async fn serve(
    served: Arc<SharedService>,
    settings: &Settings,
    listener: TcpListener,
    stop: CancelToken,
) -> Result<(), ServiceError> {
    let endpoint = endpoint(&served, settings);
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    listen::run(endpoint, listener, &stop, listen::LIMITS).await;
    Ok(())
}

/// Limits how long the engine remembers requests to a run. Clients repeat a request within minutes or not at all.
fn with_short_retention(options: ServiceOptions) -> ServiceOptions {
    let short = HandlerOptions::new()
        .idempotency_retention(Duration::from_secs(600))
        .journal_retention(Duration::from_secs(600));
    ["push", "cancel", "answer"]
        .into_iter()
        .fold(options, |options, name| options.handler(name, short.clone()))
        .handler("tell", short.clone().ingress_private(true))
}

fn endpoint(served: &Arc<SharedService>, settings: &Settings) -> Endpoint {
    // The engine repeats a step that takes longer than both timeouts together. One timeout alone already exceeds the longest step.
    let timeout = countable(served.longest_step().saturating_add(MARGIN));
    let retention = countable(settings.retention);
    let common = || {
        ServiceOptions::new()
            .inactivity_timeout(timeout)
            .abort_timeout(timeout)
            .journal_retention(retention)
            .retry_policy_initial_interval(Duration::from_millis(100))
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(Duration::from_secs(10))
            .retry_policy_max_attempts(ATTEMPTS)
            .retry_policy_pause_on_max_attempts()
    };
    let run = HandlerOptions::new().workflow_retention(retention);
    let agent = AgentHandlers { served: served.clone() };
    let tools = ToolHandlers { served: served.clone() };
    let builder = Endpoint::builder()
        .bind(agent.into_service_definition().options(with_short_retention(common()).handler("run", run)))
        .bind(
            tools
                .into_service_definition()
                .options(common().idempotency_retention(retention).ingress_private(true)),
        )
        .bind(InboxHandlers.into_service_definition().options(common().ingress_private(true)));
    let keyed = match &settings.identity_key {
        None => Ok(builder),
        Some(key) => builder.identity_key(key),
    };
    // `check_key` has validated the key, so there is no error.
    keyed.unwrap_or_default().build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScriptedModel;
    use crate::durable::Service;
    use crate::runtime::Assistant;

    #[test]
    fn the_longest_times_are_served() {
        let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).cancel_grace(Duration::MAX);
        let service = Service::new(&assistant.build().unwrap()).unwrap().model_timeout(Duration::MAX);
        let settings = Settings { identity_key: None, is_open: false, retention: Duration::MAX };
        endpoint(&service.into_served(), &settings);
        let now = Duration::from_secs(1 << 40);
        assert!(u64::try_from((now + countable(Duration::MAX)).as_millis()).is_ok());
    }
}
