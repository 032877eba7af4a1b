//! What a client says of itself with each request.

use crate::{FailureCode, ToolError};
use rmcp::model::{ClientCapabilities, Implementation};
use std::sync::{Mutex, PoisonError};

/// What a client says of itself: tools receive it as a parameter `request: &RequestInfo`.
///
/// ```
/// use agent::mcp::server::{ClientCapability, RequestInfo};
/// use agent::{ToolError, tool};
///
/// /// Summarises a text with the client's own model.
/// #[tool]
/// async fn summarise(text: String, request: &RequestInfo) -> Result<String, ToolError> {
///     // The protocol's error -32021, which names what is missing.
///     request.require(ClientCapability::Sampling)?;
///     Ok(text)
/// }
/// ```
#[derive(Debug)]
pub struct RequestInfo {
    version: String,
    client: Option<Implementation>,
    capabilities: ClientCapabilities,
    missing: Mutex<Option<ClientCapability>>,
}

/// What a client can do for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientCapability {
    /// It runs its model for the server.
    Sampling,
    /// It asks its user for the server.
    Elicitation,
    /// It names the folders that are worked on.
    Roots,
}

impl ClientCapability {
    /// The protocol's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::Roots => "roots",
        }
    }
}

/// The client cannot do something that a tool needs. Returned from a tool, it is the protocol's error -32021.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client lacks the capability `{}`", .0.as_str())]
pub struct MissingCapability(ClientCapability);

impl MissingCapability {
    /// What is missing.
    pub fn capability(self) -> ClientCapability {
        self.0
    }
}

impl From<MissingCapability> for ToolError {
    fn from(missing: MissingCapability) -> Self {
        Self::new(missing.to_string()).with_code(FailureCode::new("missing_client_capability"))
    }
}

impl RequestInfo {
    pub(super) fn new(
        version: String,
        client: Option<Implementation>,
        capabilities: Option<ClientCapabilities>,
    ) -> Self {
        Self { version, client, capabilities: capabilities.unwrap_or_default(), missing: Mutex::default() }
    }

    /// The version of the protocol that the request speaks, such as `2026-07-28`.
    pub fn protocol_version(&self) -> &str {
        &self.version
    }

    /// The name of the client, where it says so. Nobody checked it.
    pub fn client_name(&self) -> Option<&str> {
        self.client.as_ref().map(|client| &*client.name)
    }

    /// The version of the client, where it says so.
    pub fn client_version(&self) -> Option<&str> {
        self.client.as_ref().map(|client| &*client.version)
    }

    /// Whether the client says that it can do this.
    pub fn has(&self, capability: ClientCapability) -> bool {
        match capability {
            ClientCapability::Sampling => self.capabilities.sampling.is_some(),
            ClientCapability::Elicitation => self.capabilities.elicitation.is_some(),
            ClientCapability::Roots => self.capabilities.roots.is_some(),
        }
    }

    /// Asks for a capability, for a tool that cannot do without.
    ///
    /// # Errors
    /// When the client does not say that it has it. A tool that returns the error ends the request with -32021.
    pub fn require(&self, capability: ClientCapability) -> Result<(), MissingCapability> {
        if self.has(capability) {
            return Ok(());
        }
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(capability);
        Err(MissingCapability(capability))
    }

    /// The capability that a call failed for, if `message`, with which it failed, says so.
    pub(super) fn failed_for(&self, message: &str) -> Option<ClientCapability> {
        let missing = *self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.filter(|capability| message == MissingCapability(*capability).to_string())
    }
}
