//! The clocks that sample a CPU: several together, drawn anew from time to time, so that nothing which the target does keeps
//! step with them.
//!
//! One clock of the kernel's beats as a metronome does (`hrtimer_forward_now` in `perf_swevent_hrtimer`), and keeps step with
//! whoever naps for a fixed time: the kernel ends a nap up to 50 µs late and gladly together with another timer of that CPU
//! (timer slack, `prctl(2)`), and a pause that begins with a sample ends in step with it. Such a thread is met never, or each
//! time; and one that pauses is met more often than its work is worth, since no sample lies in its pauses. The kernel gives
//! no chance to draw each period anew: what it is told while it counts begins the period again. Several slow clocks are
//! together nearly as irregular as chance, at the price of one: the interrupts are as many.
//!
//! The causal probe runs at them. What is drawn, and when, is the caller's to say.

use super::attributes::{Attributes, DISABLED, TYPE_SOFTWARE, open};
use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A pause keeps the step of the one clock that began it: an eighth of the samples. With four of them samples of a thread
/// that pauses deviated by three times as much as chance does, with eight by half as much again.
const CLOCKS_MAX: usize = 8;
/// With one there is a step to keep.
const CLOCKS_MIN: usize = 2;
/// Each is a descriptor, and a process has 1,024 where nobody gave it more.
const DESCRIPTORS_MAX: usize = 512;
/// The golden section: multiples of it come near each other, or near a whole number, as seldom as can be.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// The clocks' rates deviate from their mean by up to a half of this.
const SPREAD: f64 = 0.5;

/// Clocks of each CPU on a machine with `cpus`.
pub(crate) fn clocks_of_a_cpu(cpus: usize) -> usize {
    (DESCRIPTORS_MAX / cpus.max(1)).clamp(CLOCKS_MIN, CLOCKS_MAX)
}

/// Periods of the `clocks` of each CPU: together they sample once in each `period_ns`. `turn`, from 0 to 1, draws them. All
/// CPUs have the same, and should begin them together: threads that wait for each other by spinning then pause at once. By
/// clocks of their own they paused one after the other, and pauses of 25 % of the time cost the two 37 % of it.
pub(crate) fn periods(period_ns: u64, clocks: usize, turn: f64) -> Vec<u64> {
    assert!(period_ns > 0 && clocks > 0, "time passes between samples of a clock");
    let rate = |clock: usize| 1.0 + SPREAD * ((turn + clock as f64 * GOLDEN).fract() - 0.5);
    let all: f64 = (0..clocks).map(rate).sum();
    let periods: Vec<u64> = (0..clocks).map(|clock| (period_ns as f64 * all / rate(clock)) as u64).collect();
    debug_assert!(
        periods.iter().all(|one| *one >= period_ns / 2),
        "no clock samples most of the time: {periods:?}"
    );
    periods
}

/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
const IOC_ENABLE: libc::Ioctl = 0x2400 as libc::Ioctl;
/// `_IOW('$', 4, __u64)` and `_IOW('$', 8, __u32)`.
const IOC_PERIOD: libc::Ioctl = 0x4008_2404 as libc::Ioctl;
const IOC_SET_BPF: libc::Ioctl = 0x4004_2408 as libc::Ioctl;

/// One clock of a CPU, at which a BPF program runs. Closed, it stands still and the program is out.
#[derive(Debug)]
pub(crate) struct SampleClock {
    fd: OwnedFd,
    cpu: usize,
}

impl SampleClock {
    /// Runs `program` on CPU `cpu` after each `period_ns` from now on. `EACCES` or `EPERM` without CAP_PERFMON and CAP_BPF.
    pub(crate) fn start(program: BorrowedFd<'_>, cpu: usize, period_ns: u64) -> io::Result<SampleClock> {
        const EVERYBODY: crate::Pid = -1;
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: CPU_CLOCK,
            sample_period_or_freq: period_ns,
            flags: DISABLED,
            ..Attributes::EMPTY
        };
        let fd = open(&attributes, EVERYBODY, Some(cpu))?;
        // SAFETY: this request takes a descriptor's number.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), IOC_SET_BPF, program.as_raw_fd()) })?;
        // SAFETY: this request takes no pointer.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), IOC_ENABLE, 0) })?;
        Ok(SampleClock { fd, cpu })
    }

    /// The CPU.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    /// Begins another period, now.
    pub(crate) fn restart(&self, period_ns: u64) -> io::Result<()> {
        // SAFETY: the period lives through the call.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_PERIOD, &raw const period_ns) })?;
        Ok(())
    }
}

