//! The common parts of the servers of this crate: limits on connections, callers and request bodies, accepted hosts and origins, time
//! limits for stalled clients, and the shutdown.

#[cfg(any(feature = "mcp-server", feature = "studio"))]
mod body;
mod connections;
#[cfg(any(feature = "mcp-server", feature = "studio"))]
mod hosts;
#[cfg(any(feature = "mcp-server", feature = "studio"))]
mod lifecycle;
#[cfg(feature = "mcp-server")]
mod quota;
mod stall;

#[cfg(any(feature = "mcp-server", feature = "studio"))]
pub(crate) use body::{BodyError, read_body};
pub(crate) use connections::{accept, drive};
#[cfg(any(feature = "mcp-server", feature = "studio"))]
pub(crate) use hosts::HostPolicy;
#[cfg(feature = "mcp-server")]
pub(crate) use lifecycle::RunningGuard;
#[cfg(any(feature = "mcp-server", feature = "studio"))]
pub(crate) use lifecycle::{Lifecycle, ShutdownPhase};
#[cfg(feature = "mcp-server")]
pub(crate) use quota::{Quota, QuotaPermit};
pub(crate) use stall::StallLimit;
