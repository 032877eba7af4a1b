//! A built server, and the requests that it admitted.

use super::caller::{Authenticator, Caller};
use super::catalogue::{CatalogueCache, ToolCatalogue};
use super::handle::ServerHandle;
use super::limits::ServerLimits;
use super::metadata::ResourceMetadata;
use super::running::{RunningCalls, SessionId};
use crate::panics::catch_future;
use crate::serve::{HostPolicy, Quota};
use crate::tool::BoxFuture;
use crate::tool::registry::Registry;
use crate::tool::state::StateMap;
use bytes::Bytes;
use rmcp::model::{MetaObject, RequestStateCodec, ServerConfig};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;

pub(super) type TraceObserver = dyn Fn(&HashMap<String, String>) + Send + Sync;

pub(super) type ToolLoader =
    dyn Fn(Caller) -> BoxFuture<'static, Result<Registry, Box<dyn Error + Send + Sync>>> + Send + Sync;

pub(super) struct BuiltServer {
    pub(super) config: ServerConfig,
    /// The server information that is sent with each result.
    pub(super) meta: MetaObject,
    pub(super) loader: Arc<ToolLoader>,
    pub(super) authenticator: Option<Arc<dyn Authenticator>>,
    /// The caller of requests that are not authenticated.
    pub(super) local: Caller,
    pub(super) hosts: HostPolicy,
    pub(super) metadata: Option<ResourceMetadata>,
    pub(super) limits: ServerLimits,
    pub(super) state: StateMap,
    /// Whether the list of tools may differ between callers, so that shared caches must not store it.
    pub(super) is_private: bool,
    pub(super) list_ttl_ms: u64,
    pub(super) catalogues: CatalogueCache,
    pub(super) calls: Arc<Quota>,
    /// The quota for calls with invalid arguments if `calls` has no free permit. Such a call runs no tool, and only reports its issues.
    pub(super) refusals: Arc<Quota>,
    pub(super) listeners: Arc<Quota>,
    pub(super) running: Arc<RunningCalls>,
    pub(super) handle: ServerHandle,
    /// Signs the state of a call that waits for answers. The client keeps the signed state until it repeats the call.
    pub(super) state_codec: RequestStateCodec,
    pub(super) on_trace: Option<Arc<TraceObserver>>,
}

pub(super) struct AdmittedRequest {
    pub(super) caller: Caller,
    pub(super) tools: Registry,
    pub(super) catalogue: Arc<ToolCatalogue>,
    /// The text of the arguments, if the request is a call over HTTP.
    pub(super) arguments: Option<RawArguments>,
    /// The answers to the questions of a call, if the request repeats a call over HTTP.
    pub(super) answers: Option<SentAnswers>,
    /// The session in which the request can be cancelled, if the request was sent over HTTP in an older version of the protocol.
    pub(super) session: Option<SessionId>,
}

#[derive(Clone, Default)]
pub(super) struct SentAnswers {
    pub(super) answers: BTreeMap<String, Value>,
    pub(super) state: Option<String>,
}

#[derive(Clone)]
pub(super) struct RawArguments(Bytes);

impl RawArguments {
    /// Shares the arguments without copying them. `arguments` must be a slice of `body`.
    pub(super) fn of(body: &Bytes, arguments: &str) -> Self {
        Self(body.slice_ref(arguments.as_bytes()))
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<&str> for RawArguments {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

pub(super) enum ServiceFailure {
    /// A function of the application failed or took too long, or the protocol cannot represent the loaded tools.
    Unavailable(String),
    Panicked(String),
}

impl ServiceFailure {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Unavailable(reason) | Self::Panicked(reason) => reason,
        }
    }
}

impl BuiltServer {
    pub(super) async fn load(&self, caller: Caller) -> Result<AdmittedRequest, ServiceFailure> {
        let loaded = catch_future(|| (self.loader)(caller.clone())).await;
        let loaded = loaded.map_err(|panic| {
            ServiceFailure::Panicked(format!("the loader of the tools panicked: {panic}"))
        })?;
        let tools = loaded
            .map_err(|error| ServiceFailure::Unavailable(format!("the tools cannot be loaded: {error}")))?;
        let (tools, catalogue): (Registry, Arc<ToolCatalogue>) =
            self.catalogues.of(&tools).map_err(|error| ServiceFailure::Unavailable(error.to_string()))?;
        Ok(AdmittedRequest { caller, tools, catalogue, arguments: None, answers: None, session: None })
    }
}
