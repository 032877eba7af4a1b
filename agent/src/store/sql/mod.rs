//! A store in a database: SQLite or Postgres.

mod error;
mod invocations;
mod schema;
mod sessions;

use std::fmt;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{Any, AnyConnection, ConnectOptions as _, Connection as _, Executor as _, Pool, Transaction};

use super::{StoreError, StoreErrorKind};
use crate::BoxFuture;

/// A store in a database: a file of SQLite, or Postgres. Clones are one store, with one pool of connections.
///
/// Feature `store-sql`; it stands on sqlx, which needs Rust 1.94. One build can have only one crate that links SQLite: an
/// application that uses another one (`rusqlite`, for example) has to take a version of it with the same
/// `libsqlite3-sys`, or bring a store of its own.
///
/// The tables are made, and brought up to date, when the store is opened: `agent_invocation`, `agent_session_entry`,
/// `agent_steering`, `agent_steering_taken`, `agent_schema`. SQLite runs in WAL mode with full sync: what was stored
/// survives a power cut.
///
/// ```
/// use agent::store::{SessionStore as _, SqlStore};
/// use agent::{Assistant, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("agent-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("agent.db");
/// let store = SqlStore::sqlite(&path).await?;
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).store(store.clone()).session("ann").await?;
/// assistant.prompt("Hi").await?;
/// assert_eq!(store.load("ann", 0, 100).await?.len(), 4);      // the run's begin, two messages, its end
/// # store.close().await;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SqlStore {
    pool: Pool<Any>,
    is_postgres: bool,
}

/// How long a statement waits for a lock, and a caller for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections to Postgres. SQLite has one: it has one writer.
const CONNECTIONS: u32 = 16;

impl SqlStore {
    /// A file of SQLite; made when there is none.
    ///
    /// # Errors
    /// The file cannot be opened, made or brought up to date.
    pub async fn sqlite(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path =
            std::path::absolute(path).map_err(|error| error::unusable("there is no such place", error))?;
        let Some(path) = path.to_str() else {
            return Err(StoreError::new(StoreErrorKind::Other, "the path is no Unicode text"));
        };
        let connected = Self::connect(&format!("sqlite://{}?mode=rwc", encoded(path))).await;
        connected.map_err(|error| error.of_file(path))
    }

    /// A database by its URL: `postgres://…`, or `sqlite://…` with the options of SQLite's URIs (`?mode=ro`).
    ///
    /// ```
    /// use agent::store::{SessionStore as _, SqlStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = std::env::temp_dir().join(format!("agent-connect-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("agent.db");
    /// // On Postgres: `postgres://user:password@host/database`.
    /// let store = SqlStore::connect(&format!("sqlite://{}?mode=rwc", path.display())).await?;
    /// assert!(store.load("ann", 0, 100).await?.is_empty());
    /// store.close().await;
    /// assert!(store.load("ann", 0, 100).await.is_err());
    ///
    /// let error = SqlStore::connect("mysql://user:hunter2@host/database").await.unwrap_err();
    /// assert_eq!(error.message(), "the URL is neither of Postgres nor of SQLite");
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The database cannot be reached or brought up to date. The URL is in no error.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
        if !is_postgres && !url.starts_with("sqlite:") {
            return Err(StoreError::new(
                StoreErrorKind::Other,
                "the URL is neither of Postgres nor of SQLite",
            ));
        }
        if url.contains(":memory:") || url.contains("mode=memory") {
            let message = "a database in memory goes with its connection; take a `MemoryStore`";
            return Err(StoreError::new(StoreErrorKind::Other, message));
        }
        // Statements are not logged: their values are the application's.
        let options: AnyConnectOptions = url.parse().map_err(error::of)?;
        let options = options.disable_statement_logging();
        let settings = if is_postgres { POSTGRES } else { SQLITE };
        // A pool tries again and says at last that it has no connection; one alone says why.
        let mut first = AnyConnection::connect_with(&options).await.map_err(error::of)?;
        first.execute(sqlx::raw_sql(settings)).await.map_err(error::of)?;
        first.close().await.map_err(error::of)?;
        let pool = AnyPoolOptions::new()
            .max_connections(if is_postgres { CONNECTIONS } else { 1 })
            .acquire_timeout(PATIENCE)
            .after_connect(move |connection, _| {
                Box::pin(async move { connection.execute(sqlx::raw_sql(settings)).await.map(drop) })
            });
        // Said that it is `Send`, which the compiler does not see by itself where a store is opened in a task.
        let connecting: BoxFuture<'_, Result<Pool<Any>, sqlx::Error>> = Box::pin(pool.connect_with(options));
        let pool = connecting.await.map_err(error::of)?;
        let store = Self { pool, is_postgres };
        schema::migrate(&store).await?;
        Ok(store)
    }

    /// Closes all connections and waits until that is done; whoever has the store gets errors from then on.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn begin_transaction(&self) -> Result<Transaction<'static, Any>, StoreError> {
        // Who begins by reading and then writes would find a lock that nobody waits for.
        let begin = if self.is_postgres { "begin" } else { "begin immediate" };
        self.pool.begin_with(begin).await.map_err(error::of)
    }

    async fn connection(&self) -> Result<sqlx::pool::PoolConnection<Any>, StoreError> {
        self.pool.acquire().await.map_err(error::of)
    }
}

/// What holds for each connection. A file that is opened for reading keeps the journal it has.
const SQLITE: &str = "pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = full;";
const POSTGRES: &str =
    "set lock_timeout = '5s'; set statement_timeout = '30s'; set client_min_messages = 'warning';";

/// A path as a part of a URL.
fn encoded(path: &str) -> String {
    use fmt::Write as _;
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A number as the database has it.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Without the address: it may hold a password.
impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = if self.is_postgres { "postgres" } else { "sqlite" };
        f.debug_struct("SqlStore").field("database", &database).finish_non_exhaustive()
    }
}
