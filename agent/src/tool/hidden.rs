//! Arguments that the model neither sees nor sends.

use super::definition::ToolDefinition;
use super::definition_error::DefinitionError;
use crate::args::hooks::is_within;
use crate::args::{Coercion, CoercionRule, InvalidArguments, Issue, IssueCode, NotTakenOut, Plan};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;

#[derive(Clone)]
pub(super) struct HiddenArgument {
    pub(super) name: String,
    /// The value that the tool gets; `None` for the argument's default.
    value: Option<Value>,
}

pub(super) struct HiddenArguments {
    /// The definition with all arguments. The arguments are checked against it before the tool runs.
    pub(super) whole: ToolDefinition,
    pub(super) arguments: Vec<HiddenArgument>,
}

impl HiddenArguments {
    pub(super) fn hide(&self, whole: &ToolDefinition) -> Result<ToolDefinition, DefinitionError> {
        without(whole, &self.arguments)
    }

    /// Removes hidden arguments that `prepare` added. Hidden arguments that the model sent stay, so that validation refuses them.
    pub(super) fn remove_added(&self, prepared: &mut Map<String, Value>, sent: &Map<String, Value>) {
        for argument in self.arguments.iter().filter(|argument| !sent.contains_key(&argument.name)) {
            prepared.shift_remove(&argument.name);
        }
    }

    /// Removes the hidden arguments from a report, because the model does not know them. `shown` is the definition that the model saw.
    pub(super) fn rewrite(&self, mut report: InvalidArguments, shown: &ToolDefinition) -> InvalidArguments {
        for argument in &self.arguments {
            report = report.without_place(&argument.pointer());
        }
        report.under(shown.plan())
    }
}

pub(super) fn without(
    definition: &ToolDefinition,
    hidden: &[HiddenArgument],
) -> Result<ToolDefinition, DefinitionError> {
    let plan = definition.plan().without(hidden.iter().map(|argument| &*argument.name));
    let plan = plan.map_err(|error| match error {
        NotTakenOut::Parameter { name, reason } => DefinitionError::Parameter { name, reason },
        NotTakenOut::Schema(error) => error.into(),
    })?;
    let mut options = definition.options().clone();
    for example in options.examples.iter_mut().filter_map(Value::as_object_mut) {
        for argument in hidden {
            example.shift_remove(&argument.name);
        }
    }
    ToolDefinition::with_options(plan, options)
}

pub(super) struct JoinedArguments {
    pub(super) text: String,
    pub(super) coercions: Vec<Coercion>,
    /// The arguments that the model sent, after coercion.
    pub(super) value: Value,
}

impl HiddenArgument {
    pub(super) fn new(name: &str, value: Option<Value>) -> Self {
        Self { name: name.to_owned(), value }
    }

    /// Checks that the argument can be hidden: it has a valid fixed value, or is not required. `validate` checks a call that contains the
    /// argument.
    pub(super) fn check(
        &self,
        plan: &Plan,
        validate: impl Fn(&str) -> Result<Vec<Coercion>, InvalidArguments>,
    ) -> Result<(), DefinitionError> {
        let refuse = |reason: String| Err(DefinitionError::Parameter { name: self.name.clone(), reason });
        let Some(value) = &self.value else {
            return match plan.requires(&self.name) {
                Some(true) => {
                    refuse("a call has to have it, so it cannot be hidden: fix it to a value".to_owned())
                }
                _ => Ok(()),
            };
        };
        // The report also lists other issues, such as missing arguments. Only issues at this path are about the value.
        let alone: Map<String, Value> = [(self.name.clone(), value.clone())].into_iter().collect();
        let path = self.pointer();
        match validate(&Value::Object(alone).to_string()) {
            Ok(_) => Ok(()),
            Err(report) => {
                let own = report.issues().iter().filter(|issue| is_within(&issue.path, &path));
                match own.map(ToString::to_string).collect::<Vec<_>>() {
                    own if own.is_empty() => Ok(()),
                    own => refuse(format!("it cannot be fixed to this value: {}", own.join("; "))),
                }
            }
        }
    }

