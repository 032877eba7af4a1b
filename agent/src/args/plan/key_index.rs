//! Finds a parameter by its name in a few instructions, independent of the number of parameters.

use super::node::Prop;
use super::token::{WORD, before_bare_quote, word_at};

/// A hash table of the names and aliases of parameters. Sent keys are not added, so they cannot make lookups slower.
#[derive(Debug)]
pub(super) struct KeyIndex {
    /// The number of entries is a power of two. At least half of the entries are empty.
    places: Box<[KeyPlace]>,
}

#[derive(Clone, Debug)]
struct KeyPlace {
    ends: [u64; 2],
    /// The length of the name, in bytes; `UNWRITTEN` for an alias, and for a name that JSON writes with escapes.
    length: usize,
    /// The index of the property, or `EMPTY`.
    index: usize,
}

const EMPTY: usize = usize::MAX;
const UNWRITTEN: usize = usize::MAX;

impl KeyIndex {
    pub(super) fn new(props: &[Prop]) -> KeyIndex {
        let count: usize = props.iter().map(|prop| prop.names().count()).sum();
        let empty = KeyPlace { ends: [0; 2], length: UNWRITTEN, index: EMPTY };
        let mut places = vec![empty; (2 * count).next_power_of_two()].into_boxed_slice();
        for (index, prop) in props.iter().enumerate() {
            for name in prop.names() {
                let mut at = hash(name.as_bytes());
                while places[at & (places.len() - 1)].index != EMPTY {
                    at += 1;
                }
                // Without escapes, the token is the name with two quotes and a colon.
                let is_written = name == prop.name && prop.token.text().len() == name.len() + 3;
                let length = if is_written { name.len() } else { UNWRITTEN };
                let place = KeyPlace { ends: ends(name.as_bytes()), length, index };
                places[at & (places.len() - 1)] = place;
            }
        }
        KeyIndex { places }
    }

    /// Returns the index of the property whose key is at this position of a JSON text, and the position after the colon. Does not find
    /// aliases, names of more than 16 bytes, keys with escapes, and keys with white space before the colon.
    #[inline]
    pub(super) fn written_at(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        if text.get(at) != Some(&b'"') {
            return None;
        }
        let start = at + 1;
        let head = word_at(text, start);
        // The first quote may be an escaped quote inside the key. The text before it then ends with a backslash and matches no entry,
        // because a name with a backslash is `UNWRITTEN`.
        let (head, tail, length) = match before_bare_quote(head) {
            WORD => {
                let more = before_bare_quote(word_at(text, start + WORD));
                (head, if more > 0 { word_at(text, start + more) } else { 0 }, WORD + more)
            }
            length => (head & ((1 << (8 * length)) - 1), 0, length),
        };
        let mut at = short_hash(head, tail, length);
        loop {
            let place = self.places.get(at & (self.places.len() - 1))?;
            if place.ends == [head, tail] && place.length == length {
                let end = start + length + 2;
                return (text.get(end - 2..end)? == b"\":").then_some((place.index, end));
            }
            if place.index == EMPTY {
                return None;
            }
            at += 1;
        }
    }

    #[inline]
    pub(super) fn find(&self, key: &str, props: &[Prop]) -> Option<usize> {
        let mut at = hash(key.as_bytes());
        loop {
            let index = self.places.get(at & (self.places.len() - 1))?.index;
            let prop = props.get(index)?;
            if prop.name == key || prop.aliases.iter().any(|alias| alias == key) {
                return Some(index);
            }
            at += 1;
        }
    }
}

/// Returns a hash of all bytes of a name. For a name of at most 16 bytes, it is the [`short_hash`].
#[inline]
fn hash(key: &[u8]) -> usize {
    let [head, tail] = ends(key);
    let short = short_hash(head, tail, key.len());
    if key.len() <= 2 * WORD {
        return short;
    }
    let words = key[WORD..].chunks(WORD).map(|word| word_at(word, 0));
    index(words.fold(short as u64, mixed))
}

/// Returns the first eight bytes of a name and, if the name is longer, its last eight bytes.
#[inline]
fn ends(key: &[u8]) -> [u64; 2] {
    [word_at(key, 0), if key.len() > WORD { word_at(key, key.len() - WORD) } else { 0 }]
}

#[inline]
fn short_hash(head: u64, tail: u64, length: usize) -> usize {
    index(mixed(head ^ (length as u64).rotate_right(8), tail))
}

#[inline]
fn index(state: u64) -> usize {
    (state >> 32) as usize
}

#[inline]
fn mixed(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(other ^ 0xd1b5_4a32_d192_ed03);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    let folded = product as u64 ^ (product >> 64) as u64;
    folded
}

#[cfg(test)]
mod tests {
    use crate::args::plan::{Child, Plan};
    use crate::args::policy::PlanOptions;
    use serde_json::{Map, Value, json};

    #[test]
    fn every_name_is_found_and_no_other() {
        let names: Vec<String> = (0..300)
            .map(|n| match n % 3 {
                0 => format!("{n}"),
                1 => format!("name_{n}"),
                _ => format!("the same beginning {n} and the same end"),
            })
            .collect();
        for count in [0, 1, 8, 9, 64, 300] {
            let props: Map<String, Value> =
                names.iter().take(count).map(|name| (name.clone(), json!({"type": "integer"}))).collect();
            let schema = json!({"type": "object", "properties": props});
            let plan = Plan::compile("many", &schema, PlanOptions::default()).unwrap();
            let object = plan.graph().root_object().unwrap();
            for (index, name) in names.iter().enumerate() {
                let found = object.child(name, 0);
                let is_known = index < count;
                assert_eq!(
                    matches!(found, Some(Child::Prop(at, _)) if at == index),
                    is_known,
                    "{count} {name}"
                );
                assert!(is_known || found.is_none(), "{count} {name}");
                let other = format!("{name} ");
                assert!(object.child(&other, 0).is_none(), "{count} {other}");
            }
        }
    }
}
