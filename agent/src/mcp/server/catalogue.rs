//! The list of tools that clients receive, sorted by name and divided into pages.

use super::error::McpServerError;
use crate::args::PlanOptions;
use crate::mcp::output::{OutputCheck, wrapped_schema};
use crate::tool::{annotations::ToolAnnotations, definition::ToolDefinition, registry::Registry};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{JsonObject, MetaObject, Tool};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The version at the start of each cursor, so that the format of cursors can change.
const CURSOR_VERSION: u8 = 1;
const MAX_CACHED: usize = 64;

pub(super) struct ToolCatalogue {
    /// The tools, sorted by name.
    tools: Vec<Tool>,
    outputs: HashMap<String, OutputCheck>,
    has_header_parameters: bool,
}

impl ToolCatalogue {
    pub(super) fn new(definitions: &[ToolDefinition]) -> Result<Self, McpServerError> {
        let (mut tools, mut outputs) = (Vec::new(), HashMap::new());
        for definition in definitions {
            tools.push(tool(definition)?);
            if let Some(schema) = definition.output_schema() {
                let check = OutputCheck::new(definition.name(), schema)
                    .map_err(|error| invalid(definition, format!("its output schema: {error}")))?;
                outputs.insert(definition.name().to_owned(), check);
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let has_header_parameters =
            tools.iter().any(|tool| names_header(&Value::from((*tool.input_schema).clone())));
        Ok(Self { tools, outputs, has_header_parameters })
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        let at = self.tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        self.tools.get(at)
    }

    /// Returns whether any tool has a parameter that clients also send in a header. `rmcp` compares the two values.
    pub(super) fn has_header_parameters(&self) -> bool {
        self.has_header_parameters
    }

    /// Returns those arguments of a call that are also sent in headers, at any depth.
    pub(super) fn header_arguments(&self, tool: &str, arguments: &str) -> Option<Value> {
        if !self.has_header_parameters {
            return None;
        }
        let schema = Value::from((*self.tool(tool)?.input_schema).clone());
        in_headers(&schema, &serde_json::from_str(arguments).ok()?)
    }

    pub(super) fn output(&self, name: &str) -> Option<&OutputCheck> {
        self.outputs.get(name)
    }

    /// Returns the page after a cursor, and the cursor of the next page if there is one. Returns `None` for an invalid cursor.
    pub(super) fn page(&self, cursor: Option<&str>, size: usize) -> Option<(&[Tool], Option<String>)> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = name_in(cursor)?;
                // The search also finds the position if the tool that the cursor names has been removed since.
                self.tools.partition_point(|tool| *tool.name <= *last)
            }
        };
        let end = start.saturating_add(size.max(1)).min(self.tools.len());
        let page = &self.tools[start..end];
        let next =
            if end < self.tools.len() { page.last().map(|tool| cursor_after(&tool.name)) } else { None };
        Some((page, next))
    }
}

fn names_header(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-mcp-header") || map.values().any(names_header),
        Value::Array(list) => list.iter().any(names_header),
        _ => false,
    }
}

/// Returns a copy of the value with only the properties that are sent in headers, or `None` if there are none. The protocol allows
/// `x-mcp-header` only in the schemas of properties of objects, at any depth.
fn in_headers(schema: &Value, value: &Value) -> Option<Value> {
    if schema.get("x-mcp-header").is_some() {
        return Some(value.clone());
    }
    let (properties, value) = (schema.get("properties")?.as_object()?, value.as_object()?);
    let kept: JsonObject = properties
        .iter()
        .filter_map(|(name, schema)| Some((name.clone(), in_headers(schema, value.get(name)?)?)))
        .collect();
    (!kept.is_empty()).then(|| Value::Object(kept))
}

