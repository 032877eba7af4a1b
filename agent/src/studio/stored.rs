//! The list of the sessions in the assistant's store, read in pages.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::conversations::{STORE_TIME, title_of};
use super::response::Rejection;
use super::shared::StudioShared;
use crate::message::Message;
use crate::runtime::Assistant;
use crate::step_key::{StepKey, StepKind};
use crate::store::{EntryKind, SessionSummary, StoreErrorKind};

const PAGE: usize = 50;
/// Maximum number of pages that are read from the store to fill one page of the studio's list. Sessions of sub-agents are left out, so one
/// page of the store may not be enough.
const PAGES: usize = 20;
/// Number of entries at the start of a session that are searched for the user's first message.
const FIRST_ENTRIES: usize = 3;

impl StudioShared {
    /// Returns the sessions whose names contain a text, the latest first, after a [position](position_of). Sessions of sub-agents are left
    /// out unless `with_children` is set. If the store cannot list sessions, the result contains the reason as `cannot_list`.
    pub(super) async fn stored_sessions(
        &self,
        text: &str,
        after: Option<&str>,
        with_children: bool,
    ) -> Result<Value, Rejection> {
        let after = match after.map(session_at) {
            Some(None) => return Err(Rejection::invalid("`after` is not a position of the list.")),
            after => after.flatten(),
        };
        let page = timeout(STORE_TIME, page(&self.template, text, after, with_children)).await;
        page.map_err(|_| Rejection::store("The store does not answer."))?
    }
}

fn position_of(last: &SessionSummary) -> String {
    format!("{}:{}", last.at, last.session)
}

fn session_at(position: &str) -> Option<SessionSummary> {
    let (at, session) = position.split_once(':')?;
    Some(SessionSummary::new(session, 0, at.parse().ok()?))
}

/// Returns whether this is the name of a sub-agent's session. Such a name is the `StepKey` of the call that began the sub-agent's run.
fn is_of_child(name: &str) -> bool {
    name.parse::<StepKey>().is_ok_and(|key| key.kind == StepKind::Tool)
}

async fn page(
    assistant: &Assistant,
    text: &str,
    mut after: Option<SessionSummary>,
    with_children: bool,
) -> Result<Value, Rejection> {
    let nothing = |reason: &str| json!({"sessions": [], "next": null, "cannot_list": reason});
    let mut listed: Vec<SessionSummary> = Vec::new();
    for _ in 0..PAGES {
        let page = match assistant.stored_sessions(text, after.as_ref(), PAGE).await {
            None => {
                return Ok(nothing(
                    "The assistant has no store, so that conversations end with the program.",
                ));
            }
            Some(Err(error)) if error.kind() == StoreErrorKind::Unsupported => {
                return Ok(nothing("The store cannot list its sessions. Open one by its name."));
            }
            Some(page) => page.map_err(|error| Rejection::store(error.to_string()))?,
        };
        let is_last = page.len() < PAGE;
        after = page.last().filter(|_| !is_last).cloned();
        listed.extend(page.into_iter().filter(|one| with_children || !is_of_child(&one.session)));
        if is_last || listed.len() >= PAGE {
            break;
        }
    }
    if listed.len() > PAGE {
        listed.truncate(PAGE);
        after = listed.last().cloned();
    }
    let titles = join_all(listed.iter().map(|session| title(assistant, session))).await;
    let sessions = listed.iter().zip(titles).map(|(session, title)| {
        json!({
            "id": session.session,
            "entries": session.entries,
            "at": session.at,
            "title": title,
            "is_of_child": is_of_child(&session.session),
        })
    });
    let next = after.as_ref().map(position_of);
    Ok(json!({"sessions": sessions.collect::<Vec<_>>(), "next": next, "cannot_list": null}))
}

/// Returns the beginning of the user's first message, or `None` if the first entries contain none or cannot be read.
async fn title(assistant: &Assistant, session: &SessionSummary) -> Option<String> {
    let first = assistant.first_entries(&session.session, FIRST_ENTRIES).await;
    first.iter().find_map(|(_, entry)| match &entry.kind {
        EntryKind::Message { message, .. } if matches!(**message, Message::User(_)) => {
            Some(title_of(message))
        }
        _ => None,
    })
}
