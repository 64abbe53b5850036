//! `dyno report`: any record drawn again, without measuring anything.

use crate::out;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_record::causal::{CAUSAL_SCHEMA, Causal, CausalError};
use dyno_record::climb::{CLIMB_SCHEMA, Climb, RecordError};

use super::exit;
use crate::cli;
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::text::{causal, climb_table};

/// What the schema of every climb's record begins with, before its version.
const FAMILY: &str = "dyno.climb/";
/// The same of a causal profile's.
const CAUSAL_FAMILY: &str = "dyno.causal/";

/// Runs the verb.
pub(crate) fn run(args: &cli::Report) -> Result<ExitCode, Failure> {
    let (width, color) = (out::terminal_width(), args.color.on_stdout());
    let text = text(&args.record)?;
    let (page, table) = if is_causal(&text) {
        let record = causal_record(&args.record, &text)?;
        (dyno_report::page::causal::render(&record), causal::causal(&record, width, color))
    } else {
        let climb = climb_record(&args.record, &text)?;
        (dyno_report::page::climb::render(&climb), climb_table(&climb, width, color))
    };
    match place(args)? {
        None => out::print(&page)?,
        Some(path) => {
            file::write_file(&path, page.as_bytes(), dyno_lab::user::caller())?;
            out::print(&table)?;
            out::say(&format!("report    {}\n", path.display()));
        }
    }
    Ok(exit::DONE)
}

/// Whether a text says of itself that it is a causal profile, whatever its version.
fn is_causal(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    serde_json::from_str::<Head>(text).is_ok_and(|head| head.schema.starts_with(CAUSAL_FAMILY))
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

fn climb_record(path: &Path, text: &str) -> Result<Climb, Failure> {
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
