//! `#[tool(…)]`: what may be said about a tool, and where.

use super::approval::Approval;
use super::timeout;
use crate::diag::Errors;
use crate::doc::Text;
use crate::grammar::{self, Entry, Keys};
use crate::policy::Policy;
use proc_macro2::{Ident, Span, TokenStream};
use std::time::Duration;
use syn::{Expr, LitStr, Path};

/// The item that the attribute stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Function,
    Method,
    /// A struct, or an enum of actions.
    Type,
    Block,
}

/// What was said, each value checked.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<Path>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Text>,
    /// Whether `description` was given, if only wrongly.
    pub(crate) described: bool,
    pub(crate) doc: Doc,
    pub(crate) require_docs: bool,
    pub(crate) title: Option<LitStr>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) effect: Option<&'static str>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) max_attempts: Option<Expr>,
    pub(crate) max_retries: Option<Expr>,
    pub(crate) approval: Option<Approval>,
    pub(crate) exclusive: bool,
    pub(crate) cache: Option<bool>,
    pub(crate) allow_repeat: bool,
    pub(crate) follow_up: bool,
    pub(crate) max_result_bytes: Option<Expr>,
    /// What the model reads in the place of `None`.
    pub(crate) none: Option<LitStr>,
    pub(crate) strict: Option<bool>,
    pub(crate) defer: bool,
    /// JSON objects, as tokens of `json!`.
    pub(crate) examples: Vec<TokenStream>,
    /// Keys and JSON, as tokens of `json!`.
    pub(crate) extend: Vec<(LitStr, TokenStream)>,
    /// Where `inline` stands, if it does.
    pub(crate) inline: Option<Span>,
    pub(crate) coerce: Option<Policy>,
    pub(crate) unknown: Option<&'static str>,
    pub(crate) redact_errors: bool,
    pub(crate) type_name: Option<Ident>,
    /// The name of a further block of tools.
    pub(crate) set: Option<Ident>,
    /// Whether `set` was given, if only wrongly.
    pub(crate) is_further: bool,
}

/// What becomes of the doc comment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doc {
    /// All but the sections for people.
    #[default]
    ForModels,
    /// The first paragraph.
    Summary,
    /// All of it.
    All,
    /// Nothing of it.
    Nothing,
}

/// `timeout = …`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timeout {
    After(Duration),
    Never,
}

const UNKNOWN: &[&str] = &["deny", "strip", "keep"];
const EFFECTS: &[&str] = &["pure", "idempotent", "once"];

const ON_ARGUMENTS: (&[&str], &str) = (
    &[
        "default", "range", "length", "pattern", "format", "rename", "alias", "secret", "nested", "flatten",
        "validate", "example", "skip", "with",
    ],
    "it describes one argument, write it in `#[arg(…)]` on the parameter or field",
);

/// What is said about one tool, wherever that stands, and what a place has of its own.
macro_rules! keys {
    ($($own:literal),*) => {
        &[
            "name", "description", "doc", "title", "read_only", "destructive", "idempotent", "open_world", "effect",
            "timeout", "max_attempts", "max_retries", "approval", "exclusive", "cache", "allow_repeat",
            "follow_up", "max_result_bytes", "none", "coerce", "unknown", "strict", "defer", "examples", "extend", "redact_errors",
            "require_docs", $($own),*
        ]
    };
}

pub(super) const FUNCTION: Keys = Keys {
    known: keys!["inline", "type", "crate"],
    repeatable: &[],
    elsewhere: &[ON_ARGUMENTS, (&["set"], SET)],
};
pub(super) const METHOD: Keys = Keys {
    known: keys!["inline"],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (&["crate"], "write it in the `#[tool(…)]` of the impl block"),
        (&["set"], "it names all tools of a block, write it in the `#[tool(…)]` of the impl block"),
        (&["type"], "a method has no type of its own, its tool belongs to the value of the impl block"),
    ],
};
pub(super) const TYPE: Keys = Keys {
    known: keys!["crate"],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (&["set"], SET),
        (&["type"], "the item is the type of its tool"),
        (&["inline"], "`RunTool::run` is async and never leaves its thread"),
    ],
};
pub(super) const BLOCK: Keys = Keys {
    known: &["set", "require_docs", "crate"],
    repeatable: &[],
    elsewhere: &[
        ON_ARGUMENTS,
        (FUNCTION.known, "it describes one tool, write it in the `#[tool(…)]` of the method"),
    ],
};
const SET: &str = "it is for a further impl block of one type, whose tools it names";

/// Parses the tokens between the parentheses of `#[tool(…)]`.
pub(crate) fn parse(tokens: TokenStream, place: Place, errors: &mut Errors) -> Options {
    let keys = match place {
        Place::Function => FUNCTION,
        Place::Method => METHOD,
        Place::Type => TYPE,
        Place::Block => BLOCK,
    };
    let mut options = Options::default();
    let mut places = Places::default();
    for entry in grammar::options(tokens, keys, errors) {
        places.note(&entry);
        read(&mut options, &entry, errors);
    }
    check(&options, &places, errors);
    options
}

