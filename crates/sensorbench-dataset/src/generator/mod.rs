//! Generators of measurements. A generator consists of parts, each a pure function of the seed and its number.

mod building;
mod fitted;
mod parallel;

pub use building::{Building, BuildingSeries, SeriesKind};
pub use fitted::{Fitted, FittedSeries};
pub use parallel::{GeneratedRows, Parts, measurement_schema};
