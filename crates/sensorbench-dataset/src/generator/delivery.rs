//! Delivery of rows as TSBS's trucks deliver theirs: some are lost, some come late, and some lack a field or a tag.
//!
//! Rows are delivered in units of ten. Units and rows that are late wait in two lists, of which the oldest comes first. What
//! becomes of a row is a function of the seed and of all units before.

use std::collections::VecDeque;
use std::mem::take;

use sensorbench_workload::Stream;

const ROWS_A_UNIT: usize = 10;
const UNIT_IS_LOST: f64 = 0.01;
const UNIT_IS_LATE: f64 = 0.05;
const WAITING_UNIT_COMES: f64 = 0.5;
const WAITING_ROW_COMES: f64 = 0.5;
const ROW_IS_LOST: f64 = 0.1;
const FIELD_IS_LOST: f64 = 0.1;
const TAG_IS_LOST: f64 = 0.01;
const ROW_IS_LATE: f64 = 0.3;
/// A lost field is one of this many; where a row has fewer, the number is taken modulo theirs.
const FIELDS: u64 = 7;
/// A lost tag is one of this many.
const TAGS: u64 = 8;

/// A row that was delivered, and the number of the field and of the tag that it lacks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Delivered<R> {
    pub row: R,
    pub lost_field: Option<usize>,
    pub lost_tag: Option<usize>,
}

/// What becomes of the row at a position of a unit.
#[derive(Default)]
struct Fate {
    is_of_waiting: bool,
    is_lost: bool,
    is_late: bool,
    lost_field: Option<usize>,
    lost_tag: Option<usize>,
}

/// How far a delivery is: how many units there were, and what waits.
#[derive(Clone)]
pub(super) struct Delivery<R> {
    random: Stream,
    units: u64,
    waiting_units: VecDeque<Vec<Delivered<R>>>,
    waiting_rows: VecDeque<R>,
}

impl<R> Delivery<R> {
    /// A delivery from a stream that nothing else is drawn from.
    pub fn new(random: Stream) -> Self {
        Self { random, units: 0, waiting_units: VecDeque::new(), waiting_rows: VecDeque::new() }
    }

    /// What is delivered next; nothing if a unit is lost or late, or where there are no rows any more.
    pub fn unit(&mut self, rows: &mut impl Iterator<Item = R>) -> Vec<Delivered<R>> {
        let random = self.random.split(self.units);
        self.units += 1;
        if random.unit(0) < UNIT_IS_LOST {
            rows.take(ROWS_A_UNIT).for_each(drop);
            return Vec::new();
        }
        let is_late = random.unit(1) < UNIT_IS_LATE;
        if random.unit(2) < WAITING_UNIT_COMES
            && let Some(unit) = self.waiting_units.pop_front()
        {
            return unit;
        }
        let unit = self.filled(random, rows);
        if is_late && !unit.is_empty() {
            self.waiting_units.push_back(unit);
            return Vec::new();
        }
        unit
    }

    /// What waits when there are no rows any more.
    pub fn rest(&mut self) -> Vec<Delivered<R>> {
        let rows = take(&mut self.waiting_rows).into_iter().map(|row| Delivered { row, lost_field: None, lost_tag: None });
        take(&mut self.waiting_units).into_iter().flatten().chain(rows).collect()
    }

    /// A unit of rows that follow, of which those that wait take some places.
    fn filled(&mut self, random: Stream, rows: &mut impl Iterator<Item = R>) -> Vec<Delivered<R>> {
        let mut fates: Vec<Fate> = Vec::with_capacity(ROWS_A_UNIT);
        for position in 0..ROWS_A_UNIT {
            let promised = fates.iter().filter(|fate| fate.is_of_waiting).count();
            fates.push(fate(random.split(position as u64), self.waiting_rows.len() > promised));
        }
        let mut unit = Vec::with_capacity(ROWS_A_UNIT);
        let mut skipped = 0;
        for place in 0..ROWS_A_UNIT {
            let row = loop {
                // Positions after the last have no fate of their own: their rows come as they are.
                let fate = fates.get(place + skipped);
                let row = if fate.is_some_and(|fate| fate.is_of_waiting) { self.waiting_rows.pop_front() } else { rows.next() };
                let Some(row) = row else { return unit };
                match fate {
                    Some(fate) if fate.is_lost => {}
                    Some(fate) if fate.is_late => self.waiting_rows.push_back(row),
                    _ => break row,
                }
                skipped += 1;
            };
            // What a row lacks follows from its place, not by its position.
            let Fate { lost_field, lost_tag, .. } = fates[place];
            unit.push(Delivered { row, lost_field, lost_tag });
        }
        unit
    }
}

