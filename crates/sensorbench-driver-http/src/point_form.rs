//! Points in the form that a server takes.

use sensorbench_driver::{ConversionError, ValueRef};

use crate::line::PointForm;
use crate::points::Points;
use crate::{json_points, samples};

/// Appends the point of a row. `prefix` is what the namespace puts before the measurement.
///
/// Fails with what a point cannot hold; nothing is then appended.
pub fn append<'a>(
    points: &Points,
    data: &mut Vec<u8>,
    prefix: &str,
    value: impl Fn(usize) -> ValueRef<'a>,
) -> Result<(), ConversionError> {
    match points.limits.form {
        PointForm::Line => points.append(data, prefix, value),
        PointForm::Samples => samples::append(points, data, prefix, value),
        PointForm::Json => json_points::append(points, data, prefix, value),
    }
}
