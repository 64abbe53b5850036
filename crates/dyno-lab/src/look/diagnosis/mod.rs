//! Watching a process for a diagnosis.
//!
//! Three windows one after another, so that no way of watching disturbs another's figures: counters alone, then where CPU
//! time goes, then what threads wait for. The rules are `dyno_diagnose`'s; nothing here judges.

mod counters;
mod hot;
mod load;
mod looks;
mod mapped;
mod profiles;
mod queues;
mod sending;
mod sweep;
mod turns;
mod wanted;

use std::sync::atomic::Ordering;

use dyno_diagnose::diagnose;
use dyno_load::run::{self, LoadPlan};
use dyno_load::{Beside, OpenError};
use dyno_profile::user_level;
use dyno_record::diagnosis::{Card, Diagnosis, Resources, Tail};
use dyno_record::observation::{Goroutines, Observation, Part, Way};
use dyno_record::profile::{Profile, Target};
use dyno_sys::clock::mono_ns;
use dyno_sys::{Pid, child, connections, proc};

use crate::failure::Failure;
use counters::{Counters, not_looked};
use looks::rest;
use sending::Connected;
use wanted::QUIET_SHARE;

pub use counters::cpus_of;
pub use wanted::{Stage, Sweep, Wanted};

/// Why tasks of a run-time are not seen to wait, unless it is Go's.
const WITHOUT_THREADS: &str = "they wait without a thread, so the kernel does not know: locks and pools among them show only in \
                               CPUs that are free";

/// Why what is asked and answered over UDP is not seen.
const OVER_UDP: &str = "the kernel keeps no turns of datagrams: a limit of how many are asked at a time shows only in CPUs that are \
                        free";

/// Watches as long as asked, and fills the parts of the record that only this moment knows: what became of the target, and
/// the law of its load.
///
/// # Errors
/// When the load could not be opened.
pub fn watch(wanted: &Wanted<'_>, record: &mut Diagnosis) -> Result<Observation, OpenError> {
    let (mut seen, after) = match wanted.load {
        Some(plan) => watch_under(plan, wanted)?,
        None => {
            let Watched { seen, after, .. } = windows(wanted, None);
            (seen, after)
        }
    };
    record.duration_s = watched(&seen);
    note_endings(record, &after, wanted);
    if let Some(plan) = wanted.load.filter(|_| wanted.sweep == Sweep::Connections) {
        (wanted.on_stage)(Stage { what: "loading it by 1, 2, 4 … connections", left: None });
        match sweep::sweep(plan, wanted.stop) {
            Ok(usl) => record.card.scalability = Some(usl),
            Err(why) => not_looked(&mut seen.not_looked_at, "scalability", &why),
        }
    }
    let is_user_only = |profile: &Profile| profile.sampling.event.ends_with(":u");
    if seen.on_cpu.as_ref().is_some_and(is_user_only) {
        record.warnings.push("time in the kernel is not seen: that needs root or CAP_PERFMON".into());
    }
    Ok(seen)
}

/// What the windows saw.
struct Watched {
    seen: Observation,
    /// The counters at the end of the first window.
    after: Counters,
    /// Answers per second in that window.
    rate: Option<f64>,
}

/// The windows while the load runs beside them, and what the load came to.
fn watch_under(plan: &LoadPlan, wanted: &Wanted<'_>) -> Result<(Observation, Counters), OpenError> {
    let look = |load: &Beside| {
        rest(load::SETTLE, wanted.stop);
        windows(wanted, Some(load))
    };
    // It ends with the last window, or with what ends that early, which is heard while connections are opened too.
    let (report, watched) = run::beside(plan, wanted.stop, &mut |_edge| {}, look)?;
    let Watched { mut seen, after, rate } = watched;
    seen.load = Some(load::in_figures(plan, &report, rate, &seen));
    Ok((seen, after))
}

/// Of the target's CPU time, what a Go program in it must use to be what the target is.
const GO_SHARE_MIN: f64 = 0.2;
/// A target that uses less, in CPUs, waits: who of its processes is at work is not to be told from that.
const AT_WORK_MIN: f64 = 0.01;

/// Whether a Go program only stands beside what does the work: a helper of an interpreter's, or an archiver of a database's.
fn is_beside(go_ran_ns: u64, cpu_ns: u64, seconds: f64) -> bool {
    let works = cpu_ns as f64 >= AT_WORK_MIN * seconds * 1e9;
    works && (go_ran_ns as f64) < GO_SHARE_MIN * cpu_ns as f64
}

