//! Pairs of begin and finish a second, beside bare SQL. See `run.sh`.

use std::error::Error;
use std::time::Instant;

use agent::store::{InvocationEnd, Store, InvocationRecord, SqlStore};
use agent::{ToolOutcome, ToolOutput, steps::{StepKey, StepKind}};
use serde_json::json;
use sqlx::any::AnyPoolOptions;
use sqlx::{Any, Executor, Pool};

const ROUNDS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn call(run: &str, ord: usize) -> InvocationRecord {
    let key = StepKey::new(run, 1, StepKind::Tool, ord as u32);
    InvocationRecord::new(
        key,
        "call_0123456789",
        "send_message",
        json!({"to": "ann@example.com", "text": "x".repeat(200)}),
    )
}

fn end() -> ToolOutcome {
    ToolOutput::text("y".repeat(100)).into()
}

/// So many pairs in so many tasks; gives the pairs a second.
async fn measure<F, Fut>(pairs: usize, tasks: usize, pair: F) -> Result<f64>
where
    F: Fn(usize) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let begun = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let pair = pair.clone();
            tokio::spawn(async move {
                for at in (task..pairs).step_by(tasks) {
                    pair(at).await?;
                }
                Ok::<_, Box<dyn Error + Send + Sync>>(())
            })
        })
        .collect();
    for task in running {
        task.await??;
    }
    Ok(pairs as f64 / begun.elapsed().as_secs_f64())
}

/// The same bytes by the same statements, without a store: what the database and its driver take.
async fn bare(pool: &Pool<Any>, run: &str, ord: usize) -> Result<()> {
    let new = call(run, ord);
    let id = new.key.to_string();
    sqlx::query(
        "insert into bare (id, run_id, turn, ord, session_id, tool, status, attempt, handle, call, outcome, created_at, ended_at)
         values ($1, $2, $3, $4, $5, $6, 'pending', 1, '', $7, '', $8, 0)",
    )
    .bind(&*id)
    .bind(run)
    .bind(1_i64)
    .bind(ord as i64)
    .bind("")
    .bind(&*new.tool)
    .bind(serde_json::to_string(&new)?)
    .bind(1_i64)
    .execute(pool)
    .await?;
    sqlx::query("update bare set status = $1, outcome = $2, ended_at = $3 where id = $4")
        .bind("completed")
        .bind(serde_json::to_string(&end())?)
        .bind(2_i64)
        .bind(&*id)
        .execute(pool)
        .await?;
    Ok(())
}

async fn both(name: &str, store: &SqlStore, pool: &Pool<Any>, pairs: usize, tasks: usize) -> Result<()> {
    pool.execute("drop table if exists bare").await?;
    pool.execute(
        "create table bare (id text not null primary key, run_id text not null, turn bigint not null, ord bigint not null,
         session_id text not null, tool text not null, status text not null, attempt bigint not null, handle text not null,
         call text not null, outcome text not null, created_at bigint not null, ended_at bigint not null)",
    )
    .await?;
    // The indexes that the records have.
    for index in [
        "create index bare_by_status on bare (status, created_at)",
        "create index bare_by_time on bare (created_at, turn, ord, id)",
        "create index bare_by_session on bare (session_id, created_at)",
        "create index bare_by_run on bare (run_id)",
    ] {
        pool.execute(index).await?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let run = format!("{name}-{tasks}-{round}-{}", std::process::id());
        let (pool, bare_run) = (pool.clone(), run.clone());
        let bare_pair = move |at| {
            let (pool, run) = (pool.clone(), bare_run.clone());
            async move { bare(&pool, &run, at).await }
        };
        theirs.push(measure(pairs, tasks, bare_pair).await?);
        let store = store.clone();
        let pair = move |at| {
            let (store, run) = (store.clone(), run.clone());
            async move {
                let new = call(&run, at);
                let key = new.key.clone();
                store.begin(new).await?;
                store.finish(&key, InvocationEnd::new(end(), 2)).await?;
                Ok(())
            }
        };
        ours.push(measure(pairs, tasks, pair).await?);
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    let (ours, theirs) = (middle(ours), middle(theirs));
    println!("{name:<10} {tasks:>5} {ours:>12.0} {theirs:>12.0} {:>7.2}", ours / theirs);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let pairs = std::env::args().nth(1).map_or(Ok(2000), |pairs| pairs.parse())?;
    println!("{:<10} {:>5} {:>12} {:>12} {:>7}", "database", "tasks", "records/s", "bare SQL/s", "ratio");
    sqlx::any::install_default_drivers();

    let folder = std::env::temp_dir().join(format!("agent-bench-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("bench.db");
    let store = SqlStore::sqlite(&file).await?;
    let bare_file = folder.join("bare.db");
    let settings = "pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = full;";
    let bare_url = format!("sqlite://{}?mode=rwc", bare_file.display());
    let connected = AnyPoolOptions::new()
        .max_connections(1)
        .after_connect(move |connection, _| {
            Box::pin(async move { connection.execute(sqlx::raw_sql(settings)).await.map(drop) })
        })
        .connect(&bare_url);
    let pool = connected.await?;
    for tasks in [1, 16] {
        both("sqlite", &store, &pool, pairs, tasks).await?;
    }
    pool.close().await;
    store.close().await;
    std::fs::remove_dir_all(&folder)?;

    match std::env::var("DATABASE_URL") {
        Ok(url) if url.starts_with("postgres") => {
            let store = SqlStore::connect(&url).await?;
            let pool = AnyPoolOptions::new().max_connections(16).connect(&url).await?;
            for tasks in [1, 16] {
                both("postgres", &store, &pool, pairs, tasks).await?;
            }
            pool.execute("drop table bare").await?;
        }
        _ => println!("skipped: Postgres, since DATABASE_URL names none"),
    }
    Ok(())
}
