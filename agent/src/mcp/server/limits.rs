//! Limits on the resources that callers may use.

use std::time::Duration;

/// The limits of a server. Each limit is documented at its setter on `McpServer`. Sizes are in bytes.
#[derive(Clone, Debug)]
pub(super) struct ServerLimits {
    pub(super) body: usize,
    pub(super) receive: Duration,
    pub(super) send: Duration,
    pub(super) load: Duration,
    pub(super) call: Duration,
    pub(super) longest_call: Duration,
    pub(super) calls: usize,
    pub(super) calls_per_caller: usize,
    pub(super) wait: Duration,
    pub(super) page: usize,
    pub(super) result: usize,
    pub(super) depth: usize,
    pub(super) progress: u32,
    pub(super) listeners: usize,
    pub(super) listeners_per_caller: usize,
    pub(super) connections: usize,
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
