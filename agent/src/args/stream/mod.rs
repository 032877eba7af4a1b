//! Reads arguments while they arrive: emits events in linear time, and reports early what the plan refuses.

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
use machine::{Machine, StreamListeners};
use serde_json::Value;
use std::fmt;
use value::Plain;

/// Parses JSON text as it was sent, without coercion; the last of repeated keys wins.
pub(crate) fn read_literally(json: &str) -> Value {
    Plain::read(json)
}

/// Reads the arguments of a call while a model writes them.
///
/// Text is passed in as it arrives, cut anywhere, and the stream emits [`ArgumentEvent`]s. The total work is linear in the text, whatever
/// the size of the deltas, and the text is stored once. With a plan, each top-level parameter is checked as soon as it is complete, by the
/// rules of [`Plan::parse`] and its coercion policy, and each unknown or repeated key as soon as it is read. The caller can then stop the
/// model or show the mistake. A parameter that the stream refuses is also refused by [`Plan::parse`], which alone checks the arguments as a
/// whole: missing parameters, arguments that are not an object, and everything if the root of the plan is an enum.
///
/// The events are for display. The call itself is made from the complete text, by [`Plan::parse`]; text that was cut short is
/// never completed into a call.
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
/// // The call is made from the whole text, which has its issues in the order of the report.
/// let text = stream.finish()?;
/// assert_eq!(plan.parse::<Write>(text).err().unwrap().issues().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Accepted JSON
///
/// The stream accepts the same text as `serde_json`, whole or in any pieces, with one exception: a number of more than 400 bytes
/// is refused. Blank text is not JSON, though [`Plan::parse`] reads it as no arguments.
pub struct ArgumentStream {
    text: String,
    machine: Machine,
    early: Option<EarlyCheck>,
    failed: Option<FaultAt>,
}

impl ArgumentStream {
    /// Creates a reader for the arguments of a tool.
    pub fn new(plan: &Plan) -> ArgumentStream {
        ArgumentStream::with(Some(EarlyCheck::new(plan)))
    }

    /// Creates a reader for arguments without a plan, which only checks that they are JSON.
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
    /// Fails as soon as the text can no longer become JSON, and again for every later piece. The error has the position, and does not quote
    /// the text. The text is still kept for the report of [`Plan::parse`].
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

    /// Handles the end of the text, and returns all of it; [`text`](Self::text) also returns it after an error.
    ///
    /// A number that is the whole text is complete only now, and has no [`Finished`](ArgumentEvent::Finished) event.
    ///
    /// # Errors
    /// Fails if the text is not one complete JSON value: it [cannot become valid JSON](Self::is_broken), or is cut short.
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

    /// Whether the text so far can no longer become JSON. Otherwise it is complete, or only cut short.
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
    /// // The model's reply was cut off: what there is of it can be shown, but is no call.
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

    /// Returns the issues found so far, in the order in which they were found; at most the first 10,000.
    pub fn issues(&self) -> &[Issue] {
        self.early.as_ref().map_or(&[], EarlyCheck::issues)
    }

    /// Returns the arguments so far: all complete values, and the available part of an open string. `None` before anything is
    /// available. Takes time linear in the text, so call it occasionally and not for every delta.
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
    /// Leaves out the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentStream")
            .field("bytes", &self.text.len())
            .field("issues", &self.issues())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
