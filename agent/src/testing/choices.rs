//! Decisions, made by a script, by chance, or not at all, and remembered, so that each can be made the other way.

/// A source of decisions that gives the same ones again for the same script and seed.
pub(super) struct Choices {
    script: Vec<usize>,
    /// How many ways each decision had.
    ways: Vec<usize>,
    random: Option<Random>,
}

/// Enough for any sample; a schema that asks for more is sampled coarsely.
const MAX_REMEMBERED: usize = 4_096;

impl Choices {
    /// The script's decisions; after its end the first way, always.
    pub(super) fn scripted(script: Vec<usize>) -> Choices {
        Choices { script, ways: Vec::new(), random: None }
    }

    /// Decisions by chance.
    pub(super) fn random(seed: u64) -> Choices {
        Choices { script: Vec::new(), ways: Vec::new(), random: Some(Random(seed)) }
    }

    /// One of `ways` ways, from 0; 0 where there is nothing to decide.
    pub(super) fn pick(&mut self, ways: usize) -> usize {
        if ways <= 1 {
            return 0;
        }
        let way = match (self.script.get(self.ways.len()), &mut self.random) {
            (Some(way), _) => *way,
            (None, Some(random)) => random.below(ways),
            (None, None) => 0,
        };
        if self.ways.len() < MAX_REMEMBERED {
            self.ways.push(ways);
        }
        way.min(ways - 1)
    }

    /// How many ways each decision had, in order.
    pub(super) fn ways(&self) -> &[usize] {
        &self.ways
    }
}

/// A small generator of random numbers (SplitMix64): the same ones on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.next().checked_rem(end).unwrap_or(0)).unwrap_or(0)
    }
}
