//! The diagnosis by itself, so that [`testing`](crate::testing) can hold the typed pass against it.

use super::diagnose::{Document, diagnose};
use super::issue::Issue;
use super::plan::Plan;

/// Does the diagnosis, asked alone, have anything against the text? Its issues, if so.
pub(crate) fn diagnosis(plan: &Plan, text: &str) -> Result<(), Vec<Issue>> {
    let text = if text.trim_start().is_empty() { "{}" } else { text };
    diagnose(plan.graph(), text).map(|_| ()).map_err(|refusal| refusal.issues)
}

/// A key that some object of this JSON has twice, as a pointer.
pub(crate) fn repeated_key(text: &str) -> Option<String> {
    Document::parse(text).ok()?.root.repeated_key()
}