/// The three windows, one after another.
fn windows(wanted: &Wanted<'_>, load: Option<&Beside>) -> Watched {
    let pid = wanted.pid;
    (wanted.on_stage)(Stage { what: "counting what it does", left: Some(wanted.duration) });
    let found = looks::Before::of(pid);
    let peers = connections::peers(&proc::tree(pid));
    let before = Counters::read(pid).with_peers(peers);
    let start_ns = mono_ns();
    let start = load.map(Beside::progress);
    let whom = (found, before.peers());
    let looked = looks::watch(pid, whom, wanted.duration.mul_f64(QUIET_SHARE), wanted.stop);
    let end = load.map(Beside::progress);
    let after = Counters::read(pid);
    let peers = connections::peers(&proc::tree(pid));
    let after = after.with_peers(peers);
    let mut seen = before.until(&after, pid);
    let asked_s = wanted.duration.as_secs_f64() * QUIET_SHARE;
    let part = |way, seen_s| Part { way, began_s: 0.0, asked_s, seen_s };
    seen.parts = vec![part(Way::Counters, seen.duration_s), part(Way::Looks, looked.seen_s)];
    if let Some(packets) = &mut seen.packets {
        let Connected { sending, queues, datagrams, asked, serving, bytes_per_s } = looked.connections;
        [packets.bytes_received_per_s, packets.bytes_sent_per_s] = bytes_per_s;
        (packets.sending, packets.queues, packets.asked, packets.serving) = (sending, queues, asked, serving);
        packets.datagrams = datagrams;
    }
    if let Some(why) = looked.unlimited {
        not_looked(&mut seen.not_looked_at, "how many connections its unix listeners let wait", why);
    }
    match looked.goroutines {
        _ if is_beside(looked.go_ran_ns, seen.process.cpu_ns, seen.duration_s) => {}
        Ok(looked) => seen.goroutines = looked,
        Err(why) => {
            // It is a Go program all the same: what its threads wait for is not what its goroutines do.
            seen.goroutines = Some(Goroutines::default());
            not_looked(&mut seen.not_looked_at, "what goroutines wait for", why);
        }
    }
    let talks_tcp =
        seen.packets.as_ref().is_some_and(|packets| packets.serving.is_some() || !packets.asked.is_empty());
    if !talks_tcp && connections::udp_sockets(&proc::tree(pid)) > 0 {
        not_looked(&mut seen.not_looked_at, "requests and answers over UDP", OVER_UDP);
    }
    for what in user_level::unseen(&proc::tree(pid)) {
        not_looked(&mut seen.not_looked_at, what, WITHOUT_THREADS);
    }
    if !after.is_empty() && !wanted.stop.load(Ordering::Relaxed) {
        profiles::add(&mut seen, wanted, load, start_ns);
    }
    let rate = end.zip(start).and_then(|(end, start)| end.rate_since(&start));
    Watched { seen, after, rate }
}

/// The three windows; putting names to addresses takes its own time between them.
fn watched(seen: &Observation) -> f64 {
    let profiles = [&seen.on_cpu, &seen.off_cpu].into_iter().flatten();
    seen.duration_s + profiles.map(|profile| profile.duration_s).sum::<f64>()
}

/// A process that can be watched: there, alive, and somebody else.
///
/// # Errors
/// When it is not.
pub fn can_be_watched(pid: Pid) -> Result<(), Failure> {
    if pid == child::this() {
        return Err(Failure::usage(format!("process {pid} is this dyno itself"))
            .likely("what it would see is its own watching")
            .try_this("dyno diagnose PID of a server"));
    }
    match proc::state(pid) {
        Err(_) => Err(Failure::error(format!("there is no process {pid}"))
            .likely("it has ended, or was started anew")
            .try_this("pgrep -a NAME")),
        Ok(_) if proc::has_ended(pid) => {
            Err(Failure::error(format!("process {pid} has ended: it is a zombie"))
                .likely("its parent has not waited for it yet")
                .try_this(format!("ps -o ppid= -p {pid}")))
        }
        Ok(_) => Ok(()),
    }
}

/// The process that a thread belongs to; a process's own number stands for itself.
#[must_use]
pub fn process_of(pid: Pid) -> Pid {
    proc::process_of(pid).unwrap_or(pid)
}

/// The process as records name it.
#[must_use]
pub fn target(pid: Pid) -> Target {
    Target {
        pid: Some(pid.cast_unsigned()),
        name: proc::name(pid).unwrap_or_default(),
        argv: proc::command_line(pid).unwrap_or_default(),
        scope: "process".into(),
        also: Vec::new(),
    }
}

fn note_endings(record: &mut Diagnosis, after: &Counters, wanted: &Wanted<'_>) {
    let pid = wanted.pid;
    if after.is_empty() || has_ended(pid) {
        record.cut_short = Some(format!("process {pid} ended while it was watched"));
    } else if wanted.stop.load(Ordering::Relaxed) {
        let asked = wanted.duration.as_secs_f64();
        record.cut_short = Some(format!("Ctrl-C after {:.1} of {asked:.0} s", record.duration_s));
    }
}

