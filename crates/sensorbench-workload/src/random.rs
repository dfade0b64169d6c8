//! Random numbers that are looked up, not drawn: the k-th number of a stream costs the same for every k.

/// A stream of 64-bit random numbers with random access.
///
/// The k-th number is the k-th output of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014), whose state is a plain counter and can therefore be entered anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(scrambled(seed))
    }

    /// An independent stream for the purpose numbered `purpose`.
    #[inline]
    pub fn split(self, purpose: u64) -> Self {
        Self(scrambled(self.0 ^ scrambled(purpose.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA))))
    }

    /// The k-th number.
    #[inline]
    pub fn number(self, k: u64) -> u64 {
        scrambled(self.0.wrapping_add(k.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
    }

    /// The k-th number as one of the 2^53 equally spaced values of [0, 1).
    #[inline]
    pub fn unit(self, k: u64) -> f64 {
        (self.number(k) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The k-th number as one of 0..n, by multiplication (Lemire, "Fast random integer generation in an interval", 2019)
    /// without its rejection step: the bias is below n / 2^64.
    #[inline]
    pub fn below(self, k: u64, n: u64) -> u64 {
        ((u128::from(self.number(k)) * u128::from(n)) >> 64) as u64
    }
}

/// The finalizer of SplitMix64.
#[inline]
fn scrambled(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // Published test vector: seed 1234567 gives these outputs.
        let stream = Stream(1_234_567);
        assert_eq!([stream.number(0), stream.number(1)], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn units_fill_the_interval_evenly() {
        let stream = Stream::new(7);
        let mut tenths = [0u32; 10];
        (0..100_000).for_each(|k| tenths[(stream.unit(k) * 10.0) as usize] += 1);
        assert!(tenths.iter().all(|count| (9_600..10_400).contains(count)), "{tenths:?}");
    }

    #[test]
    fn split_streams_differ() {
        let stream = Stream::new(7);
        assert_ne!(stream.split(0).number(0), stream.split(1).number(0));
        assert_ne!(stream.split(0).number(0), stream.number(0));
    }
}
