//! Writes the JSON text of arguments that a tool's `prepare` function changed.

use std::cell::LazyCell;
use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Returns the JSON text of `changed`. `sent` contains the arguments before the change, and `raw` is the text from which `sent` was
/// parsed. Values that did not change are copied from `raw`, so that their numbers keep all digits.
pub(super) fn changed_text(changed: &Map<String, Value>, sent: &Map<String, Value>, raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    write_object(changed, sent, raw, &mut out);
    out
}

fn write_value(changed: &Value, sent: &Value, raw: &str, out: &mut String) {
    match (changed, sent) {
        _ if changed == sent => out.push_str(raw),
        (Value::Object(changed), Value::Object(sent)) => write_object(changed, sent, raw, out),
        (Value::Array(changed), Value::Array(sent)) => {
            let raw: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            out.push('[');
            for (at, item) in changed.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                match sent.get(at).zip(raw.get(at)) {
                    Some((sent, raw)) => write_value(item, sent, raw.get(), out),
                    None => out.push_str(&item.to_string()),
                }
            }
            out.push(']');
        }
        _ => out.push_str(&changed.to_string()),
    }
}

fn write_object(changed: &Map<String, Value>, sent: &Map<String, Value>, raw: &str, out: &mut String) {
    let raw: HashMap<String, &RawValue> = serde_json::from_str(raw).unwrap_or_default();
    // The texts, as sent, of the values whose keys `prepare` removed. `prepare` may have moved such a value to another key.
    let removed = LazyCell::new(|| {
        let removed = sent.iter().filter(|(key, _)| !changed.contains_key(*key));
        let texts = removed.filter_map(|(key, value)| Some((value.to_string(), raw.get(key)?.get())));
        texts.collect::<HashMap<_, _>>()
    });
    out.push('{');
    for (at, (key, value)) in changed.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        if let Some((sent, raw)) = sent.get(key).zip(raw.get(key)) {
            write_value(value, sent, raw.get(), out);
        } else {
            let text = value.to_string();
            out.push_str(removed.get(&text).copied().unwrap_or(&text));
        }
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::value::Tool;

    fn prepared(sent: &str, change: impl Fn(&mut Map<String, Value>) + Send + Sync + 'static) -> String {
        let schema = json!({"type": "object", "additionalProperties": true});
        let tool = Tool::new("t", "Does it.", schema, |_args, _cx| async { "done" }).unwrap();
        let prepare = move |arguments: &mut Map<String, Value>| {
            change(arguments);
            Ok(())
        };
        let tool = tool.configure(|options| options.prepare(prepare)).unwrap();
        tool.check(sent, None).unwrap().text().to_owned()
    }

    #[test]
    fn numbers_that_were_not_changed_keep_all_digits() {
        let text = prepared(r#"{"n": 18446744073709551617, "d": 1.10, "old": 1}"#, |arguments| {
            arguments.insert("new".to_owned(), json!(true));
            arguments.shift_remove("old");
        });
        assert_eq!(text, r#"{"n":18446744073709551617,"d":1.10,"new":true}"#);
        let text = prepared(
            r#"{"a": [18446744073709551617, {"b": 18446744073709551618, "c": 1}, 1], "o": {"x": 1.0000000000000000001}}"#,
            |arguments| arguments["a"][1]["c"] = json!("two"),
        );
        assert_eq!(
            text,
            r#"{"a":[18446744073709551617,{"b":18446744073709551618,"c":"two"},1],"o":{"x": 1.0000000000000000001}}"#
        );
    }

    #[test]
    fn an_argument_with_another_name_keeps_its_digits() {
        let text = prepared(r#"{"id": 18446744073709551617, "x": 18446744073709551618}"#, |arguments| {
            let id = arguments.shift_remove("id").unwrap();
            arguments.insert("order_id".to_owned(), id);
        });
        assert_eq!(text, r#"{"x":18446744073709551618,"order_id":18446744073709551617}"#);
    }

    #[test]
    fn without_a_change_the_text_is_as_it_was_sent() {
        let sent = r#"{ "n": 18446744073709551617 }"#;
        assert_eq!(prepared(sent, |_| ()), sent);
        assert_eq!(prepared(sent, |arguments| arguments["n"] = json!([1, "é\""])), r#"{"n":[1,"é\""]}"#);
    }
}
