//! `dyno report`: any record drawn again, without measuring anything.

mod kinds;

use crate::out;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_record::climb::Climb;
use dyno_record::condition::Held;

use super::{exit, gate};
use crate::cli::{self, Format};
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::export;
use kinds::Record;

pub(super) use kinds::{BY_HAND, climb_record, verb_of};

/// Runs the verb.
pub(crate) fn run(args: &cli::Report) -> Result<ExitCode, Failure> {
    let conditions = gate::Conditions::read(&args.gate)?;
    let record = Record::read(&args.record, &text(&args.record)?)?;
    let format = args.format.wanted(cli::Json::of(args.json));
    let held = match record.sheet() {
        Some(sheet) => conditions.hold(&sheet)?,
        None => only_without_figures(args, format, &record)?,
    };
    let place = place(args)?;
    let written = match (format.exporter().zip(record.subject()), format) {
        (Some((exporter, subject)), _) => export::write(exporter, subject, &held),
        (None, Format::Json) => json(&record)?,
        (None, _) => record.table(out::terminal_width(), args.color.on_stdout()),
    };
    match place {
        None => out::print(&record.page())?,
        Some(path) => {
            file::write_file(&path, record.page().as_bytes(), dyno_lab::user::caller())?;
            out::print(&written)?;
            out::say(&format!("report    {}\n", path.display()));
        }
    }
    Ok(if gate::told(&held) { exit::DONE } else { ExitCode::from(exit::NO) })
}

/// What has curves has no figures to gate or to export by name.
fn only_without_figures(args: &cli::Report, format: Format, record: &Record) -> Result<Vec<Held>, Failure> {
    let flag = match (format, args.gate.fail_under.is_empty()) {
        (Format::Table | Format::Json, true) => return Ok(Vec::new()),
        (Format::Table | Format::Json, false) => "--fail-under",
        _ => "this --format",
    };
    Err(Failure::usage(format!("{flag} is for figures that have names, and {} has none", record.kind()))
        .likely("it has a curve for each place; the formats for it are table and json")
        .try_this(format!("dyno report {} --json", file::name(&args.record))))
}

fn json(record: &Record) -> Result<String, Failure> {
    let text = record.json();
    Ok(text.map_err(|error| Failure::error("the record cannot be written as JSON").because(&error))? + "\n")
}

/// Reads a climb's record; `-` is standard input.
pub(crate) fn record(path: &Path) -> Result<Climb, Failure> {
    climb_record(path, &text(path)?)
}

fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(file::read(path)?).map_err(|error| {
        Failure::error(format!("{} is not text", file::name(path)))
            .because(&error)
            .likely("it is no record of dyno")
            .try_this("dyno report --help, which says what is drawn")
    })
}

/// Where the page goes; `None` is standard output.
fn place(args: &cli::Report) -> Result<Option<PathBuf>, Failure> {
    let path = match &args.output {
        Some(path) if path.as_os_str() == "-" => return Ok(None),
        Some(path) => path.clone(),
        None if args.record.as_os_str() == "-" => return Ok(None),
        None => args.record.with_extension("html"),
    };
    file::not_over(&[&args.record], &path).map_err(|failure| {
        let failure = failure.likely("the record ends in .html, or -o names it");
        failure.try_this("dyno report RECORD -o PAGE.html")
    })?;
    Ok(Some(path))
}
