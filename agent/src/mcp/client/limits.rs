//! Limits on the time and memory that a server may use.

use super::config::ClientConfig;
use std::time::Duration;

/// Maximum time of a limit. The clock may overflow if a much longer time is added.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The limits, each of which is documented at its setter. Sizes are in bytes.
#[derive(Clone)]
pub(super) struct ClientLimits {
    pub(super) connect: Option<Duration>,
    pub(super) call: Duration,
    pub(super) longest_call: Duration,
    pub(super) list: Duration,
    pub(super) pages: usize,
    pub(super) tools: usize,
    pub(super) definitions: usize,
    pub(super) description: usize,
    pub(super) result: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: None,
            call: Duration::from_secs(60),
            longest_call: Duration::from_secs(600),
            list: Duration::from_secs(30),
            pages: 50,
            tools: 1_000,
            definitions: 1 << 20,
            description: 4 << 10,
            result: 4 << 20,
        }
    }
}

/// Limits on the time and memory that the server may use.
///
/// ```
/// # #[cfg(feature = "mcp-server")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::mcp::{ClientConfig, McpClient, McpServer};
/// use agent::{Registry, tool, tools};
/// use std::time::Duration;
///
/// /// Searches the documents.
/// #[tool(read_only)]
/// fn search(query: String) -> String {
///     query
/// }
///
/// let (url, serving) = McpServer::new(tools![search]).bind(([127, 0, 0, 1], 0)).await?;
/// tokio::spawn(serving);
/// let config = ClientConfig::http(url)
///     .connect_timeout(Duration::from_secs(5))
///     .call_timeout(Duration::from_secs(10))
///     .longest_call(Duration::from_secs(60))
///     .list_timeout(Duration::from_secs(5))
///     .max_pages(2)
///     .max_tools(50)
///     .max_definitions(64 << 10)
///     .max_description(8)
///     .max_result(32 << 10);
/// let registry = Registry::new(McpClient::connect(config.name("docs")).await?)?;
/// let description = registry.fetch("docs__search")?.definition().description().to_owned();
/// assert!(description.starts_with("Search") && description.len() < 22, "{description}");
/// # Ok(()) }
/// # #[cfg(not(feature = "mcp-server"))] fn main() {}
/// ```
impl ClientConfig {
    /// Sets the maximum time to connect. The default is 30 s over HTTP, where the first request may have to start the server. The default
    /// is 60 s for a program, which may have to be downloaded first, as with `npx` and `uvx`.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.limits.connect = Some(time.min(YEAR));
        self
    }

    /// Sets the maximum time of a call without progress. Each progress message restarts this time. Default: 60 s.
    pub fn call_timeout(mut self, time: Duration) -> Self {
        self.limits.call = time.min(YEAR);
        self
    }

    /// Sets the maximum total time of a call. Default: 10 minutes. If the server speaks 2026-07-28, this time is paused while a person
    /// answers a question, and then starts again in full length.
    pub fn longest_call(mut self, time: Duration) -> Self {
        self.limits.longest_call = time.min(YEAR);
        self
    }

    /// Sets the maximum time to list all tools. Listing that takes longer fails. Default: 30 s.
    pub fn list_timeout(mut self, time: Duration) -> Self {
        self.limits.list = time.min(YEAR);
        self
    }

    /// Sets the maximum number of pages of the list of tools. A list with more pages is an error. Default: 50.
    pub fn max_pages(mut self, count: usize) -> Self {
        self.limits.pages = count;
        self
    }

    /// Sets the maximum number of tools in the list. A list with more tools is an error. Default: 1,000.
    pub fn max_tools(mut self, count: usize) -> Self {
        self.limits.tools = count;
        self
    }

    /// Sets the maximum size of all definitions together, in bytes. Larger definitions are an error. Default: 1 MiB.
    pub fn max_definitions(mut self, bytes: usize) -> Self {
        self.limits.definitions = bytes;
        self
    }

    /// Sets the maximum length of one description, in bytes. A longer description is cut. Default: 4 KiB.
    pub fn max_description(mut self, bytes: usize) -> Self {
        self.limits.description = bytes;
        self
    }

    /// Sets the maximum size of a result as JSON, in bytes. A longer result is an error. Default: 4 MiB. The limit of an HTTP message is
    /// 64 KiB plus six times the larger of `max_result` and [`max_definitions`](Self::max_definitions), at most 16 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.limits.result = bytes;
        self
    }
}
