//! A snapshot of a set of tools, to be compared with a later state.

use super::definition::ToolDefinition;
use super::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::fmt;

const MAX_DIFFERENCES: usize = 200;
/// Maximum length of a value in the description of a difference, in characters.
const SHOWN: usize = 80;

impl ToolDefinition {
    /// Returns a fingerprint of the definition, as 32 hexadecimal digits. It changes when the name, the description, the parameters or
    /// another part of the serialized [definition](ToolDefinition) changes. It does not depend on the machine or on the order of keys.
    ///
    /// ```
    /// # use agent::{Registry, tool, tools};
    /// # /// Adds.
    /// # #[tool] fn add(a: i64, b: i64) -> i64 { a + b }
    /// let registry = Registry::new(tools![add])?;
    /// assert_eq!(registry.definitions()[0].fingerprint().len(), 32);
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn fingerprint(&self) -> String {
        let mut hash = Fnv::default();
        hash.value(&shown(self));
        format!("{:032x}", hash.0)
    }
}

impl Registry {
    /// Returns a snapshot of the definitions of these tools, to be stored and [compared](ToolManifest::drift) later.
    ///
    /// ```
    /// use agent::{Registry, lint::ToolManifest, tool, tools};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// let registry = Registry::new(tools![add])?;
    /// let file = serde_json::to_string_pretty(&registry.manifest())?;
    /// let stored: ToolManifest = serde_json::from_str(&file)?;
    /// assert!(stored.drift(&registry.manifest()).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn manifest(&self) -> ToolManifest {
        ToolManifest { tools: self.definitions().iter().map(shown).collect() }
    }
}

fn shown(definition: &ToolDefinition) -> Value {
    // A definition consists of names, texts and JSON, which always serialize.
    serde_json::to_value(definition).unwrap_or_default()
}

/// A snapshot of the definitions of a set of tools, as data. A changed definition changes the prompt. If the snapshot is a file in a
/// repository, each change is visible for review.
///
/// ```
/// use agent::{Registry, lint::ToolManifest, tool, tools};
///
/// /// Books a room.
/// #[tool]
/// fn book(#[arg(range(1..=14))] nights: u32, breakfast: Option<bool>) {}
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // An older manifest. Usually it is read from a file that contains `serde_json::to_string_pretty(&registry.manifest())`.
/// let before: ToolManifest = serde_json::from_str(r#"{"tools": [{
///     "name": "book", "description": "Books a room.",
///     "parameters": {"type": "object", "additionalProperties": false, "required": ["nights"],
///         "properties": {"nights": {"type": "integer", "minimum": 1, "maximum": 30}}}
/// }]}"#)?;
/// let drift = before.drift(&Registry::new(tools![book])?.manifest());
/// assert_eq!(
///     drift,
///     [
///         "`book` /parameters/properties/nights/maximum: 30 is now 14",
///         r#"`book` /parameters/properties/breakfast: new, {"type":"boolean"}"#,
///     ]
/// );                                                  // a test would assert that `drift` is empty
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolManifest {
    tools: Vec<Value>,
}

impl ToolManifest {
    /// Returns a fingerprint of the tools, as 32 hexadecimal digits. It changes when a definition or the order of the tools changes.
    /// [`drift`](Self::drift) lists the changes.
    ///
    /// ```
    /// # /// Adds.
    /// # #[agent::tool] fn add(a: i64, b: i64) -> i64 { a + b }
    /// # /// Subtracts.
    /// # #[agent::tool] fn subtract(a: i64, b: i64) -> i64 { a - b }
    /// use agent::{Registry, tools};
    ///
    /// let one = Registry::new(tools![add, subtract])?.manifest();
    /// let other = Registry::new(tools![subtract, add])?.manifest();
    /// assert_eq!(one.fingerprint(), one.clone().fingerprint());
    /// assert_ne!(one.fingerprint(), other.fingerprint());
    /// # Ok::<(), agent::tool::RegistryError>(())
    /// ```
    pub fn fingerprint(&self) -> String {
        let mut hash = Fnv::default();
        self.tools.iter().for_each(|tool| hash.value(tool));
        format!("{:032x}", hash.0)
    }

