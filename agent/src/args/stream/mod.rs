//! Reads arguments while a model writes them. Emits events in linear time, and reports values that the `Plan` refuses as early as
//! possible.

mod error;
mod event;
mod machine;
mod string;
mod value;

pub use event::{ArgumentEvent, ArgumentKind, ArgumentPath};

use super::issue::Issue;
use super::judge::EarlyCheck;
use super::plan::Plan;
use crate::parse_error::ParseError;
use error::{Fault, FaultAt};
use event::IssueCodes;
use machine::{Machine, StreamListeners};
use serde_json::Value;
use std::fmt;
use value::Plain;

/// Parses text that is known to be JSON. For a repeated key, the last value counts. The private keys of `serde_json` are ordinary keys.
pub(crate) fn read_literally(json: &str) -> Value {
    Plain::read(json)
}

/// Reads the arguments of a call while a model writes them.
///
/// Text is passed in as it arrives, in pieces of any size, and the stream emits [`ArgumentEvent`]s. The text is stored once, and the total
/// work is linear in its length, however it is split. With a plan, each top-level parameter is checked as soon as it is complete, by the
/// rules of [`Plan::parse`] and its coercion policy. An unknown or repeated key is reported as soon as it is read. The caller can then stop
/// the model or show the mistake.
///
/// A parameter that the stream refuses is also refused by [`Plan::parse`]. Only [`Plan::parse`] finds missing parameters, a wrong number
/// of entries, arguments that are not an object, and values that a `Deserialize` impl or a function of `#[arg(validate = …)]` refuses. If
/// the root of the plan is an enum, the stream checks no parameter.
///
/// The events are for display. The call itself is made from the complete text, by [`Plan::parse`]. Text that was cut short never becomes a
/// call.
///
/// ```
/// use agent::args::{ArgumentEvent, ArgumentStream, Plan, PlanOptions};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Write { path: String, text: String, mode: Option<u32> }
///
/// let plan = Plan::for_type::<Write>("write", PlanOptions::default())?;
/// let mut stream = ArgumentStream::new(&plan);
/// let mut shown = String::new();
/// let mut refused = Vec::new();
/// for delta in [r#"{"path": "a.txt", "te"#, r#"xt": "one\"#, "ntw", r#"o", "mode": "x"#, r#"", "pth": 1}"#] {
///     stream.push(delta, &mut |event| match event {
///         ArgumentEvent::Appended { path, fragment } if path.parameter() == Some("text") => shown.push_str(fragment),
///         ArgumentEvent::Refused { issues, .. } => refused.extend(issues.iter().map(ToString::to_string)),
///         _ => {}
///     })?;
/// }
/// assert_eq!(shown, "one\ntwo");
/// assert_eq!(stream.issues().len(), 2);
/// assert_eq!(refused, [
///     r#"/mode: wrong type; got string "x"; expected integer >= 0"#,
///     "/pth: unknown parameter",
/// ]);
///
/// // The call is made from the whole text. `parse` may report the issues in another order.
/// let text = stream.finish()?;
/// assert_eq!(plan.parse::<Write>(text).err().unwrap().issues().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Accepted JSON
///
/// The stream accepts the same text as `serde_json`, however it is split, with one exception: a number of more than 400 bytes is refused.
/// Blank text is not JSON, although [`Plan::parse`] reads it as empty arguments.
pub struct ArgumentStream {
    text: String,
    machine: Machine,
    early: Option<EarlyCheck>,
    failed: Option<FaultAt>,
}

impl ArgumentStream {
    /// Creates a stream for the arguments of a tool.
    pub fn new(plan: &Plan) -> ArgumentStream {
        ArgumentStream::with(Some(EarlyCheck::new(plan)))
    }

    /// Creates a stream for arguments without a plan, which only checks that the text is JSON.
    pub fn untyped() -> ArgumentStream {
        ArgumentStream::with(None)
    }

    fn with(early: Option<EarlyCheck>) -> ArgumentStream {
        let secret = early.as_ref().is_some_and(EarlyCheck::is_secret);
        ArgumentStream { text: String::new(), machine: Machine::new(secret), early, failed: None }
    }

