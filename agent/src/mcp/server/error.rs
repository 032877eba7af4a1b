//! The errors of building or running a server.

use crate::tool::problem::RegistryError;
use std::net::SocketAddr;

/// An error of building or running a server.
///
/// ```
/// use agent::mcp::{McpServer, McpServerError};
/// use agent::tools;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // Other machines can reach this address, so callers must be authenticated.
/// let error = McpServer::new(tools![]).bind(([0, 0, 0, 0], 0)).await.err().unwrap();
/// assert!(matches!(error, McpServerError::Anonymous { .. }));
/// # }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum McpServerError {
    /// The tools are invalid or lack state, or the state has two values of one type.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// A tool cannot be shown to clients.
    #[error("tool `{tool}` cannot be served: {reason}")]
    #[non_exhaustive]
    Tool {
        /// The name of the tool.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// The key of [`state_key`](super::McpServer::state_key) is too short, or the operating system returned no random bytes for a key.
    #[error("there is no key for the state of questions: {reason}")]
    #[non_exhaustive]
    StateKey {
        /// The reason why there is no key.
        reason: String,
    },
    /// An allowed origin or host cannot be parsed.
    #[error("{entry:?} allows nothing: write {expected}")]
    #[non_exhaustive]
    Allowed {
        /// The invalid entry.
        entry: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The server would accept unauthenticated requests from other machines.
    #[error("{place} can be reached from elsewhere: set an authenticator, or call `allow_anonymous`")]
    #[non_exhaustive]
    Anonymous {
        /// The address or setting that makes the server reachable.
        place: String,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    #[non_exhaustive]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The connection cannot be initialized, for example because the client does not speak the protocol.
    #[error("the connection cannot be served: {reason}")]
    #[non_exhaustive]
    Connection {
        /// The reason.
        reason: String,
    },
}

crate::error_text::debug_is_the_sentence!(McpServerError);
