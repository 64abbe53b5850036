//! `dyno audit`: the host's facts, read once and judged.
//!
//! Reading is `dyno_host`'s, the rules are `dyno_diagnose`'s; here are what is asked for, the files, and the exit status.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use dyno_diagnose::audit::{audit, catalogue};
use dyno_host::facts::{self, Wanted};
use dyno_lab::look::cost;
use dyno_lab::{Failure, file};
use dyno_record::audit::{AUDIT_SCHEMA, Audit, Level};
use dyno_record::condition::Held;
use dyno_record::facts::Facts;
use dyno_record::machine::Machine;
use dyno_record::sheet::of_audit;
use dyno_report::export::{self, Subject, sarif::sarif, textfile::textfile};
use dyno_report::text::audit::{Depth, audit as table};
use dyno_sys::{Pid, proc};

use super::{exit, gate};
use crate::cli;
use crate::cli::audit::{AuditFormat, FailOnLevel, What};
use crate::{out, this_run};

/// How long neighbours are watched: a tick of 10 ms is then one percent of a CPU.
const WATCH: Duration = Duration::from_secs(1);

/// Runs the verb.
pub(crate) fn run(args: &cli::Audit) -> Result<ExitCode, Failure> {
    if let Some(What::Facts(wanted)) = &args.what {
        let facts = read(wanted.pid, wanted.measure)?;
        write(wanted.output.as_deref(), &(json(&facts)? + "\n"))?;
        return Ok(exit::DONE);
    }
    let conditions = gate::Conditions::read(&args.gate)?;
    if let (Some(from), Some(output)) = (&args.from, &args.output) {
        file::not_over(&[from], output)?;
    }
    let facts = match &args.from {
        Some(path) => from_file(path)?,
        None => read(args.pid, args.measure)?,
    };
    let record = Audit {
        schema: AUDIT_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command: this_run::command_line(),
        machine: of(&facts),
        ..audit(&facts, args.goal.goal())
    };
    let held = conditions.hold(&of_audit(&record))?;
    write(args.output.as_deref(), &written(&record, args, &held)?)?;
    Ok(if gate::told(&held) { ending(&record, args.fail_on) } else { ExitCode::from(exit::NO) })
}

fn read(pid: Option<Pid>, measure: bool) -> Result<Facts, Failure> {
    if let Some(pid) = pid.filter(|pid| proc::stat(*pid).is_err()) {
        return Err(Failure::error(format!("there is no process {pid}"))
            .likely("it has ended")
            .try_this("pgrep -a NAME"));
    }
    let mut facts = facts::read(&Wanted { server: pid, watch: WATCH });
    if measure {
        out::say(&beforehand(&facts));
        facts.measured = Some(cost::measure(&facts));
    }
    Ok(facts)
}

/// How long it takes and what it does, before it does it.
fn beforehand(facts: &Facts) -> String {
    let server = match &facts.server {
        Some(server) => format!(
            "; {} ({}) is looked at: its filters are read, and its system calls watched for less than a second, which slows it meanwhile",
            server.name, server.pid
        ),
        None => String::new(),
    };
    format!(
        "measuring for up to {} s: system calls in children, packets in namespaces that end with this program{server}\n",
        cost::TAKES_MAX.as_secs()
    )
}

/// The machine that the facts are of, which need not be this one.
fn of(facts: &Facts) -> Machine {
    let sysctl = |name: &str| facts.sysctl(name).unwrap_or_default().to_owned();
    Machine {
        cpus: facts.cpus.count as usize,
        model: facts.cpus.model.clone(),
        virtual_machine: facts.cpus.hypervisor.is_some(),
        kernel: facts.kernel.release.value().cloned().unwrap_or_default(),
        memory_bytes: facts.memory.total_bytes,
        clocksource: facts.kernel.clocksource.value().cloned().unwrap_or_default(),
        congestion: sysctl("net.ipv4.tcp_congestion_control"),
        root: facts.reader.uid == 0 && !facts.missing.iter().any(|part| part.starts_with("reader")),
        ..Machine::default()
    }
}

fn from_file(path: &Path) -> Result<Facts, Failure> {
    let text = String::from_utf8_lossy(&file::read(path)?).into_owned();
    Facts::from_json(&text).map_err(|error| {
        Failure::error(format!("{}: {error}", file::name(path)))
            .because(&error)
            .likely("it was not written by dyno audit facts")
            .try_this("dyno audit facts > facts.json")
    })
}

fn written(record: &Audit, args: &cli::Audit, held: &[Held]) -> Result<String, Failure> {
    let exported = |format| export::write(format, Subject::Audit(record, least(args.fail_on)), held);
    let format = if args.json { AuditFormat::Json } else { args.format };
    let depth = if args.full { Depth::Full } else { Depth::Short };
    Ok(match format {
        AuditFormat::Table => table(record, depth, out::terminal_width(), args.color.on_stdout()),
        AuditFormat::Json => json(record)? + "\n",
        AuditFormat::Html => dyno_report::page::audit::render(record),
        AuditFormat::Sarif => sarif(record, &catalogue()),
        AuditFormat::Prometheus => textfile(record),
        AuditFormat::Markdown => exported(export::Format::Markdown),
        AuditFormat::Csv => exported(export::Format::Csv),
        AuditFormat::Junit => exported(export::Format::Junit),
        AuditFormat::Github => exported(export::Format::Github),
    })
}

fn json(record: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(record)
        .map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))
}

fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path.filter(|path| path.as_os_str() != "-") {
        Some(path) => file::write_file(path, text.as_bytes(), dyno_lab::user::caller()),
        None => out::print(text),
    }
}

/// The level from which a finding is a failure.
fn least(fail_on: FailOnLevel) -> Option<Level> {
    match fail_on {
        FailOnLevel::Low => Some(Level::Low),
        FailOnLevel::Medium => Some(Level::Medium),
        FailOnLevel::High => Some(Level::High),
        FailOnLevel::Never => None,
    }
}

fn ending(record: &Audit, fail_on: FailOnLevel) -> ExitCode {
    let Some(least) = least(fail_on) else { return exit::DONE };
    match record.findings.iter().any(|finding| finding.level >= least) {
        true => ExitCode::from(exit::NO),
        false => exit::DONE,
    }
}
