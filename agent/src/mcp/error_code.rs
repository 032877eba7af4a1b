//! The error codes of MCP messages.

/// The code of a JSON-RPC error. JSON-RPC, this library and MCP each define some of the codes.
///
/// ```
/// use agent::mcp::ErrorCode;
///
/// assert_eq!(ErrorCode::InvalidParams.code(), -32602);
/// assert_eq!(ErrorCode::from_code(-32002), Some(ErrorCode::Unauthorized));
/// assert_eq!(ErrorCode::from_code(-1), None);
/// assert_eq!(ErrorCode::Forbidden.to_string(), "forbidden (-32003)");
/// assert_eq!(ErrorCode::Forbidden.as_str(), "forbidden");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorCode {
    /// The message is not JSON.
    ParseError = -32700,
    /// The JSON is not a message of MCP.
    InvalidRequest = -32600,
    /// The method does not exist.
    MethodNotFound = -32601,
    /// The parameters cannot be read, or name an unknown tool.
    InvalidParams = -32602,
    /// The server failed.
    InternalError = -32603,
    /// An error of the server without a more specific code.
    ServerError = -32000,
    /// The requested object does not exist.
    NotFound = -32001,
    /// The token is missing or invalid. Other servers may send this number for a missing resource.
    Unauthorized = -32002,
    /// The caller is not allowed to make this request.
    Forbidden = -32003,
    /// The resource does not exist.
    ResourceNotFound = -32004,
    /// The client sent too many requests.
    RateLimited = -32005,
    /// A header and the body of the request differ, or a required header is missing.
    HeaderMismatch = -32020,
    /// The client lacks a capability that the request needs.
    MissingCapability = -32021,
    /// The version of MCP is not supported.
    UnsupportedVersion = -32022,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [Self; 14] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::InternalError,
        Self::ServerError,
        Self::NotFound,
        Self::Unauthorized,
        Self::Forbidden,
        Self::ResourceNotFound,
        Self::RateLimited,
        Self::HeaderMismatch,
        Self::MissingCapability,
        Self::UnsupportedVersion,
    ];

    /// Returns the number of the code.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// Returns the code with this number, if there is one.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    /// Returns the meaning of the code in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ParseError => "parse error",
            Self::InvalidRequest => "invalid request",
            Self::MethodNotFound => "method not found",
            Self::InvalidParams => "invalid parameters",
            Self::InternalError => "internal error",
            Self::ServerError => "server error",
            Self::NotFound => "not found",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::ResourceNotFound => "resource not found",
            Self::RateLimited => "too many requests",
            Self::HeaderMismatch => "header mismatch",
            Self::MissingCapability => "missing client capability",
            Self::UnsupportedVersion => "unsupported protocol version",
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.as_str(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode as Known;
    use std::collections::HashSet;

    #[test]
    fn the_codes_are_those_of_the_protocol_and_differ() {
        for (own, known) in [
            (ErrorCode::ParseError, Known::PARSE_ERROR),
            (ErrorCode::InvalidRequest, Known::INVALID_REQUEST),
            (ErrorCode::MethodNotFound, Known::METHOD_NOT_FOUND),
            (ErrorCode::InvalidParams, Known::INVALID_PARAMS),
            (ErrorCode::InternalError, Known::INTERNAL_ERROR),
            (ErrorCode::HeaderMismatch, Known::HEADER_MISMATCH),
            (ErrorCode::MissingCapability, Known::MISSING_REQUIRED_CLIENT_CAPABILITY),
            (ErrorCode::UnsupportedVersion, Known::UNSUPPORTED_PROTOCOL_VERSION),
        ] {
            assert_eq!(Known(own.code()), known);
        }
        let codes: HashSet<i32> = ErrorCode::ALL.iter().map(|code| code.code()).collect();
        assert!((-32005..=-32000).chain(-32603..=-32600).chain([-32700]).all(|code| codes.contains(&code)));
        assert_eq!(codes.len(), ErrorCode::ALL.len());
        assert!(ErrorCode::ALL.iter().all(|code| ErrorCode::from_code(code.code()) == Some(*code)));
    }
}
