//! Serializes content for traces, after a function of the application has redacted it.

use crate::args::{push_index, push_segment};
use crate::panics::catch;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The application's redaction function. It gets the JSON Pointer of a text, number or boolean, and may change the value.
pub(crate) type Redact = dyn Fn(&str, &mut Value) + Send + Sync;

/// The serializer of content for traces. Without `redact`, the content is not changed.
#[derive(Clone, Default)]
pub(crate) struct Capture {
    redact: Option<Arc<Redact>>,
}

impl Capture {
    #[cfg(feature = "runtime")]
    pub(crate) fn redacting(redact: Arc<Redact>) -> Self {
        Self { redact: Some(redact) }
    }

    /// Returns the content as JSON text; `None` if the content cannot be serialized, or if `redact` panicked.
    pub(crate) fn json(&self, content: &(impl Serialize + ?Sized)) -> Option<String> {
        let Some(redact) = &self.redact else { return serde_json::to_string(content).ok() };
        let mut content = serde_json::to_value(content).ok()?;
        if catch(|| walk(&mut content, &**redact)).is_err() {
            tracing::error!("the function that redacts captured content panicked; the content is left out");
            return None;
        }
        Some(content.to_string())
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("redacts", &self.redact.is_some()).finish()
    }
}

fn walk(content: &mut Value, redact: &Redact) {
    let mut open = vec![(String::new(), content)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Array(items) => open.extend(items.iter_mut().enumerate().map(|(at, item)| {
                let mut path = path.clone();
                push_index(&mut path, at);
                (path, item)
            })),
            Value::Object(map) => open.extend(map.iter_mut().map(|(key, value)| {
                let mut path = path.clone();
                push_segment(&mut path, key);
                (path, value)
            })),
            leaf => redact(&path, leaf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_is_redacted_by_its_place_and_its_text() {
        let redact = |path: &str, value: &mut Value| {
            if path.ends_with("/card") {
                *value = json!("[card]");
            } else if let Value::String(text) = value {
                *text = text.replace("tulip", "[word]");
            }
        };
        let content = json!([{"content": [{"text": "a tulip"}, {"args": {"card": 4111, "a/b": ["tulip", null, true]}}]}]);
        let text = Capture::redacting(Arc::new(redact)).json(&content).unwrap();
        let wanted = json!([{"content": [{"text": "a [word]"}, {"args": {"card": "[card]", "a/b": ["[word]", null, true]}}]}]);
        assert_eq!(text, wanted.to_string());
        assert_eq!(Capture::default().json(&content).unwrap(), content.to_string());
    }

    #[test]
    fn what_cannot_be_redacted_is_left_out() {
        let capture = Capture::redacting(Arc::new(|_: &str, _: &mut Value| panic!("no")));
        assert_eq!(capture.json("tulip"), None);
        assert_eq!(
            capture.json(&json!({"none": null})),
            Some(r#"{"none":null}"#.to_owned()),
            "nothing to redact"
        );
    }
}
