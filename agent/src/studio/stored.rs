//! The sessions of the assistant's store, one page at a time.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::conversations::{STORE_TIME, title_of};
use super::response::Rejection;
use super::shared::StudioShared;
use crate::message::Message;
use crate::runtime::Assistant;
use crate::store::{EntryKind, SessionSummary, StoreErrorKind};

/// The sessions of one page.
const PAGE: usize = 50;
/// The first entries of a session, among which its first message is.
const FIRST_ENTRIES: usize = 3;

impl StudioShared {
    /// Returns the sessions whose names contain a text, after a name. `cannot_list` says why there are none if the store cannot list them.
    pub(super) async fn stored_sessions(&self, text: &str, after: Option<&str>) -> Result<Value, Rejection> {
        let page = timeout(STORE_TIME, page(&self.template, text, after)).await;
        page.map_err(|_| Rejection::store("The store does not answer."))?
    }
}

async fn page(assistant: &Assistant, text: &str, after: Option<&str>) -> Result<Value, Rejection> {
    let nothing = |reason: &str| json!({"sessions": [], "next": null, "cannot_list": reason});
    let mut listed = match assistant.stored_sessions(text, after, PAGE + 1).await {
        None => {
            return Ok(nothing("The assistant has no store, so that conversations end with the program."));
        }
        Some(Err(error)) if error.kind() == StoreErrorKind::Unsupported => {
            return Ok(nothing("The store cannot list its sessions. Open one by its name."));
        }
        Some(listed) => listed.map_err(|error| Rejection::store(error.to_string()))?,
    };
    let has_more = listed.len() > PAGE;
    listed.truncate(PAGE);
    let next = listed.last().filter(|_| has_more).map(|last| last.session.clone());
    let titles = join_all(listed.iter().map(|session| title(assistant, session))).await;
    let sessions = listed.iter().zip(titles).map(|(session, title)| {
        json!({"id": session.session, "entries": session.entries, "at": session.at, "title": title})
    });
    Ok(json!({"sessions": sessions.collect::<Vec<_>>(), "next": next, "cannot_list": null}))
}

/// Returns the first message of a session. A session that cannot be read is listed without one.
async fn title(assistant: &Assistant, session: &SessionSummary) -> Option<String> {
    let first = assistant.first_entries(&session.session, FIRST_ENTRIES).await;
    first.iter().find_map(|(_, entry)| match &entry.kind {
        EntryKind::Message { message, .. } if matches!(**message, Message::User(_)) => {
            Some(title_of(message))
        }
        _ => None,
    })
}
