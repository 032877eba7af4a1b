//! Budgets: amounts of tokens or money that runs share, also across processes.
//!
//! Before a request is sent, a hold [reserves](gate) the maximum cost of the request. When the reply ends, the hold is settled: the real
//! cost replaces it.

mod gate;
mod owed;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use gate::BudgetGate;
use owed::OwedSettlements;
use window::BudgetWindow;

use super::error::BuildError;
use super::records::{StoreAccess, now};
use crate::loop_core::{Limit, LimitReached};
use crate::message::{AssistantMessage, Usage};
use crate::model::{
    Model, ModelAttempt, ModelError, ModelErrorKind, ModelRequest, RequestNotice, SizeCounter, StepCx,
    Thinking, TokenCounter,
};
use crate::panics::catch;
use crate::provider::{KnownPrices, Prices};
use crate::store::{BudgetHold, BudgetUse, StoreError};
use crate::tool::{BoxFuture, context::ToolContext};

/// Billionths in a dollar. Amounts of money are stored in billionths.
const NANOS: f64 = 1e9;
/// Number of tokens that the budgets must leave for a reply, in addition to the budget for its thinking.
const MIN_REPLY: u64 = 1_024;
/// Assumed maximum length of a reply if neither the request nor the model has a maximum, in tokens.
const MAX_REPLY: u64 = 32_000;
/// The code of the error of a request that was not sent because the store failed.
const STORE_FAILED: &str = "budget_store";
/// The code of the error of a request that the client did not send because of a limit.
const NOT_SENT: &str = "local_limit";
/// The lifetime of a reservation, in milliseconds. If the real cost does not replace a reservation by then, the reservation counts as
/// spent.
const HOLD_MS: i64 = 30 * 60 * 1_000;

/// A budget of tokens or dollars, for [`AssistantBuilder::budget`](crate::AssistantBuilder::budget).
///
/// Before each request, its estimated input and its longest possible reply are reserved in the [store](crate::AssistantBuilder::store).
/// After the reply, the actual usage replaces the reservation. Concurrent runs, also in other processes, therefore exceed the budget by no
/// more than the error of their estimates.
///
/// If the longest reply does not fit, the request's `max_tokens` is lowered until it fits, but not below 1,024 tokens plus the budget for
/// thinking. If a reply of this length does not fit either, nothing is sent, and the run ends with [`Limit::Budget`]. If a process dies,
/// its reservations count as spent after half an hour.
///
/// ```
/// use agent::run::{Budget, Limit};
/// use agent::store::MemoryStore;
/// use agent::{Assistant, ScriptedModel};
///
/// struct Tenant { id: String }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let budget = Budget::tokens(2_500)
///     .named("daily")
///     .per_day()
///     .scope(|cx| cx.get::<Tenant>().map(|tenant| tenant.id.clone()).unwrap_or_default());
/// let model = ScriptedModel::from_fn(|_| agent::model::reply().text("Hello!").usage(agent::message::Usage::new(700, 300)));
/// let assistant = Assistant::builder(model)
///     .store(MemoryStore::new())                      // a database, if processes share the budget
///     .budget(budget)
///     .build()?;
///
/// let ann = || Tenant { id: "ann".into() };
/// assistant.prompt("Hi").with_state(ann()).await?;
/// let error = assistant.prompt("Hi").with_state(ann()).await.unwrap_err();          // 1,500 are left, too few for another request
/// assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::Budget));
/// assistant.prompt("Hi").with_state(Tenant { id: "ben".into() }).await?;
/// # Ok(()) }
/// ```
///
/// By default, the amount applies to each run, and the budget needs no store. A budget for any other period needs a store.
#[derive(Clone)]
pub struct Budget {
    name: Arc<str>,
    unit: BudgetUnit,
    /// The amount, in tokens or in billionths of a dollar.
    limit: u64,
    window: BudgetWindow,
    scope: Option<Arc<ScopeOf>>,
    /// The reason why the amount is invalid, or `None` if it is valid.
    problem: Option<&'static str>,
}

