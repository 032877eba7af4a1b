//! A model that tries every tool.

mod calls;
mod schema;

pub use schema::{SchemaCall, SchemaModel};
