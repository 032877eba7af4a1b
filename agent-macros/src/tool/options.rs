//! The options of `#[tool(…)]`, with one row for each. A row has the key, the kinds of items that accept the option, and the
//! functions that read the value and emit the code.
//!
//! Most options become calls of setters of the library's `ToolOptions`, and the macro knows nothing else about them. The other
//! options change the expansion itself, and are read into [`Options`](super::attr::Options).

use super::approval::Approval;
use super::attr::{Doc, Options, ToolItem};
use super::timeout;
use crate::diag::Errors;
use crate::grammar::{Entry, Value, bare};
use crate::path::Private;
use crate::policy::Policy;
use crate::types::replace_self;
use ToolItem::{Block, Function, Method, Type};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::time::Duration;
use syn::{Expr, LitStr};

pub(super) struct OptionRow {
    pub(super) key: &'static str,
    pub(super) places: &'static [ToolItem],
    read: Read,
}

enum Read {
    /// The option becomes a call of a setter in the generated code.
    Setting(fn(&Entry, &mut Errors) -> Option<SettingValue>, Emit),
    /// The value is stored in the options that change the expansion.
    Expansion(fn(&mut Options, &Entry, &mut Errors)),
}

/// A function that returns the setter calls for a setting. The second argument replaces `Self`.
type Emit = fn(&Setting, Option<&TokenStream>, &Private) -> TokenStream;

pub(super) struct Setting {
    pub(super) row: &'static OptionRow,
    pub(super) key: Ident,
    pub(super) value: SettingValue,
}

