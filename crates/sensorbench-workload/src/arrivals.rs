//! Intended starts of operations: arrivals at a rate that may be constant, random, stepped or ramped, and may change on the way.

use libm::{cos, log, sqrt};
use serde::{Deserialize, Serialize};

use crate::{Share, Stream, WorkloadError};

/// How arrivals follow a rate.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Evenly spaced.
    #[default]
    Constant,
    /// Independent of one another, with exponential gaps: what many clients do together.
    Poisson,
}

/// A segment of time in which the rate changes linearly.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateSegment {
    /// Rate at the start, in operations per second.
    pub from_per_s: f64,
    /// Rate at the end, in operations per second; the rate at the start if not given.
    pub to_per_s: Option<f64>,
    /// Length in seconds; without end if not given (then the rate is constant).
    pub length_s: Option<f64>,
}

/// Rates over time and how arrivals follow them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// How arrivals follow the rate.
    #[serde(default)]
    pub arrival: Arrival,
    /// The rates, one after the other.
    pub segments: Vec<RateSegment>,
}

/// The arrivals of a pace: the k-th is intended to start when the integral of the rate reaches the k-th point of a unit-rate process
/// (k for constant arrivals, a sum of k standard exponentials for Poisson ones). Changing the rate therefore re-times
/// only intended starts that lie ahead, and never skips or adds an operation.
#[derive(Clone, Debug)]
pub struct Arrivals {
    arrival: Arrival,
    stream: Stream,
    segments: Vec<Segment>,
    current: usize,
    /// Distance between operations that are handed out: others belong to other load generators.
    stride: u64,
    k: u64,
    /// The k-th point of the unit-rate process.
    point: f64,
}

/// A segment placed in time. Times in nanoseconds, areas in operations.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start_ns: f64,
    length_ns: f64,
    rate_start: f64,
    rate_end: f64,
    area_before: f64,
}

impl Segment {
    fn slope(&self) -> f64 {
        if self.length_ns.is_finite() && self.length_ns > 0.0 { (self.rate_end - self.rate_start) / self.length_ns } else { 0.0 }
    }

    /// Operations from the start of the segment until `elapsed_ns` into it.
    fn area(&self, elapsed_ns: f64) -> f64 {
        self.rate_start * elapsed_ns + 0.5 * self.slope() * elapsed_ns * elapsed_ns
    }

    /// How far into the segment `area` operations are reached; None when they are not reached in it.
    fn elapsed_at(&self, area: f64) -> Option<f64> {
        if area <= 0.0 {
            return Some(0.0);
        }
        let root = (self.rate_start * self.rate_start + 2.0 * self.slope() * area).max(0.0).sqrt();
        let elapsed_ns = 2.0 * area / (self.rate_start + root);
        // Rates that fall to zero reach their last operations at the very end, where rounding decides.
        (elapsed_ns.is_finite() && elapsed_ns <= self.length_ns).then_some(elapsed_ns)
    }
}

const NS_PER_S: f64 = 1e9;

/// This many operations are passed over one by one in less than a millisecond.
const MANY: f64 = 10_000.0;

impl Arrivals {
    /// The arrivals of `pace`; equal streams give equal arrivals.
    pub fn new(pace: &Pace, stream: Stream) -> Result<Self, WorkloadError> {
        Self::of_share(pace, stream, Share::default())
    }

