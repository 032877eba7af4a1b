//! The strings of an `enum` and the names of variants, with their aliases.

use super::Graph;
use super::node::{NodeId, NodeKind};
use super::token::{NameToken, word_at};
use crate::args::policy::Rules;
use crate::args::text::fold;
use std::{collections::HashMap, collections::HashSet, sync::OnceLock};

/// An index of strings by their spelling without case and separators. The index is built when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Folds(OnceLock<HashMap<String, Option<usize>>>);

impl Folds {
    /// Returns the index of the only string whose folded spelling is `folded`. `spellings` must be the same in every call, because only
    /// the first call reads them.
    pub(crate) fn find<'a>(
        &self,
        spellings: impl Iterator<Item = (&'a str, usize)>,
        folded: &str,
    ) -> Option<usize> {
        let index = self.0.get_or_init(|| {
            let mut index = HashMap::new();
            for (spelling, of) in spellings {
                let same = |known: &mut Option<usize>| *known = known.filter(|known| *known == of);
                index.entry(fold(spelling)).and_modify(same).or_insert(Some(of));
            }
            index
        });
        *index.get(folded)?
    }
}

/// A set of strings without repetitions. If `open`, the set also accepts any other string.
#[derive(Debug, Default)]
pub(crate) struct Words {
    own: Vec<String>,
    /// Each string of `own` as JSON text, in quotes. A string that a model writes with unusual escapes, such as `\u0061`, does not match.
    tokens: Box<[NameToken]>,
    /// Other spellings, which models do not see, each with the index of its string in `own`.
    aliases: Vec<(String, usize)>,
    open: bool,
    folds: Folds,
}

/// The string of a set that a text matches. If no string matches and the set accepts any string, the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PickedWord<'a> {
    pub(crate) word: &'a str,
    /// Whether the text matches only if case and separators are ignored.
    pub(crate) is_coerced: bool,
}

impl Words {
    pub(super) fn new(mut words: Vec<String>) -> Words {
        let mut told = HashSet::new();
        words.retain(|word| told.insert(word.clone()));
        let tokens = words.iter().map(|word| NameToken::value(word)).collect();
        Words { own: words, tokens, ..Words::default() }
    }

    pub(super) fn with_aliases<'a>(mut self, aliases: impl IntoIterator<Item = (&'a str, &'a str)>) -> Words {
        for (word, alias) in aliases {
            if let Some(of) = self.own.iter().position(|own| own == word) {
                self.aliases.push((alias.to_owned(), of));
            }
        }
        self
    }

    pub(super) fn opened(mut self, open: bool) -> Words {
        self.open = open;
        self
    }

    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.own.iter().map(String::as_str)
    }

    pub(crate) fn aliases(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().map(|(alias, _)| alias.as_str())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the end of the string that starts at `at` in a JSON text, or `None` if the set does not contain the string. Aliases and
    /// strings with unusual escapes are not found.
    #[inline]
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let head = word_at(text, at);
        self.tokens.iter().find_map(|token| token.end_after(head, text, at))
    }

    /// Returns the string of the set that is `text` or has the alias `text`. With `FOLD_ENUM`, case and separators are ignored, unless
    /// several strings then match. An open set accepts any other text.
    #[inline]
    pub(crate) fn pick<'a>(&'a self, text: &'a str, rules: Rules) -> Option<PickedWord<'a>> {
        let exact = |word| Some(PickedWord { word, is_coerced: false });
        if let Some(word) = self.names().find(|word| *word == text) {
            return exact(word);
        }
        if let Some((_, of)) = self.aliases.iter().find(|(alias, _)| alias == text) {
            return exact(self.own.get(*of)?);
        }
        if let Some(word) = self.folded(text, rules) {
            return Some(PickedWord { word, is_coerced: true });
        }
        if self.open { exact(text) } else { None }
    }

    fn folded(&self, text: &str, rules: Rules) -> Option<&str> {
        if !rules.has(Rules::FOLD_ENUM) || text.len() > 256 {
            return None;
        }
        let folded = fold(text);
        if folded.is_empty() {
            return None;
        }
        let aliases = self.aliases.iter().map(|(alias, of)| (alias.as_str(), *of));
        let spellings = self.names().enumerate().map(|(of, word)| (word, of)).chain(aliases);
        self.own.get(self.folds.find(spellings, &folded)?).map(String::as_str)
    }
}

#[derive(Debug, Default)]
pub(crate) struct VariantNames {
    words: Words,
    /// The variant for every other name (serde's `other`).
    pub(super) other: Option<NodeId>,
    are_objects: OnceLock<bool>,
    first: OnceLock<FirstTag>,
}

/// An enum's tag and variants, for objects whose tag comes first.
#[derive(Debug)]
pub(crate) struct FirstTag {
    pub(crate) key: NameToken,
    /// Each variant that is an object: its name, its schema node, and the index of its tag property. A variant whose tag property does not
    /// accept the name is left out.
    pub(crate) variants: Box<[(NameToken, NodeId, usize)]>,
}

impl VariantNames {
    pub(super) fn new(words: Words, other: Option<NodeId>) -> VariantNames {
        let words = words.opened(other.is_some());
        VariantNames { words, other, are_objects: OnceLock::new(), first: OnceLock::new() }
    }

    #[cfg(feature = "testing")]
    pub(super) fn is_open(&self) -> bool {
        self.other.is_some()
    }

    /// Returns whether every variant is an object without checks such as `not`, so that its entries can be read as soon as the tag is
    /// known.
    #[inline]
    pub(crate) fn are_objects(&self, variants: &[(String, NodeId)], graph: &Graph) -> bool {
        let is_object = |node: NodeId| matches!(graph.kind(node), NodeKind::Object(_));
        *self.are_objects.get_or_init(|| variants.iter().map(|v| v.1).chain(self.other).all(is_object))
    }

    /// Computes the result only once, so every call must pass the same `tag` and `variants`.
    #[inline]
    pub(crate) fn first(&self, tag: &str, variants: &[(String, NodeId)], graph: &Graph) -> &FirstTag {
        self.first.get_or_init(|| {
            let known = |(name, variant): &(String, NodeId)| {
                let NodeKind::Object(object) = graph.kind(*variant) else { return None };
                let index = object.find(tag, 0)?;
                let is_word =
                    |node: NodeId| matches!(graph.kind(node), NodeKind::Enum(words) if words.contains(name));
                object.props.get(index).filter(|prop| is_word(prop.node))?;
                Some((NameToken::value(name), *variant, index))
            };
            FirstTag { key: NameToken::key(tag), variants: variants.iter().filter_map(known).collect() }
        })
    }

    pub(crate) fn pick<'a>(
        &'a self,
        variants: &[(String, NodeId)],
        text: &'a str,
        rules: Rules,
    ) -> Option<(PickedWord<'a>, NodeId)> {
        let picked = self.words.pick(text, rules)?;
        let variant = variants.iter().find(|(name, _)| name == picked.word).map(|(_, node)| *node);
        Some((picked, variant.or(self.other)?))
    }
}

impl std::ops::Deref for Words {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.own
    }
}