    /// Reads the next piece of the text and calls `on` for each event in it.
    ///
    /// # Errors
    /// Returns an error as soon as the text can no longer become JSON, and for every later piece. The error has the position, and does not
    /// quote the text. The text is still kept for the report of [`Plan::parse`].
    ///
    /// ```
    /// use agent::args::ArgumentStream;
    ///
    /// let mut stream = ArgumentStream::untyped();
    /// let error = stream.push(r#"{"to": nobody"#, &mut |_| {}).unwrap_err();
    /// // `{"to": n` may be the beginning of `null`
    /// assert_eq!(error.to_string(), "not valid JSON: expected `true`, `false` or `null` at byte 8");
    /// assert!(stream.is_broken());
    /// ```
    pub fn push(&mut self, delta: &str, on: &mut dyn FnMut(ArgumentEvent<'_>)) -> Result<(), ParseError> {
        self.text.push_str(delta);
        Ok(self.read(on, Machine::run)?)
    }

    /// Handles the end of the text, and returns the whole text. After an error, [`text`](Self::text) returns the text so far.
    ///
    /// If the whole text is a number, the number is complete only at the end. Such a number has no [`Finished`](ArgumentEvent::Finished)
    /// event.
    ///
    /// # Errors
    /// Returns an error if the text is cut short, or if it [cannot become valid JSON](Self::is_broken).
    pub fn finish(&mut self) -> Result<&str, ParseError> {
        self.read(&mut |_| {}, Machine::end)?;
        Ok(&self.text)
    }

    fn read(
        &mut self,
        on: &mut dyn FnMut(ArgumentEvent<'_>),
        step: fn(&mut Machine, &str, &mut StreamListeners<'_>) -> Result<(), Fault>,
    ) -> Result<(), FaultAt> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut to = StreamListeners { on, early: self.early.as_mut() };
        step(&mut self.machine, &self.text, &mut to).map_err(|fault| {
            let error = FaultAt { fault, offset: self.machine.at() };
            if fault != Fault::Incomplete {
                self.failed = Some(error);
            }
            error
        })
    }

    /// Returns whether the text so far can no longer become JSON. Text that is not broken is complete or cut short.
    pub fn is_broken(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns all text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns all text so far, without a copy.
    ///
    /// ```
    /// use agent::args::ArgumentStream;
    ///
    /// // The model's reply was cut off. The text so far can be shown, but cannot become a call.
    /// let mut stream = ArgumentStream::untyped();
    /// stream.push(r#"{"path": "a.t"#, &mut |_| {})?;
    /// assert_eq!(stream.text(), r#"{"path": "a.t"#);
    /// assert!(stream.finish().is_err() && !stream.is_broken());
    /// assert_eq!(stream.into_text(), r#"{"path": "a.t"#);
    /// # Ok::<(), agent::args::ParseError>(())
    /// ```
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the first 10,000 issues so far, in the order in which they were found.
    pub fn issues(&self) -> &[Issue] {
        self.early.as_ref().map_or(&[], EarlyCheck::issues)
    }

    /// Returns the arguments so far: all complete values, and the available part of an open string. Returns `None` before anything is
    /// available. Takes time linear in the text, so call it occasionally rather than for every delta.
    ///
    /// ```
    /// use agent::args::ArgumentStream;
    /// let mut stream = ArgumentStream::untyped();
    /// stream.push(r#"{"to": ["Ann", "Bo"], "text": "Hello \u00e"#, &mut |_| {})?;
    /// assert_eq!(stream.snapshot(), Some(serde_json::json!({"to": ["Ann", "Bo"], "text": "Hello "})));
    /// # Ok::<(), agent::args::ParseError>(())
    /// ```
    pub fn snapshot(&self) -> Option<Value> {
        self.machine.closed_text(&self.text).map(|text| Plain::read(&text))
    }
}

impl fmt::Debug for ArgumentStream {
    /// Writes the number of bytes instead of the arguments, and only the paths and codes of the issues.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentStream")
            .field("bytes", &self.text.len())
            .field("issues", &IssueCodes(self.issues()))
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