    pub(super) fn pointer(&self) -> String {
        pointer(&self.name)
    }
}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Checks the model's arguments against `shown`, and adds the fixed values. `shown` is the plan without the hidden arguments, and `whole`
/// is the plan with them.
pub(super) fn join(
    shown: &Plan,
    whole: &Plan,
    hidden: &[HiddenArgument],
    arguments: &str,
) -> Result<JoinedArguments, Box<InvalidArguments>> {
    let parsed = shown.parse::<Value>(arguments).map_err(Box::new)?;
    let Value::Object(sent) = &parsed.value else {
        let text = arguments.to_owned();
        return Ok(JoinedArguments { text, coercions: parsed.coercions, value: parsed.value });
    };
    // If unknown keys are kept, the model could still send a hidden argument, by its name or an alias. Such a call is refused.
    let is_hidden = |key: &&String| {
        whole.parameter_of(key).is_some_and(|name| hidden.iter().any(|argument| argument.name == name))
    };
    let refused: Vec<Issue> = sent.keys().filter(is_hidden).map(|key| unknown(key)).collect();
    if !refused.is_empty() {
        return Err(Box::new(InvalidArguments::new(shown, refused, 0, None)));
    }
    let raw = RawEntries::of(arguments);
    let mut text = String::from("{");
    let mut push = |key: &str, value: &str| {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(key).to_string());
        text.push(':');
        text.push_str(value);
    };
    // A `Value` rounds numbers with many digits. The tool's type may hold all digits, so a rounded number is copied as it was sent.
    let coerced = parsed.coercions.iter().filter(|coercion| coercion.rule != CoercionRule::NumberRounded);
    let coerced: Vec<&str> = coerced.map(|coercion| &*coercion.path).collect();
    for (key, value) in sent {
        let mut text = String::new();
        write(value, raw.get(shown, key), &pointer(key), &coerced, &mut text);
        push(key, &text);
    }
    for argument in hidden {
        if let Some(value) = &argument.value {
            push(&argument.name, &value.to_string());
        }
    }
    text.push('}');
    Ok(JoinedArguments { text, coercions: parsed.coercions, value: parsed.value })
}

/// Writes a value after coercion. Its parts without coercions are copied from `raw`, the sent text, so that numbers keep all digits.
fn write(value: &Value, raw: Option<&str>, path: &str, coerced: &[&str], out: &mut String) {
    let coerced: Vec<&str> = coerced.iter().copied().filter(|at| is_within(at, path)).collect();
    match (value, raw) {
        (_, Some(raw)) if coerced.is_empty() => out.push_str(raw),
        (Value::Object(fields), Some(raw)) if !coerced.contains(&path) => {
            let raw = RawEntries::of(raw);
            for (at, (key, value)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "{" } else { "," });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                let path = format!("{path}{}", pointer(key));
                write(value, raw.named(key), &path, &coerced, out);
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        (Value::Array(items), Some(raw)) if !coerced.contains(&path) => {
            let raw: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "[" } else { "," });
                write(item, raw.get(at).map(|raw| raw.get()), &format!("{path}/{at}"), &coerced, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        _ => out.push_str(&value.to_string()),
    }
}

fn unknown(key: &str) -> Issue {
    Issue::new(pointer(key), IssueCode::Unknown, "unknown parameter")
}

/// The entries of an object, each value as it was written; empty if the text is not an object.
struct RawEntries<'t>(Vec<(String, &'t RawValue)>);

impl<'t> RawEntries<'t> {
    fn of(text: &'t str) -> Self {
        serde_json::from_str(text).unwrap_or(Self(Vec::new()))
    }

    /// Returns the value of a parameter, which may have been sent under an alias.
    fn get(&self, plan: &Plan, name: &str) -> Option<&'t str> {
        // In another variant, an alias may belong to another parameter. If two sent keys are aliases of `name`, neither key is used.
        let mut by_alias = self.0.iter().filter(|(key, _)| plan.parameter_of(key) == Some(name));
        let mut by_alias = || by_alias.next().filter(|_| by_alias.next().is_none());
        self.named(name).or_else(|| by_alias().map(|(_, value)| value.get()))
    }

    fn named(&self, name: &str) -> Option<&'t str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for RawEntries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = RawEntries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(RawEntries(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
