//! `dyno specimen`: small programs with one planted, known defect each and the repaired twin.
//!
//! They are the oracle of diagnosis (its truth is written down) and teach what a defect looks like. The lab holds, builds
//! and measures them. Nothing is measured that is not printed or in the record.

mod planted;

use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use std::process::ExitCode;
use std::time::Duration;

use dyno_record::causal::Verdict;
use dyno_record::comparison::{Figures, Made, Record};
use dyno_record::specimen::{Side, Specimen};
use dyno_record::truth::Row;
use dyno_report::text::specimen as text;

use super::exit;
use crate::cli::specimen::{Explain, List, Run, Specimen as Args, What};
use crate::cmd::causal::Watch;
use crate::live::Place;
use dyno_lab::Failure;
use dyno_lab::specimens::catalogue;
use dyno_lab::specimens::causal::{self, RUN_NS_MIN, Wanted};
use dyno_lab::specimens::measure::END_NS_MAX;
use dyno_lab::specimens::neutral::Naming;
use dyno_lab::specimens::ready::{Ready, named};
use dyno_lab::specimens::runner::Halt;

/// Measured time of a side, all rounds together.
const SIDE_NS: u64 = 3_000_000_000;
/// How long one side runs for a profiler, when nobody says: long enough to type the profiler's command.
const ALONE_NS: u64 = 60_000_000_000;

/// Runs the verb.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let outcome = match &args.what {
        What::List(args) => return list(args),
        What::Explain(args) => return explain(args),
        What::Run(args) if args.name == planted::NAME => return planted::run(args),
        What::Run(args) => match (args.defect, args.repaired) {
            (true, _) => alone(args, Side::Defect),
            (_, true) => alone(args, Side::Repaired),
            _ if args.causal => predict(args),
            _ => compare(args),
        },
    };
    match outcome {
        Ok(code) => Ok(code),
        Err(Halt::Interrupted) => Ok(interrupted("nothing was measured yet")),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

fn list(args: &List) -> Result<ExitCode, Failure> {
    let all = catalogue::all();
    let page = match args.json {
        true => format!("{}\n", text::list_json(&all)),
        false => text::list(&all, out::terminal_width()),
    };
    out::print(&page)?;
    Ok(exit::DONE)
}

fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    if args.name == planted::NAME {
        out::print(planted::ABOUT)?;
        return Ok(exit::DONE);
    }
    let specimen = named(&args.name)?;
    let page = match args.source {
        true => text::source(&specimen),
        false => text::explain(&specimen, out::terminal_width()),
    };
    out::print(&page)?;
    Ok(exit::DONE)
}

fn ready(args: &Run) -> Result<Ready, Halt> {
    Ready::new(&args.name, if args.neutral { Naming::Neutral } else { Naming::Own })
}

fn made() -> Made {
    Made {
        started_unix_s: dyno_sys::clock::real_coarse_s(),
        command: this_run::command_line(),
        machine: machine(),
    }
}

/// Both sides, interleaved.
fn compare(args: &Run) -> Result<ExitCode, Halt> {
    let mut ready = ready(args)?;
    let side_ns = args.time.map_or(SIDE_NS, nanoseconds);
    let run_ns = (side_ns / u64::from(args.rounds)).max(RUN_NS_MIN);
    let seed = args.seed.unwrap_or_else(this_run::seed_of_the_day);
    let mut record = Record::new(&ready.specimen, made(), seed, run_ns);
    let place = Place::of_stderr();
    let mut told = |round: usize| place.rewrite(&format!("round {round} of {}", args.rounds));
    let outcome = ready.measuring().rounds(&mut record, args.rounds, &mut told);
    place.clear();
    match outcome {
        Ok(()) => judged(args, &ready.specimen, record),
        Err(Halt::Interrupted) if !record.rounds.is_empty() => {
            record.cut_short = Some("interrupted".to_owned());
            judged(args, &ready.specimen, record)?;
            Ok(interrupted("what was measured before is above"))
        }
        Err(Halt::Failed(failure)) if !record.rounds.is_empty() => {
            record.cut_short = Some(failure.what().to_owned());
            judged(args, &ready.specimen, record)?;
            Err(failure.into())
        }
        Err(halt) => Err(halt),
    }
}

/// Judges, prints, and says what the answer is.
fn judged(args: &Run, specimen: &Specimen, mut record: Record) -> Result<ExitCode, Halt> {
    record.judge();
    let page = match args.json {
        true => json(&record)?,
        false => text::comparison(specimen, &record, out::terminal_width()),
    };
    out::print(&page)?;
    Ok(if record.is_shown() == Some(true) { exit::DONE } else { ExitCode::from(exit::NO) })
}

/// What a causal profile predicts of the defect's parts, beside what shortening them brings.
fn predict(args: &Run) -> Result<ExitCode, Halt> {
    let mut ready = ready(args)?;
    let wanted = Wanted {
        budget: args.time,
        rounds: args.rounds,
        seed: args.seed.unwrap_or_else(this_run::seed_of_the_day),
        made: made(),
    };
    let mut watch = Watch::new(None);
    let (truth, ended) = causal::compare(&wanted, &mut ready, &mut |event| watch.show(event))?;
    out::print(&match args.json {
        true => json(&truth)?,
        false => text::truth(&truth, out::terminal_width()),
    })?;
    match ended {
        Err(Halt::Interrupted) => Ok(interrupted("what was measured before is above")),
        Err(failed) => Err(failed),
        Ok(()) if truth.rows.iter().any(missed) => Ok(ExitCode::from(exit::NO)),
        Ok(()) => Ok(exit::DONE),
    }
}

/// Whether a prediction that was made is wrong by more than both intervals allow.
fn missed(row: &Row) -> bool {
    let claimed = row.verdict.is_some_and(|verdict| verdict != Verdict::NotMeasurable);
    claimed && !row.biased && row.agrees == Some(false)
}

/// One side, for a profiler: its process number, then its figures.
fn alone(args: &Run, side: Side) -> Result<ExitCode, Halt> {
    let mut ready = ready(args)?;
    let ns = args.time.map_or(ALONE_NS, nanoseconds);
    let mut measuring = ready.measuring();
    let running = measuring.start(&[side.word().to_owned()], Some(ns))?;
    let line = measuring.ready(&running)?;
    let url = line.strip_prefix("ready ");
    out::print(&match args.json {
        true => text::started_json(running.pid, url),
        false => text::started(running.pid, url, &ready.specimen),
    })?;
    let (printed, code) = match ready.runner.end_of(&running, ns.saturating_add(END_NS_MAX)) {
        Ok((_, printed)) => (printed, exit::DONE),
        Err(Halt::Interrupted) => (ready.runner.stop(&running)?, ExitCode::from(exit::INTERRUPTED)),
        Err(halt) => return Err(halt),
    };
    let figures = Figures::from_output(&printed);
    let figures = figures.ok_or_else(|| running.trouble("ended without its figures"))?;
    out::print(&match args.json {
        true => json(&figures)?,
        false => text::figures(&figures, &ready.specimen),
    })?;
    Ok(code)
}

fn interrupted(what: &str) -> ExitCode {
    out::say(&format!("interrupted: {what}\n"));
    ExitCode::from(exit::INTERRUPTED)
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| Failure::error("the record cannot be written").because(&error))?;
    Ok(text + "\n")
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
