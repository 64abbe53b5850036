//! `dyno report`: any record drawn again, without measuring anything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_measure::record::{CLIMB_SCHEMA, Climb, RecordError};

use super::failure::{Failure, exit};
use super::file;
use crate::cli;
use crate::print::climb_table;

/// What the schema of every climb's record begins with, before its version.
const FAMILY: &str = "dyno.climb/";

/// Runs the verb.
pub(crate) fn run(args: &cli::Report) -> Result<ExitCode, Failure> {
    let climb = record(&args.record)?;
    let page = crate::report::render(&climb);
    match place(args)? {
        None => super::print(&page)?,
        Some(path) => {
            super::write_file(&path, page.as_bytes(), super::scratch::caller())?;
            super::print(&climb_table(&climb, super::terminal_width(), args.color.on_stdout()))?;
            super::say(&format!("report    {}\n", path.display()));
        }
    }
    Ok(exit::DONE)
}

/// Reads a climb's record; `-` is standard input.
pub(crate) fn record(path: &Path) -> Result<Climb, Failure> {
    let name = file::name(path);
    let bytes = file::read(path)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::error(format!("{name} is not text"))
            .because(&error)
            .likely("it is no record of a climb")
            .try_this("dyno climb -o climb.json")
    })?;
    Climb::from_json(&text).map_err(|error| {
        let failure = Failure::error(format!("{name}: {error}")).because(&error);
        match &error {
            RecordError::Schema { found } if found.starts_with(FAMILY) => failure
                .likely(format!("another version of dyno wrote it; this one knows {CLIMB_SCHEMA}"))
                .try_this("the dyno that wrote it, or a newer one"),
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
