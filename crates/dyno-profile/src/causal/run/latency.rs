//! How long a unit of work takes from its begin to its end, with the inserted delay taken out. Pure.
//!
//! Little's law, without a number that is carried along: what all units together spend between begin and end in a window is
//! the sum of the times of ends less that of begins, those that are on their way when it opens and closes counted from then
//! on and until then. Over the units that passed it is the mean.
//!
//! **Each begin and end counts in the time of the thread that comes by** (see `measured`): what is inserted is a share of all
//! time, but a unit lives only while it is worked on. Where one thread rests for nine tenths of the time and works on units
//! for the rest, a site in these shifts it by half of itself while they last and by nothing between them: taken out of all the
//! time, a twentieth of that would be seen. What a thread owes from before the unit began, and pays meanwhile, makes the unit
//! longer by the clock and by nothing in the thread's time.
//!
//! **On their way at the window's ends** they are in threads that are not known. Their shift is taken to go on as between
//! the first and the last visit: with `r` inserted in each second there, and `n` units always on their way in a window of `T`,
//! the sums of begins and ends cancel and `n T (1 − r)` is left. The units that passed are those between the first and the last
//! visit, by the clock, for all of the window, one every `p`; so that it is `n p (1 − r)`, the law for a closed loop.

use crate::causal::rig::window::{Marks, Pair, Window};

/// From begin to end; `None` where progress is no pair, or nothing was seen of it.
pub(super) fn latency_ns(window: &Window) -> Option<f64> {
    let pair = window.pair?;
    let elapsed_ns = window.last.at_ns.checked_sub(window.first.at_ns)? as f64;
    let length_ns = pair.closed_ns.checked_sub(pair.opened_ns)? as f64;
    let passed = window.visits.checked_sub(1)? as f64 * length_ns / elapsed_ns;
    let latency_ns = lives_ns(window, &pair) / passed;
    (latency_ns.is_finite() && latency_ns > 0.0).then_some(latency_ns)
}

/// By what part of itself the latency may be off where units begin in one thread and end in another: those who take over
/// what others have pushed may be there before these have paid for it, by as much as the ones owe more than the others.
/// Nought where no pause is due, or units end where they began: what a thread owes is in both of its times.
pub(super) fn off_part(window: &Window) -> Option<f64> {
    let (pair, latency_ns) = (window.pair?, latency_ns(window)?);
    let carried = pair.carried as f64 / pair.ends.count.max(1) as f64;
    let owed_ns = |marks: &Marks| marks.owed_ns as f64 / marks.count.max(1) as f64;
    Some(carried * (owed_ns(&pair.begins) - owed_ns(&pair.ends)) / latency_ns)
}

/// What all units spent between begin and end in the window, each in the time of its own threads.
fn lives_ns(window: &Window, pair: &Pair) -> f64 {
    let left_over = pair.in_flight + pair.begins.count as i64 - pair.ends.count as i64;
    own_ns(&pair.ends) - own_ns(&pair.begins) + left_over as f64 * border_ns(window, pair, pair.closed_ns)
        - pair.in_flight as f64 * border_ns(window, pair, pair.opened_ns)
}

fn own_ns(marks: &Marks) -> f64 {
    marks.since_start_ns as f64 - marks.inserted_ns as f64
}

