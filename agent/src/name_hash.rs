//! A hash for the names of parameters and for the keys that a model sends. It is several times faster than the standard hash on short
//! texts. Its seeds differ in each process, so that a model cannot send keys that collide.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHash {
    start: u64,
    factor: u64,
}

impl Default for NameHash {
    #[inline]
    fn default() -> NameHash {
        static SEEDS: OnceLock<NameHash> = OnceLock::new();
        *SEEDS.get_or_init(|| {
            let random = RandomState::new();
            NameHash { start: random.hash_one(1), factor: random.hash_one(2) | 1 }
        })
    }
}

impl BuildHasher for NameHash {
    type Hasher = NameHasher;

    #[inline]
    fn build_hasher(&self) -> NameHasher {
        NameHasher { state: self.start, factor: self.factor }
    }
}

pub(crate) struct NameHasher {
    state: u64,
    factor: u64,
}

impl NameHasher {
    /// Mixes a word into the state. Both halves of a product are combined, so each bit of the state depends on every bit so far.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the product")]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.factor);
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        // The length distinguishes texts that differ only by zeros at their end.
        let mut last = bytes.len() as u64;
        for byte in rest {
            last = last << 8 | u64::from(*byte);
        }
        self.mix(last);
    }

    /// Ignores the byte with which `str` marks its end, because `write` has hashed the length.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::NameHash;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn different_names_have_different_hashes() {
        let hash = NameHash::default();
        let numbered = (0..100_000).map(|n| format!("key-{n}"));
        let zeros = (0..64).map(|n| "\0".repeat(n));
        let hashes: HashSet<u64> = numbered.chain(zeros).map(|name| hash.hash_one(name.as_str())).collect();
        assert_eq!(hashes.len(), 100_064);
        // Hash tables use the upper seven bits and the lower bits.
        let upper: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        let lower: HashSet<u64> = hashes.iter().map(|hash| hash & 0xfff).collect();
        assert_eq!((upper.len(), lower.len()), (128, 4_096));
    }

    #[test]
    fn equal_names_have_equal_hashes() {
        let (a, b) = (NameHash::default(), NameHash::default());
        assert_eq!(a.hash_one("max_results"), b.hash_one(String::from("max_results").as_str()));
    }
}