type ScopeOf = dyn Fn(&ToolContext) -> String + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetUnit {
    Tokens,
    Dollars,
}

impl Budget {
    /// Creates a budget of tokens. The tokens of requests and of replies count together.
    pub fn tokens(tokens: u64) -> Self {
        Self::new(BudgetUnit::Tokens, tokens, (tokens == 0).then_some("it has no tokens"))
    }

    /// Creates a budget of US dollars. Every model of the assistant needs a price: a built-in price, or a price in the [price
    /// list](crate::AssistantBuilder::prices).
    ///
    /// ```
    /// use agent::run::Budget;
    /// use agent::{Assistant, ScriptedModel, provider::Prices};
    ///
    /// let builder = || {
    ///     Assistant::builder(ScriptedModel::new(["Hello!"])).budget(Budget::dollars(0.5))
    /// };
    /// let error = builder().build().unwrap_err();
    /// assert!(error.to_string().contains("the model `scripted/scripted` has no price"), "{error}");
    /// let prices = [("scripted/scripted", Prices::new(3.0, 15.0))];
    /// assert!(builder().prices(prices).build().is_ok());
    /// ```
    pub fn dollars(dollars: f64) -> Self {
        let is_amount = dollars.is_finite() && dollars > 0.0;
        let problem = (!is_amount).then_some("its amount is not a number above zero");
        Self::new(BudgetUnit::Dollars, nanos(dollars), problem)
    }

    fn new(unit: BudgetUnit, limit: u64, problem: Option<&'static str>) -> Self {
        Self { name: Arc::from("budget"), unit, limit, window: BudgetWindow::Run, scope: None, problem }
    }

    /// Applies the amount to each session. A run without a session fails.
    pub fn per_session(self) -> Self {
        self.within(BudgetWindow::Session)
    }

    /// Applies the amount to each day, in UTC.
    pub fn per_day(self) -> Self {
        self.within(BudgetWindow::Day)
    }

    /// Applies the amount to each month, in UTC.
    pub fn per_month(self) -> Self {
        self.within(BudgetWindow::Month)
    }

    /// Applies the amount to all time, so that a spent part is never available again.
    ///
    /// ```
    /// use agent::run::Budget;
    /// use agent::store::MemoryStore;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"]))
    ///     .store(MemoryStore::new())
    ///     .budget(Budget::tokens(100_000).named("session").per_session())
    ///     .budget(Budget::tokens(10_000_000).named("month").per_month())
    ///     .budget(Budget::tokens(90_000_000).named("trial").in_total())
    ///     .session("ann/1")
    ///     .await?;
    /// assert_eq!(assistant.prompt("Hi").await?.text(), "Hello!");
    /// # Ok(()) }
    /// ```
    pub fn in_total(self) -> Self {
        self.within(BudgetWindow::Total)
    }

    fn within(self, window: BudgetWindow) -> Self {
        Self { window, ..self }
    }

    /// Sets the function that names the owner of the amount, for example a customer. Each owner has a separate amount. Without this
    /// function, all runs in a period share one amount. If the function panics, the request fails.
    pub fn scope(mut self, scope: impl Fn(&ToolContext) -> String + Send + Sync + 'static) -> Self {
        self.scope = Some(Arc::new(scope));
        self
    }

