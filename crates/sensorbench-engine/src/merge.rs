//! Figures of a run that several load generators share, added without loss.

use sensorbench_histogram::Latencies;

use crate::recorder::{Figures, Interval, merge_figures, merge_interval};

/// Adds up what load generators recorded: counts by addition, latencies bucket for bucket.
#[derive(Debug)]
pub struct Merge {
    /// Intervals that are not taken yet.
    intervals: Vec<Interval>,
    /// Figures of all intervals that were taken, by cell.
    totals: Vec<Figures>,
    timer_lag: Latencies,
}

impl Merge {
    /// Of a run with this many cells (phases × operations).
    pub fn new(cells: usize) -> Self {
        Self { intervals: Vec::new(), totals: vec![Figures::default(); cells], timer_lag: Latencies::default() }
    }

    /// Adds an interval of a load generator, or a piece of it.
    pub fn add(&mut self, interval: Interval) {
        merge_interval(&mut self.intervals, interval);
    }

    /// Adds how late a load generator was where it waited for an intended start.
    pub fn add_timer_lag(&mut self, timer_lag: &Latencies) {
        self.timer_lag.merge(timer_lag);
    }

    /// Takes out the intervals with a number below `end`, in their order.
    pub fn take_before(&mut self, end: u64) -> Vec<Interval> {
        let (mut taken, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.intervals).into_iter().partition(|interval| interval.number < end);
        self.intervals = kept;
        taken.sort_by_key(|interval| interval.number);
        taken.iter().for_each(|interval| merge_figures(&mut self.totals, &interval.figures));
        taken
    }

    /// Figures of all that was added, by cell.
    pub fn figures(&self) -> Vec<Figures> {
        let mut figures = self.totals.clone();
        self.intervals.iter().for_each(|interval| merge_figures(&mut figures, &interval.figures));
        figures
    }

    /// How late all load generators were.
    pub fn timer_lag(&self) -> &Latencies {
        &self.timer_lag
    }
}
