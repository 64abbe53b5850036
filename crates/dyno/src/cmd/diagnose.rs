//! `dyno diagnose`: watch a process, then say what holds it back.
//!
//! The lab watches, the rules are `dyno_diagnose`'s; here are what is asked for, the files, and the exit status.

mod load;

use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use std::path::Path;
use std::process::ExitCode;

use dyno_lab::look::diagnosis::{self, Sweep, Wanted};
use dyno_lab::{Failure, file};
use dyno_record::diagnosis::Diagnosis;
use dyno_record::finding::{Class, Confidence, DIAGNOSIS_SCHEMA, Finding};
use dyno_record::observation::{OBSERVATION_SCHEMA, Observation};
use dyno_report::text::diagnosis_card;

use super::{exit, stop};
use crate::cli::{self, FailOn};
use load::Asked;

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
    diagnosis::judge(&mut record, &seen);
    out::print(&if args.json {
        json(&record)?
    } else {
        diagnosis_card(&record, out::terminal_width(), args.color.on_stdout())
    })?;
    if args.require_complete {
        complete(&record)?;
    }
    Ok(ending(&record, args.fail_on))
}

/// Every rule could look; the one about the load needs a load.
fn complete(record: &Diagnosis) -> Result<(), Failure> {
    let blind: Vec<&str> = record
        .not_looked_at
        .iter()
        .filter_map(|one| Class::named(&one.what))
        .filter(|class| *class != Class::GeneratorLimited)
        .map(Class::name)
        .collect();
    if blind.is_empty() {
        return Ok(());
    }
    Err(Failure::error(format!("{} rules could not look: {}", blind.len(), blind.join(", ")))
        .likely("a right is missing, or the kernel's help; \"not seen\" says which")
        .try_this("as root, or without --require-complete"))
}

/// Watches as long as asked, and fills the parts of the record that only this moment knows.
fn watch(args: &cli::Diagnose, record: &mut Diagnosis) -> Result<Observation, Failure> {
    let named = args.target.or(args.pid).ok_or_else(|| Failure::usage("no process is named"))?;
    let pid = diagnosis::process_of(named);
    if pid != named {
        record.warnings.push(format!("{named} is a thread of process {pid}, which is watched as a whole"));
    }
    diagnosis::can_be_watched(pid)?;
    args.output.as_deref().map_or(Ok(()), file::can_be_written)?;
    stop::listen()?;
    record.target = diagnosis::target(pid);
    let asked = args.load.as_ref().map(|words| Asked::parse(words, &diagnosis::cpus_of(pid))).transpose()?;
    let wanted = Wanted {
        pid,
        duration: args.duration,
        frequency_hz: u64::from(args.frequency),
        load: asked.as_ref().map(|asked| &asked.plan),
        sweep: if args.sweep { Sweep::Connections } else { Sweep::None },
        stop: &stop::STOP,
    };
    let seen = diagnosis::watch(&wanted, record);
    seen.map_err(|error| match &asked {
        Some(asked) => asked.not_opened(&error),
        None => Failure::error("a load failed that nobody asked for"),
    })
}

fn record() -> Diagnosis {
    Diagnosis {
        schema: DIAGNOSIS_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: dyno_sys::clock::real_coarse_s(),
        command: this_run::command_line(),
        machine: machine(),
        ..Diagnosis::default()
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
    file::write_file(path, text.as_bytes(), dyno_lab::user::caller())
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
