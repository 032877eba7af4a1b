//! Models without a provider: a closure, and a model that tries every tool.

mod calls;
mod function;
mod schema;

pub use function::FunctionModel;
pub use schema::{CallKind, SchemaCall, SchemaModel, SchemaReport};
