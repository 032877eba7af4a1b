//! Suggestions for misspelled names.

use super::text::fold;
use std::sync::OnceLock;

/// Maximum length of compared names, in characters. The cost of a comparison grows with the product of both lengths.
const MAX_CHARS: usize = 64;
/// Maximum length of compared names in lower case. A character becomes at most three lower-case characters.
const MAX_LOWER: usize = 3 * MAX_CHARS;
const MAX_SUGGESTIONS: usize = 3;

/// Returns the candidates that `input` was probably meant to be: at most three, the most similar first, never `input` itself.
///
/// Candidates that differ from `input` only in case and separators are preferred, so that camelCase, `snake_case` and
/// kebab-case match. If no candidate is preferred, candidates are compared by Jaro-Winkler similarity and edit distance.
/// Nothing is suggested for names above 64 characters.
///
/// ```
/// use agent::args::did_you_mean;
/// assert_eq!(did_you_mean("maxResults", ["query", "max_results"]), ["max_results"]);
/// assert_eq!(did_you_mean("limt", ["limit", "offset"]), ["limit"]);
/// assert!(did_you_mean("file_path", ["path"]).is_empty());
/// ```
pub fn did_you_mean<'a>(input: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if !is_comparable(input) {
        return Vec::new();
    }
    let words: Vec<(&'a str, Spelling)> =
        candidates.into_iter().map(|word| (word, Spelling::of(word))).collect();
    near(&Spelling::of(input), input, words.iter().map(|(word, spelling)| (*word, spelling)))
}

pub(crate) fn near_names<'a>(
    input: &str,
    names: impl Iterator<Item = (&'a str, &'a Spelling)> + Clone,
) -> Vec<&'a str> {
    let is_hopeless = !is_comparable(input) || names.clone().next().is_none();
    if is_hopeless { Vec::new() } else { near(&Spelling::of(input), input, names) }
}

fn near<'a, 's>(
    sent: &Spelling,
    input: &str,
    candidates: impl Iterator<Item = (&'a str, &'s Spelling)> + Clone,
) -> Vec<&'a str> {
    let words = candidates.filter(|(word, spelling)| spelling.is_short && *word != input);
    if !sent.folded.is_empty() {
        let same = words.clone().filter(|(_, spelling)| spelling.folded == sent.folded);
        let same: Vec<&str> = same.map(|(word, _)| word).take(MAX_SUGGESTIONS).collect();
        if !same.is_empty() {
            return same;
        }
    }
    let wanted = &sent.lower;
    let threshold = if wanted.len() > 3 { 0.834 } else { 0.77 };
    let mut near: Vec<Near<'a>> = Vec::new();
    for (word, spelling) in words.filter(|(_, spelling)| sent.may_reach(threshold, spelling)) {
        let similarity = jaro_winkler(&spelling.lower, wanted);
        if similarity >= threshold {
            let is_lower = word.chars().eq(spelling.lower.iter().copied());
            let written = || jaro_winkler(&word.chars().collect::<Vec<char>>(), wanted);
            let likeness = if is_lower { similarity } else { written() };
            near.push(Near { word, likeness, edits: edits(&spelling.lower, wanted) });
        }
    }
    near.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
    let limit = wanted.len().div_ceil(4);
    let typos: Vec<&str> =
        near.iter().filter(|n| n.edits <= limit).map(|n| n.word).take(MAX_SUGGESTIONS).collect();
    if !typos.is_empty() {
        return typos;
    }
    near.iter()
        .find(|n| n.edits < wanted.len().min(n.word.chars().count()))
        .map(|n| n.word)
        .into_iter()
        .collect()
}

/// Returns whether a name differs from `input` only by case and separators, or by at most 25 % of characters.
pub(crate) fn has_close_name<'a>(
    input: &str,
    names: impl Iterator<Item = (&'a str, &'a Spelling)> + Clone,
) -> bool {
    near_names(input, names).into_iter().any(|name| {
        fold(name) == fold(input) || 4 * edits(&lower(name), &lower(input)) <= input.chars().count()
    })
}

