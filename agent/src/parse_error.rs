//! The error of parsing a text.

/// The error of a text that could not be parsed, for example as a [`StepKey`](crate::steps::StepKey), a
/// [`Thinking`](crate::model::Thinking) level, the name of a [`Dialect`](crate::schema::Dialect), base64, a list of prices, or a stream of
/// events. The message of the error says which texts are accepted.
///
/// ```
/// use agent::message::Media;
/// use agent::model::Thinking;
/// use agent::schema::Dialect;
/// use agent::args::ParseError;
/// use agent::steps::StepKey;
///
/// let errors: [ParseError; 4] = [
///     "run-1/tool".parse::<StepKey>().unwrap_err(),
///     "hard".parse::<Thinking>().unwrap_err(),
///     "openai".parse::<Dialect>().unwrap_err(),
///     Media::from_base64("not base64!", "image/png").unwrap_err(),
/// ];
/// let texts = errors.map(|error| error.to_string());
/// assert!(texts[0].starts_with("`run-1/tool` is not a step key: the form is RUN/TURN/KIND/ORD"));
/// assert!(texts[1].starts_with("`hard` is not a thinking level: use none, minimal, low"));
/// assert!(texts[2].starts_with("`openai` is not a dialect: use canonical"));
/// assert!(texts[3].starts_with("the text is not base64: "));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: String,
}

impl ParseError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    pub(crate) fn is_not(text: &str, what: &str, accepted: &str) -> Self {
        Self::new(format!("`{text}` is not {what}: {accepted}"))
    }
}

crate::error_text::debug_is_the_sentence!(ParseError);
