//! Tools: what they are, what they get, what they give back, and the registry that runs them.
//!
//! Rooms: [`traits`] the one tool trait; [`definition`] what a model is shown; [`policy`] how a tool may be
//! run, [`approval`] whether it waits for a word; [`progress`] what it tells meanwhile; [`context`], [`state`], [`cancel`], [`executor`] what a body gets; [`output`], [`outcome`], [`error`]
//! what comes back; [`registry`], [`invoke`] and [`problem`] one call from
//! arguments to result, [`trace`] what traces say of it; [`combine`] sets made of others, and the search for tools; [`dialect`] all tools in a provider's schema;
//! [`lint`], [`examples`] and [`manifest`] what a test asks of a set; [`dynamic`], [`builder`] and [`parameters`] tools made at
//! run time; [`source`] on whose behalf; [`arguments`], [`set`], `listing`, `glue`, `spec`, `probe`, `constraint`, `convert`, `schemas`, `result_schema` what the macros
//! stand on.
//!
//! Nothing here knows a clock, a thread pool or a network: waiting goes through [`Executor`].

pub(crate) mod approval;
pub(crate) mod arguments;
pub(crate) mod builder;
pub(crate) mod call_record;
pub(crate) mod cancel;
pub(crate) mod combine;
#[cfg(feature = "macros")]
pub(crate) mod constraint;
pub(crate) mod context;
#[cfg(feature = "macros")]
pub(crate) mod convert;
pub(crate) mod definition;
pub(crate) mod dialect;
pub(crate) mod dynamic;
pub(crate) mod error;
pub(crate) mod examples;
pub(crate) mod executor;
mod finite;
#[cfg(feature = "macros")]
pub(crate) mod glue;
pub(crate) mod invoke;
pub(crate) mod lint;
#[cfg(feature = "macros")]
pub(crate) mod listing;
pub(crate) mod manifest;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod parameters;
pub(crate) mod policy;
#[cfg(feature = "macros")]
pub(crate) mod probe;
pub(crate) mod problem;
pub(crate) mod progress;
pub(crate) mod registry;
#[cfg(feature = "macros")]
pub(crate) mod result_schema;
#[cfg(feature = "macros")]
pub(crate) mod schemas;
pub(crate) mod set;
pub(crate) mod source;
#[cfg(feature = "macros")]
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod trace;
pub(crate) mod traits;

use std::future::Future;
use std::pin::Pin;

/// A boxed future that may be sent to another thread; what object-safe asynchronous methods return.
///
/// ```
/// use agent::BoxFuture;
///
/// fn greet(name: &str) -> BoxFuture<'_, String> {
///     Box::pin(async move { format!("Hello, {name}!") })
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(greet("Ann").await, "Hello, Ann!");
/// # }
/// ```
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
