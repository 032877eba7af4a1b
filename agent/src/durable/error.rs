//! What can go wrong around runs.

use std::error::Error;
use std::sync::Arc;

/// Why an assistant cannot be served.
///
/// ```
/// use agent::durable::{Service, ServiceError};
/// use agent::{Assistant, ScriptedModel, tool, tools};
///
/// /// Cancels an order.
/// #[tool]
/// async fn cancel_order(order: u32) {}
///
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(tools![cancel_order]).build()?;
/// assert!(matches!(Service::new(&assistant), Ok(_) | Err(ServiceError::NoTimeLimit { .. })));
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// It has what cannot be done step by step.
    #[error("not in durable runs: {}", what.join("; "))]
    #[non_exhaustive]
    Unsupported {
        /// What, in the words of its builder.
        what: Vec<&'static str>,
    },
    /// A step that takes longer than the engine waits would run again and again: a tool needs a limit.
    #[error("tools without a time limit: {}; give them one", tools.join(", "))]
    #[non_exhaustive]
    NoTimeLimit {
        /// Their names.
        tools: Vec<String>,
    },
    /// The key of the server cannot be read.
    #[error("the identity key of the server cannot be read: {message}")]
    #[non_exhaustive]
    IdentityKey {
        /// How.
        message: String,
    },
}

/// Why the service does not listen.
///
/// ```
/// use agent::durable::{ServeError, Service};
/// use agent::{Assistant, CancelToken, ScriptedModel};
/// use std::error::Error;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn Error>> {
/// let service = || Service::new(&Assistant::builder(ScriptedModel::new(["Hello!"])).build().unwrap());
/// let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let error: ServeError = service()?.serve(taken.local_addr()?).await.unwrap_err();
/// assert!(error.source().is_some());                   // that the address is in use
/// # Ok(()) }
/// ```
#[derive(thiserror::Error)]
#[error("the service cannot listen at this address")]
pub struct ServeError(#[from] pub(super) std::io::Error);

/// Why the engine did not do what was asked.
///
/// ```
/// use agent::durable::{Client, ClientError};
///
/// let error = Client::new("the engine").unwrap_err();
/// assert!(matches!(error, ClientError::Address { .. }));
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address of the engine is no URL.
    #[error("{address:?} is no address of an engine, as http://127.0.0.1:8080 is")]
    #[non_exhaustive]
    Address {
        /// What was given.
        address: String,
    },
    /// Nobody answered, or not to the end.
    #[error("the engine cannot be reached")]
    #[non_exhaustive]
    Unreachable {
        /// Why.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// It was refused.
    #[error("the engine refused with status {status}: {message}")]
    #[non_exhaustive]
    Refused {
        /// The HTTP status.
        status: u16,
        /// In the engine's words.
        message: String,
    },
    /// The answer cannot be read.
    #[error("the engine's answer cannot be read")]
    #[non_exhaustive]
    Unreadable {
        /// Why.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The run is over, or never was.
    #[error("the run does not take this: it is over, or does not wait for it")]
    NotTaken,
    /// Too many messages wait for the run.
    #[error("too many messages wait for the run")]
    Full,
}

crate::error_text::debug_is_the_sentence!(ServiceError, ServeError, ClientError);
