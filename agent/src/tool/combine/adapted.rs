//! A tool as a changed set has it.

use super::arguments::{Joined, Taken, join};
use crate::args::{Coercions, InvalidArguments, NotTakenOut, PlanOptions};
use crate::message::Part;
use crate::tool::BoxFuture;
use crate::tool::approval::Approval;
use crate::tool::call_record::CallRecord;
use crate::tool::context::ToolContext;
use crate::tool::definition::{DefinitionError, ToolDefinition};
use crate::tool::error::ToolError;
use crate::tool::outcome::{FailureCode, ToolOutcome, ToolReply};
use crate::tool::output::ToolOutput;
use crate::tool::policy::ToolPolicy;
use crate::tool::source::Source;
use crate::tool::state::StateKey;
use crate::tool::traits::Tool;
use serde_json::Value;
use std::sync::Arc;

pub(super) type MapOutput = dyn Fn(&str, ToolOutput) -> ToolOutput + Send + Sync;

/// The changes to a tool.
#[derive(Clone, Default)]
pub(super) struct Change {
    name: Option<String>,
    description: Option<String>,
    taken: Vec<Taken>,
    approval: Approval,
    map: Option<Arc<MapOutput>>,
}

impl Change {
    pub(super) fn named(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    pub(super) fn described(mut self, description: String) -> Self {
        self.description = Some(description);
        self
    }

    pub(super) fn without(mut self, taken: Taken) -> Self {
        self.taken.push(taken);
        self
    }

    pub(super) fn approved(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    pub(super) fn mapped(mut self, map: Arc<MapOutput>) -> Self {
        self.map = Some(map);
        self
    }

    /// Returns the changed tool.
    pub(super) fn of(self, inner: Arc<dyn Tool>) -> Result<Arc<dyn Tool>, DefinitionError> {
        Ok(Arc::new(Adapted::new(inner, self)?))
    }

    fn define(&self, definition: &ToolDefinition) -> Result<ToolDefinition, DefinitionError> {
        let mut changed = definition.clone();
        if !self.taken.is_empty() {
            let plan = definition.plan().without(self.taken.iter().map(|taken| &*taken.name));
            let plan = plan.map_err(|error| match error {
                NotTakenOut::Parameter { name, reason } => DefinitionError::Parameter { name, reason },
                NotTakenOut::Schema(error) => error.into(),
            })?;
            changed = changed.with_plan(plan).map_examples(|example| {
                for taken in &self.taken {
                    example.shift_remove(&taken.name);
                }
            });
        }
        if let Some(description) = &self.description {
            changed = changed.described(description)?;
        }
        match &self.name {
            Some(name) => changed.renamed(name),
            None => Ok(changed),
        }
    }

    fn policy(&self, inner: &dyn Tool) -> ToolPolicy {
        let mut policy = inner.policy().clone();
        if !self.taken.is_empty() {
            // Its own rule is about all arguments.
            let (whole, taken) = (inner.definition().plan().clone(), self.taken.clone());
            policy.approval = policy.approval.over(whole.clone(), move |shown, arguments| {
                join(shown, &whole, &taken, arguments).ok().map(|joined| joined.text)
            });
        }
        policy.approval = policy.approval.or(self.approval.clone());
        policy
    }
}

/// A tool with a [`Change`].
pub(super) struct Adapted {
    inner: Arc<dyn Tool>,
    change: Change,
    definition: ToolDefinition,
    policy: ToolPolicy,
}

impl Adapted {
    fn new(inner: Arc<dyn Tool>, change: Change) -> Result<Self, DefinitionError> {
        let definition = change.define(inner.definition())?;
        for taken in &change.taken {
            taken.suits(&*inner)?;
        }
        let policy = change.policy(&*inner);
        Ok(Self { inner, change, definition, policy })
    }

    /// Returns the arguments as the tool takes them, for the source of the call; `None` if no arguments are hidden.
    fn joined(&self, arguments: &str, source: Option<&Source>) -> Result<Option<Joined>, Box<ToolReply>> {
        if self.change.taken.is_empty() {
            return Ok(None);
        }
        let own = source.map_or(Ok(None), |source| self.inner.definition_for(source));
        let joined = match own {
            Ok(None) => {
                join(self.definition.plan(), self.inner.definition().plan(), &self.change.taken, arguments)
            }
            Ok(Some(whole)) => match self.change.define(&whole) {
                Ok(shown) => join(shown.plan(), whole.plan(), &self.change.taken, arguments),
                Err(error) => return Err(Box::new(self.not_set_up(&error))),
            },
            Err(error) => return Err(Box::new(self.not_set_up(&error))),
        };
        joined.map(Some).map_err(|refusal| Box::new(ToolReply::from(*refusal)))
    }

    fn not_set_up(&self, error: &DefinitionError) -> ToolReply {
        tracing::error!(tool = self.definition.name(), %error, "the parameters for this source cannot be");
        ToolOutcome::failed(
            FailureCode::TOOL_ERROR,
            "The tool cannot run: the application did not set it up.",
        )
        .into()
    }

    /// Returns the tool's own report, if it was the tool that refused the arguments.
    fn refusal(&self, text: &str, source: Option<&Source>) -> Option<InvalidArguments> {
        match source.map(|source| self.inner.definition_for(source)) {
            Some(Ok(Some(whole))) => {
                let report = whole.plan().parse::<Value>(text).err()?;
                Some(self.told(report, &self.change.define(&whole).ok()?))
            }
            _ => self.inner.validate(text).err().map(|report| self.told(report, &self.definition)),
        }
    }

    /// Rewrites a report of the tool for the definition that the model saw.
    fn told(&self, mut report: InvalidArguments, shown: &ToolDefinition) -> InvalidArguments {
        for taken in &self.change.taken {
            report = report.without_place(&taken.pointer());
        }
        report.under(shown.plan())
    }
}

impl Tool for Adapted {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(&'a self, arguments: &'a str, cx: &'a ToolContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            let joined = match self.joined(arguments, cx.source()) {
                Ok(joined) => joined,
                Err(refused) => return *refused,
            };
            let text = joined.as_ref().map_or(arguments, |joined| &joined.text);
            let mut reply = self.inner.call(text, cx).await;
            if reply.outcome.code() == Some(FailureCode::INVALID_ARGUMENTS.as_str())
                && let Some(report) = self.refusal(text, cx.source())
            {
                reply.outcome = report.into();
            }
            if let Some(joined) = joined {
                reply.coercions = joined.coercions;
            }
            if let (Some(map), ToolOutcome::Completed(output)) = (&self.change.map, &mut reply.outcome) {
                *output = map(self.definition.name(), std::mem::take(output));
            }
            reply
        })
    }

    fn validate(&self, arguments: &str) -> Result<Coercions, InvalidArguments> {
        if self.change.taken.is_empty() {
            return self.inner.validate(arguments).map_err(|report| self.told(report, &self.definition));
        }
        let (shown, whole) = (self.definition.plan(), self.inner.definition().plan());
        let joined = join(shown, whole, &self.change.taken, arguments).map_err(|report| *report)?;
        self.inner.validate(&joined.text).map_err(|report| self.told(report, &self.definition))?;
        Ok(joined.coercions)
    }

    fn with_defaults(&self, defaults: PlanOptions) -> Result<Option<Arc<dyn Tool>>, DefinitionError> {
        match self.inner.with_defaults(defaults)? {
            Some(inner) => Ok(Some(Arc::new(Self::new(inner, self.change.clone())?))),
            None => Ok(None),
        }
    }

    fn prepare(&self, arguments: &str) -> Result<Option<String>, ToolError> {
        let Some(prepared) = self.inner.prepare(arguments)? else { return Ok(None) };
        if self.change.taken.is_empty() {
            return Ok(Some(prepared));
        }
        // It may add what was taken away here; what the model itself sent stays, to be refused.
        let (Ok(Value::Object(mut changed)), sent) =
            (serde_json::from_str(&prepared), serde_json::from_str(arguments))
        else {
            return Ok(Some(prepared));
        };
        let sent: Value = sent.unwrap_or_default();
        for taken in self.change.taken.iter().filter(|taken| sent.get(&taken.name).is_none()) {
            changed.shift_remove(&taken.name);
        }
        Ok(Some(Value::Object(changed).to_string()))
    }

    fn definition_for(&self, source: &Source) -> Result<Option<ToolDefinition>, DefinitionError> {
        match self.inner.definition_for(source)? {
            Some(definition) => self.change.define(&definition).map(Some),
            None => Ok(None),
        }
    }

    fn format_result(&self, record: &CallRecord<'_>) -> Option<Vec<Part>> {
        self.inner.format_result(record)
    }

    fn triggers_follow_up(&self, record: &CallRecord<'_>) -> bool {
        self.inner.triggers_follow_up(record)
    }

    fn formats_results(&self) -> bool {
        self.inner.formats_results()
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    fn requires(&self) -> &[StateKey] {
        self.inner.requires()
    }

    fn reads_context(&self) -> bool {
        self.inner.reads_context()
    }
}