/// It is gone, or a zombie, and so are its descendants.
fn has_ended(pid: Pid) -> bool {
    proc::tree(pid).into_iter().all(proc::has_ended)
}

/// Fills in the card, what is wrong, and what is not.
pub fn judge(record: &mut Diagnosis, seen: &Observation) {
    let said = diagnose(seen);
    let card = card(seen);
    record.card = Card { scalability: record.card.scalability.take(), ..card };
    record.findings = said.findings;
    record.notes = said.notes;
    if !record.is_of_dyno_serve() {
        // A rung turns a dial of our own server: for any other the sentence is the advice.
        let all = record.findings.iter_mut().chain(&mut record.notes);
        all.flat_map(|finding| &mut finding.next).for_each(|next| next.rung = None);
    }
    record.ruled_out = said.ruled_out;
    record.nearest = said.nearest;
    record.works_in = said.works_in;
    record.not_looked_at = said.not_looked_at;
    record.duration_s = watched(seen);
    record.parts.clone_from(&seen.parts);
}

/// The four metrics, but for scalability.
fn card(seen: &Observation) -> Card {
    let requests = seen.requests();
    let count = requests.unwrap_or(seen.duration_s.max(1e-9));
    let process = &seen.process;
    Card {
        requests_per_second: seen.load.as_ref().map(|load| load.replies_per_s),
        latency_us: seen
            .load
            .as_ref()
            .map(|load| Tail { p50: load.p50_ns as f64 / 1e3, p99: load.p99_ns as f64 / 1e3 }),
        cpus_used: seen.cpus_used(),
        cpus: seen.host.cpus,
        per: if requests.is_some() { "request".into() } else { "second".into() },
        resources: Resources {
            cpu_us: process.cpu_ns as f64 / 1e3 / count,
            system_calls: system_calls(seen),
            switches: (process.voluntary + process.involuntary) as f64 / count,
            faults: (process.minor_faults + process.major_faults) as f64 / count,
            wire_bytes: seen.load.as_ref().map(|load| load.wire_bytes as f64 / load.replies.max(1) as f64),
            connections: seen.load.as_ref().map(|load| load.reconnects as f64 / load.replies.max(1) as f64),
        },
        scalability: None,
    }
}

/// System calls per request or second; they are counted while waits are watched, and so are the requests of then.
fn system_calls(seen: &Observation) -> Option<f64> {
    let profile = seen.off_cpu.as_ref().filter(|profile| !profile.system_calls.is_empty())?;
    let calls: u64 = profile.system_calls.values().map(|call| call.count).sum();
    let per_s = calls as f64 / profile.duration_s.max(1e-9);
    let then = profile.requests.as_ref().map(|requests| requests.count as f64 / profile.duration_s.max(1e-9));
    let rate = then.or(seen.load.as_ref().map(|load| load.replies_per_s)).filter(|rate| *rate > 0.0);
    Some(per_s / rate.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::observation::{Load, ProcessCost};

    /// A bundler's helper beside a server of Node; a Go server whose goroutines all wait. Planted faults: any Go program makes the target
    /// one; one that waits is beside what its wrapper does.
    #[test]
    fn a_go_program_beside_what_does_the_work_makes_no_go_program_of_it() {
        let beside = |go_ms: u64, all_ms: u64| is_beside(go_ms * 1_000_000, all_ms * 1_000_000, 2.0);
        assert_eq!([beside(5, 1_500), beside(900, 1_500), beside(0, 10)], [true, false, false]);
    }

    #[test]
    fn who_cannot_be_watched_is_refused_in_three_lines() {
        for pid in [child::this(), i32::MAX - 1] {
            let lines = can_be_watched(pid).unwrap_err().lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
        assert!(can_be_watched(1).is_ok());
    }

    #[test]
    fn a_zombie_is_not_taken_for_a_process() {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id().cast_signed();
        let until_ns = mono_ns() + 10_000_000_000;
        while proc::state(pid).unwrap() != 'Z' {
            assert!(mono_ns() < until_ns, "it never ended");
            std::thread::yield_now();
        }
        assert!(can_be_watched(pid).unwrap_err().lines().contains("zombie"));
        assert!(has_ended(pid) && !has_ended(child::this()));
        ended.wait().unwrap();
    }

    #[test]
    fn figures_are_per_request_under_load_and_per_second_without() {
        let mut seen = Observation {
            duration_s: 2.0,
            process: ProcessCost { cpu_ns: 2_000_000, ..ProcessCost::default() },
            ..Observation::default()
        };
        assert_eq!((card(&seen).resources.cpu_us, card(&seen).per.as_str()), (1_000.0, "second"));
        seen.load =
            Some(Load { replies: 2_000, replies_per_s: 1_000.0, wire_bytes: 4_000, ..Load::default() });
        assert_eq!((card(&seen).resources.cpu_us, card(&seen).resources.wire_bytes), (1.0, Some(2.0)));
    }
}
