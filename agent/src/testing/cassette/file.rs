//! The file format of a cassette.
//!
//! ```json
//! {"cassette": 2, "model": {"provider", "api", "model", "images", …},
//!  "tools": {"NAME@FINGERPRINT": {"name", "description", "parameters", "strict"?}},
//!  "exchanges": [{"request": {"system"?, "continues"?: 1, "messages": […], "tools"?: ["NAME@FINGERPRINT"], …},
//!                 "reply": MESSAGE} or {…, "error": {"kind", "message", …}}]}
//! ```
//!
//! `continues` is the number of an earlier exchange, counted from 1. The messages of the earlier exchange precede the messages of this
//! exchange. Requests of version 1 lack the settings [`LATER`], and may have secrets that version 2 removes.

use super::exchange::RecordedExchange;
use super::scrub::Scrubber;
use super::secrets::SecretValues;
use super::{VARIABLE, not_a_cassette, unusable};
use crate::message::Message;
use crate::model::{Capabilities, ManagedTool, Model, ModelError, ModelInfo, ModelRequest, ToolChoice};
use crate::private_files;
use crate::tool::definition::ToolDefinition;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::Path;

const VERSION: u64 = 2;

/// The settings that are recorded from version 2 on.
const LATER: [&str; 2] = ["compact_at", "examples_in_descriptions"];

/// The keys of the model's context window and output limit, in tokens.
pub(super) const WINDOW: &str = "context_window";
pub(super) const MAX_OUTPUT: &str = "max_output";

pub(super) struct Tape {
    model: Value,
    pub(super) exchanges: Vec<RecordedExchange>,
    version: u64,
    is_clean: bool,
}

impl Tape {
    pub(super) fn new(source: &dyn Model) -> Self {
        let info = source.info();
        let can = info.capabilities;
        let mut model = json!({
            "provider": info.provider, "api": info.api, "model": info.model,
            "images": can.images, "documents": can.documents, "audio": can.audio, "native_output": can.native_output,
            "web_search": can.web_search, "web_fetch": can.web_fetch, "code_execution": can.code_execution,
            "image_generation": can.image_generation,
        });
        if let Some(dialect) = can.output_dialect {
            model["output_dialect"] = dialect.as_str().into();
        }
        for (key, tokens) in [(WINDOW, source.context_window()), (MAX_OUTPUT, source.max_output())] {
            if let Some(tokens) = tokens {
                model[key] = tokens.into();
            }
        }
        Self { model, exchanges: Vec::new(), version: VERSION, is_clean: true }
    }

    /// Returns a limit of the recorded model, or `None` if the model had no such limit.
    pub(super) fn tokens(&self, key: &str) -> Option<u64> {
        self.model.get(key)?.as_u64()
    }

    pub(super) fn info(&self) -> ModelInfo {
        let text = |key: &str| self.model.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = |key: &str, usual: bool| self.model.get(key).and_then(Value::as_bool).unwrap_or(usual);
        let mut can = Capabilities::default();
        can.images = is("images", can.images);
        can.documents = is("documents", can.documents);
        can.audio = is("audio", can.audio);
        can.native_output = is("native_output", can.native_output);
        can.output_dialect = text("output_dialect").parse().ok();
        can.web_search = is("web_search", can.web_search);
        can.web_fetch = is("web_fetch", can.web_fetch);
        can.code_execution = is("code_execution", can.code_execution);
        can.image_generation = is("image_generation", can.image_generation);
        ModelInfo::new(text("provider"), text("api"), text("model")).with_capabilities(can)
    }

    pub(super) fn read(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read_to_string(path).map_err(|source| {
            let path = path.display();
            unusable(format!("cassette `{path}` cannot be read: {source}; record it with {VARIABLE}=record"))
                .with_source(source)
        })?;
        let file: Value =
            serde_json::from_str(&text).map_err(|error| not_a_cassette(path, &error).with_source(error))?;
        let version = file.get("cassette").and_then(Value::as_u64).unwrap_or_default();
        if !(1..=VERSION).contains(&version) {
            return Err(not_a_cassette(path, format!("`cassette` is not 1 to {VERSION}: record it again")));
        }
        let tools = file.get("tools").and_then(Value::as_object).cloned().unwrap_or_default();
        let model = file.get("model").cloned().unwrap_or_default();
        let mut tape = Self { model, exchanges: Vec::new(), version, is_clean: version == VERSION };
        for (number, exchange) in
            (1..).zip(file.get("exchanges").and_then(Value::as_array).into_iter().flatten())
        {
            let wrong = |reason: &str| not_a_cassette(path, format!("exchange {number}: {reason}"));
            let mut request = exchange.get("request").cloned().ok_or_else(|| wrong("no `request`"))?;
            tape.expand(&mut request, &tools).map_err(|reason| wrong(&reason))?;
            let (reply, error) = (exchange.get("reply").cloned(), exchange.get("error").cloned());
            if reply.is_some() == error.is_some() {
                return Err(wrong("it needs either `reply` or `error`"));
            }
            tape.exchanges.push(RecordedExchange { request, reply, error });
        }
        Ok(tape)
    }

