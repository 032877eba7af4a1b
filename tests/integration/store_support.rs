//! What the tests of stores share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use agent::store::SqlStore;

/// A folder that goes with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("agent-store-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The Postgres of `DATABASE_URL`; `.ci/postgres` starts one.
pub(crate) async fn postgres() -> Option<SqlStore> {
    let url = std::env::var("DATABASE_URL").ok().filter(|url| url.starts_with("postgres"));
    let Some(url) = url else {
        println!("SKIPPED: no Postgres, since DATABASE_URL names none (`.ci/postgres COMMAND` starts one)");
        return None;
    };
    Some(SqlStore::connect(&url).await.unwrap())
}

/// Unlike any other, so that a database can be used again.
pub(crate) fn unique(name: &str) -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{name}-{}-{}", std::process::id(), since.as_nanos())
}
