//! The tool whose body runs on this thread.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// A body is polled by the thread that this belongs to, so what it begins there is its own.
    static TOOL: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Returns the name of the tool whose body runs here.
pub(crate) fn tool() -> Option<Arc<str>> {
    TOOL.with_borrow(Clone::clone)
}

/// Sets the tool while a part of its body runs.
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
