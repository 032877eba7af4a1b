//! Progress that a running tool reports.

use crate::message::Part;
use serde::{Deserialize, Serialize};

/// The progress of a running tool. The listeners of the run get it; the model does not.
///
/// ```
/// use agent::{Progress, ToolContext, message::Part, tool};
///
/// /// Reads all pages.
/// #[tool]
/// async fn read_pages(pages: Vec<String>, cx: &ToolContext) -> usize {
///     for (n, _page) in pages.iter().enumerate() {
///         cx.progress(Progress::new("reading").of(n + 1, pages.len()));
///     }
///     pages.len()
/// }
///
/// # fn main() {
/// assert_eq!(Progress::new("reading").of(3, 10).fraction(), Some(0.3));
///
/// // Nobody knows how much there is to search, but the first hit can be shown.
/// let searching = Progress::new("searching").at(120).with_content([Part::text("notes.md: tea")]);
/// assert_eq!((searching.done, searching.total, searching.fraction()), (Some(120), None, None));
/// assert_eq!(searching.content, [Part::text("notes.md: tea")]);
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Progress {
    /// The current activity, in words.
    pub message: String,
    /// The amount that is done, in any unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// The whole amount, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The part of the result that is available already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part>,
}

/// Creates progress with a message and without numbers.
impl From<&str> for Progress {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// Creates progress with a message and without numbers.
impl From<String> for Progress {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl Progress {
    /// Creates progress with a message and without numbers.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Sets the finished amount and the whole amount, in the same unit. A number that does not fit a `u64` counts as 0.
    pub fn of(mut self, done: impl TryInto<u64>, total: impl TryInto<u64>) -> Self {
        self.total = Some(total.try_into().unwrap_or(0));
        self.at(done)
    }

    /// Sets only the finished amount, for work whose whole amount is unknown. A number that does not fit a `u64` counts as 0.
    pub fn at(mut self, done: impl TryInto<u64>) -> Self {
        self.done = Some(done.try_into().unwrap_or(0));
        self
    }

    /// Adds the part of the result that is available already.
    pub fn with_content(mut self, content: impl IntoIterator<Item = Part>) -> Self {
        self.content.extend(content);
        self
    }

    /// Returns the finished share, from 0 to 1; `None` if one of the amounts is unknown, or if the whole amount is 0.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
    pub fn fraction(&self) -> Option<f64> {
        match (self.done?, self.total?) {
            (_, 0) => None,
            (done, total) => Some((done as f64 / total as f64).min(1.0)),
        }
    }
}
