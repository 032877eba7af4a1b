//! The configuration of an assistant, which its runs share.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::approval::{Approver, Signer};
use super::budget::Budgets;
use super::cache::{CallKey, ResultCache};
use super::checked::{CheckedArguments, check};
use super::context::{ContextLimits, NamedModel};
use super::error::RunError;
use super::hooks::Hooks;
use super::listener::Listeners;
use super::observe::{ChunkMeter, Meter};
use super::output::{AnswerReader, ExpectedOutput};
use super::records::StoreAccess;
use super::spill::SpillFolder;
use super::state_types::StateTypes;
use crate::loop_core::{AgentLoop, LoopConfig, ModelReply, Queue, ToolEntry};
use crate::message::{StopReason, ToolCall};
use crate::model::{Model, ModelRequest, TokenCounter, ToolChoice};
use crate::tool::asking::Answerer;
use crate::tool::capture::Capture;
use crate::tool::context::ToolContext;
use crate::tool::definition::ToolDefinition;
use crate::tool::policy::Effect;
use crate::tool::registry::Registry;
use crate::tool::secrets::SecretArguments;
use crate::tool::set::ToolSet;
use crate::tool::source::Source;
use crate::tool::value::Tool;

#[derive(Clone)]
pub(super) struct Config {
    pub(super) model: Arc<dyn Model>,
    pub(super) request: ModelRequest,
    pub(super) registry: Registry,
    pub(super) state_types: StateTypes,
    pub(super) rules: Arc<LoopConfig>,
    /// The maximum number of successive continuations of an answer that was cut at its token limit. If 0, a request whose reply was cut is
    /// not repeated, either.
    pub(super) continue_length: u32,
    pub(super) hooks: Vec<Arc<dyn Hooks>>,
    pub(super) approver: Option<Approver>,
    pub(super) answerer: Option<Answerer>,
    pub(super) signer: Option<Arc<Signer>>,
    pub(super) listeners: Listeners,
    /// The queues from which a turn takes all waiting messages instead of one.
    pub(super) delivers_all: Vec<Queue>,
    pub(super) max_concurrency: usize,
    /// The maximum depth of nested runs below a run of this assistant.
    pub(super) max_depth: u8,
    /// The maximum number of runs that a run of this assistant may start, at all depths together.
    pub(super) max_children: u32,
    /// The maximum number of requests that sub-agents of a run make at the same time, at all depths together.
    pub(super) max_requests_in_flight: usize,
    pub(super) tool_timeout: Duration,
    pub(super) cancel_grace: Duration,
    pub(super) cache: bool,
    /// The cache that this assistant can share with others; `None` if the assistant has a cache of its own.
    pub(super) shared_cache: Option<ResultCache>,
    /// The tools whose results are not cached, each with the reason.
    pub(super) uncached: Arc<[(String, &'static str)]>,
    pub(super) spill: Option<SpillFolder>,
    /// `None` unless the builder has set `manage_context`.
    pub(super) context: Option<ContextLimits>,
    pub(super) counter: Arc<dyn TokenCounter>,
    pub(super) budgets: Option<Arc<Budgets>>,
    pub(super) models: Arc<[NamedModel]>,
    pub(super) choosers: Vec<Arc<dyn Hooks>>,
    pub(super) may_switch: bool,
    pub(super) keeper: Option<Arc<StoreAccess>>,
    pub(super) formats_results: bool,
    pub(super) meters: Vec<Meter>,
    pub(super) chunk_meters: Vec<ChunkMeter>,
    pub(super) agent_name: Option<Arc<str>>,
    pub(super) agent_description: Option<Arc<str>>,
    /// Reads the answers of all runs; `None` if the assistant has no schema for answers.
    pub(super) answer: Option<Arc<AnswerReader<Value>>>,
    /// The answer that a run with this configuration must give. Set only in the configuration of a run, not in that of an assistant.
    pub(super) expected: Option<Arc<ExpectedOutput>>,
    /// The name of the tool that was added for the expected answer. Empty if no tool was added.
    pub(super) output_tool: Arc<str>,
    /// The rules for content in traces; `None` if traces record no content.
    pub(super) capture: Option<Arc<Capture>>,
    /// The source of prompts that set none.
    pub(super) source: Option<Source>,
    #[cfg(feature = "studio")]
    pub(super) wrap_model: Option<ModelWrap>,
}

#[cfg(feature = "studio")]
pub(crate) type ModelWrap = Arc<dyn Fn(Arc<dyn Model>) -> Arc<dyn Model> + Send + Sync>;

impl Config {
    #[cfg(feature = "studio")]
    pub(super) fn wrap_models(&mut self, wrap: ModelWrap) {
        self.model = wrap(self.model.clone());
        self.models = self.models.iter().map(|(name, model)| (name.clone(), wrap(model.clone()))).collect();
        self.wrap_model = Some(wrap);
    }

    pub(super) fn takes_all(&self, queue: Queue) -> bool {
        self.delivers_all.contains(&queue)
    }

    /// Returns the secret arguments of all tools, including tools that a turn does not show, so that these arguments can be withheld.
    pub(super) fn secrets(&self) -> Arc<SecretArguments> {
        let all = self.registry.secrets();
        if all.are_of(&self.request.tools) {
            return all.clone();
        }
        Arc::new(SecretArguments::new([self.request.tools.clone(), self.registry.definitions()]))
    }

    pub(super) fn sign(&self, run: &mut AgentLoop) {
        if let Some(signer) = &self.signer {
            signer.sign(run);
        }
    }

    /// Returns the fingerprint of the tool's parameters, as the source of this run sees them; 0 for an unknown tool.
    pub(super) fn fingerprint(&self, tool: &str) -> u64 {
        self.rules.tools.get(tool).map_or(0, |tool| tool.fingerprint)
    }

    pub(super) fn checked(&self, call: &ToolCall, context: &ToolContext) -> Option<Arc<CheckedArguments>> {
        let tool = self.registry.get(&call.name)?;
        check(tool, &call.args, context.source()).ok().map(Arc::new)
    }

    pub(super) fn cache_key(&self, name: &str, checked: &CheckedArguments, context: &ToolContext) -> CallKey {
        CallKey::new(name, self.fingerprint(name), &self.registry, &self.hooks, checked, context)
    }

    /// Returns whether the assistant has a function for measurements, which also measures the calls of its sub-agents.
    pub(super) fn is_measured(&self) -> bool {
        !self.meters.is_empty()
    }

    /// Returns whether results of the tool are cached in this run. Cache keys do not contain the state of a prompt, so a result that may
    /// depend on that state is not cached.
    pub(super) fn can_cache(&self, tool: &Tool, context: &ToolContext) -> bool {
        let policy = tool.policy();
        // Results of a prompt's own tools are not cached: another prompt may have a different tool with the same name and schema. Results
        // of a `once` tool are cached only if the tool sets `cache`.
        let is_of_prompt =
            self.rules.tools.get(tool.definition().name()).is_some_and(|entry| entry.of_prompt);
        !is_of_prompt
            && policy.cache.unwrap_or(self.cache && policy.effect != Effect::Once)
            && (!context.has_own_state()
                || (self.hooks.is_empty()
                    && !tool.reads_context()
                    && !tool.requires().iter().any(|state| context.has_own(state))))
    }

    pub(super) fn show_tools(&mut self, tools: Arc<[ToolDefinition]>) {
        self.request.tools = shown_tools(&self.registry, self.max_depth, tools);
    }

    pub(super) fn with_tools(&self, tools: ToolSet) -> Result<Self, RunError> {
        let mut config = self.clone();
        let known = config.registry.len();
        config.registry.register(tools).map_err(RunError::PromptTools)?;
        let tools = config.registry.definitions();
        let mut rules = (*config.rules).clone();
        for definition in tools.iter().skip(known) {
            let Some(tool) = config.registry.get(definition.name()) else { continue };
            config.formats_results |= tool.formats_results();
            let entry = ToolEntry { of_prompt: true, ..ToolEntry::of(tool) };
            rules.tools.insert(definition.name().to_owned(), entry);
        }
        config.rules = Arc::new(rules);
        config.show_tools(tools);
        Ok(config)
    }

    /// Returns the configuration with the model of this name, or this configuration if `name` is `None`. Returns `None` if no model has
    /// the name.
    pub(super) fn with_model(self: &Arc<Self>, name: Option<&str>) -> Option<Arc<Self>> {
        let Some(name) = name else { return Some(self.clone()) };
        let (_, model) = self.models.iter().find(|(known, _)| **known == *name)?;
        let mut config = (**self).clone();
        config.model = model.clone();
        config.limit_context();
        Some(Arc::new(config))
    }

    /// Computes the limits of the context again, after the model or `max_tokens` has changed.
    fn limit_context(&mut self) {
        if let Some(limits) = &self.context {
            // The builder has checked that these limits can be created.
            self.context = ContextLimits::new(&limits.rules, &self.model, &self.models, &self.request).ok();
        }
    }

    pub(super) fn definitions_of(&self, names: &[String]) -> Arc<[ToolDefinition]> {
        let tools = &self.request.tools;
        if tools.iter().map(ToolDefinition::name).eq(names) {
            // The shared list is returned, because it caches its encoded text.
            return tools.clone();
        }
        tools.iter().filter(|tool| names.iter().any(|name| name == tool.name())).cloned().collect()
    }

    pub(super) fn selects_model(&self) -> bool {
        !self.choosers.is_empty()
    }

    pub(super) fn prepares_requests(&self) -> bool {
        self.context.is_some() || self.selects_model() || self.continue_length > 0
    }

    /// Returns the configuration for repeating a request whose reply was cut by its token limit. `max_tokens` is doubled, up to the
    /// maximum of the model. Returns `None` if the reply can be continued as text, if `continue_length` is not set, or if `max_tokens`
    /// cannot grow.
    pub(super) fn with_more_room(&self, reply: &ModelReply) -> Option<Self> {
        let ModelReply { message, is_cut, .. } = reply;
        let is_cut = *is_cut || message.stop_reason == StopReason::MaxTokens;
        let is_other = message.stop_reason.is_failure() || message.stop_reason == StopReason::ContextFull;
        if self.continue_length == 0 || !is_cut || is_other {
            return None;
        }
        let is_text = message.tool_calls().next().is_none() && !message.text().is_empty();
        if is_text && self.request.output.is_none() && self.expected.is_none() {
            return None;
        }
        let now = self.request.max_tokens?;
        let more = now.saturating_mul(2).min(self.model.max_output().unwrap_or(u64::MAX));
        let mut config = self.clone();
        config.request.max_tokens = Some(more);
        config.limit_context();
        (more > now).then_some(config)
    }

    pub(super) fn expecting(&self, expected: Arc<ExpectedOutput>) -> Result<Self, RunError> {
        let mut config = self.clone();
        if config.rules.continue_length > 0 {
            config.rules = Arc::new(LoopConfig { continue_length: 0, ..(*config.rules).clone() });
        }
        // All models that a turn may choose answer in the same form: with the schema in the request if all of them support it, and
        // otherwise by a tool.
        let named = self.models.iter().filter(|_| self.selects_model()).map(|(_, model)| model);
        if named.chain([&self.model]).all(|model| expected.is_native(model.info())) {
            config.request.output = Some(expected.schema.clone());
            config.expected = Some(expected);
            return Ok(config);
        }
        config.request.output = None;
        let (name, tool) = expected.tool()?;
        config.expected = Some(expected);
        let is_alone = config.registry.is_empty();
        config.output_tool = name.as_str().into();
        let registered = config.registry.register(tool);
        registered.map_err(|refusal| RunError::Output { message: refusal.to_string() })?;
        config.show_tools(config.registry.definitions());
        // Other tools stay callable, because the model may need them before it can answer.
        config.request.tool_choice = if is_alone { ToolChoice::Tool(name) } else { ToolChoice::Required };
        Ok(config)
    }
}

/// Returns the tools that a model sees. If `max_depth` is 0, assistants as tools are left out.
pub(super) fn shown_tools(
    registry: &Registry,
    max_depth: u8,
    tools: Arc<[ToolDefinition]>,
) -> Arc<[ToolDefinition]> {
    let is_shown = |tool: &&ToolDefinition| {
        max_depth > 0 || registry.get(tool.name()).is_none_or(|tool| !tool.is_of_assistant())
    };
    // An unchanged list stays shared.
    if tools.iter().all(|tool| is_shown(&tool)) {
        tools
    } else {
        tools.iter().filter(is_shown).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::scripted::ScriptedModel;
    use crate::runtime::Assistant;
    use crate::tools;

    #[test]
    fn a_tool_that_was_not_chosen_is_not_shown() {
        let [a, b] = ["a", "b"].map(|name| {
            Tool::new(name, "A tool.", json!({"type": "object"}), |_args: Value, _cx| async { "" }).unwrap()
        });
        let assistant = Assistant::builder(ScriptedModel::new(["Hi"])).tools(tools![{ a }, { b }]).build();
        let assistant = assistant.unwrap();
        let shown = |names: [&str; 2]| assistant.config().definitions_of(&names.map(str::to_owned));
        // The names may have been recorded by a process with other tools.
        assert_eq!(shown(["a", "gone"]).iter().map(ToolDefinition::name).collect::<Vec<_>>(), ["a"]);
        assert!(Arc::ptr_eq(&shown(["a", "b"]), &assistant.config().request.tools));
    }
}
