//! What a server spends on its callers at most.

use std::time::Duration;

/// What a server spends on its callers at most. The fields are public: change the ones that do not fit.
///
/// ```
/// use agent::mcp::server::ServerLimits;
///
/// let limits = ServerLimits { calls: 200, ..ServerLimits::default() };
/// assert_eq!(limits.body, 1 << 20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLimits {
    /// Bytes of a request's body; 1 MiB.
    pub body: usize,
    /// Time to receive a request; 10 s.
    pub receive: Duration,
    /// Time to know who asks and to load that caller's tools; 5 s.
    pub load: Duration,
    /// Time for one call of a tool that does not say its own; 60 s.
    pub call: Duration,
    /// Time for one call, whatever its tool says; 10 minutes.
    pub longest_call: Duration,
    /// Calls that run at once; 64.
    pub calls: usize,
    /// Calls of one known caller that run at once; 8. Those of callers that nobody knows share the other limit only.
    pub calls_per_caller: usize,
    /// How long a call waits for its turn before it is told that the server is busy; 1 s.
    pub wait: Duration,
    /// Tools on one page of the list; 100.
    pub page: usize,
    /// Bytes of a result as JSON; 4 MiB. What is longer is an error that says so.
    pub result: usize,
    /// How deep arguments may nest; 64.
    pub depth: usize,
    /// Progress messages a second in one call; 10. In between the newest wins.
    pub progress: u32,
    /// Streams that listen for changes; 128.
    pub listeners: usize,
    /// Streams of one known caller; 4.
    pub listeners_per_caller: usize,
    /// Open connections of [`Server::serve`](super::Server::serve); 1,024.
    pub connections: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 1 << 20,
            receive: Duration::from_secs(10),
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
