//! What can go wrong with a store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a store did not do what it was asked. It names neither statements nor values.
///
/// ```
/// use agent::store::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Busy, "somebody else writes");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "the store is busy: somebody else writes");
/// ```
///
/// A store of one's own has words for what went wrong beneath it:
///
/// ```
/// use agent::store::{StoreError, StoreErrorKind};
/// use std::error::Error;
///
/// let broken = serde_json::from_str::<u64>("{").unwrap_err();
/// let error = StoreError::corrupt("entry 7 of session `ann`", broken);
/// assert_eq!((error.kind(), error.message()), (StoreErrorKind::Corrupt, "entry 7 of session `ann`"));
/// assert!(error.source().is_some());
///
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let error = StoreError::new(StoreErrorKind::Unavailable, "the disk of the host").with_source(refused);
/// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("connection refused"));
///
/// let error = StoreError::conflict("ann", 7);
/// assert!(error.is_conflict() && !error.is_transient());
/// ```
#[derive(Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

crate::error_text::debug_is_the_sentence!(StoreError);

/// What kind of trouble it is.
///
/// ```
/// use agent::store::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Busy, "the database is locked");
/// assert_eq!((error.kind().as_str(), error.is_transient()), ("busy", true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It cannot be reached, or the connection was lost.
    Unavailable,
    /// Somebody else holds it: a lock, a full pool.
    Busy,
    /// It can be read only.
    ReadOnly,
    /// There is no room.
    Full,
    /// Somebody else was there first: a session went on without this writer.
    Conflict,
    /// What is stored cannot be read, or is not what this version knows.
    Corrupt,
    /// It did not answer in time. Whether it did what was asked is not known.
    Timeout,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Timeout => "timeout",
            Self::Other => "other",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Unavailable => "the store cannot be reached",
            Self::Busy => "the store is busy",
            Self::ReadOnly => "the store is read-only",
            Self::Full => "the store is full",
            Self::Conflict => "somebody else went on with the session",
            Self::Corrupt => "the store holds what cannot be read",
            Self::Timeout => "the store did not answer in time",
            Self::Other => "the store failed",
        }
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl StoreError {
    /// The same, with the file that it is about.
    #[cfg(feature = "store-sql")]
    pub(super) fn of_file(mut self, path: &str) -> Self {
        self.message = format!("{path}: {}", self.message);
        self
    }

    /// Trouble of this kind; the message says more, without values.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the error that it came from: its [source](Error::source).
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// A conflict: the session is not at the entry where its writer left it.
    pub fn conflict(session: &str, expected: u64) -> Self {
        Self::new(
            StoreErrorKind::Conflict,
            format!("session `{session}` is not at entry {expected} any more"),
        )
    }

    /// What is stored cannot be read: `what` names it, the source says why.
    pub fn corrupt(what: &str, source: impl Error + Send + Sync + 'static) -> Self {
        Self::new(StoreErrorKind::Corrupt, what).with_source(source)
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// What more is known than the kind.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same may go well a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Busy | StoreErrorKind::Timeout)
    }

    /// Whether somebody else went on with the session: open it again to go on from there.
    pub fn is_conflict(&self) -> bool {
        self.kind == StoreErrorKind::Conflict
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.words())?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
