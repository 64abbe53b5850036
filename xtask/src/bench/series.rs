//! Slices of several arms, one each per cycle in shuffled order, and what may be said of them.

use dyno_measure::Prng;
use dyno_measure::judge::{Estimate, compare_paired};
use dyno_measure::stats::median;

use crate::trouble::Trouble;

/// Chance that an interval misses: 95 % intervals, one look.
const ALPHA: f64 = 0.05;

/// Pairs of user or system time at most. The kernel's tick splits them, some hundred times a second: a slice of tenths
/// of a second holds a few ticks, and the logarithm of a few is noise that leans to one side. So slices that follow each
/// other are put together, the same ones of both arms.
const GROUPS_MAX: usize = 20;

/// Which CPU time is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Total,
    User,
    System,
}

impl Part {
    pub(crate) const ALL: [Part; 3] = [Part::Total, Part::User, Part::System];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Total => "total",
            Part::User => "user",
            Part::System => "system",
        }
    }
}

/// What one slice showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    /// CPU of what is measured, in microseconds per request.
    pub(crate) cpu_us: f64,
    /// The part of it in user space, where it is known.
    pub(crate) user_us: Option<f64>,
    /// Requests per second of wall time.
    pub(crate) per_s: f64,
}

/// An arm's slices, in the order of the cycles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) slices: Vec<Slice>,
}

impl Slice {
    fn cpu_of(&self, part: Part) -> Option<f64> {
        match part {
            Part::Total => Some(self.cpu_us),
            Part::User => self.user_us,
            Part::System => self.user_us.map(|user| self.cpu_us - user),
        }
    }
}

impl Series {
    /// The median CPU per request, in microseconds; not a number where it is not known.
    pub(crate) fn cpu_us(&self, part: Part) -> f64 {
        median(self.cpu(part))
    }

    /// The median rate per second.
    pub(crate) fn per_s(&self) -> f64 {
        median(self.slices.iter().map(|slice| slice.per_s))
    }

    /// In the order of the cycles: of each slice the total, of each group of them a part.
    fn cpu(&self, part: Part) -> Vec<f64> {
        let all = self.slices.len();
        let groups = if part == Part::Total { all } else { all.min(GROUPS_MAX) };
        let group = |at: usize| &self.slices[at * all / groups..(at + 1) * all / groups];
        (0..groups).map(|at| mean(group(at), part)).collect()
    }

    /// ln(this / other) of CPU per request within cycles, or why there is none.
    pub(crate) fn against(&self, other: &Series, part: Part) -> Result<Estimate, &'static str> {
        let (theirs, ours) = (other.cpu(part), self.cpu(part));
        if theirs.iter().chain(&ours).any(|cpu| cpu.is_nan() || *cpu <= 0.0) {
            return Err("too few ticks");
        }
        compare_paired(&theirs, &ours, ALPHA).ok_or("too few cycles")
    }
}

/// Per request, over slices of one length: a slice weighs as much as it had requests.
fn mean(slices: &[Slice], part: Part) -> f64 {
    let known = slices.iter().filter_map(|slice| Some((slice.cpu_of(part)?, slice.per_s)));
    let (cpu, requests) = known.fold((0.0, 0.0), |sum, (cpu, per_s)| (sum.0 + cpu * per_s, sum.1 + per_s));
    cpu / requests
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

    fn slice(cpu_us: f64) -> Slice {
        Slice { cpu_us, user_us: None, per_s: 1.0 }
    }

    #[test]
    fn each_arm_gets_one_slice_per_cycle_in_changing_order() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let mut order = Vec::new();
        let measured = interleaved(&names, 20, 7, &mut |arm| {
            order.push(arm);
            Ok(slice(arm as f64 + 1.0))
        });
        let measured = measured.unwrap();
        assert!(measured.iter().all(|series| series.slices.len() == 20));
        assert!(measured.iter().zip([1.0, 2.0, 3.0]).all(|(series, cpu)| series.cpu_us(Part::Total) == cpu));
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
            Ok(slice(own * speed * (1.0 + 0.01 * rng.normal())))
        });
        let measured = measured.unwrap();
        let [low, high] = measured[1].against(&measured[0], Part::Total).unwrap().interval_percent();
        assert!(low > 8.0 && high < 12.0, "{low} … {high}");
    }

    #[test]
    fn too_few_cycles_give_no_interval() {
        let series = |n| Series { name: "x".into(), slices: vec![slice(1.0); n] };
        assert_eq!(series(4).against(&series(4), Part::Total), Err("too few cycles"));
        assert!(series(5).against(&series(5), Part::Total).is_ok());
    }

    #[test]
    fn user_and_system_time_are_compared_over_groups_of_slices() {
        // Every second slice of the first arm has no tick in user space; over groups each has its tenth.
        let arm = |user: fn(usize) -> Option<f64>| Series {
            name: "x".into(),
            slices: (0..400).map(|at| Slice { cpu_us: 10.0, user_us: user(at), per_s: 1_000.0 }).collect(),
        };
        let floor = arm(|at| Some(if at % 2 == 0 { 0.0 } else { 2.0 }));
        let server = arm(|_| Some(2.0));
        assert_eq!([Part::User, Part::System].map(|part| floor.cpu_us(part)), [1.0, 9.0]);
        let ratio =
            |part| server.against(&floor, part).map(|estimate| (estimate.n, estimate.log_ratio.exp()));
        let (groups, user) = ratio(Part::User).unwrap();
        assert!(groups == GROUPS_MAX && (user - 2.0).abs() < 1e-9, "{groups} {user}");
        assert_eq!(ratio(Part::Total).unwrap().0, 400);
        for nothing in [arm(|_| None), arm(|_| Some(0.0))] {
            assert_eq!(server.against(&nothing, Part::User), Err("too few ticks"));
        }
    }

    #[test]
    fn every_slice_is_in_one_group_and_the_groups_are_about_as_long() {
        for count in [1, 12, 30, 401] {
            let slices = (0..count).map(|at| Slice { cpu_us: 1.0, user_us: Some(at as f64), per_s: 1.0 });
            let series = Series { name: "x".into(), slices: slices.collect() };
            let groups = series.cpu(Part::User);
            assert_eq!(groups.len(), count.min(GROUPS_MAX));
            let wanted = (count as f64 - 1.0) / 2.0;
            let mean = groups.iter().sum::<f64>() / groups.len() as f64;
            assert!((mean - wanted).abs() <= 0.51 && groups.is_sorted(), "{count}: {groups:?}");
        }
    }
}
