//! Why values cannot be put into documents and names.

use sensorbench_driver::Parameter;

/// Why values cannot be put into a document: which one, by its place.
#[derive(Debug, PartialEq)]
pub enum FieldConversionError {
    /// A time has parts of a millisecond, which a date has not.
    TooFine(usize, i64),
    /// Null, or a value of another type, cannot be a number in a name.
    NoNumber(usize),
    /// A time is not the beginning of its slot.
    BetweenSlots(usize, i64),
}

impl FieldConversionError {
    /// The error in words, by the names of the fields.
    pub fn describe(&self, fields: &[Parameter]) -> String {
        match self {
            FieldConversionError::TooFine(place, time) => format!(
                "{}: the time {time} µs is not a whole number of milliseconds, which is all that a date can hold; leave out $date",
                fields[*place].name
            ),
            FieldConversionError::NoNumber(place) => {
                format!("{}: a name is made of it, so it cannot be null", fields[*place].name)
            }
            FieldConversionError::BetweenSlots(place, time) => format!(
                "{}: the time {time} µs is not the beginning of a slot, which keeps no more of a time than its number; readings that \
                 are closer together than slots need another schema",
                fields[*place].name
            ),
        }
    }
}
