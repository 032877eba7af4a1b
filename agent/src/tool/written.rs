//! A cache of the JSON text that each provider's protocol writes for a tool definition.

#![allow(dead_code, reason = "only the protocols of providers write definitions")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::schema::{Dialect, Size};

#[derive(Clone)]
pub(super) struct WrittenTool {
    /// The name of the protocol's JSON form for tools, such as `anthropic`.
    pub(super) form: &'static str,
    /// The dialect that was requested. It differs from `dialect` if the schema does not fit the requested dialect.
    pub(super) asked: Dialect,
    pub(super) text: Arc<str>,
    pub(super) dialect: Dialect,
    /// The size of the tool's schema, for the limits of one request. Zero unless `asked` is Anthropic's strict dialect.
    pub(super) size: Size,
}

/// The cached texts of one definition, one for each `form` and requested dialect.
#[derive(Default)]
pub(super) struct WrittenTools(Mutex<Vec<WrittenTool>>);

impl WrittenTools {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<WrittenTool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