    /// Makes a request comparable to the recorded requests if the file has version 1.
    pub(super) fn adapt(&mut self, request: &mut Value, scrubber: &Scrubber) {
        if self.version == 1
            && let Some(request) = request.as_object_mut()
        {
            for key in LATER {
                request.shift_remove(key);
            }
        }
        if !std::mem::replace(&mut self.is_clean, true) {
            self.exchanges.iter_mut().for_each(|exchange| scrubber.remove_secrets(&mut exchange.request));
        }
    }

    /// Inserts the messages and tools that the file contains only once, because several exchanges share them.
    fn expand(&self, request: &mut Value, tools: &Map<String, Value>) -> Result<(), String> {
        let Some(request) = request.as_object_mut() else {
            return Err("`request` is not an object".to_owned());
        };
        if let Some(number) = request.shift_remove("continues") {
            let at = number.as_u64().and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
            let earlier = at
                .and_then(|at| self.exchanges.get(at))
                .and_then(|earlier| earlier.request.get("messages")?.as_array());
            let mut messages = earlier.cloned().ok_or("`continues` is not an earlier exchange")?;
            messages.extend(request.get("messages").and_then(Value::as_array).into_iter().flatten().cloned());
            request.insert("messages".to_owned(), messages.into());
        }
        if let Some(Value::Array(names)) = request.get_mut("tools") {
            for name in names {
                let definition = name.as_str().and_then(|name| tools.get(name));
                *name = definition.cloned().ok_or_else(|| format!("there is no tool {name}"))?;
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            private_files::create_folder(folder)?;
        }
        let mut tools = Map::new();
        let exchanges: Vec<Value> = self
            .exchanges
            .iter()
            .enumerate()
            .map(|(at, exchange)| self.shortened(at, exchange, &mut tools))
            .collect();
        let mut file = json!({"cassette": VERSION, "model": self.model});
        if !tools.is_empty() {
            file["tools"] = tools.into();
        }
        file["exchanges"] = exchanges.into();
        // The file is written under another name and then renamed, so that the file at `path` is never incomplete.
        let beside = path.with_extension("json.part");
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private_files::create(&beside)?.write_all(format!("{file:#}\n").as_bytes())?;
        std::fs::rename(beside, path)
    }

    fn shortened(&self, at: usize, exchange: &RecordedExchange, tools: &mut Map<String, Value>) -> Value {
        let mut request = exchange.request.clone();
        let messages = |exchange: &RecordedExchange| {
            exchange.request.get("messages").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let own = messages(exchange);
        let earlier = (0..at).rev().find_map(|at| {
            let earlier = messages(self.exchanges.get(at)?);
            (!earlier.is_empty() && own.starts_with(&earlier)).then_some((at, earlier.len()))
        });
        if let (Some((at, count)), Some(request)) = (earlier, request.as_object_mut()) {
            request.insert("continues".to_owned(), (at + 1).into());
            let rest: Vec<Value> = own.get(count..).unwrap_or_default().to_vec();
            request.shift_remove("messages");
            request.insert("messages".to_owned(), rest.into());
        }
        if let Some(Value::Array(list)) = request.get_mut("tools") {
            for tool in list {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                let key = format!("{name}@{:016x}", fingerprint(tool));
                tools.insert(key.clone(), std::mem::replace(tool, key.into()));
            }
        }
        let mut out = json!({"request": request});
        for (key, value) in [("reply", &exchange.reply), ("error", &exchange.error)] {
            if let Some(value) = value {
                out[key] = value.clone();
            }
        }
        out
    }
}

/// Returns a hash (FNV-1a) that distinguishes definitions with the same name.
fn fingerprint(value: &Value) -> u64 {
    value
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the messages, tools and settings of a request as JSON, without the secrets in the messages.
pub(super) fn request_json(request: &ModelRequest, secrets: &SecretValues) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    put("system", request.system.as_deref().map(Value::from));
    let messages: Vec<Value> =
        secrets.messages(&request.messages).map(|message| message_json(&message)).collect();
    put("messages", Some(messages.into()));
    let tools: Vec<Value> = request.tools.iter().map(tool_json).collect();
    put("tools", (!tools.is_empty()).then(|| tools.into()));
    let managed: Vec<Value> = request.managed_tools.iter().map(managed_json).collect();
    put("managed_tools", (!managed.is_empty()).then(|| managed.into()));
    put("strict_tools", request.strict_tools.then(|| true.into()));
    put("examples_in_descriptions", request.examples_in_descriptions.then(|| true.into()));
    put(
        "tool_choice",
        match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => Some(json!({"tool": name})),
        },
    );
    put("parallel_tool_calls", request.parallel_tool_calls.map(Value::from));
    put("max_tokens", request.max_tokens.map(Value::from));
    put("temperature", request.temperature.map(Value::from));
    put("top_p", request.top_p.map(Value::from));
    put("stop", (!request.stop.is_empty()).then(|| request.stop.clone().into()));
    put("thinking", request.thinking.map(|thinking| thinking.to_string().into()));
    put(
        "output",
        request.output.as_ref().map(|output| json!({"name": output.name, "schema": *output.schema})),
    );
    put("cache", cache_text(request).map(Value::from));
    put("compact_at", request.compact_at.map(Value::from));
    put("metadata", (!request.metadata.is_empty()).then(|| request.metadata.clone().into()));
    put(
        "provider_options",
        (!request.provider_options.is_empty()).then(|| request.provider_options.clone().into()),
    );
    Value::Object(out)
}

/// Returns the settings of the prompt cache, in the text format of existing cassettes.
fn cache_text(request: &ModelRequest) -> Option<String> {
    let ModelRequest {
        cached_system: system,
        cached_tools: tools,
        cached_conversation: automatic,
        cache_key: key,
        ..
    } = request;
    let is_set = [system, tools, automatic].iter().any(|mark| mark.is_some()) || key.is_some();
    is_set.then(|| {
        format!(
            "PromptCache {{ system: {system:?}, tools: {tools:?}, automatic: {automatic:?}, key: {key:?} }}"
        )
    })
}

fn message_json(message: &Message) -> Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    // These fields are created by the application, differ in each run, and are not sent to providers.
    if let Some(message) = value.as_object_mut() {
        for key in ["id", "metadata"] {
            message.shift_remove(key);
        }
    }
    value
}

