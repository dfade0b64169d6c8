//! Which operation comes when? The k-th operation of a run, its kind and the rows of its parameters, is a function of
//! (seed, k) alone, so that every database is asked the same questions in the same order, whatever the concurrency.
//!
//! This crate knows no database, no clock and no thread.

mod arrivals;
mod choice;
mod delivery;
mod disorder;
mod mix;
mod random;
mod scatter;
mod share;
mod strata;
mod workload;
pub mod ycsb;
mod zipfian;

pub use arrivals::{Arrival, Arrivals, Pace, RateSegment};
pub use choice::{Choice, Chooser};
pub use delivery::{Delivered, Delivery, DeliveryModel, Duplicates, Gaps};
pub use disorder::Disorder;
pub use mix::{Mix, MixOrder};
pub use random::Stream;
pub use scatter::Scatter;
pub use share::Share;
pub use workload::{Grown, ParameterSource, Workload};
pub use zipfian::Zipfian;

use thiserror::Error;

/// A workload that cannot be run as described.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WorkloadError {
    /// Weights that are empty, negative, not finite, or all zero.
    #[error("weights of a mix must be finite and at least zero, one of them above zero; got {0:?}")]
    Weights(Vec<f64>),
    /// Weights that do not say how many times each kind comes.
    #[error("in turn, the weights of a mix must be whole numbers: how many times each kind comes in a round; got {0:?}")]
    WeightsInTurn(Vec<f64>),
    /// A skew that the distribution is not defined for.
    #[error("the exponent of a zipfian or latest choice must be finite and above zero; got {0}")]
    Exponent(f64),
    /// A share that is not between none and all.
    #[error("a share must be between 0 and 1, that of an exponential choice above 0; got {0}")]
    Share(f64),
    /// A rate that is negative or not finite.
    #[error("a rate must be finite and at least zero, in operations per second; got {0}")]
    Rate(f64),
    /// A share of a delivery that is none, or so large that nothing else is left.
    #[error("a share must be at least 0.000001 and at most {max_share}; got {share}")]
    DeliveryShare {
        /// What was given.
        share: f64,
        /// The greatest that there is.
        max_share: f64,
    },
    /// A delivery that is none.
    #[error("delivery: {0}")]
    Disorder(&'static str),
    /// A rate segment that only the last of a pace may be.
    #[error("only the last segment of a pace may be without a length")]
    EndlessSegment,
}
