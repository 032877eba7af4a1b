//! The common parts of the servers of this library: limits on connections, callers and bodies, the accepted hosts and
//! origins, clients that neither read nor send, and the shutdown.

#[cfg(feature = "mcp-server")]
mod body;
mod connections;
#[cfg(feature = "mcp-server")]
mod hosts;
#[cfg(feature = "mcp-server")]
mod lifecycle;
#[cfg(feature = "mcp-server")]
mod quota;
mod stall;

#[cfg(feature = "mcp-server")]
pub(crate) use body::{BodyError, read_body};
pub(crate) use connections::{accept, drive};
#[cfg(feature = "mcp-server")]
pub(crate) use hosts::HostPolicy;
#[cfg(feature = "mcp-server")]
pub(crate) use lifecycle::{Lifecycle, RunningGuard, ShutdownPhase};
#[cfg(feature = "mcp-server")]
pub(crate) use quota::{Quota, QuotaPermit};
pub(crate) use stall::StallLimit;
