//! Arguments while they arrive: events in work linear in the text, and an early word on what the plan refuses.

mod error;
mod event;
mod machine;
mod string;
mod value;

pub use error::ArgumentStreamError;
pub use event::{ArgumentEvent, ArgumentKind, ArgumentPath, ArgumentSegment, ArgumentValue};

use super::diagnose::EarlyCheck;
use super::issue::Issue;
use super::plan::Plan;
use machine::{Listeners, Machine};
use serde_json::Value;
use std::fmt;
use value::Plain;

/// Reads the arguments of a call while a model writes them.
///
/// Text goes in as it arrives, torn anywhere; [`ArgumentEvent`]s come out. All work together is linear in the text,
/// whatever the size of the deltas, and the text is kept once. With a plan each top-level parameter is checked as soon
/// as it is complete, by the rules of [`Plan::parse`] and under its coercion policy, and each unknown or repeated
/// key as soon as it is there: whoever wants to can stop the model, or show the mistake, right then. A parameter that
/// is refused here is refused by [`Plan::parse`]. What only the whole can tell is left to it: missing parameters,
/// arguments that are no object, and everything if the root of the plan is an enum.
///
/// The events are for showing. The call itself is made from the complete text, by [`Plan::parse`]; text that was cut
/// short is never completed into a call.
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
/// # What is JSON
///
/// What `serde_json` takes, whole or in any pieces, with one exception: a number of more than 400 bytes is refused.
/// Blank text is not JSON, though [`Plan::parse`] reads it as no arguments.
pub struct ArgumentStream {
    text: String,
    machine: Machine,
    early: Option<EarlyCheck>,
    failed: Option<ArgumentStreamError>,
}

impl ArgumentStream {
    /// For the arguments of a tool.
    pub fn new(plan: &Plan) -> ArgumentStream {
        ArgumentStream::with(Some(EarlyCheck::new(plan)))
    }

    /// For arguments whose plan is not known: nothing is checked but that they are JSON.
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
    /// [`ArgumentStreamError`] if the text cannot become JSON any more; again for every piece after that. Text is
    /// still kept then, for the report of [`Plan::parse`].
    pub fn push(
        &mut self,
        delta: &str,
        on: &mut dyn FnMut(ArgumentEvent<'_>),
    ) -> Result<(), ArgumentStreamError> {
        self.text.push_str(delta);
        self.read(on, Machine::run)
    }

    /// The text ends here. Returns all of it; [`text`](Self::text) has it also after an error.
    ///
    /// A number that is the whole text is complete only now, and has no [`Finished`](ArgumentEvent::Finished) event.
    ///
    /// # Errors
    /// [`ArgumentStreamError`] if it is not one complete JSON value.
    pub fn finish(&mut self) -> Result<&str, ArgumentStreamError> {
        self.read(&mut |_| {}, Machine::end)?;
        Ok(&self.text)
    }

    fn read(
        &mut self,
        on: &mut dyn FnMut(ArgumentEvent<'_>),
        step: fn(&mut Machine, &str, &mut Listeners<'_>) -> Result<(), error::Fault>,
    ) -> Result<(), ArgumentStreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut to = Listeners { on, early: self.early.as_mut() };
        step(&mut self.machine, &self.text, &mut to).map_err(|fault| {
            let error = ArgumentStreamError { fault, offset: self.machine.at() };
            if !error.is_incomplete() {
                self.failed = Some(error);
            }
            error
        })
    }

    /// All text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All text so far, without a copy.
    ///
    /// ```
    /// use agent::args::ArgumentStream;
    ///
    /// // The model's reply was cut off: what there is of it can be shown, but is no call.
    /// let mut stream = ArgumentStream::untyped();
    /// stream.push(r#"{"path": "a.t"#, &mut |_| {})?;
    /// assert_eq!(stream.text(), r#"{"path": "a.t"#);
    /// assert!(stream.finish().unwrap_err().is_incomplete());
    /// assert_eq!(stream.into_text(), r#"{"path": "a.t"#);
    /// # Ok::<(), agent::args::ArgumentStreamError>(())
    /// ```
    pub fn into_text(self) -> String {
        self.text
    }

    /// What the plan refuses so far, in the order in which it was found; at most the first 10,000.
    pub fn issues(&self) -> &[Issue] {
        self.early.as_ref().map_or(&[], EarlyCheck::issues)
    }

    /// The arguments so far: all complete values, and of an open string what is there. None before there is anything.
    /// Work in the size of the text: for every now and then, not for every delta.
    ///
    /// ```
    /// use agent::args::ArgumentStream;
    /// let mut stream = ArgumentStream::untyped();
    /// stream.push(r#"{"to": ["Ann", "Bo"], "text": "Hello \u00e"#, &mut |_| {})?;
    /// assert_eq!(stream.snapshot(), Some(serde_json::json!({"to": ["Ann", "Bo"], "text": "Hello "})));
    /// # Ok::<(), agent::args::ArgumentStreamError>(())
    /// ```
    pub fn snapshot(&self) -> Option<Value> {
        self.machine.closed_text(&self.text).map(|text| Plain::read(&text))
    }
}

impl fmt::Debug for ArgumentStream {
    /// Without the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentStream")
            .field("bytes", &self.text.len())
            .field("issues", &self.issues())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