/// Where an end of the window lies in the time of those who are on their way then.
fn border_ns(window: &Window, pair: &Pair, at_ns: u64) -> f64 {
    let since = |from_ns: u64| at_ns as f64 - from_ns as f64;
    let elapsed_ns = window.last.at_ns as f64 - window.first.at_ns as f64;
    let inserted_ns = window.last.inserted_ns as f64 - window.first.inserted_ns as f64;
    let shift_ns = window.first.inserted_ns as f64 + inserted_ns / elapsed_ns * since(window.first.at_ns);
    since(pair.start_ns) - shift_ns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::Moment;

    const US: u64 = 1_000;
    const START_NS: u64 = 7_000_000;
    const OPENED_NS: u64 = START_NS + 10_000 * US;
    const CLOSED_NS: u64 = OPENED_NS + 100_000 * US;

    /// Where a unit begins and where it ends: when, and what its thread is shifted by then.
    type Unit = [Moment; 2];

    fn moment(at_ns: u64, inserted_ns: u64) -> Moment {
        Moment { at_ns: START_NS + at_ns, inserted_ns }
    }

    fn marks(moments: impl Iterator<Item = Moment>) -> (Marks, Option<Moment>, Option<Moment>) {
        let inside: Vec<Moment> = moments.filter(|one| (OPENED_NS..CLOSED_NS).contains(&one.at_ns)).collect();
        let marks = Marks {
            count: inside.len() as u64,
            since_start_ns: inside.iter().map(|one| one.at_ns - START_NS).sum(),
            inserted_ns: inside.iter().map(|one| one.inserted_ns).sum(),
            owed_ns: 0,
        };
        (marks, inside.first().copied(), inside.last().copied())
    }

    fn window(units: &[Unit]) -> Window {
        let (begins, _, _) = marks(units.iter().map(|[begin, _]| *begin));
        let (ends, first, last) = marks(units.iter().map(|[_, end]| *end));
        let is_open = |[begin, end]: &&Unit| begin.at_ns < OPENED_NS && end.at_ns >= OPENED_NS;
        let in_flight = units.iter().filter(is_open).count() as i64;
        let (opened_ns, closed_ns) = (OPENED_NS, CLOSED_NS);
        let pair =
            Pair { start_ns: START_NS, opened_ns, closed_ns, in_flight, begins, ends, ..Pair::default() };
        let (first, last) = (first.unwrap(), last.unwrap());
        let length_ns = CLOSED_NS - OPENED_NS;
        Window { length_ns, visits: ends.count, first, last, pair: Some(pair), ..Window::default() }
    }

    /// Planted fault: begins and ends by the clock (`own_ns` without what is inserted): 950 µs.
    #[test]
    fn of_units_with_rests_between_them_all_that_is_inserted_is_theirs() {
        let unit = |at: u64| {
            [moment(at * 10_000 * US, at * 500 * US), moment((at * 10_000 + 1_000) * US, (at + 1) * 500 * US)]
        };
        let units: Vec<Unit> = (0..20).map(unit).collect();
        let latency_ns = latency_ns(&window(&units)).unwrap();
        assert!((latency_ns - 500.0 * US as f64).abs() < 0.1 * US as f64, "{latency_ns}");
    }

    /// Planted fault: those on their way at the window's ends by the clock (`border_ns` without a shift): 1,350 µs.
    #[test]
    fn where_the_next_begins_as_one_ends_it_is_how_many_there_are_by_the_time_between_two() {
        // Three are always on their way, one ends every 700 µs, and a fifth is inserted.
        let at = |n: u64| moment(n * 700 * US, n * 140 * US);
        let units: Vec<Unit> = (0..200).map(|n| [at(n), at(n + 3)]).collect();
        let found = latency_ns(&window(&units)).unwrap();
        assert!((found - 3.0 * 560.0 * US as f64).abs() < 0.1 * US as f64, "{found}");
        assert_eq!(latency_ns(&Window { pair: None, ..window(&units) }), None);
        assert_eq!(latency_ns(&Window { visits: 1, ..window(&units) }), None);
    }

    #[test]
    fn only_where_units_change_threads_what_these_owe_matters() {
        let at = |n: u64| moment(n * 1_000 * US, 0);
        let units: Vec<Unit> = (0..200).map(|n| [at(n), at(n + 1)]).collect();
        let window = window(&units);
        let of = |carried: u64, owed_us: [u64; 2]| {
            let mut pair = window.pair.unwrap();
            pair.begins.owed_ns = pair.begins.count * owed_us[0] * US;
            pair.ends.owed_ns = pair.ends.count * owed_us[1] * US;
            off_part(&Window { pair: Some(Pair { carried, ..pair }), ..window.clone() }).unwrap()
        };
        assert!(of(0, [300, 100]).abs() < 1e-9);
        assert!((of(window.visits, [300, 100]) - 0.2).abs() < 1e-9);
        assert!((of(window.visits, [100, 300]) + 0.2).abs() < 1e-9);
        assert!(of(window.visits, [300, 300]).abs() < 1e-9);
    }
}
