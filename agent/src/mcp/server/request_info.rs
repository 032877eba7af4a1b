//! The information of a client about itself. The client sends it with each request or, in the older versions, when it connects.

use super::progress::ProgressTarget;
use crate::tool::{cancel::CancelToken, error::ToolError, outcome::OutcomeCode};
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, Implementation, ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use rmcp::service::RequestContext;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::sync::mpsc::Sender;

/// The information of a client about itself. Tools receive it as a parameter `request: &RequestInfo`.
///
/// ```
/// use agent::mcp::RequestInfo;
/// use agent::{ToolError, tool};
///
/// /// Summarises a text with the client's own model.
/// #[tool]
/// async fn summarise(text: String, request: &RequestInfo) -> Result<String, ToolError> {
///     // If the client lacks the capability, the request fails with the protocol's error -32021.
///     request.require("sampling")?;
///     Ok(text)
/// }
/// ```
///
/// The other properties, with the values of this library's client:
///
/// ```
/// # #[cfg(feature = "mcp-client")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::mcp::RequestInfo;
/// use agent::mcp::{McpClient, McpServer, ClientConfig};
/// use agent::message::ToolCall;
/// use agent::{Registry, ToolContext, tool, tools};
///
/// /// Describes the client.
/// #[tool(read_only)]
/// fn client(request: &RequestInfo) -> String {
///     let (name, version) = (request.client_name().unwrap_or("?"), request.client_version().unwrap_or("?"));
///     let samples = request.has("sampling");
///     format!("{name} {version} speaks {}, samples: {samples}", request.protocol_version())
/// }
///
/// let (url, serving) = McpServer::new(tools![client]).bind(([127, 0, 0, 1], 0)).await?;
/// tokio::spawn(serving);
/// let config = ClientConfig::http(url).name("demo");
/// let registry = Registry::new(&McpClient::connect(config).await?)?;
/// let result = registry.call(&ToolCall::new("call_1", "demo__client", "{}"), &ToolContext::default()).await;
/// assert_eq!(result.outcome.text(), "agent 0.1.0 speaks 2026-07-28, samples: false");
/// # Ok(()) }
/// # #[cfg(not(feature = "mcp-client"))] fn main() {}
/// ```
pub struct RequestInfo {
    version: Option<ProtocolVersion>,
    origin: RequestOrigin,
    client: OnceLock<Option<Implementation>>,
    capabilities: OnceLock<ClientCapabilities>,
    /// Each capability that [`require`](Self::require) did not find.
    missing: Mutex<BTreeSet<String>>,
}

pub(super) enum RequestOrigin {
    Protocol(RequestContext<RoleServer>),
    /// A call that the server answers without `rmcp`.
    Direct(DirectRequest),
}

pub(super) struct DirectRequest {
    pub(super) id: RequestId,
    pub(super) version: ProtocolVersion,
    pub(super) meta: RequestMetaObject,
    pub(super) gone: CancelToken,
    /// The channel for the progress of the call; `None` if the client did not ask for progress.
    pub(super) progress: Option<Sender<ServerJsonRpcMessage>>,
}

/// Returns the message of the error for a missing capability. [`RequestInfo::failed_for`] recognizes the error by this message.
fn missing_text(capability: &str) -> String {
    format!("the client lacks the capability `{capability}`")
}

impl RequestInfo {
    pub(super) fn of(origin: RequestOrigin) -> Self {
        let version = match &origin {
            RequestOrigin::Protocol(context) => context.protocol_version(),
            RequestOrigin::Direct(request) => Some(request.version.clone()),
        };
        Self {
            version,
            origin,
            client: OnceLock::new(),
            capabilities: OnceLock::new(),
            missing: Mutex::default(),
        }
    }

    /// Returns empty information, for code that runs without a request.
    pub(super) fn none() -> Self {
        Self::of(RequestOrigin::Direct(DirectRequest {
            id: RequestId::Number(0),
            version: ProtocolVersion::LATEST,
            meta: RequestMetaObject::default(),
            gone: CancelToken::new(),
            progress: None,
        }))
    }

    /// Completes when the client cancels the request; over HTTP, only when it disconnects. `RunningCalls` handles cancel notifications.
    pub(super) async fn cancelled(&self) {
        match &self.origin {
            RequestOrigin::Protocol(context) => context.ct.cancelled().await,
            RequestOrigin::Direct(request) => request.gone.cancelled().await,
        }
    }

