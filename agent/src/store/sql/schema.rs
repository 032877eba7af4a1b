//! The tables, and their migration from earlier versions.

use sqlx::Row as _;

use super::{SqlStore, error};
use crate::store::{SessionEntry, StoreError, StoreErrorKind};

/// The statements that each version of the tables adds, in SQL that SQLite and Postgres share. The version is stored in `agent_schema`,
/// because sqlx's own table of migrations belongs to the application.
const VERSIONS: [&[&str]; 3] = [&FIRST, &BUDGETS, &TIMES];

const TIMES: [&str; 2] = [
    "alter table agent_session_entry add column written_at bigint not null default 0",
    "create index agent_session_entry_by_time on agent_session_entry (written_at desc, session_id)",
];

const WITHOUT_TIMES: &str = "select session_id, seq, entry from agent_session_entry entries
    where written_at = 0 and not exists (select 1 from agent_session_entry later
    where later.session_id = entries.session_id and later.seq > entries.seq)";

const BUDGETS: [&str; 3] = [
    "create table agent_budget (
        budget text not null primary key,
        spent bigint not null,
        held bigint not null
    )",
    "create table agent_budget_hold (
        id text not null,
        budget text not null,
        amount bigint not null,
        until_at bigint not null,
        charged bigint not null,
        primary key (id, budget)
    )",
    "create index agent_budget_hold_by_time on agent_budget_hold (budget, charged, until_at)",
];

const FIRST: [&str; 8] = [
    "create table agent_invocation (
        id text not null primary key,
        run_id text not null,
        turn bigint not null,
        ord bigint not null,
        session_id text not null,
        tool text not null,
        status text not null,
        attempt bigint not null,
        handle text not null,
        call text not null,
        outcome text not null,
        created_at bigint not null,
        ended_at bigint not null
    )",
    "create index agent_invocation_by_status on agent_invocation (status, created_at)",
    "create index agent_invocation_by_time on agent_invocation (created_at, turn, ord, id)",
    "create index agent_invocation_by_session on agent_invocation (session_id, created_at)",
    "create index agent_invocation_by_run on agent_invocation (run_id)",
    "create table agent_session_entry (
        session_id text not null,
        seq bigint not null,
        entry text not null,
        primary key (session_id, seq)
    )",
    "create table agent_steering (
        session_id text not null,
        seq bigint not null,
        message_id text not null,
        message text not null,
        taken_by text not null,
        primary key (session_id, seq),
        unique (session_id, message_id)
    )",
    "create table agent_steering_taken (
        session_id text not null,
        taken_by text not null,
        primary key (session_id, taken_by)
    )",
];

/// Takes an advisory lock. Its number is arbitrary.
const LOCK: &str = "select pg_advisory_xact_lock(4713590021)";

pub(super) async fn migrate(store: &SqlStore) -> Result<(), StoreError> {
    if let Ok(Some(version)) = read_version(&mut *store.connection().await?).await {
        check_version(version)?;
        if version == VERSIONS.len() {
            return Ok(());
        }
    }
    let mut transaction = store.begin_transaction().await?;
    if store.is_postgres {
        // Without the lock, two processes that create the tables at the same time would fail.
        sqlx::query(LOCK).execute(&mut *transaction).await.map_err(error::from_sqlx)?;
    }
    sqlx::query("create table if not exists agent_schema (version bigint not null)")
        .execute(&mut *transaction)
        .await
        .map_err(error::from_sqlx)?;
    let found = read_version(&mut transaction).await.map_err(error::from_sqlx)?;
    let from = found.unwrap_or_default();
    check_version(from)?;
    for version in VERSIONS.get(from..).unwrap_or_default() {
        for statement in *version {
            sqlx::query(*statement).execute(&mut *transaction).await.map_err(error::from_sqlx)?;
        }
    }
    if (1..VERSIONS.len()).contains(&from) {
        fill_times(&mut transaction).await?;
    }
    let statement = match found {
        None => "insert into agent_schema (version) values ($1)",
        Some(_) => "update agent_schema set version = $1",
    };
    let now = i64::try_from(VERSIONS.len()).unwrap_or_default();
    sqlx::query(statement).bind(now).execute(&mut *transaction).await.map_err(error::from_sqlx)?;
    transaction.commit().await.map_err(error::from_sqlx)
}

/// Sets the time of the last entry of each session, because sessions are listed by this time. Tables before version 3 contain no times.
async fn fill_times(connection: &mut sqlx::AnyConnection) -> Result<(), StoreError> {
    let rows = sqlx::query(WITHOUT_TIMES).fetch_all(&mut *connection).await.map_err(error::from_sqlx)?;
    for row in &rows {
        let (session, seq) = (row.try_get::<String, _>(0), row.try_get::<i64, _>(1));
        let entry = row.try_get::<String, _>(2).map_err(error::from_sqlx)?;
        // An entry that cannot be read gets the time 0. The error is reported when the session is opened.
        let at = serde_json::from_str::<SessionEntry>(&entry).map_or(0, |entry| entry.at);
        sqlx::query("update agent_session_entry set written_at = $1 where session_id = $2 and seq = $3")
            .bind(at)
            .bind(session.map_err(error::from_sqlx)?)
            .bind(seq.map_err(error::from_sqlx)?)
            .execute(&mut *connection)
            .await
            .map_err(error::from_sqlx)?;
    }
    Ok(())
}

async fn read_version(connection: &mut sqlx::AnyConnection) -> Result<Option<usize>, sqlx::Error> {
    let row = sqlx::query("select version from agent_schema").fetch_optional(connection).await?;
    let version = row.map(|row| row.try_get::<i64, _>(0)).transpose()?;
    Ok(version.map(|version| usize::try_from(version).unwrap_or(usize::MAX)))
}

fn check_version(version: usize) -> Result<(), StoreError> {
    if version <= VERSIONS.len() {
        return Ok(());
    }
    let message =
        format!("the tables have version {version}; this library knows versions up to {}", VERSIONS.len());
    Err(StoreError::new(StoreErrorKind::Corrupt, message))
}
