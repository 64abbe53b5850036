//! `dyno tune snapshot` and `diff`.

use std::path::Path;
use std::process::ExitCode;

use dyno_host::tune::snapshot;
use dyno_lab::{Failure, file};
use dyno_record::tune::{Difference, Reading, SNAPSHOT_SCHEMA, Snapshot, difference};
use dyno_record::visible::visible;

use super::words;
use crate::cli::tune::{TuneDiff, TuneSnapshot};
use crate::cmd::exit;
use crate::out;

/// `dyno tune snapshot`.
pub(super) fn snapshot(args: &TuneSnapshot) -> Result<ExitCode, Failure> {
    let text = json(&snapshot::snapshot())? + "\n";
    match args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => file::write_file(path, text.as_bytes(), dyno_lab::user::caller())?,
        None => out::print(&text)?,
    }
    Ok(exit::DONE)
}

/// `dyno tune diff`.
pub(super) fn diff(args: &TuneDiff) -> Result<ExitCode, Failure> {
    let before = read(&args.before)?;
    let after = args.after.as_deref().map_or_else(|| Ok(snapshot::snapshot()), read)?;
    let difference = difference(&before, &after);
    match args.json {
        true => out::print(&(json(&difference)? + "\n"))?,
        false => out::print(&told(&difference, before.boot != after.boot))?,
    }
    Ok(if difference.changed.is_empty() { exit::DONE } else { ExitCode::from(exit::NO) })
}

fn read(path: &Path) -> Result<Snapshot, Failure> {
    let wrong = || {
        Failure::error(format!("{} is no snapshot", file::name(path)))
            .likely("it was not written by dyno tune snapshot")
            .try_this("dyno tune snapshot -o before.json")
    };
    let snapshot: Snapshot =
        serde_json::from_slice(&file::read(path)?).map_err(|error| wrong().because(&error))?;
    if snapshot.schema == SNAPSHOT_SCHEMA { Ok(snapshot) } else { Err(wrong()) }
}

fn told(difference: &Difference, is_other_boot: bool) -> String {
    let mut text = String::new();
    if is_other_boot {
        text.push_str("the machine was started between the two\n");
    }
    let reading = |side: &Option<Reading>| match side {
        None => "not there".to_owned(),
        Some(Reading::Value(value)) => words::value(value),
        Some(Reading::Unread(why)) => format!("unread ({})", visible(why)),
    };
    for (name, (before, after)) in &difference.changed {
        text.push_str(&format!("{}\n  {} → {}\n", visible(name), reading(before), reading(after)));
    }
    text.push_str(&format!("{} differ\n", words::counted(difference.changed.len(), "setting")));
    if !difference.moving.is_empty() {
        text.push_str(&format!(
            "not compared, for they move by themselves: {}\n",
            difference.moving.join(" ")
        ));
    }
    text
}

/// A record as JSON.
pub(super) fn json(record: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(record)
        .map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))
}
