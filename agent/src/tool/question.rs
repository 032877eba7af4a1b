//! Questions that a running tool asks a person, and the inputs that answer them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::{InvalidArguments, Plan, PlanOptions};
use crate::run_path::RunPath;

pub(crate) const CANNOT_ASK: &str = "cannot_ask";

pub(super) const VALUE: &str = "value";

pub(super) const SECRET_MARK: &str = "x-secret";

/// A question to a person, asked by a tool with [`ToolContext::ask`](crate::ToolContext::ask), or by an MCP server during a call of one of
/// its tools.
///
/// A function of the application answers the question while the call waits ([`on_question`](crate::ToolContext::on_question)), or the run
/// is suspended until it is answered. A question can be serialized and shown.
///
/// ```
/// use agent::tool::{Question, QuestionInput};
/// use agent::{ToolContext, ToolError, json, tool, tools};
///
/// /// Books a table.
/// #[tool(asks)]
/// async fn book(restaurant: String, cx: &ToolContext) -> Result<String, ToolError> {
///     let seats: u8 = cx.ask("A table for how many?").await?;
///     Ok(format!("{seats} seats at {restaurant}"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cx = ToolContext::new().on_question(|question: Question| async move {
///     assert_eq!((question.tool.as_str(), question.message.as_str()), ("book", "A table for how many?"));
///     assert!(question.check(&json!(500)).is_err() && question.check(&json!("4")).is_ok());
///     QuestionInput::Accept(json!(4))
/// });
/// let registry = agent::Registry::new(tools![book])?;
/// let call = agent::message::ToolCall::new("1", "book", r#"{"restaurant": "Sole"}"#);
/// assert_eq!(registry.call(&call, &cx).await.outcome.text(), "4 seats at Sole");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The id of the question, unique in its run and in the runs that contain this run.
    pub request_id: String,
    /// The path of the run that asks; empty, unless it is the run of a sub-agent.
    #[serde(default, skip_serializing_if = "RunPath::is_root")]
    pub path: RunPath,
    /// The id of the call whose tool asks.
    pub call_id: String,
    /// The name of the tool that asks.
    pub tool: String,
    /// The name of the MCP server that asks, if the question is from a tool of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The text for the person.
    pub message: String,
    /// The JSON Schema of the input. If the type of the input is not an object, the schema has one property, `value`. Secret fields have
    /// `"x-secret": true`.
    pub schema: Value,
    /// The report on the refused input, if the question is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The position, from 0, among the questions of the outermost call, including questions of nested calls.
    pub(crate) number: u32,
    #[serde(default)]
    pub(crate) refusals: u8,
    /// Whether the input has secrets, which are not stored.
    #[serde(default)]
    pub(crate) is_secret: bool,
    /// Set if a tool of an MCP server asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continuation: Option<Continuation>,
    #[serde(skip)]
    pub(crate) is_announced: bool,
    /// The inputs to other questions of the call, until they are recorded with the call. They may be secret, so they are not serialized.
    #[serde(skip)]
    pub(crate) given: Vec<RecordedInput>,
}

/// The state with which an MCP server continues a call after its questions were answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Continuation {
    pub(crate) key: String,
    /// The server's state of the call, which is sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The replies to the server's other requests, by the keys of the requests. The replies are sent with the inputs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) replies: Map<String, Value>,
    pub(crate) round: u32,
}

impl Question {
    /// Checks an input against the [schema](Self::schema), so that a form can show the issues. The tool also reads the input as a Rust
    /// type. This type may have rules that a schema cannot express. If such a rule refuses the input, the question is asked again.
    ///
    /// # Errors
    /// Returns [`AskError::Refused`] with the report if the input does not fit, or [`AskError::Invalid`] if the schema is not valid.
    pub fn check(&self, input: &Value) -> Result<(), AskError> {
        self.accepted(input).map(drop)
    }

    /// Checks an input against the schema, and returns the coerced input. If the schema has only the property `value`, the returned input
    /// is an object with this property.
    pub(crate) fn accepted(&self, input: &Value) -> Result<Value, AskError> {
        let plan = self.plan()?;
        let [first, second] =
            self.texts(input).map(|text| plan.parse::<Value>(&text).map(|parsed| parsed.value));
        let refused = |report| AskError::Refused { report: list_of_issues(&report) };
        first.or_else(|report| second.map_err(|_| refused(report)))
    }

    /// Compiles the schema. Reports on refused inputs leave out the values of secret fields.
    pub(crate) fn plan(&self) -> Result<Plan, AskError> {
        let mut names = Vec::new();
        marked_names(&self.schema, &mut names);
        let plan = Plan::compile_with_secrets("input", &self.schema, PlanOptions::default(), &names);
        plan.map_err(|error| AskError::Invalid { message: error.to_string() })
    }

    /// Returns the schema as a form: a flat object of scalars, choices and lists of choices, as in MCP's elicitation. Rules that a form
    /// cannot express are in the descriptions; [`check`](Self::check) applies all rules.
    ///
    /// ```
    /// use agent::tool::{Question, QuestionInput};
    /// use agent::{ToolContext, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cx = ToolContext::new().on_question(|question: Question| async move {
    ///     let form = question.form().expect("a number has a form");
    ///     assert_eq!(form["properties"]["value"], json!({"type": "integer", "minimum": 0, "maximum": 255}));
    ///     QuestionInput::Decline
    /// });
    /// assert!(cx.ask::<u8>("How many?").await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`AskError::NoForm`] if the schema has a nested object, a map, a list of free values, or a union.
    pub fn form(&self) -> Result<Value, AskError> {
        crate::schema::form(&self.schema).map_err(|path| AskError::NoForm { path })
    }

