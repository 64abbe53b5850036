//! Slices of several arms, one each per cycle in shuffled order, and what may be said of them.

use dyno_measure::Prng;
use dyno_measure::judge::{Estimate, compare_paired};
use dyno_measure::stats::median;

use crate::trouble::Trouble;

/// Chance that an interval misses: 95 % intervals, one look.
const ALPHA: f64 = 0.05;

/// What one slice showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    /// CPU of what is measured, in microseconds per request.
    pub(crate) cpu_us: f64,
    /// Requests per second of wall time.
    pub(crate) per_s: f64,
}

/// An arm's slices, in the order of the cycles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) slices: Vec<Slice>,
}

impl Series {
    /// The median CPU per request, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        median(self.slices.iter().map(|slice| slice.cpu_us))
    }

    /// The median rate per second.
    pub(crate) fn per_s(&self) -> f64 {
        median(self.slices.iter().map(|slice| slice.per_s))
    }

    fn cpu(&self) -> Vec<f64> {
        self.slices.iter().map(|slice| slice.cpu_us).collect()
    }

    /// ln(this / other) of CPU per request within cycles; `None` with fewer than five of them.
    pub(crate) fn against(&self, other: &Series) -> Option<Estimate> {
        compare_paired(&other.cpu(), &self.cpu(), ALPHA)
    }
}

/// Measures every arm once per cycle, after one round that is not kept.
pub(crate) fn interleaved(
    names: &[String],
    cycles: usize,
    seed: u64,
    measure: &mut dyn FnMut(usize) -> Result<Slice, Trouble>,
) -> Result<Vec<Series>, Trouble> {
    let mut rng = Prng::new(seed);
    let mut order: Vec<usize> = (0..names.len()).collect();
    let empty = |name: &String| Series { name: name.clone(), slices: Vec::with_capacity(cycles) };
    let mut all: Vec<Series> = names.iter().map(empty).collect();
    for cycle in 0..=cycles {
        rng.shuffle(&mut order);
        for &arm in &order {
            let slice = measure(arm)?;
            // The first round warms caches, connections' slabs and lazily started threads.
            if cycle > 0 {
                all[arm].slices.push(slice);
            }
        }
        eprintln!("cycle {cycle} of {cycles}");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_arm_gets_one_slice_per_cycle_in_changing_order() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let mut order = Vec::new();
        let measured = interleaved(&names, 20, 7, &mut |arm| {
            order.push(arm);
            Ok(Slice { cpu_us: arm as f64 + 1.0, per_s: 1.0 })
        });
        let measured = measured.unwrap();
        assert!(measured.iter().all(|series| series.slices.len() == 20));
        assert!(measured.iter().zip([1.0, 2.0, 3.0]).all(|(series, cpu)| series.cpu_us() == cpu));
        let mut rounds: Vec<&[usize]> = order.chunks(3).collect();
        assert!(rounds.iter().all(|round| round.iter().sum::<usize>() == 3 && round.contains(&1)));
        rounds.dedup();
        assert!(rounds.len() > 5, "{order:?}");
    }

    #[test]
    fn a_machine_that_changes_its_speed_leaves_ratios_within_cycles_alone() {
        // Seed 3: speed halves and doubles from cycle to cycle; B costs a tenth more in each.
        let mut rng = Prng::new(3);
        let names = ["a", "b"].map(str::to_owned);
        let (mut slices, mut speed) = (0, 1.0);
        let measured = interleaved(&names, 30, 1, &mut |arm| {
            if slices % 2 == 0 {
                speed = 1.0 + rng.unit();
            }
            slices += 1;
            let own = if arm == 0 { 10.0 } else { 11.0 };
            Ok(Slice { cpu_us: own * speed * (1.0 + 0.01 * rng.normal()), per_s: 1.0 })
        });
        let measured = measured.unwrap();
        let [low, high] = measured[1].against(&measured[0]).unwrap().interval_percent();
        assert!(low > 8.0 && high < 12.0, "{low} … {high}");
    }

    #[test]
    fn too_few_cycles_give_no_interval() {
        let series = |n| Series { name: "x".into(), slices: vec![Slice { cpu_us: 1.0, per_s: 1.0 }; n] };
        assert!(series(4).against(&series(4)).is_none());
        assert!(series(5).against(&series(5)).is_some());
    }
}