    /// Returns the differences between this manifest and `now`, one sentence for each. Differences of the tools of this manifest come
    /// first, then new tools, then a changed order of the tools. After 200 differences, one more sentence gives the number of the remaining
    /// differences.
    pub fn drift(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for before in &self.tools {
            let name = name_of(before);
            match now.tools.iter().find(|tool| name_of(tool) == name) {
                Some(after) => compare(name, "", before, after, &mut differences),
                None => differences.push(difference(name, "", DifferenceKind::Removed, None, None)),
            }
        }
        for after in &now.tools {
            if self.tools.iter().all(|tool| name_of(tool) != name_of(after)) {
                differences.push(difference(name_of(after), "", DifferenceKind::Added, None, None));
            }
        }
        let common = |of: &Self, other: &Self| -> Vec<String> {
            let names = of.tools.iter().map(|tool| name_of(tool).to_owned());
            names.filter(|own| other.tools.iter().any(|tool| name_of(tool) == own)).collect()
        };
        if let Some((_, moved)) =
            common(self, now).into_iter().zip(common(now, self)).find(|(one, other)| one != other)
        {
            differences.push(difference(&moved, "", DifferenceKind::Moved, None, None));
        }
        let more = differences.len().saturating_sub(MAX_DIFFERENCES);
        differences.truncate(MAX_DIFFERENCES);
        if more > 0 {
            differences.push(format!("and {more} more"));
        }
        differences
    }
}

fn name_of(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Compares objects key by key. A list that differs is one difference.
fn compare(tool: &str, path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match other.get(key) {
                    Some(now) => compare(tool, &path, value, now, found),
                    None => found.push(difference(tool, &path, DifferenceKind::Removed, Some(value), None)),
                }
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(difference(tool, &path, DifferenceKind::Added, None, Some(value)));
            }
        }
        (one, other) if is_same(one, other) => {}
        _ => found.push(difference(tool, path, DifferenceKind::Changed, Some(before), Some(after))),
    }
}

/// Compares two values, one of which may have been written as JSON and read again. Without the feature `float_roundtrip`, `serde_json` may
/// read a nearby float instead.
fn is_same(one: &Value, other: &Value) -> bool {
    /// Maximum distance from the written float to the read float. Neighboring floats have the distance 1.
    const STEPS: u64 = 4;
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in =
                |(key, one): (&String, &Value)| other.get(key).is_some_and(|other| is_same(one, other));
            one.len() == other.len() && one.iter().all(is_in)
        }
        (Value::Number(first), Value::Number(second)) if first.is_f64() && second.is_f64() => {
            let bits = |number: &Number| number.as_f64().unwrap_or_default().to_bits();
            one == other || bits(first).abs_diff(bits(second)) <= STEPS
        }
        _ => one == other,
    }
}

struct ToolDifference<'m> {
    tool: &'m str,
    /// The JSON pointer into the definition; empty for the whole tool.
    path: &'m str,
    kind: DifferenceKind,
    before: Option<&'m Value>,
    after: Option<&'m Value>,
}

#[derive(Clone, Copy)]
enum DifferenceKind {
    Added,
    Removed,
    Changed,
    /// The order of the tools changed; the tool is the first one with another position.
    Moved,
}

fn difference(
    tool: &str,
    path: &str,
    kind: DifferenceKind,
    before: Option<&Value>,
    after: Option<&Value>,
) -> String {
    ToolDifference { tool, path, kind, before, after }.to_string()
}

impl fmt::Display for ToolDifference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, path, kind, before, after } = self;
        write!(f, "`{tool}`")?;
        if !path.is_empty() {
            write!(f, " {path}")?;
        }
        let short = |value: Option<&Value>| {
            let text = value.map(Value::to_string).unwrap_or_default();
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        };
        match kind {
            DifferenceKind::Added if path.is_empty() => f.write_str(": a new tool"),
            DifferenceKind::Removed if path.is_empty() => f.write_str(": the tool is gone"),
            DifferenceKind::Added => write!(f, ": new, {}", short(*after)),
            DifferenceKind::Removed => write!(f, ": gone, it was {}", short(*before)),
            DifferenceKind::Changed => write!(f, ": {} is now {}", short(*before), short(*after)),
            DifferenceKind::Moved => f.write_str(": the tools are in another order"),
        }
    }
}

/// 128-bit FNV-1a (RFC 9923) over JSON with sorted keys, so that the order of keys does not matter.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                self.bytes(b"{");
                for key in keys {
                    self.bytes(Value::from(key.as_str()).to_string().as_bytes());
                    self.bytes(b":");
                    self.value(&map[key]);
                    self.bytes(b",");
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                    self.bytes(b",");
                }
                self.bytes(b"]");
            }
            other => self.bytes(other.to_string().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_that_are_read_imprecisely_are_no_drift() {
        let manifest = |default: f64| ToolManifest {
            tools: vec![json!({"name": "t", "default": default, "enum": [{"at": default}, 1]})],
        };
        let written = 110.000_000_000_000_01_f64;
        for read in [written, written.next_up(), written.next_down()] {
            assert_eq!(manifest(read).drift(&manifest(written)), Vec::<String>::new());
        }
        assert_eq!(manifest(110.1).drift(&manifest(written)).len(), 2);
    }
}
