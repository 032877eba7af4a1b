//! The source of a call: the party on whose behalf tools are shown and called.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The party on whose behalf tools are shown and called: a user, a tenant, a request. The library passes the source on and does not read
/// it.
///
/// If the schema of a tool depends on the source, a call without a source uses the definition of the tool itself. This definition should
/// not offer more than the definition for any source.
///
/// ```
/// use agent::{ToolContext, tool::Source};
///
/// struct User { is_admin: bool }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = Source::new(User { is_admin: true }).with_label("user:7");     // the label goes into records
/// let cx = ToolContext::new().with_source(source);
/// assert!(cx.source().and_then(|source| source.get::<User>()).is_some_and(|user| user.is_admin));
/// assert_eq!(cx.source().and_then(Source::label), Some("user:7"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Source {
    value: Arc<dyn Any + Send + Sync>,
    label: Option<Arc<str>>,
}

impl Source {
    /// Creates a source with this value, without a label.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self { value: Arc::new(value), label: None }
    }

    /// Sets the label of the source in the [records](crate::store::InvocationRecord) of calls, such as `user:7` or the number of a job.
    pub fn with_label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Returns the value, if its type is `T`.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }

    /// Returns the address of the value. No other source has this address while a clone of this source is alive.
    #[cfg(feature = "runtime")]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.value).cast::<()>().addr()
    }

    /// Returns the label that records of calls contain for this source, if it has one.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// Leaves out the value, which may be secret and need not implement `Debug`.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}
