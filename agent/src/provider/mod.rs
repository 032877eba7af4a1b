//! Providers.

pub mod sse;
