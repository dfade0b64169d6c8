//! Times as requests and answers of PromQL have them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sensorbench_driver::SchemaError;

/// The ms that are asked for, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub first: i64,
    pub last: i64,
}

/// A time in seconds, as answers have it, in ms.
pub fn ms(seconds: &str) -> Option<i64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let places = [100, 10, 1];
    let fraction: i64 = fraction.bytes().zip(places).map(|(digit, place)| i64::from(digit - b'0') * place).sum();
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

/// A step: a whole number of s, m, h or d.
pub fn step_ms(path: &str, text: &str) -> Result<i64, SchemaError> {
    let unit = [("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let length = unit.iter().find_map(|(unit, ms)| text.strip_suffix(unit)?.parse::<i64>().ok()?.checked_mul(*ms));
    length.filter(|length| *length > 0).ok_or_else(|| {
        SchemaError::at(format!("{path}.step"), format!("{text:?}: expected a whole number of s, m, h or d, as in \"1h\""))
    })
}

/// Milliseconds as seconds, which requests have.
pub fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))
}

/// Now in ms since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Now in ms, each ms once: of two points of a series that have the same time the server keeps one alone. Where more than one is written in a ms,
/// times run ahead of the clock.
pub fn next_ms() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = now_ms();
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
    before.map_or(now, |last| now.max(last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_gives_each_ms_once() {
        let times: Vec<_> = (0..1000).map(|_| next_ms()).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn times_in_seconds_are_exact() {
        for (text, expected) in
            [("1435781430.781", Some(1_435_781_430_781)), ("1", Some(1000)), ("0.5", Some(500)), ("1e9", None), ("0.1234", None)]
        {
            assert_eq!(ms(text), expected, "{text}");
        }
    }
}
