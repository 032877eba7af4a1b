//! Tools: their definition, the context and the result of a call, and the registry that runs calls.
//!
//! The modules: [`traits`] has the tool trait, [`definition`] what a model sees, [`policy`] how a tool may be run, and
//! [`approval`] whether a call has to be approved. [`context`], [`state`], [`cancel`], [`executor`] and [`progress`] are for the
//! body. [`output`], [`outcome`] and [`error`] are the results. [`registry`], [`invoke`] and [`problem`] run one call, and
//! [`trace`] records it, and [`secrets`] says what may be shown of it. [`combine`] derives sets and searches for tools. [`dialect`] shows all tools in a provider's schemas.
//! [`lint`], [`examples`] and [`manifest`] serve tests. [`dynamic`], [`builder`] and [`parameters`] make tools at run time, and
//! [`source`] says on whose behalf they are called. The macros use [`arguments`], [`set`], `listing`, `glue`, `spec`, `probe`,
//! `composed`, `constraint`, `convert`, `schemas` and `result_schema`.
//!
//! Nothing here uses a clock, a thread pool or a network: waiting goes through [`Executor`].

pub(crate) mod approval;
pub(crate) mod arguments;
pub(crate) mod builder;
pub(crate) mod call_record;
pub(crate) mod cancel;
pub(crate) mod combine;
#[cfg(feature = "macros")]
pub(crate) mod composed;
#[cfg(feature = "macros")]
pub(crate) mod constraint;
pub(crate) mod context;
#[cfg(feature = "macros")]
pub(crate) mod convert;
#[cfg(feature = "macros")]
pub(crate) mod debug_secrets;
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
pub(crate) mod secrets;
pub(crate) mod set;
pub(crate) mod source;
#[cfg(feature = "macros")]
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod trace;
pub(crate) mod traits;

use std::future::Future;
use std::pin::Pin;

/// A boxed future that may be sent to another thread, as object-safe asynchronous methods return it.
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
