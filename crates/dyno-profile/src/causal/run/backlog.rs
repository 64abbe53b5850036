//! Whether work that came in during pauses lies before the target long after them: left alone it waits for what comes in
//! from outside, and in windows without pauses among the others it hardly does. Then somebody outside says how much there is
//! to do (an open load, a limit that lets what was missed be fetched later), and in such windows it shows how fast it can
//! work off what it has missed, which nobody waits for otherwise. Who is asked by as many clients as ever
//! has no more of it than that. Pure.

use dyno_measure::student::chance;

use super::mean::Mean;
use super::measured::excluded;
use super::seen::{OUTER_WAKES_PER_SECOND, OUTER_WAKES_PER_VISIT};
use crate::causal::rig::window::Window;

/// Part of them that is left among pauses, from which on it is no backlog.
const LEFT_MAX: f64 = 0.9;
/// How often chance alone may be taken for one.
const CHANCE_MAX: f64 = 0.001;
/// Least spread of a window's waits per visit, as a part of what they were before: equal windows would make everything certain.
const SPREAD_MIN: f64 = 0.02;
/// Fewer visits in a window say nothing of how often it waits.
const VISITS_MIN: u64 = 5;

/// Waits for something outside per visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Backlog {
    /// Before the first pause.
    pub(super) before: f64,
    /// In windows without any since then.
    pub(super) since: f64,
}

/// Windows before the first pause against those without pauses since; `None` where they are alike, or too few.
pub(super) fn backlog<'w>(
    before: impl Iterator<Item = &'w Window>,
    since: impl Iterator<Item = &'w Window>,
) -> Option<Backlog> {
    let (before, since) = (Waits::of(before)?, Waits::of(since)?);
    let (a, b) = (&before.per_visit, &since.per_visit);
    let variance = |mean: &Mean| mean.sd.max(SPREAD_MIN * a.mean).powi(2) / mean.n as f64;
    let error = (variance(a) + variance(b)).sqrt();
    // Of the fewer of them, which vary by themselves.
    let freedom = a.n.min(b.n) as f64 - 1.0;
    // Who becomes faster by himself waits more rarely per visit, and as often per second for what is no work.
    let is_less = b.mean <= LEFT_MAX * a.mean
        && since.per_second <= LEFT_MAX * before.per_second
        && chance((a.mean - b.mean) / error, freedom) < CHANCE_MAX;
    let waits = a.mean >= OUTER_WAKES_PER_VISIT || before.per_second >= OUTER_WAKES_PER_SECOND;
    (waits && is_less).then_some(Backlog { before: a.mean, since: b.mean })
}

/// Waits for something outside in windows that count.
struct Waits {
    per_visit: Mean,
    per_second: f64,
}

impl Waits {
    fn of<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<Waits> {
        let counts = windows.filter(|window| window.visits >= VISITS_MIN && excluded(window).is_none());
        let (mut each, mut waits, mut ns) = (Vec::new(), 0, 0);
        for window in counts {
            each.push(window.outer_wakes as f64 / window.visits as f64);
            waits += window.outer_wakes;
            ns += window.length_ns;
        }
        let per_second = 1e9 * waits as f64 / ns.max(1) as f64;
        Some(Waits { per_visit: Mean::of(&each)?, per_second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(waits: &[u64]) -> Vec<Window> {
        waits
            .iter()
            .map(|waits| Window {
                visits: 10,
                outer_wakes: *waits,
                length_ns: 1_000_000,
                ..Window::default()
            })
            .collect()
    }

    /// Planted faults: no `LEFT_MAX`; however rarely it waited; windows with one visit count.
    #[test]
    fn who_waited_for_work_before_the_pauses_and_no_longer_does_has_a_backlog() {
        let found = |before: &[u64], since: &[u64]| {
            backlog(windows(before).iter(), windows(since).iter())
                .map(|one| [one.before, one.since].map(|waits| (100.0 * waits).round()))
        };
        assert_eq!(found(&[9, 10, 9, 8], &[1, 2, 0, 1, 1]), Some([90.0, 10.0]));
        assert_eq!(found(&[9, 10, 9, 8], &[9, 10, 8, 8, 9]), None, "as often as before");
        assert_eq!(found(&[10; 8], &[9; 20]).map(|_| ()), Some(()), "a tenth is missing");
        assert_eq!(found(&[100; 8], &[93; 20]), None, "nearly as often");
        assert_eq!(found(&[2, 0, 1, 0], &[0; 5]), None, "hardly ever");
        assert_eq!(found(&[9, 10], &[0; 5]), None, "two windows are no measure");
        assert_eq!(found(&[9, 2, 12, 1], &[1, 4, 0, 9]), None, "they differ among themselves");
        let one = vec![Window { visits: 1, outer_wakes: 10, ..Window::default() }; 4];
        assert_eq!(backlog(one.iter(), windows(&[0; 5]).iter()), None, "a visit is no measure");
    }
}
