//! Rules that decide whether a call needs approval.

use super::arguments::Argument;
use crate::args::Plan;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The rule that decides whether a call of a tool needs approval before it runs. `#[tool(approval = …)]` sets the rule.
///
/// ```
/// use agent::{Approval, Registry, tool, tools};
///
/// /// Pays an invoice.
/// #[tool(approval = when(|amount: &u64| *amount > 100))]
/// fn pay(invoice: String, amount: u64) -> String {
///     format!("{invoice}: {amount}")
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new(tools![pay])?;
/// let tool = registry.fetch("pay")?;
/// let plan = tool.definition().plan();
/// let approval = &tool.policy().approval;
/// assert!(approval.is_needed(plan, r#"{"invoice": "7", "amount": 500}"#));
/// assert!(!approval.is_needed(plan, r#"{"invoice": "7", "amount": 99}"#));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approval(Rule);

#[derive(Clone, Debug, Default, PartialEq)]
enum Rule {
    #[default]
    Never,
    Always,
    When(RuleFunction),
}

impl Approval {
    /// The rule that no call needs approval. This is the default.
    pub const NEVER: Self = Self(Rule::Never);

    /// The rule that every call needs approval.
    pub const ALWAYS: Self = Self(Rule::Always);

    /// Creates a rule that requires approval if `rule` returns `true`. `A` is the argument type of the tool, a [`Value`](crate::Value), or
    /// another type that the arguments can be parsed as. Arguments that cannot be parsed as an `A` require approval.
    pub fn when<A: Argument>(rule: impl Fn(&A) -> bool + Send + Sync + 'static) -> Self {
        Self::of(move |arguments| {
            let mut needed = None;
            arguments.offer(&mut |parsed| {
                needed = parsed.downcast_ref::<A>().map(&rule);
                needed.is_some()
            });
            let parse = || arguments.plan().parse::<A>(arguments.text());
            needed.unwrap_or_else(|| parse().map_or(true, |parsed| rule(&parsed.value)))
        })
    }

    fn of(rule: impl Fn(&dyn RuleArguments) -> bool + Send + Sync + 'static) -> Self {
        Self(Rule::When(RuleFunction { applies: Arc::new(rule), as_sent: None }))
    }

    fn with_as_sent(mut self, rule: Self) -> Self {
        if let Rule::When(function) = &mut self.0 {
            function.as_sent = Some(Arc::new(rule));
        }
        self
    }

    /// Creates a rule that requires approval if this rule or `other` requires it.
    ///
    /// ```
    /// use agent::{Approval, Value, args::{Plan, PlanOptions}, json};
    ///
    /// let schema = json!({"type": "object", "properties": {"amount": {"type": "integer"}, "country": {"type": "string"}}});
    /// let plan = Plan::compile("pay", &schema, PlanOptions::default())?;
    /// let large = Approval::when(|args: &Value| args["amount"].as_u64().is_none_or(|amount| amount > 100));
    /// let abroad = Approval::when(|args: &Value| args["country"] != "DE");
    /// let approval = large.or(abroad);
    /// assert!(approval.is_needed(&plan, r#"{"amount": 500, "country": "DE"}"#));
    /// assert!(approval.is_needed(&plan, r#"{"amount": 5, "country": "FR"}"#));
    /// assert!(!approval.is_needed(&plan, r#"{"amount": 5, "country": "DE"}"#));
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn or(self, other: Self) -> Self {
        match (&self.0, &other.0) {
            (Rule::Never, _) | (_, Rule::Always) => other,
            (_, Rule::Never) | (Rule::Always, _) => self,
            _ => {
                let sent = (self.as_sent(), other.as_sent());
                let sees_hidden = sent.0 != self || sent.1 != other;
                let both = Self::of(move |arguments| self.applies(arguments) || other.applies(arguments));
                if sees_hidden { both.with_as_sent(sent.0.or(sent.1)) } else { both }
            }
        }
    }

    /// Creates a rule that also sees the arguments that are hidden from the model. `whole` adds these arguments to the text that the model
    /// sent. If `whole` returns `None`, approval is required.
    pub(super) fn over(
        self,
        plan: Plan,
        whole: impl Fn(&Plan, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        if !matches!(self.0, Rule::When(_)) {
            return self;
        }
        let as_sent = self.as_sent();
        let over = Self::of(move |arguments| {
            let whole = whole(arguments.plan(), arguments.text());
            whole.is_none_or(|text| self.applies(&ArgumentText { plan: &plan, text: &text }))
        });
        over.with_as_sent(as_sent)
    }

    /// Returns the rule without what [`over`](Self::over) added: it sees only the arguments that the model sent.
    pub(super) fn as_sent(&self) -> Self {
        match &self.0 {
            Rule::When(RuleFunction { as_sent: Some(rule), .. }) => (**rule).clone(),
            _ => self.clone(),
        }
    }

    /// Returns whether a call has to be approved. `arguments` is JSON text that fits `plan`, the plan of the tool. If the text does not
    /// fit, a rule that is a function requires approval.
    pub fn is_needed(&self, plan: &Plan, arguments: &str) -> bool {
        self.applies(&ArgumentText { plan, text: arguments })
    }

    pub(crate) fn applies(&self, arguments: &dyn RuleArguments) -> bool {
        match &self.0 {
            Rule::Never => false,
            Rule::Always => true,
            Rule::When(rule) => (rule.applies)(arguments),
        }
    }
}

pub(crate) trait RuleArguments {
    fn plan(&self) -> &Plan;

    fn text(&self) -> &str;

    /// Calls `take` with each value that was already parsed from the text, until `take` returns `true`.
    fn offer(&self, take: &mut dyn FnMut(&dyn Any) -> bool);
}

struct ArgumentText<'a> {
    plan: &'a Plan,
    text: &'a str,
}

impl RuleArguments for ArgumentText<'_> {
    fn plan(&self) -> &Plan {
        self.plan
    }

    fn text(&self) -> &str {
        self.text
    }

    fn offer(&self, _: &mut dyn FnMut(&dyn Any) -> bool) {}
}

/// The function of a rule. Two values are equal only if one is a clone of the other.
#[derive(Clone)]
struct RuleFunction {
    applies: Arc<DynRule>,
    /// The rule before [`Approval::over`].
    as_sent: Option<Arc<Approval>>,
}

type DynRule = dyn Fn(&dyn RuleArguments) -> bool + Send + Sync;

impl PartialEq for RuleFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.applies, &other.applies)
    }
}

impl fmt::Debug for RuleFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rule")
    }
}
