//! Time of threads that ended before a sample fell in them, or between two: the kernel counts it exactly, and tells it as
//! each thread ends.
//!
//! The watched target keeps it, the recorder writes it down. A clock that ticks a thousand times a second begins anew with
//! each thread: one that lives for half a tick is never sampled, and a build or a shell script is made of such.

use std::collections::{BTreeMap, HashMap};

use dyno_record::profile::{Frame, Origin, Profile, Stack, Thread};
use dyno_sys::{Pid, Tid};

/// What stands for code that nobody saw, and where samples were lost as well: whose these were is not known.
const MARK: &str = "[ended before a sample]";
const MARK_OF_LOST: &str = "[not sampled]";

/// Less than this part of all time is left out: every thread ends between two ticks.
const SHARE_MIN: f64 = 0.01;

/// Units of the clock by thread: in its samples, and told by the kernel at its end.
#[derive(Debug, Default)]
pub(crate) struct Short {
    lives: HashMap<Tid, Life>,
    /// By name, and whether they were processes of their own.
    sums: BTreeMap<(String, bool), Sum>,
}

/// One thread.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// Whose it is, where it began while that was watched.
    pid: Option<Pid>,
    sampled: u64,
    told: u64,
}

/// Threads of one name, or processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    first: (Pid, Tid),
    threads: u64,
    units: u64,
}

impl Short {
    /// It begins, as a thread of this process.
    pub(crate) fn begins(&mut self, pid: Pid, tid: Tid) {
        self.lives.entry(tid).or_default().pid = Some(pid);
    }

    pub(crate) fn sampled(&mut self, tid: Tid, units: u64) {
        self.lives.entry(tid).or_default().sampled += units;
    }

    pub(crate) fn told(&mut self, tid: Tid, units: u64) {
        self.lives.entry(tid).or_default().told += units;
    }

    /// Nothing more comes of this thread: its number is another's now, or all is over.
    pub(crate) fn settle(&mut self, tid: Tid, name: &str) {
        let Life { pid, sampled, told } = self.lives.remove(&tid).unwrap_or_default();
        let pid = pid.unwrap_or(tid);
        if told > sampled {
            let which = (name.to_owned(), pid == tid);
            let sum = self.sums.entry(which).or_insert(Sum { first: (pid, tid), ..Sum::default() });
            sum.threads += 1;
            sum.units += told - sampled;
        }
    }

    /// Writes it into a profile that has all else; a sentence about it, where it is enough to be seen.
    pub(crate) fn write(
        mut self,
        names: &HashMap<Tid, String>,
        unit_ns: f64,
        profile: &mut Profile,
    ) -> Option<String> {
        for tid in self.lives.keys().copied().collect::<Vec<_>>() {
            self.settle(tid, names.get(&tid).map_or("", String::as_str));
        }
        let ns = |units: u64| (units as f64 * unit_ns).round() as u64;
        let all: u64 = self.sums.values().map(|sum| ns(sum.units)).sum();
        let share = all as f64 / (all + profile.total_ns()).max(1) as f64;
        if share < SHARE_MIN {
            return None;
        }
        let (mark, or_lost) = match profile.sampling.lost {
            0 => (MARK, String::new()),
            lost => (MARK_OF_LOST, format!(", or where {lost} samples were lost")),
        };
        let frame = profile.frames.len() as u32;
        profile.frames.push(Frame { name: mark.to_owned(), origin: Origin::Mark, ..Frame::default() });
        for ((name, _), sum) in &self.sums {
            let thread = profile.threads.len() as u32;
            let (pid, tid) = (sum.first.0.cast_unsigned(), sum.first.1.cast_unsigned());
            profile.threads.push(Thread { pid, tid, name: name.clone() });
            let weight_ns = ns(sum.units);
            profile.stacks.push(Stack { frames: vec![frame], thread, weight_ns, ..Stack::default() });
        }
        profile.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.weight_ns));
        let threads: u64 = self.sums.values().map(|sum| sum.threads).sum();
        Some(format!(
            "{:.1} % of the CPU time fell in {threads} threads and processes that ended before a sample, or between two{or_lost}: \
             the kernel counted it, it stands under {mark}",
            100.0 * share
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Fault: `settle` that drops what was told. The profile then has no samples.
    #[test]
    fn what_ended_before_a_sample_counts_under_its_name_and_is_said() {
        let (mut short, mut profile) = (Short::default(), Profile::default());
        let names = HashMap::from([(7, "make".to_owned()), (9, "cc".to_owned())]);
        short.told(7, 300_000);
        short.settle(7, "cc");
        short.told(7, 100_000);
        short.sampled(7, 1_000_000);
        short.told(9, 500_000);
        let said = short.write(&names, 1.0, &mut profile).unwrap();
        assert!(said.starts_with("100.0 % of the CPU time fell in 2 threads"), "{said}");
        assert_eq!((profile.total_ns(), profile.stacks.len()), (800_000, 1));
        assert_eq!(profile.threads[0].name, "cc");
        profile.check().unwrap();
    }

    /// Faults: each is its own process; a number that another had is still a thread of that one's process.
    #[test]
    fn threads_stand_under_their_process() {
        let (mut short, mut profile) = (Short::default(), Profile::default());
        short.begins(5, 7);
        short.told(7, 300_000);
        short.settle(7, "worker");
        short.begins(7, 7);
        short.told(7, 100_000);
        short.write(&HashMap::from([(7, "worker".to_owned())]), 1.0, &mut profile).unwrap();
        let threads: Vec<(u32, u32)> = profile
            .stacks
            .iter()
            .map(|stack| &profile.threads[stack.thread as usize])
            .map(|t| (t.pid, t.tid))
            .collect();
        assert_eq!(threads, [(5, 7), (7, 7)]);
    }

    /// Fault: lost samples of a thread that lived for seconds are told as a thread's that ended before one.
    #[test]
    fn what_lost_samples_would_have_shown_is_not_said_to_have_ended() {
        let (mut short, mut profile) = (Short::default(), Profile::default());
        profile.sampling.lost = 12;
        short.told(7, 300_000);
        let said = short.write(&HashMap::new(), 1.0, &mut profile).unwrap();
        assert!(said.contains("or where 12 samples were lost") && said.ends_with("[not sampled]"), "{said}");
        assert_eq!(profile.frames[0].name, "[not sampled]");
    }

    #[test]
    fn the_last_part_of_a_tick_of_a_long_thread_is_not_worth_a_word() {
        let (mut short, mut profile) = (Short::default(), Profile::default());
        profile.stacks = vec![Stack { weight_ns: 1_000_000_000, ..Stack::default() }];
        short.sampled(7, 1_000_000_000);
        short.told(7, 1_000_700_000);
        assert_eq!(short.write(&HashMap::new(), 1.0, &mut profile), None);
        assert_eq!(profile.stacks.len(), 1);
    }
}
