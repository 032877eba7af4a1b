//! The error of argument text that cannot become JSON.

use crate::parse_error::ParseError;

/// Maximum length of a number token, in bytes.
pub(super) const MAX_NUMBER: usize = 400;

/// The error of a text that is not one complete JSON value. It does not quote the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON: {fault} at byte {offset}")]
pub(super) struct FaultAt {
    pub(super) fault: Fault,
    /// Number of bytes before the invalid byte. For an invalid number, number of bytes before the number.
    pub(super) offset: usize,
}

impl From<FaultAt> for ParseError {
    fn from(fault: FaultAt) -> Self {
        Self::new(fault.to_string())
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
    #[error("a number longer than {} bytes", MAX_NUMBER)]
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
