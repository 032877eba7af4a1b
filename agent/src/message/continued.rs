//! Answers that a model gives in several replies.

#[cfg(feature = "runtime")]
use std::sync::Arc;

#[cfg(any(feature = "gemini", feature = "runtime"))]
use super::{AssistantMessage, StopReason};
use super::{CustomMessage, Message};

const KIND: &str = "continue";
/// The text of the message that asks for the rest of an answer. It is sent in a [`CustomMessage`], so that front ends do not show it as a
/// message of the user.
const TEXT: &str = "Your last message was cut because of its length. Continue it exactly where it ends: repeat nothing, and add no introduction.";

pub(crate) fn continuation() -> Message {
    CustomMessage::new(KIND, serde_json::Value::Null).with_for_model(TEXT).into()
}

#[cfg(feature = "runtime")]
pub(crate) fn is_continuation(message: &CustomMessage) -> bool {
    message.kind == KIND && message.data.is_null()
}

/// Returns the text of the last answer, which is joined from the last reply and all replies that it continues. Failed replies are left
/// out.
#[cfg(feature = "runtime")]
pub(crate) fn answer_text(messages: &[Arc<Message>]) -> String {
    let Some(last) = messages.iter().rposition(|message| message.as_assistant().is_some()) else {
        return String::new();
    };
    let mut first = last;
    while let Some(before) = continued_by(messages, first) {
        first = before;
    }
    let replies = messages.get(first..=last).unwrap_or_default().iter();
    let replies = replies.filter_map(|message| message.as_assistant());
    replies.filter(|reply| !reply.stop_reason.is_failure()).map(AssistantMessage::text).collect()
}

/// Returns the index of the reply that the reply at index `at` continues, or `None` if it continues none.
#[cfg(feature = "runtime")]
fn continued_by(messages: &[Arc<Message>], at: usize) -> Option<usize> {
    let mut before = at.checked_sub(1)?;
    // Failed replies of requests that were repeated stay in the conversation, so they are skipped.
    while messages.get(before)?.as_assistant().is_some_and(|reply| reply.stop_reason.is_failure()) {
        before = before.checked_sub(1)?;
    }
    match &**messages.get(before)? {
        Message::Custom(custom) if is_continuation(custom) => {
            let before = before.checked_sub(1)?;
            messages.get(before)?.as_assistant().map(|_| before)
        }
        Message::Assistant(reply) => is_piece(reply).then_some(before),
        _ => None,
    }
}

/// Returns whether the provider paused a reply within its text, and not to run a tool.
#[cfg(any(feature = "gemini", feature = "runtime"))]
pub(crate) fn is_piece(reply: &AssistantMessage) -> bool {
    reply.stop_reason == StopReason::Pause && reply.provider_stop_reason.as_deref() == Some("CONTINUATION")
}

#[cfg(all(test, feature = "runtime"))]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_answer_is_that_of_all_its_replies() {
        let reply = |text: &str| Message::assistant(text);
        let mut lost = AssistantMessage::from("lost");
        lost.stop_reason = StopReason::Error;
        let mut piece = AssistantMessage::from("Once ");
        (piece.stop_reason, piece.provider_stop_reason) =
            (StopReason::Pause, Some("CONTINUATION".to_owned()));
        let mut paused = AssistantMessage::from("I search.");
        paused.stop_reason = StopReason::Pause;
        let text =
            |messages: Vec<Message>| answer_text(&messages.into_iter().map(Arc::new).collect::<Vec<_>>());
        let user = || Message::user("go");
        assert_eq!(text(vec![]), "");
        assert_eq!(text(vec![continuation()]), "");
        assert_eq!(text(vec![user(), reply("a"), user(), reply("b")]), "b");
        assert_eq!(text(vec![reply("a"), continuation(), reply("b"), continuation(), reply("c")]), "abc");
        assert_eq!(text(vec![reply("a"), continuation(), lost.into(), reply("b")]), "ab");
        assert_eq!(text(vec![user(), piece.clone().into(), piece.into(), reply("upon")]), "Once Once upon");
        assert_eq!(text(vec![user(), paused.into(), reply("Found.")]), "Found.");
        assert_eq!(text(vec![continuation(), reply("b")]), "b");
    }
}
