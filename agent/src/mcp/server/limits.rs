//! Limits on what a server spends on its callers.

use std::time::Duration;

/// Limits on what a server spends on its callers. The fields are public: change those that do not fit.
///
/// ```
/// use agent::mcp::server::ServerLimits;
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
    /// How long a client may leave an answer unread before its connection is closed. Default: 30 s. Over standard input the limit is
    /// ten times as long: the program at the other end may be paused.
    pub send: Duration,
    /// Time to authenticate the caller and to load its tools. Default: 5 s.
    pub load: Duration,
    /// Time for one call of a tool without a timeout of its own. Default: 60 s.
    pub call: Duration,
    /// Maximum time for one call, whatever its tool's timeout is. Default: 10 minutes.
    pub longest_call: Duration,
    /// Calls that run at once. Default: 64.
    pub calls: usize,
    /// Calls of one known caller that run at once. Unknown callers share only the limit of `calls`. Default: 8.
    pub calls_per_caller: usize,
    /// How long a call waits for its turn before the server answers that it is busy. Default: 1 s.
    pub wait: Duration,
    /// Tools on one page of the list. Default: 100.
    pub page: usize,
    /// Maximum size of a result as JSON, in bytes. A longer result becomes an error that says so. Default: 4 MiB.
    pub result: usize,
    /// How deep arguments may nest. Default: 64.
    pub depth: usize,
    /// Progress messages per second in one call; between two messages only the newest is kept. Default: 10.
    pub progress: u32,
    /// Streams that listen for changes. Default: 128.
    pub listeners: usize,
    /// Streams of one known caller. Default: 4.
    pub listeners_per_caller: usize,
    /// Open connections of [`Server::serve`](super::Server::serve). Default: 1,024.
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
