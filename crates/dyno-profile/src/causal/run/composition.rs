//! Whether a target that is faster than it was does the same work faster, or left something out: one that looks for work in a loop
//! did that in what is now missing. Told from where samples fell. Pure.

use std::collections::BTreeMap;

use dyno_sys::bpf::causal::IN_KERNEL;

use crate::causal::rig::window::Window;

/// Fewest samples on either side.
const SAMPLES_MIN: u64 = 200;
/// Least part of a window's samples whose places are known.
const KNOWN_MIN: f64 = 0.98;
/// Of what is missing, the part that is at most left of a place that has gone.
const LEFT: f64 = 0.1;
/// Where more than this share works, too much of it is chance to see who looks for work there as well; but of the kernel, where both
/// go, it is asked in any case.
const LARGE: f64 = 0.05;
/// Deviations that chance is given.
const SIGMAS: f64 = 2.0;

/// Samples by place.
#[derive(Default)]
struct Fell {
    places: BTreeMap<u64, u64>,
    all: u64,
    due: u64,
}

/// A share of them, and its standard error.
struct Share {
    of: f64,
    error: f64,
}

impl Fell {
    fn of<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<Fell> {
        let mut fell = Fell::default();
        for window in windows {
            for (place, samples) in &window.places {
                *fell.places.entry(*place).or_default() += samples;
                fell.all += samples;
            }
            fell.due += window.samples;
        }
        let says = fell.all >= SAMPLES_MIN && fell.all as f64 >= KNOWN_MIN * fell.due as f64;
        says.then_some(fell)
    }

    /// Samples at one place.
    fn met(&self, place: u64) -> u64 {
        self.places.get(&place).copied().unwrap_or(0)
    }

    /// Samples at all places that `are_meant`.
    fn met_at(&self, are_meant: impl Fn(u64) -> bool) -> u64 {
        self.places.iter().filter(|(place, _)| are_meant(**place)).map(|(_, met)| met).sum()
    }

    fn share(&self, met: u64) -> Share {
        // What was met in no sample may be there in the next.
        let (met, all) = (met as f64, self.all as f64);
        let likely = (met + 1.0) / (all + 2.0);
        Share { of: met / all, error: (likely * (1.0 - likely) / all).sqrt() }
    }
}

/// The most that a share can have fallen by, but for chance.
fn most_gone(was: &Share, is: &Share) -> f64 {
    was.of - is.of + SIGMAS * was.error.hypot(is.error)
}

/// Whether windows that are `faster` times as fast as those before hold the same work: then the machine is faster. Where the target had
/// looked for work in the time that is missing, places where it did so are gone, or met less. `false` where samples do not say.
pub(super) fn is_same_work(before: &[&Window], since: &[&Window], faster: f64) -> bool {
    let half = |which| since.iter().skip(which).step_by(2).copied();
    let all = (Fell::of(before.iter().copied()), Fell::of(half(0)), Fell::of(half(1)));
    let (Some(before), Some(first), Some(second)) = all else { return false };
    let missing = 1.0 - 1.0 / faster;
    // In one place, where perhaps work is done too: that is there more often then, as all work is.
    let is_there = |place: &u64| {
        let (was, is) = (before.share(before.met(*place)), second.share(second.met(*place)));
        (is.of <= LARGE || *place == IN_KERNEL) && most_gone(&was, &is) >= missing * (1.0 - is.of)
    };
    // In many: those that one half of the windows since does not know say by the other half how many there are of the kind.
    let are_gone = |limit: f64| {
        let is_rare = |place| first.met(place) as f64 <= limit * first.all as f64;
        let [was, is] = [&before, &second].map(|fell| fell.share(fell.met_at(is_rare)));
        most_gone(&was, &is) >= missing / 2.0
    };
    !before.places.keys().any(is_there) && !are_gone(0.0) && !are_gone(LEFT * missing)
}

#[cfg(test)]
mod tests {
    use dyno_measure::Prng;

    use super::*;

    /// Windows of a hundred samples each of code with these shares; what is left over is looking for work, in so many places.
    fn windows(rng: &mut Prng, count: usize, shares: &[f64], loops: u64) -> Vec<Window> {
        let mut one = || {
            let mut fell = BTreeMap::<u64, u64>::new();
            for _ in 0..100 {
                let mut left = rng.unit();
                let place = shares.iter().position(|share| {
                    left -= share;
                    left < 0.0
                });
                let looks = 1000 + (rng.unit() * loops as f64) as u64;
                *fell.entry(place.map_or(looks, |at| at as u64 + 1)).or_default() += 1;
            }
            Window { samples: 100, places: fell.into_iter().collect(), ..Window::default() }
        };
        (0..count).map(|_| one()).collect()
    }

