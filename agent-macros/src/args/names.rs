//! Finds the names that serde gives to fields and variants, and reports names that clash.

use super::foreign::Serde;
use crate::diag::Errors;
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Attribute, LitStr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    /// Returns the rule that serde applies when it deserializes. Returns `None` if there is no rule, or a rule that serde does not know.
    pub(super) fn of(attrs: &[Attribute], key: &str) -> Option<Self> {
        Some(match Serde::of(attrs).text_for_reading(key)?.value().as_str() {
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            _ => return None,
        })
    }

    pub(super) fn of_field(self, name: &str) -> String {
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => name.split('_').map(|word| with_first(word, char::to_ascii_uppercase)).collect(),
            Self::Camel => with_first(&Self::Pascal.of_field(name), char::to_ascii_lowercase),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    pub(super) fn of_variant(self, name: &str) -> String {
        let snake = || {
            let mut out = String::new();
            for (at, letter) in name.char_indices() {
                if at > 0 && letter.is_uppercase() {
                    out.push('_');
                }
                out.push(letter.to_ascii_lowercase());
            }
            out
        };
        match self {
            Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => with_first(name, char::to_ascii_lowercase),
            Self::Snake => snake(),
            Self::ScreamingSnake => snake().to_ascii_uppercase(),
            Self::Kebab => snake().replace('_', "-"),
            Self::ScreamingKebab => snake().to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn with_first(word: &str, change: impl FnOnce(&char) -> char) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| change(&first)).into_iter().chain(letters).collect()
}

pub(super) struct Named {
    /// The name with its span; `None` for a flattened field, which has no name in JSON.
    pub(super) name: Option<LitStr>,
    pub(super) aliases: Vec<LitStr>,
    pub(super) ident: Ident,
}

impl Named {
    /// Finds the names of a field or variant. `own` has the name and the aliases in `#[arg]`. `case` makes the name from `ident` if no
    /// attribute sets it.
    pub(super) fn new(
        ident: &Ident,
        attrs: &[Attribute],
        own: (Option<&LitStr>, &[LitStr]),
        case: impl FnOnce(&str) -> String,
    ) -> Self {
        let serde = Serde::of(attrs);
        let by_rule = || LitStr::new(&case(&ident.unraw().to_string()), ident.span());
        let name = own.0.cloned().or_else(|| serde.text_for_reading("rename")).unwrap_or_else(by_rule);
        let aliases = own.1.iter().cloned().chain(serde.texts("alias")).collect();
        Self { name: Some(name), aliases, ident: ident.clone() }
    }
}

/// Reports names that two fields or variants share, because serde would never read the second one.
pub(super) fn check(names: &[Named], what: &str, errors: &mut Errors) {
    let mut seen: Vec<(String, &Ident)> = Vec::new();
    for Named { name, aliases, ident } in names {
        let own: Vec<&LitStr> = name.iter().chain(aliases).collect();
        for word in &own {
            let Some((_, first)) = seen.iter().find(|(known, _)| *known == word.value()) else { continue };
            let word_text = word.value();
            errors.at_span(word.span(), format!("two {what} are named `{word_text}`: rename one"));
            errors.at_span(first.span(), format!("`{word_text}` is the name of this one, too"));
        }
        seen.extend(own.into_iter().map(|word| (word.value(), ident)));
    }
}
