//! What YCSB computes differently from the definitions, for those who must compare with its figures; and how it names records.
//! After site.ycsb.Utils, site.ycsb.generator.ZipfianGenerator and ScrambledZipfianGenerator, version 0.17.0.

use libm::pow;

use crate::Stream;

/// YCSB draws from a Zipf distribution of this many items, however many records there are.
const ITEMS: f64 = 10_000_000_000.0;
/// Its constant 0.99, and the sum of i^-0.99 over all of them, which it has as a number.
const EXPONENT: f64 = 0.99;
const ZETA: f64 = 26.469_028_201_783_02;

/// The 64-bit FNV hash of a number's eight bytes, the lowest first, without its sign.
pub fn hash(number: u64) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let hashed = number.to_le_bytes().iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    hashed.cast_signed().unsigned_abs()
}

/// Its scrambled Zipfian generator: an approximation after Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD
/// 1994, whose ranks are hashed, so that several ranks share a record and some have none.
#[derive(Clone, Copy, Debug)]
pub struct ScrambledZipfian {
    records: u64,
    zeta_of_two: f64,
    eta: f64,
}

impl ScrambledZipfian {
    /// Over this many records.
    pub fn new(records: u64) -> Self {
        let zeta_of_two = 1.0 + pow(0.5, EXPONENT);
        let eta = (1.0 - pow(2.0 / ITEMS, 1.0 - EXPONENT)) / (1.0 - zeta_of_two / ZETA);
        Self { records, zeta_of_two, eta }
    }

    /// The record of the k-th choice.
    pub fn record(&self, stream: Stream, k: u64) -> u64 {
        let unit = stream.unit(k);
        let scaled = unit * ZETA;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < self.zeta_of_two {
            1
        } else {
            (ITEMS * pow(self.eta * unit - self.eta + 1.0, 1.0 / (1.0 - EXPONENT))) as u64
        };
        hash(rank) % self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_fnv() {
        // Names of the first records that YCSB loads: user6284781860667377211, user8517097267634966620, user1820151046732198393.
        let expected = [6_284_781_860_667_377_211, 8_517_097_267_634_966_620, 1_820_151_046_732_198_393];
        assert_eq!([hash(0), hash(1), hash(2)], expected);
    }

    #[test]
    fn the_most_frequent_record_has_the_share_of_its_rank() {
        const SAMPLES: u64 = 200_000;
        let hottest = hash(0) % 1000;
        let zipfian = ScrambledZipfian::new(1000);
        let found = (0..SAMPLES).filter(|k| zipfian.record(Stream::new(5), *k) == hottest).count() as f64;
        // Its own share is 1 / 26.469; other ranks that are hashed to the same record have a thousandth of the rest.
        let expected = SAMPLES as f64 * (1.0 / ZETA + (1.0 - 1.0 / ZETA) / 1000.0);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected}");
    }
}
