//! `dyno specimen`: small programs with one planted, known defect each and the repaired twin.
//!
//! They are the oracle of diagnosis (its truth is written down) and teach what a defect looks like. `catalogue` holds
//! them, `workshop` builds them, `measure` compares the sides. Nothing is measured that is not printed or in the record.

mod catalogue;
mod hands;
mod measure;
mod neutral;
mod record;
mod workshop;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use dyno_measure::record::Machine;
use dyno_sys::proc;

use super::failure::{Failure, exit};
use crate::cli::specimen::{Explain, List, Run, Specimen as Args, What};
use crate::print::specimen as text;
pub(crate) use catalogue::{Place, Specimen};
use hands::{Halt, Hands};
use measure::Measuring;
use neutral::Naming;
pub(crate) use record::{Figures, Record, Side};
use workshop::{Program, Workshop};

/// Measured time of a side, all rounds together.
const SIDE_NS: u64 = 3_000_000_000;
/// How long one side runs for a profiler, when nobody says: long enough to type the profiler's command.
const ALONE_NS: u64 = 60_000_000_000;
/// The shortest run that is worth starting a process for.
const RUN_NS_MIN: u64 = 20_000_000;

/// Runs the verb.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        What::List(args) => list(args),
        What::Explain(args) => explain(args),
        What::Run(args) => match (args.defect, args.repaired) {
            (true, _) => alone(args, Side::Defect),
            (_, true) => alone(args, Side::Repaired),
            _ => compare(args),
        },
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

/// Both sides, interleaved.
fn compare(args: &Run) -> Result<ExitCode, Failure> {
    let specimen = named(&args.name)?;
    let mut hands = Hands::new()?;
    let workshop = Workshop::open()?;
    let program = match built(&workshop, &specimen, args, &mut hands) {
        Err(Halt::Interrupted) => return Ok(interrupted("nothing was measured yet")),
        built => built.map_err(failure_of)?,
    };
    let bench = workshop.bench()?;
    let side_ns = args.time.map_or(SIDE_NS, nanoseconds);
    let run_ns = (side_ns / u64::from(args.rounds)).max(RUN_NS_MIN);
    let seed = args.seed.unwrap_or_else(super::climb::seed_of_the_day);
    let mut record = Record::new(&specimen, machine(), seed, run_ns);
    let mut measuring =
        Measuring { specimen: &specimen, program: &program, hands: &mut hands, folder: bench.path() };
    let progress = std::io::stderr().is_terminal();
    let mut told = |round: usize| {
        if progress {
            super::say(&format!("\r\x1b[Kround {round} of {}", args.rounds));
        }
    };
    let outcome = measuring.rounds(&mut record, args.rounds, &mut told);
    if progress {
        super::say("\r\x1b[K");
    }
    ended(args, &specimen, record, outcome)
}

/// Judges, prints, and says how the verb ends.
fn ended(
    args: &Run,
    specimen: &Specimen,
    mut record: Record,
    outcome: Result<(), Halt>,
) -> Result<ExitCode, Failure> {
    let interrupted_too = match outcome {
        Err(Halt::Failed(failure)) => return Err(failure),
        Err(Halt::Interrupted) => {
            record.cut_short = Some("interrupted".to_owned());
            true
        }
        Ok(()) => false,
    };
    record.judge();
    let page = match args.json {
        true => json(&record)?,
        false => text::comparison(specimen, &record, super::terminal_width()),
    };
    super::print(&page)?;
    match record.is_shown() {
        _ if interrupted_too => Ok(interrupted("what was measured before is above")),
        Some(true) => Ok(exit::DONE),
        _ => Ok(ExitCode::from(exit::NO)),
    }
}

/// One side, for a profiler: its process number, then its figures.
fn alone(args: &Run, side: Side) -> Result<ExitCode, Failure> {
    let specimen = named(&args.name)?;
    let mut hands = Hands::new()?;
    let workshop = Workshop::open()?;
    let program = match built(&workshop, &specimen, args, &mut hands) {
        Err(Halt::Interrupted) => return Ok(interrupted("nothing ran yet")),
        built => built.map_err(failure_of)?,
    };
    let bench = workshop.bench()?;
    let mut measuring =
        Measuring { specimen: &specimen, program: &program, hands: &mut hands, folder: bench.path() };
    let ns = args.time.map_or(ALONE_NS, nanoseconds);
    let running = measuring.start(side.word(), Some(ns))?;
    let ready = match measuring.ready(&running) {
        Err(Halt::Interrupted) => return Ok(interrupted("it was not ready yet")),
        ready => ready.map_err(failure_of)?,
    };
    let url = ready.strip_prefix("ready ");
    super::print(&match args.json {
        true => text::started_json(running.pid, url),
        false => text::started(running.pid, url, &specimen),
    })?;
    let (printed, code) = match hands.end_of(&running, ns.saturating_mul(2)) {
        Ok((_, printed)) => (printed, exit::DONE),
        Err(Halt::Interrupted) => (hands.stop(&running)?, ExitCode::from(exit::INTERRUPTED)),
        Err(Halt::Failed(failure)) => return Err(failure),
    };
    let figures =
        Figures::from_output(&printed).ok_or_else(|| running.trouble("ended without its figures"))?;
    super::print(&match args.json {
        true => json(&figures)?,
        false => text::figures(&figures, &specimen),
    })?;
    Ok(code)
}

fn built(workshop: &Workshop, specimen: &Specimen, args: &Run, hands: &mut Hands) -> Result<Program, Halt> {
    let naming = if args.neutral { Naming::Neutral } else { Naming::Own };
    workshop.build(specimen, naming, hands)
}

fn failure_of(halt: Halt) -> Failure {
    match halt {
        Halt::Failed(failure) => failure,
        Halt::Interrupted => Failure::error("interrupted"),
    }
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

fn machine() -> Machine {
    let machine = proc::machine();
    Machine {
        cpus: machine.cpus.len(),
        model: machine.model,
        virtual_machine: machine.vm.is_some(),
        kernel: machine.kernel,
        memory_bytes: machine.memory_bytes,
        root: super::is_root(),
        ..Machine::default()
    }
}
