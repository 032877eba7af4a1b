//! The annotated function keeps its signature, attributes and visibility.
#![deny(warnings)]

mod inner {
    /// Adds.
    #[agent::tool]
    #[inline]
    #[must_use]
    pub(crate) const fn add(a: u8, b: u8) -> u8 {
        a + b
    }
}
use inner::add;

const SUM: u8 = add(1, 2);

fn main() {
    assert_eq!(SUM, 3);
    assert_eq!(agent::tools![add].len(), 1);
}
