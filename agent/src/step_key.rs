//! The key that identifies one step of one run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::parse_error::ParseError;

/// The identity of one step of one run, which is the same on every replay and in every attempt.
///
/// A step key is the primary key of the stored record, the name of the step in a durable engine (such as Restate), and the idempotency key
/// for tools and providers. Its text form is `RUN/TURN/KIND/ORD`, which serde uses, too.
///
/// ```
/// use agent::steps::{StepKey, StepKind};
///
/// let key = StepKey::new("run-1", 2, StepKind::Tool, 0);
/// assert_eq!(key.to_string(), "run-1/2/tool/0");
/// assert_eq!("run-1/2/tool/0".parse::<StepKey>()?, key);
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct StepKey {
    /// The id of the run, which is the `run_id` of its events.
    pub run: Arc<str>,
    /// The number of the turn, counted from 1.
    pub turn: u32,
    /// The kind of the step.
    pub kind: StepKind,
    /// The position of the call in the model's reply. For [`StepKind::Prepare`], this is the position of the first call. Each
    /// [`StepKind::Poll`] step of a turn has a different number, and so does each [`StepKind::Compact`] step. Other steps without a call
    /// have 0.
    pub ord: u32,
}

impl StepKey {
    /// Creates a key from its four parts.
    pub fn new(run: impl Into<Arc<str>>, turn: u32, kind: StepKind, ord: u32) -> Self {
        Self { run: run.into(), turn, kind, ord }
    }
}

/// Refuses a name of a run or a session that could be the id of a sub-agent's run: `RUN/TURN/tool/POSITION`. Returns the error message.
#[cfg(feature = "runtime")]
pub(crate) fn refuse_reserved_name(name: &str) -> Result<(), String> {
    match name.parse::<StepKey>() {
        Ok(StepKey { kind: StepKind::Tool, .. }) => Err(format!(
            "reserved_name: `{name}` has the form of a sub-agent's run, RUN/TURN/tool/POSITION; choose a name that does not end like this"
        )),
        _ => Ok(()),
    }
}

/// The kind of a step.
///
/// ```
/// use agent::steps::{StepKey, StepKind};
///
/// let key: StepKey = "run-1/2/turn_end/0".parse()?;
/// assert_eq!(key.kind, StepKind::TurnEnd);
/// assert_eq!(StepKind::TurnEnd.as_str(), "turn_end");
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StepKind {
    /// Takes messages from a queue.
    Poll,
    /// Asks the model.
    Model,
    /// Finds, checks and prepares calls that can run concurrently.
    Prepare,
    /// Gets the decision whether a call may run.
    Approval,
    /// Runs a tool.
    Tool,
    /// Waits for a result from outside.
    Await,
    /// Decides whether the run continues after a turn, with the turn-end hooks.
    TurnEnd,
    /// Asks for a summary of earlier messages. The `ord` counts the summaries before one request: from 0 to 3, from 4 to 7 after the
    /// provider refused the request as too long, and from 16 to 19 before the request is repeated with more room for the reply. If a
    /// summary is unusable, it is requested a second time, with an `ord` that is higher by 8.
    Compact,
    /// Asks the application which model answers.
    Select,
}

impl StepKind {
    const ALL: [Self; 9] = [
        Self::Poll,
        Self::Model,
        Self::Prepare,
        Self::Approval,
        Self::Tool,
        Self::Await,
        Self::TurnEnd,
        Self::Compact,
        Self::Select,
    ];

    /// Returns the name of the kind in the text form of a key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Model => "model",
            Self::Prepare => "prepare",
            Self::Approval => "approval",
            Self::Tool => "tool",
            Self::Await => "await",
            Self::TurnEnd => "turn_end",
            Self::Compact => "compact",
            Self::Select => "select",
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl StepKey {
    /// Returns the text form, like `to_string`. Allocates only once, because everything after the run id has at most 32 bytes.
    #[cfg(feature = "runtime")]
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.run.len() + 32);
        text.push_str(&self.run);
        text.push('/');
        push_number(&mut text, self.turn);
        text.push('/');
        text.push_str(self.kind.as_str());
        text.push('/');
        push_number(&mut text, self.ord);
        text
    }
}

#[cfg(feature = "runtime")]
fn push_number(text: &mut String, number: u32) {
    let mut rank = 1;
    while number / rank >= 10 {
        rank *= 10;
    }
    while rank > 0 {
        text.extend(char::from_digit(number / rank % 10, 10));
        rank /= 10;
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.run, self.turn, self.kind, self.ord)
    }
}

impl FromStr for StepKey {
    type Err = ParseError;

    /// Parses the text form from its end, because a run id may contain slashes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.rsplitn(4, '/');
            let ord = number(parts.next()?)?;
            let word = parts.next()?;
            let kind = StepKind::ALL.into_iter().find(|kind| kind.as_str() == word)?;
            let turn = number(parts.next()?)?;
            Some(Self::new(parts.next()?, turn, kind, ord))
        };
        parse().ok_or_else(|| {
            ParseError::is_not(
                text,
                "a step key",
                "the form is RUN/TURN/KIND/ORD, for example `run-1/2/tool/0`",
            )
        })
    }
}

/// Parses a number without a sign and leading zeros. Other forms are refused, so that equal keys have equal texts.
fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || (text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0'));
    canonical.then(|| text.parse().ok())?
}

impl Serialize for StepKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_parses_to_the_same_key() {
        for kind in StepKind::ALL {
            let key = StepKey::new("a/b", 7, kind, 3);
            assert_eq!(key.to_string().parse::<StepKey>().as_ref(), Ok(&key));
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(json, format!("\"a/b/7/{kind}/3\""));
            assert_eq!(serde_json::from_str::<StepKey>(&json).unwrap(), key);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "r/1/tool", "r/1/nap/0", "r/01/tool/0", "r/1/tool/+1", "r/1/tool/", "r/-1/tool/0"] {
            let error = text.parse::<StepKey>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
        assert!("r/4294967296/tool/0".parse::<StepKey>().is_err());
    }
}
