//! Pauses that were still due when it mattered: what is taken out of the time and was not paid makes every figure too small, or
//! too great. Pure: `seen` asks.

use crate::causal::rig::window::{Pair, Window};

/// Deviations by which debts must grow over all windows to be no chance: where they are paid they are as great at the one end of
/// a window as at the other.
const GROWN_SIGMAS: f64 = 2.0;

/// Pauses that were still due, of all that was inserted, percent: of the threads that ran when windows ended, of those that visit,
/// or of those that hand on units of work, whichever is most.
pub(super) fn percent(windows: &[&Window]) -> f64 {
    of_running(windows).max(of_visitors(windows)).max(of_carried(windows))
}

fn of_running(windows: &[&Window]) -> f64 {
    // What had been inserted is what a visitor had paid, and what it still owed.
    let inserted_ns = |window: &Window| (window.last.inserted_ns + window.last_owed_ns) as f64;
    let delayed = || windows.iter().filter(|window| window.threads > 0 && inserted_ns(window) > 0.0);
    let owed: f64 = delayed().map(|window| window.owed_ns as f64 / window.threads as f64).sum();
    share(owed, delayed().map(|window| inserted_ns(window)).sum())
}

/// By how much the debt of who visits grows between the first and the last visit, of what is inserted between them. One that is
/// woken by time and hardly ever sampled pays nothing, and so much too little is taken out of the time. One that pays late, and
/// pays, owes no more in the end than in the beginning, chance aside. Units of a pair count in their threads' own time.
fn of_visitors(windows: &[&Window]) -> f64 {
    let (mut owed, mut square, mut inserted) = (0.0, 0.0, 0.0);
    for window in windows.iter().filter(|window| window.pair.is_none() && window.visits > 1) {
        let grown = window.last_owed_ns as f64 - window.first_owed_ns as f64;
        owed += grown;
        square += grown.powi(2);
        inserted += grown + window.last.inserted_ns as f64 - window.first.inserted_ns as f64;
    }
    let is_chance = owed <= GROWN_SIGMAS * f64::sqrt(square);
    if is_chance { 0.0 } else { share(owed, inserted) }
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

    /// Planted faults: windows whose visitors paid nothing are passed over (`last.inserted_ns > 0`); a debt that is greater at the
    /// end of some windows and smaller at that of others has grown (`is_chance` of no).
    #[test]
    fn who_visits_and_never_pays_owes_all_and_who_pays_late_nothing() {
        let of = |paid: [u64; 2], owed: [u64; 2]| {
            let at = |at_ns, inserted_ns| Moment { at_ns, inserted_ns };
            let (first, last) = (at(0, paid[0]), at(1_000, paid[1]));
            let [first_owed_ns, last_owed_ns] = owed;
            Window { visits: 9, threads: 2, first, last, first_owed_ns, last_owed_ns, ..Window::default() }
        };
        let of_all = |windows: &[Window]| percent(&windows.iter().collect::<Vec<_>>());
        let never = vec![of([0, 0], [5, 105]); 6];
        assert_eq!(of_all(&never), 100.0);
        assert_eq!(of_all(&vec![of([0, 50], [5, 55]); 6]), 50.0);
        let late = [of([0, 70], [0, 30]), of([10, 140], [40, 10]), of([5, 105], [20, 20])];
        assert_eq!(of_all(&late), 0.0);
        let by_turns = [of([0, 70], [0, 30]), of([0, 130], [30, 0]), of([0, 90], [0, 20])];
        assert_eq!(of_all(&by_turns), 0.0);
        let with_pair = |window| Window { pair: Some(Pair::default()), ..window };
        let pair: Vec<Window> = never.into_iter().map(with_pair).collect();
        assert_eq!(of_all(&pair), 0.0, "each unit in its own time");
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
