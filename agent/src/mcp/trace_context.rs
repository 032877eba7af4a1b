//! The trace context of a call, which is sent in `_meta`.

use std::collections::HashMap;

#[cfg(feature = "mcp-server")]
use rmcp::model::MetaObject;
#[cfg(feature = "mcp-client")]
use rmcp::model::RequestMetaObject;

/// Maximum lengths of `tracestate` and `baggage`, in bytes. W3C requires every participant to propagate values of these lengths.
const MAX_STATE: usize = 512;
const MAX_BAGGAGE: usize = 8_192;

/// The keys of W3C Trace Context and Baggage.
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// Reads the context of a request, without malformed and too long values. Returns `None` if there is no valid `traceparent`.
#[cfg(feature = "mcp-server")]
pub(super) fn read(meta: &MetaObject) -> Option<HashMap<String, String>> {
    checked(meta.get_traceparent(), meta.get_tracestate(), meta.get_baggage())
}

/// Returns the metadata of a request with this context, without malformed and too long values. Returns `None` if there is no valid
/// `traceparent`.
#[cfg(feature = "mcp-client")]
pub(super) fn write(context: &HashMap<String, String>) -> Option<RequestMetaObject> {
    let value = |key: &str| context.get(key).map(String::as_str);
    let mut context = checked(value(PARENT), value(STATE), value(BAGGAGE))?;
    let mut meta = RequestMetaObject::new();
    meta.set_traceparent(context.remove(PARENT)?);
    if let Some(state) = context.remove(STATE) {
        meta.set_tracestate(state);
    }
    if let Some(baggage) = context.remove(BAGGAGE) {
        meta.set_baggage(baggage);
    }
    Some(meta)
}

fn checked(
    parent: Option<&str>,
    state: Option<&str>,
    baggage: Option<&str>,
) -> Option<HashMap<String, String>> {
    let parent = parent.filter(|parent| is_traceparent(parent))?;
    let values = [
        (PARENT, Some(parent)),
        (STATE, fitting(state, MAX_STATE)),
        (BAGGAGE, fitting(baggage, MAX_BAGGAGE)),
    ];
    Some(values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned()))).collect())
}

fn fitting(value: Option<&str>, most: usize) -> Option<&str> {
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
    // Only versions later than `00` may have more fields.
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
            assert!(checked(Some(&text), None, None).is_some(), "{text}");
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
            assert!(checked(Some(&text), Some("a=1"), None).is_none(), "{text}");
        }
        let parent_alone = checked(Some(&valid), Some("a\nb"), Some(&"x".repeat(9_000)));
        assert_eq!(parent_alone, Some(HashMap::from([(PARENT.to_owned(), valid)])));
    }
}
