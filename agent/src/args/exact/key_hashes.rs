//! Hashes of the keys of a map, to find keys that may be repeated.

use crate::name_hash::NameHash;
use std::hash::{BuildHasher, Hasher};

/// Number of hashes that are compared one by one. If there are more, they are in a table.
const FEW: usize = 8;

/// Hashes of keys. Different keys may have equal hashes.
#[derive(Default)]
pub(super) struct KeyHashes {
    few: [u64; FEW],
    /// A hash table with open addressing: the lower bits of a hash are the first index to try, and 0 marks a free index. At most half of
    /// the table is used.
    table: Vec<u64>,
    count: usize,
}

impl KeyHashes {
    /// Adds a key. Returns `false` if an earlier key has the same hash.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], seed: NameHash) -> bool {
        let mut hasher = seed.build_hasher();
        hasher.write(key);
        let hash = hasher.finish().max(1);
        if let Some(free) = self.few.get_mut(self.count) {
            *free = hash;
            self.count += 1;
            return !self.few.iter().take(self.count - 1).any(|own| *own == hash);
        }
        self.add_to_table(hash)
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn add_to_table(&mut self, hash: u64) -> bool {
        if self.table.len() < 2 * (self.count + 1) {
            let before = std::mem::replace(&mut self.table, vec![0; 4 * self.count.next_power_of_two()]);
            let few = if before.is_empty() { &self.few[..] } else { &[] };
            for hash in before.iter().chain(few).filter(|hash| **hash != 0) {
                insert(&mut self.table, *hash);
            }
        }
        self.count += 1;
        insert(&mut self.table, hash)
    }
}

/// Adds a hash, or returns `false` if the table has it already. The length of the table must be a power of two. One item must be 0, so
/// that the search ends.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower bits")]
fn insert(table: &mut [u64], hash: u64) -> bool {
    let mask = table.len().wrapping_sub(1);
    let mut at = hash as usize;
    while let Some(item) = table.get_mut(at & mask) {
        if *item == 0 {
            *item = hash;
            return true;
        }
        if *item == hash {
            return false;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::KeyHashes;
    use crate::name_hash::NameHash;

    #[test]
    fn a_repeated_key_is_found_among_any_number() {
        for count in [0, 1, 7, 8, 9, 63, 64, 65, 5_000] {
            let (mut keys, seed) = (KeyHashes::default(), NameHash::default());
            let names: Vec<String> = (0..count).map(|n| format!("key {n}")).collect();
            assert!(names.iter().all(|name| keys.add(name.as_bytes(), seed)), "{count}");
            assert_eq!(keys.len(), count);
            for name in &names {
                assert!(!keys.add(name.as_bytes(), seed), "{count} {name}");
            }
        }
    }
}
