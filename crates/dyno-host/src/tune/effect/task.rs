//! Proofs of where a thread runs and how it is scheduled.
//!
//! A thread that has not run since is where it was; a place in line counts inside of its session and its group only. It only
//! reads.

use dyno_record::change::Task;
use dyno_record::tune::Effect;
use dyno_sys::affinity::CpuSet;
use dyno_sys::proc;
use dyno_sys::setting::scheduling;

use super::seen::{self, Moved, Sight};

const RAN_NS: &str = "ran ns";

/// How long it has run.
pub(super) fn moving(task: &Task) -> Moved {
    let told = seen::text(&format!("/proc/{}/schedstat", task.tid));
    Moved::default().with(RAN_NS, told.and_then(|text| proc::parse_run_ns(&text)))
}

/// The CPU that it ran on last is one of those.
pub(super) fn affinity(task: &Task, wanted: &str, sight: &Sight<'_>) -> Effect {
    let stat = (sight.text)(&format!("/proc/{}/stat", task.tid));
    let (Some(cpu), Ok(wanted)) = (stat.as_deref().and_then(last_cpu), wanted.parse::<CpuSet>()) else {
        return Effect::not_shown(
            "the thread cannot be read".to_owned(),
            format!("field 39 of /proc/{}/stat", task.tid),
        );
    };
    let ran_us = sight.moved.of(RAN_NS) / 1_000;
    match (wanted.contains(cpu), ran_us) {
        (true, _) => Effect::in_force(format!("thread {} ran on CPU {cpu} last", task.tid)),
        (false, 0) => Effect::not_shown(
            format!("thread {} has not run since: CPU {cpu} was its last one", task.tid),
            "its next turn",
        ),
        (false, us) => {
            Effect::not_in_force(format!("thread {} ran {us} µs meanwhile, on CPU {cpu}", task.tid))
        }
    }
}

/// Field 39, behind the name in brackets, which may hold anything.
fn last_cpu(stat: &str) -> Option<usize> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// Class and place in line, as the kernel has them.
pub(super) fn scheduler(task: &Task, wanted: &str, sight: &Sight<'_>) -> Effect {
    let has = match scheduling::class_of(task.tid) {
        Ok(has) => has,
        Err(error) => {
            return Effect::not_shown(format!("thread {} cannot be asked: {error}", task.tid), "chrt -p");
        }
    };
    let group = (sight.text)(&format!("/proc/{}/autogroup", task.pid));
    let is_on = sight.number("/proc/sys/kernel/sched_autogroup_enabled") == Some(1);
    let cgroup = (sight.text)(&format!("/proc/{}/cgroup", task.pid)).unwrap_or_default();
    in_line(wanted, &has, group.filter(|_| is_on && is_root_group(&cgroup)))
}

/// Sessions are told apart only in the root of the CPU controller (kernel/sched/autogroup.c).
fn is_root_group(cgroup: &str) -> bool {
    cgroup.lines().all(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_cpu = controllers.is_empty() || controllers.split(',').any(|one| one == "cpu");
        !is_cpu || path == "/"
    })
}

fn in_line(wanted: &str, class: &str, session: Option<String>) -> Effect {
    let mut words = wanted.split_whitespace();
    let asked = words.next().unwrap_or_default();
    let has_nice = words.next() == Some("nice");
    if asked != class {
        return Effect::not_in_force(format!("the kernel has it in class {class}"));
    }
    match session.filter(|_| has_nice) {
        Some(session) => Effect::not_in_force(format!(
            "the kernel shares between sessions first, and its session ({session}) is as it was: its place in line counts inside of it only"
        )),
        None => Effect::in_force(format!("the kernel has it in class {class}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    /// Planted fault: the mask is read instead of where it ran; it always agrees.
    #[test]
    fn a_thread_that_runs_elsewhere_is_told_and_one_that_sleeps_shows_nothing() {
        let force = |cpu: usize, ran: u64| {
            let stat = format!("9 (a) b) S {}{cpu} 0 0", "0 ".repeat(35));
            let text = move |_: &str| Some(stat.clone());
            let sight = Sight { text: &text, moved: Moved::default().with(RAN_NS, ran) };
            affinity(&Task { pid: 9, tid: 9, started: 0 }, "1-2", &sight).force
        };
        assert_eq!(
            [force(1, 0), force(0, 0), force(0, 9_000)],
            [Force::InForce, Force::NotShown, Force::NotInForce]
        );
    }

    /// Planted fault: the session is not looked at; then a nice value that nobody compares is in force.
    #[test]
    fn a_place_in_line_inside_of_a_session_of_its_own_is_not_in_force() {
        let session = || Some("/autogroup-12 nice 0".to_owned());
        assert_eq!(in_line("other nice 0", "other", None).force, Force::InForce);
        assert_eq!(in_line("other nice 0", "other", session()).force, Force::NotInForce);
        assert_eq!(in_line("fifo priority 10", "fifo", session()).force, Force::InForce);
        assert_eq!(in_line("fifo priority 10", "other", None).force, Force::NotInForce);
        assert!(is_root_group("0::/") && !is_root_group("0::/system.slice/x.service"));
        assert!(
            !is_root_group("4:cpu,cpuacct:/x\n0::/") && is_root_group("4:cpu,cpuacct:/\n1:name=systemd:/x")
        );
    }
}
