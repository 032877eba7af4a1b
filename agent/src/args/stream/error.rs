//! The error for argument text that cannot be JSON.

/// The arguments are not one complete JSON value. The error occurs as early as the text allows.
///
/// It quotes nothing of the text. For the report that a model reads, pass the text to [`Plan::parse`](crate::args::Plan::parse).
///
/// ```
/// use agent::args::ArgumentStream;
///
/// let mut stream = ArgumentStream::untyped();
/// let error = stream.push(r#"{"to": nobody"#, &mut |_| {}).unwrap_err();
/// assert!(!error.is_incomplete());
/// assert_eq!(error.offset(), 8);                      // `{"to": n` may be the beginning of `null`
/// assert_eq!(error.to_string(), "not valid JSON: expected `true`, `false` or `null` at byte 8");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON: {fault} at byte {offset}")]
pub struct ArgumentStreamError {
    pub(super) fault: Fault,
    pub(super) offset: usize,
}

crate::error_text::debug_is_the_sentence!(ArgumentStreamError);

impl ArgumentStreamError {
    /// Returns the number of bytes before the mistake: the offset of the first invalid byte.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether the text is only cut short. Then the part so far is valid.
    pub fn is_incomplete(&self) -> bool {
        self.fault == Fault::Incomplete
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the text ends too early")]
    Incomplete,
    #[error("expected a value")]
    NotAValue,
    #[error("expected a key in quotes")]
    NotAKey,
    #[error("expected `:`")]
    NoColon,
    #[error("expected `,` or the end of the object or array")]
    NoSeparator,
    #[error("expected `true`, `false` or `null`")]
    NotALiteral,
    #[error("not a number, or out of range,")]
    NotANumber,
    #[error("a number longer than {} bytes", super::machine::MAX_NUMBER)]
    LongNumber,
    #[error("a control character in a string")]
    ControlCharacter,
    #[error("an escape that JSON does not have")]
    BadEscape,
    #[error("a surrogate that is not one of a pair")]
    LoneSurrogate,
    #[error("objects and arrays are nested too deep")]
    TooDeep,
    #[error("trailing characters")]
    Trailing,
}