    /// Returns whether the schema has only the property `value`. This is the case if the type of the input is not an object.
    pub(super) fn is_wrapped(&self) -> bool {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| properties.len() == 1 && properties.contains_key(VALUE))
    }

    /// Returns two texts to parse, in this order. If the schema has only the property `value`, the input may be the value alone or
    /// `{"value": …}`.
    pub(super) fn texts(&self, input: &Value) -> [String; 2] {
        let plain = input.to_string();
        if !self.is_wrapped() {
            return [plain.clone(), plain];
        }
        let wrapped = Value::Object(Map::from_iter([(VALUE.to_owned(), input.clone())])).to_string();
        let has_property =
            input.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key(VALUE));
        if has_property { [plain, wrapped] } else { [wrapped.clone(), wrapped] }
    }

    pub(crate) fn asks_like(&self, other: &Self) -> bool {
        self.message == other.message && self.schema == other.schema
    }
}

fn marked_names<'s>(schema: &'s Value, names: &mut Vec<&'s str>) {
    match schema {
        Value::Object(keywords) => {
            let properties = keywords.get("properties").and_then(Value::as_object);
            let is_marked = |property: &Value| property.get(SECRET_MARK) == Some(&Value::Bool(true));
            let marked = properties.into_iter().flatten().filter(|(_, property)| is_marked(property));
            names.extend(marked.map(|(name, _)| name.as_str()));
            keywords.values().for_each(|inner| marked_names(inner, names));
        }
        Value::Array(items) => items.iter().for_each(|inner| marked_names(inner, names)),
        _ => {}
    }
}

/// Leaves out the schema and the report, which may be long.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("request_id", &self.request_id)
            .field("path", &self.path)
            .field("tool", &self.tool)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

/// The input of a person to a [`Question`], or the reason why there is none.
///
/// ```
/// use agent::{json, tool::QuestionInput};
///
/// let stored = serde_json::to_value(QuestionInput::Accept(json!({"seats": 4}))).unwrap();
/// assert_eq!(stored, json!({"accept": {"seats": 4}}));
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionInput {
    /// The input. It is checked against the type that the tool asks for, and coerced like arguments.
    Accept(Value),
    /// The person declines to answer: the tool gets [`AskError::Declined`].
    Decline,
    /// The person dismisses the question without a choice: the tool gets [`AskError::Dismissed`].
    Cancel,
    /// The input follows later: the run is suspended.
    Later,
}

/// Shows no input, because it may contain secrets.
impl fmt::Debug for QuestionInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept(_) => "Accept(..)",
            Self::Decline => "Decline",
            Self::Cancel => "Cancel",
            Self::Later => "Later",
        })
    }
}

/// The error of a question that got no answer. If a tool returns this error, the model reads its text.
///
/// ```
/// use agent::{ToolError, ToolOutcome, tool::AskError};
///
/// let error = ToolError::from(AskError::Declined);
/// assert_eq!(error.message(), "the person declined to answer");
/// assert_eq!(ToolOutcome::from(error).code(), Some("declined"));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The person declined.
    #[error("the person declined to answer")]
    Declined,
    /// The person dismissed the question.
    #[error("the person dismissed the question")]
    Dismissed,
    /// An input was refused: the third refused input to a question, or an input that [`Question::check`] refused.
    #[error("the answer does not fit: {report}")]
    #[non_exhaustive]
    Refused {
        /// The report on the refused input.
        report: String,
    },
    /// No person can be asked during this call.
    #[error("no person can be asked here")]
    Unavailable,
    /// The question would have to wait, but the tool cannot be restarted: it has the effect `once`, and not the option `asks`.
    #[error("the question cannot wait for an answer, because the tool `{tool}` cannot be started again")]
    #[non_exhaustive]
    CannotWait {
        /// The name of the tool.
        tool: String,
    },
    /// The question is not valid. The schema of its type cannot be made or compiled, its message is longer than 4 KiB, or it is the 65th
    /// question of its call.
    #[error("the question is not valid: {message}")]
    #[non_exhaustive]
    Invalid {
        /// The reason.
        message: String,
    },
    /// The question cannot be shown as a form, but the client that asks the person needs a form, as in MCP.
    #[error("the question has no form: `{path}` is neither a scalar nor a choice")]
    #[non_exhaustive]
    NoForm {
        /// The JSON Pointer of the value that a form cannot express.
        path: String,
    },
    /// The function that answers questions panicked.
    #[error("the question could not be asked")]
    Failed,
    /// The call is cancelled or over.
    #[error("the call is over")]
    Over,
}

crate::error_text::debug_is_the_sentence!(AskError);

impl AskError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::Dismissed => "dismissed",
            Self::Refused { .. } => "input_refused",
            Self::Unavailable | Self::CannotWait { .. } => CANNOT_ASK,
            Self::Invalid { .. } | Self::NoForm { .. } | Self::Failed => "ask_failed",
            Self::Over => "aborted",
        }
    }
}

/// A question that was asked before the tool restarts, and the input that the restarted tool gets for the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedInput {
    pub(crate) question: Question,
    pub(crate) input: QuestionInput,
}

/// Serializes only inputs without secrets, because secrets are not stored.
pub(crate) fn serialize_inputs<S: serde::Serializer>(
    inputs: &[RecordedInput],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(inputs.iter().filter(|recorded| !recorded.question.is_secret))
}

/// Returns the issues of a report, one on each line, for a person. The other text of a report is addressed to a model.
pub(super) fn list_of_issues(report: &InvalidArguments) -> String {
    report.issues().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
