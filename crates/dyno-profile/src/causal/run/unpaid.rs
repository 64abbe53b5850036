//! Pauses that were still due when it mattered: what is taken out of the time and was not paid makes every figure too small, or
//! too great. Pure: `seen` asks.

use crate::causal::rig::window::{Pair, Window};

/// Pauses that were still due, of all that was inserted, percent: of the threads that ran when windows ended, or of those that
/// hand on units of work, whichever is more.
pub(super) fn percent(windows: &[&Window]) -> f64 {
    of_running(windows).max(of_carried(windows))
}

fn of_running(windows: &[&Window]) -> f64 {
    let delayed = || windows.iter().filter(|window| window.threads > 0 && window.last.inserted_ns > 0);
    let owed: f64 = delayed().map(|window| window.owed_ns as f64 / window.threads as f64).sum();
    share(owed, delayed().map(|window| window.last.inserted_ns as f64).sum())
}

/// What threads owe when units of a pair begin and end, weighed by how many of these end in another thread than the one in
/// which they began: there the times of two threads are compared. Where it is the same one it counts in its own time, whatever
/// it owes.
fn of_carried(windows: &[&Window]) -> f64 {
    let (mut owed, mut all) = (0.0, 0.0);
    for Pair { begins, ends, carried, .. } in windows.iter().filter_map(|window| window.pair) {
        let owes = (begins.owed_ns + ends.owed_ns) as f64;
        owed += owes * carried as f64 / ends.count.max(1) as f64;
        all += owes + (begins.inserted_ns + ends.inserted_ns) as f64;
    }
    share(owed, all)
}

fn share(owed: f64, inserted: f64) -> f64 {
    debug_assert!(owed >= 0.0 && inserted >= 0.0);
    if inserted > 0.0 { 100.0 * owed / inserted } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::rig::window::{Marks, Moment};

    #[test]
    fn what_is_unpaid_is_of_windows_with_delays_only() {
        let last = Moment { at_ns: 1, inserted_ns: 100 };
        let delayed = Window { threads: 2, owed_ns: 40, last, ..Window::default() };
        let plain = Window { threads: 2, owed_ns: 40, ..Window::default() };
        assert_eq!([percent(&[&delayed, &plain]), percent(&[&plain])], [20.0, 0.0]);
    }

    /// Planted fault: units that end where they began count too (`carried` over `ends` taken for one).
    #[test]
    fn what_is_owed_at_begins_and_ends_matters_where_units_change_threads() {
        let of = |carried: u64| {
            let begins = Marks { count: 10, owed_ns: 300, inserted_ns: 0, ..Marks::default() };
            let ends = Marks { count: 10, owed_ns: 0, inserted_ns: 300, ..Marks::default() };
            let pair = Some(Pair { begins, ends, carried, ..Pair::default() });
            percent(&[&Window { pair, ..Window::default() }, &Window::default()])
        };
        assert_eq!([of(10), of(5), of(0)], [50.0, 25.0, 0.0]);
    }
}
