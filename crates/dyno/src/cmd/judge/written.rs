//! An answer for programs: as JSON, or by an exporter.

use dyno_lab::Failure;
use dyno_record::condition::Held;
use dyno_report::export::{self, Subject};

use crate::cli::Format;

/// What an exporter writes; tables and records are written by who calls this.
pub(super) fn exported(format: Format, subject: Subject<'_>, held: &[Held]) -> String {
    format.exporter().map(|format| export::write(format, subject, held)).unwrap_or_default()
}

/// As one object on a line.
pub(super) fn json(record: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(record);
    let text =
        text.map_err(|error| Failure::error("the answer cannot be written as JSON").because(&error))?;
    Ok(text + "\n")
}
