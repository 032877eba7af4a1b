//! Makes the message about an unknown key.

use super::Keys;
use crate::diag::{listed, nearest};

/// Returns the message about an unknown key: where the key belongs, which option has this name in other libraries, a similar key, or the
/// list of all options.
pub(super) fn unknown(name: &str, keys: Keys) -> String {
    if let Some((_, advice)) = keys.elsewhere.iter().find(|(names, _)| names.contains(&name)) {
        return format!("`{name}` does not belong here: {advice}");
    }
    // Each entry has names from other libraries, an option, and advice. An attribute gives the advice only if the attribute accepts the
    // option. The option only selects attributes. It need not mean the same as the names.
    let elsewhere = [
        (&["min", "minimum", "ge"][..], "range", "write `range(1..)`, or with the other end `range(1..=50)`"),
        (&["max", "maximum", "le"], "range", "write `range(..=50)`, or with the other end `range(1..=50)`"),
        (&["gt", "lt"], "range", "write `range(1..=50)`, which includes both ends"),
        (
            &["min_length", "min_len", "minLength", "min_items", "minItems"],
            "length",
            "write `length(1..)`, or with the other end `length(1..=50)`",
        ),
        (
            &["max_length", "max_len", "maxLength", "max_items", "maxItems"],
            "length",
            "write `length(..=50)`, or with the other end `length(1..=50)`",
        ),
        (&["len"], "length", "write `length(5)`, or `length(1..=50)`"),
        (
            &["optional", "required"],
            "default",
            "an argument may be left out when its type is `Option<T>`, or with `default`",
        ),
        (&["regex"], "pattern", "write `pattern = \"…\"`"),
        (&["enum", "choices", "values"], "range", "derive `ToolArgs` for an enum, and take that type"),
        (
            &["params", "args", "arguments", "parameters", "param"],
            "examples",
            "write `/// …` above each parameter, or `#[arg(description = \"…\")]`",
        ),
        (
            &["optional", "required"],
            "examples",
            "an argument may be left out when its type is `Option<T>`, or with `#[arg(default)]`",
        ),
        (
            &["annotations", "hints"],
            "read_only",
            "write the hints themselves: `read_only`, `destructive`, `idempotent`, `open_world`",
        ),
        (
            &["input_schema", "schema", "output_schema", "returns", "return_type"],
            "examples",
            "schemas are made from the types of the parameters and of the result",
        ),
        (
            &["needs_approval", "require_approval", "requires_approval", "confirm", "requires_confirmation"],
            "approval",
            "write `approval = \"always\"`, or a rule: `approval = when(|amount: &u64| *amount > 100)`",
        ),
        (
            &["retries", "retry"],
            "max_retries",
            "write `max_retries = 2` for better calls of the model, or `max_attempts = 3`",
        ),
        (
            &["sequential", "parallel", "concurrent"],
            "exclusive",
            "tools run side by side: write `exclusive` for one that must not",
        ),
        (&["meta", "metadata", "_meta", "tags"], "examples", "write `extend(\"key\" = JSON)`"),
        (
            &["blocking", "sync", "spawn_blocking"],
            "inline",
            "a function that is not async runs where it may block anyway",
        ),
        (&["strict_schema", "strict_mode"], "strict", "write `strict`"),
        (&["version"], "examples", "write `extend(\"version\" = \"…\")`"),
        (
            &["enabled", "disabled", "is_enabled"],
            "examples",
            "a tool exists where it is listed: leave it out of `tools![…]`, or put `#[cfg(…)]` above it",
        ),
        (
            &["structured_output", "output"],
            "examples",
            "return a type that derives `ToolOutput`, and clients get it as data, with its schema",
        ),
        (
            &["tool_box", "toolbox", "tool_router", "router", "server_handler", "vis"],
            "set",
            "`#[tool]` alone marks the block, and its value is listed: `tools![value]`",
        ),
        (&["deferred", "defer_loading", "lazy"], "defer", "write `defer`"),
        (&["desc", "doc", "about", "help"], "description", "write a doc comment, or `description = \"…\"`"),
    ];
    let foreign =
        elsewhere.iter().find(|(names, ours, _)| names.contains(&name) && keys.known.contains(ours));
    if let Some((_, _, advice)) = foreign {
        return format!("unknown option `{name}`: {advice}");
    }
    match nearest(name, keys.known) {
        Some(near) => format!("unknown option `{name}`: did you mean `{near}`?"),
        None => format!("unknown option `{name}`: the options are {}", listed(keys.known, "and")),
    }
}
