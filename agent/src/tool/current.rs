//! The tool that runs on this thread.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The tool whose future this thread is polling. Work that starts during the poll belongs to this tool.
    static TOOL: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

pub(crate) fn tool() -> Option<Arc<str>> {
    TOOL.with_borrow(Clone::clone)
}

/// A guard that sets [`TOOL`] while this thread polls the future of a tool. Dropping the guard restores the previous tool.
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