    /// Sets the name of the budget in errors and in the store. Default: `budget`.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("name", &self.name)
            .field("unit", &self.unit)
            .field("limit", &self.limit)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

pub(super) struct Budgets {
    list: Vec<Budget>,
    prices: KnownPrices,
    store: StoreAccess,
    counter: Arc<dyn TokenCounter>,
    owed: OwedSettlements,
}

#[derive(Default)]
pub(super) struct BudgetOptions {
    pub(super) list: Vec<Budget>,
    pub(super) prices: KnownPrices,
}

impl Budgets {
    pub(super) fn new(
        options: BudgetOptions,
        store: Option<StoreAccess>,
        counter: Arc<dyn TokenCounter>,
        models: &[&Arc<dyn Model>],
    ) -> Result<Option<Arc<Self>>, BuildError> {
        if options.list.is_empty() {
            return Ok(None);
        }
        let has_store = store.is_some();
        let this = Self {
            list: options.list,
            prices: options.prices,
            store: store.unwrap_or_else(StoreAccess::in_memory),
            counter,
            owed: OwedSettlements::default(),
        };
        for (at, budget) in this.list.iter().enumerate() {
            let fails = |reason: String| BuildError::Budget { budget: budget.name.to_string(), reason };
            if budget.name.is_empty() {
                return Err(fails("its name is empty".to_owned()));
            }
            if let Some(problem) = budget.problem {
                return Err(fails(problem.to_owned()));
            }
            if budget.window != BudgetWindow::Run && !has_store {
                return Err(fails("it outlives a run, so it needs a store: set one with `store`".to_owned()));
            }
            let is_same = |other: &Budget| {
                (&other.name, other.unit, other.window) == (&budget.name, budget.unit, budget.window)
            };
            if this.list.iter().skip(at + 1).any(is_same) {
                return Err(fails("there are two of this name: give one another with `named`".to_owned()));
            }
            if budget.unit == BudgetUnit::Dollars
                && let Some(model) = models.iter().find_map(|model| this.unpriced(&***model))
            {
                let reason = format!("the model `{model}` has no price: set it with `prices`");
                return Err(fails(reason));
            }
        }
        Ok(Some(Arc::new(this)))
    }

    /// Returns the first model without a price among the models that may answer for `model`.
    fn unpriced(&self, model: &dyn Model) -> Option<String> {
        let names = model.candidates().into_iter().map(|info| format!("{}/{}", info.provider, info.model));
        names.into_iter().find(|name| self.prices.of(name).is_none())
    }

    pub(super) fn bind(
        self: &Arc<Self>,
        context: &ToolContext,
        run: &Arc<str>,
        announced: &AnnouncedBudgets,
    ) -> Result<BoundBudgets, ModelError> {
        let at = now();
        let invalid = |text: String| ModelError::new(ModelErrorKind::InvalidRequest, text);
        let mut keys = Vec::with_capacity(self.list.len());
        for budget in &self.list {
            let scope = match &budget.scope {
                None => String::new(),
                Some(scope) => catch(|| scope(context)).map_err(|panic| {
                    invalid(format!("the scope of the budget `{}` panicked: {panic}", budget.name))
                })?,
            };
            let bucket = budget.window.bucket(at, run, context.session_id()).ok_or_else(|| {
                invalid(format!("the budget `{}` is for a session, and the run has none", budget.name))
            })?;
            let unit = match budget.unit {
                BudgetUnit::Tokens => "tokens",
                BudgetUnit::Dollars => "nanodollars",
            };
            // Each part is written with its length, so that two different lists of parts never make the same key.
            let parts = [unit, &*budget.name, &*scope, &*bucket];
            keys.push(parts.map(|part| format!("{}:{part}", part.len())).join("/"));
        }
        Ok(BoundBudgets { budgets: self.clone(), keys, announced: announced.clone() })
    }
}

/// The budgets of an assistant, bound to one run. `keys` contains the key of each budget in the store, in the order of the budgets.
#[derive(Clone)]
pub(in crate::runtime) struct BoundBudgets {
    budgets: Arc<Budgets>,
    keys: Vec<String>,
    announced: AnnouncedBudgets,
}

#[derive(Clone, Debug, Default)]
pub(in crate::runtime) struct AnnouncedBudgets(Arc<Mutex<BTreeSet<String>>>);

impl AnnouncedBudgets {
    fn keys(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::runtime) fn add(&self, key: String) -> bool {
        self.keys().insert(key)
    }
}

struct RequestPlan {
    id: String,
    model: Arc<dyn Model>,
    input: u64,
    /// Maximum length of the reply.
    output: u64,
    /// Minimum to which `output` may be lowered.
    least: u64,
}

/// The amounts that are reserved for a request. If this value is dropped before it is settled, a tokio task settles it like a cancelled
/// request. Without a tokio runtime, the amounts stay reserved.
pub(super) struct HeldBudgets(Option<(BoundBudgets, RequestPlan)>);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BudgetRefusal(LimitReached);

/// Returns the reached limit if a budget is the reason why a request was not sent.
pub(super) fn budget_limit(error: &ModelError) -> Option<LimitReached> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<BudgetRefusal>().map(|refusal| refusal.0.clone())
}

