//! The diagnosis by itself, so that [`testing`](crate::testing) can hold the typed pass against it.

use super::diagnose::{Document, diagnose};
use super::issue::Issue;
use super::plan::Plan;

/// Does the diagnosis, asked alone, have anything against the text? Its issues, if so.
pub(crate) fn diagnosis(plan: &Plan, text: &str) -> Result<(), Vec<Issue>> {
    let text = if text.trim_start().is_empty() { "{}" } else { text };
    diagnose(plan.graph(), text).map(|_| ()).map_err(|refusal| refusal.issues)
}

/// Is the text JSON in which some object has a key twice?
pub(crate) fn repeats_a_key(text: &str) -> bool {
    Document::parse(text).is_ok_and(|document| document.root.repeated_key().is_some())
}
