//! The events of a stream of arguments.

use crate::args::issue::Issue;
use crate::args::text::{push_index, push_segment};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of the arguments, caused by the latest text.
///
/// Events borrow from the stream, so nothing is copied for them. The `Debug` of an event shows no values, except in the issues of
/// [`Refused`](Self::Refused).
///
/// ```
/// use agent::args::{ArgumentEvent, ArgumentStream};
///
/// let mut seen = Vec::new();
/// ArgumentStream::untyped().push(r#"{"n": 1.50, "to": "An"#, &mut |event| match event {
///     ArgumentEvent::Appended { path, fragment } => seen.push(format!("{path} grows by {fragment}")),
///     ArgumentEvent::Finished { path, json } => seen.push(format!("{path} is {json}")),
///     other => seen.push(format!("{:?}", other.path())),
/// })?;
/// assert_eq!(seen, [r#""""#, r#""/n""#, "/n is 1.50", r#""/to""#, "/to grows by An"]);
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ArgumentEvent<'a> {
    /// A value starts.
    Started {
        /// The path of the value.
        path: ArgumentPath<'a>,
        /// The kind of the value.
        kind: ArgumentKind,
    },
    /// A string continues. The joined fragments are the whole string. One call of
    /// [`ArgumentStream::push`](crate::args::ArgumentStream::push) may cause several fragments.
    Appended {
        /// The path of the string.
        path: ArgumentPath<'a>,
        /// The added text, unescaped; never empty.
        fragment: &'a str,
    },
    /// A value is complete. Every value has this event, except a number that is the whole text. The event of a container follows the
    /// events of its content.
    Finished {
        /// The path of the value.
        path: ArgumentPath<'a>,
        /// The JSON text of the value as it was sent. The text is not parsed, because parsing takes time linear in the size of the value.
        json: &'a str,
    },
    /// The plan refuses a top-level parameter. The event follows [`Finished`](Self::Finished) of the value. For an unknown or repeated
    /// key, the event follows the key.
    Refused {
        /// The path of the top-level parameter.
        path: ArgumentPath<'a>,
        /// All issues of the parameter, as [`Plan::parse`](crate::args::Plan::parse) reports them.
        issues: &'a [Issue],
    },
}

impl<'a> ArgumentEvent<'a> {
    /// Returns the path of the value that the event is about.
    pub fn path(&self) -> ArgumentPath<'a> {
        match self {
            Self::Started { path, .. }
            | Self::Appended { path, .. }
            | Self::Finished { path, .. }
            | Self::Refused { path, .. } => *path,
        }
    }
}

impl fmt::Debug for ArgumentEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { path, kind } => {
                f.debug_struct("Started").field("path", path).field("kind", kind).finish()
            }
            Self::Appended { path, .. } => {
                f.debug_struct("Appended").field("path", path).finish_non_exhaustive()
            }
            Self::Finished { path, .. } => {
                f.debug_struct("Finished").field("path", path).finish_non_exhaustive()
            }
            Self::Refused { path, issues } => {
                f.debug_struct("Refused").field("path", path).field("issues", issues).finish()
            }
        }
    }
}

/// The kind of a JSON value.
///
/// ```
/// use agent::args::{ArgumentEvent, ArgumentKind, ArgumentStream};
///
/// let mut kinds = Vec::new();
/// ArgumentStream::untyped().push(r#"{"to": ["#, &mut |event| {
///     if let ArgumentEvent::Started { kind, .. } = event { kinds.push(kind) }
/// })?;
/// assert_eq!(kinds, [ArgumentKind::Object, ArgumentKind::Array]);
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The path of a value in the arguments. `Display` writes its JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)), empty for
/// the arguments as a whole.
///
/// ```
/// use agent::args::ArgumentStream;
///
/// let mut deepest = (0, String::new(), None);
/// ArgumentStream::untyped().push(r#"{"to": [{"name": "Ann"}]}"#, &mut |event| {
///     let path = event.path();
///     if path.depth() > deepest.0 {
///         deepest = (path.depth(), path.to_string(), path.parameter().map(str::to_owned));
///     }
/// })?;
/// assert_eq!(deepest, (3, "/to/0/name".into(), Some("to".into())));
/// # Ok::<(), agent::args::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ArgumentPath<'a> {
    pub(super) frames: &'a [Frame],
    /// The keys on the path, concatenated.
    pub(super) keys: &'a str,
    pub(super) secret: bool,
}

/// An object or array that is not complete yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) start: usize,
    /// The index of the current item of an array; `None` for an object.
    pub(super) index: Option<usize>,
    /// The start of an object's current key within the concatenated keys.
    pub(super) key_start: usize,
    pub(super) key_end: usize,
}

#[derive(Clone, Copy)]
enum ArgumentStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> ArgumentPath<'a> {
    fn steps(self) -> impl Iterator<Item = ArgumentStep<'a>> {
        self.frames.iter().map(move |frame| match frame.index {
            Some(index) => ArgumentStep::Index(index),
            None => ArgumentStep::Key(self.keys.get(frame.key_start..frame.key_end).unwrap_or_default()),
        })
    }

    /// Returns the number of keys and indices in the path: 0 for the arguments as a whole, 1 for a top-level parameter.
    pub fn depth(self) -> usize {
        self.frames.len()
    }

    /// Returns the top-level parameter that is or contains the value; `None` for the arguments as a whole.
    pub fn parameter(self) -> Option<&'a str> {
        match self.steps().next() {
            Some(ArgumentStep::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// Returns whether the value may be a secret, which should not be shown. Returns `true` for every value in a parameter that is or
    /// contains a secret. If a plan has secrets, also returns `true` for the arguments as a whole, and for an unknown key, which may be a
    /// misspelled secret. Without a plan, returns `false`.
    ///
    /// ```
    /// use agent::args::{ArgumentEvent, ArgumentStream, Plan, PlanOptions};
    ///
    /// #[derive(agent::ToolArgs)]
    /// struct Login { user: String, #[arg(secret)] password: String }
    ///
    /// let plan = Plan::for_type::<Login>("login", PlanOptions::default())?;
    /// let mut shown = String::new();
    /// ArgumentStream::new(&plan).push(r#"{"user": "ann", "password": "hunter2"}"#, &mut |event| {
    ///     if let ArgumentEvent::Appended { path, fragment } = event {
    ///         shown.push_str(if path.is_secret() { " ***" } else { fragment });
    ///     }
    /// })?;
    /// assert_eq!(shown, "ann ***");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_secret(self) -> bool {
        self.secret
    }
}

impl fmt::Display for ArgumentPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pointer = String::new();
        for step in self.steps() {
            match step {
                ArgumentStep::Key(key) => push_segment(&mut pointer, key),
                ArgumentStep::Index(index) => push_index(&mut pointer, index),
            }
        }
        f.write_str(&pointer)
    }
}

impl fmt::Debug for ArgumentPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
