//! The loader of a caller's tools.

use super::caller::{Caller, RequestHead};
use crate::tool::{BoxFuture, registry::Registry};
use std::error::Error;

/// Determines the tools of a caller, for one request. A closure implements it:
///
/// ```
/// use agent::mcp::{McpServer, Caller, RequestHead, ToolLoader as _};
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
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let (all, few) = (Registry::new(tools![clock, wipe])?, Registry::new(tools![clock])?);
/// let by_scope = move |caller: &Caller| -> Result<Registry, Box<dyn std::error::Error + Send + Sync>> {
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
    /// Fails if the tools cannot be loaded. The client learns that the server is unavailable. The text of the error is logged.
    fn load<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a RequestHead,
    ) -> BoxFuture<'a, Result<Registry, Box<dyn Error + Send + Sync>>>;
}

impl<F> ToolLoader for F
where
    F: Fn(&Caller) -> Result<Registry, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
{
    fn load<'a>(
        &'a self,
        caller: &'a Caller,
        _request: &'a RequestHead,
    ) -> BoxFuture<'a, Result<Registry, Box<dyn Error + Send + Sync>>> {
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
    ) -> BoxFuture<'a, Result<Registry, Box<dyn Error + Send + Sync>>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}
