//! `dyno compare`: a folder's climbs over time.
//!
//! Reads every record in it, passes over what is no climb and says so; the page and the table are `dyno_report`'s.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_lab::{Failure, file};
use dyno_record::climb::Climb;
use dyno_record::figure::Sheet;
use dyno_record::history::{History, Skipped};
use dyno_record::sheet::of_climb;
use dyno_report::{page, text};

use super::exit;
use crate::cli;
use crate::out;

const PAGE: &str = "history.html";

/// Runs the verb.
pub(crate) fn run(args: &cli::Compare) -> Result<ExitCode, Failure> {
    let name = args.folder.display().to_string();
    let (climbs, skipped) = read(&args.folder)?;
    let inputs: Vec<PathBuf> = climbs.iter().map(|(file, _)| args.folder.join(file)).collect();
    let history = History::of(&name, env!("CARGO_PKG_VERSION"), climbs, skipped);
    if history.climbs() == 0 {
        let failure = Failure::no(format!("there is no record of a climb in {name}"));
        return Err(failure.likely(why_none(&history)).try_this(format!("dyno climb -o {name}/climb.json")));
    }
    if let Some(path) = place(args) {
        file::not_over(&inputs.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &path)?;
    }
    if args.json {
        let text = serde_json::to_string(&history);
        let text =
            text.map_err(|error| Failure::error("the history cannot be written as JSON").because(&error))?;
        out::print(&(text + "\n"))?;
    }
    let to_stdout = args.output.as_ref().is_some_and(|path| path.as_os_str() == "-");
    match place(args) {
        None if to_stdout => out::print(&page::history::render(&history))?,
        None => {}
        Some(path) => {
            file::write_file(&path, page::history::render(&history).as_bytes(), dyno_lab::user::caller())?;
            if !args.json {
                out::print(&text::history(&history, out::terminal_width(), args.color.on_stdout()))?;
            }
            out::say(&format!("report    {}\n", path.display()));
        }
    }
    Ok(exit::DONE)
}

/// Where the page is written as a file.
fn place(args: &cli::Compare) -> Option<PathBuf> {
    match &args.output {
        Some(path) => (path.as_os_str() != "-").then(|| path.clone()),
        None => (!args.json).then(|| PathBuf::from(PAGE)),
    }
}

fn why_none(history: &History) -> String {
    match history.skipped.first() {
        None => "it has no file that ends in .json".to_owned(),
        Some(one) => format!("{}: {}", one.file, one.why),
    }
}

type Read = (Vec<(String, Sheet)>, Vec<Skipped>);

/// Every file of the folder whose name ends in `.json`, in the order of their names.
fn read(folder: &Path) -> Result<Read, Failure> {
    let refused = |error: &std::io::Error| {
        let failure = file::refused(&format!("cannot read the folder {}", folder.display()), error);
        if error.kind() == std::io::ErrorKind::NotADirectory {
            return failure
                .likely("it is a file: two records are compared by dyno judge A B")
                .try_this("dyno compare DIR");
        }
        failure
    };
    let entries = std::fs::read_dir(folder).map_err(|error| refused(&error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| refused(&error))?.path();
        paths.extend(path.extension().is_some_and(|ending| ending == "json").then_some(path));
    }
    paths.sort();
    let (mut climbs, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match climb(&path) {
            Ok(sheet) => climbs.push((name, sheet)),
            Err(why) => skipped.push(Skipped { file: name, why }),
        }
    }
    Ok((climbs, skipped))
}

/// A climb's sheet, or why there is none. Only files are opened: a pipe would wait for ever.
fn climb(path: &Path) -> Result<Sheet, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    let bytes = file::read(path).map_err(|failure| failure.in_one_line())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    Climb::from_json(&text).map(|climb| of_climb(&climb)).map_err(|error| error.to_string())
}
