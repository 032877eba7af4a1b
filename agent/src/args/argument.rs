//! Reads one parameter of a call's validated arguments as a Rust type, for hooks and rules of the application.

use super::judge::TextJudge;
use super::plan::{NodeId, NodeKind, ObjectSpec, PlanNode, UnlistedKey};
use super::read::{Context, IsKey, PlanDe, ValuePosition};
use super::{Document, Plan, did_you_mean, hidden};
use serde::de::value::Error as Plain;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use std::cell::Cell;
use std::marker::PhantomData;
use std::{any::type_name, fmt};

/// The error of reading a parameter of a call. The error never contains the value of the parameter.
///
/// ```
/// use agent::args::ArgumentError;
/// use agent::{Assistant, BeforeCall, ScriptedModel, model::reply, tool, tools};
///
/// /// Sends money.
/// #[tool]
/// fn send(amount: u64) -> String {
///     format!("{amount} sent")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([reply().tool_call("send", r#"{"amount": 500}"#), reply().text("Done.")]);
/// let assistant = Assistant::builder(model)
///     .tools(tools![send])
///     .before_tool_call(|call| async move {
///         assert!(matches!(call.arg::<u64>("amuont"), Err(ArgumentError::Unknown { suggestions, .. }) if suggestions == ["amount"]));
///         assert!(matches!(call.arg::<u8>("amount"), Err(ArgumentError::Type { .. })));
///         call.arg::<u8>("amount")?;                   // an error is the end of the call
///         Ok(BeforeCall::Continue)
///     })
///     .build()?;
/// assistant.prompt("Send 500.").await?;
/// assert!(assistant.messages().get(2).unwrap().text().contains("`amount` of `send` cannot be read as `u8`"));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The tool has no such parameter.
    #[error("`{tool}` has no parameter `{name}`{}", meant(suggestions))]
    #[non_exhaustive]
    Unknown {
        /// The name of the tool.
        tool: String,
        /// The requested name.
        name: String,
        /// The names of similar parameters, the most similar first.
        suggestions: Vec<String>,
    },
    /// The call omits the parameter, and no default is known. If the parameters of the tool are known, a requested `Option` is `None`
    /// instead of this error.
    #[error(
        "the call of `{tool}` has no `{name}`, and no default of it is known: \
         an `Option` is `None` if the parameters of the tool are known"
    )]
    #[non_exhaustive]
    Missing {
        /// The name of the tool.
        tool: String,
        /// The name of the parameter.
        name: String,
    },
    /// The value, or the default of an absent parameter, cannot be read as the requested type.
    #[error("`{name}` of `{tool}` cannot be read as `{wanted}`")]
    #[non_exhaustive]
    Type {
        /// The name of the tool.
        tool: String,
        /// The name of the parameter.
        name: String,
        /// The requested type, as `std::any::type_name` names it.
        wanted: &'static str,
    },
    /// The value is or contains a secret. The arguments contain a placeholder in its place.
    #[error("`{name}` of `{tool}` is secret and withheld here")]
    #[non_exhaustive]
    Withheld {
        /// The name of the tool.
        tool: String,
        /// The name of the parameter.
        name: String,
    },
    /// The arguments do not fit the parameters of the tool.
    #[error("the arguments of `{tool}` do not fit its parameters")]
    #[non_exhaustive]
    Unreadable {
        /// The name of the tool.
        tool: String,
    },
}

crate::error_text::debug_is_the_sentence!(ArgumentError);

impl ArgumentError {
    #[cfg(feature = "runtime")]
    pub(crate) fn unreadable(tool: &str) -> Self {
        Self::Unreadable { tool: tool.to_owned() }
    }
}

fn meant(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        all => format!("; did you mean `{}`?", all.join("` or `")),
    }
}

impl Plan {
    /// Reads one top-level parameter from the text that the model sent. The caller has checked that the text fits this `Plan`.
    #[cfg(feature = "runtime")]
    pub(crate) fn argument<T: DeserializeOwned>(&self, sent: &str, name: &str) -> Result<T, ArgumentError> {
        let text = if sent.trim_start().is_empty() { "{}" } else { sent };
        let error = match self.pick(text, name, false) {
            Err(error @ (ArgumentError::Type { .. } | ArgumentError::Unreadable { .. })) => error,
            read => return read,
        };
        // The arguments may fit only after a repair of their structure, for example of an object that was sent as a JSON string.
        match self.explain(text, &|cx, text| super::read::<Value>(cx, text).map(drop)) {
            Ok(again) => self.pick(&again.text, name, false),
            Err(_) => Err(error),
        }
    }

    /// Reads one top-level parameter from coerced arguments. Integers beyond 64 bits are strings in their JSON. These strings are read as
    /// integers under every policy.
    pub(crate) fn checked_argument<T: DeserializeOwned>(
        &self,
        checked: &str,
        name: &str,
    ) -> Result<T, ArgumentError> {
        self.pick(checked, name, true)
    }

