//! The options of `#[tool(…)]`, and the kinds of items that accept them.

use super::approval::Approval;
use super::options::{ROWS, Setting, SettingValue};
use crate::diag::Errors;
use crate::doc::Text;
use crate::grammar::{self, Keys};
use proc_macro2::{Ident, Span, TokenStream};
use std::sync::LazyLock;
use syn::{LitStr, Path};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolItem {
    Function,
    Method,
    /// A struct, or an enum of actions.
    Type,
    Block,
}

/// The options of one `#[tool(…)]`, with valid values.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<Path>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Text>,
    /// Whether `description` was given, even with an invalid value.
    pub(crate) described: bool,
    pub(crate) doc: Doc,
    pub(crate) doc_at: Option<Span>,
    pub(crate) require_docs: bool,
    pub(crate) approval: Option<Approval>,
    /// The text that the model reads if the tool returns `None`.
    pub(crate) none: Option<LitStr>,
    pub(crate) inline: Option<Span>,
    pub(crate) type_name: Option<Ident>,
    /// The name of the generated method that returns the tools of the block. Every `#[tool]` block of a type except the first needs one.
    pub(crate) set: Option<Ident>,
    /// Whether the option `set` was written, even with an invalid value.
    pub(crate) is_further: bool,
    /// The options that become calls of setters, in the order in which they were written.
    pub(super) settings: Vec<Setting>,
}

impl Options {
    fn setting(&self, key: &str) -> Option<(usize, &Setting)> {
        self.settings.iter().enumerate().find(|(_, setting)| setting.row.key == key)
    }

    fn span(&self, key: &str) -> Option<Span> {
        self.setting(key).map(|(_, setting)| setting.key.span())
    }

    fn is_set(&self, key: &str) -> bool {
        matches!(self.setting(key), Some((_, Setting { value: SettingValue::Flag(true), .. })))
    }

    fn effect(&self) -> Option<&'static str> {
        match self.setting("effect")?.1.value {
            SettingValue::Word(word) => Some(word),
            _ => None,
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doc {
    /// The whole comment except the sections for people and the sections about arguments.
    #[default]
    ForModels,
    /// The first paragraph outside of these sections.
    Summary,
    All,
    Nothing,
}

const ON_ARGUMENTS: (&[&str], &str) = (
    &[
        "default", "range", "length", "pattern", "format", "rename", "alias", "secret", "nested", "flatten",
        "validate", "example", "skip", "with",
    ],
    "it describes one argument, write it in `#[arg(…)]` on the parameter or field",
);

const SET: &str = "it is for a further impl block of one type, whose tools it names";

const NO_TYPE: (&[&str], &str) =
    (&["type"], "a method has no type of its own, its tool belongs to the value of the impl block");

const ELSEWHERE_FUNCTION: &[(&[&str], &str)] = &[ON_ARGUMENTS, (&["set"], SET)];
const ELSEWHERE_METHOD: &[(&[&str], &str)] = &[
    ON_ARGUMENTS,
    (&["crate"], "write it in the `#[tool(…)]` of the impl block"),
    (&["set"], "it names all tools of a block, write it in the `#[tool(…)]` of the impl block"),
    NO_TYPE,
];
const ELSEWHERE_TYPE: &[(&[&str], &str)] = &[
    ON_ARGUMENTS,
    (&["set"], SET),
    (&["type"], "the item is the type of its tool"),
    (&["inline"], "`RunTool::run` is async and never leaves its thread"),
];
const ON_METHODS: &str = "it describes one tool, write it in the `#[tool(…)]` of the method";

macro_rules! keys_at {
    ($place:path) => {{
        static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| {
            ROWS.iter().filter(|row| row.places.contains(&$place)).map(|row| row.key).collect()
        });
        &**KNOWN
    }};
}

pub(super) fn keys(place: ToolItem) -> Keys {
    static ELSEWHERE_BLOCK: LazyLock<[(&[&str], &str); 3]> =
        LazyLock::new(|| [ON_ARGUMENTS, NO_TYPE, (keys_at!(ToolItem::Method), ON_METHODS)]);
    let (known, elsewhere): (&'static [&'static str], &'static [_]) = match place {
        ToolItem::Function => (keys_at!(ToolItem::Function), ELSEWHERE_FUNCTION),
        ToolItem::Method => (keys_at!(ToolItem::Method), ELSEWHERE_METHOD),
        ToolItem::Type => (keys_at!(ToolItem::Type), ELSEWHERE_TYPE),
        ToolItem::Block => (keys_at!(ToolItem::Block), &*ELSEWHERE_BLOCK),
    };
    Keys { known, repeatable: &[], elsewhere }
}

pub(crate) fn parse(tokens: TokenStream, place: ToolItem, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let before = errors.len();
    for entry in grammar::options(tokens, keys(place), errors) {
        let row = ROWS.iter().find(|row| entry.key == row.key);
        if let Some(row) = row {
            row.read(&mut options, &entry, errors);
        }
    }
    check(&options, errors.len() == before, errors);
    options
}

/// Reports options that contradict each other. If `all_read` is `false`, an option may be missing because its name is misspelled.
fn check(options: &Options, all_read: bool, errors: &mut Errors) {
    let (read_only, destructive) = (options.setting("read_only"), options.setting("destructive"));
    if let (true, true, Some(one), Some(other)) =
        (options.is_set("read_only"), options.is_set("destructive"), read_only, destructive)
    {
        let (_, last) = if one.0 > other.0 { one } else { other };
        errors.at_span(
            last.key.span(),
            "a tool that is `read_only` destroys nothing: keep `read_only` or `destructive`",
        );
    }
    let timeout = options.setting("timeout").map(|(_, setting)| &setting.value);
    if let (Some(inline), Some(SettingValue::Timeout(Some(_)))) = (options.inline, timeout) {
        errors.at_span(inline, "a `timeout` cannot stop a function that runs `inline`: keep one of the two");
    }
    let effect = options.effect();
    if let (true, Some("idempotent" | "once"), Some(at)) =
        (options.is_set("read_only"), effect, options.span("effect"))
    {
        errors.at_span(
            at,
            "a tool that is `read_only` has the effect `pure`: remove this option, or `read_only`",
        );
    }
    let is_repeatable = options.is_set("read_only") || options.is_set("idempotent");
    let once = effect.map_or(!is_repeatable, |effect| effect == "once");
    if let (true, Some(at)) = (once && all_read, options.span("max_attempts")) {
        errors.at_span(
            at,
            "a body that must not take effect twice is never started again: say `read_only`, `idempotent`, or \
             `effect = \"idempotent\"` (the same once or many times, given the same `cx.idempotency_key()`)",
        );
    }
    if let (true, Some(at)) = (options.described, options.doc_at) {
        errors.at_span(at, "`description` replaces the doc comment: keep `description` or `doc`");
    }
}
