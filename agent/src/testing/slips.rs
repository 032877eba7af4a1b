//! The mistakes that models make in arguments, reproduced for tests.

use super::mutate::{PathSegment, ValuePath, at, paths, pointer, renamed, with, with_key_twice};
use serde_json::{Map, Value, json};

pub(super) struct SlippedCall {
    pub(super) text: String,
    pub(super) place: String,
}

pub(super) struct Slip {
    pub(super) name: &'static str,
    /// Whether a call with this mistake has no correct interpretation, and must be refused.
    pub(super) never: bool,
    make: SlipMaker,
}

enum SlipMaker {
    Value(fn(&Value) -> Vec<Value>),
    Key(fn(&str) -> String),
    /// Takes the arguments and the schema. Returns changed arguments, each with the path of the mistake.
    Whole(fn(&Value, &Value) -> Vec<(Value, String)>),
    /// Returns texts to send instead of the arguments. Texts that parse as JSON are dropped.
    Text(fn(&Value) -> Vec<String>),
}

impl Slip {
    /// Returns calls with this mistake, made from correct arguments. A mistake in a value or key is made at every
    /// path at which it is possible.
    pub(super) fn of(&self, arguments: &Value, schema: &Value) -> Vec<SlippedCall> {
        match self.make {
            SlipMaker::Value(change) => paths(arguments)
                .iter()
                .flat_map(|place| {
                    let old = at(arguments, place).unwrap_or(&Value::Null);
                    change(old).into_iter().filter(move |new| new != old).map(|new| SlippedCall {
                        text: with(arguments, place, Some(new)).to_string(),
                        place: pointer(place),
                    })
                })
                .collect(),
            SlipMaker::Key(change) => {
                paths(arguments).iter().filter_map(|place| rename(arguments, place, change)).collect()
            }
            SlipMaker::Whole(change) => change(arguments, schema)
                .into_iter()
                .map(|(value, place)| SlippedCall { text: value.to_string(), place })
                .collect(),
            SlipMaker::Text(change) => change(arguments)
                .into_iter()
                .filter(|text| serde_json::from_str::<Value>(text).is_err())
                .map(|text| SlippedCall { text, place: String::new() })
                .chain(self.twice(arguments))
                .collect(),
        }
    }

    /// Returns calls with a repeated key, for the mistake [`TWICE`]. The function in `make` cannot make them, because texts that parse as
    /// JSON are dropped.
    fn twice(&self, arguments: &Value) -> Vec<SlippedCall> {
        let keys = arguments.as_object().into_iter().flat_map(Map::keys);
        let twice = |key: &String| {
            let place: ValuePath = vec![PathSegment::Key(key.clone())];
            SlippedCall { text: with_key_twice(arguments, &place), place: pointer(&place) }
        };
        if self.name == TWICE { keys.map(twice).collect() } else { Vec::new() }
    }
}

fn rename(arguments: &Value, place: &[PathSegment], change: fn(&str) -> String) -> Option<SlippedCall> {
    let (PathSegment::Key(key), parent) = place.split_last()? else { return None };
    let new = change(key);
    if new == *key || at(arguments, parent)?.get(&new).is_some() {
        return None;
    }
    let renamed = renamed(arguments, parent, key, &new);
    let mut place = parent.to_vec();
    place.push(PathSegment::Key(new));
    Some(SlippedCall { text: renamed.to_string(), place: pointer(&place) })
}

const TWICE: &str = "a key twice";

const fn value(name: &'static str, change: fn(&Value) -> Vec<Value>) -> Slip {
    Slip { name, never: false, make: SlipMaker::Value(change) }
}

const fn key(name: &'static str, change: fn(&str) -> String) -> Slip {
    Slip { name, never: false, make: SlipMaker::Key(change) }
}

const fn whole(name: &'static str, change: fn(&Value, &Value) -> Vec<(Value, String)>) -> Slip {
    Slip { name, never: false, make: SlipMaker::Whole(change) }
}

const fn text(name: &'static str, change: fn(&Value) -> Vec<String>) -> Slip {
    Slip { name, never: true, make: SlipMaker::Text(change) }
}

