//! The trace that a call belongs to, as it travels in `_meta`.

#[cfg(feature = "mcp-server")]
use rmcp::model::MetaObject;
#[cfg(feature = "mcp-client")]
use rmcp::model::RequestMetaObject;

/// The maximum lengths of `tracestate` and `baggage`, in bytes: what W3C asks every party to pass on.
const MAX_STATE: usize = 512;
const MAX_BAGGAGE: usize = 8_192;

/// The place of a call in a distributed trace: the values of W3C Trace Context and Baggage, which MCP carries in `params._meta` under the
/// keys `traceparent`, `tracestate` and `baggage`.
///
/// This library creates none of them. An application that exports traces gives a function that returns those of the current span to its
/// clients (`ClientConfig::trace_context`), and one that makes them the parent of the current span to its server
/// (`McpServer::on_trace_context`).
///
/// Source: <https://www.w3.org/TR/trace-context/>, SEP-414 of MCP.
///
/// ```
/// use agent::mcp::TraceContext;
///
/// let trace = TraceContext::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("it is valid");
/// let trace = trace.with_tracestate("vendor=1").with_baggage("tenant=7");
/// assert_eq!(trace.traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
/// assert_eq!((trace.tracestate(), trace.baggage()), (Some("vendor=1"), Some("tenant=7")));
///
/// assert!(TraceContext::new("00-00000000000000000000000000000000-00f067aa0ba902b7-01").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
    baggage: Option<String>,
}

impl TraceContext {
    /// Creates the context of a `traceparent`: `VERSION-TRACE_ID-PARENT_ID-FLAGS` in hexadecimal digits. Returns `None` if it is malformed.
    pub fn new(traceparent: impl Into<String>) -> Option<Self> {
        let traceparent = traceparent.into();
        is_traceparent(&traceparent).then_some(Self { traceparent, tracestate: None, baggage: None })
    }

    /// Adds the `tracestate`. One of more than 512 bytes is left out.
    pub fn with_tracestate(mut self, state: impl Into<String>) -> Self {
        self.tracestate = fitting(Some(state.into()), MAX_STATE);
        self
    }

    /// Adds the `baggage`. One of more than 8,192 bytes is left out.
    pub fn with_baggage(mut self, baggage: impl Into<String>) -> Self {
        self.baggage = fitting(Some(baggage.into()), MAX_BAGGAGE);
        self
    }

    /// Returns the `traceparent`.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Returns the `tracestate`.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns the `baggage`.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Reads the context of a request. Malformed values are ignored.
    #[cfg(feature = "mcp-server")]
    pub(super) fn read(meta: &MetaObject) -> Option<Self> {
        let mut context = Self::new(meta.get_traceparent()?)?;
        context.tracestate = fitting(meta.get_tracestate().map(str::to_owned), MAX_STATE);
        context.baggage = fitting(meta.get_baggage().map(str::to_owned), MAX_BAGGAGE);
        Some(context)
    }

    /// Writes the context for a request.
    #[cfg(feature = "mcp-client")]
    pub(super) fn write(self) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        meta.set_traceparent(self.traceparent);
        if let Some(state) = self.tracestate {
            meta.set_tracestate(state);
        }
        if let Some(baggage) = self.baggage {
            meta.set_baggage(baggage);
        }
        meta
    }
}

fn fitting(value: Option<String>, most: usize) -> Option<String> {
    value.filter(|value| !value.is_empty() && value.len() <= most && !value.contains(char::is_control))
}

fn is_traceparent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut field = |digits: usize| {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        parts.next().filter(|part| part.len() == digits && part.bytes().all(is_digit))
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let (Some(version), Some(trace), Some(parent), Some(_)) = (field(2), field(32), field(16), field(2))
    else {
        return false;
    };
    // Later versions may have more fields.
    let has_more = parts.next().is_some();
    !(version == "ff" || is_zero(trace) || is_zero(parent) || version == "00" && has_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_values_are_refused() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let valid = format!("00-{trace}-{parent}-01");
        for text in [valid.clone(), format!("01-{trace}-{parent}-00-more")] {
            assert!(TraceContext::new(&*text).is_some(), "{text}");
        }
        for text in [
            String::new(),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{parent}"),
            format!("{valid}-more"),
            format!("{valid}\n"),
            format!("00-{trace}-{parent}-ä"),
        ] {
            assert!(TraceContext::new(&*text).is_none(), "{text}");
        }
        let context = TraceContext::new(valid).unwrap();
        assert_eq!(context.clone().with_tracestate("a\nb").with_baggage("x".repeat(9_000)), context);
    }
}
