//! `#[tool(…)]`: what may be said about a tool, and where.

use super::timeout;
use crate::diag::Errors;
use crate::grammar::{self, Keys};
use crate::policy::Policy;
use proc_macro2::{Ident, Span, TokenStream};
use std::time::Duration;
use syn::{LitStr, Path};

/// The item that the attribute stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Function,
    Method,
    Struct,
    Block,
}

/// What was said, each value checked.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<Path>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// Whether `description` was given, if only wrongly.
    pub(crate) described: bool,
    pub(crate) title: Option<LitStr>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    /// Where `inline` stands, if it does.
    pub(crate) inline: Option<Span>,
    pub(crate) coerce: Option<Policy>,
    pub(crate) unknown: Option<&'static str>,
    pub(crate) redact_errors: bool,
    pub(crate) type_name: Option<Ident>,
}

const UNKNOWN: &[&str] = &["deny", "strip", "keep"];

const ON_ARGUMENTS: (&[&str], &str) = (
    &["default", "range", "length", "pattern", "rename", "alias", "secret", "nested", "flatten"],
    "it describes one argument, write it in `#[arg(…)]` on the parameter or field",
);
pub(super) const FUNCTION: Keys = Keys {
    known: &[
        "name",
        "description",
        "title",
        "read_only",
        "destructive",
        "idempotent",
        "open_world",
        "timeout",
        "inline",
        "coerce",
        "unknown",
        "redact_errors",
        "type",
        "crate",
    ],
    repeatable: &[],
    elsewhere: &[ON_ARGUMENTS],
};
pub(super) const METHOD: Keys = Keys {
    known: &[
        "name",
        "description",
        "title",
        "read_only",
        "destructive",
        "idempotent",
        "open_world",
        "timeout",
        "inline",
        "coerce",
        "unknown",
        "redact_errors",
    ],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (&["crate"], "write it in the `#[tool(…)]` of the impl block"),
        (&["type"], "a method has no type of its own, its tool belongs to the value of the impl block"),
    ],
};
pub(super) const STRUCT: Keys = Keys {
    known: &[
        "name",
        "description",
        "title",
        "read_only",
        "destructive",
        "idempotent",
        "open_world",
        "timeout",
        "coerce",
        "unknown",
        "redact_errors",
        "crate",
    ],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (&["type"], "the struct is the type of its tool"),
        (&["inline"], "`RunTool::run` is async and never leaves its thread"),
    ],
};
pub(super) const BLOCK: Keys = Keys {
    known: &["crate"],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (FUNCTION.known, "it describes one tool, write it in the `#[tool(…)]` of the method"),
    ],
};

/// Parses the tokens between the parentheses of `#[tool(…)]`.
pub(crate) fn parse(tokens: TokenStream, place: Place, errors: &mut Errors) -> Options {
    let keys = match place {
        Place::Function => FUNCTION,
        Place::Method => METHOD,
        Place::Struct => STRUCT,
        Place::Block => BLOCK,
    };
    let mut options = Options::default();
    let mut end = Span::call_site();
    for entry in grammar::options(tokens, keys, errors) {
        if matches!(entry.key.to_string().as_str(), "read_only" | "destructive") {
            end = entry.key.span();
        }
        match entry.key.to_string().as_str() {
            "crate" => options.krate = entry.path("::agent", errors),
            "name" => options.name = entry.text(errors),
            "description" => {
                options.described = true;
                options.description = entry.some_text(errors);
            }
            "title" => options.title = entry.some_text(errors),
            "read_only" => options.read_only = entry.flag(errors),
            "destructive" => options.destructive = entry.flag(errors),
            "idempotent" => options.idempotent = entry.flag(errors),
            "open_world" => options.open_world = entry.flag(errors),
            "redact_errors" => options.redact_errors = entry.flag(errors) == Some(true),
            "inline" => options.inline = (entry.flag(errors) == Some(true)).then(|| entry.key.span()),
            "coerce" => options.coerce = Policy::of(&entry, errors),
            "unknown" => options.unknown = entry.word(UNKNOWN, errors),
            "type" => options.type_name = entry.name("SearchTool", errors),
            "timeout" => {
                if let Some(text) = entry.text(errors) {
                    match timeout::parse(&text.value()) {
                        Ok(limit) => options.timeout = Some(limit),
                        Err(advice) => errors.at(&text, advice),
                    }
                }
            }
            other => unreachable!("`{other}` is in the table of keys but not read"),
        }
    }
    if options.read_only == Some(true) && options.destructive == Some(true) {
        errors.at_span(end, "a tool that is `read_only` destroys nothing: keep `read_only` or `destructive`");
    }
    if let (Some(inline), Some(_)) = (options.inline, options.timeout) {
        errors.at_span(inline, "a `timeout` cannot stop a function that runs `inline`: keep one of the two");
    }
    options
}