    /// The same as far as they are of one load generator. Each comes when it would if there was only one.
    pub fn of_share(pace: &Pace, stream: Stream, share: Share) -> Result<Self, WorkloadError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(pace.segments.len());
        for segment in &pace.segments {
            let rates = [segment.from_per_s, segment.to_per_s.unwrap_or(segment.from_per_s)];
            if let Some(rate) = rates.into_iter().find(|rate| !rate.is_finite() || *rate < 0.0) {
                return Err(WorkloadError::Rate(rate));
            }
            let (start_ns, area_before) = match segments.last() {
                None => (0.0, 0.0),
                Some(last) if last.length_ns.is_infinite() => return Err(WorkloadError::EndlessSegment),
                Some(last) => (last.start_ns + last.length_ns, last.area_before + last.area(last.length_ns)),
            };
            let length_ns = segment.length_s.map_or(f64::INFINITY, |length_s| length_s * NS_PER_S);
            segments.push(Segment {
                start_ns,
                length_ns,
                rate_start: rates[0] / NS_PER_S,
                rate_end: rates[1] / NS_PER_S,
                area_before,
            });
        }
        let mut arrivals = Self { arrival: pace.arrival, stream, segments, current: 0, stride: share.of, k: 0, point: 0.0 };
        arrivals.point = arrivals.gap(0);
        (0..share.number).for_each(|_| arrivals.pass());
        Ok(arrivals)
    }

    /// Distance of the k-th point of the unit-rate process from the one before it (from zero for the first).
    fn gap(&self, k: u64) -> f64 {
        match self.arrival {
            Arrival::Constant if k == 0 => 0.0,
            Arrival::Constant => 1.0,
            Arrival::Poisson => -log(1.0 - self.stream.unit(k)),
        }
    }

    /// The intended start of the next operation, in nanoseconds after the start of the phase; None when the pace brings no more.
    pub fn intended_start_ns(&mut self) -> Option<u64> {
        while let Some(segment) = self.segments.get(self.current) {
            if let Some(elapsed_ns) = segment.elapsed_at(self.point - segment.area_before) {
                return Some((segment.start_ns + elapsed_ns).round() as u64);
            }
            // Stay in an endless segment: its rate may be changed from zero later on.
            if self.current + 1 == self.segments.len() {
                return None;
            }
            self.current += 1;
        }
        None
    }

    /// Number of the next operation.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// Goes on to the operation after the next one.
    #[inline]
    pub fn advance(&mut self) {
        (0..self.stride).for_each(|_| self.pass());
    }

    /// Goes on to the next operation of all load generators: the points of a share are sums of the same gaps.
    #[inline]
    fn pass(&mut self) {
        self.k += 1;
        self.point += self.gap(self.k);
    }

    /// Counts and passes over what is intended to start before `end_ns`. Of very many, most are not looked at one by one: their number is known
    /// from the area under the rate or, where chance decides, drawn from the Poisson distribution that it has.
    pub fn pass_over_until(&mut self, end_ns: u64) -> u64 {
        let first = self.k;
        let ahead = self.area_until(end_ns) - self.point;
        if ahead > MANY {
            let skipped = match self.arrival {
                // Rounding decides on the last ones: they are left.
                Arrival::Constant => (ahead - 2.0).floor(),
                Arrival::Poisson => self.many_until(ahead),
            };
            // Whole rounds, so that the next is an own operation again.
            let skipped = skipped as u64 / self.stride * self.stride;
            self.k += skipped;
            self.point += match self.arrival {
                Arrival::Constant => skipped as f64,
                // The points between have no place of their own; from the end on, gaps are as always.
                Arrival::Poisson => ahead + self.gap(self.k),
            };
        }
        while self.intended_start_ns().is_some_and(|intended_start_ns| intended_start_ns < end_ns) {
            self.advance();
        }
        (self.k - first) / self.stride
    }

    /// Operations from the start until `end_ns`.
    fn area_until(&self, end_ns: u64) -> f64 {
        let in_segment = |segment: &Segment| segment.area((end_ns as f64 - segment.start_ns).clamp(0.0, segment.length_ns));
        self.segments.iter().map(in_segment).sum()
    }

    /// The next operation and how many follow it within `area` (many) of the unit-rate process: the Poisson distribution as it is
    /// for large means, normal (Box and Muller, "A note on the generation of random normal deviates", 1958).
    fn many_until(&self, area: f64) -> f64 {
        let (first, second) = (self.stream.unit(self.k + 1), self.stream.unit(self.k + 2));
        let deviate = sqrt(-2.0 * log(1.0 - first)) * cos(std::f64::consts::TAU * second);
        1.0 + (area + sqrt(area) * deviate).round().max(0.0)
    }

    /// From `at_ns` on, operations come at `per_s` without end. Intended starts before `at_ns` stay.
    pub fn set_rate(&mut self, at_ns: u64, per_s: f64) -> Result<(), WorkloadError> {
        if !per_s.is_finite() || per_s < 0.0 {
            return Err(WorkloadError::Rate(per_s));
        }
        let at_ns = at_ns as f64;
        let kept = self.segments.iter().take_while(|segment| segment.start_ns < at_ns).count();
        self.segments.truncate(kept);
        let mut area_before = 0.0;
        if let Some(last) = self.segments.last_mut() {
            let (slope, length_ns) = (last.slope(), (at_ns - last.start_ns).min(last.length_ns));
            area_before = last.area_before + last.area(length_ns);
            last.rate_end = last.rate_start + slope * length_ns;
            last.length_ns = length_ns;
        }
        let rate = per_s / NS_PER_S;
        self.segments.push(Segment { start_ns: at_ns, length_ns: f64::INFINITY, rate_start: rate, rate_end: rate, area_before });
        self.current = self.current.min(self.segments.len() - 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(arrival: Arrival, segments: &[(f64, Option<f64>, Option<f64>)]) -> Arrivals {
        let segments = segments.iter().map(|(from_per_s, to_per_s, length_s)| RateSegment {
            from_per_s: *from_per_s,
            to_per_s: *to_per_s,
            length_s: *length_s,
        });
        Arrivals::new(&Pace { arrival, segments: segments.collect() }, Stream::new(1)).unwrap()
    }

    fn intended_starts_s(arrivals: &mut Arrivals, count: usize) -> Vec<f64> {
        let next = |_| {
            let intended_start_ns = arrivals.intended_start_ns();
            arrivals.advance();
            intended_start_ns.map(|intended_start_ns| intended_start_ns as f64 / NS_PER_S)
        };
        (0..count).map_while(next).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced() {
        let intended = intended_starts_s(&mut pace(Arrival::Constant, &[(4.0, None, None)]), 4);
        assert_eq!(intended, [0.0, 0.25, 0.5, 0.75]);
    }

    #[test]
    fn poisson_gaps_have_mean_and_variance_of_the_rate() {
        let intended = intended_starts_s(&mut pace(Arrival::Poisson, &[(100.0, None, None)]), 200_000);
        let gaps: Vec<f64> = intended.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 100.0 - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance * 10_000.0 - 1.0).abs() < 0.02, "variance {variance}");
    }

    #[test]
    fn steps_and_ramps_bring_the_area_under_the_rate() {
        // 10 s at 10/s, 10 s from 10/s to 30/s (200 operations), then 5/s.
        let mut arrivals =
            pace(Arrival::Constant, &[(10.0, None, Some(10.0)), (10.0, Some(30.0), Some(10.0)), (5.0, None, None)]);
        assert_eq!(arrivals.pass_over_until(10_000_000_000), 100);
        assert_eq!(arrivals.pass_over_until(20_000_000_000), 200);
        assert_eq!(arrivals.pass_over_until(30_000_000_000), 50);
    }

    #[test]
    fn very_many_are_passed_over_as_if_one_by_one() {
        let segments = [(2e6, Some(4e6), Some(1.0)), (3e6, None, None)];
        let mut arrivals = pace(Arrival::Constant, &segments);
        let mut one_by_one = arrivals.clone();
        for end_ns in [700_000_000, 1_500_000_000, 1_500_000_001] {
            let before = one_by_one.k();
            while one_by_one.intended_start_ns().unwrap() < end_ns {
                one_by_one.advance();
            }
            assert_eq!(arrivals.pass_over_until(end_ns), one_by_one.k() - before);
            assert_eq!(arrivals.intended_start_ns(), one_by_one.intended_start_ns());
        }
    }

    #[test]
    fn shares_have_the_arrivals_of_the_whole() {
        for arrival in [Arrival::Constant, Arrival::Poisson] {
            let segments = [(50.0, Some(400.0), Some(2.0)), (300.0, None, None)];
            let segments = segments.map(|(from_per_s, to_per_s, length_s)| RateSegment { from_per_s, to_per_s, length_s });
            let pace = Pace { arrival, segments: segments.to_vec() };
            let times = |share: Share| {
                let mut arrivals = Arrivals::of_share(&pace, Stream::new(3), share).unwrap();
                // A changed rate takes effect at the same time for all of them.
                arrivals.set_rate(3_000_000_000, 700.0).unwrap();
                let mut times = Vec::new();
                while let Some(time_ns) = arrivals.intended_start_ns().filter(|time_ns| *time_ns < 4_000_000_000) {
                    times.push((arrivals.k(), time_ns));
                    arrivals.advance();
                }
                times
            };
            let whole = times(Share::default());
            let mut union: Vec<(u64, u64)> = (0..3).flat_map(|number| times(Share { number, of: 3 })).collect();
            union.sort_unstable();
            assert!(whole.len() > 1000);
            assert_eq!(union, whole, "{arrival:?}");
        }
    }

    #[test]
    fn shares_pass_over_the_arrivals_of_the_whole() {
        let pace = |arrival| Pace { arrival, segments: vec![RateSegment { from_per_s: 3e6, to_per_s: None, length_s: None }] };
        let passed = |arrival, share| {
            let mut arrivals = Arrivals::of_share(&pace(arrival), Stream::new(3), share).unwrap();
            let passed = arrivals.pass_over_until(1_000_000_000);
            assert_eq!(arrivals.k() % share.of, share.number);
            passed
        };
        let all = |arrival| (0..7).map(|number| passed(arrival, Share { number, of: 7 })).sum::<u64>();
        assert_eq!(all(Arrival::Constant), 3_000_000);
        // Those of Poisson are drawn by each load generator: five standard deviations.
        assert!(all(Arrival::Poisson).abs_diff(3_000_000) < 8_660 + 7, "{}", all(Arrival::Poisson));
    }

    #[test]
    fn the_number_of_very_many_is_a_poisson_number() {
        let (rate, seeds) = (1e6, 2_000);
        let pace =
            Pace { arrival: Arrival::Poisson, segments: vec![RateSegment { from_per_s: rate, to_per_s: None, length_s: None }] };
        let counts: Vec<f64> = (0..seeds)
            .map(|seed| {
                let mut arrivals = Arrivals::new(&pace, Stream::new(seed)).unwrap();
                let count = arrivals.pass_over_until(1_000_000_000);
                let intended_start_ns = arrivals.intended_start_ns().unwrap();
                assert!((1_000_000_000..1_000_100_000).contains(&intended_start_ns), "{intended_start_ns}");
                count as f64
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        // Five standard errors of the mean and of the variance.
        assert!((mean - rate).abs() < 5.0 * (rate / seeds as f64).sqrt(), "mean {mean}");
        assert!((variance / rate - 1.0).abs() < 5.0 * (2.0 / seeds as f64).sqrt(), "variance {variance}");
    }

    #[test]
    fn a_ramp_to_zero_ends() {
        let mut arrivals = pace(Arrival::Constant, &[(10.0, Some(0.0), Some(2.0))]);
        assert!((10..=11).contains(&intended_starts_s(&mut arrivals, 100).len()));
    }

    #[test]
    fn a_changed_rate_keeps_earlier_intended_starts_and_loses_nothing() {
        let mut arrivals = pace(Arrival::Constant, &[(2.0, None, None)]);
        arrivals.set_rate(1_200_000_000, 10.0).unwrap();
        // Due at 0, 0.5 and 1.0 as before; 0.4 of the next gap had passed at 1.2 s, the rest of it passes at 10/s.
        let intended = intended_starts_s(&mut arrivals, 5);
        assert_eq!(intended.len(), 5);
        for (intended_start_s, expected_s) in intended.iter().zip([0.0, 0.5, 1.0, 1.26, 1.36]) {
            assert!((intended_start_s - expected_s).abs() < 1e-6, "{intended:?}");
        }
    }

    #[test]
    fn a_rate_of_zero_pauses_until_it_is_raised() {
        let mut arrivals = pace(Arrival::Constant, &[(0.0, None, None)]);
        arrivals.advance();
        assert_eq!(arrivals.intended_start_ns(), None);
        arrivals.set_rate(5_000_000_000, 1.0).unwrap();
        assert_eq!(arrivals.intended_start_ns(), Some(6_000_000_000));
    }

    #[test]
    fn what_makes_no_pace_is_refused() {
        let segment = |from_per_s, length_s| RateSegment { from_per_s, to_per_s: None, length_s };
        let refused = |segments: Vec<RateSegment>| {
            Arrivals::new(&Pace { arrival: Arrival::Constant, segments }, Stream::new(1)).unwrap_err()
        };
        assert_eq!(refused(vec![segment(-1.0, None)]), WorkloadError::Rate(-1.0));
        assert_eq!(refused(vec![segment(1.0, None), segment(1.0, None)]), WorkloadError::EndlessSegment);
    }
}
