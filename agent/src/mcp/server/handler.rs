//! The methods that the server answers, as a handler of `rmcp`.

use super::Shared;
use super::call::{call, fault};
use super::caller::{Caller, RequestHead};
use super::catalogue::Catalogue;
use super::gate::{Phase, Place};
use super::running::SessionId;
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

/// The context of one request: its caller and that caller's tools.
pub(super) struct Visit {
    pub(super) caller: Caller,
    pub(super) tools: Registry,
    pub(super) catalogue: Arc<Catalogue>,
    /// The arguments, if the request is a call over HTTP.
    pub(super) arguments: Option<RawArguments>,
    /// The session in which the request can be cancelled, over HTTP in the older versions.
    pub(super) session: Option<SessionId>,
}

/// The text of a call's arguments, as it was sent.
#[derive(Clone)]
pub(super) struct RawArguments(Bytes);

impl RawArguments {
    /// Refers to a part of the body, without a copy.
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

/// Answers one request over HTTP, or all requests of a connection over standard input.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) shared: Arc<Shared>,
    /// The context, where it is determined for each request.
    pub(super) visit: Option<Arc<Visit>>,
}

/// The supported methods. A request of one of them that cannot be parsed arrives as an unknown method.
const METHODS: [&str; 6] =
    ["initialize", "ping", "server/discover", "subscriptions/listen", "tools/call", "tools/list"];
/// How many of them, from the start, exist only in the older versions.
const OLDER: usize = 2;

impl Handler {
    /// Returns the caller and its tools: determined before the body was read over HTTP, or now over standard input.
    async fn visit(&self) -> Result<Arc<Visit>, ErrorData> {
        if let Some(visit) = &self.visit {
            return Ok(visit.clone());
        }
        let caller = self.shared.local.clone();
        let head = RequestHead::default();
        let load = self.shared.load(caller, &head);
        match tokio::time::timeout(self.shared.limits.load, load).await {
            Ok(loaded) => loaded.map(Arc::new).map_err(|unserved| fault("tools", &unserved.reason())),
            Err(_) => Err(fault("tools", &"loading them took too long")),
        }
    }

    /// Takes a slot for a listening stream, if one is free.
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
        // `rmcp` moves this future; boxing keeps what it holds while a tool runs in one place.
        let mut result = Box::pin(call(&self.shared, &visit, request, context)).await?;
        if modern {
            let own = result.meta.get_or_insert_default();
            own.extend(self.shared.meta.clone());
        }
        Ok(result.into())
    }

    /// For the check of `Mcp-Param-…` headers, which does not know the request: this handler was made for one request.
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
                // Changes that arrive faster than they are sent count as one.
                news = changes.changed() => {
                    if news.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Over standard input, clients of the older versions are notified of changes without a subscription.
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

    // These are not declared, so they do not exist; `rmcp` would answer with empty lists.

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
