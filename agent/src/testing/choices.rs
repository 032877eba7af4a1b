//! Makes choices by a script or at random. The number of options of each choice is recorded, so that another script can vary the choice.

pub(super) struct Choices {
    script: Vec<usize>,
    /// The number of options of each recorded choice.
    ways: Vec<usize>,
    random: Option<Random>,
}

/// Maximum number of recorded choices. Further choices are not varied.
const MAX_REMEMBERED: usize = 4_096;

impl Choices {
    /// Creates choices that follow a script. After the end of the script, the first option is chosen.
    pub(super) fn scripted(script: Vec<usize>) -> Choices {
        Choices { script, ways: Vec::new(), random: None }
    }

    pub(super) fn random(seed: u64) -> Choices {
        Choices { script: Vec::new(), ways: Vec::new(), random: Some(Random(seed)) }
    }

    /// Chooses one of `ways` options, counted from 0.
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

    pub(super) fn ways(&self) -> &[usize] {
        &self.ways
    }
}

/// A small random number generator (`SplitMix64`), the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.next().checked_rem(end).unwrap_or(0)).unwrap_or(0)
    }
}