/// Returns the error of the store that prevented a request.
pub(super) fn budget_store_error(error: &ModelError) -> Option<StoreError> {
    let error = error.code().filter(|code| *code == STORE_FAILED).and(std::error::Error::source(error))?;
    error.downcast_ref().cloned()
}

impl BoundBudgets {
    /// Reserves the maximum cost of a request. The second value is the lowered maximum length of the reply in tokens, or `None` if the
    /// request fits unchanged.
    ///
    /// # Errors
    /// Fails if a budget has too little left, or if the store fails. The request must then not be sent.
    pub(super) async fn reserve(
        self,
        step: &StepCx,
        model: Arc<dyn Model>,
        request: &ModelRequest,
    ) -> Result<(HeldBudgets, Option<u64>), ModelError> {
        self.budgets.owed.catch_up(&self.budgets.store).await;
        let estimate = request.estimate_tokens(model.info(), &*self.budgets.counter);
        let output = request.max_tokens.or_else(|| model.max_output()).unwrap_or(MAX_REPLY);
        let thinking = match request.thinking {
            Some(Thinking::Budget(tokens)) => u64::from(tokens),
            _ => 0,
        };
        let least = MIN_REPLY.saturating_add(thinking).min(output);
        let id = super::new_id(&step.key.as_ref().map(ToString::to_string).unwrap_or_default());
        // The budgets that this request may spend completely. For any other budget, the first try allows only 80 % of the limit. If the
        // store refuses this try, its answer contains the spent amount, which shows whether the budget is nearly spent.
        let mut whole = self.announced.keys().clone();
        let mut plan = RequestPlan { id, model, input: estimate.upper_bound(), output, least };
        // The loop ends, because each refusal either raises a limit from 80 % to 100 %, or shortens the reply.
        while plan.output >= plan.least {
            let holds = self.entries().map(|(budget, key)| {
                let amount = self.budgets.needed(budget, &plan, plan.output);
                let limit = if whole.contains(key) { budget.limit } else { near(budget.limit) };
                BudgetHold::new(key, amount, limit)
            });
            let at = now();
            let refused =
                self.budgets.store.reserve(&plan.id, holds.collect(), at, at.saturating_add(HOLD_MS));
            let refused = refused.await.map_err(|error| {
                let text = format!("the budget could not be reserved: {error}");
                ModelError::new(ModelErrorKind::Other, text).with_code(STORE_FAILED).with_source(error)
            })?;
            let Some(refused) = refused else {
                let limited = (plan.output < output).then_some(plan.output);
                return Ok((HeldBudgets(Some((self, plan))), limited));
            };
            let entry = self.entries().find(|(_, key)| **key == refused.budget);
            let Some((budget, key)) = entry else { break };
            if whole.insert(key.clone()) {
                if refused.spent >= near(budget.limit) {
                    #[expect(clippy::cast_precision_loss, reason = "a share")]
                    let share = refused.spent as f64 / budget.limit as f64;
                    let (key, budget) = (key.clone(), budget.name.to_string());
                    step.notices.add(RequestNotice::BudgetNear { key, budget, share });
                }
                continue;
            }
            match self.budgets.fitting(budget, &plan, &refused) {
                Some(output) => plan.output = output,
                None => return Err(self.budgets.refusal(budget, &plan, &refused)),
            }
        }
        Err(ModelError::new(ModelErrorKind::Other, "the store refused a budget that it was not asked for"))
    }

    fn entries(&self) -> impl Iterator<Item = (&Budget, &String)> {
        self.budgets.list.iter().zip(&self.keys)
    }
}

