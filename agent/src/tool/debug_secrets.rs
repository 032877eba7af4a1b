//! Tests whether the `Debug` of a type shows its secret arguments.
//!
//! A macro does not see how a type implements `Debug`. Therefore two values that differ only in a secret are created, and their `Debug`
//! texts are compared.

use crate::args::{Plan, PlanOptions, hidden, secret_samples, withheld};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Two functions about a type: the first returns its name, the second returns whether its `Debug` shows secret fields.
pub type AskDebug = (fn() -> &'static str, fn() -> bool);

pub(crate) const EXTENSION: &str = "x-debug";

type Shows = fn() -> bool;

/// The functions that test whether `Debug` shows secrets, by the name of the tested type. Types in different functions may share a name.
static TYPES: Mutex<BTreeMap<&'static str, Vec<Shows>>> = Mutex::new(BTreeMap::new());

/// Adds the name in `ask` to the schema of the type, and stores the function in `ask` under that name. Without `ask`, does nothing.
#[must_use]
pub fn debug_is_asked(mut schema: Schema, ask: Option<AskDebug>) -> Schema {
    if let Some((name, shows)) = ask {
        let name = name();
        let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = types.entry(name).or_default();
        if !known.iter().any(|other| std::ptr::fn_addr_eq(*other, shows)) {
            known.push(shows);
        }
        schema.insert(EXTENSION.to_owned(), name.into());
    }
    schema
}

/// Returns whether the `Debug` of a type shows its secrets. `name` is the value of the keyword [`EXTENSION`].
pub(super) fn is_shown_by(name: &str) -> bool {
    let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = types.get(name).cloned().unwrap_or_default();
    drop(types);
    // `Debug` is code of the application, so it may panic. A type whose test panics is not reported.
    asked.iter().any(|shows| catch_unwind(AssertUnwindSafe(shows)).unwrap_or(false))
}

/// An object with a value of any type, because only objects can be arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(bound = "T: DeserializeOwned")]
struct Holder<T> {
    value: T,
}

/// Returns whether the `Debug` text of a `T` changes with a secret in it. Returns `false` if no `T` can be created.
pub(super) fn shows_secrets<T: Debug + DeserializeOwned + JsonSchema>() -> bool {
    let Ok(plan) = Plan::for_type::<Holder<T>>("holder", PlanOptions::default()) else { return false };
    let text = |value: &Value| {
        let parsed = plan.parse::<Holder<T>>(&value.to_string()).ok()?;
        Some(format!("{:?}", parsed.value.value))
    };
    secret_samples(&plan).iter().filter_map(|sample| serde_json::from_str::<Value>(sample).ok()).any(
        |sample| {
            let Some((shown, true)) = withheld(&plan, &sample) else { return false };
            let mut places = Vec::new();
            secret_leaves(&sample, &shown, false, &mut String::new(), &mut places);
            places.iter().any(|place| {
                let variants = sample.pointer(place).map(variants).unwrap_or_default();
                let texts: Vec<String> = std::iter::once(sample.clone())
                    .chain(variants.into_iter().map(|variant| {
                        let mut other = sample.clone();
                        if let Some(at) = other.pointer_mut(place) {
                            *at = variant;
                        }
                        other
                    }))
                    .filter_map(|value| text(&value))
                    .collect();
                texts.windows(2).any(|two| two.first() != two.last())
            })
        },
    )
}

/// Returns values of the same kind that differ from `value`. Texts keep their length, because a `Debug` that shows only the length of a
/// secret is allowed.
fn variants(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => vec![json!(number.saturating_add(1)), json!(number.saturating_sub(1))],
            None => number.as_f64().map(|number| json!(number + 0.5)).into_iter().collect(),
        },
        Value::String(text) => {
            let shifted = |shift: u8| {
                let shift = |char: char| match char {
                    'a'..='y' | 'A'..='Y' | '0'..='8' => {
                        char::from(u8::try_from(char).unwrap_or(b'a').saturating_add(shift))
                    }
                    other => other,
                };
                Value::String(text.chars().map(shift).collect())
            };
            // The second variant changes only the last character, which often keeps a required format, such as a date.
            let mut last: Vec<char> = text.chars().collect();
            if let Some(char) = last.last_mut() {
                *char = match *char {
                    '0'..='8' => '9',
                    'a' => 'b',
                    _ => 'a',
                };
            }
            vec![shifted(1), Value::String(last.into_iter().collect())]
        }
        _ => Vec::new(),
    }
}

fn secret_leaves(sent: &Value, shown: &Value, is_below: bool, path: &mut String, places: &mut Vec<String>) {
    let is_hidden = is_below || *shown == hidden() && sent != shown;
    let length = path.len();
    match sent {
        Value::Object(map) => {
            for (key, value) in map {
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                secret_leaves(value, shown.get(key).unwrap_or(shown), is_hidden, path, places);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(path, "/{at}");
                secret_leaves(value, shown.get(at).unwrap_or(shown), is_hidden, path, places);
                path.truncate(length);
            }
        }
        Value::Null => {}
        _ if is_hidden => places.push(path.clone()),
        _ => {}
    }
}
