//! Where a generator stands when a part begins, for generators whose rows follow from those before.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// For this many parts it is remembered what there was at their beginning, as long as nobody has made them.
pub(super) const REMEMBERED_PARTS: usize = 64;

/// What there is at the beginning of parts. It goes there once, and on from there to the parts that follow.
pub(super) struct Starts<S>(Mutex<Option<Passed<S>>>);

struct Passed<S> {
    part: usize,
    state: S,
    /// Of parts that were passed on the way to a later one.
    passed: BTreeMap<usize, S>,
}

impl<S: Clone> Starts<S> {
    /// Of a generator that nobody has had a part of.
    pub fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What there is when a part begins, from what there is at the `first` one, by `advance` over one part after the other.
    pub fn of(&self, part: usize, first: impl Fn() -> S, advance: impl Fn(&mut S, usize)) -> S {
        let mut guard = self.0.lock().expect("nobody panics while it holds the lock");
        let from_the_first = || Passed { part: 0, state: first(), passed: BTreeMap::new() };
        let starts = guard.get_or_insert_with(from_the_first);
        if let Some(state) = starts.passed.remove(&part) {
            return state;
        }
        if part < starts.part {
            *starts = from_the_first();
        }
        while starts.part < part {
            if part - starts.part <= REMEMBERED_PARTS {
                starts.passed.insert(starts.part, starts.state.clone());
            }
            advance(&mut starts.state, starts.part);
            starts.part += 1;
        }
        while starts.passed.len() > REMEMBERED_PARTS {
            starts.passed.pop_first();
        }
        starts.state.clone()
    }

    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.0.lock().unwrap().as_ref().map_or(0, |starts| starts.passed.len())
    }
}