#[derive(Debug)]
pub(crate) struct Spelling {
    folded: String,
    lower: Vec<char>,
    /// The number of characters in `lower` for each code point modulo 32.
    letters: [u8; 32],
    /// Whether the name is short enough to be compared. If it is not, `folded` and `lower` are empty.
    is_short: bool,
}

impl Spelling {
    fn of(name: &str) -> Spelling {
        let is_short = is_short(name);
        let (folded, lower) = if is_short { (fold(name), lower(name)) } else { Default::default() };
        let mut letters = [0_u8; 32];
        for letter in &lower {
            let count = &mut letters[*letter as usize % 32];
            *count = count.saturating_add(1);
        }
        Spelling { folded, lower, letters, is_short }
    }

    /// Returns whether the similarity of two names can reach `threshold`. Computes only an upper bound, which is fast.
    #[expect(clippy::cast_precision_loss, reason = "lengths are at most a few hundred")]
    fn may_reach(&self, threshold: f64, other: &Spelling) -> bool {
        // The sum is at most `MAX_LOWER`, so it does not wrap.
        let common = (0..32).fold(0_u8, |sum, at| sum.wrapping_add(self.letters[at].min(other.letters[at])));
        if common == 0 {
            return false;
        }
        let (m, a, b) = (f64::from(common), self.lower.len() as f64, other.lower.len() as f64);
        let jaro = ((m / a).min(1.0) + (m / b).min(1.0) + 1.0) / 3.0;
        // Adds more than the rounding error of the exact similarity, so that no similar name is excluded.
        with_prefix(jaro, &self.lower, &other.lower) + 1e-6 >= threshold
    }
}

/// The spellings of a list of names, made when they are needed for the first time.
#[derive(Debug, Default)]
pub(crate) struct Spellings(OnceLock<Box<[Spelling]>>);

impl Spellings {
    /// Returns the stored spellings. Each call must pass the same names.
    pub(crate) fn of<'a>(&self, names: impl Iterator<Item = &'a str>) -> &[Spelling] {
        self.0.get_or_init(|| names.map(Spelling::of).collect())
    }
}

struct Near<'a> {
    word: &'a str,
    likeness: f64,
    edits: usize,
}

fn is_comparable(input: &str) -> bool {
    !input.is_empty() && is_short(input)
}

fn is_short(word: &str) -> bool {
    word.len() <= MAX_CHARS || word.len() <= 4 * MAX_CHARS && word.chars().count() <= MAX_CHARS
}

fn lower(word: &str) -> Vec<char> {
    if word.is_ascii() {
        return word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    }
    word.chars().flat_map(char::to_lowercase).collect()
}

pub(super) fn jaro_winkler(a: &[char], b: &[char]) -> f64 {
    with_prefix(jaro(a, b), a, b)
}

#[expect(clippy::cast_precision_loss, reason = "at most four")]
fn with_prefix(jaro: f64, a: &[char], b: &[char]) -> f64 {
    if jaro <= 0.7 {
        return jaro;
    }
    let prefix = a.iter().zip(b).take(4).take_while(|(x, y)| x == y).count();
    jaro + prefix as f64 * 0.1 * (1.0 - jaro)
}

#[expect(clippy::cast_precision_loss, reason = "lengths are at most a few hundred")]
fn jaro(a: &[char], b: &[char]) -> f64 {
    let (a, b) = if a.len() > b.len() { (b, a) } else { (a, b) };
    if a.is_empty() {
        return 0.0;
    }
    let range = (b.len() / 2).saturating_sub(1);
    let (mut matched_a, mut matched_b) = ([false; MAX_LOWER], [false; MAX_LOWER]);
    let mut matches = 0;
    for (i, (x, is_matched)) in a.iter().zip(&mut matched_a).enumerate() {
        let nearby = b.iter().zip(&mut matched_b).take(i + range + 1).skip(i.saturating_sub(range));
        for (y, is_taken) in nearby {
            if !*is_taken && x == y {
                (*is_matched, *is_taken) = (true, true);
                matches += 1;
                break;
            }
        }
    }
    if matches == 0 {
        return 0.0;
    }
    let left = a.iter().zip(&matched_a).filter(|(_, hit)| **hit).map(|(c, _)| c);
    let right = b.iter().zip(&matched_b).filter(|(_, hit)| **hit).map(|(c, _)| c);
    let swaps = left.zip(right).filter(|(x, y)| x != y).count() / 2;
    let m = f64::from(matches);
    (m / a.len() as f64 + m / b.len() as f64 + (m - swaps as f64) / m) / 3.0
}

