//! Hides secrets in arguments.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::finish::mark_secrets;
use super::{Graph, NodeKind, Plan, SchemaError};
use crate::args::policy::PlanOptions;

const WITHHELD: &str = "[secret]";

impl Plan {
    /// Returns arguments without secrets, for a log or a screen. Returns `None` if the tool has no secrets. Values marked secret become
    /// `"[secret]"`. The values of unknown keys are hidden, too, because such a key may be the misspelled name of a secret. Texts, numbers
    /// and booleans in place of an object with secrets are also hidden.
    ///
    /// ```
    /// use agent::args::{Plan, PlanOptions};
    /// use agent::{ToolArgs, json};
    ///
    /// /// Signs in.
    /// #[derive(ToolArgs)]
    /// struct SignIn {
    ///     user: String,
    ///     #[arg(secret)]
    ///     password: String,
    /// }
    ///
    /// let plan = Plan::for_type::<SignIn>("sign_in", PlanOptions::default())?;
    /// let sent = json!({"user": "ann", "password": "p"});
    /// assert_eq!(plan.without_secrets(&sent), Some(json!({"user": "ann", "password": "[secret]"})));
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn without_secrets(&self, args: &Value) -> Option<Value> {
        withheld(self, args).map(|(shown, _)| shown)
    }
}

impl Plan {
    /// Compiles a schema like [`compile`](Self::compile). The parameters with these names, at any depth, are secret; an `x-secret` in the
    /// schema is ignored.
    pub(crate) fn compile_with_secrets(
        name: &str,
        schema: &Value,
        options: PlanOptions,
        names: &[&str],
    ) -> Result<Plan, SchemaError> {
        let mut plan = Self::compile(name, schema, options)?;
        // The graph of a new plan is not shared.
        if let Some(graph) = Arc::get_mut(&mut plan.graph) {
            for node in &mut graph.nodes {
                let NodeKind::Object(object) = &mut node.kind else { continue };
                object.props.iter_mut().for_each(|prop| prop.secret |= names.contains(&&*prop.name));
            }
            mark_secrets(&mut graph.nodes);
        }
        Ok(plan)
    }
}

/// Returns the names and aliases of the secret arguments, in alphabetical order.
pub(crate) fn secret_names(graph: &Graph) -> Vec<&str> {
    let mut names: Vec<&str> = SecretNames::of(graph).secret.into_iter().collect();
    names.sort_unstable();
    names
}

/// Returns the texts, numbers and booleans in `value` that may be secret: the values of secret arguments, the values below unknown keys,
/// and the values in place of an object with secrets. The caller has checked that the plan has secrets.
pub(crate) fn secret_texts(graph: &Graph, value: &Value) -> Vec<String> {
    fn leaves(value: &Value, stance: Stance, names: &SecretNames<'_>, out: &mut Vec<String>) {
        match (value, stance) {
            (Value::Object(map), _) => {
                for (key, value) in map {
                    let below = if stance == Stance::Hide { stance } else { names.stance(key) };
                    leaves(value, below, names, out);
                }
            }
            (Value::Array(items), _) => items.iter().for_each(|item| leaves(item, stance, names, out)),
            (Value::String(text), Stance::Show) => {
                if let Some(inner) = container(text) {
                    leaves(&inner, stance, names, out);
                }
            }
            (Value::Null, _) | (_, Stance::Show) => {}
            (Value::String(text), _) => {
                // The JSON text of an object may contain the secrets of the object.
                if let Some(inner) = container(text) {
                    leaves(&inner, stance, names, out);
                }
                out.push(text.clone());
            }
            (other, _) => out.push(other.to_string()),
        }
    }
    let mut out = Vec::new();
    // A single scalar in place of the arguments may be a secret. The scalars of a list are left to the caller.
    let stance = if value.is_array() { Stance::Show } else { Stance::Enter };
    leaves(value, stance, &SecretNames::of(graph), &mut out);
    out
}

