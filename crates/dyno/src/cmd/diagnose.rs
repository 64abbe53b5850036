//! `dyno diagnose`: watch a process, then say what holds it back.
//!
//! Three windows one after another, so that no way of watching disturbs another's figures: counters alone, then where CPU
//! time goes, then what threads wait for. The rules are `dyno_diagnose`'s; nothing here judges.

mod counters;
mod hot;
mod load;
mod profiles;
mod sweep;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use dyno_diagnose::diagnose;
use dyno_record::diagnosis::{Card, Diagnosis, Resources, Tail};
use dyno_record::finding::{Confidence, DIAGNOSIS_SCHEMA, Finding};
use dyno_record::observation::{OBSERVATION_SCHEMA, Observation};
use dyno_record::profile::{Profile, Target};
use dyno_sys::clock::mono_ns;
use dyno_sys::{Pid, child, proc};

use super::failure::{Failure, exit};
use super::{file, stop};
use crate::cli::{self, FailOn};
use counters::{Counters, not_looked};
use dyno_report::text::diagnosis_card;
use load::Asked;

/// Shares of the time: counters alone, on the CPU; the rest is for waits.
const QUIET_SHARE: f64 = 0.25;
const ON_CPU_SHARE: f64 = 0.45;
/// Between two looks at the clock and the stop flag.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the verb.
pub(crate) fn run(args: &cli::Diagnose) -> Result<ExitCode, Failure> {
    let mut record = record();
    let seen = match &args.from {
        Some(path) => again(path)?,
        None => watch(args, &mut record)?,
    };
    if let Some(path) = &args.output {
        write(path, &seen)?;
    }
    judge(&mut record, &seen);
    super::print(&if args.json {
        json(&record)?
    } else {
        diagnosis_card(&record, super::terminal_width(), args.color.on_stdout())
    })?;
    Ok(ending(&record, args.fail_on))
}

fn record() -> Diagnosis {
    Diagnosis {
        schema: DIAGNOSIS_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: dyno_sys::clock::real_coarse_s(),
        command: super::command_line(),
        machine: super::machine(),
        ..Diagnosis::default()
    }
}

/// Watches as long as asked, and fills the parts of the record that only this moment knows.
fn watch(args: &cli::Diagnose, record: &mut Diagnosis) -> Result<Observation, Failure> {
    let pid = args.target.or(args.pid).ok_or_else(|| Failure::usage("no process is named"))?;
    can_be_watched(pid)?;
    args.output.as_deref().map_or(Ok(()), file::can_be_written)?;
    stop::listen()?;
    record.target = target(pid);
    let asked = args.load.as_ref().map(|words| Asked::parse(words, &counters::cpus_of(pid))).transpose()?;
    let running = asked.as_ref().map(Asked::start).transpose()?;
    let before = Counters::read(pid);
    let start_ns = mono_ns();
    rest(args.duration.mul_f64(QUIET_SHARE));
    let after = Counters::read(pid);
    let mut seen = before.until(&after, pid);
    let rate = running.as_ref().and_then(|running| running.rate(start_ns, mono_ns()));
    if !after.is_empty() && !stop::asked() {
        profiles::add(&mut seen, pid, args, running.as_ref(), &stop::STOP);
    }
    if let (Some(running), Some(asked)) = (running, &asked) {
        seen.load = Some(running.finish(asked, rate, &seen)?);
    }
    record.duration_s = watched(&seen);
    tell_endings(record, &after, pid, args);
    if let Some(asked) = asked.filter(|_| args.sweep) {
        match sweep::sweep(&asked, &stop::STOP) {
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

/// The three windows; putting names to addresses takes its own time between them.
fn watched(seen: &Observation) -> f64 {
    let profiles = [&seen.on_cpu, &seen.off_cpu].into_iter().flatten();
    seen.duration_s + profiles.map(|profile| profile.duration_s).sum::<f64>()
}

/// A process that can be watched: there, alive, and somebody else.
fn can_be_watched(pid: Pid) -> Result<(), Failure> {
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

fn target(pid: Pid) -> Target {
    Target {
        pid: Some(pid.cast_unsigned()),
        name: proc::name(pid).unwrap_or_default(),
        argv: proc::command_line(pid).unwrap_or_default(),
        scope: "process".into(),
    }
}

fn tell_endings(record: &mut Diagnosis, after: &Counters, pid: Pid, args: &cli::Diagnose) {
    if after.is_empty() || has_ended(pid) {
        record.cut_short = Some(format!("process {pid} ended while it was watched"));
    } else if stop::asked() {
        let asked = args.duration.as_secs_f64();
        record.cut_short = Some(format!("Ctrl-C after {:.1} of {asked:.0} s", record.duration_s));
    }
}

/// It is gone, or a zombie, and so are its descendants.
fn has_ended(pid: Pid) -> bool {
    proc::tree(pid).into_iter().all(proc::has_ended)
}

/// Sleeps as long as asked, or until told to stop.
fn rest(time: Duration) {
    let end_ns = mono_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    while mono_ns() < end_ns && !stop::asked() {
        std::thread::sleep(LOOK.min(time));
    }
}

/// An observation that `-o` wrote.
fn again(path: &Path) -> Result<Observation, Failure> {
    let text = String::from_utf8_lossy(&file::read(path)?).into_owned();
    let failure = || {
        Failure::error(format!("{} is no observation", path.display()))
            .likely("it was not written by dyno diagnose -o")
            .try_this("dyno diagnose PID -o FILE")
    };
    let seen: Observation = serde_json::from_str(&text).map_err(|error| failure().because(&error))?;
    if seen.schema != OBSERVATION_SCHEMA {
        return Err(failure());
    }
    for profile in [&seen.on_cpu, &seen.off_cpu].into_iter().flatten() {
        profile.check().map_err(|error| failure().because(&error))?;
    }
    Ok(seen)
}

fn write(path: &Path, seen: &Observation) -> Result<(), Failure> {
    let text = serde_json::to_string(seen);
    let text =
        text.map_err(|error| Failure::error("what was seen cannot be written as JSON").because(&error))?;
    file::write_file(path, text.as_bytes(), super::scratch::caller())
}

fn judge(record: &mut Diagnosis, seen: &Observation) {
    let said = diagnose(seen);
    let card = card(seen);
    record.card = Card { scalability: record.card.scalability.take(), ..card };
    record.findings = said.findings;
    record.notes = said.notes;
    record.ruled_out = said.ruled_out;
    record.not_looked_at = said.not_looked_at;
    record.duration_s = watched(seen);
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

fn json(record: &Diagnosis) -> Result<String, Failure> {
    let text = serde_json::to_string(record);
    let text =
        text.map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))?;
    Ok(text + "\n")
}

fn ending(record: &Diagnosis, fail_on: FailOn) -> ExitCode {
    if stop::asked() {
        return ExitCode::from(exit::INTERRUPTED);
    }
    let least = match fail_on {
        FailOn::Low => Confidence::Low,
        FailOn::Medium => Confidence::Medium,
        FailOn::High => Confidence::High,
        FailOn::Never => return exit::DONE,
    };
    let counts = |finding: &Finding| finding.confidence >= least;
    if record.findings.iter().any(counts) { ExitCode::from(exit::NO) } else { exit::DONE }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::observation::{Load, ProcessCost};

    #[test]
    fn who_cannot_be_watched_is_told_in_three_lines() {
        for pid in [child::this(), i32::MAX - 1] {
            let lines = can_be_watched(pid).unwrap_err().lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
        assert!(can_be_watched(1).is_ok());
    }

    #[test]
    fn a_zombie_is_told_from_a_process() {
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
