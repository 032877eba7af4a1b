//! Checks structured results against the announced output schema.

use crate::args::{CoercionPolicy, Plan, PlanOptions, SchemaError, UnknownKeys};
use serde_json::Value;

/// Checks structured results, without coercion.
#[derive(Clone)]
pub(super) struct OutputCheck(Plan);

impl OutputCheck {
    pub(super) fn new(tool: &str, schema: &Value) -> Result<Self, SchemaError> {
        let exact = PlanOptions::default().coercion(CoercionPolicy::exact()).unknown(UnknownKeys::Keep);
        Plan::compile(tool, schema, exact).map(Self)
    }

    /// Returns why the result does not fit. The text is for the operator: it may quote the result.
    pub(super) fn fault(&self, structured: &Value) -> Option<String> {
        self.0.parse::<Value>(&structured.to_string()).err().map(|report| report.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_held_against_its_schema_as_it_is() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let check = OutputCheck::new("count", &schema).unwrap();
        assert_eq!(check.fault(&json!({"n": 1, "more": true})), None);
        for wrong in [json!({"n": "1"}), json!({}), json!([1]), json!(null)] {
            assert!(check.fault(&wrong).is_some(), "{wrong}");
        }
    }
}
