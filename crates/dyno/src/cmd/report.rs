//! `dyno report`: any record drawn again, without measuring anything.

use crate::out;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_record::causal::{CAUSAL_SCHEMA, Causal, CausalError};
use dyno_record::climb::{CLIMB_SCHEMA, Climb, RecordError};
use dyno_record::diagnosis::Diagnosis;
use dyno_record::finding::DIAGNOSIS_SCHEMA;

use super::{exit, gate};
use crate::cli::{self, Format};
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_record::sheet::of_climb;
use dyno_report::export::{self, Subject};
use dyno_report::number::visible;
use dyno_report::text::{causal, climb_table, diagnosis_card};

/// What the schema of every climb's record begins with, before its version.
const FAMILY: &str = "dyno.climb/";
/// The same of a causal profile's.
const CAUSAL_FAMILY: &str = "dyno.causal/";
/// The same of a diagnosis's.
const DIAGNOSIS_FAMILY: &str = "dyno.diagnosis/";

/// Runs the verb.
pub(crate) fn run(args: &cli::Report) -> Result<ExitCode, Failure> {
    let (width, color) = (out::terminal_width(), args.color.on_stdout());
    let conditions = gate::Conditions::read(&args.gate)?;
    let text = text(&args.record)?;
    let format = args.format.wanted(cli::Json::of(args.json));
    let (page, table, held) = match family(&text) {
        Family::Causal => {
            let record = causal_record(&args.record, &text)?;
            only_a_table(args, format, "a causal profile")?;
            (dyno_report::page::causal::render(&record), causal::causal(&record, width, color), Vec::new())
        }
        Family::Diagnosis => {
            let record = diagnosis_record(&args.record, &text)?;
            only_a_table(args, format, "a diagnosis")?;
            let card = diagnosis_card(&record, width, color);
            (dyno_report::page::diagnosis::render(&record, &[]), card, Vec::new())
        }
        Family::Climb => {
            let climb = climb_record(&args.record, &text)?;
            let held = conditions.hold(&of_climb(&climb))?;
            let written = match format.exporter() {
                Some(exporter) => export::write(exporter, Subject::Climb(&climb), &held),
                None if format == Format::Json => json(&climb)?,
                None => climb_table(&climb, width, color),
            };
            (dyno_report::page::climb::render(&climb), written, held)
        }
    };
    match place(args)? {
        None => out::print(&page)?,
        Some(path) => {
            file::write_file(&path, page.as_bytes(), dyno_lab::user::caller())?;
            out::print(&table)?;
            out::say(&format!("report    {}\n", path.display()));
        }
    }
    Ok(if gate::told(&held) { exit::DONE } else { ExitCode::from(exit::NO) })
}

/// What is no climb has no figures to gate or export by name here.
fn only_a_table(args: &cli::Report, format: Format, what: &str) -> Result<(), Failure> {
    let flag = match (format, args.gate.fail_under.is_empty()) {
        (Format::Table, true) => return Ok(()),
        (Format::Table, false) => "--fail-under",
        _ => "--format",
    };
    Err(Failure::usage(format!("{flag} is for a climb here, and this is {what}"))
        .likely("the record is another one than meant")
        .try_this(format!("dyno report {}", file::name(&args.record))))
}

fn json(climb: &Climb) -> Result<String, Failure> {
    let text = serde_json::to_string(climb);
    Ok(text.map_err(|error| Failure::error("the record cannot be written as JSON").because(&error))? + "\n")
}

/// What a record is of.
enum Family {
    Climb,
    Causal,
    Diagnosis,
}

/// What a text says of itself that it is, whatever its version; a climb where it says nothing.
fn family(text: &str) -> Family {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    match serde_json::from_str::<Head>(text) {
        Ok(head) if head.schema.starts_with(CAUSAL_FAMILY) => Family::Causal,
        Ok(head) if head.schema.starts_with(DIAGNOSIS_FAMILY) => Family::Diagnosis,
        _ => Family::Climb,
    }
}

fn diagnosis_record(path: &Path, text: &str) -> Result<Diagnosis, Failure> {
    let record = serde_json::from_str::<Diagnosis>(text).map_err(|error| {
        let failure = Failure::error(format!("{}: {error}", file::name(path))).because(&error);
        failure.likely("it is damaged").try_this("dyno diagnose PID --json > diagnosis.json")
    })?;
    if record.schema == DIAGNOSIS_SCHEMA {
        return Ok(record);
    }
    let what = format!("{}: the record's schema is \"{}\"", file::name(path), visible(&record.schema));
    Err(Failure::error(what)
        .likely(format!("another version of dyno wrote it; this one knows {DIAGNOSIS_SCHEMA}"))
        .try_this("the dyno that wrote it, or a newer one"))
}

fn causal_record(path: &Path, text: &str) -> Result<Causal, Failure> {
    Causal::from_json(text).map_err(|error| {
        let failure = Failure::error(format!("{}: {error}", file::name(path))).because(&error);
        match &error {
            CausalError::Schema { .. } => failure
                .likely(format!("another version of dyno wrote it; this one knows {CAUSAL_SCHEMA}"))
                .try_this("the dyno that wrote it, or a newer one"),
            CausalError::Shape(_) => {
                failure.likely("it is damaged").try_this("dyno causal PID -o causal.json")
            }
        }
    })
}

/// Reads a climb's record; `-` is standard input.
pub(crate) fn record(path: &Path) -> Result<Climb, Failure> {
    climb_record(path, &text(path)?)
}

fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(file::read(path)?).map_err(|error| {
        Failure::error(format!("{} is not text", file::name(path)))
            .because(&error)
            .likely("it is no record of a climb")
            .try_this("dyno climb -o climb.json")
    })
}

pub(super) fn climb_record(path: &Path, text: &str) -> Result<Climb, Failure> {
    let name = file::name(path);
    Climb::from_json(text).map_err(|error| {
        let failure = Failure::error(format!("{name}: {error}")).because(&error);
        match &error {
            RecordError::Schema { found } if found.starts_with(FAMILY) => failure
                .likely(format!("another version of dyno wrote it; this one knows {CLIMB_SCHEMA}"))
                .try_this("the dyno that wrote it, or a newer one"),
            RecordError::Schema { found } if found.starts_with("dyno.profile/") => {
                failure.likely("it is a profile").try_this(format!("dyno flame {name}"))
            }
            _ => failure
                .likely("it is damaged, or was written by something else than dyno climb")
                .try_this("dyno climb -o climb.json"),
        }
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
    if path == args.record {
        let what = format!("the page would be written over its record {}", path.display());
        let failure = Failure::usage(what).likely("the record ends in .html, or -o names it");
        return Err(failure.try_this("dyno report RECORD -o PAGE.html"));
    }
    Ok(Some(path))
}
