//! `dyno diagnose`: watch a process, then say what holds it back.
//!
//! The lab watches, the rules are `dyno_diagnose`'s; here are what is asked for, the files, and the exit status.

mod load;

use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use std::path::Path;
use std::process::ExitCode;

use dyno_lab::look::diagnosis::{self, Stage, Sweep, Wanted};
use dyno_lab::{Failure, file};
use dyno_record::condition::Held;
use dyno_record::diagnosis::Diagnosis;
use dyno_record::finding::{Class, Confidence, DIAGNOSIS_SCHEMA, Finding};
use dyno_record::observation::{OBSERVATION_SCHEMA, Observation};
use dyno_record::profile::Profile;
use dyno_record::sheet::of_diagnosis;
use dyno_report::export::{self, Subject};
use dyno_report::text::diagnosis_card;

use super::{exit, gate, recording, stop};
use crate::cli::{self, FailOn, Format};
use crate::live::Live;
use load::Asked;

/// Runs the verb.
pub(crate) fn run(args: &cli::Diagnose) -> Result<ExitCode, Failure> {
    let conditions = gate::Conditions::read(&args.gate)?;
    let mut record = Diagnosis {
        schema: DIAGNOSIS_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..Diagnosis::default()
    };
    if let (Some(from), Some(html)) = (&args.from, &args.html) {
        file::not_over(&[from], html)?;
    }
    let seen = match &args.from {
        Some(path) => again(path, &mut record)?,
        None => watch(args, &mut record)?,
    };
    if let Some(path) = &args.output {
        write(path, &seen)?;
    }
    diagnosis::judge(&mut record, &seen);
    let held = conditions.hold(&of_diagnosis(&record))?;
    show(args, &record, &seen, &held)?;
    let met = gate::told(&held);
    if args.require_complete {
        complete(&record)?;
    }
    Ok(ending(&record, args.fail_on, met))
}

/// The page where one was asked for; the card, or the record.
fn show(args: &cli::Diagnose, record: &Diagnosis, seen: &Observation, held: &[Held]) -> Result<(), Failure> {
    if let Some(path) = &args.html {
        let profiles: Vec<&Profile> = [&seen.on_cpu, &seen.off_cpu].into_iter().flatten().collect();
        let page = dyno_report::page::diagnosis::render(record, &profiles);
        if path.as_os_str() == "-" {
            return out::print(&page);
        }
        file::write_file(path, page.as_bytes(), dyno_lab::user::caller())?;
    }
    let format = args.format.wanted(cli::Json::of(args.json));
    out::print(&match format.exporter() {
        Some(exporter) => export::write(exporter, Subject::Diagnosis(record, least(args.fail_on)), held),
        None if format == Format::Json => json(record)?,
        None => diagnosis_card(record, out::terminal_width(), args.color.on_stdout()),
    })
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
        .likely("a right is missing, or the kernel's help, or what the program shows of itself; \"not seen\" says which")
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
    let files = [&args.output, &args.html].into_iter().flatten();
    files.filter(|path| path.as_os_str() != "-").try_for_each(|path| file::can_be_written(path))?;
    stop::listen()?;
    (record.started_unix_s, record.machine) = (dyno_sys::clock::real_coarse_s(), machine());
    record.command = this_run::command_line();
    record.target = diagnosis::target(pid);
    let asked = args
        .load
        .as_ref()
        .map(|words| Asked::parse(words, &diagnosis::cpus_of(pid), args.duration))
        .transpose()?;
    let who = recording::called(pid);
    let live = Live::start(&who, Some(args.duration), "putting names to what was seen", &stop::STOP);
    let wanted = Wanted {
        pid,
        duration: args.duration,
        frequency_hz: u64::from(args.frequency),
        load: asked.as_ref().map(|asked| &asked.plan),
        sweep: if args.sweep { Sweep::Connections } else { Sweep::None },
        stop: &stop::STOP,
        on_stage: &|stage: Stage| live.now(&format!("{who}: {}", stage.what), stage.left),
    };
    let seen = diagnosis::watch(&wanted, record);
    drop(live);
    seen.map_err(|error| match &asked {
        Some(asked) => asked.not_opened(&error),
        None => Failure::error("a load failed that nobody asked for"),
    })
}

/// An observation that `-o` wrote. Its profiles know of whom it is, when and where.
fn again(path: &Path, record: &mut Diagnosis) -> Result<Observation, Failure> {
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
    if let Some(profile) = seen.on_cpu.as_ref().or(seen.off_cpu.as_ref()) {
        record.target = profile.target.clone();
        (record.started_unix_s, record.machine) = (profile.started_unix_s, profile.machine.clone());
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

/// The confidence from which a finding is a failure.
fn least(fail_on: FailOn) -> Option<Confidence> {
    match fail_on {
        FailOn::Low => Some(Confidence::Low),
        FailOn::Medium => Some(Confidence::Medium),
        FailOn::High => Some(Confidence::High),
        FailOn::Never => None,
    }
}

fn ending(record: &Diagnosis, fail_on: FailOn, conditions_met: bool) -> ExitCode {
    if stop::asked() {
        return ExitCode::from(exit::INTERRUPTED);
    }
    let counts = |finding: &Finding| least(fail_on).is_some_and(|least| finding.confidence >= least);
    let found = record.findings.iter().any(counts);
    if found || !conditions_met { ExitCode::from(exit::NO) } else { exit::DONE }
}
