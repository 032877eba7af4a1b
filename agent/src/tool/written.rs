//! The texts of a definition in requests, which the definition keeps.

#![allow(dead_code, reason = "only the protocols of providers write definitions")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::schema::{Dialect, Size};

/// A definition as a protocol writes it in requests.
#[derive(Clone)]
pub(super) struct WrittenTool {
    /// The name of the form in which the protocol writes tools. `asked` is the dialect that was requested.
    pub(super) form: &'static str,
    pub(super) asked: Dialect,
    pub(super) text: Arc<str>,
    /// The actual dialect of the text. `size` is the part of a request's budget that the tool needs.
    pub(super) dialect: Dialect,
    pub(super) size: Size,
}

/// The texts of a definition, one for each form and dialect that was requested.
#[derive(Default)]
pub(super) struct WrittenTools(Mutex<Vec<WrittenTool>>);

impl WrittenTools {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<WrittenTool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
