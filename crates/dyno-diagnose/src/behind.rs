//! Requests in line inside of the target for threads that sleep: all that came was read, nothing lies in a socket, and who took it
//! waits for one of a pool's few threads.
//!
//! A wait for a thread that sleeps is a wait for the sleep, as one for a thread at a disk is for the disk (`flushers`). Only sleeps by
//! the clock are asked: who reads others' answers may carry those of many requests. Called by `pool`.

use std::collections::BTreeSet;

use super::draft::{Draft, counted, percent};
use super::facts::Facts;
use super::limits::pool_draft;
use super::waits::OffCpu;

/// Requests that are held for each thread that sleeps, from which on they stand in line for it.
const IN_LINE_MIN: f64 = 4.0;
/// Of the requests that are held, those that threads must be seen to wait with for the sleepers: there are such waits of which it is
/// not seen who ends them.
const SEEN_MIN: f64 = 0.25;
/// Waits that a sleeper ends each time that it sleeps, at most: who ends many at once brings news for all, and no turn.
const ENDED_MAX: f64 = 2.0;

/// More requests are held than there are threads that sleep, and others wait for these, one wait for each sleep. `sleepers` are
/// all that sleep by the clock for most of the time.
pub(super) fn in_line_for_sleepers(
    facts: &Facts<'_>,
    off: &OffCpu<'_>,
    sleepers: &BTreeSet<u32>,
    spare: f64,
) -> Option<Draft> {
    let owed = facts.seen.packets.as_ref()?.serving?.owed();
    let ended = off.ended_by(sleepers);
    let waiting = ended.ns as f64 / off.window_ns.max(1.0);
    let sleeps: u64 = ended.by.iter().filter_map(|tid| off.threads.get(tid)).map(|time| time.sleeps).sum();
    let many = ended.by.len() as u64;
    let in_line = owed >= IN_LINE_MIN * many as f64 && waiting >= SEEN_MIN * owed;
    let one_by_one = ended.waits as f64 <= ENDED_MAX * sleeps as f64;
    (many > 0 && in_line && one_by_one).then(|| {
        let threads = counted(many, "thread");
        let summary = format!(
            "{owed:.1} requests are held while others wait for {threads} asleep most of the time, and {} of the CPUs' time is free",
            percent(spare)
        );
        pool_draft(spare, summary).fact(
            format!("{waiting:.1} threads wait for {threads} asleep, on average"),
            waiting,
            "threads",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Packets, Serving};
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    /// Eight threads, one for each connection, that wait for what a pool of one thread does; it sleeps so long and so often.
    fn served(owed: u64, slept_s: f64, sleeps: u64) -> Vec<Class> {
        let mut scene =
            Scene::new(&[0.2, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]).on("run;work", 100);
        scene = scene.off(1, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", slept_s);
        scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = sleeps;
        for tid in 2..=9 {
            let future = "serve;get;pthread_cond_wait;futex_wait_[k]";
            scene = scene.off(tid, WaitClass::Lock, future, 9.5).woken("0x7f", 1, "run;pthread_cond_signal");
        }
        let serving = Serving { connections: 8.0, looks: 80, looks_owed: 10 * owed, ..Serving::default() };
        let packets = Packets { serving: Some(serving), ..Packets::default() };
        scene.with(|seen| seen.packets = Some(packets)).classes()
    }

    /// Planted faults: few requests are a line as well (`IN_LINE_MIN` of 0); who wakes many at once is waited for (`ENDED_MAX` of
    /// 100); whoever ends waits sleeps.
    #[test]
    fn requests_whose_threads_wait_for_a_sleeper_are_in_line_for_it_though_all_was_read() {
        assert_eq!(served(8, 9.5, 800), [Class::PoolLimit]);
        assert_eq!(served(3, 9.5, 800), []);
        assert_eq!(served(8, 9.5, 100), [], "news for all of them, ten times a second");
        assert_eq!(served(8, 5.0, 800), [], "it does something else for half of the time");
    }
}
