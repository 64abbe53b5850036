//! The server's CPU over a run: the clocks of a process, its threads and its children, read at both edges.
//!
//! The total comes from the scheduler's own clock (schedstat), exact to the last switch. The split into user and system
//! is sampled by the kernel's tick, so it is a share of the total and wants a run of seconds.

use std::collections::{BTreeMap, BTreeSet};

use dyno_load::Edge;
use dyno_sys::{Pid, Tid, proc};

use crate::failure::Failure;

/// Clocks of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Reading {
    run_ns: u64,
    ticks: (u64, u64),
    tasks: BTreeSet<Tid>,
}

type Readings = BTreeMap<Pid, Reading>;

/// The clocks of a server.
pub struct ServerClock {
    pid: Pid,
    before: Readings,
    after: Readings,
}

/// What the server burnt.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCost {
    /// CPU per right answer in µs; `None` without answers.
    pub total_us: Option<f64>,
    /// Share of it in user code, sampled; `None` when no tick hit the server.
    pub user_share: Option<f64>,
    /// Share of the wall that its busiest thread ran; `None` where several threads share the busiest process's clock.
    pub busiest: Option<f64>,
    /// What makes the figures less than the truth.
    pub warning: Option<String>,
}

impl ServerClock {
    /// The clocks of a process and its children.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn new(pid: Pid) -> Result<ServerClock, Failure> {
        if proc::tree(pid).is_empty() {
            let failure = Failure::error(format!("there is no process {pid}"));
            return Err(failure
                .likely("the server has ended, or was started anew")
                .try_this("pgrep -a NAME"));
        }
        Ok(ServerClock { pid, before: Readings::new(), after: Readings::new() })
    }

    /// Reads all clocks of the tree as it is now.
    pub fn read(&mut self, edge: Edge) {
        let readings =
            proc::tree(self.pid).into_iter().filter_map(|pid| Some((pid, reading(pid)?))).collect();
        match edge {
            Edge::SettleEnd => self.before = readings,
            Edge::End => self.after = readings,
        }
    }

    /// What lies between the readings; `None` when the server was gone at the end. `wall_ns` is the time in which requests
    /// were sent: in the wait for the last answers, which the readings hold too, a server has next to nothing to do.
    pub fn cost(self, wall_ns: u64, replies: u64) -> Option<ServerCost> {
        (!self.after.is_empty()).then(|| cost(&self.before, &self.after, wall_ns, replies))
    }
}

fn reading(pid: Pid) -> Option<Reading> {
    let tasks = proc::tasks(pid).into_iter().collect();
    Some(Reading { run_ns: proc::run_ns(pid).ok()?, ticks: proc::user_system_ticks(pid).ok()?, tasks })
}

fn cost(before: &Readings, after: &Readings, wall_ns: u64, replies: u64) -> ServerCost {
    let (mut total_ns, mut user, mut system) = (0, 0, 0);
    let mut most: (u64, Option<f64>) = (0, None);
    let nothing = Reading::default();
    for (pid, now) in after {
        // A process that was born meanwhile began at nothing.
        let then = before.get(pid).unwrap_or(&nothing);
        let ran_ns = now.run_ns.saturating_sub(then.run_ns);
        total_ns += ran_ns;
        user += now.ticks.0.saturating_sub(then.ticks.0);
        system += now.ticks.1.saturating_sub(then.ticks.1);
        if ran_ns > most.0 {
            let alone = now.tasks.len() == 1 && wall_ns > 0;
            most = (ran_ns, alone.then(|| (ran_ns as f64 / wall_ns as f64).min(1.0)));
        }
    }
    ServerCost {
        total_us: (replies > 0).then(|| total_ns as f64 / 1e3 / replies as f64),
        user_share: (user + system > 0).then(|| user as f64 / (user + system) as f64),
        busiest: most.1,
        warning: ended(before, after),
    }
}

/// The clock of a thread that ended went with it.
fn ended(before: &Readings, after: &Readings) -> Option<String> {
    let of = |readings: &Readings| -> BTreeSet<Tid> {
        readings.values().flat_map(|reading| reading.tasks.iter().copied()).collect()
    };
    let gone = of(before).difference(&of(after)).count();
    let noun = if gone == 1 { "thread" } else { "threads" };
    (gone > 0)
        .then(|| format!("{gone} {noun} of the server ended meanwhile: what they burnt is not in its CPU"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn process(run_ns: u64, ticks: (u64, u64), tasks: &[Tid]) -> Reading {
        Reading { run_ns, ticks, tasks: tasks.iter().copied().collect() }
    }

    #[test]
    fn children_are_in_it_and_what_was_burnt_before_is_not() {
        let before =
            Readings::from([(1, process(5_000, (1, 1), &[1])), (2, process(9_000_000, (9, 9), &[2]))]);
        let after =
            Readings::from([(1, process(5_000, (1, 1), &[1])), (2, process(10_000_000, (10, 12), &[2]))]);
        let cost = cost(&before, &after, 2_000_000, 100);
        assert_eq!((cost.total_us, cost.user_share, cost.busiest), (Some(10.0), Some(0.25), Some(0.5)));
        assert_eq!(cost.warning, None);
    }

    #[test]
    fn a_thread_that_ended_is_a_warning_and_makes_no_negative_time() {
        let before = Readings::from([(1, process(9_000, (0, 0), &[1, 5]))]);
        let after = Readings::from([(1, process(4_000, (0, 0), &[1]))]);
        let cost = cost(&before, &after, 1_000, 1);
        assert_eq!((cost.total_us, cost.user_share), (Some(0.0), None));
        assert!(cost.warning.unwrap().starts_with("1 thread of the server ended"));
    }

    #[test]
    fn nothing_is_said_of_the_busiest_where_threads_share_a_clock() {
        let after = Readings::from([(1, process(10, (0, 0), &[1])), (2, process(4_000, (0, 0), &[2, 3]))]);
        assert_eq!(
            cost(&Readings::new(), &after, 1_000, 0).busiest,
            None,
            "the first one is only its parent"
        );
    }

    /// A process of one thread that does nothing but run: tests of this one end their threads as they like.
    #[test]
    fn a_process_has_a_clock_and_a_gone_one_is_named() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = busy.id().cast_signed();
        let mut clock = ServerClock::new(pid).unwrap();
        clock.read(Edge::SettleEnd);
        let until_ns = dyno_sys::clock::mono_ns() + 10_000_000_000;
        let start_ns = proc::run_ns(pid).unwrap();
        while proc::run_ns(pid).unwrap() < start_ns + 20_000_000 {
            assert!(dyno_sys::clock::mono_ns() < until_ns, "no CPU time was counted in 10 s");
        }
        clock.read(Edge::End);
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(clock.cost(1_000_000_000, 1).unwrap().total_us.unwrap() > 0.0);
        let lines = ServerClock::new(i32::MAX - 1).err().unwrap().lines();
        assert!(lines.contains("there is no process"), "{lines}");
    }
}
