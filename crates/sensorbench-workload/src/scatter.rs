//! Neighbours far from one another: a permutation of 0..n that can be entered anywhere.

use crate::Stream;

/// Rounds after which a Feistel network of random functions cannot be distinguished from a random permutation (Luby and Rackoff, "How to
/// construct pseudorandom permutations from pseudorandom functions", SIAM Journal on Computing 17(2), 1988).
const ROUNDS: u64 = 4;
/// Equal for all runs, so that the same rows are the popular ones.
const SEED: u64 = 0x5ca7_7e4d;

/// A permutation of 0..n: a Feistel network over the next power of four, whose numbers beyond n are sent through it again
/// (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, method "cycle walking").
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    items: u64,
    half_bits: u32,
}

impl Scatter {
    /// A permutation of this many items.
    pub fn new(items: u64) -> Self {
        let bits = u64::BITS - items.saturating_sub(1).leading_zeros();
        Self { items, half_bits: bits.div_ceil(2).max(1) }
    }

    /// Where an item lies, if it is among the items.
    #[inline]
    pub fn place(&self, item: u64) -> u64 {
        let mut place = self.once(item);
        while place >= self.items {
            place = self.once(place);
        }
        place
    }

    fn once(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            let mixed = Stream::new(SEED).split(round).number(right) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_a_place_of_its_own() {
        for items in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            let scatter = Scatter::new(items);
            let mut places: Vec<u64> = (0..items).map(|item| scatter.place(item)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..items), "{items}");
        }
    }

    #[test]
    fn neighbours_are_far_apart() {
        let scatter = Scatter::new(1_000_000);
        let near = (0..10_000).filter(|item| scatter.place(*item).abs_diff(scatter.place(item + 1)) < 1_000).count();
        // Of places at random, two in a thousand are as near.
        assert!(near < 60, "{near}");
    }
}
