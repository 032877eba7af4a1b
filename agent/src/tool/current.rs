//! The tool whose body runs on this thread.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The tool whose body this thread is polling, so that work that starts during the poll is known to be of this tool.
    static TOOL: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Returns the name of the tool whose body runs on this thread.
pub(crate) fn tool() -> Option<Arc<str>> {
    TOOL.with_borrow(Clone::clone)
}

/// Sets the tool of this thread while its body is polled. Dropping the value restores the previous tool.
pub(super) struct Running(Option<Arc<str>>);

impl Running {
    pub(super) fn new(tool: &Arc<str>) -> Self {
        Self(TOOL.replace(Some(tool.clone())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        TOOL.set(self.0.take());
    }
}
