//! Plans as JSON Schema for a reader.

mod render;

use crate::args::{Graph, SchemaError};

/// Gives a plan the schema that the model is shown.
pub(crate) fn with_rendered(mut graph: Graph) -> Result<Graph, SchemaError> {
    let schema = render::canonical(&graph)?;
    graph.set_schema(schema);
    Ok(graph)
}
