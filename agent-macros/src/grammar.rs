//! The grammar of the options in `#[tool(…)]` and `#[arg(…)]`: `key`, `key = value` and `key(…)`, separated by commas.
//!
//! Parsing does not stop at a mistake. The mistake is recorded, the rest of the option is skipped, and the
//! next option is read.

mod literal;
#[cfg(test)]
mod tests;
mod unknown;

pub(crate) use self::literal::{Number, bare, integer_of, string_of};

use self::literal::by_commas;
use self::unknown::unknown;
use crate::diag::{Errors, listed, nearest};
use crate::doc::{self, Piece, Text};
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Lit, LitBool, LitStr, Meta, Path, Token, token};

pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    /// `key`
    Flag,
    /// `key = value`
    Equals(Expr),
    /// `key(…)`
    List(TokenStream, Span),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) known: &'static [&'static str],
    pub(crate) repeatable: &'static [&'static str],
    /// Keys that belong to other attributes or items, each group with its advice.
    pub(crate) elsewhere: &'static [(&'static [&'static str], &'static str)],
}

/// Parses the options of an attribute macro: `#[tool(TOKENS)]`.
pub(crate) fn options(tokens: TokenStream, keys: Keys, errors: &mut Errors) -> Vec<Entry> {
    let mut seen = Vec::new();
    entries(tokens, keys, &mut seen, errors)
}

/// Parses the options of all helper attributes `#[NAME(…)]` in `attrs`, as one list.
pub(crate) fn helper_options(name: &str, attrs: &[Attribute], keys: Keys, errors: &mut Errors) -> Vec<Entry> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        let example = keys.known.first().copied().unwrap_or_default();
        match &attr.meta {
            Meta::List(list) if !matches!(list.delimiter, syn::MacroDelimiter::Paren(_)) => {
                errors.at(attr, format!("options go in parentheses: write `#[{name}(…)]`"));
            }
            Meta::List(list) if list.tokens.is_empty() => {
                errors.at(
                    attr,
                    format!("no option given: write for example `#[{name}({example})]`, or remove it"),
                );
            }
            Meta::List(list) => found.extend(entries(list.tokens.clone(), keys, &mut seen, errors)),
            Meta::Path(_) | Meta::NameValue(_) => {
                errors
                    .at(attr, format!("options go in parentheses: write for example `#[{name}({example})]`"));
            }
        }
    }
    found
}