pub(crate) fn all_texts(value: &Value) -> Vec<String> {
    let (mut out, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            Value::String(text) => out.push(text.clone()),
            other => out.push(other.to_string()),
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stance {
    Show,
    /// The value contains secrets. An object or a list is shown without its secrets, and any other value except null is hidden.
    Enter,
    Hide,
}

struct SecretNames<'g> {
    known: HashSet<&'g str>,
    holders: HashSet<&'g str>,
    secret: HashSet<&'g str>,
}

impl<'g> SecretNames<'g> {
    fn of(graph: &'g Graph) -> SecretNames<'g> {
        let mut names =
            SecretNames { known: HashSet::new(), holders: HashSet::new(), secret: HashSet::new() };
        for node in &graph.nodes {
            match &node.kind {
                NodeKind::Object(object) => {
                    for prop in &object.props {
                        let all = prop.aliases.iter().chain([&prop.name]).map(String::as_str);
                        if prop.secret {
                            names.secret.extend(all);
                        } else if graph.node(prop.node).holds_secret {
                            names.holders.extend(all);
                        } else {
                            names.known.extend(all);
                        }
                    }
                }
                NodeKind::External(external) => {
                    names.known.extend(external.units.names().chain(external.units.aliases()));
                    for variant in &external.variants {
                        let holds = graph.node(variant.node).holds_secret;
                        let set = if holds { &mut names.holders } else { &mut names.known };
                        set.extend(variant.aliases.iter().chain([&variant.name]).map(String::as_str));
                    }
                }
                _ => {}
            }
        }
        names
    }

    fn stance(&self, key: &str) -> Stance {
        if self.secret.contains(key) {
            Stance::Hide
        } else if self.holders.contains(key) {
            Stance::Enter
        } else if self.known.contains(key) {
            Stance::Show
        } else {
            Stance::Hide
        }
    }
}

/// Returns the arguments without secrets, like [`Plan::without_secrets`], and whether anything was hidden.
pub(crate) fn withheld(plan: &Plan, args: &Value) -> Option<(Value, bool)> {
    let graph = plan.graph();
    if !graph.has_secrets() {
        return None;
    }
    let names = SecretNames::of(graph);
    let mut shown = args.clone();
    if !shown.is_object() {
        // Arguments that are not an object may contain a secret anywhere, for example in text that is not JSON.
        return Some((hidden(), true));
    }
    let left_out = walk(&mut shown, Stance::Enter, &names, 0);
    Some((shown, left_out))
}

pub(crate) fn hidden() -> Value {
    Value::String(WITHHELD.to_owned())
}

fn container(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// Maximum depth of a value. A deeper value is hidden as a whole.
const MAX_DEPTH: usize = 128;

fn walk(value: &mut Value, stance: Stance, names: &SecretNames<'_>, depth: usize) -> bool {
    let hides = match (&*value, stance) {
        _ if depth >= MAX_DEPTH => true,
        (_, Stance::Hide) => true,
        (Value::Null | Value::Object(_) | Value::Array(_), _) => false,
        (_, Stance::Enter) => true,
        // The JSON text of an object may have the secrets of the object.
        (Value::String(text), Stance::Show) => {
            container(text).is_some_and(|mut inner| walk(&mut inner, stance, names, depth + 1))
        }
        (_, Stance::Show) => false,
    };
    if hides {
        *value = hidden();
        return true;
    }
    let mut left_out = false;
    match value {
        Value::Array(items) => {
            for item in items {
                left_out |= walk(item, stance, names, depth + 1);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                left_out |= walk(value, names.stance(key), names, depth + 1);
            }
        }
        _ => {}
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::PlanOptions;
    use serde_json::json;

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Login {
        user: String,
        login: Credentials,
    }

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Credentials {
        #[schemars(extend("x-secret" = true))]
        password: String,
    }

    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct PlainUser {
        user: String,
    }

    fn plan() -> Plan {
        Plan::for_type::<Login>("login", PlanOptions::default()).unwrap()
    }

    #[test]
    fn secrets_and_unknown_keys_are_left_out_at_any_depth() {
        let args = json!({"user": "ann", "login": {"password": "p", "pasword": "p"}, "x": 1});
        let (shown, left_out) = withheld(&plan(), &args).unwrap();
        assert!(left_out);
        let hidden =
            json!({"user": "ann", "login": {"password": "[secret]", "pasword": "[secret]"}, "x": "[secret]"});
        assert_eq!(shown, hidden);
        let open = Plan::for_type::<PlainUser>("open", PlanOptions::default());
        assert!(withheld(&open.unwrap(), &args).is_none());
    }

    #[test]
    fn what_stands_in_place_of_an_object_with_secrets_is_left_out() {
        for args in [
            json!({"login": "p"}),
            json!({"login": r#"{"password": "p"}"#}),
            json!({"login": ["p"]}),
            json!({"login": [["p"], 7]}),
            json!({"user": r#"{"password": "p"}"#}),
            json!({"user": r#" {"user": "{\"password\": \"p\"}"}"#}),
            json!({"user": {"password": "p", "x": "p"}}),
        ] {
            let (shown, left_out) = withheld(&plan(), &args).unwrap();
            assert!(left_out && !shown.to_string().replace("password", "").contains('p'), "{args}: {shown}");
        }
        for args in [json!({"login": null}), json!({"user": "[1, 2]"}), json!({"user": ["ann", 7]})] {
            assert_eq!(withheld(&plan(), &args).unwrap(), (args.clone(), false));
        }
    }

    #[test]
    fn texts_of_secrets_are_found_in_json_text_too() {
        let texts = |value: Value| secret_texts(plan().graph(), &value);
        let sent = json!({"user": "ann", "login": {"password": "tulip"}});
        assert_eq!(texts(sent.clone()), ["tulip"]);
        assert!(texts(json!(sent.to_string())).contains(&"tulip".to_owned()));
        assert!(!texts(json!(sent.to_string())).contains(&"ann".to_owned()));
        assert!(texts(json!({"login": r#"{"password": "tulip"}"#})).contains(&"tulip".to_owned()));
    }

    #[test]
    fn what_is_no_object_is_left_out_as_a_whole() {
        let text = json!("{\"login\": {\"password\": \"p");
        assert_eq!(withheld(&plan(), &text).unwrap(), (json!("[secret]"), true));
        assert_eq!(withheld(&plan(), &json!({"user": "ann"})).unwrap(), (json!({"user": "ann"}), false));
    }
}
