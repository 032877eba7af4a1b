//! Typed tool definitions for language models.
extern crate self as agent;

pub mod args;
pub(crate) mod schema;
