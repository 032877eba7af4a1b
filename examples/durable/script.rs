//! The model's part, without a provider.

use agent::json;
use agent::message::{AssistantMessage, Message, Part};
use agent::model::{Model, ModelError, ModelRequest, ModelStream, StepCx};
use std::time::Duration;
use tokio::time::sleep;

/// Plays a model. Whatever it says follows from the conversation, so it can go on in any process; a real one is
/// `agent::model("anthropic/claude-sonnet-5")?`.
pub(crate) struct Script;

impl Model for Script {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let turn = request.messages.iter().filter(|message| message.as_assistant().is_some()).count();
        let steered = request.messages.iter().skip(1).any(|message| matches!(**message, Message::User(_)));
        let reply = async move {
            sleep(Duration::from_secs(1)).await;
            println!("  the model says what comes next ({})", turn + 1);
            Ok::<_, ModelError>(match turn {
                0 => AssistantMessage::from(vec![
                    Part::text("I look for a hotel and book the train."),
                    Part::tool_call("hotel", "find_hotel", json!({"city": "Paris"})),
                    Part::tool_call("train", "book_train", json!({"to": "Paris"})),
                ]),
                1 => AssistantMessage::from(vec![Part::tool_call("pay", "pay", json!({"amount": 120}))]),
                _ if steered => {
                    AssistantMessage::from("The trip is booked and paid; I heard what you said meanwhile.")
                }
                _ => AssistantMessage::from("The trip is booked and paid."),
            })
        };
        ModelStream::from_reply(cx, self.info(), reply)
    }
}