pub(super) static SLIPS: &[Slip] = &[
    value("a number as text", |v| number(v, |n| vec![json!(n.to_string()), json!(format!(" {n} "))])),
    value("a number with separators", |v| {
        number(v, |n| vec![json!(format!("{n},000")), json!(format!("{n}_000"))])
    }),
    value("a number with its unit", |v| {
        number(v, |n| vec![json!(format!("{n} km")), json!(format!("${n}")), json!(format!("{n}%"))])
    }),
    value("a number in words", |v| number(v, |_| vec![json!("five"), json!("about ten")])),
    value("a whole number as a float", |v| v.as_i64().map(whole_float).into_iter().collect()),
    value("a fraction for a whole number", |v| {
        v.as_i64().and(v.as_f64()).map(|v| json!(v + 0.5)).into_iter().collect()
    }),
    value("a huge number", |v| number(v, |_| vec![json!(1e300), json!(u64::MAX), json!(-1e300)])),
    value("a number for text", |v| string(v, |_| vec![json!(7), json!(2.5)])),
    value("a boolean as text", |v| boolean(v, |b| vec![json!(b.to_string())])),
    value("a boolean as in Python", |v| boolean(v, |b| vec![json!(if b { "True" } else { "False" })])),
    value("a boolean as 0 or 1", |v| {
        boolean(v, |b| vec![json!(u8::from(b)), json!(u8::from(b).to_string())])
    }),
    value("yes or no", |v| {
        boolean(v, |b| vec![json!(if b { "yes" } else { "no" }), json!(if b { "on" } else { "off" })])
    }),
    value("text in capitals", |v| string(v, |s| vec![json!(s.to_uppercase()), json!(capitalised(s))])),
    value("text with spaces for separators", |v| {
        string(v, |s| vec![json!(s.replace(['_', '-'], " ")), json!(format!(" {s} "))])
    }),
    value("text that is nearly a word", |v| string(v, |s| vec![json!(swapped(s)), json!(format!("{s}s"))])),
    value("very long text", |v| string(v, |s| vec![json!(format!("{s}{}", "lorem ipsum ".repeat(2_000)))])),
    value("empty text", |_| vec![json!("")]),
    value("\"null\" or \"None\"", |_| vec![json!("null"), json!("None"), json!("N/A"), json!("undefined")]),
    whole("null for what is required", |v, s| at_top(v, s, true, |_| Some(Value::Null))),
    whole("null for what is optional", |v, s| at_top(v, s, false, |_| Some(Value::Null))),
    value("null further inside", |_| vec![Value::Null]),
    whole("a missing key", |v, s| at_top(v, s, true, |_| None)),
    value("a list as text", |v| v.as_array().map(|_| json!(v.to_string())).into_iter().collect()),
    value("a list with commas", |v| {
        v.as_array().map(|items| json!(with_commas(items))).into_iter().collect()
    }),
    value("an object as text", |v| v.as_object().map(|_| json!(v.to_string())).into_iter().collect()),
    value("one item for a list", |v| {
        v.as_array().and_then(|items| items.first().cloned()).into_iter().collect()
    }),
    value("a list for one item", |v| if v.is_array() { vec![] } else { vec![json!([v])] }),
    value("a list in a list", |v| if v.is_array() { vec![json!([v])] } else { vec![] }),
    value("a list as an object", |v| v.as_array().map(|items| numbered(items)).into_iter().collect()),
    value("an object as a list", |v| {
        v.as_object().map(|map| map.values().cloned().collect()).into_iter().collect()
    }),
    value("an object around a value", |v| vec![json!({"value": v}), json!({"type": "string", "value": v})]),
    value("deep nesting", |v| vec![nested(v, 60)]),
    key("keys in camelCase", camel),
    key("keys in kebab-case", |key| key.replace('_', "-")),
    key("keys in PascalCase", |key| capitalised(&camel(key))),
    key("keys in capitals", str::to_uppercase),
    key("keys with spaces", |key| key.replace('_', " ")),
    key("misspelled keys", swapped),
    whole("unknown keys", |v, _| {
        let mut more = v.clone();
        more["explanation"] = json!("because");
        vec![(more, "/explanation".to_owned())]
    }),
    whole("the arguments as text", |v, _| vec![(json!(v.to_string()), String::new())]),
    whole("the arguments as text, twice", |v, _| {
        vec![(json!(json!(v.to_string()).to_string()), String::new())]
    }),
    whole("the arguments in a list", |v, _| vec![(json!([v]), String::new())]),
    whole("the arguments in an object", |v, _| {
        vec![
            (json!({"arguments": v}), String::new()),
            (json!({"name": "tool", "arguments": v}), String::new()),
            (json!({"parameters": v.to_string()}), String::new()),
        ]
    }),
    whole("the values only", |v, _| {
        vec![(v.as_object().map(|map| map.values().cloned().collect()).unwrap_or_default(), String::new())]
    }),
    whole("the schema for the arguments", |_, s| vec![(s.clone(), String::new())]),
    whole("null for the arguments", |_, _| vec![(Value::Null, String::new())]),
    text(TWICE, |_| vec![]),
    text("a trailing comma", |v| vec![replaced_end(v, ",}")]),
    text("a code fence", |v| vec![format!("```json\n{v}\n```"), format!("```\n{v}```")]),
    text("words around", |v| {
        vec![
            format!("Here are the arguments: {v}"),
            format!("{v}\n\nDone."),
            format!("<tool_call>{v}</tool_call>"),
        ]
    }),
    text("cut short", cut_short),
    text("two calls in one", |v| vec![format!("{v}{v}"), format!("{v}\n{v}")]),
    text("comments", |v| {
        vec![format!("// the call\n{v}"), replaced_end(v, " /* done */}"), replaced_end(v, " # done\n}")]
    }),
    text("single quotes", |v| vec![v.to_string().replace('"', "'")]),
    text("words of Python", |v| vec![replaced_end(v, ",\"zz\":None}"), replaced_end(v, ",\"zz\":True}")]),
    text("keys without quotes", |v| vec![unquoted_keys(v)]),
    text("numbers that JSON has not", |v| {
        ["NaN", "Infinity", "0x10", "01", "+1", ".5", "1_000"]
            .map(|n| replaced_end(v, &format!(",\"zz\":{n}}}")))
            .into()
    }),
    text("half a surrogate pair", |v| {
        vec![replaced_end(v, ",\"zz\":\"\\ud83d\"}"), replaced_end(v, ",\"zz\":\"\\ude00x\"}")]
    }),
    text("line breaks in text", |v| vec![replaced_end(v, ",\"zz\":\"one\ntwo\"}")]),
    text("nesting without end", |v| {
        vec![replaced_end(v, &format!(",\"zz\":{}", "[".repeat(10_000))), "{\"a\":".repeat(10_000)]
    }),
];