impl AsFd for SampleClock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simple chance with a seed (Knuth's linear congruence).
    struct Chance(u64);

    impl Chance {
        fn share(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// The clocks of a CPU, in µs, and when each beats next.
    struct Clocks(Vec<[f64; 2]>);

    /// After each of these, in µs, they are drawn anew: a window with what lies around it.
    const DRAWN_EACH: f64 = 280_000.0;

    impl Clocks {
        fn next(&self) -> f64 {
            self.0.iter().map(|clock| clock[1]).fold(f64::INFINITY, f64::min)
        }

        fn beat(&mut self) {
            let next = self.next();
            for clock in &mut self.0 {
                clock[1] += if clock[1] > next { 0.0 } else { clock[0] };
            }
        }

        /// At times of their own each.
        fn draw(&mut self, period_ns: u64, clocks: usize, now: f64, chance: &mut Chance) {
            let periods = periods(period_ns, clocks, chance.share()).into_iter().map(|ns| ns as f64 / 1e3);
            self.0 = periods.map(|period| [period, now + period * chance.share()]).collect();
        }

        fn pass(&mut self, until: f64) {
            while self.next() < until {
                self.beat();
            }
        }
    }

    /// What a thread is told to do between its naps, in µs.
    #[derive(Clone, Copy, Debug)]
    struct Life {
        nap: f64,
        work: f64,
        /// Of all time, what it owes and pauses for when it is met.
        owes: f64,
    }

    /// Samples that met it at work for four seconds, beside those that its work is worth, in standard deviations of chance.
    fn deviation(period_ns: u64, count: usize, life: Life, chance: &mut Chance) -> f64 {
        let mut clocks = Clocks(Vec::new());
        let (mut now, mut worked, mut paid, mut met, mut drawn) = (0.0, 0.0, 0.0, 0_u32, 0.0);
        while now < 4e6 {
            if drawn <= now {
                clocks.draw(period_ns, count, now, chance);
                // A lone clock is the metronome that it was.
                drawn = if count == 1 { f64::INFINITY } else { now + DRAWN_EACH };
            }
            let (soon, late) = (now + life.nap, now + life.nap + 50.0);
            clocks.pass(soon);
            // Together with a beat, or 50 µs late; then it takes a while to wake.
            now = clocks.next().min(late) + 1.0 + 2.0 * chance.share();
            clocks.pass(now);
            let mut left = life.work * (0.995 + 0.01 * chance.share());
            while clocks.next() < now + left {
                let at = clocks.next();
                clocks.beat();
                met += 1;
                left -= at - now;
                worked += at - now;
                let debt = (life.owes * at - paid).clamp(0.0, 20_000.0);
                paid += debt;
                now = at + debt;
                clocks.pass(now);
            }
            now += left;
            worked += left;
        }
        let worth = worked / (period_ns as f64 / 1e3);
        (f64::from(met) - worth) / worth.sqrt()
    }

    /// The mean deviation, over naps and bursts of all kinds.
    fn deviations(period_ns: u64, clocks: usize, owes: f64) -> f64 {
        let mut chance = Chance(1);
        let naps = [1_000.0, 2_000.0, 4_000.0, 5_000.0, 10_000.0];
        let lives =
            naps.map(|nap| [20.0, 50.0, 100.0, 200.0, 350.0, 500.0].map(|work| Life { nap, work, owes }));
        let all = lives.as_flattened();
        let squares: f64 =
            all.iter().map(|life| deviation(period_ns, clocks, *life, &mut chance).powi(2)).sum();
        (squares / all.len() as f64).sqrt()
    }

    /// One metronome deviates by 3 without pauses and by 25 with them; planted fault: a single clock.
    #[test]
    fn who_naps_for_a_fixed_time_is_met_as_often_as_it_works() {
        for period_ns in [485_000, 970_000, 1_000_000, 1_001_001] {
            let count = clocks_of_a_cpu(2);
            let found = [deviations(period_ns, count, 0.0), deviations(period_ns, count, 0.5)];
            assert!(found[0] < 1.5 && found[1] < 2.5, "{period_ns}: {found:?}");
        }
        let alone = [deviations(970_000, 1, 0.0), deviations(970_000, 1, 0.5)];
        assert!(alone[0] > 2.5 && alone[1] > 15.0, "the test sees what keeps step: {alone:?}");
    }

    #[test]
    fn the_clocks_of_a_cpu_sample_together_once_in_a_period() {
        for (period_ns, clocks, turn) in [(970_000, 8, 0.0), (485_000, 2, 0.3), (10_000, 4, 0.99)] {
            let periods = periods(period_ns, clocks, turn);
            let together = 1.0 / periods.iter().map(|one| 1.0 / *one as f64).sum::<f64>();
            assert!((together / period_ns as f64 - 1.0).abs() < 1e-3, "{period_ns} {clocks}: {together}");
        }
        assert_eq!([1, 64, 128, 4_096].map(clocks_of_a_cpu), [8, 8, 4, 2]);
    }

    #[test]
    fn each_turn_draws_other_periods_and_no_two_of_them_are_alike() {
        let all = [periods(970_000, 8, 0.0), periods(970_000, 8, 0.5), periods(970_000, 8, 0.77)];
        let mut every: Vec<u64> = all.into_iter().flatten().collect();
        every.sort_unstable();
        assert!(every.windows(2).all(|two| two[1] > two[0]), "{every:?}");
    }
}