    pub(super) fn id(&self) -> &RequestId {
        match &self.origin {
            RequestOrigin::Protocol(context) => &context.id,
            RequestOrigin::Direct(request) => &request.id,
        }
    }

    pub(super) fn meta(&self) -> &RequestMetaObject {
        match &self.origin {
            RequestOrigin::Protocol(context) => &context.meta,
            RequestOrigin::Direct(request) => &request.meta,
        }
    }

    pub(super) fn progress_target(&self) -> Option<ProgressTarget> {
        match &self.origin {
            RequestOrigin::Protocol(context) => Some(ProgressTarget::Peer(context.peer.clone())),
            RequestOrigin::Direct(request) => request.progress.clone().map(ProgressTarget::Stream),
        }
    }

    pub(super) fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        match &self.origin {
            RequestOrigin::Protocol(context) => context.extensions.get(),
            RequestOrigin::Direct(_) => None,
        }
    }

    fn client(&self) -> Option<&Implementation> {
        let read = || match &self.origin {
            // This arm is for standard input only: over HTTP, `rmcp` reports its own name if the client sends none.
            RequestOrigin::Protocol(context) if context.extensions.get::<Parts>().is_none() => {
                context.client_info()
            }
            _ => self.meta().client_info(),
        };
        self.client.get_or_init(read).as_ref()
    }

    fn capabilities(&self) -> &ClientCapabilities {
        let read = || match &self.origin {
            RequestOrigin::Protocol(context) => context.client_capabilities(),
            RequestOrigin::Direct(request) => request.meta.client_capabilities(),
        };
        self.capabilities.get_or_init(|| read().unwrap_or_default())
    }

    /// Returns the protocol version of the request, such as `2026-07-28`. Empty if it is unknown.
    pub fn protocol_version(&self) -> &str {
        self.version.as_ref().map_or("", ProtocolVersion::as_str)
    }

    /// Returns the client's name, if it reports one. The name is not verified.
    pub fn client_name(&self) -> Option<&str> {
        self.client().map(|client| &*client.name)
    }

    /// Returns the client's version, if it reports one.
    pub fn client_version(&self) -> Option<&str> {
        self.client().map(|client| &*client.version)
    }

    /// Returns whether the client declares this capability. The protocol defines the names: `sampling`, `elicitation`, `roots`.
    pub fn has(&self, capability: &str) -> bool {
        let declared = serde_json::to_value(self.capabilities()).unwrap_or_default();
        declared.get(capability).is_some_and(|declared| !declared.is_null())
    }

    /// Returns whether the client can ask its user by forms. A client that declares elicitation without a mode supports forms.
    pub(super) fn asks_by_form(&self) -> bool {
        let declared = self.capabilities().elicitation.as_ref();
        declared.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether the request uses a protocol version in which servers send no requests.
    pub(super) fn is_modern(&self) -> bool {
        self.version.as_ref().is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28)
    }

    /// Requires a capability, for a tool that cannot work without it. A tool that can work without the capability calls [`has`](Self::has)
    /// instead.
    ///
    /// # Errors
    /// Fails with the code `missing_client_capability` if the client does not declare the capability. If the tool returns this error, the
    /// request fails with the code -32021 of the protocol.
    pub fn require(&self, capability: &str) -> Result<(), ToolError> {
        if self.has(capability) {
            return Ok(());
        }
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(capability.to_owned());
        Err(ToolError::new(missing_text(capability)).with_code(OutcomeCode::new("missing_client_capability")))
    }

    /// Returns the missing capability if `message` is the message of an error that [`require`](Self::require) returned.
    pub(super) fn failed_for(&self, message: &str) -> Option<String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.iter().find(|capability| message == missing_text(capability)).cloned()
    }
}

/// Omits the headers, which may be secret.
impl fmt::Debug for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestInfo")
            .field("protocol_version", &self.protocol_version())
            .field("client_name", &self.client_name())
            .field("client_version", &self.client_version())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_capability_is_recognized() {
        let info = RequestInfo::none();
        let errors = ["sampling", "roots"].map(|capability| info.require(capability).unwrap_err());
        let recognized = errors.map(|error| info.failed_for(&error.to_string()));
        assert_eq!(recognized, ["sampling", "roots"].map(|capability| Some(capability.to_owned())));
        assert_eq!(info.failed_for("the client lacks the capability `tasks`"), None);
    }
}