fn number(v: &Value, change: impl Fn(&serde_json::Number) -> Vec<Value>) -> Vec<Value> {
    v.as_number().map(change).unwrap_or_default()
}

fn string(v: &Value, change: impl Fn(&str) -> Vec<Value>) -> Vec<Value> {
    v.as_str().map(change).unwrap_or_default()
}

fn boolean(v: &Value, change: impl Fn(bool) -> Vec<Value>) -> Vec<Value> {
    v.as_bool().map(change).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a large number that is rounded is a slip, too")]
fn whole_float(v: i64) -> Value {
    json!(v as f64)
}

/// Returns variants of the arguments, each with one top-level parameter replaced or removed. `required` selects between required and
/// optional parameters.
fn at_top(
    v: &Value,
    schema: &Value,
    required: bool,
    new: fn(&Value) -> Option<Value>,
) -> Vec<(Value, String)> {
    let names = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &String| names.is_some_and(|names| names.iter().any(|name| name == key));
    let known = |key: &&String| schema.get("properties").is_some_and(|all| all.get(key.as_str()).is_some());
    let keys = v.as_object().into_iter().flat_map(Map::keys);
    keys.filter(known)
        .filter(|key| is_required(key) == required)
        .map(|key| {
            let place: ValuePath = vec![PathSegment::Key(key.clone())];
            (with(v, &place, new(v)), pointer(&place))
        })
        .collect()
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn camel(key: &str) -> String {
    let mut words = key.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |out, word| out + &capitalised(word))
}

fn swapped(text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let middle = chars.len() / 2;
    if middle > 0 {
        chars.swap(middle - 1, middle);
    }
    chars.into_iter().collect()
}

fn with_commas(items: &[Value]) -> String {
    let words = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
    words.collect::<Vec<_>>().join(", ")
}

fn numbered(items: &[Value]) -> Value {
    Value::Object(items.iter().enumerate().map(|(i, item)| (i.to_string(), item.clone())).collect())
}

fn nested(v: &Value, depth: usize) -> Value {
    (0..depth).fold(v.clone(), |inner, _| json!([inner]))
}

fn replaced_end(v: &Value, end: &str) -> String {
    let text = v.to_string();
    let open = text.strip_suffix('}').unwrap_or(&text);
    let end = if open.ends_with('{') { end.trim_start_matches(',') } else { end };
    format!("{open}{end}")
}

fn cut_short(v: &Value) -> Vec<String> {
    let text = v.to_string();
    let places = (1..8).map(|eighth| text.len() * eighth / 8).chain([text.len() - 1]);
    places
        .filter_map(|end| text.get(..end))
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

fn unquoted_keys(v: &Value) -> String {
    let entries = v.as_object().into_iter().flatten().map(|(key, value)| format!("{key}: {value}"));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}
