//! The spent and the reserved amounts of budgets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An amount of one budget that is reserved for a request. See [`Store::reserve`](super::Store::reserve).
///
/// ```
/// use agent::store::BudgetHold;
///
/// let hold = BudgetHold::new("team a/tokens", 4_000, 1_000_000);
/// assert_eq!((hold.amount, hold.limit), (4_000, 1_000_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetHold {
    /// The key of the budget. A budget begins with nothing spent.
    pub budget: String,
    /// The amount, in the unit of the budget: tokens, or billionths of a dollar.
    pub amount: u64,
    /// The limit of the budget. The hold is refused if the spent and the reserved amounts together would exceed the limit.
    pub limit: u64,
}

impl BudgetHold {
    /// Creates a hold of `amount` on the budget with the key `budget`, whose limit is `limit`.
    pub fn new(budget: impl Into<String>, amount: u64, limit: u64) -> Self {
        Self { budget: budget.into(), amount, limit }
    }
}

/// The spent and the reserved amount of a budget. See [`Store::budget`](super::Store::budget).
///
/// ```
/// use agent::store::BudgetUse;
///
/// let team = BudgetUse::new("team a", 600, 300);
/// assert_eq!(1_000 - team.spent - team.held, 100);            // what is left of 1,000
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetUse {
    /// The key of the budget.
    pub budget: String,
    /// The amount that was spent. Reserved amounts that were not [settled](super::Store::settle) in time are included from the next
    /// [`reserve`](super::Store::reserve) call for this budget on.
    pub spent: u64,
    /// The amount that is reserved for requests whose used amount is not known yet.
    pub held: u64,
}

impl BudgetUse {
    /// Creates the use of a budget, for stores of your own.
    pub fn new(budget: impl Into<String>, spent: u64, held: u64) -> Self {
        Self { budget: budget.into(), spent, held }
    }
}

/// The time, in milliseconds, for which a reserved amount is kept after it expired and was counted as spent. Within this time, a late
/// `settle` call corrects the spent amount.
pub(super) const CHARGED_FOR: i64 = 7 * 24 * 3_600 * 1_000;

#[derive(Debug, Default)]
pub(super) struct MemoryBudgets {
    /// The spent and the held amount of each budget, by its key.
    budgets: BTreeMap<String, (u64, u64)>,
    /// The holds, by their id and then by the key of the budget.
    holds: HashMap<String, BTreeMap<String, MemoryHold>>,
}

#[derive(Debug)]
struct MemoryHold {
    amount: u64,
    until: i64,
    is_charged: bool,
}

impl MemoryBudgets {
    pub(super) fn len(&self) -> usize {
        self.budgets.len() + self.holds.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Counts expired holds as spent. Then returns the use of the first budget that has no room for its new hold. A budget that already
    /// has a hold with this id is skipped.
    pub(super) fn refusal(&mut self, id: &str, holds: &[BudgetHold], now: i64) -> Option<BudgetUse> {
        for hold in holds {
            self.charge_expired(&hold.budget, now);
        }
        let refused = holds.iter().filter(|hold| !self.is_held(id, &hold.budget)).find(|hold| {
            let (spent, held) = self.budgets.get(&hold.budget).copied().unwrap_or_default();
            spent.saturating_add(held).saturating_add(hold.amount) > hold.limit
        });
        refused.map(|hold| self.usage(&hold.budget))
    }

    /// Returns the number of rows that these holds would add: one for each new hold, and one for each new budget.
    pub(super) fn rows_for(&self, id: &str, holds: &[BudgetHold]) -> usize {
        let budgets: BTreeSet<&str> = holds.iter().map(|hold| hold.budget.as_str()).collect();
        let rows = |budget: &&str| {
            usize::from(!self.is_held(id, budget)) + usize::from(!self.budgets.contains_key(*budget))
        };
        budgets.iter().map(rows).sum()
    }

    fn is_held(&self, id: &str, budget: &str) -> bool {
        self.holds.get(id).is_some_and(|known| known.contains_key(budget))
    }

    /// Adds holds that [`refusal`](Self::refusal) has accepted.
    pub(super) fn reserve(&mut self, id: &str, holds: Vec<BudgetHold>, until: i64) {
        if holds.is_empty() {
            return;
        }
        let known = self.holds.entry(id.to_owned()).or_default();
        for BudgetHold { budget, amount, .. } in holds {
            if known.contains_key(&budget) {
                continue;
            }
            let (_, held) = self.budgets.entry(budget.clone()).or_default();
            *held = held.saturating_add(amount);
            known.insert(budget, MemoryHold { amount, until, is_charged: false });
        }
    }

    fn charge_expired(&mut self, budget: &str, now: i64) {
        let Some((spent, held)) = self.budgets.get_mut(budget) else { return };
        self.holds.retain(|_, holds| {
            if let Some(hold) = holds.get_mut(budget) {
                if !hold.is_charged && hold.until < now {
                    hold.is_charged = true;
                    *held = held.saturating_sub(hold.amount);
                    *spent = spent.saturating_add(hold.amount);
                }
                if hold.is_charged && hold.until.saturating_add(CHARGED_FOR) < now {
                    holds.remove(budget);
                }
            }
            !holds.is_empty()
        });
    }

    pub(super) fn settle(&mut self, id: &str, amounts: &[(String, u64)]) -> bool {
        let Some(holds) = self.holds.get_mut(id) else { return false };
        let mut is_settled = false;
        for (budget, actual) in amounts {
            let Some(hold) = holds.remove(budget) else { continue };
            is_settled = true;
            let amounts = self.budgets.entry(budget.clone()).or_default();
            let reserved = if hold.is_charged { &mut amounts.0 } else { &mut amounts.1 };
            *reserved = reserved.saturating_sub(hold.amount);
            amounts.0 = amounts.0.saturating_add(*actual);
        }
        if holds.is_empty() {
            self.holds.remove(id);
        }
        is_settled
    }

    pub(super) fn usage(&self, budget: &str) -> BudgetUse {
        let (spent, held) = self.budgets.get(budget).copied().unwrap_or_default();
        BudgetUse::new(budget, spent, held)
    }
}
