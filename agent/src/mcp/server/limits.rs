//! Limits on the resources that callers may use.

use std::time::Duration;

/// Limits on the resources that callers may use. The fields are public: change those that do not fit.
///
/// ```
/// use agent::mcp::ServerLimits;
///
/// let limits = ServerLimits { calls: 200, ..ServerLimits::default() };
/// assert_eq!(limits.body, 1 << 20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLimits {
    /// Maximum size of a request's body, in bytes. Default: 1 MiB.
    pub body: usize,
    /// Time to receive a request. Default: 10 s.
    pub receive: Duration,
    /// Maximum time for which a client may leave an answer unread before its connection is closed. Default: 30 s. Over standard input the
    /// limit is ten times as long, because the program at the other end may be paused.
    pub send: Duration,
    /// Time to authenticate the caller and to load its tools. Default: 5 s.
    pub load: Duration,
    /// Time for one call of a tool without a timeout. Default: 60 s.
    pub call: Duration,
    /// Maximum time for one call, even if its tool has a longer timeout. Default: 10 minutes.
    pub longest_call: Duration,
    /// Maximum number of concurrent calls. Default: 64.
    pub calls: usize,
    /// Maximum number of concurrent calls of one authenticated caller. Default: 8.
    pub calls_per_caller: usize,
    /// Maximum wait of a call before the server answers that it is busy. Default: 1 s.
    pub wait: Duration,
    /// Tools on one page of the list. Default: 100.
    pub page: usize,
    /// Maximum size of a result as JSON, in bytes. A longer result becomes an error. Default: 4 MiB.
    pub result: usize,
    /// Maximum depth of nested arguments. Default: 64.
    pub depth: usize,
    /// Maximum number of progress messages per second in one call. Beyond it, only the newest is sent. Default: 10.
    pub progress: u32,
    /// Maximum number of streams that listen for changes. Default: 128.
    pub listeners: usize,
    /// Maximum number of such streams of one authenticated caller. Default: 4.
    pub listeners_per_caller: usize,
    /// Maximum number of open connections of [`McpServer::serve`](super::McpServer::serve). Default: 1,024.
    pub connections: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            receive: Duration::from_secs(10),
            send: Duration::from_secs(30),
            load: Duration::from_secs(5),
            call: Duration::from_secs(60),
            longest_call: Duration::from_secs(600),
            calls: 64,
            calls_per_caller: 8,
            wait: Duration::from_secs(1),
            page: 100,
            result: 4 << 20,
            depth: 64,
            progress: 10,
            listeners: 128,
            listeners_per_caller: 4,
            connections: 1_024,
        }
    }
}
