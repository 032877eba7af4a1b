//! The methods of the server, as a handler of `rmcp`.

use super::built::{AdmittedRequest, BuiltServer};
use super::call::{call, fault};
use super::request_info::{RequestInfo, RequestOrigin};
use crate::serve::{QuotaPermit, ShutdownPhase};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use std::sync::Arc;

/// A handler of one request over HTTP, or of all requests of a connection over standard input.
#[derive(Clone)]
pub(super) struct ProtocolHandler {
    pub(super) shared: Arc<BuiltServer>,
    /// `None` over standard input.
    pub(super) admitted: Option<Arc<AdmittedRequest>>,
}

/// The supported methods. If one of them arrives in `on_custom_request`, its parameters are invalid.
const METHODS: [&str; 6] =
    ["initialize", "ping", "server/discover", "subscriptions/listen", "tools/call", "tools/list"];
/// The number of methods that exist only in the older protocol versions. These methods come first in [`METHODS`].
const OLDER: usize = 2;

impl ProtocolHandler {
    /// Returns the caller and its tools. Over HTTP, both were determined before the body was read. Over standard input, this function
    /// loads the tools.
    async fn admit(&self) -> Result<Arc<AdmittedRequest>, ErrorData> {
        if let Some(admitted) = &self.admitted {
            return Ok(admitted.clone());
        }
        let caller = self.shared.local.clone();
        let load = self.shared.load(caller);
        match tokio::time::timeout(self.shared.limits.load, load).await {
            Ok(loaded) => loaded.map(Arc::new).map_err(|failure| fault("tools", &failure.reason())),
            Err(_) => Err(fault("tools", &"loading the tools took too long")),
        }
    }

    /// Runs a call. In the newer protocol versions, the metadata of the response also names the server.
    pub(super) async fn answer(
        &self,
        tool: &str,
        info: Arc<RequestInfo>,
        connection: Option<Peer<RoleServer>>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _running = self.shared.handle.begin();
        let admitted = self.admit().await?;
        let is_modern = info.is_modern();
        // The future is boxed, because it is large and `rmcp` moves it.
        let mut response = Box::pin(call(&self.shared, &admitted, tool, info, connection)).await?;
        if is_modern {
            let meta = match &mut response {
                CallToolResponse::Complete(result) => &mut result.meta,
                CallToolResponse::InputRequired(result) => &mut result.meta,
                _ => return Ok(response),
            };
            meta.get_or_insert_default().extend(self.shared.meta.clone());
        }
        Ok(response)
    }

    fn listener_permit(&self) -> Option<QuotaPermit> {
        let caller = self.admitted.as_ref().map_or(&self.shared.local, |admitted| &admitted.caller);
        self.shared.listeners.try_enter(caller.quota_key())
    }
}

/// Returns whether the request uses a protocol version without sessions.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for ProtocolHandler {
    fn get_info(&self) -> ServerConfig {
        self.shared.config.clone()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let admitted = self.admit().await?;
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        let Some((page, next)) = admitted.catalogue.page(cursor, self.shared.limits.page) else {
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
        // Over HTTP, there is no connection on which the server could ask questions.
        let connection = self.admitted.is_none().then(|| context.peer.clone());
        let info = Arc::new(RequestInfo::of(RequestOrigin::Protocol(context)));
        self.answer(&request.name, info, connection).await
    }

    /// Returns the tool, so that `rmcp` can compare the `Mcp-Param-…` headers of the request with the arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalogue = &self.admitted.as_ref()?.catalogue;
        catalogue.tool(name).filter(|_| catalogue.has_header_parameters()).cloned()
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.intersection(&SubscriptionFilter::builder().tools_list_changed().build()))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(_permit) = self.listener_permit() else {
            return Err(ErrorData::internal_error("Too many streams listen. Try again later.", None));
        };
        let mut changes = self.shared.handle.changes();
        changes.mark_unchanged();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.shared.handle.reached(ShutdownPhase::Draining) => return Ok(()),
                // Several changes that occur while one notification is sent cause only one further notification.
                received = changes.changed() => {
                    if received.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Starts a task that notifies a client over standard input when the tools have changed. Clients of the older versions need this task,
    /// because they cannot subscribe to changes.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.shared.handle.changes();
        changes.mark_unchanged();
        let (handle, peer) = (self.shared.handle.clone(), context.peer);
        let Some(permit) = self.listener_permit() else { return };
        tokio::spawn(async move {
            let _permit = permit;
            loop {
                tokio::select! {
                    () = handle.reached(ShutdownPhase::Draining) => return,
                    received = changes.changed() => {
                        if received.is_err() || peer.notify_tool_list_changed().await.is_err() {
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

    // The server does not declare the following methods. Without these functions, `rmcp` would answer with empty lists.

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
