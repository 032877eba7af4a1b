//! A store in an SQLite or Postgres database.

mod budgets;
mod error;
mod invocations;
mod schema;
mod sessions;
mod store;
mod text;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Any, AnyConnection, ConnectOptions as _, Connection as _, Executor as _, Pool, Transaction};

use super::{StoreError, StoreErrorKind};
use crate::private_files;
use crate::tool::BoxFuture;

/// A store in an SQLite file or a Postgres database (feature `store-sql`). Clones share one connection pool.
///
/// The store is built on sqlx, which needs Rust 1.94. A build can contain only one version of `libsqlite3-sys`, the crate that
/// links SQLite. An application that also uses another crate for SQLite, such as `rusqlite`, must use a version of that crate that depends
/// on the same version of `libsqlite3-sys`, or implement its own store.
///
/// The tables (`agent_invocation`, `agent_session_entry`, `agent_steering`, `agent_steering_taken`, `agent_budget`, `agent_budget_hold`,
/// `agent_schema`) are created and migrated when the store is opened. SQLite runs in WAL mode with full sync, so stored data survives a
/// power failure.
///
/// ```
/// use agent::store::{SqlStore, Store as _};
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

/// Maximum time that a caller waits for a connection. A statement waits for a lock for the same time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time in which the first connection must be made. A database that sleeps when it is idle needs several seconds to start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of connections to Postgres. A store in SQLite has one connection, because SQLite has only one writer.
const CONNECTIONS: u32 = 16;

impl SqlStore {
    /// Opens an SQLite file, and creates it if it does not exist.
    ///
    /// Only the owner can access a new file (mode 0600) and the files that SQLite adds to it (`-wal`, `-shm`). An existing file keeps its
    /// permissions, and the added files get the same permissions.
    ///
    /// # Errors
    /// Returns an error if the path is not Unicode text, or if the file cannot be opened, created or migrated.
    pub async fn sqlite(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = std::path::absolute(path)
            .map_err(|error| error::from_io("the path cannot be made absolute", error))?;
        let Some(path) = path.to_str() else {
            return Err(StoreError::new(StoreErrorKind::Other, "the path is not Unicode text"));
        };
        let connected = Self::connect(&format!("sqlite://{}?mode=rwc", encode_path(path))).await;
        connected.map_err(|error| error.with_path(path))
    }

    /// Opens a database by its URL: `postgres://…`, or `sqlite://…` with the options of SQLite URIs (`?mode=ro`).
    ///
    /// ```
    /// use agent::store::{SqlStore, Store as _};
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
    /// Returns an error if the URL is neither of Postgres nor of SQLite, if the database is in memory, or if the database cannot be
    /// reached within 30 s, created or migrated. The URL appears in no error.
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
            let message = "a database in memory ends with its connection; use a `MemoryStore` instead";
            return Err(StoreError::new(StoreErrorKind::Other, message));
        }
        // Statements are not logged, because they contain values of the application.
        let options: AnyConnectOptions = url.parse().map_err(error::from_sqlx)?;
        let options = options.disable_statement_logging();
        if !is_postgres && url.contains("mode=rwc") {
            create_file(url)?;
        }
        let settings = if is_postgres { POSTGRES } else { SQLITE };
        // A pool that fails reports only that it has no connection. The error of a single connection has the reason.
        let first = async {
            let mut first = AnyConnection::connect_with(&options).await?;
            first.execute(sqlx::raw_sql(settings)).await?;
            first.close().await
        };
        let late = |_| StoreError::new(StoreErrorKind::Timeout, "no connection was made within 30 s");
        tokio::time::timeout(CONNECT_TIMEOUT, first).await.map_err(late)?.map_err(error::from_sqlx)?;
        let pool = AnyPoolOptions::new()
            .max_connections(if is_postgres { CONNECTIONS } else { 1 })
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(move |connection, _| {
                Box::pin(async move { connection.execute(sqlx::raw_sql(settings)).await.map(drop) })
            });
        // The future is boxed as `Send`, because the compiler does not infer `Send` when a store is opened in a task.
        let connecting: BoxFuture<'_, Result<Pool<Any>, sqlx::Error>> = Box::pin(pool.connect_with(options));
        let pool = connecting.await.map_err(error::from_sqlx)?;
        let store = Self { pool, is_postgres };
        schema::migrate(&store).await?;
        Ok(store)
    }

    /// Closes all connections, and waits until they are closed. After that, every use of the store returns an error.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn begin_transaction(&self) -> Result<Transaction<'static, Any>, StoreError> {
        // An SQLite transaction that reads first and then writes would fail on a lock instead of waiting for it. An immediate transaction
        // waits for the lock at its begin.
        let begin = if self.is_postgres { "begin" } else { "begin immediate" };
        self.pool.begin_with(begin).await.map_err(error::from_sqlx)
    }

    async fn connection(&self) -> Result<sqlx::pool::PoolConnection<Any>, StoreError> {
        self.pool.acquire().await.map_err(error::from_sqlx)
    }
}

/// Creates the file of a new database, which only its owner can access. SQLite itself would create the file with the permissions of the
/// umask. The files that SQLite adds (`-wal`, `-shm`) get the permissions of this file.
fn create_file(url: &str) -> Result<(), StoreError> {
    let options: SqliteConnectOptions = url.parse().map_err(error::from_sqlx)?;
    match private_files::create(options.get_filename()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error::from_io("the file of the database cannot be created", error))
        }
        _ => Ok(()),
    }
}

/// The statements that set up each connection. A file that is opened read-only keeps its journal mode.
const SQLITE: &str = "pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = full;";
const POSTGRES: &str =
    "set lock_timeout = '5s'; set statement_timeout = '30s'; set client_min_messages = 'warning';";

fn encode_path(path: &str) -> String {
    use fmt::Write as _;
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Omits the address, because it may contain a password.
impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = if self.is_postgres { "postgres" } else { "sqlite" };
        f.debug_struct("SqlStore").field("database", &database).finish_non_exhaustive()
    }
}