pub(super) enum SettingValue {
    Flag(bool),
    Text(LitStr),
    Word(&'static str),
    Count(Expr),
    /// A time limit; `None` for no limit.
    Timeout(Option<Duration>),
    Policy(Policy),
    Objects(Vec<TokenStream>),
    /// Keys and JSON values. The values are tokens that `json!` takes.
    Pairs(Vec<(LitStr, TokenStream)>),
    Function(Expr),
}

const TOOL: &[ToolItem] = &[Function, Method, Type];
const EVERYWHERE: &[ToolItem] = &[Function, Method, Type, Block];
const EFFECTS: &[&str] = &["pure", "idempotent", "once"];
const UNKNOWN: &[&str] = &["deny", "strip", "keep"];

const fn setting(
    key: &'static str,
    read: fn(&Entry, &mut Errors) -> Option<SettingValue>,
    emit: Emit,
) -> OptionRow {
    OptionRow { key, places: TOOL, read: Read::Setting(read, emit) }
}

const fn expansion(
    key: &'static str,
    places: &'static [ToolItem],
    read: fn(&mut Options, &Entry, &mut Errors),
) -> OptionRow {
    OptionRow { key, places, read: Read::Expansion(read) }
}

/// The setters are emitted in this order. `effect` comes after the hints, because a hint also sets an effect.
pub(super) const ROWS: &[OptionRow] = &[
    expansion("name", TOOL, |options, entry, errors| options.name = entry.text(errors)),
    expansion("description", TOOL, |options, entry, errors| {
        options.described = true;
        options.description = entry.description(errors);
    }),
    expansion("doc", TOOL, |options, entry, errors| {
        options.doc = doc(entry, errors);
        options.doc_at = Some(entry.key.span());
    }),
    setting("title", text, set),
    setting("read_only", flag, set),
    setting("destructive", flag, set),
    setting("idempotent", flag, set),
    setting("open_world", flag, set),
    setting(
        "effect",
        |entry, errors| entry.word(EFFECTS, errors).map(SettingValue::Word),
        |setting, _, private| {
            let effect = setting.variant();
            quote!(.effect(#private::Effect::#effect))
        },
    ),
    setting("timeout", timeout, |setting, _, private| {
        let SettingValue::Timeout(Some(limit)) = setting.value else { return quote!(.without_timeout()) };
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        quote!(.timeout(#private::Duration::from_millis(#millis)))
    }),
    setting("max_attempts", |entry, errors| entry.count(1, "3", errors).map(SettingValue::Count), set),
    setting("max_retries", |entry, errors| entry.count(0, "3", errors).map(SettingValue::Count), set),
    expansion("approval", TOOL, |options, entry, errors| options.approval = Approval::of(entry, errors)),
    setting("exclusive", flag, set_if),
    setting("cache", flag, set),
    setting("asks", flag, set_if),
    setting("allow_repeat", flag, set_if),
    setting("follow_up", flag, set_if),
    setting("keep_result", flag, set_if),
    setting(
        "max_result_bytes",
        |entry, errors| entry.count(1, "65_536", errors).map(SettingValue::Count),
        set,
    ),
    expansion("none", TOOL, |options, entry, errors| options.none = entry.some_text(errors)),
    setting("coerce", |entry, errors| Policy::of(entry, errors).map(SettingValue::Policy), set),
    setting(
        "unknown",
        |entry, errors| entry.word(UNKNOWN, errors).map(SettingValue::Word),
        |setting, _, private| {
            let unknown = setting.variant();
            quote!(.unknown(#private::UnknownKeys::#unknown))
        },
    ),
    setting("strict", flag, set),
    setting("defer", flag, set_if),
    setting("examples", |entry, errors| Some(SettingValue::Objects(entry.objects(errors))), set),
    setting("extend", |entry, errors| Some(SettingValue::Pairs(entry.pairs(errors))), set),
    setting("redact_errors", flag, set_if),
    setting("untrusted", flag, set_if),
    setting("neutralize", flag, set_if),
    setting("prepare", function, set),
    setting("parameters_for", function, set),
    setting("examples_for", function, set),
    setting("format_result", function, set),
    setting("triggers_follow_up", function, set),
    expansion("require_docs", EVERYWHERE, |options, entry, errors| {
        options.require_docs = entry.flag(errors) == Some(true);
    }),
    expansion("inline", &[Function, Method], |options, entry, errors| {
        options.inline = (entry.flag(errors) == Some(true)).then(|| entry.key.span());
    }),
    expansion("type", &[Function], |options, entry, errors| {
        options.type_name = entry.name("SearchTool", errors);
    }),
    expansion("set", &[Block], |options, entry, errors| {
        options.is_further = true;
        options.set = entry.method_name("admin", errors);
    }),
    expansion("crate", &[Function, Type, Block], |options, entry, errors| {
        options.krate = entry.path("::agent", errors);
    }),
];

impl OptionRow {
    pub(super) fn read(&'static self, options: &mut Options, entry: &Entry, errors: &mut Errors) {
        match self.read {
            Read::Expansion(read) => read(options, entry, errors),
            Read::Setting(read, _) => {
                let value = read(entry, errors);
                options.settings.extend(value.map(|value| Setting {
                    row: self,
                    key: entry.key.clone(),
                    value,
                }));
            }
        }
    }
}

impl Setting {
    pub(super) fn emit(&self, this: Option<&TokenStream>, private: &Private) -> TokenStream {
        match self.row.read {
            Read::Setting(_, emit) => emit(self, this, private),
            Read::Expansion(_) => TokenStream::new(),
        }
    }

    /// Returns the variant of an enum for a word: `strip` → `Strip`.
    fn variant(&self) -> Ident {
        let SettingValue::Word(word) = self.value else { return self.key.clone() };
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        format_ident!("{}", first.into_iter().chain(chars).collect::<String>())
    }
}

fn flag(entry: &Entry, errors: &mut Errors) -> Option<SettingValue> {
    entry.flag(errors).map(SettingValue::Flag)
}

fn text(entry: &Entry, errors: &mut Errors) -> Option<SettingValue> {
    entry.some_text(errors).map(SettingValue::Text)
}

fn function(entry: &Entry, errors: &mut Errors) -> Option<SettingValue> {
    match &entry.value {
        Value::Equals(expr) if matches!(bare(expr), Expr::Path(_) | Expr::Closure(_)) => {
            Some(SettingValue::Function(expr.clone()))
        }
        _ => {
            let key = &entry.key;
            entry
                .wrong(errors, &format!("write the path of a function, or a closure: `{key} = my_function`"));
            None
        }
    }
}

/// Returns the setter calls of an option: several for examples and for `extend`, none for a timeout, and one for any other option.
fn set(setting: &Setting, this: Option<&TokenStream>, private: &Private) -> TokenStream {
    let setter = format_ident!("{}", setting.row.key);
    let json = |tokens: &TokenStream| quote!(#private::serde_json::json!(#tokens));
    match &setting.value {
        SettingValue::Flag(flag) => quote!(.#setter(#flag)),
        SettingValue::Text(text) => quote!(.#setter(#text)),
        SettingValue::Word(word) => quote!(.#setter(#word)),
        SettingValue::Count(count) => quote!(.#setter(#count)),
        SettingValue::Timeout(_) => TokenStream::new(),
        SettingValue::Policy(policy) => {
            let policy = policy.tokens(private);
            quote!(.#setter(#policy))
        }
        SettingValue::Objects(objects) => {
            let objects = objects.iter().map(json);
            quote!(#(.example(#objects))*)
        }
        SettingValue::Pairs(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (key, json(value)));
            pairs.map(|(key, value)| quote!(.meta(#key, #value))).collect()
        }
        SettingValue::Function(function) => {
            let function = match this {
                Some(this) => replace_self(function.to_token_stream(), this),
                None => function.to_token_stream(),
            };
            quote!(.#setter(#function))
        }
    }
}

fn set_if(setting: &Setting, _: Option<&TokenStream>, _: &Private) -> TokenStream {
    let setter = format_ident!("{}", setting.row.key);
    match setting.value {
        SettingValue::Flag(true) => quote!(.#setter()),
        _ => TokenStream::new(),
    }
}

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

fn timeout(entry: &Entry, errors: &mut Errors) -> Option<SettingValue> {
    if entry.literal_bool() == Some(false) {
        return Some(SettingValue::Timeout(None));
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
        Ok(limit) => Some(SettingValue::Timeout(Some(limit))),
        Err(advice) => {
            errors.at(&text, advice);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn each_option_has_a_row_in_the_documentation() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/src/docs/tool.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("| option | meaning |").unwrap();
        let rows: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| ")).collect();
        let is_described = |key: &str| {
            let (alone, set) = (format!("`{key}`"), format!("`{key} = "));
            let first = |row: &&str| row.split(" | ").next().unwrap_or_default().to_owned();
            let called = format!("`{key}(");
            rows.iter().any(|row| [&alone, &set, &called].iter().any(|form| first(row).contains(&**form)))
        };
        let missing: Vec<&str> = ROWS.iter().map(|row| row.key).filter(|key| !is_described(key)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
