//! `dyno specimen`: small programs with one planted, known defect each and the repaired twin.
//!
//! They are the oracle of diagnosis (its truth is written down) and teach what a defect looks like. `catalogue` holds
//! them, `workshop` builds them, `measure` compares the sides. Nothing is measured that is not printed or in the record.

mod catalogue;
mod causal;
mod hands;
mod measure;
mod neutral;
mod workshop;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use dyno_record::causal::Verdict;
use dyno_record::comparison::{Figures, Made, Record};
use dyno_record::specimen::{Side, Specimen};
use dyno_record::truth::Row;
use dyno_report::text::specimen as text;

use super::failure::{Failure, exit};
use crate::cli::specimen::{Explain, List, Run, Specimen as Args, What};
use hands::{Halt, Hands};
use measure::{END_NS_MAX, Measuring};
use neutral::Naming;
use workshop::{Bench, Program, Workshop};

/// Measured time of a side, all rounds together.
const SIDE_NS: u64 = 3_000_000_000;
/// How long one side runs for a profiler, when nobody says: long enough to type the profiler's command.
const ALONE_NS: u64 = 60_000_000_000;
/// The shortest run that is worth starting a process for.
const RUN_NS_MIN: u64 = 20_000_000;

/// Runs the verb.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let outcome = match &args.what {
        What::List(args) => return list(args),
        What::Explain(args) => return explain(args),
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
        false => text::list(&all, super::terminal_width()),
    };
    super::print(&page)?;
    Ok(exit::DONE)
}

fn explain(args: &Explain) -> Result<ExitCode, Failure> {
    let specimen = named(&args.name)?;
    let page = match args.source {
        true => text::source(&specimen),
        false => text::explain(&specimen, super::terminal_width()),
    };
    super::print(&page)?;
    Ok(exit::DONE)
}

fn named(name: &str) -> Result<Specimen, Failure> {
    catalogue::find(name).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no specimen \"{name}\""));
        failure.likely(nearest(name)).try_this("dyno specimen list")
    })
}

/// What a wrong name was meant to be, if it begins like one.
fn nearest(name: &str) -> String {
    let start: String = name.chars().take(3).collect();
    let all = catalogue::all();
    let alike = all.iter().find(|specimen| !start.is_empty() && specimen.name.contains(&start));
    alike.map_or("its name is another one".to_owned(), |specimen| format!("{} is meant", specimen.name))
}

/// A specimen that is built, and all that it takes to run it.
struct Ready {
    specimen: Specimen,
    program: Program,
    // Before the hands: what still runs holds nothing but open files in it.
    bench: Bench,
    hands: Hands,
}

impl Ready {
    fn new(args: &Run) -> Result<Ready, Halt> {
        let specimen = named(&args.name)?;
        let mut hands = Hands::new()?;
        let workshop = Workshop::open()?;
        let naming = if args.neutral { Naming::Neutral } else { Naming::Own };
        let program = workshop.build(&specimen, naming, &mut hands)?;
        let bench = workshop.bench(&hands)?;
        Ok(Ready { specimen, program, bench, hands })
    }

    fn measuring(&mut self) -> Measuring<'_> {
        let Ready { specimen, program, bench, hands } = self;
        Measuring { specimen, program, hands, folder: bench.path() }
    }
}

/// Both sides, interleaved.
fn compare(args: &Run) -> Result<ExitCode, Halt> {
    let mut ready = Ready::new(args)?;
    let side_ns = args.time.map_or(SIDE_NS, nanoseconds);
    let run_ns = (side_ns / u64::from(args.rounds)).max(RUN_NS_MIN);
    let seed = args.seed.unwrap_or_else(super::climb::seed_of_the_day);
    let made = Made {
        started_unix_s: dyno_sys::clock::real_coarse_s(),
        command: super::command_line(),
        machine: super::machine(),
    };
    let mut record = Record::new(&ready.specimen, made, seed, run_ns);
    let terminal = std::io::stderr().is_terminal();
    let shown = |text: &str| {
        if terminal {
            super::say(&format!("\r\x1b[K{text}"));
        }
    };
    let mut told = |round: usize| shown(&format!("round {round} of {}", args.rounds));
    let outcome = ready.measuring().rounds(&mut record, args.rounds, &mut told);
    shown("");
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
        false => text::comparison(specimen, &record, super::terminal_width()),
    };
    super::print(&page)?;
    Ok(if record.is_shown() == Some(true) { exit::DONE } else { ExitCode::from(exit::NO) })
}

/// What a causal profile predicts of the defect's parts, beside what shortening them brings.
fn predict(args: &Run) -> Result<ExitCode, Halt> {
    let mut ready = Ready::new(args)?;
    let (truth, ended) = causal::compare(args, &mut ready)?;
    super::print(&match args.json {
        true => json(&truth)?,
        false => text::truth(&truth, super::terminal_width()),
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
    let mut ready = Ready::new(args)?;
    let ns = args.time.map_or(ALONE_NS, nanoseconds);
    let mut measuring = ready.measuring();
    let running = measuring.start(&[side.word().to_owned()], Some(ns))?;
    let line = measuring.ready(&running)?;
    let url = line.strip_prefix("ready ");
    super::print(&match args.json {
        true => text::started_json(running.pid, url),
        false => text::started(running.pid, url, &ready.specimen),
    })?;
    let (printed, code) = match ready.hands.end_of(&running, ns.saturating_add(END_NS_MAX)) {
        Ok((_, printed)) => (printed, exit::DONE),
        Err(Halt::Interrupted) => (ready.hands.stop(&running)?, ExitCode::from(exit::INTERRUPTED)),
        Err(halt) => return Err(halt),
    };
    let figures = Figures::from_output(&printed);
    let figures = figures.ok_or_else(|| running.trouble("ended without its figures"))?;
    super::print(&match args.json {
        true => json(&figures)?,
        false => text::figures(&figures, &ready.specimen),
    })?;
    Ok(code)
}

fn interrupted(what: &str) -> ExitCode {
    super::say(&format!("interrupted: {what}\n"));
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
