//! Budgets in a database. Each function is one transaction. The row of a budget is locked before its holds, and budgets are locked in the
//! order of their keys, so that callers cannot deadlock.

use sqlx::{AnyConnection, Row as _};

use super::text::encode;
use super::{SqlStore, error, from_sql, to_sql};
use crate::store::budget::CHARGED_FOR;
use crate::store::{BudgetHold, BudgetUse, StoreError};

/// Maximum amount of a hold or a settlement. The sum of a few thousand amounts still fits into an integer of the database.
const MAX_AMOUNT: u64 = 1 << 50;

const LOCK: &str = "update agent_budget set held = held where budget = $1";
const EXPIRED: &str = "select count(*), cast(coalesce(sum(amount), 0) as bigint) from agent_budget_hold
    where budget = $1 and charged = 0 and until_at < $2";

async fn execute(
    connection: &mut AnyConnection,
    query: sqlx::query::Query<'_, sqlx::Any, sqlx::any::AnyArguments>,
) -> Result<u64, StoreError> {
    query.execute(connection).await.map(|done| done.rows_affected()).map_err(error::from_sqlx)
}

/// Locks a budget, and counts its expired holds as spent. Deletes holds that expired more than `CHARGED_FOR` ago.
async fn charge_expired(connection: &mut AnyConnection, budget: &str, now: i64) -> Result<(), StoreError> {
    execute(connection, sqlx::query(LOCK).bind(budget)).await?;
    let row = sqlx::query(EXPIRED).bind(budget).bind(now).fetch_one(&mut *connection).await;
    let row = row.map_err(error::from_sqlx)?;
    let number = |at: usize| row.try_get::<i64, _>(at).map_err(error::from_sqlx);
    let (holds, expired) = (number(0)?, number(1)?);
    if holds > 0 {
        let charge =
            "update agent_budget_hold set charged = 1 where budget = $1 and charged = 0 and until_at < $2";
        execute(connection, sqlx::query(charge).bind(budget).bind(now)).await?;
        let charge = "update agent_budget set held = held - $1, spent = spent + $2 where budget = $3";
        execute(connection, sqlx::query(charge).bind(expired).bind(expired).bind(budget)).await?;
    }
    let forget = "delete from agent_budget_hold where budget = $1 and charged = 1 and until_at < $2";
    let before = now.saturating_sub(CHARGED_FOR);
    execute(connection, sqlx::query(forget).bind(budget).bind(before)).await.map(drop)
}

async fn read(connection: &mut AnyConnection, budget: &str) -> Result<BudgetUse, StoreError> {
    let query = sqlx::query("select spent, held from agent_budget where budget = $1");
    let row = query.bind(encode(budget)).fetch_optional(connection).await.map_err(error::from_sqlx)?;
    let Some(row) = row else { return Ok(BudgetUse::new(budget, 0, 0)) };
    let number = |at: usize| row.try_get::<i64, _>(at).map(from_sql).map_err(error::from_sqlx);
    Ok(BudgetUse::new(budget, number(0)?, number(1)?))
}

impl SqlStore {
    pub(super) async fn do_reserve(
        &self,
        id: &str,
        mut holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> Result<Option<BudgetUse>, StoreError> {
        holds.sort_by(|one, other| one.budget.cmp(&other.budget));
        let id = encode(id);
        let mut transaction = self.begin_transaction().await?;
        for hold in &holds {
            let (budget, amount) = (encode(&hold.budget), to_sql(hold.amount.min(MAX_AMOUNT)));
            let create =
                "insert into agent_budget (budget, spent, held) values ($1, 0, 0) on conflict do nothing";
            execute(&mut transaction, sqlx::query(create).bind(&budget)).await?;
            charge_expired(&mut transaction, &budget, now).await?;
            let insert = "insert into agent_budget_hold (id, budget, amount, until_at, charged) values ($1, $2, $3, $4, 0)
                on conflict do nothing";
            let insert = sqlx::query(insert).bind(&id).bind(&budget).bind(amount).bind(until);
            if execute(&mut transaction, insert).await? == 0 {
                continue;
            }
            let take =
                "update agent_budget set held = held + $1 where budget = $2 and spent + held + $3 <= $4";
            let limit = to_sql(hold.limit);
            let take = sqlx::query(take).bind(amount).bind(&budget).bind(amount).bind(limit);
            if execute(&mut transaction, take).await? == 0 {
                let refused = read(&mut transaction, &hold.budget).await?;
                transaction.rollback().await.map_err(error::from_sqlx)?;
                // The rollback also reverted the charges of expired holds, so the expired holds are charged again.
                let mut transaction = self.begin_transaction().await?;
                for hold in &holds {
                    charge_expired(&mut transaction, &encode(&hold.budget), now).await?;
                }
                transaction.commit().await.map_err(error::from_sqlx)?;
                return Ok(Some(refused));
            }
        }
        transaction.commit().await.map_err(error::from_sqlx)?;
        Ok(None)
    }

    pub(super) async fn do_settle(
        &self,
        id: &str,
        mut amounts: Vec<(String, u64)>,
    ) -> Result<bool, StoreError> {
        amounts.sort();
        let id = encode(id);
        let mut is_settled = false;
        let mut transaction = self.begin_transaction().await?;
        for (budget, actual) in amounts {
            let (budget, actual) = (encode(&budget), to_sql(actual.min(MAX_AMOUNT)));
            execute(&mut transaction, sqlx::query(LOCK).bind(&budget)).await?;
            let take =
                "delete from agent_budget_hold where id = $1 and budget = $2 returning amount, charged";
            let row = sqlx::query(take).bind(&id).bind(&budget).fetch_optional(&mut *transaction).await;
            let Some(row) = row.map_err(error::from_sqlx)? else { continue };
            is_settled = true;
            let number = |at: usize| row.try_get::<i64, _>(at).map_err(error::from_sqlx);
            let (amount, is_charged) = (number(0)?, number(1)? != 0);
            let (spent, held) = if is_charged { (actual - amount, 0) } else { (actual, amount) };
            let settle = "update agent_budget set spent = spent + $1, held = held - $2 where budget = $3";
            let settle = sqlx::query(settle).bind(spent).bind(held).bind(&budget);
            execute(&mut transaction, settle).await?;
        }
        transaction.commit().await.map_err(error::from_sqlx)?;
        Ok(is_settled)
    }

    pub(super) async fn do_budget(&self, budget: &str) -> Result<BudgetUse, StoreError> {
        read(&mut *self.connection().await?, budget).await
    }
}
