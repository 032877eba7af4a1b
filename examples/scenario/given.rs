//! What a scenario says.

use std::error::Error;

use agent::loop_core::Queue;
use agent::{QueueMode, SteeringPolicy};
use serde_json::Value;

/// The whole setup of a scenario.
pub(crate) struct Given {
    value: Value,
}

/// Something that happens when an event is told.
pub(crate) struct Action {
    pub(crate) when: Value,
    pub(crate) nth: u64,
    pub(crate) after_ms: u64,
    pub(crate) what: What,
}

/// What happens.
#[derive(Clone)]
pub(crate) enum What {
    Abort(String),
    Reset,
    Queue(Queue, Vec<String>),
    Prompt(String),
}

impl Given {
    pub(crate) fn read(given: &Value) -> Result<Self, Box<dyn Error>> {
        if !given.is_object() {
            return Err("a scenario is an object with `given`".into());
        }
        Ok(Self { value: given.clone() })
    }

    pub(crate) fn get(&self, key: &str) -> &Value {
        self.value.get(key).unwrap_or(&Value::Null)
    }

    /// The texts of a list, or the one that stands for it.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        texts(self.get(key))
    }

    pub(crate) fn is(&self, key: &str, word: &str) -> bool {
        self.get(key) == word
    }

    pub(crate) fn number<N: TryFrom<u64>>(&self, key: &str) -> Option<N> {
        N::try_from(self.get(key).as_u64()?).ok()
    }

    pub(crate) fn mode(&self, key: &str) -> QueueMode {
        if self.is(key, "all") { QueueMode::All } else { QueueMode::OneAtATime }
    }

    pub(crate) fn steering_policy(&self) -> Result<SteeringPolicy, Box<dyn Error>> {
        match self.get("steering_policy") {
            Value::Null => Ok(SteeringPolicy::default()),
            word => Ok(serde_json::from_value(word.clone())?),
        }
    }

    pub(crate) fn actions(&self) -> Result<Vec<Action>, Box<dyn Error>> {
        let actions = self.get("actions").as_array().into_iter().flatten();
        actions.map(Action::read).collect()
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

impl Action {
    fn read(action: &Value) -> Result<Self, Box<dyn Error>> {
        let when = action["when"].clone();
        let text = |key: &str| action[key].as_str().map(str::to_owned);
        let messages = || match texts(&action["messages"]) {
            messages if messages.is_empty() => texts(&action["message"]),
            messages => messages,
        };
        let what = match action["do"].as_str() {
            Some("abort" | "cancel") => What::Abort(text("reason").unwrap_or_else(|| "cancelled".to_owned())),
            Some("reset") => What::Reset,
            Some("steer") => What::Queue(Queue::Steering, messages()),
            Some("follow_up") => What::Queue(Queue::FollowUp, messages()),
            Some("prompt") => {
                let first = messages().into_iter().next();
                What::Prompt(text("prompt").or(text("text")).or(first).unwrap_or_default())
            }
            other => return Err(format!("no such action: {other:?}").into()),
        };
        let nth = when["nth"].as_u64().unwrap_or(1);
        Ok(Self { nth, after_ms: action["after_ms"].as_u64().unwrap_or(0), when, what })
    }

    /// Whether it waits for events like this one.
    pub(crate) fn fits(&self, shown: &Value) -> bool {
        self.when["event"] == shown["type"]
            && ["call_id", "role", "update", "tool", "turn"]
                .into_iter()
                .all(|key| self.when[key].is_null() || self.when[key] == shown[key])
    }
}
