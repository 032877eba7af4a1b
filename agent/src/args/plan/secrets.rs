//! Arguments without their secrets.

use std::collections::HashSet;

use serde_json::Value;

use super::{Graph, Kind, Plan};

/// Replaces a secret.
const WITHHELD: &str = "[secret]";

impl Plan {
    /// Returns arguments as others may see them, in a log or on a screen. Values marked secret become `"[secret]"`, and so do the
    /// values of keys that the tool does not know, because one may be a misspelled secret. `None` if the tool has no secrets.
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

/// What stands in a value that belongs to a plan with secrets, under secret names and under those that no parameter has: as
/// texts.
pub(crate) fn secret_texts(graph: &Graph, value: &Value) -> Vec<String> {
    fn leaves(value: &Value, all: bool, names: &Names<'_>, out: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    leaves(value, all || names.hide(key), names, out);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| leaves(item, all, names, out)),
            Value::Null => {}
            Value::String(text) if all => out.push(text.clone()),
            other if all => out.push(other.to_string()),
            _ => {}
        }
    }
    let mut out = Vec::new();
    // A scalar where an object may have secrets is one of them.
    leaves(value, !value.is_object() && !value.is_array(), &Names::of(graph), &mut out);
    out
}

/// The names of parameters, by whether they are secret.
struct Names<'g> {
    known: HashSet<&'g str>,
    secret: HashSet<&'g str>,
}

impl<'g> Names<'g> {
    fn of(graph: &'g Graph) -> Names<'g> {
        let (mut known, mut secret) = (HashSet::new(), HashSet::new());
        for node in &graph.nodes {
            match &node.kind {
                Kind::Object(object) => {
                    for prop in &object.props {
                        let names = prop.aliases.iter().chain([&prop.name]).map(String::as_str);
                        if prop.secret { secret.extend(names) } else { known.extend(names) }
                    }
                }
                Kind::External(external) => known.extend(external.names()),
                _ => {}
            }
        }
        Names { known, secret }
    }

    fn hide(&self, key: &str) -> bool {
        self.secret.contains(key) || !self.known.contains(key)
    }
}

/// Hides the values marked secret, and those of keys that the tool does not know, because one may be a misspelled secret. `None`
/// if the tool has no secrets. The flag tells whether anything was hidden.
pub(crate) fn withheld(plan: &Plan, args: &Value) -> Option<(Value, bool)> {
    let graph = plan.graph();
    if !graph.has_secrets() {
        return None;
    }
    let names = Names::of(graph);
    let mut shown = args.clone();
    let is_object = shown.is_object();
    let mut left_out = walk(&mut shown, &names, 0);
    if !is_object {
        // Text that is not even JSON: there is no telling what stands where.
        shown = Value::String(WITHHELD.to_owned());
        left_out = true;
    }
    Some((shown, left_out))
}

/// Maximum depth; deeper values are hidden as a whole. Arguments that pass a check are not that deep.
const MAX_DEPTH: usize = 128;

fn walk(value: &mut Value, names: &Names<'_>, depth: usize) -> bool {
    let hide = |value: &mut Value| *value = Value::String(WITHHELD.to_owned());
    if depth >= MAX_DEPTH {
        hide(value);
        return true;
    }
    let mut left_out = false;
    match value {
        Value::Array(items) => {
            for item in items {
                left_out |= walk(item, names, depth + 1);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                if names.hide(key) {
                    hide(value);
                    left_out = true;
                } else {
                    left_out |= walk(value, names, depth + 1);
                }
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
    struct Open {
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
        let open = Plan::for_type::<Open>("open", PlanOptions::default());
        assert!(withheld(&open.unwrap(), &args).is_none());
    }

    #[test]
    fn what_is_no_object_is_left_out_as_a_whole() {
        let text = json!("{\"login\": {\"password\": \"p");
        assert_eq!(withheld(&plan(), &text).unwrap(), (json!("[secret]"), true));
        assert_eq!(withheld(&plan(), &json!({"user": "ann"})).unwrap(), (json!({"user": "ann"}), false));
    }
}