fn tool_json(tool: &ToolDefinition) -> Value {
    let mut out =
        json!({"name": tool.name(), "description": tool.description(), "parameters": tool.parameters()});
    if let Some(strict) = tool.strict() {
        out["strict"] = strict.into();
    }
    out
}

fn managed_json(tool: &ManagedTool) -> Value {
    let limited = |name: &str, uses: &Option<u32>, allowed: &[String], blocked: &[String]| {
        format!(
            "{name}(WebLimits {{ max_uses: {uses:?}, allowed_domains: {allowed:?}, blocked_domains: {blocked:?} }})"
        )
    };
    let text = match tool.as_requested() {
        ManagedTool::WebSearch { max_uses, allowed_domains, blocked_domains } => {
            limited("WebSearch", max_uses, allowed_domains, blocked_domains)
        }
        ManagedTool::WebFetch { max_uses, allowed_domains, blocked_domains } => {
            limited("WebFetch", max_uses, allowed_domains, blocked_domains)
        }
        other => format!("{other:?}"),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Plan, PlanOptions};

    #[test]
    fn a_tool_that_decides_whether_it_is_strict_is_another_tool() {
        let recorded = |strict: Option<bool>| {
            let plan = Plan::compile("f", &json!({"type": "object"}), PlanOptions::default());
            let tool = ToolDefinition::new(plan.expect("a schema"), "Does it.").expect("a name");
            let tool = match strict {
                Some(strict) => tool.configure(|options| options.strict(strict)).expect("a name"),
                None => tool,
            };
            request_json(&ModelRequest::default().with_tools([tool]), &SecretValues::default())
        };
        assert_ne!(recorded(None), recorded(Some(true)));
        assert_ne!(recorded(Some(false)), recorded(Some(true)));
    }
}