    fn pick<T: DeserializeOwned>(
        &self,
        text: &str,
        name: &str,
        is_canonical: bool,
    ) -> Result<T, ArgumentError> {
        let graph = self.graph();
        let unreadable = || ArgumentError::Unreadable { tool: self.name().to_owned() };
        if !self.takes(name) {
            let suggestions = did_you_mean(name, self.parameter_names()).into_iter().map(str::to_owned);
            let (tool, name) = (self.name().to_owned(), name.to_owned());
            return Err(ArgumentError::Unknown { tool, name, suggestions: suggestions.collect() });
        }
        let judge = TextJudge::new(graph, text);
        let context = if is_canonical { Context::canonical } else { Context::silent };
        let cx = context(graph, text, &judge);
        let node = root_object(&cx, text).ok_or_else(unreadable)?;
        let prop = match &node.kind {
            NodeKind::Object(object) => object.find(name, 0).and_then(|index| object.props.get(index)),
            _ => None,
        };
        let name = prop.map_or(name, |prop| &prop.name);
        let state = Cell::new(MemberState::Absent);
        let mut de = serde_json::Deserializer::from_str(text);
        let pick = MemberPicker { name, state: &state, value: PhantomData };
        let found = PlanDe { de: &mut de, at: &ValuePosition::root(&cx, node) }.deserialize_map(pick);
        let found = found.and_then(|found| de.end().map(|()| found));
        let wrong_type = || ArgumentError::Type {
            tool: self.name().to_owned(),
            name: name.to_owned(),
            wanted: type_name::<T>(),
        };
        match found {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(_) if state.get() == MemberState::Found => return Err(wrong_type()),
            Err(_) => return Err(unreadable()),
        }
        let default = prop.and_then(|prop| Some((prop.node, prop.notes.get("default")?)));
        match default {
            Some((node, default)) => {
                let text = default.to_string();
                let judge = TextJudge::new(graph, &text);
                value(&Context::canonical(graph, &text, &judge), node, &text).ok_or_else(wrong_type)
            }
            None => T::deserialize(Absent)
                .map_err(|_| ArgumentError::Missing { tool: self.name().to_owned(), name: name.to_owned() }),
        }
    }

    fn takes(&self, name: &str) -> bool {
        let graph = self.graph();
        let takes = |object: &ObjectSpec| {
            object.child(name, 0).is_some() || graph.unlisted(object, true) == UnlistedKey::Kept
        };
        graph.objects(graph.root).into_iter().any(takes)
    }
}

/// Reads a top-level parameter without a `Plan`. A missing parameter is an error even for an `Option`: its name may be wrong.
pub(crate) fn argument_without_plan<T: DeserializeOwned>(
    tool: &str,
    checked: &str,
    name: &str,
) -> Result<T, ArgumentError> {
    let unreadable = || ArgumentError::Unreadable { tool: tool.to_owned() };
    let own = || (tool.to_owned(), name.to_owned());
    let withheld = || {
        let (tool, name) = own();
        ArgumentError::Withheld { tool, name }
    };
    let document = Document::parse(checked).map_err(|_| unreadable())?;
    let secret = hidden();
    if document.root.text() == secret.as_str() {
        return Err(withheld());
    }
    let Some(entry) = document.root.entry(name) else {
        let (tool, name) = own();
        return Err(ArgumentError::Missing { tool, name });
    };
    if entry.raw.contains(&secret.to_string()) {
        return Err(withheld());
    }
    let open = Plan::compile(tool, &Value::Object(serde_json::Map::new()), super::PlanOptions::default());
    let open = open.map_err(|_| unreadable())?;
    let graph = open.graph();
    // An integer of more than 64 bits was written as a string. If `T` does not accept the string, the integer is read.
    let digits = entry.text().filter(|text| {
        text.parse::<i64>().is_err()
            && text.parse::<u64>().is_err()
            && (text.parse::<u128>().is_ok() || text.parse::<i128>().is_ok())
    });
    let read = |text: &str| {
        let judge = TextJudge::new(graph, text);
        value(&Context::silent(graph, text, &judge), graph.any, text)
    };
    read(entry.raw).or_else(|| read(digits?)).ok_or_else(|| {
        let (tool, name) = own();
        ArgumentError::Type { tool, name, wanted: type_name::<T>() }
    })
}

/// Returns the node of the whole arguments, if it is an object or `NodeKind::Any`. Of several alternatives, chooses the one that describes
/// `text`.
fn root_object<'c>(cx: &'c Context<'c>, text: &str) -> Option<&'c PlanNode> {
    /// Maximum number of nested alternatives. No compiled schema has so many.
    const MOST: usize = 1000;
    let mut node = cx.graph.node(cx.graph.root);
    for _ in 0..MOST {
        match &node.kind {
            NodeKind::Object(_) | NodeKind::Any => return Some(node),
            _ => node = cx.look_ahead(&ValuePosition::root(cx, node), text).ok()?,
        }
    }
    None
}

fn value<T: DeserializeOwned>(cx: &Context<'_>, node: NodeId, text: &str) -> Option<T> {
    let mut de = serde_json::Deserializer::from_str(text);
    let node = cx.graph.node(node);
    T::deserialize(PlanDe { de: &mut de, at: &ValuePosition::root(cx, node) }).ok()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberState {
    Absent,
    /// The key was found, but its value was not read.
    Found,
    Read,
}

/// A visitor that reads the value of one key and skips all others. `PlanDe` has already replaced each alias by the name of the key.
struct MemberPicker<'n, T> {
    name: &'n str,
    state: &'n Cell<MemberState>,
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for MemberPicker<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = access.next_key_seed(IsKey(self.name))? {
            if is_wanted {
                self.state.set(MemberState::Found);
                found = Some(access.next_value()?);
                self.state.set(MemberState::Read);
            } else {
                access.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// An absent value, from which only an `Option` can be read.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = Plain;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Plain> {
        Err(Plain::custom("absent"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Plain> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(all(test, feature = "runtime"))]
mod tests;
