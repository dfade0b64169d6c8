//! The unit of the server's times.

use sensorbench_driver::ConversionError;

/// The unit of the server's times (`timestamp_precision`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    Millis,
    Micros,
}

impl Precision {
    pub fn of(name: &str) -> Result<Self, String> {
        match name {
            "ms" => Ok(Self::Millis),
            "us" => Ok(Self::Micros),
            other => Err(format!("its timestamp_precision is {other}; expected us, or ms for data that have no finer times")),
        }
    }

    pub fn unit_us(self) -> i64 {
        if self == Self::Millis { 1000 } else { 1 }
    }

    /// A time in the server's unit. What the server would cut is refused.
    pub fn time(self, time_us: i64) -> Result<i64, ConversionError> {
        if time_us % self.unit_us() != 0 {
            let message =
                format!("the time {time_us} µs is not a whole ms, which the server keeps alone; set its timestamp_precision=us");
            return Err(ConversionError(message));
        }
        Ok(time_us / self.unit_us())
    }
}
