//! Checks that a type accepts its own defaults. A default is used without being parsed, so a default that breaks a constraint would
//! remain unnoticed.

use super::document::Document;
use super::judge::faults;
use super::plan::{NodeId, NodeKind, SchemaError};
use super::text::push_segment;
use super::{IssueCode, Plan};
use serde_json::Value;
use std::collections::HashSet;

impl Plan {
    /// Checks every default that the schema shows. The error is about the first default that breaks a constraint; it does not show a
    /// secret default.
    pub(crate) fn check_defaults(&self) -> Result<(), SchemaError> {
        let mut seen = HashSet::new();
        self.defaults_below(self.graph().root, false, &mut String::new(), &mut seen)
            .map_err(|e| e.of(self.name()))
    }

    /// Checks the defaults at and below a schema node. Each node is visited once, so the recursion ends even for recursive types.
    fn defaults_below(
        &self,
        id: NodeId,
        secret: bool,
        path: &mut String,
        seen: &mut HashSet<NodeId>,
    ) -> Result<(), SchemaError> {
        if !seen.insert(id) {
            return Ok(());
        }
        let length = path.len();
        match self.graph().kind(id) {
            NodeKind::Object(object) => {
                for prop in &object.props {
                    push_segment(path, &prop.name);
                    let secret = secret || prop.secret;
                    if let Some(default) = prop.notes.get("default").filter(|default| !default.is_null()) {
                        self.check_default(default, prop.node, secret, path)?;
                    }
                    self.defaults_below(prop.node, secret, path, seen)?;
                    path.truncate(length);
                }
                for (_, node) in &object.patterns {
                    path.push_str("/*");
                    self.defaults_below(*node, secret, path, seen)?;
                    path.truncate(length);
                }
            }
            NodeKind::Array(array) => {
                for node in array.prefix.iter().chain(&array.items) {
                    path.push_str("/*");
                    self.defaults_below(*node, secret, path, seen)?;
                    path.truncate(length);
                }
            }
            kind => {
                for node in kind.children() {
                    self.defaults_below(node, secret, path, seen)?;
                }
            }
        }
        Ok(())
    }

    fn check_default(
        &self,
        default: &Value,
        node: NodeId,
        secret: bool,
        path: &str,
    ) -> Result<(), SchemaError> {
        let text = default.to_string();
        // A default that is nested too deeply for `serde_json` is accepted, because no call could send such a value.
        let Ok(document) = Document::parse(&text) else { return Ok(()) };
        let (mut issues, of_types) = faults(self.graph(), node, &document.root, secret);
        // Only issues of constraints are kept. Other issues may be wrong, because the schema describes the form that serde reads, and the
        // default has the form that serde writes.
        issues.retain(|issue| {
            use IssueCode::{Format, Length, Pattern, Range, Unique};
            matches!(issue.code, Range | Length | Pattern | Format | Unique)
        });
        // `of_types` counts wrong formats that the Rust type checks itself.
        if issues.len() <= of_types || issues.is_empty() {
            return Ok(());
        }
        let first = issues.iter().position(|issue| issue.code != IssueCode::Format).unwrap_or(0);
        let mut issue = issues.swap_remove(first);
        issue.path.insert_str(0, path);
        Err(SchemaError::new("default", "", format!("does not fit its own parameter: {issue}")))
    }
}
