//! Whether a call has to be approved.

use super::arguments::Argument;
use crate::args::Plan;
use std::fmt;
use std::sync::Arc;

/// Whether a call of a tool has to be approved before it runs. `#[tool(approval = …)]` sets it.
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
#[non_exhaustive]
pub enum Approval {
    /// It runs at once.
    #[default]
    Never,
    /// Every call waits.
    Always,
    /// The arguments decide.
    When(ApprovalRule),
}

impl Approval {
    /// Requires approval where `rule` returns `true`. The rule gets the arguments as the argument type of the tool, or as a
    /// [`Value`](crate::Value). Arguments that cannot be parsed as an `A` require approval.
    pub fn when<A: Argument>(rule: impl Fn(&A) -> bool + Send + Sync + 'static) -> Self {
        // Arguments that cannot be read are never waved through.
        Self::When(ApprovalRule(Arc::new(move |plan, arguments| {
            plan.parse::<A>(arguments).map_or(true, |parsed| rule(&parsed.value))
        })))
    }

    /// Requires approval where one of the two does.
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
        match (self, other) {
            (Self::Never, one) | (one, Self::Never) => one,
            (Self::Always, _) | (_, Self::Always) => Self::Always,
            (one, other) => Self::When(ApprovalRule(Arc::new(move |plan, arguments| {
                one.is_needed(plan, arguments) || other.is_needed(plan, arguments)
            }))),
        }
    }

    /// Applies the rule to arguments from which something was removed: `whole` makes them fit `plan` again. Arguments that do not
    /// fit require approval.
    pub(super) fn over(
        self,
        plan: Plan,
        whole: impl Fn(&Plan, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let Self::When(rule) = self else { return self };
        Self::When(ApprovalRule(Arc::new(move |shown, arguments| {
            whole(shown, arguments).is_none_or(|arguments| (rule.0)(&plan, &arguments))
        })))
    }

    /// Whether a call with these arguments has to be approved. They are JSON text that fits `plan`, the plan of the tool; text
    /// that does not fit requires approval.
    pub fn is_needed(&self, plan: &Plan, arguments: &str) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(rule) => (rule.0)(plan, arguments),
        }
    }
}

/// A rule over the arguments of a call, created by [`Approval::when`]. Two rules are equal if one is a clone of the other.
///
/// ```
/// use agent::{Approval, Value};
///
/// let approval = Approval::when(|args: &Value| args["amount"].as_u64().is_none_or(|amount| amount > 100));
/// let Approval::When(rule) = &approval else { unreachable!() };
/// assert_eq!(Approval::When(rule.clone()), approval);
/// ```
#[derive(Clone)]
pub struct ApprovalRule(Arc<Rule>);

type Rule = dyn Fn(&Plan, &str) -> bool + Send + Sync;

impl PartialEq for ApprovalRule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApprovalRule")
    }
}