impl HeldBudgets {
    /// Replaces the reserved amounts by the cost of the request, including the failed attempts of a fallback before the reply.
    pub(super) fn settle(
        mut self,
        reply: &AssistantMessage,
        error: Option<&ModelError>,
    ) -> BoxFuture<'static, ()> {
        match self.0.take() {
            Some((bound, plan)) => Self::settled(&bound, plan, reply, error),
            None => Box::pin(std::future::ready(())),
        }
    }

    async fn release(self) {
        let unsent = ModelError::aborted("stopped").with_code(NOT_SENT);
        self.settle(&AssistantMessage::default(), Some(&unsent)).await;
    }

    fn settled(
        bound: &BoundBudgets,
        plan: RequestPlan,
        reply: &AssistantMessage,
        error: Option<&ModelError>,
    ) -> BoxFuture<'static, ()> {
        let (budgets, usage) = (bound.budgets.clone(), &reply.usage);
        let attempts = ModelAttempt::before(reply);
        // A reply that failed or was cancelled may report no output, or only the output of its beginning.
        let arrived = error.map_or(0, |_| budgets.arrived(reply, &plan));
        let amount = |budget: &Budget| {
            let answer = match error {
                _ if usage.input > 0 || usage.output > 0 => {
                    budgets.spent(budget, &plan.model, reply, usage.output.max(arrived))
                }
                Some(error) if arrived == 0 && was_not_made(error) => 0,
                Some(_) => budgets.amount(budget, &plan.model, plan.input, arrived),
                // A provider that reports no usage may charge for the whole estimate.
                None => budgets.amount(budget, &plan.model, plan.input, plan.output),
            };
            let charged = attempts.iter().filter(|attempt| attempt.was_made());
            charged.fold(answer, |sum, attempt| sum.saturating_add(budgets.attempted(budget, attempt, &plan)))
        };
        let amounts = bound.entries().map(|(budget, key)| (key.clone(), amount(budget))).collect();
        Box::pin(async move { budgets.owed.settle(&budgets.store, (plan.id, amounts)).await })
    }
}

impl Drop for HeldBudgets {
    fn drop(&mut self) {
        if let Some((bound, plan)) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let stopped = ModelError::aborted("dropped");
            runtime.spawn(Self::settled(&bound, plan, &AssistantMessage::default(), Some(&stopped)));
        }
    }
}

/// Returns whether a request that failed with this error costs nothing: the provider rejected it with a status of 400 to 499, or it was not
/// sent.
fn was_not_made(error: &ModelError) -> bool {
    error.status().map_or(error.is_invalid_request() || error.code() == Some(NOT_SENT), |status| {
        (400..500).contains(&status)
    })
}

impl Budgets {
    /// Returns the maximum cost of a request with these numbers of tokens, in the unit of the budget.
    fn amount(&self, budget: &Budget, model: &Arc<dyn Model>, input: u64, output: u64) -> u64 {
        match budget.unit {
            BudgetUnit::Tokens => input.saturating_add(output),
            BudgetUnit::Dollars => self.most(&**model, input, output),
        }
    }

    /// Returns the maximum cost of a request with a reply of `output` tokens. If the model is a fallback, all its other models may fail
    /// first, so their input is included.
    fn needed(&self, budget: &Budget, plan: &RequestPlan, output: u64) -> u64 {
        let others = plan.model.candidates().len().saturating_sub(1);
        let failed = self.amount(budget, &plan.model, plan.input, 0);
        let failed = failed.saturating_mul(u64::try_from(others).unwrap_or(u64::MAX));
        self.amount(budget, &plan.model, plan.input, output).saturating_add(failed)
    }

    /// Returns the cost of an attempt without a reply, in the unit of the budget: the cost of the estimated input.
    fn attempted(&self, budget: &Budget, attempt: &ModelAttempt, plan: &RequestPlan) -> u64 {
        let name = format!("{}/{}", attempt.provider, attempt.model);
        match self.prices.of(&name).filter(|_| budget.unit == BudgetUnit::Dollars) {
            Some(prices) => nanos(prices.cost(&Usage::new(plan.input, 0)).total),
            None => self.amount(budget, &plan.model, plan.input, 0),
        }
    }

