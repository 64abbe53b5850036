//! Locks whose word goes from CPU to CPU: nobody sleeps, and each takes the line of memory away from the last one.
//!
//! Readers of one lock never wait for each other, and neither do those who hold it for an instant: no sleep and no call shows
//! them. The samples do: they lie behind the lock's atomics, and the registers say on which line. `blocking` asks.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::finding::Class;
use dyno_record::observation::HotSpot;

use super::code;
use super::draft::{Draft, percent};
use super::facts::{Cost, Facts};
use super::memory::{Line, TOGETHER_MIN, at_the_same_time, line};
use super::names;

/// Of the times that a line was seen, those by other threads than the one that has it most: below it, the line stays.
const BY_OTHERS_MIN: f64 = 0.2;
/// Fewer times than this prove nothing.
const SEEN_MIN: usize = 16;

/// A line of memory that several threads take locks on.
struct Shared {
    /// Of all samples.
    share: f64,
    threads: BTreeSet<u32>,
    /// The function in which most of it is.
    function: String,
}

/// Who uses a line, how often, and what part of all samples that is, by function.
#[derive(Default)]
struct Uses {
    by: BTreeMap<u32, usize>,
    functions: BTreeMap<String, f64>,
}

/// Threads that run at the same time take locks on one line of memory, and that takes at least `share_min` of the CPU.
pub(super) fn locks_on_one_line(facts: &Facts<'_>, share_min: f64) -> Option<Draft> {
    // Which of Go's goroutines has a thread's lock changes with the thread.
    let on = facts.on.as_ref().filter(|_| facts.seen.goroutines.is_none() && !facts.has_cpu_to_spare())?;
    // The allocator's own locks are another rule's.
    let in_locks = on.share(&[Cost::UserLock, Cost::LockCall, Cost::Futex]);
    let moving = lines(facts).into_values().filter_map(|uses| uses.moving(facts));
    let most = moving.max_by(|a, b| a.share.total_cmp(&b.share))?;
    let share = most.share.min(in_locks);
    (share >= share_min).then(|| draft(facts, &most, share, in_locks))
}

fn draft(facts: &Facts<'_>, shared: &Shared, share: f64, in_locks: f64) -> Draft {
    let threads = shared.threads.len();
    let place = facts.on.as_ref().and_then(|on| Some(on.places(&[Cost::UserLock]).first()?.0.clone()));
    let place = place.or_else(|| Some(shared.function.clone()));
    let summary =
        format!("{} of the CPU takes locks on one line of memory from {threads} threads", percent(share));
    let text = format!(
        "{} of the samples lie at atomics on one line from {threads} threads: it moves from CPU to CPU",
        percent(share)
    );
    Draft::new(Class::LockContention, share, summary)
        .fact(text, share, "share")
        .fact(format!("{} of the CPU time goes into taking and giving back locks", percent(in_locks)), in_locks, "share")
        .sign("nobody needs to wait for that: readers of one lock take its line away from each other too")
        .next("a lock for each part of the data, or none for readers: a copy that is replaced as a whole (RCU), or one for each thread")
        .at(place)
        .specimen("global-lock")
}

impl Uses {
    /// The line, if it goes from thread to thread while these run.
    fn moving(self, facts: &Facts<'_>) -> Option<Shared> {
        let (all, most) = (self.by.values().sum::<usize>(), self.by.values().max().copied().unwrap_or(0));
        let threads: BTreeSet<u32> = self.by.into_keys().collect();
        let moves = all >= SEEN_MIN && (all - most) as f64 >= BY_OTHERS_MIN * all as f64;
        if !moves || at_the_same_time(facts, &threads) < TOGETHER_MIN {
            return None;
        }
        let share = self.functions.values().sum();
        let function = self.functions.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
        Some(Shared { share, threads, function })
    }
}

/// What locks' atomics work on, by line.
fn lines(facts: &Facts<'_>) -> BTreeMap<Line, Uses> {
    let mut lines = BTreeMap::<Line, Uses>::new();
    let seen_share = facts.on.as_ref().map_or(1.0, |on| on.seen_share());
    for spot in facts.seen.hot.iter().filter(|spot| is_of_a_lock(spot)) {
        for (by, address) in code::at_atomic(spot) {
            let uses = lines.entry(line(facts, by, address)).or_default();
            *uses.by.entry(by.tid).or_default() += 1;
            *uses.functions.entry(spot.function.clone()).or_default() +=
                spot.share * seen_share / spot.seen.len() as f64;
        }
    }
    lines
}

fn is_of_a_lock(spot: &HotSpot) -> bool {
    names::is(&spot.function, names::ACQUIRE) || names::is(&spot.function, names::RELEASE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::Registers;

    use crate::scene::{S, Scene, registers};

    /// As in glibc's rdlock: `mov $8,%eax; lock xadd %eax,(%rbx); add $8,%eax; test %eax,%eax; ret`, seen behind the atomic.
    const READER: (&str, u64) = ("b808000000f00fc10383c00885c0c3", 0x9);

    fn at(tid: u32, address: u64) -> Registers {
        let mut one = registers(tid, 0, 0);
        one.values[1] = address;
        one
    }

    /// Four threads on two full CPUs, in a lock for most of the time; `address` of the thread's lock, and how often each was seen.
    fn readers(share: f64, run_s: f64, seen: [usize; 4], address: impl Fn(u32) -> u64) -> Scene {
        let seen = (1..=4_u32).flat_map(|tid| vec![at(tid, address(tid)); seen[tid as usize - 1]]).collect();
        let scene = Scene::new(&[run_s; 4]).on("serve;pthread_rwlock_rdlock", 80).on("serve;work", 20);
        scene.hot(READER, share, seen).with(|seen| {
            seen.hot[0].function = "___pthread_rwlock_rdlock".into();
            (seen.host.all_ns, seen.host.idle_ns) = (20 * S, 0);
        })
    }

    fn is_told(scene: &Scene) -> bool {
        scene.classes().contains(&Class::LockContention)
    }

    /// Planted faults: one for each line here (`BY_OTHERS_MIN` of 0, `SEEN_MIN` of 0, no `at_the_same_time`, the whole memory as one line,
    /// any function's atomics, no `share_min`).
    #[test]
    fn readers_of_one_lock_take_its_line_away_from_each_other() {
        let one = |_| 0x7000;
        let shared = readers(0.7, 5.0, [12; 4], one);
        assert_eq!(shared.first(), Some(Class::LockContention));
        let said = shared.diagnosed();
        let text = &said.findings[0].evidence[0].text;
        assert_eq!(
            text,
            "70 % of the samples lie at atomics on one line from 4 threads: it moves from CPU to CPU"
        );
        assert!(!is_told(&readers(0.7, 5.0, [45, 1, 1, 1], one)), "one has it nearly always");
        assert!(!is_told(&readers(0.7, 5.0, [3; 4], one)), "hardly seen");
        assert!(!is_told(&readers(0.1, 5.0, [12; 4], one)), "it takes little");
        assert!(!is_told(&readers(0.7, 5.0, [12; 4], |tid| 0x7000 + 64 * u64::from(tid))), "a lock each");
        let elsewhere = readers(0.7, 5.0, [12; 4], one).with(|seen| seen.hot[0].function = "count".into());
        assert!(!is_told(&elsewhere), "no lock's");
        let in_turns = readers(0.7, 0.25, [12; 4], one).with(|seen| seen.host.peers_ns = 18 * S);
        assert!(!is_told(&in_turns), "one at a time");
    }
}
