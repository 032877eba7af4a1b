//! A server of rmcp with its own macros. Usage: `mcp-plain direct FORM CALLS|http|stdio`.

mod served;

use rmcp::ServiceExt as _;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    text: String,
    times: u32,
}

/// The router is made once, and shared by the handlers of all requests.
#[derive(Clone)]
struct Plain {
    tools: Arc<ToolRouter<Self>>,
}

#[rmcp::tool_router]
impl Plain {
    fn new() -> Self {
        Self { tools: Arc::new(Self::tool_router()) }
    }

    /// Does nothing.
    #[rmcp::tool]
    async fn noop(&self, Parameters(Arguments { text, times }): Parameters<Arguments>) -> String {
        let _ = times;
        text
    }

    /// Returns what the process has used.
    #[rmcp::tool]
    async fn usage(&self) -> String {
        served::usage()
    }
}

#[rmcp::tool_handler(router = self.tools)]
impl rmcp::ServerHandler for Plain {}

fn service() -> StreamableHttpService<Plain, NeverSessionManager> {
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let plain = Plain::new();
    StreamableHttpService::new(move || Ok(plain.clone()), Arc::new(NeverSessionManager::default()), config)
}

fn main() -> served::Outcome<()> {
    match served::mode()? {
        served::Mode::Direct(calls, form) => served::direct(|| Ok(service()), calls, &form),
        served::Mode::Http => served::http(|| Ok(axum::Router::new().nest_service("/mcp", service()))),
        served::Mode::Stdio => served::runtime()?.block_on(async {
            Plain::new().serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }),
    }
}
