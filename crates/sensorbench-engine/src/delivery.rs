//! How the writes of a run deliver their readings.

use sensorbench_dataset::Value;
use sensorbench_workload::{Delivery, DeliveryModel, Stream};
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// How the writes of one kind deliver their readings, as the control plane describes it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedDelivery {
    /// Which reading a write has.
    pub model: DeliveryModel,
    /// Numbers of the parameters that change in a reading which is sent again; none where it is sent as it was.
    #[serde(default)]
    pub renewed: Vec<usize>,
    /// Series that are replaced.
    pub churn: Option<Churn>,
}

/// Series that end, as others begin in their place: an integer that identifies them becomes another one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// Number of the parameter that becomes another one.
    pub parameter: usize,
    /// Number of the parameter that has the time, a timestamp.
    pub time: usize,
    /// The time at which the first period begins, in µs.
    pub start_us: i64,
    /// Length of a period in µs, at least 1.
    pub period_us: i64,
    /// Share of the series that is replaced in each period, above 0 and at most 1.
    pub share: f64,
    /// How much greater the integer becomes each time: more than the series differ in.
    pub step: i64,
}

/// The same, made ready for one phase.
#[derive(Clone, Debug)]
pub struct ReadyDelivery {
    pub(crate) delivery: Delivery,
    /// For each parameter, whether a reading that is sent again has another one.
    pub(crate) renewed: Vec<bool>,
    pub(crate) churn: Option<ReadyChurn>,
}

impl ReadyDelivery {
    /// The delivery of writes with this many parameters, from a stream of its own. Raises an error for numbers that make no delivery.
    pub fn new(planned: &PlannedDelivery, parameters: usize, random: Stream) -> Result<Self, EngineError> {
        let of_churn = planned.churn.iter().flat_map(|churn| [churn.parameter, churn.time]);
        if let Some(beyond) = planned.renewed.iter().copied().chain(of_churn).find(|parameter| *parameter >= parameters) {
            return Err(EngineError::Plan(format!("a delivery names parameter {beyond}, of {parameters}")));
        }
        let is_sound = |churn: &Churn| churn.period_us > 0 && churn.share > 0.0 && churn.share <= 1.0;
        if !planned.churn.as_ref().is_none_or(is_sound) {
            return Err(EngineError::Plan("churn needs a period above 0, and a share above 0 and at most 1".to_owned()));
        }
        Ok(Self {
            delivery: Delivery::new(&planned.model, random.split(0))?,
            renewed: (0..parameters).map(|parameter| planned.renewed.contains(&parameter)).collect(),
            churn: planned.churn.map(|churn| ReadyChurn { churn, random: random.split(1) }),
        })
    }
}

/// Churn of one phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyChurn {
    pub churn: Churn,
    random: Stream,
}

impl ReadyChurn {
    /// The integer that identifies a series at a time, of what it would be without churn. In each round of 1 / share periods a series
    /// is replaced once, at a time of its own, which is the same in each round: so that as many are replaced in each period.
    pub fn replaced(&self, value: Value, time: &Value) -> Value {
        let (Value::Integer(number), Value::Timestamp(time_us)) = (&value, time) else { return value };
        let elapsed = (time_us - self.churn.start_us).max(0) as f64 / self.churn.period_us as f64;
        let generation = (elapsed * self.churn.share + self.random.unit(number.cast_unsigned())) as i64;
        Value::Integer(number + self.churn.step * generation)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SERIES: i64 = 2_000;

    fn churn(share: f64) -> ReadyChurn {
        let churn = Churn { parameter: 0, time: 1, start_us: 1_000, period_us: 600, share, step: SERIES };
        ReadyChurn { churn, random: Stream::new(42) }
    }

    #[test]
    fn as_many_series_are_alive_and_those_ever_seen_grow_by_their_share() {
        for share in [0.01, 0.2] {
            let churn = churn(share);
            let at = |period: i64| -> HashSet<i64> {
                let time = Value::Timestamp(1_000 + period * 600);
                (0..SERIES)
                    .map(|series| match churn.replaced(Value::Integer(series), &time) {
                        Value::Integer(number) => number,
                        other => panic!("{other:?}"),
                    })
                    .collect()
            };
            let mut ever: HashSet<i64> = at(0);
            let first = ever.len();
            for period in 1..=50 {
                let alive = at(period);
                assert_eq!(alive.len(), SERIES as usize);
                assert!(alive.iter().all(|number| number % SERIES < SERIES));
                ever.extend(alive);
            }
            let grown = (ever.len() - first) as f64 / (50.0 * share * SERIES as f64);
            assert!((grown - 1.0).abs() < 0.05, "{share}: {grown}");
        }
    }

    #[test]
    fn before_the_first_period_series_are_those_that_they_are() {
        let replaced = churn(0.5).replaced(Value::Integer(7), &Value::Timestamp(0));
        assert!(matches!(replaced, Value::Integer(7)), "{replaced:?}");
    }
}
