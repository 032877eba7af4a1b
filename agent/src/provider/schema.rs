//! The schema of a structured reply in a provider's dialect.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::Value;

use crate::args::{Plan, PlanOptions};
use crate::model::OutputSchema;
use crate::schema::{Dialect, render};

/// Returns the schema to send, and whether the provider can guarantee that the reply fits it. A schema that `Plan` or a strict dialect
/// cannot express is sent unchanged, and the provider decides whether to accept it.
pub(super) fn render_output(output: &OutputSchema, dialect: Dialect) -> (Value, bool) {
    let plan = Plan::compile(&output.name, &output.schema, PlanOptions::default());
    match plan.map(|plan| render(&plan, dialect)) {
        Ok(rendered) if rendered.dialect == dialect => (rendered.schema, dialect.is_strict()),
        _ => ((*output.schema).clone(), false),
    }
}
