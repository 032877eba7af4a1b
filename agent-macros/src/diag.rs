//! Collects compile errors, so that none is lost. An error says "what is wrong: what to write instead".

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::fmt::Display;

/// All errors found so far. Each stage of a macro adds errors; the last stage converts them to tokens.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    pub(crate) fn at(&mut self, tokens: &impl ToTokens, message: impl Display) {
        self.0.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn at_span(&mut self, span: Span, message: impl Display) {
        self.0.push(syn::Error::new(span, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn finish(mut self) -> Option<TokenStream> {
        let mut list = std::mem::take(&mut self.0).into_iter();
        let mut all = list.next()?;
        all.extend(list);
        Some(all.into_compile_error())
    }

    #[cfg(test)]
    pub(crate) fn messages(mut self) -> Vec<String> {
        std::mem::take(&mut self.0).iter().map(ToString::to_string).collect()
    }
}

/// Panics in tests if errors are dropped without being reported.
#[cfg(test)]
impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.0.is_empty() || std::thread::panicking(),
            "compile errors were collected and lost: {:?}",
            self.0
        );
    }
}

/// Lists quoted words in a sentence: `` `a`, `b` and `c` ``.
pub(crate) fn listed(words: &[&str], and: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {and} {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Returns the candidate that is most similar to `word`. Returns `None` if more edits are needed than a third of the candidate's letters,
/// rounded up.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let (distance, best) = candidates.iter().map(|known| (distance(known, word), *known)).min()?;
    (distance <= best.chars().count().div_ceil(3)).then_some(best)
}

/// Returns the number of edits (insert, delete, replace, swap of adjacent letters) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let edited = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { edited.min(rows[i - 2][j - 2] + 1) } else { edited }
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["name", "read_only", "timeout", "coerce"];
        assert_eq!(nearest("read_onyl", &known), Some("read_only"));
        assert_eq!(nearest("readonly", &known), Some("read_only"));
        assert_eq!(nearest("nmae", &known), Some("name"));
        assert_eq!(nearest("coercion", &known), None);
        assert_eq!(nearest("schema", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn words_are_listed_as_prose() {
        assert_eq!(listed(&[], "or"), "");
        assert_eq!(listed(&["a"], "or"), "`a`");
        assert_eq!(listed(&["a", "b", "c"], "or"), "`a`, `b` or `c`");
    }

    #[test]
    fn several_errors_become_several_items() {
        let mut errors = Errors::default();
        errors.at_span(Span::call_site(), "one");
        errors.at_span(Span::call_site(), "two");
        let tokens = errors.finish().unwrap().to_string();
        assert_eq!(tokens.matches("compile_error").count(), 2, "{tokens}");
        assert!(Errors::default().finish().is_none());
    }
}