fn fate(random: Stream, can_be_of_waiting: bool) -> Fate {
    let is_of_waiting = can_be_of_waiting && random.unit(0) < WAITING_ROW_COMES;
    if random.unit(1) < ROW_IS_LOST {
        return Fate { is_of_waiting, is_lost: true, ..Fate::default() };
    }
    Fate {
        is_of_waiting,
        is_lost: false,
        is_late: random.unit(6) < ROW_IS_LATE,
        lost_field: (random.unit(2) < FIELD_IS_LOST).then(|| random.below(3, FIELDS) as usize),
        lost_tag: (random.unit(4) < TAG_IS_LOST).then(|| random.below(5, TAGS) as usize),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ROWS: usize = 400_000;

    fn delivered() -> Vec<Delivered<usize>> {
        let (mut delivery, mut rows) = (Delivery::new(Stream::new(42)), (0..ROWS).peekable());
        let mut delivered = Vec::new();
        while rows.peek().is_some() {
            delivered.extend(delivery.unit(&mut rows));
        }
        delivered.extend(delivery.rest());
        assert!(delivery.rest().is_empty());
        delivered
    }

    #[test]
    fn a_row_comes_once_or_never_and_the_shares_are_those_of_tsbs() {
        let rows = delivered();
        let share = |holds: &dyn Fn(&Delivered<usize>) -> bool| {
            rows.iter().filter(|delivered| holds(delivered)).count() as f64 / rows.len() as f64
        };
        assert_eq!(rows.iter().map(|delivered| delivered.row).collect::<BTreeSet<_>>().len(), rows.len());
        let arrived = rows.len() as f64 / ROWS as f64;
        assert!((arrived - 0.900).abs() < 0.005, "{arrived}");
        let without_field = share(&|delivered| delivered.lost_field.is_some());
        assert!((without_field - 0.089).abs() < 0.005, "{without_field}");
        let without_tag = share(&|delivered| delivered.lost_tag.is_some());
        assert!((without_tag - 0.009).abs() < 0.002, "{without_tag}");
        let without_name = share(&|delivered| delivered.lost_tag == Some(0));
        assert!((without_name - 0.009 / 8.0).abs() < 0.0005, "{without_name}");
        // Each field is lost about equally often.
        for field in 0..FIELDS as usize {
            let lost = share(&|delivered| delivered.lost_field == Some(field));
            assert!((lost - 0.089 / 7.0).abs() < 0.002, "{field}: {lost}");
        }
    }

    #[test]
    fn rows_are_late_by_as_much_as_in_tsbs() {
        let rows: Vec<usize> = delivered().into_iter().map(|delivered| delivered.row).collect();
        let mut newest = 0;
        let mut late: Vec<usize> = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            if *row < newest {
                // By how many of those that came before and should have followed.
                late.push(rows[place.saturating_sub(400)..place].iter().filter(|before| *before > row).count());
            }
            newest = newest.max(*row);
        }
        let share = late.len() as f64 / rows.len() as f64;
        assert!((share - 0.19).abs() < 0.01, "{share}");
        late.sort_unstable();
        let (median, high) = (late[late.len() / 2], late[late.len() * 99 / 100]);
        assert!((6..=12).contains(&median), "{median}");
        assert!((35..=65).contains(&high), "{high}");
    }
}
