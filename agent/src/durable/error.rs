//! Errors of services and clients.

use std::error::Error;
use std::sync::Arc;

use crate::tool::question::AskError;

/// The error of creating a [`Service`](super::Service), or of serving.
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
/// # Ok::<(), agent::run::BuildError>(())
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The assistant uses features that durable runs do not support.
    #[error(
        "durable runs do not support {}; build the assistant{} without these features",
        what.join(", and "), of_tool(path)
    )]
    #[non_exhaustive]
    Unsupported {
        /// The names of the tools that lead to the assistant, for example `ask_expert > book_trip`; empty for the served
        /// assistant.
        path: String,
        /// The features, by the names of their builder methods, each with the reason.
        what: Vec<&'static str>,
    },
    /// A tool has no time limit. The engine (Restate) would repeat a step that exceeds the engine's timeout.
    #[error("tools without a time limit: {}; give them one", tools.join(", "))]
    #[non_exhaustive]
    NoTimeLimit {
        /// The names of the tools without a time limit. The name of a sub-agent's tool follows the names of the tools that lead to it, as
        /// in `ask_expert > book_trip`.
        tools: Vec<String>,
    },
    /// The identity key of the server cannot be read.
    #[error("the identity key of the server cannot be read: {message}")]
    #[non_exhaustive]
    IdentityKey {
        /// The reason why the key cannot be read.
        message: String,
    },
    /// The service cannot listen at its address.
    #[error("the service cannot listen at this address")]
    Listen(#[from] std::io::Error),
    /// Other machines can reach the address, and the service has no identity key and does not allow anonymous requests.
    #[error(
        "every program that reaches {address} can run the tools: set an `identity_key`, or call `allow_anonymous`"
    )]
    #[non_exhaustive]
    Anonymous {
        /// The address at which the service would listen.
        address: std::net::SocketAddr,
    },
}

fn of_tool(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" of the tool `{path}`") }
}

/// The error of a [`DurableClient`](super::DurableClient).
///
/// ```
/// use agent::durable::{DurableClient, DurableClientError};
///
/// let error = DurableClient::new("the engine").unwrap_err();
/// assert!(matches!(error, DurableClientError::Address { .. }));
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DurableClientError {
    /// The input does not fit its question. Nothing was sent.
    #[error("the answer was not sent: {0}")]
    InputRefused(#[source] AskError),
    /// The address of the engine is not an HTTP URL.
    #[error("`{address}` is not the address of an engine; use a URL such as http://127.0.0.1:8080")]
    #[non_exhaustive]
    Address {
        /// The address that was given, without parts that may be secret.
        address: String,
    },
    /// The engine did not respond, its response is incomplete, or the response has status 502, 503 or 504.
    #[error("the engine cannot be reached")]
    #[non_exhaustive]
    Unreachable {
        /// The cause.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The engine refused the request. A request with a name that no run can have is refused with status 400, and is not sent.
    #[error("the engine refused with status {status}: {message}")]
    #[non_exhaustive]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The message of the engine.
        message: String,
    },
    /// The request cannot be written as JSON, or the response cannot be read or is longer than 64 MiB.
    #[error("the request cannot be written, or the response of the engine cannot be read")]
    #[non_exhaustive]
    Unreadable {
        /// The cause.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The run is over and takes no message, or it does not wait for this decision, input or result.
    #[error("the run is over, or does not wait for this")]
    NotTaken,
    /// The inbox of the run has the maximum number of messages.
    #[error("the inbox of the run is full; send the message again later")]
    Full,
}

crate::error_text::debug_is_the_sentence!(ServiceError, DurableClientError);