    /// Returns the cost of these tokens at the most expensive model that may answer, in billionths of a dollar.
    fn most(&self, model: &dyn Model, input: u64, output: u64) -> u64 {
        let prices = model.candidates().into_iter();
        let prices = prices.filter_map(|info| self.prices.of(&format!("{}/{}", info.provider, info.model)));
        let cost = |prices: Prices| {
            let mut usage = Usage::new(input, output);
            if prices.cache_write > prices.input {
                usage.cache_write = input;
            }
            nanos(prices.cost(&usage).total)
        };
        prices.map(cost).max().unwrap_or_default()
    }

    /// Estimates the tokens of the parts of a reply that arrived. The result is at most the maximum length of the reply.
    fn arrived(&self, reply: &AssistantMessage, plan: &RequestPlan) -> u64 {
        if reply.content.is_empty() {
            return 0;
        }
        let size = SizeCounter { counter: &*self.counter, api: &plan.model.info().api };
        size.message(&Arc::new(reply.clone().into())).min(plan.output)
    }

    /// Returns the cost of a reply with reported usage, in the unit of the budget. `output` is the number of output tokens of the reply.
    fn spent(&self, budget: &Budget, model: &Arc<dyn Model>, reply: &AssistantMessage, output: u64) -> u64 {
        match budget.unit {
            BudgetUnit::Tokens => reply.usage.input.saturating_add(output),
            BudgetUnit::Dollars => self.cost(&**model, reply, &Usage { output, ..reply.usage.clone() }),
        }
    }

    fn cost(&self, model: &dyn Model, reply: &AssistantMessage, usage: &Usage) -> u64 {
        // With several models, the reply names the model that answered. A reply without a model belongs to the model of the request.
        let name = match &*reply.model {
            "" => format!("{}/{}", model.info().provider, model.info().model),
            model => format!("{}/{model}", reply.provider),
        };
        let own = self.prices.given(&name).map(|prices| prices.cost(usage));
        let cost = own.or(usage.cost).or_else(|| Some(self.prices.of(&name)?.cost(usage)));
        cost.map_or_else(|| self.most(model, usage.input, usage.output), |cost| nanos(cost.total))
    }

    /// Returns the length of the longest reply that fits into the remaining budget, in tokens. The store has refused `plan.output`, so the
    /// result is smaller. Returns `None` if no smaller reply of at least `plan.least` tokens fits.
    fn fitting(&self, budget: &Budget, plan: &RequestPlan, used: &BudgetUse) -> Option<u64> {
        let left = budget.limit.saturating_sub(used.spent).saturating_sub(used.held);
        let fits = |output: u64| self.needed(budget, plan, output) <= left;
        let (mut low, mut high) = (plan.least, plan.output);
        if low >= high || !fits(low) {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }

    #[expect(clippy::cast_precision_loss, reason = "for a text")]
    fn refusal(&self, budget: &Budget, plan: &RequestPlan, used: &BudgetUse) -> ModelError {
        let (factor, unit) = match budget.unit {
            BudgetUnit::Tokens => (1.0, "tokens"),
            BudgetUnit::Dollars => (NANOS, "dollars"),
        };
        let shown = |amount: u64| amount as f64 / factor;
        let needed = self.needed(budget, plan, plan.least);
        let text = format!(
            "the budget `{}` of {} {unit} has too little left for a request of {}: {} are spent, and {} reserved for other requests",
            budget.name,
            shown(budget.limit),
            shown(needed),
            shown(used.spent),
            shown(used.held),
        );
        let used = used.spent.saturating_add(used.held);
        let mut reached = LimitReached::new(Limit::Budget, shown(budget.limit), shown(used));
        reached.budget = Some(budget.name.clone());
        ModelError::aborted(text).with_code("budget").with_source(BudgetRefusal(reached))
    }
}

/// Returns the amount from which a budget is nearly spent: 80 % of its limit.
fn near(limit: u64) -> u64 {
    limit - limit / 5
}

/// Converts dollars to billionths of a dollar, rounded up and limited to 10^18.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast is bounded")]
fn nanos(dollars: f64) -> u64 {
    (dollars * NANOS).ceil().clamp(0.0, 1e18) as u64
}
