//! Models that need no provider: a closure, and one that tries every tool.

mod calls;
mod function;
mod schema;

pub use function::FunctionModel;
pub use schema::{CallKind, SchemaCall, SchemaModel, SchemaReport};