/// Returns the restricted Damerau-Levenshtein distance (optimal string alignment), in which a swap of neighbors is one edit.
fn edits(a: &[char], b: &[char]) -> usize {
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    edits_between(&a[..a.len() - same], &b[..b.len() - same])
}

fn edits_between(a: &[char], b: &[char]) -> usize {
    if a.is_empty() || b.is_empty() {
        return a.len().max(b.len());
    }
    // A distance fits a `u8`, because it is at most the length of the longer name.
    let mut before = [0_u8; MAX_LOWER + 1];
    let mut above = before;
    let mut row = before;
    for (cell, j) in above.iter_mut().zip(0..) {
        *cell = j;
    }
    let mut last = None;
    for (i, x) in (1..).zip(a) {
        row[0] = i;
        for (j, y) in b.iter().enumerate() {
            let replaced = above[j] + u8::from(x != y);
            row[j + 1] = (above[j + 1] + 1).min(row[j] + 1).min(replaced);
            if j > 0 && last == Some(y) && *x == b[j - 1] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        last = Some(x);
        (before, above, row) = (above, row, before);
    }
    above[b.len()].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(s: &str) -> Vec<char> {
        s.chars().collect()
    }

    #[test]
    fn edit_distance_counts_a_swap_once() {
        assert_eq!(edits(&chars("hihg"), &chars("high")), 1);
        assert_eq!(edits(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(edits(&chars(""), &chars("abc")), 3);
        assert_eq!(edits(&chars("abc"), &chars("")), 3);
    }

    #[test]
    fn equal_ends_need_no_edit() {
        let words: Vec<Vec<char>> = (0..3_usize.pow(5))
            .flat_map(|n| {
                let letters: Vec<char> = (0..5).map(|at| ['a', 'b', 'c'][n / 3_usize.pow(at) % 3]).collect();
                (0..=5).map(move |length| letters[..length].to_vec())
            })
            .collect();
        let words: std::collections::BTreeSet<_> = words.into_iter().collect();
        for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (a, b))) {
            assert_eq!(edits(a, b), edits_between(a, b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn equal_folds_win_alone() {
        assert_eq!(
            did_you_mean("startLine", ["start_lin", "start-line", "start line"]),
            ["start-line", "start line"]
        );
    }

    #[test]
    fn never_itself_and_never_long_names() {
        let long = "n".repeat(65);
        let longer = "n".repeat(66);
        assert!(did_you_mean("name", ["name"]).is_empty());
        assert!(did_you_mean(&long, [longer.as_str()]).is_empty());
        assert!(did_you_mean("", ["a"]).is_empty());
        assert!(did_you_mean("---", ["___"]).is_empty());
    }

    #[test]
    fn no_near_name_is_dismissed_by_its_letters() {
        let names = [
            "limit",
            "Limit",
            "time_limit",
            "tilim",
            "max_results",
            "résumé",
            "RÉSUMÉ",
            "straße",
            "aab",
            "baa",
            "İx",
        ];
        for (a, b) in names.iter().flat_map(|a| names.iter().map(move |b| (a, b))) {
            let (sent, own) = (Spelling::of(a), Spelling::of(b));
            let likeness = jaro_winkler(&own.lower, &sent.lower);
            assert!(likeness <= 0.0 || sent.may_reach(likeness, &own), "{a} {b} {likeness}");
        }
        assert!(!Spelling::of("limit").may_reach(0.834, &Spelling::of("query")));
    }

    #[test]
    fn short_names_have_a_lower_bar() {
        assert_eq!(did_you_mean("lim", ["limit"]), ["limit"]);
        assert!(did_you_mean("x", ["y"]).is_empty());
    }
}