    fn said(before: &[Window], since: &[Window], faster: f64) -> bool {
        let [before, since] = [before, since].map(|windows| windows.iter().collect::<Vec<&Window>>());
        is_same_work(&before, &since, faster)
    }

    /// How often of a hundred times the work is said to be the same, of one that looks for work `idle` of its time, in so many places,
    /// before and since.
    fn same_of_a_hundred(shares: &[f64], idle: [f64; 2], loops: u64, faster: f64) -> usize {
        let mut rng = Prng::new(3);
        let [before, since] =
            idle.map(|idle| shares.iter().map(|share| share * (1.0 - idle)).collect::<Vec<_>>());
        let mut same = || {
            let before = windows(&mut rng, 7, &before, loops);
            said(&before, &windows(&mut rng, 40, &since, loops), faster)
        };
        (0..100).filter(|_| same()).count()
    }

    /// Planted faults: each of the three questions left out; no deviations.
    #[test]
    fn who_looked_for_work_in_the_time_that_is_missing_does_not_do_the_same() {
        let loops = [0.4, 0.2, 0.2, 0.1, 0.07, 0.03];
        let same = same_of_a_hundred(&loops, [0.0; 2], 1, 1.035);
        assert!(same >= 90, "{same}: three loops on a faster machine");
        let flat = [0.005; 200];
        // Two deviations: one in forty, and six in a hundred is the most that chance makes of that in a thousand runs.
        for (work, idle, since, places) in [
            (&loops[..], 0.03, 0.0, 1),
            (&loops, 0.05, 0.0, 1),
            (&loops, 0.05, 0.0, 20),
            (&loops, 0.08, 0.01, 10),
            (&flat, 0.05, 0.0, 1),
            (&flat, 0.1, 0.0, 20),
            (&flat, 0.2, 0.0, 20),
        ] {
            let faster = (1.0 - since) / (1.0 - idle);
            let same = same_of_a_hundred(work, [idle, since], places, faster);
            assert!(same <= 6, "{same}: {idle} of its time it looked for work, in {places} places");
        }
        // At one place, which works for a twenty-fifth of the time.
        let mut rng = Prng::new(5);
        let mut same = || {
            let before = windows(&mut rng, 7, &[0.38, 0.19, 0.19, 0.152, 0.088], 1);
            said(&before, &windows(&mut rng, 40, &[0.4, 0.2, 0.2, 0.16, 0.04], 1), 1.0 / 0.95)
        };
        let same = (0..100).filter(|_| same()).count();
        assert!(same <= 6, "{same}: at one place");
    }

    /// Planted faults: few samples are enough; places that were not counted do not matter.
    #[test]
    fn few_samples_and_unknown_places_say_nothing() {
        let mut rng = Prng::new(1);
        let [before, since] = [7, 40].map(|count| windows(&mut rng, count, &[0.5, 0.5], 1));
        assert!(said(&before, &since, 1.05));
        assert!(!said(&before[..1], &since, 1.5), "few");
        let lost = |one: &Window| Window { samples: 110, ..one.clone() };
        assert!(!said(&before.iter().map(lost).collect::<Vec<_>>(), &since, 1.5), "a tenth is not known");
        assert!(!said(&[], &since, 1.5), "nothing");
    }

    /// Planted fault: the kernel is a place like others.
    #[test]
    fn who_asks_the_kernel_for_work_is_seen_however_much_it_works_there() {
        let mut rng = Prng::new(2);
        let in_kernel = |windows: Vec<Window>| -> Vec<Window> {
            let renamed =
                |(place, samples): (u64, u64)| (if place == 1 { IN_KERNEL } else { place }, samples);
            windows
                .into_iter()
                .map(|one| Window { places: one.places.into_iter().map(renamed).collect(), ..one })
                .collect()
        };
        let mut same = || {
            let before = in_kernel(windows(&mut rng, 7, &[0.37, 0.63], 1));
            said(&before, &in_kernel(windows(&mut rng, 40, &[0.3, 0.7], 1)), 1.0 / 0.9)
        };
        let same = (0..100).filter(|_| same()).count();
        assert!(same <= 6, "{same}");
    }
}
