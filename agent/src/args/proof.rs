//! A second verdict on arguments, which [`testing`](crate::testing) compares with the result of parsing.

use super::document::Document;
use super::issue::Issue;
use super::judge::diagnose;
use super::plan::Plan;

/// Checks arguments against the plan, without reading them into their Rust type. Returns the issues as the error.
pub(crate) fn diagnosis(plan: &Plan, text: &str) -> Result<(), Vec<Issue>> {
    let text = if text.trim_start().is_empty() { "{}" } else { text };
    diagnose(plan.graph(), text).map(|_| ()).map_err(|refusal| refusal.issues)
}

pub(crate) fn repeated_key(text: &str) -> Option<String> {
    Document::parse(text).ok()?.root.repeated_key()
}
