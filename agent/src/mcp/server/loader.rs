//! The loader of a caller's tools.

use super::caller::{Caller, RequestHead};
use crate::tool::{BoxFuture, registry::Registry};
use std::error::Error;

/// Determines the tools of a caller, for one request. A closure implements it:
///
/// ```
/// use agent::mcp::{McpServer, Caller, LoadError, RequestHead, ToolLoader as _};
/// use agent::{Registry, tool, tools};
///
/// /// Says what time it is.
/// #[tool]
/// fn clock() -> String {
///     "noon".to_owned()
/// }
///
/// /// Deletes everything.
/// #[tool]
/// fn wipe() {}
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (all, few) = (Registry::new(tools![clock, wipe])?, Registry::new(tools![clock])?);
/// let by_scope = move |caller: &Caller| -> Result<Registry, LoadError> {
///     Ok(if caller.has_scope("admin") { all.clone() } else { few.clone() })
/// };
/// // The server does this for each request:
/// let (ann, head) = (Caller::new("ann"), RequestHead::default());
/// assert_eq!(by_scope.load(&ann, &head).await?.len(), 1);
/// assert_eq!(by_scope.load(&ann.with_scope("admin"), &head).await?.len(), 2);
/// let server = McpServer::with_loader(by_scope);
/// # Ok(()) }
/// ```
///
/// The result must depend only on the caller, the head of the request and stored data, never on earlier requests, because the
/// protocol has no sessions. If you can, return clones of one [`Registry`] for equal sets: the list for clients is then made only once.
pub trait ToolLoader: Send + Sync + 'static {
    /// Returns the tools of this caller.
    ///
    /// # Errors
    /// Fails if the tools cannot be loaded. The client learns that the server is unavailable. The reason is logged.
    fn load<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a RequestHead,
    ) -> BoxFuture<'a, Result<Registry, LoadError>>;
}

impl<F> ToolLoader for F
where
    F: Fn(&Caller) -> Result<Registry, LoadError> + Send + Sync + 'static,
{
    fn load<'a>(
        &'a self,
        caller: &'a Caller,
        _request: &'a RequestHead,
    ) -> BoxFuture<'a, Result<Registry, LoadError>> {
        Box::pin(std::future::ready(self(caller)))
    }
}

/// Loads the same tools for every caller.
pub(super) struct FixedLoader(pub(super) Registry);

impl ToolLoader for FixedLoader {
    fn load<'a>(
        &'a self,
        _caller: &'a Caller,
        _request: &'a RequestHead,
    ) -> BoxFuture<'a, Result<Registry, LoadError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// An error of a loader. Its text is logged. Clients do not see it.
///
/// ```
/// use agent::mcp::{McpServer, Caller, LoadError};
///
/// let server = McpServer::with_loader(|caller: &Caller| Err(LoadError::new(format!("{} is unknown", caller.id()))));
/// assert_eq!(LoadError::new("no database").to_string(), "the tools cannot be loaded: no database");
/// ```
#[derive(thiserror::Error)]
#[error("the tools cannot be loaded: {0}")]
pub struct LoadError(#[source] Box<dyn Error + Send + Sync>);

crate::error_text::debug_is_the_sentence!(LoadError);

impl LoadError {
    /// Creates the error from its reason: a text or another error.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl From<crate::tool::problem::RegistryError> for LoadError {
    fn from(error: crate::tool::problem::RegistryError) -> Self {
        Self::new(error)
    }
}
