//! Fields of devices as TSBS makes them (Time Series Benchmark Suite): a field has a value in each epoch (the number of the
//! interval), which follows from the value in the epoch before and a random number.
//!
//! What a field does in an epoch is a function of the seed, the device, the field and the epoch.

use sensorbench_workload::Stream;
use serde::{Deserialize, Serialize};

use super::normal::normal_quantile;

/// How a value evolves from one epoch to the next.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// By a step that is normally distributed.
    Normal {
        /// Mean of the steps.
        mean: f64,
        /// Standard deviation of the steps.
        deviation: f64,
    },
    /// By a step that is evenly distributed.
    Uniform {
        /// The smallest step.
        low: f64,
        /// The end of the steps.
        high: f64,
    },
    /// By the size of a step that is normally distributed, as a counter.
    Counted {
        /// Mean of the steps.
        mean: f64,
        /// Standard deviation of the steps.
        deviation: f64,
    },
    /// By the same step each time, which may be 0.
    Fixed {
        /// The step.
        step: f64,
    },
    /// It stays, or is redrawn.
    Drawn {
        /// How often it is redrawn.
        probability: f64,
        /// The smallest value.
        low: f64,
        /// The end of the values.
        high: f64,
    },
}

/// A field of all devices.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FieldPlan {
    /// Name of the column.
    pub name: String,
    /// The smallest and the greatest start, between which starts are evenly distributed.
    pub start: (f64, f64),
    /// The bounds, within which values are held; there are none where nothing is said.
    #[serde(default = "no_bounds")]
    pub bounds: (f64, f64),
    /// How the value evolves.
    pub change: Change,
    /// Whether a value that has come to the lower bound goes to the upper one, as a tank that is filled.
    #[serde(default)]
    pub refilled: bool,
    /// To how many decimals values are cut where they are shown. They evolve from their uncut values.
    #[serde(default)]
    pub decimals: u32,
}

fn no_bounds() -> (f64, f64) {
    (f64::MIN, f64::MAX)
}

// What the streams of a field of a device are used for.
const START: u64 = 0;
const STEP: u64 = 1;
// What the stream of its steps is used for besides them.
const VALUE: u64 = 0;

/// The fields of this many devices, one device after the other.
pub(super) struct Fields {
    plans: Vec<FieldPlan>,
    /// What a shown value is a multiple of, by its inverse.
    cuts: Vec<f64>,
    starts: Vec<f64>,
    steps: Vec<Stream>,
}

impl Fields {
    /// The fields of devices from a stream that nothing else is drawn from.
    pub fn new(plans: Vec<FieldPlan>, devices: u64, stream: Stream) -> Self {
        let of_each = (0..devices).flat_map(|device| {
            let stream = stream.split(device);
            (0..).zip(&plans).map(move |(field, plan)| (plan, stream.split(field)))
        });
        let (starts, steps) = of_each
            .map(|(plan, stream)| {
                let (low, high) = plan.start;
                (low + (high - low) * stream.split(START).unit(0), stream.split(STEP))
            })
            .unzip();
        let cuts = plans.iter().map(|plan| (0..plan.decimals).fold(1.0, |cut, _| cut * 10.0)).collect();
        Self { plans, cuts, starts, steps }
    }

    /// How many there are of a device.
    pub fn count(&self) -> usize {
        self.plans.len()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().map(|plan| plan.name.as_str())
    }

    /// The values of all devices in the first epoch.
    pub fn first(&self) -> Vec<f64> {
        self.starts.clone()
    }

    /// Takes the values of all devices from an epoch to the one after it.
    pub fn advance(&self, values: &mut [f64], epoch: u64) {
        for ((value, steps), plan) in values.iter_mut().zip(&self.steps).zip(self.plans.iter().cycle()) {
            let (lowest, highest) = plan.bounds;
            let share = || steps.unit(epoch + 1);
            let next = match plan.change {
                Change::Normal { mean, deviation } => *value + (mean + deviation * normal_quantile(share())),
                Change::Uniform { low, high } => *value + (low + (high - low) * share()),
                Change::Counted { mean, deviation } => *value + (mean + deviation * normal_quantile(share())).abs(),
                Change::Fixed { step } => *value + step,
                Change::Drawn { probability, .. } if share() >= probability => continue,
                Change::Drawn { low, high, .. } => low + (high - low) * steps.split(VALUE).unit(epoch + 1),
            };
            *value = next.clamp(lowest, highest);
            if plan.refilled && *value == lowest {
                *value = highest;
            }
        }
    }

