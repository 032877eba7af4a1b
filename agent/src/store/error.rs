//! Errors of stores.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The error of a store. The error contains no statements and no stored values.
///
/// ```
/// use agent::store::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Busy, "another process writes");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "the store is busy: another process writes");
/// ```
///
/// An implementation of your own can map its errors to these kinds:
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

/// The kind of a [`StoreError`].
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
    /// The store cannot be reached, or the connection was lost.
    Unavailable,
    /// The store is in use: a lock is held, or the connection pool is exhausted.
    Busy,
    /// The store is read-only.
    ReadOnly,
    /// The store has no room left.
    Full,
    /// Another writer continued the session first.
    Conflict,
    /// The stored data cannot be read, or this version does not know its format.
    Corrupt,
    /// The store did not respond in time. It is unknown whether the request took effect.
    Timeout,
    /// The store does not support the operation.
    Unsupported,
    /// Any other error.
    Other,
}

impl StoreErrorKind {
    /// Returns the kind as a word, for example `read_only`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Timeout => "timeout",
            Self::Unsupported => "unsupported",
            Self::Other => "other",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Unavailable => "the store cannot be reached",
            Self::Busy => "the store is busy",
            Self::ReadOnly => "the store is read-only",
            Self::Full => "the store is full",
            Self::Conflict => "another writer continued the session",
            Self::Corrupt => "stored data cannot be read",
            Self::Timeout => "the store did not answer in time",
            Self::Unsupported => "the store cannot do this",
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
    #[cfg(feature = "store-sql")]
    pub(super) fn with_path(mut self, path: &str) -> Self {
        self.message = format!("{path}: {}", self.message);
        self
    }

    /// Creates an error of this kind. The message gives details and must not contain stored values.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Sets the underlying error, which [`source`](Error::source) returns.
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Creates a conflict: the last entry of the session is no longer the entry `expected`.
    pub fn conflict(session: &str, expected: u64) -> Self {
        Self::new(StoreErrorKind::Conflict, format!("session `{session}` is no longer at entry {expected}"))
    }

    /// Creates an error for stored data that cannot be read. `what` names the data, and `source` is the reason.
    pub fn corrupt(what: &str, source: impl Error + Send + Sync + 'static) -> Self {
        Self::new(StoreErrorKind::Corrupt, what).with_source(source)
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the details of the error, without the kind.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Busy | StoreErrorKind::Timeout)
    }

    /// Returns whether another writer continued the session. Open the session again to continue from there.
    pub fn is_conflict(&self) -> bool {
        self.kind == StoreErrorKind::Conflict
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.description())?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
