//! Keeps the digits of numbers when a tool's `prepare` function changes the arguments.

use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Maximum number of decimal digits that a float always keeps.
const SAFE_LENGTH: usize = 15;

/// The fractions and the integers of more than 64 bits in a JSON text. A [`Value`] holds such numbers as floats, and different numbers may
/// be the same float. Therefore each number that may lose digits gets a stand-in: a float that no other number has. The sent text of a
/// number is found by the stand-in, wherever `prepare` moves the stand-in.
pub(super) struct SentNumbers<'t> {
    /// The stand-ins of the numbers that may lose digits.
    stand_ins: HashMap<&'t str, String>,
    /// The sent text of each number, by the text that a `Value` writes for it.
    sent: HashMap<String, &'t str>,
}

impl<'t> SentNumbers<'t> {
    /// Returns `None` if there are not enough floats, because several numbers are next to the greatest float.
    pub(super) fn of(json: &'t str) -> Option<Self> {
        let (mut stand_ins, mut sent, mut rounded) = (HashMap::new(), HashMap::new(), Vec::new());
        for text in numbers(json).into_iter().filter_map(|number| json.get(number)) {
            let Some((float, written)) = read(text) else { continue };
            let digits = text.split(['e', 'E']).next().unwrap_or_default();
            let is_zero = !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
            if digits.len() <= SAFE_LENGTH && (float.is_normal() || is_zero) {
                sent.entry(written).or_insert(text);
            } else {
                rounded.push((float, text));
            }
        }
        rounded.sort_unstable_by(|(one, text), (other, other_text)| {
            one.total_cmp(other).then_with(|| text.cmp(other_text))
        });
        rounded.dedup_by_key(|(_, text)| *text);
        // The search for a free float never goes back, so its time is linear also if all numbers are the same float.
        let mut next = f64::MIN;
        for (float, text) in rounded {
            next = next.max(float);
            loop {
                let stand_in = Number::from_f64(next)?.to_string();
                next = next.next_up();
                if let Entry::Vacant(free) = sent.entry(read(&stand_in)?.1) {
                    free.insert(text);
                    stand_ins.insert(text, stand_in);
                    break;
                }
            }
        }
        Some(Self { stand_ins, sent })
    }

    /// Returns the JSON text from which the arguments for `prepare` are parsed.
    pub(super) fn with_stand_ins(&self, json: &str) -> String {
        replaced(json, |number| self.stand_ins.get(number).map(String::as_str))
    }

    /// Returns the JSON text of the arguments that `prepare` changed, with the sent texts of the numbers.
    pub(super) fn restored(&self, changed: Map<String, Value>) -> String {
        replaced(&Value::Object(changed).to_string(), |number| self.sent.get(number).copied())
    }
}

/// Returns a number as a float, and the text that a `Value` writes for it. Returns `None` for an integer of 64 bits, which is exact.
fn read(number: &str) -> Option<(f64, String)> {
    let number: Number = serde_json::from_str(number).ok()?;
    number.as_f64().filter(|_| number.is_f64()).map(|float| (float, number.to_string()))
}

fn replaced<'n>(json: &str, of: impl Fn(&str) -> Option<&'n str>) -> String {
    let (mut out, mut end) = (String::with_capacity(json.len()), 0);
    for number in numbers(json) {
        out.push_str(&json[end..number.start]);
        end = number.end;
        let number = &json[number];
        out.push_str(of(number).unwrap_or(number));
    }
    out.push_str(&json[end..]);
    out
}

/// Returns the places of the numbers in a JSON text.
fn numbers(json: &str) -> Vec<Range<usize>> {
    let bytes = json.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(is_part).count();
                found.push(start..at);
            }
            _ => {}
        }
    }
    found
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
            r#"{"a":[18446744073709551617,{"b":18446744073709551618,"c":"two"},1],"o":{"x":1.0000000000000000001}}"#
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
    fn numbers_of_the_same_float_are_not_mixed_up() {
        let (one, other) = ("18446744073709551617", "18446744073709551616");
        let sent =
            |list: &[&str]| format!(r#"{{"list":[{}],"in":{{"a":{one},"b":{other}}}}}"#, list.join(","));
        let text = prepared(&sent(&[one, other, one]), |arguments| {
            arguments["list"].as_array_mut().unwrap().remove(0);
        });
        assert_eq!(text, sent(&[other, one]));
        let text = prepared(&sent(&[one, other]), |arguments| {
            arguments["list"].as_array_mut().unwrap().swap(0, 1);
        });
        assert_eq!(text, sent(&[other, one]));
        let text = prepared(&sent(&[]), |arguments| {
            let Some(Value::Object(mut inner)) = arguments.shift_remove("in") else {
                panic!("{arguments:?}")
            };
            arguments.clear();
            arguments.insert("y".to_owned(), inner.remove("b").unwrap());
            arguments.insert("x".to_owned(), inner.remove("a").unwrap());
            arguments.insert("half".to_owned(), json!(0.5));
        });
        assert_eq!(text, format!(r#"{{"y":{other},"x":{one},"half":0.5}}"#));
        // A short number keeps its text, even if a long number is the same float.
        let sent = r#"{"long": 0.50000000000000000001, "short": 0.5, "text": "\"0.5"}"#;
        let text = prepared(sent, |arguments| {
            assert!(arguments.insert("new".into(), arguments["short"].clone()).is_none());
        });
        assert_eq!(text, r#"{"long":0.50000000000000000001,"short":0.5,"text":"\"0.5","new":0.5}"#);
    }

    #[test]
    fn an_object_that_was_sent_as_text_is_prepared() {
        let text = prepared(r#""{\"id\": 18446744073709551617}""#, |arguments| {
            let id = arguments.remove("id").unwrap();
            arguments.insert("order_id".to_owned(), id);
        });
        assert_eq!(text, r#""{\"order_id\":18446744073709551617}""#);
    }

    #[test]
    fn numbers_without_floats_of_their_own_are_refused() {
        let great = |digit: u8| format!("17976931348623157{digit}e291");
        let sent = format!(r#"{{"a": {}, "b": {}}}"#, great(0), great(1));
        assert!(SentNumbers::of(&sent).is_none());
        assert!(SentNumbers::of(&great(0)).is_some());
    }

    #[test]
    fn without_a_change_the_text_is_as_it_was_sent() {
        let sent = r#"{ "n": 18446744073709551617 }"#;
        assert_eq!(prepared(sent, |_| ()), sent);
        assert_eq!(prepared(sent, |arguments| arguments["n"] = json!([1, "é\""])), r#"{"n":[1,"é\""]}"#);
    }
}