fn read(options: &mut Options, entry: &Entry, errors: &mut Errors) {
    let mut on = |entry: &Entry| entry.flag(errors) == Some(true);
    match entry.key.to_string().as_str() {
        "redact_errors" => options.redact_errors = on(entry),
        "exclusive" => options.exclusive = on(entry),
        "allow_repeat" => options.allow_repeat = on(entry),
        "follow_up" => options.follow_up = on(entry),
        "defer" => options.defer = on(entry),
        "require_docs" => options.require_docs = on(entry),
        "inline" => options.inline = on(entry).then(|| entry.key.span()),
        "read_only" => options.read_only = entry.flag(errors),
        "destructive" => options.destructive = entry.flag(errors),
        "idempotent" => options.idempotent = entry.flag(errors),
        "open_world" => options.open_world = entry.flag(errors),
        "cache" => options.cache = entry.flag(errors),
        "strict" => options.strict = entry.flag(errors),
        "crate" => options.krate = entry.path("::agent", errors),
        "name" => options.name = entry.text(errors),
        "description" => {
            options.described = true;
            options.description = entry.description(errors);
        }
        "doc" => options.doc = doc(entry, errors),
        "title" => options.title = entry.some_text(errors),
        "none" => options.none = entry.some_text(errors),
        "effect" => options.effect = entry.word(EFFECTS, errors),
        "timeout" => options.timeout = limit(entry, errors),
        "max_attempts" => options.max_attempts = entry.count(1, "3", errors),
        "max_retries" => options.max_retries = entry.count(0, "3", errors),
        "max_result_bytes" => options.max_result_bytes = entry.count(1, "65_536", errors),
        "approval" => options.approval = Approval::of(entry, errors),
        "examples" => options.examples = entry.objects(errors),
        "extend" => options.extend = entry.pairs(errors),
        "coerce" => options.coerce = Policy::of(entry, errors),
        "unknown" => options.unknown = entry.word(UNKNOWN, errors),
        "type" => options.type_name = entry.name("SearchTool", errors),
        "set" => {
            options.is_further = true;
            options.set = entry.method_name("admin", errors);
        }
        other => unreachable!("`{other}` is in the table of keys but not read"),
    }
}

/// `doc = false`, `doc = "summary"`, `doc = "all"`
fn doc(entry: &Entry, errors: &mut Errors) -> Doc {
    match (entry.literal_bool(), entry.literal_text().as_deref()) {
        (Some(false), _) => return Doc::Nothing,
        (_, Some("summary")) => return Doc::Summary,
        (_, Some("all")) => return Doc::All,
        _ => {}
    }
    entry.wrong(
        errors,
        "write `doc = false` for no description, `doc = \"summary\"` for the first paragraph of the doc comment, or \
         `doc = \"all\"` for its sections, too",
    );
    Doc::default()
}

/// `timeout = "10s"`, `timeout = false`
fn limit(entry: &Entry, errors: &mut Errors) -> Option<Timeout> {
    if entry.literal_bool() == Some(false) {
        return Some(Timeout::Never);
    }
    let Some(text) = entry.known_text() else {
        let example = entry.literal_integer().unwrap_or(10);
        entry.wrong(
            errors,
            &format!("write a time with its unit, in quotes: `timeout = \"{example}s\"`, or `timeout = false` for none"),
        );
        return None;
    };
    match timeout::parse(&text.value()) {
        Ok(limit) => Some(Timeout::After(limit)),
        Err(advice) => {
            errors.at(&text, advice);
            None
        }
    }
}

/// Where options stand that may contradict each other; the last of them is complained about.
#[derive(Default)]
struct Places {
    hint: Option<Span>,
    effect: Option<Span>,
    attempts: Option<Span>,
    doc: Option<Span>,
}

impl Places {
    fn note(&mut self, entry: &Entry) {
        let span = Some(entry.key.span());
        match entry.key.to_string().as_str() {
            "read_only" | "destructive" => self.hint = span,
            "effect" => self.effect = span,
            "max_attempts" => self.attempts = span,
            "doc" => self.doc = span,
            _ => {}
        }
    }
}

fn check(options: &Options, places: &Places, errors: &mut Errors) {
    if let (Some(true), Some(true), Some(at)) = (options.read_only, options.destructive, places.hint) {
        errors.at_span(at, "a tool that is `read_only` destroys nothing: keep `read_only` or `destructive`");
    }
    if let (Some(inline), Some(Timeout::After(_))) = (options.inline, options.timeout) {
        errors.at_span(inline, "a `timeout` cannot stop a function that runs `inline`: keep one of the two");
    }
    if let (Some(true), Some("idempotent" | "once"), Some(at)) =
        (options.read_only, options.effect, places.effect)
    {
        errors.at_span(
            at,
            "a tool that is `read_only` has the effect `pure`: remove this option, or `read_only`",
        );
    }
    let repeatable = options.read_only == Some(true) || options.idempotent == Some(true);
    let once = options.effect.map_or(!repeatable, |effect| effect == "once");
    if let (true, Some(at), Some(_)) = (once, places.attempts, &options.max_attempts) {
        errors.at_span(
            at,
            "a body that must not take effect twice is never started again: say `read_only`, `idempotent`, or \
             `effect = \"idempotent\"` (the same once or many times, given the same `cx.idempotency_key()`)",
        );
    }
    if let (true, Some(at)) = (options.described, places.doc) {
        errors.at_span(at, "`description` replaces the doc comment: keep `description` or `doc`");
    }
}