    /// A value of a field of a device, by its number among the fields, as it is shown.
    pub fn shown(&self, field: usize, value: f64) -> f64 {
        // There is no zero with a sign.
        (value * self.cuts[field]).trunc() / self.cuts[field] + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(change: Change, bounds: (f64, f64), decimals: u32) -> FieldPlan {
        FieldPlan { name: "field".to_owned(), start: (1.0, 1.0), bounds, change, refilled: false, decimals }
    }

    #[test]
    fn values_are_cut_where_they_are_shown_and_nowhere_else() {
        let fields = Fields::new(vec![plan(Change::Uniform { low: 0.25, high: 0.25 }, (0.0, 9.0), 1)], 1, Stream::new(1));
        let mut values = fields.first();
        let shown: Vec<f64> = (0..5)
            .map(|epoch| {
                let shown = fields.shown(0, values[0]);
                fields.advance(&mut values, epoch);
                shown
            })
            .collect();
        assert_eq!(shown, [1.0, 1.2, 1.5, 1.7, 2.0]);
        assert_eq!((fields.shown(0, -1.29), fields.shown(0, -0.01).to_bits()), (-1.2, 0.0f64.to_bits()));
    }

    #[test]
    fn a_tank_is_filled_when_it_is_empty() {
        let tank = FieldPlan { refilled: true, ..plan(Change::Uniform { low: -0.5, high: -0.5 }, (0.0, 1.0), 1) };
        let fields = Fields::new(vec![tank], 1, Stream::new(1));
        let mut values = fields.first();
        let levels: Vec<f64> = (0..4)
            .map(|epoch| {
                fields.advance(&mut values, epoch);
                values[0]
            })
            .collect();
        assert_eq!(levels, [0.5, 1.0, 0.5, 1.0]);
    }

    #[test]
    fn a_counter_never_falls_and_a_fixed_step_is_the_same_each_time() {
        let free = (f64::MIN, f64::MAX);
        let counter = plan(Change::Counted { mean: 0.0, deviation: 1.0 }, free, 0);
        let fields = Fields::new(vec![counter, plan(Change::Fixed { step: 10.0 }, free, 0)], 50, Stream::new(3));
        let mut values = fields.first();
        for epoch in 0..400 {
            let before = values.clone();
            fields.advance(&mut values, epoch);
            assert!(before.iter().zip(&values).all(|(before, value)| before < value));
        }
        assert!(values.iter().skip(1).step_by(2).all(|value| *value == 4001.0));
        // The mean size of a standard normal step is the root of 2 / pi.
        let mean = values.iter().step_by(2).map(|value| (value - 1.0) / 400.0).sum::<f64>() / 50.0;
        assert!((mean - 0.797_88).abs() < 0.02, "{mean}");
    }

    #[test]
    fn a_drawn_value_stays_as_long_as_its_probability_says() {
        let fields = Fields::new(
            vec![plan(Change::Drawn { probability: 0.05, low: 0.0, high: 5000.0 }, (0.0, 5000.0), 0)],
            100,
            Stream::new(7),
        );
        let mut values = fields.first();
        let (mut changes, mut sum) = (0, 0.0);
        for epoch in 0..2000 {
            let before = values.clone();
            fields.advance(&mut values, epoch);
            changes += before.iter().zip(&values).filter(|(before, value)| before != value).count();
            sum += values.iter().sum::<f64>();
        }
        assert!((9_500..10_500).contains(&changes), "{changes}");
        assert!((sum / 200_000.0 - 2500.0).abs() < 100.0, "{}", sum / 200_000.0);
    }
}
