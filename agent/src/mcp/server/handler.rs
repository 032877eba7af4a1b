//! The methods that the server answers, for `rmcp`.

use super::Shared;
use super::call::{call, fault};
use super::caller::{Caller, RequestHead};
use super::catalogue::Catalogue;
use super::gate::{Phase, Place};
use crate::Registry;
use bytes::Bytes;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use std::sync::Arc;

/// What is asked by one request: who asks, and with which tools.
pub(super) struct Visit {
    pub(super) caller: Caller,
    pub(super) tools: Registry,
    pub(super) catalogue: Arc<Catalogue>,
    /// Where it is a call, and came over HTTP.
    pub(super) arguments: Option<RawArguments>,
}

/// The text of the arguments of a call, as it came.
#[derive(Clone)]
pub(super) struct RawArguments(Bytes);

impl RawArguments {
    /// A part of the body, not copied.
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

/// Answers requests: over HTTP one, over standard input all of a connection.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) shared: Arc<Shared>,
    /// Who asks, where that is found out for each request.
    pub(super) visit: Option<Arc<Visit>>,
}

/// The methods that are answered. Their requests that cannot be read come as unknown ones.
const METHODS: [&str; 6] =
    ["initialize", "ping", "server/discover", "subscriptions/listen", "tools/call", "tools/list"];
/// How many of them, at the start, only the older versions have.
const OLDER: usize = 2;

impl Handler {
    /// Who asks, and with which tools: found out before the body was read, or, over standard input, now.
    async fn visit(&self) -> Result<Arc<Visit>, ErrorData> {
        if let Some(visit) = &self.visit {
            return Ok(visit.clone());
        }
        let caller = self.shared.local.clone();
        let head = RequestHead::default();
        let load = self.shared.load(caller, &head);
        match tokio::time::timeout(self.shared.limits.load, load).await {
            Ok(loaded) => loaded.map(Arc::new).map_err(|reason| fault("tools", &reason)),
            Err(_) => Err(fault("tools", &"loading them took too long")),
        }
    }

    /// A stream that listens, if one more may.
    fn listener(&self) -> Option<Place> {
        let caller = self.visit.as_ref().map_or(&self.shared.local, |visit| &visit.caller);
        self.shared.listeners.try_enter(caller)
    }
}

/// Whether the request speaks the protocol without sessions.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.shared.config.clone()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visit = self.visit().await?;
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        let Some((page, next)) = visit.catalogue.page(cursor, self.shared.limits.page) else {
            return Err(ErrorData::invalid_params("Unknown cursor", None));
        };
        let mut list = ListToolsResult::with_all_items(page.to_vec());
        list.next_cursor = next;
        if is_modern(&context) {
            let scope = if self.shared.is_private { CacheScope::Private } else { CacheScope::Public };
            list = list.with_ttl_ms(self.shared.list_ttl_ms).with_cache_scope(scope);
            list.meta = Some(self.shared.meta.clone());
        }
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _running = self.shared.handle.begin();
        let visit = self.visit().await?;
        let modern = is_modern(&context);
        // `rmcp` moves this future about: what it holds while a tool runs stays where it is.
        let mut result = Box::pin(call(&self.shared, &visit, request, context)).await?;
        if modern {
            result.meta = Some(self.shared.meta.clone());
        }
        Ok(result.into())
    }

    /// For the check of `Mcp-Param-…` headers, which knows no request: this handler was made for one.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalogue = &self.visit.as_ref()?.catalogue;
        catalogue.tool(name).filter(|_| catalogue.has_header_parameters()).cloned()
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.intersection(&SubscriptionFilter::builder().tools_list_changed().build()))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(_place) = self.listener() else {
            return Err(ErrorData::internal_error("Too many streams listen. Try again later.", None));
        };
        let mut changes = self.shared.handle.changes();
        changes.mark_unchanged();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.shared.handle.reaches(Phase::Draining) => return Ok(()),
                // Changes that come faster than they are sent are one change.
                news = changes.changed() => {
                    if news.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Over standard input, the older versions are told of changes without being asked.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.shared.handle.changes();
        changes.mark_unchanged();
        let (handle, peer) = (self.shared.handle.clone(), context.peer);
        let Some(place) = self.listener() else { return };
        tokio::spawn(async move {
            let _place = place;
            loop {
                tokio::select! {
                    () = handle.reaches(Phase::Draining) => return,
                    news = changes.changed() => {
                        if news.is_err() || peer.notify_tool_list_changed().await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let methods = if is_modern(&context) { &METHODS[OLDER..] } else { &METHODS[..] };
        if methods.contains(&&*method) {
            return Err(ErrorData::invalid_params(
                format!("The parameters of {method} cannot be read"),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    // Undeclared, so not there; `rmcp` would answer with empty lists.

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }
}
