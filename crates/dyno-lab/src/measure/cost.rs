//! The server's CPU over a run: the clocks of a process, its threads and its children, read at both edges.
//!
//! The total comes from the scheduler's own clocks: those of living threads (schedstat), exact to the last switch, or of the process
//! with its ended threads, whichever says more; children that ended are in what their parents were told of them. The split
//! into user and system is sampled by the kernel's tick, so it is a share of the total and wants a run of seconds.

use std::collections::{BTreeMap, BTreeSet};

use dyno_load::Edge;
use dyno_sys::{Pid, Tid, clock, proc};

use crate::failure::Failure;

/// Clocks of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Reading {
    /// Of its living threads.
    run_ns: u64,
    /// Of all that it ever had; none where that clock cannot be read.
    process_ns: Option<u64>,
    ticks: (u64, u64),
    /// Of children that ended and were waited for, and of theirs.
    children_ticks: (u64, u64),
    tasks: BTreeSet<Tid>,
    /// Who is told when it ends.
    parent: Pid,
}

/// What the kernel counts children's time in: 1/100 s.
const TICK_NS: u64 = 10_000_000;

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
    let stat = proc::stat(pid).ok()?;
    Some(Reading {
        run_ns: proc::run_ns(pid).ok()?,
        process_ns: clock::process_cpu_ns(pid).ok(),
        ticks: (stat.user_ticks, stat.system_ticks),
        children_ticks: stat.children_ticks,
        tasks: proc::tasks(pid).into_iter().collect(),
        parent: stat.parent,
    })
}

fn cost(before: &Readings, after: &Readings, wall_ns: u64, replies: u64) -> ServerCost {
    let (mut total_ns, mut user, mut system) = (0, 0, 0);
    let mut most: (u64, Option<f64>) = (0, None);
    let mut told: BTreeMap<Pid, [u64; 2]> = BTreeMap::new();
    let nothing = Reading::default();
    for (pid, now) in after {
        // A process that was born meanwhile began at nothing.
        let then = before.get(pid).unwrap_or(&nothing);
        let of_living = now.run_ns.saturating_sub(then.run_ns);
        let began_ns = if before.contains_key(pid) { then.process_ns } else { Some(0) };
        let of_all = now.process_ns.zip(began_ns).map_or(0, |(now, then)| now.saturating_sub(then));
        let ran_ns = of_living.max(of_all);
        total_ns += ran_ns;
        user += now.ticks.0.saturating_sub(then.ticks.0);
        system += now.ticks.1.saturating_sub(then.ticks.1);
        let (now_told, then_told) = (now.children_ticks, then.children_ticks);
        told.insert(*pid, [now_told.0.saturating_sub(then_told.0), now_told.1.saturating_sub(then_told.1)]);
        if ran_ns > most.0 {
            // Ended threads ran beside it; the process's own clock may be a tick ahead.
            let alone = now.tasks.len() == 1 && of_all <= of_living + TICK_NS && wall_ns > 0;
            most = (ran_ns, alone.then(|| (ran_ns as f64 / wall_ns as f64).min(1.0)));
        }
    }
    let untold = before.iter().filter(|(pid, _)| !after.contains_key(pid)).filter(|(_, gone)| {
        // Its parent was told of its whole life, of which this part was before.
        let lived = [gone.ticks.0 + gone.children_ticks.0, gone.ticks.1 + gone.children_ticks.1];
        let of_parent = heir(gone.parent, before, after).and_then(|parent| told.get_mut(&parent));
        let Some(sums) = of_parent.filter(|sums| sums[0] + sums[1] >= lived[0] + lived[1]) else {
            return true;
        };
        let over = lived[0].saturating_sub(sums[0]);
        *sums = [sums[0].saturating_sub(lived[0]), sums[1].saturating_sub(lived[1] + over)];
        false
    });
    let untold = untold.count();
    let [told_user, told_system] =
        told.values().fold([0, 0], |[user, system], one| [user + one[0], system + one[1]]);
    let of_children_ns = (told_user + told_system) * TICK_NS;
    ServerCost {
        total_us: (replies > 0).then(|| (total_ns + of_children_ns) as f64 / 1e3 / replies as f64),
        user_share: (user + system + told_user + told_system > 0)
            .then(|| (user + told_user) as f64 / (user + system + told_user + told_system) as f64),
        // Of children that came and went nobody knows how many ran at a time.
        busiest: most.1.filter(|_| of_children_ns <= most.0),
        warning: (untold > 0).then(|| ended(untold)),
    }
}

/// Who was told of what a process burnt that its parent had been told: the nearest of its forebears that lives.
fn heir(mut parent: Pid, before: &Readings, after: &Readings) -> Option<Pid> {
    while !after.contains_key(&parent) {
        parent = before.get(&parent)?.parent;
    }
    Some(parent)
}

/// The clock of a process that ended went with it.
fn ended(gone: usize) -> String {
    let noun = if gone == 1 { "process" } else { "processes" };
    format!("{gone} {noun} of the server ended meanwhile: what they burnt is not in its CPU")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn process(run_ns: u64, ticks: (u64, u64), tasks: &[Tid]) -> Reading {
        let tasks = tasks.iter().copied().collect();
        Reading { run_ns, process_ns: Some(run_ns), ticks, children_ticks: (0, 0), tasks, parent: 1 }
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

    /// A thread for each request: none of them is alive at either edge. Planted fault: living threads alone are asked.
    #[test]
    fn threads_that_came_and_went_are_in_it() {
        let before = Readings::from([(1, process(9_000, (0, 0), &[1, 5]))]);
        let now = Reading { process_ns: Some(50_009_000), ..process(4_000, (0, 0), &[1]) };
        let cost = cost(&before, &Readings::from([(1, now)]), 30_000_000, 5);
        assert_eq!((cost.total_us, cost.user_share, cost.warning), (Some(10_000.0), None, None));
        assert_eq!(cost.busiest, None, "nobody knows how many ran at a time");
    }

    /// A process for each request, and one of those that were there before. Planted faults: nobody asks what parents were told of them,
    /// or what the one burnt before is in it.
    #[test]
    fn children_that_ended_are_in_it_as_far_as_somebody_was_told() {
        let before =
            Readings::from([(1, process(1_000, (0, 0), &[1])), (2, process(30_000_000, (2, 1), &[2]))]);
        let with = |children_ticks| {
            Readings::from([(1, Reading { children_ticks, ..process(1_000, (0, 0), &[1]) })])
        };
        let told = cost(&before, &with((5, 3)), 1_000, 5);
        // Eight ticks less three, of which three were user's.
        assert_eq!((told.total_us, told.user_share, told.warning), (Some(10_000.0), Some(0.6), None));
        let untold = cost(&before, &with((0, 0)), 1_000, 5);
        assert_eq!(untold.total_us, Some(0.0));
        assert!(untold.warning.unwrap().starts_with("1 process of the server ended"));
        assert_eq!(told.busiest, None);
        // What another one burnt is not taken for its.
        let many = cost(&before, &with((1, 1)), 1_000, 5);
        assert_eq!(many.total_us, Some(4_000.0));
        assert!(many.warning.is_some());
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
