//! A set of tools as shown to clients: sorted by name, in pages.

use crate::args::PlanOptions;
use crate::mcp::output::{OutputCheck, wrapped_schema};
use crate::{Registry, ToolAnnotations, ToolDefinition};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{JsonObject, MetaObject, Tool};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Version of the cursors, so that their format can change.
const CURSOR_VERSION: u8 = 1;
/// Maximum number of catalogues that are cached.
const KEPT: usize = 64;

/// The tools of a set in the protocol's form, made once.
pub(super) struct Catalogue {
    /// Sorted by name.
    tools: Vec<Tool>,
    outputs: HashMap<String, OutputCheck>,
    has_header_parameters: bool,
}

/// A tool that cannot be shown: its name, and the reason.
pub(super) type Unfit = (String, String);

impl Catalogue {
    pub(super) fn new(definitions: &[ToolDefinition]) -> Result<Self, Unfit> {
        let (mut tools, mut outputs) = (Vec::new(), HashMap::new());
        for definition in definitions {
            tools.push(tool(definition)?);
            if let Some(schema) = definition.output_schema() {
                let check = OutputCheck::new(definition.name(), schema)
                    .map_err(|error| unfit(definition, format!("its output schema: {error}")))?;
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

    /// Whether an argument of any tool is also sent in a header, which the protocol compares.
    pub(super) fn has_header_parameters(&self) -> bool {
        self.has_header_parameters
    }

    /// Returns those arguments of a call that are also sent in headers, at any depth; `None` if there are none.
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

    /// Returns the page after a cursor, and the cursor of the next page; `None` for an invalid cursor.
    pub(super) fn page(&self, cursor: Option<&str>, size: usize) -> Option<(&[Tool], Option<String>)> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = name_in(cursor)?;
                // This also works when that tool has been removed since.
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

/// The protocol has such parameters in objects within objects alone.
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

fn tool(definition: &ToolDefinition) -> Result<Tool, Unfit> {
    let description = Some(definition.description()).filter(|text| !text.is_empty());
    let schema = root_object(definition.parameters())
        .ok_or_else(|| unfit(definition, "its parameters are not an object, as the protocol requires"))?;
    let mut tool = Tool::new_with_raw(
        definition.name().to_owned(),
        description.map(|text| text.to_owned().into()),
        Arc::new(schema),
    );
    if let Some(schema) = definition.output_schema() {
        let schema = wrapped_schema(schema)
            .or_else(|| root_object(schema))
            .ok_or_else(|| unfit(definition, "its output schema is not a schema"))?;
        tool = tool.with_raw_output_schema(Arc::new(schema));
    }
    if let Some(title) = definition.title() {
        tool = tool.with_title(title);
    }
    let hints = definition.annotations();
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

/// Returns the schema with the `"type": "object"` at its root that the protocol requires; the rest is unchanged.
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

fn unfit(definition: &ToolDefinition, reason: impl Into<String>) -> Unfit {
    (definition.name().to_owned(), reason.into())
}

/// The tools of a set as they are served, and as they are shown.
#[derive(Clone)]
struct Served {
    /// Without state, which is that of the caller's own set. `None` if the tools are served as they are.
    tools: Option<Registry>,
    catalogue: Arc<Catalogue>,
}

/// A cache of the sets that were used last, by the definitions they were made from.
#[derive(Default)]
pub(super) struct Catalogues {
    /// The options of tools that have none of their own.
    options: Option<PlanOptions>,
    kept: Mutex<Vec<(Arc<[ToolDefinition]>, Served)>>,
}

impl Catalogues {
    /// Gives these options to tools that have none of their own.
    pub(super) fn with_options(options: PlanOptions) -> Self {
        Self { options: Some(options), ..Self::default() }
    }

    /// Returns the tools as they are served, with the state of `tools`, and their catalogue.
    pub(super) fn of(&self, tools: &Registry) -> Result<(Registry, Arc<Catalogue>), Unfit> {
        let Served { tools: served, catalogue } = self.served(tools)?;
        Ok((served.map_or_else(|| tools.clone(), |served| served.with_state_of(tools)), catalogue))
    }

    fn served(&self, tools: &Registry) -> Result<Served, Unfit> {
        let definitions = tools.definitions();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(of, _)| Arc::ptr_eq(of, &definitions)) {
            kept[..=at].rotate_right(1);
            return Ok(kept[0].1.clone());
        }
        drop(kept);
        // Not under the lock: a large set takes time.
        let adapted = self.options.map(|options| tools.with_options(options)).transpose();
        let adapted =
            adapted.map_err(|error| (tools.names().collect::<Vec<_>>().join(", "), error.to_string()))?;
        let shown = adapted.as_ref().map_or_else(|| definitions.clone(), Registry::definitions);
        let made = Served { tools: adapted, catalogue: Arc::new(Catalogue::new(&shown)?) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(0, (definitions, made.clone()));
        kept.truncate(KEPT);
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
    fn pages_follow_each_other_by_name_whatever_went_meanwhile() {
        let empty = json!({"type": "object"});
        let all = |names: &[&str]| {
            Catalogue::new(&names.iter().map(|name| named(name, &empty)).collect::<Vec<_>>()).unwrap()
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
    fn a_schema_goes_out_as_it_is_but_for_the_type_at_its_root() {
        let odd = json!({"x-mine": 1, "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}});
        let tool = tool(&named("odd", &odd)).unwrap();
        let wire = serde_json::to_value(&tool).unwrap();
        assert_eq!(wire["inputSchema"]["type"], "object");
        assert_eq!(wire["inputSchema"]["x-mine"], 1);
        assert_eq!(wire["inputSchema"]["properties"]["n"]["x-mcp-header"], "N");
    }

    #[test]
    fn of_arguments_only_those_in_headers_are_kept() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer", "x-mcp-header": "N"},
            "pin": {"type": "string"},
            "at": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Z"}, "x": {"type": "string"}}},
        }});
        let catalogue =
            Catalogue::new(&[named("a", &schema), named("b", &json!({"type": "object"}))]).unwrap();
        let sent = json!({"n": 1, "pin": "p", "at": {"zone": "eu", "x": "p"}, "other": "p"}).to_string();
        assert_eq!(catalogue.header_arguments("a", &sent), Some(json!({"n": 1, "at": {"zone": "eu"}})));
        assert_eq!(catalogue.header_arguments("a", r#"{"pin": "p", "at": {"x": "p"}}"#), None);
        for (tool, sent) in [("b", &*sent), ("c", &*sent), ("a", "{")] {
            assert_eq!(catalogue.header_arguments(tool, sent), None, "{tool}");
        }
    }

    #[test]
    fn sets_are_made_once_and_only_so_many_are_kept() {
        let catalogues = Catalogues::default();
        let registry = Registry::new(crate::ToolSet::new()).unwrap();
        let first = catalogues.of(&registry).unwrap().1;
        assert!(Arc::ptr_eq(&first, &catalogues.of(&registry.clone()).unwrap().1));
        for _ in 0..2 * KEPT {
            catalogues.of(&Registry::new(crate::ToolSet::new()).unwrap()).unwrap();
        }
        assert_eq!(catalogues.kept.lock().unwrap().len(), KEPT);
        assert!(!Arc::ptr_eq(&first, &catalogues.of(&registry).unwrap().1));
    }
}
