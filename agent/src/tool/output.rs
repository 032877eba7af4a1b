//! The output of a tool.

use super::error::ToolError;
use super::finite::NotFinite;
use super::outcome::{IntoOutcome, ToolOutcome};
use crate::message::{Part, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The output of a completed call: content for the model, the result as structured data, and metadata that only the application sees.
///
/// ```
/// use agent::ToolOutput;
/// use serde_json::json;
///
/// # fn main() -> Result<(), agent::ToolError> {
/// let output = ToolOutput::json(&json!({"degrees": 21}))?.with_metadata("cache", "hit");
/// assert_eq!(output.text_content(), r#"{"degrees":21}"#);
/// assert_eq!(output.structured, Some(json!({"degrees": 21})));
/// # Ok(()) }
/// ```
///
/// The content can also have images and other parts:
///
/// ```
/// use agent::message::{Content, Part};
/// use agent::{Control, ToolOutput};
///
/// # let png = vec![0x89, 0x50, 0x4e, 0x47];
/// let chart = ToolOutput::image(png.clone(), "image/png");
/// assert!(matches!(chart.content[0].content, Content::Image(_)));
///
/// let report = ToolOutput::parts(vec![Part::text("Sales by month:"), Part::image(png, "image/png")]);
/// assert_eq!((report.content.len(), report.text_content().as_ref()), (2, "Sales by month:"));
///
/// let last = ToolOutput::empty().with_control(Control::EndNow);       // nothing to say, and the run ends
/// assert!(last.content.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content that the model reads.
    pub content: Vec<Part>,
    /// The result as structured data: a JSON object or list.
    #[serde(with = "json::option", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Data for the application and the loop, never for a model.
    #[serde(with = "json::map", skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Whether the run continues after the result.
    #[serde(skip_serializing_if = "is_default")]
    pub control: Control,
}

/// Whether a run continues after a result.
///
/// ```
/// use agent::model::reply;
/// use agent::{Assistant, Control, RunStop, ScriptedModel, ToolOutput, tool, tools};
///
/// /// Hands the conversation over to a person.
/// #[tool]
/// fn hand_over() -> ToolOutput {
///     ToolOutput::text("Somebody will answer.").with_control(Control::EndNow)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new([reply().tool_call("hand_over", "{}")])).tools(tools![hand_over]).build()?;
/// let output = assistant.prompt("I want to talk to somebody.").await?;
/// assert_eq!((output.stop, output.turns), (RunStop::Terminated, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Control {
    /// The model is asked again, unless another result of the turn ends the run.
    #[default]
    Continue,
    /// The run ends after this turn's calls if no result of the turn has [`Continue`](Self::Continue).
    EndIfAll,
    /// The run ends after this turn's calls.
    EndNow,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ToolOutput {
    /// Creates an output without content.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates an output with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    pub(super) fn absent() -> Self {
        Self::text("There is none.")
    }

    /// Creates an output with any parts: texts, images, documents, resources.
    pub fn parts(content: Vec<Part>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Creates an output with one image, from its bytes and MIME type.
    pub fn image(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self::parts(vec![Part::image(bytes.into(), mime_type)])
    }

    /// Creates an output with a value as JSON text. A string becomes the text itself. `null` becomes the text `There is none.`, so that a
    /// model does not mistake it for a success. An object or a list is also kept as [`structured`](Self::structured) data. If the value
    /// itself is NaN or infinite, the text is `NaN`, `inf` or `-inf`.
    ///
    /// # Errors
    /// Fails when the value cannot be serialized as JSON. For example, a map has keys that JSON does not allow, a number within the value
    /// is not finite, or the `Serialize` of the value fails.
    ///
    /// ```
    /// # use agent::ToolOutput;
    /// # fn main() -> Result<(), agent::ToolError> {
    /// assert_eq!(ToolOutput::json(&[1, 2])?.text_content(), "[1,2]");
    /// assert_eq!(ToolOutput::json("plain")?.text_content(), "plain");
    /// assert_eq!(ToolOutput::json(&None::<u8>)?.text_content(), "There is none.");
    /// assert_eq!(ToolOutput::json(&f64::NAN)?.text_content(), "NaN");
    /// let error = ToolOutput::json(&[0.5, f64::NAN]).unwrap_err();
    /// assert_eq!(error.message(), "the tool's result cannot be written as JSON: NaN at /1");
    /// # Ok(()) }
    /// ```
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        const NOT_JSON: &str = "the tool's result cannot be written as JSON";
        let written = serde_json::to_value(value).map_err(|e| ToolError::new(NOT_JSON).with_source(e))?;
        match NotFinite::find(value, &written) {
            Some(found) if found.is_whole() => return Ok(Self::text(found.to_string())),
            Some(found) => return Err(ToolError::new(format!("{NOT_JSON}: {found}"))),
            None => {}
        }
        Ok(match written {
            Value::Null => Self::absent(),
            Value::String(text) => Self::text(text),
            value => {
                let is_structured = value.is_object() || value.is_array();
                Self { structured: is_structured.then(|| value.clone()), ..Self::text(value.to_string()) }
            }
        })
    }

    /// Adds a value that only the application sees. `stop_loop: true` ends the run, like [`Control::EndNow`],
    /// unless a later value of `stop_loop` or [`with_control`](Self::with_control) revokes it.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let (key, value) = (key.into(), value.into());
        if key == "stop_loop" && value == Value::Bool(true) {
            self.control = Control::EndNow;
        } else if key == "stop_loop" && self.metadata.contains_key(&key) {
            self.control = Control::Continue;
        }
        self.metadata.insert(key, value);
        self
    }

    /// Sets the result as structured data: a JSON object or list.
    ///
    /// ```
    /// use agent::{ToolOutput, json};
    ///
    /// // Words for the model, data for programs.
    /// let output = ToolOutput::text("Sunny, 21 degrees.").with_structured(json!({"sky": "sunny", "celsius": 21}));
    /// assert_eq!(output.structured.unwrap()["celsius"], 21);
    /// ```
    pub fn with_structured(mut self, structured: Value) -> Self {
        self.structured = Some(structured);
        self
    }

    /// Sets whether the run continues after the result. Default: [`Control::Continue`].
    pub fn with_control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Returns the text parts, joined by line breaks.
    pub fn text_content(&self) -> Cow<'_, str> {
        let mut texts = self.content.iter().filter_map(Part::as_text);
        match (texts.next(), texts.next()) {
            (None, _) => "".into(),
            (Some(only), None) => only.into(),
            (Some(first), Some(second)) => {
                let mut all = format!("{first}\n{second}");
                for text in texts {
                    all.push('\n');
                    all.push_str(text);
                }
                all.into()
            }
        }
    }
}

/// A value that a closure or a hand-written tool returns as JSON. (`#[tool]` functions return the value itself.)
///
/// ```
/// use agent::{Json, Tool, ToolContext, Value, json};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), agent::tool::DefinitionError> {
/// let schema = json!({"type": "object", "properties": {}});
/// let version = Tool::new("version", "Of this program.", schema, |_args: Value, _cx: ToolContext| async {
///     Json([0, 1, 0])
/// })?;
/// assert_eq!(version.call("{}", &ToolContext::new()).await.outcome.text(), "[0,1,0]");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutcome for Json<T> {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutput::json(&self.0).into_outcome()
    }
}
