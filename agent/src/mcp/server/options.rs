//! The setters of limits.

use super::McpServer;
use std::time::Duration;

/// Limits on the resources that callers may use.
///
/// ```
/// use agent::{mcp::McpServer, tools};
/// use std::time::Duration;
///
/// let server = McpServer::new(tools![])
///     // One request:
///     .max_body(256 << 10)
///     .max_depth(16)
///     .receive_timeout(Duration::from_secs(5))
///     .load_timeout(Duration::from_secs(2))
///     .send_timeout(Duration::from_secs(10))
///     .page_size(50)
///     // One call:
///     .call_timeout(Duration::from_secs(10))
///     .longest_call(Duration::from_secs(120))
///     .max_result(1 << 20)
///     .max_progress(2)
///     // All of them together:
///     .max_calls(200)
///     .max_calls_per_caller(4)
///     .max_wait(Duration::from_millis(200))
///     .max_listeners(1_000)
///     .max_listeners_per_caller(2)
///     .max_connections(4_096);
/// assert!(server.into_service::<String>().is_ok());
/// ```
impl McpServer {
    /// Sets the maximum size of a request's body, in bytes. Default: 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.limits.body = bytes;
        self
    }

    /// Sets the maximum time to receive the body of a request. Connections of [`serve`](Self::serve) and [`bind`](Self::bind) have the
    /// same limit for the head. Default: 10 s.
    pub fn receive_timeout(mut self, time: Duration) -> Self {
        self.limits.receive = time;
        self
    }

    /// Sets the maximum time for which a client may leave an answer unread before its connection is closed. Default: 30 s. Over standard
    /// input and output, the limit is ten times as long, because the program at the other end may be paused.
    pub fn send_timeout(mut self, time: Duration) -> Self {
        self.limits.send = time;
        self
    }

    /// Sets the maximum total time to authenticate the caller and to load its tools. Default: 5 s.
    pub fn load_timeout(mut self, time: Duration) -> Self {
        self.limits.load = time;
        self
    }

    /// Sets the timeout of calls whose tool has no timeout. Default: 60 s.
    pub fn call_timeout(mut self, time: Duration) -> Self {
        self.limits.call = time;
        self
    }

    /// Sets the maximum time of a call, even if its tool has a longer timeout. Default: 10 minutes.
    pub fn longest_call(mut self, time: Duration) -> Self {
        self.limits.longest_call = time;
        self
    }

    /// Sets the maximum number of concurrent calls. Default: 64.
    pub fn max_calls(mut self, count: usize) -> Self {
        self.limits.calls = count;
        self
    }

    /// Sets the maximum number of concurrent calls of one authenticated caller. Default: 8.
    pub fn max_calls_per_caller(mut self, count: usize) -> Self {
        self.limits.calls_per_caller = count;
        self
    }

    /// Sets the maximum time for which a call waits if the limit of [`max_calls`](Self::max_calls) or
    /// [`max_calls_per_caller`](Self::max_calls_per_caller) is reached. After that time, the call fails. Default: 1 s.
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.limits.wait = time;
        self
    }

    /// Sets the number of tools on one page of the list. Default: 100.
    pub fn page_size(mut self, tools: usize) -> Self {
        self.limits.page = tools;
        self
    }

    /// Sets the maximum size of a result as JSON, in bytes. A longer result is replaced by an error. Default: 4 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.limits.result = bytes;
        self
    }

    /// Sets the maximum depth of nested arguments. Default: 64.
    pub fn max_depth(mut self, levels: usize) -> Self {
        self.limits.depth = levels;
        self
    }

    /// Sets the maximum number of progress messages per second in one call. Above this rate, only the newest message is sent. Default:
    /// 10.
    pub fn max_progress(mut self, per_second: u32) -> Self {
        self.limits.progress = per_second;
        self
    }

    /// Sets the maximum number of open streams that listen for changes of the tools. Default: 128.
    pub fn max_listeners(mut self, count: usize) -> Self {
        self.limits.listeners = count;
        self
    }

    /// Sets the limit of [`max_listeners`](Self::max_listeners) for each authenticated caller. Default: 4.
    pub fn max_listeners_per_caller(mut self, count: usize) -> Self {
        self.limits.listeners_per_caller = count;
        self
    }

    /// Sets the maximum number of open connections of [`serve`](Self::serve) and [`bind`](Self::bind). Default: 1,024.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.limits.connections = count;
        self
    }
}
