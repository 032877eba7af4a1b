//! The options of `#[tool(…)]`, from which a definition and a policy are made.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "for generated code only; each setter is the option of its name"
)]

use super::approval::Approval;
use super::arguments::Argument;
use super::definition::{DefinitionError, ToolAnnotations, ToolDefinition};
use super::policy::{Effect, ToolPolicy};
use crate::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use serde_json::Value;
use std::time::Duration;

/// A tool without its body, or its name and why it is invalid.
pub type Compiled = Result<Blueprint, (String, DefinitionError)>;

/// The options of a tool.
#[derive(Debug)]
pub struct Spec {
    name: &'static str,
    description: &'static str,
    title: Option<&'static str>,
    annotations: ToolAnnotations,
    policy: ToolPolicy,
    options: PlanOptions,
    examples: Vec<Value>,
    strict: Option<bool>,
    deferred: bool,
    meta: Vec<(&'static str, Value)>,
    output_schema: Option<Value>,
}

impl Spec {
    pub fn new(name: &'static str, description: &'static str) -> Self {
        let (annotations, policy, options) =
            (ToolAnnotations::NONE, ToolPolicy::DEFAULT, PlanOptions::default());
        Self {
            name,
            description,
            title: None,
            annotations,
            policy,
            options,
            examples: Vec::new(),
            strict: None,
            deferred: false,
            meta: Vec::new(),
            output_schema: None,
        }
    }

    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets a hint and its consequence: a tool that changes nothing may be run any number of times.
    pub fn read_only(mut self, hint: bool) -> Self {
        self.annotations.read_only = Some(hint);
        if hint {
            self.policy.effect = Effect::Pure;
        }
        self
    }

    pub fn destructive(mut self, hint: bool) -> Self {
        self.annotations.destructive = Some(hint);
        self
    }

    pub fn idempotent(mut self, hint: bool) -> Self {
        self.annotations.idempotent = Some(hint);
        if hint && self.policy.effect != Effect::Pure {
            self.policy.effect = Effect::Idempotent;
        }
        self
    }

    pub fn open_world(mut self, hint: bool) -> Self {
        self.annotations.open_world = Some(hint);
        self
    }

    pub fn timeout_millis(mut self, millis: u64) -> Self {
        self.policy = self.policy.with_timeout(Duration::from_millis(millis));
        self
    }

    pub fn redact_errors(mut self) -> Self {
        self.policy = self.policy.with_redacted_errors();
        self
    }

    /// Sets the effect, which takes precedence over the consequences of hints.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.policy.effect = effect;
        self
    }

    pub fn without_timeout(mut self) -> Self {
        self.policy = self.policy.without_timeout();
        self
    }

    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.policy.max_attempts = Some(attempts);
        self
    }

    pub fn max_retries(mut self, retries: u32) -> Self {
        self.policy.max_retries = Some(retries);
        self
    }

    pub fn approval(mut self, approval: Approval) -> Self {
        self.policy.approval = approval;
        self
    }

    pub fn exclusive(mut self) -> Self {
        self.policy.exclusive = true;
        self
    }

    pub fn cache(mut self, cache: bool) -> Self {
        self.policy.cache = Some(cache);
        self
    }

    pub fn allow_repeat(mut self) -> Self {
        self.policy.allow_repeat = true;
        self
    }

    pub fn follow_up(mut self) -> Self {
        self.policy.follow_up = true;
        self
    }

    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.policy.max_result_bytes = Some(bytes);
        self
    }

    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    pub fn defer(mut self) -> Self {
        self.deferred = true;
        self
    }

    pub fn example(mut self, arguments: Value) -> Self {
        self.examples.push(arguments);
        self
    }

    pub fn meta(mut self, key: &'static str, value: Value) -> Self {
        self.meta.push((key, value));
        self
    }

    pub fn output_schema(mut self, schema: Option<Value>) -> Self {
        self.output_schema = schema;
        self
    }

    pub fn coerce(mut self, policy: CoercionPolicy) -> Self {
        self.options = self.options.coercion(policy);
        self
    }

    pub fn unknown(mut self, unknown: UnknownKeys) -> Self {
        self.options = self.options.unknown(unknown);
        self
    }

    /// Compiles the plan for arguments of type `A`.
    pub fn compile<A: Argument>(self) -> Compiled {
        let plan = Plan::for_tool::<A>(self.name, self.description, self.options);
        match plan.and_then(|plan| plan.check_defaults().map(|()| plan)) {
            Ok(plan) => self.define(plan),
            Err(error) => Err((self.name.to_owned(), error.into())),
        }
    }

    fn define(self, plan: Plan) -> Compiled {
        let definition = match self.description {
            "" => ToolDefinition::without_description(plan),
            text => ToolDefinition::new(plan, text),
        };
        let mut definition = definition.map_err(|error| (self.name.to_owned(), error))?;
        definition = definition.in_code().with_annotations(self.annotations).with_deferred(self.deferred);
        if let Some(title) = self.title {
            definition = definition.with_title(title);
        }
        if let Some(strict) = self.strict {
            definition = definition.with_strict(strict);
        }
        if let Some(schema) = self.output_schema {
            definition = definition.with_output_schema(schema);
        }
        definition = self.examples.into_iter().fold(definition, ToolDefinition::with_example);
        definition = self
            .meta
            .into_iter()
            .fold(definition, |definition, (key, value)| definition.with_meta(key, value));
        Ok(Blueprint { definition, policy: self.policy })
    }
}

/// A tool without its body. There is one for each `#[tool]`, compiled when it is first listed.
#[derive(Debug)]
pub struct Blueprint {
    pub(super) definition: ToolDefinition,
    pub(super) policy: ToolPolicy,
}
