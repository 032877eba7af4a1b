//! Runs only the judge, the pass that finds every mistake in arguments, so that [`testing`](crate::testing) can compare its result with
//! that of parsing.

use super::document::Document;
use super::issue::Issue;
use super::judge::diagnose;
use super::plan::Plan;

/// Runs only the judge, the pass that finds every mistake in arguments. Returns the issues, if there are any, as the error.
pub(crate) fn diagnosis(plan: &Plan, text: &str) -> Result<(), Vec<Issue>> {
    let text = if text.trim_start().is_empty() { "{}" } else { text };
    diagnose(plan.graph(), text).map(|_| ()).map_err(|refusal| refusal.issues)
}

/// Returns the path of a key that occurs twice in one object of this JSON, or `None` if no key
/// does.
pub(crate) fn repeated_key(text: &str) -> Option<String> {
    Document::parse(text).ok()?.root.repeated_key()
}
