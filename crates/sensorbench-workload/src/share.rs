//! The part of a run that one of several load generators has.

/// Of a run that several load generators share, the operations of one of them: each k with k ≡ `number` (mod `of`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// Number of the load generator, from 0.
    pub number: u64,
    /// How many load generators there are, at least one.
    pub of: u64,
}

impl Default for Share {
    /// All operations.
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

impl Share {
    /// How many of the operations k < `end` are its own.
    #[inline]
    pub fn count_before(self, end: u64) -> u64 {
        end.saturating_sub(self.number).div_ceil(self.of)
    }

    /// The how-manieth of its own operations one of them is, from 0.
    #[inline]
    pub fn ordinal(self, k: u64) -> u64 {
        k / self.of
    }

    /// Of places that are shared as evenly as may be, which are its own: the first of them, and how many.
    pub fn places(self, total: usize) -> (usize, usize) {
        let (number, of) = (self.number as usize, self.of as usize);
        (number * (total / of) + number.min(total % of), total / of + usize::from(number < total % of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_of_it_and_do_not_meet() {
        for (of, total) in [(1, 7), (3, 7), (4, 4), (4, 103)] {
            let shares: Vec<Share> = (0..of).map(|number| Share { number, of }).collect();
            assert_eq!(shares.iter().map(|share| share.count_before(total)).sum::<u64>(), total);
            for share in &shares {
                let counted = (0..total).filter(|k| k % of == share.number).count() as u64;
                assert_eq!(share.count_before(total), counted, "{share:?} of {total}");
            }
            let places: Vec<usize> = shares
                .iter()
                .flat_map(|share| {
                    let (first, count) = share.places(total as usize);
                    first..first + count
                })
                .collect();
            assert_eq!(places, (0..total as usize).collect::<Vec<_>>());
        }
    }
}
