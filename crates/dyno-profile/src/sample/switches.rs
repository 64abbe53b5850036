//! Off the CPU by perf's own records of switches, for kernels and users that BPF is refused: when a thread leaves, with
//! what stack, and when it is back.
//!
//! The recorder of samples calls it. What it cannot know: who ends a wait, what the wait is about, and how much of it was
//! spent runnable after the wake-up.

use std::collections::HashMap;
use std::time::Duration;

use dyno_record::profile::ThreadTime;
use dyno_sys::perf::{Switch, Task, Way};
use dyno_sys::{Pid, Tid, proc};

use crate::stack::fold::{Folder, Key};
use crate::stack::wait::Off;

/// All threads: which are away, and how long each was what. A thread that lives is in `lives`, its past lives are in `done`;
/// each stretch of time is counted once, as running, runnable or waiting.
#[derive(Debug, Default)]
pub(crate) struct Away {
    min_ns: u64,
    lives: HashMap<Tid, Life>,
    done: Vec<Life>,
}

/// One thread.
#[derive(Debug)]
struct Life {
    pid: Pid,
    tid: Tid,
    /// When it was last seen to leave, come back, or begin.
    since_ns: u64,
    now: Now,
    /// The stack of its last sample, taken as it leaves.
    stack: Option<Key>,
    running_ns: u64,
    runnable_ns: u64,
    waiting_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// No switch of it was seen yet.
    Unknown,
    Running,
    Off(Off),
}

impl Away {
    pub(crate) fn new(min: Duration) -> Away {
        Away { min_ns: u64::try_from(min.as_nanos()).unwrap_or(u64::MAX), ..Away::default() }
    }

    /// A thread is watched from now on.
    pub(crate) fn begins(&mut self, pid: Pid, tid: Tid, now_ns: u64) {
        let (now, stack) = (Now::Unknown, None);
        let life =
            Life { pid, tid, since_ns: now_ns, now, stack, running_ns: 0, runnable_ns: 0, waiting_ns: 0 };
        self.lives.entry(tid).or_insert(life);
    }

    /// A thread's stack as it leaves the CPU; why it does follows.
    pub(crate) fn leaves(&mut self, tid: Tid, stack: Key) {
        if let Some(life) = self.lives.get_mut(&tid) {
            life.stack = Some(stack);
        }
    }

    pub(crate) fn switched(&mut self, switch: &Switch, folder: &mut Folder) {
        self.begins(switch.pid, switch.tid, switch.time_ns);
        let Some(life) = self.lives.get_mut(&switch.tid) else { return };
        let after = match switch.way {
            Way::In => Now::Running,
            Way::Waits => Now::Off(Off::Waiting),
            Way::Preempted => Now::Off(Off::Runnable),
        };
        // A thread that was born while events were opened has two, its own and one it inherited, and both tell its switches.
        if life.now == after {
            return;
        }
        let before = match (life.now, switch.way) {
            // It was there before it was watched: its first switch says whether it was on or off the CPU until then.
            (Now::Unknown, Way::In) => Now::Off(Off::Waiting),
            (Now::Unknown, _) => Now::Running,
            (known, _) => known,
        };
        life.was(before, switch.time_ns, self.min_ns, folder);
        life.now = after;
    }

    pub(crate) fn ended(&mut self, task: &Task, folder: &mut Folder) {
        if let Some(mut life) = self.lives.remove(&task.tid) {
            life.was(life.now, task.time_ns, self.min_ns, folder);
            self.done.push(life);
        }
        debug_assert!(!self.lives.contains_key(&task.tid), "its number is free for another thread");
    }

    /// Whether no thread is left that lives.
    pub(crate) fn is_over(&self) -> bool {
        self.lives.is_empty()
    }

    /// Waits that go on end here.
    pub(crate) fn end(&mut self, now_ns: u64, folder: &mut Folder) {
        for (_, mut life) in self.lives.drain() {
            let now = match life.now {
                Now::Unknown if proc::stat(life.tid).is_ok_and(|stat| stat.state == 'R') => Now::Running,
                Now::Unknown => Now::Off(Off::Waiting),
                known => known,
            };
            life.was(now, now_ns, self.min_ns, folder);
            self.done.push(life);
        }
    }

    /// The sums of all threads, each with its row.
    pub(crate) fn times(self, folder: &mut Folder) -> Vec<ThreadTime> {
        assert!(self.is_over(), "sums are whole once every thread's last stretch is counted");
        let mut times: Vec<ThreadTime> = self.done.into_iter().map(|life| life.time(folder)).collect();
        times.sort_by_key(|time| time.thread);
        // A thread's number may come again.
        times.dedup_by(|again, first| {
            let same = again.thread == first.thread;
            if same {
                first.running_ns += again.running_ns;
                first.runnable_ns += again.runnable_ns;
                first.waiting_ns += again.waiting_ns;
            }
            same
        });
        debug_assert!(times.is_sorted_by(|a, b| a.thread < b.thread), "each thread once");
        times
    }
}

