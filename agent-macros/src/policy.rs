//! Coercion policies as text: `strict`, `lenient - fold_enum`.

use crate::diag::Errors;
use crate::grammar::{Entry, choices};
use crate::path::Private;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

const POLICIES: &[&str] = &["exact", "strict", "lenient"];
/// Every rule that a policy can allow or forbid: its name, and the variant of `CoercionRule`.
const RULES: &[(&str, &str)] = &[
    ("float_to_integer", "FloatToInteger"),
    ("text_to_integer", "TextToInteger"),
    ("text_to_number", "TextToNumber"),
    ("text_to_boolean", "TextToBoolean"),
    ("number_to_text", "NumberToText"),
    ("fold_enum", "FoldEnum"),
    ("to_closed_number", "ToClosedNumber"),
    ("json_text_decoded", "JsonTextDecoded"),
    ("one_value_wrapped", "OneValueWrapped"),
    ("null_as_absent", "NullAsAbsent"),
    ("null_as_empty", "NullAsEmpty"),
];

#[derive(Debug, PartialEq)]
pub(crate) struct Policy {
    base: &'static str,
    /// The rules that are allowed (`true`) or forbidden (`false`), in order, as indices into [`RULES`].
    changes: Vec<(bool, usize)>,
}

impl Policy {
    pub(crate) fn of(entry: &Entry, errors: &mut Errors) -> Option<Policy> {
        let compound = |text: &String| text.contains(['+', '-']);
        let Some(text) = entry.literal_text().filter(compound) else {
            return Some(Policy { base: entry.word(POLICIES, errors)?, changes: Vec::new() });
        };
        let mut wrong = |word: &str, known: &[&str]| {
            entry.wrong(errors, &format!("`coerce` has no `{word}`: {}", choices(word, known)));
        };
        let (name, mut rest) = text.split_at(text.find(['+', '-']).unwrap_or(text.len()));
        let Some(base) = POLICIES.iter().copied().find(|policy| *policy == name.trim()) else {
            wrong(name.trim(), POLICIES);
            return None;
        };
        let mut changes = Vec::new();
        while let Some(sign) = rest.chars().next() {
            let after = &rest[1..];
            let (word, next) = after.split_at(after.find(['+', '-']).unwrap_or(after.len()));
            rest = next;
            let Some(rule) = RULES.iter().position(|(rule, _)| *rule == word.trim()) else {
                wrong(word.trim(), &RULES.iter().map(|(rule, _)| *rule).collect::<Vec<_>>());
                return None;
            };
            changes.push((sign == '+', rule));
        }
        Some(Policy { base, changes })
    }

    /// Returns the policy as text: the value of `x-coerce` in the schema, which the library parses.
    pub(crate) fn words(&self) -> String {
        self.changes.iter().fold(self.base.to_owned(), |words, (allowed, rule)| {
            format!("{words} {} {}", if *allowed { '+' } else { '-' }, RULES[*rule].0)
        })
    }

    pub(crate) fn tokens(&self, private: &Private) -> TokenStream {
        let ident = |name| Ident::new(name, Span::call_site());
        let base = ident(self.base);
        let changes = self.changes.iter().map(|(allowed, rule)| {
            let (method, rule) = (ident(if *allowed { "allow" } else { "forbid" }), ident(RULES[*rule].1));
            quote!(.#method(#private::CoercionRule::#rule))
        });
        quote!(#private::CoercionPolicy::#base()#(#changes)*)
    }
}
