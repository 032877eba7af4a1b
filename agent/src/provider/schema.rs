//! The schema of a structured reply in a provider's dialect.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use serde_json::Value;

use crate::args::{Plan, PlanOptions};
use crate::model::OutputSchema;
use crate::schema::{Dialect, render};

/// Returns the schema to send, and whether the provider can guarantee that the reply fits the schema. If the dialect is strict and can
/// express the schema, the rendered schema is returned. In all other cases the schema is unchanged, and the provider decides whether to
/// accept the schema.
pub(super) fn render_output(output: &OutputSchema, dialect: Dialect) -> (Value, bool) {
    match Plan::compile(&output.name, &output.schema, PlanOptions::default()) {
        Ok(plan) => {
            let rendered = render(&plan, dialect);
            let strict = rendered.dialect.is_strict();
            (if strict { rendered.schema } else { (*output.schema).clone() }, strict)
        }
        Err(_) => ((*output.schema).clone(), false),
    }
}