impl Life {
    /// It was in this state until now.
    fn was(&mut self, what: Now, now_ns: u64, min_ns: u64, folder: &mut Folder) {
        let ns = now_ns.saturating_sub(self.since_ns);
        self.since_ns = now_ns;
        let off = match what {
            Now::Unknown | Now::Running => {
                self.running_ns += ns;
                return;
            }
            Now::Off(off) => off,
        };
        match off {
            Off::Runnable => self.runnable_ns += ns,
            Off::Waiting => self.waiting_ns += ns,
        }
        // One that was away before it was watched has no stack.
        if let Some(stack) = self.stack.take().filter(|_| ns >= min_ns) {
            folder.count(stack.off(off), ns);
        }
    }

    fn time(&self, folder: &mut Folder) -> ThreadTime {
        ThreadTime {
            thread: folder.thread(self.pid, self.tid),
            running_ns: self.running_ns,
            runnable_ns: self.runnable_ns,
            waiting_ns: self.waiting_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::image::spaces::AddressSpaces;
    use crate::stack::fold::Taken;
    use crate::stack::names::Names;
    use dyno_record::profile::WaitClass;

    fn switch(tid: Tid, time_ns: u64, way: Way) -> Switch {
        Switch { pid: 7, tid, time_ns, way }
    }

    #[test]
    fn time_between_leaving_and_coming_back_goes_to_the_stack_that_left() {
        let (mut away, mut folder) = (Away::new(Duration::from_nanos(50)), Folder::default());
        let mut spaces = AddressSpaces::new();
        away.begins(7, 8, 1_000);
        for (leaves_ns, way, back_ns) in
            [(1_100, Way::Waits, 1_400), (1_500, Way::Preempted, 1_700), (1_800, Way::Waits, 1_810)]
        {
            let key = folder.key(&mut spaces, &Taken { pid: 7, tid: 8, kernel: &[0x10], user: None });
            away.leaves(8, key);
            away.switched(&switch(8, leaves_ns, way), &mut folder);
            away.switched(&switch(8, back_ns, Way::In), &mut folder);
        }
        away.end(2_000, &mut folder);
        let times = away.times(&mut folder);
        let sums = (times[0].running_ns, times[0].runnable_ns, times[0].waiting_ns);
        assert_eq!((times.len(), sums), (1, (490, 200, 310)));
        let folded = folder.finish(&spaces, &mut Names::default(), |_, _| String::new(), 1.0);
        let kept = |class| {
            let of = folded.written.stacks.iter().filter(|stack| stack.wait.as_ref().unwrap().class == class);
            of.map(|stack| stack.weight_ns).sum::<u64>()
        };
        assert_eq!(
            (kept(WaitClass::RunQueue), kept(WaitClass::Other)),
            (200, 300),
            "ten are below the least"
        );
    }

    #[test]
    fn a_switch_that_is_told_twice_counts_once_with_its_stack() {
        let (mut away, mut folder) = (Away::new(Duration::from_nanos(50)), Folder::default());
        let mut spaces = AddressSpaces::new();
        away.begins(7, 8, 1_000);
        let key = folder.key(&mut spaces, &Taken { pid: 7, tid: 8, kernel: &[0x10], user: None });
        away.leaves(8, key);
        let told = [(1_100, Way::Preempted), (1_101, Way::Preempted), (1_400, Way::In), (1_401, Way::In)];
        for (time_ns, way) in told {
            away.switched(&switch(8, time_ns, way), &mut folder);
        }
        away.end(1_500, &mut folder);
        let times = away.times(&mut folder);
        assert_eq!((times[0].running_ns, times[0].runnable_ns), (200, 300));
        let folded = folder.finish(&spaces, &mut Names::default(), |_, _| String::new(), 1.0);
        assert_eq!(folded.written.stacks.iter().map(|stack| stack.weight_ns).sum::<u64>(), 300);
    }

    #[test]
    fn one_that_was_away_before_it_was_watched_has_waited() {
        let (mut away, mut folder) = (Away::new(Duration::ZERO), Folder::default());
        away.begins(7, 8, 1_000);
        away.switched(&switch(8, 1_300, Way::In), &mut folder);
        away.ended(&Task { pid: 7, parent: 1, tid: 8, time_ns: 1_350 }, &mut folder);
        let times = away.times(&mut folder);
        assert_eq!((times[0].waiting_ns, times[0].running_ns), (300, 50));
    }
}