fn entries(tokens: TokenStream, keys: Keys, seen: &mut Vec<String>, errors: &mut Errors) -> Vec<Entry> {
    let mut found = Vec::new();
    let parser = |input: ParseStream| {
        while !input.is_empty() {
            match entry(input) {
                Ok(entry) => found.push(entry),
                Err(error) => {
                    errors.push(error);
                    skip_to_comma(input)?;
                }
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                errors.push(input.error("expected a comma before the next option"));
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    let result = parser.parse2(tokens);
    errors.take(result);
    found.retain(|entry| admitted(&entry.key, keys, seen, errors));
    found
}

fn entry(input: ParseStream) -> syn::Result<Entry> {
    if input.peek(LitStr) {
        return Err(
            input.error("expected an option: a text needs its key, for example `description = \"…\"`")
        );
    }
    if !input.peek(Ident::peek_any) {
        return Err(input.error("expected an option: `key`, `key = value` or `key(…)`"));
    }
    let key = Ident::parse_any(input)?;
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(syn::Error::new(key.span(), format!("a value is missing after `{key} =`")));
        }
        return Ok(Entry { key, value: Value::Equals(input.parse()?) });
    }
    if input.peek(token::Paren) {
        let content;
        let paren = syn::parenthesized!(content in input);
        return Ok(Entry { key, value: Value::List(content.parse()?, paren.span.join()) });
    }
    if input.peek(token::Bracket) || input.peek(token::Brace) {
        return Err(input.error(format!("use parentheses: `{key}(…)`")));
    }
    Ok(Entry { key, value: Value::Flag })
}

fn skip_to_comma(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

pub(crate) fn choices(word: &str, words: &[&str]) -> String {
    let all = listed(words, "and");
    match nearest(word, words) {
        Some(near) => format!("did you mean `{near}`? The values are {all}"),
        None => format!("the values are {all}"),
    }
}

fn admitted(key: &Ident, keys: Keys, seen: &mut Vec<String>, errors: &mut Errors) -> bool {
    let name = key.to_string();
    if !keys.known.contains(&name.as_str()) {
        errors.at(key, unknown(&name, keys));
        return false;
    }
    if seen.contains(&name) && !keys.repeatable.contains(&name.as_str()) {
        errors.at(key, format!("`{name}` is given twice: keep one"));
        return false;
    }
    seen.push(name);
    true
}

impl Entry {
    pub(crate) fn wrong(&self, errors: &mut Errors, advice: &str) {
        match &self.value {
            Value::Flag => errors.at(&self.key, advice),
            Value::Equals(expr) => errors.at(expr, advice),
            Value::List(_, span) => errors.at_span(*span, advice),
        }
    }

    fn literal(&self) -> Option<&Lit> {
        let Value::Equals(expr) = &self.value else { return None };
        match bare(expr) {
            Expr::Lit(literal) => Some(&literal.lit),
            _ => None,
        }
    }

    pub(crate) fn literal_text(&self) -> Option<String> {
        match self.literal() {
            Some(Lit::Str(text)) => Some(text.value()),
            _ => None,
        }
    }

    /// Returns the text in `key = "text"`. Instead of the string, the value may be a `concat!(…)` of literals or a `stringify!(…)`.
    pub(crate) fn text(&self, errors: &mut Errors) -> Option<LitStr> {
        let text = self.known_text();
        if text.is_none() {
            self.wrong(
                errors,
                &format!("write a string literal, or `concat!(…)` of literals: `{} = \"…\"`", self.key),
            );
        }
        text
    }

    /// Returns the text of the value, if the text is known while the macro expands.
    pub(crate) fn known_text(&self) -> Option<LitStr> {
        match &self.value {
            Value::Equals(expr) => string_of(expr),
            _ => None,
        }
    }

    /// Reads `key = TEXT` for a model: a literal, or a constant expression.
    pub(crate) fn description(&self, errors: &mut Errors) -> Option<Text> {
        match &self.value {
            Value::Equals(expr) if self.known_text().is_none() => {
                match doc::of_expr(expr, &self.key.to_string(), errors)? {
                    Piece::Known(text) => Some(Text::Known(text)),
                    constant @ Piece::Constant(_) => Some(Text::Composed(vec![constant])),
                }
            }
            _ => self.some_text(errors).map(|text| Text::Known(text.value())),
        }
    }

    /// Reads a text as [`text`](Self::text) does, and reports a blank one.
    pub(crate) fn some_text(&self, errors: &mut Errors) -> Option<LitStr> {
        let text = self.text(errors)?;
        if text.value().trim().is_empty() {
            errors.at(&text, format!("`{}` is empty: write the text, or remove the option", self.key));
            return None;
        }
        Some(text)
    }

    /// Reads `key = "word"`. The word must be in `words`.
    pub(crate) fn word(&self, words: &'static [&'static str], errors: &mut Errors) -> Option<&'static str> {
        let Some(Lit::Str(text)) = self.literal() else {
            let choices: Vec<String> =
                words.iter().map(|word| format!("{} = \"{word}\"", self.key)).collect();
            let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
            self.wrong(errors, &format!("write {}", listed(&choices, "or")));
            return None;
        };
        let value = text.value();
        let found = words.iter().copied().find(|word| *word == value);
        if found.is_none() {
            errors.at(text, format!("`{}` has no value `{value}`: {}", self.key, choices(&value, words)));
        }
        found
    }

    pub(crate) fn literal_integer(&self) -> Option<u64> {
        match self.literal() {
            Some(Lit::Int(number)) => number.base10_parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn literal_bool(&self) -> Option<bool> {
        match self.literal() {
            Some(Lit::Bool(word)) => Some(word.value),
            _ => None,
        }
    }

    /// Reads `key = 3`, with a number from `least` to `u32::MAX`, or with a constant.
    pub(crate) fn count(&self, least: i128, example: &str, errors: &mut Errors) -> Option<Expr> {
        if let Value::Equals(expr) = &self.value {
            match Number::of(expr) {
                Some(Number::Whole(whole)) if whole < least => {
                    errors.at(expr, format!("`{}` is at least {least}", self.key));
                    return None;
                }
                Some(Number::Whole(whole)) if whole > i128::from(u32::MAX) => {
                    errors.at(expr, format!("`{}` is at most {}", self.key, u32::MAX));
                    return None;
                }
                Some(Number::Whole(_) | Number::Constant) => return Some(bare(expr).clone()),
                _ => {}
            }
        }
        self.wrong(errors, &format!("write a whole number: `{} = {example}`", self.key));
        None
    }

    /// Reads `key({…}, {…})`. Returns the tokens of each JSON object.
    pub(crate) fn objects(&self, errors: &mut Errors) -> Vec<TokenStream> {
        let example = "{\"city\": \"Paris\"}";
        let Some(tokens) = self.list(example, errors) else { return Vec::new() };
        let mut found = Vec::new();
        for part in by_commas(tokens.clone()) {
            let mut trees = part.clone().into_iter();
            match (trees.next(), trees.next()) {
                (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Brace => {
                    found.push(part);
                }
                _ => errors
                    .at(&part, format!("write the arguments as a JSON object: `{}({example})`", self.key)),
            }
        }
        found
    }

    /// Reads `key("name" = JSON, …)`.
    pub(crate) fn pairs(&self, errors: &mut Errors) -> Vec<(LitStr, TokenStream)> {
        let example = "\"x-unit\" = \"km\"";
        let Some(tokens) = self.list(example, errors) else { return Vec::new() };
        let parser = |input: ParseStream| {
            let name = input.parse::<LitStr>()?;
            input.parse::<Token![=]>()?;
            Ok((name, input.parse::<TokenStream>()?))
        };
        let mut found: Vec<(LitStr, TokenStream)> = Vec::new();
        for part in by_commas(tokens.clone()) {
            match parser.parse2(part.clone()) {
                Ok((name, _)) if found.iter().any(|(other, _)| other.value() == name.value()) => {
                    errors.at(&name, format!("`{}` is given twice: keep one", name.value()));
                }
                Ok((name, value)) if !value.is_empty() => found.push((name, value)),
                _ => errors.at(&part, format!("write a key and JSON: `{}({example})`", self.key)),
            }
        }
        found
    }

    pub(crate) fn method_name(&self, example: &str, errors: &mut Errors) -> Option<Ident> {
        let Some(Lit::Str(text)) = self.literal() else {
            self.wrong(errors, &format!("write a name in quotes: `{} = \"{example}\"`", self.key));
            return None;
        };
        let name = text.parse::<Ident>().ok();
        if name.is_none() {
            errors.at(text, format!("this names a method: write for example `{} = \"{example}\"`", self.key));
        }
        name
    }

    pub(crate) fn flag(&self, errors: &mut Errors) -> Option<bool> {
        match (&self.value, self.literal()) {
            (Value::Flag, _) => Some(true),
            (_, Some(Lit::Bool(LitBool { value, .. }))) => Some(*value),
            _ => {
                self.wrong(errors, &format!("write `{0}`, or `{0} = true` or `{0} = false`", self.key));
                None
            }
        }
    }

    pub(crate) fn path(&self, example: &str, errors: &mut Errors) -> Option<Path> {
        if let Value::Equals(expr) = &self.value
            && let Expr::Path(path) = bare(expr)
            && path.qself.is_none()
        {
            return Some(path.path.clone());
        }
        let advice = match &self.value {
            Value::Equals(expr) if matches!(bare(expr), Expr::Closure(_)) => {
                format!(
                    "a closure cannot stand here: write a function, and its path: `{} = {example}`",
                    self.key
                )
            }
            _ => format!("write a path without quotes: `{} = {example}`", self.key),
        };
        self.wrong(errors, &advice);
        None
    }

    pub(crate) fn name(&self, example: &str, errors: &mut Errors) -> Option<Ident> {
        if let Value::Equals(expr) = &self.value
            && let Expr::Path(path) = bare(expr)
            && let Some(name) = path.path.get_ident()
        {
            return Some(name.clone());
        }
        self.wrong(errors, &format!("write one name without quotes: `{} = {example}`", self.key));
        None
    }

    pub(crate) fn list(&self, example: &str, errors: &mut Errors) -> Option<&TokenStream> {
        match &self.value {
            Value::List(tokens, _) if !tokens.is_empty() => Some(tokens),
            _ => {
                self.wrong(errors, &format!("write `{}({example})`", self.key));
                None
            }
        }
    }
}
