//! Rules that hold for every provider.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod edges;
mod faults;
mod frequent;
mod kept;
mod managed;
mod odd_replies;
mod round_trips;
mod strict;
pub(super) mod support;
mod switching;
#[cfg(feature = "openai")]
mod work;