fn cursor_after(name: &str) -> String {
    let mut bytes = vec![CURSOR_VERSION];
    bytes.extend_from_slice(name.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn name_in(cursor: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (version, name) = bytes.split_first()?;
    if *version != CURSOR_VERSION || name.is_empty() {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

fn tool(definition: &ToolDefinition) -> Result<Tool, McpServerError> {
    let description = Some(definition.description()).filter(|text| !text.is_empty());
    let schema = root_object(definition.parameters())
        .ok_or_else(|| invalid(definition, "its parameters are not an object, as the protocol requires"))?;
    let mut tool = Tool::new_with_raw(
        definition.name().to_owned(),
        description.map(|text| text.to_owned().into()),
        Arc::new(schema),
    );
    if let Some(schema) = definition.output_schema() {
        let schema = wrapped_schema(schema)
            .or_else(|| root_object(schema))
            .ok_or_else(|| invalid(definition, "its output schema is not a schema"))?;
        tool = tool.with_raw_output_schema(Arc::new(schema));
    }
    if let Some(title) = definition.title() {
        tool = tool.with_title(title);
    }
    let hints = definition.hints();
    if *hints != ToolAnnotations::default() {
        tool = tool.with_annotations(rmcp::model::ToolAnnotations::from_raw(
            definition.title().map(str::to_owned),
            hints.read_only,
            hints.destructive,
            hints.idempotent,
            hints.open_world,
        ));
    }
    if !definition.meta().is_empty() {
        let mut meta = MetaObject::default();
        for (key, value) in definition.meta() {
            meta.insert(key.clone(), value.clone());
        }
        tool = tool.with_meta(meta);
    }
    Ok(tool)
}

/// Returns the schema with `"type": "object"` at its root, as the protocol requires. Returns `None` if the root has another type.
fn root_object(schema: &Value) -> Option<JsonObject> {
    let map = schema.as_object()?;
    if let Some(kind) = map.get("type") {
        return (kind == "object").then(|| map.clone());
    }
    let mut own = JsonObject::new();
    own.insert("type".to_owned(), "object".into());
    own.extend(map.clone());
    Some(own)
}

fn invalid(definition: &ToolDefinition, reason: impl Into<String>) -> McpServerError {
    McpServerError::Tool { tool: definition.name().to_owned(), reason: reason.into() }
}

#[derive(Clone)]
struct ServedTools {
    /// The loaded tools with the server's `PlanOptions`. `None` for a fixed set of tools, which already has these options. The state of
    /// the tools is added later, because sets with the same tools may have different state.
    tools: Option<Registry>,
    catalogue: Arc<ToolCatalogue>,
}

/// A cache of the most recently used sets of tools, by the address of their list of definitions.
#[derive(Default)]
pub(super) struct CatalogueCache {
    options: Option<PlanOptions>,
    kept: Mutex<Vec<(Arc<[ToolDefinition]>, ServedTools)>>,
}

impl CatalogueCache {
    pub(super) fn with_options(options: PlanOptions) -> Self {
        Self { options: Some(options), ..Self::default() }
    }

    pub(super) fn of(&self, tools: &Registry) -> Result<(Registry, Arc<ToolCatalogue>), McpServerError> {
        let ServedTools { tools: served, catalogue } = self.served(tools)?;
        Ok((served.map_or_else(|| tools.clone(), |served| served.with_state_of(tools)), catalogue))
    }

    fn served(&self, tools: &Registry) -> Result<ServedTools, McpServerError> {
        let definitions = tools.definitions();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(of, _)| Arc::ptr_eq(of, &definitions)) {
            kept[..=at].rotate_right(1);
            return Ok(kept[0].1.clone());
        }
        drop(kept);
        // Making the catalogue of a large set takes time, so the lock is not held while the catalogue is made.
        let adapted = self.options.map(|options| tools.with_options(options)).transpose()?;
        let shown = adapted.as_ref().map_or_else(|| definitions.clone(), Registry::definitions);
        let made = ServedTools { tools: adapted, catalogue: Arc::new(ToolCatalogue::new(&shown)?) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(0, (definitions, made.clone()));
        kept.truncate(MAX_CACHED);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Plan, PlanOptions};
    use serde_json::json;

    fn named(name: &str, schema: &Value) -> ToolDefinition {
        ToolDefinition::new(Plan::compile(name, schema, PlanOptions::default()).unwrap(), "Does it.").unwrap()
    }

    fn names(page: &[Tool]) -> Vec<&str> {
        page.iter().map(|tool| &*tool.name).collect()
    }

    #[test]
    fn pages_continue_by_name_after_a_tool_was_removed() {
        let empty = json!({"type": "object"});
        let all = |names: &[&str]| {
            ToolCatalogue::new(&names.iter().map(|name| named(name, &empty)).collect::<Vec<_>>()).unwrap()
        };
        let five = all(&["d", "b", "a", "e", "c"]);
        let (page, next) = five.page(None, 2).unwrap();
        assert_eq!(names(page), ["a", "b"]);
        let (page, last) = five.page(next.as_deref(), 3).unwrap();
        assert_eq!((names(page), last), (vec!["c", "d", "e"], None));
        let without_b = all(&["a", "c", "d"]);
        assert_eq!(names(without_b.page(next.as_deref(), 2).unwrap().0), ["c", "d"]);
        for wrong in ["", "x", "AA", "YQ", "AWE=", "Av8", "\u{e9}"] {
            assert!(five.page(Some(wrong), 2).is_none(), "{wrong}");
        }
        let end = cursor_after("zzz");
        assert_eq!(five.page(Some(&end), 2).unwrap(), (&[][..], None));
    }

    #[test]
    fn schemas_are_unchanged_except_for_the_type_at_the_root() {
        let odd = json!({"x-mine": 1, "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}});
        let tool = tool(&named("odd", &odd)).unwrap();
        let wire = serde_json::to_value(&tool).unwrap();
        assert_eq!(wire["inputSchema"]["type"], "object");
        assert_eq!(wire["inputSchema"]["x-mine"], 1);
        assert_eq!(wire["inputSchema"]["properties"]["n"]["x-mcp-header"], "N");
    }

    #[test]
    fn only_arguments_in_headers_are_kept() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer", "x-mcp-header": "N"},
            "pin": {"type": "string"},
            "at": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Z"}, "x": {"type": "string"}}},
        }});
        let catalogue =
            ToolCatalogue::new(&[named("a", &schema), named("b", &json!({"type": "object"}))]).unwrap();
        let sent = json!({"n": 1, "pin": "p", "at": {"zone": "eu", "x": "p"}, "other": "p"}).to_string();
        assert_eq!(catalogue.header_arguments("a", &sent), Some(json!({"n": 1, "at": {"zone": "eu"}})));
        assert_eq!(catalogue.header_arguments("a", r#"{"pin": "p", "at": {"x": "p"}}"#), None);
        for (tool, sent) in [("b", &*sent), ("c", &*sent), ("a", "{")] {
            assert_eq!(catalogue.header_arguments(tool, sent), None, "{tool}");
        }
    }

    #[test]
    fn sets_are_cached_up_to_a_limit() {
        let catalogues = CatalogueCache::default();
        let registry = Registry::new(crate::tool::set::ToolSet::new()).unwrap();
        let first = catalogues.of(&registry).unwrap().1;
        assert!(Arc::ptr_eq(&first, &catalogues.of(&registry.clone()).unwrap().1));
        for _ in 0..2 * MAX_CACHED {
            catalogues.of(&Registry::new(crate::tool::set::ToolSet::new()).unwrap()).unwrap();
        }
        assert_eq!(catalogues.kept.lock().unwrap().len(), MAX_CACHED);
        assert!(!Arc::ptr_eq(&first, &catalogues.of(&registry).unwrap().1));
    }
}
