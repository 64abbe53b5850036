//! Records in the formats of other tools.
//!
//! The verbs' `--format` writes them. Each is a pure function of records: one exporter per format, over the record's view
//! (markdown), its sheet (csv) or its checks (junit, github). What strangers named is shown in all of them and obeyed in
//! none.

mod checks;
mod csv;
mod github;
mod junit;
mod markdown;
pub mod sarif;
mod subject;
pub mod textfile;

use dyno_record::condition::Held;
use dyno_record::figure::Sheet;
use dyno_record::sheet;

use crate::view::{self, block::View};

pub use subject::{Format, Subject};

fn view_of(subject: Subject<'_>) -> View {
    match subject {
        Subject::Climb(climb) => view::climb::view(climb),
        Subject::Judged(judged) => view::judged::view(judged),
        Subject::Difference(difference) => view::difference::view(difference),
        Subject::Numbers(sheet, answer) => view::sheet::view(sheet, answer),
        Subject::Load(run, _) => view::load::view(run),
        Subject::Diagnosis(record, _) => view::diagnosis::view(record, &[]),
        Subject::Audit(audit, _) => view::audit::view(audit, view::audit::Depth::Short),
    }
}

/// What a row of a table of values is made from.
fn sheet_of(subject: Subject<'_>) -> Sheet {
    match subject {
        Subject::Climb(climb) => sheet::of_climb(climb),
        Subject::Judged(judged) => checks::sheet_of_judged(judged),
        Subject::Difference(difference) => difference.sheet(),
        Subject::Numbers(sheet, _) => sheet.clone(),
        Subject::Load(run, _) => sheet::of_load(run),
        Subject::Diagnosis(record, _) => sheet::of_diagnosis(record),
        Subject::Audit(audit, _) => sheet::of_audit(audit),
    }
}

/// The whole text. Conditions that were held come with it.
#[must_use]
pub fn write(format: Format, subject: Subject<'_>, held: &[Held]) -> String {
    match format {
        Format::Markdown => markdown::write(&view_of(subject), held),
        Format::Csv => csv::write(&sheet_of(subject)),
        Format::Junit => junit::write(&checks::of(subject, held)),
        Format::Github => github::write(&checks::of(subject, held)),
    }
}

/// An error before there was a record, as a workflow command.
#[must_use]
pub fn github_error(title: &str, message: &str) -> String {
    github::command("error", title, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::samples::climb::sample_climb;
    use dyno_record::audit::{Audit, AuditFinding, Level};
    use dyno_record::climb::Climb;
    use dyno_record::condition::read;
    use dyno_record::load::LoadRun;

    const HOSTILE: &str =
        "<img src=x onerror=alert(1)>|a\n::error::pwned\r\n]]>\u{1b}[2J\u{202e}@all =1+1 [x](http://h)";

    fn climb() -> Climb {
        let mut climb = sample_climb(7);
        for rung in &mut climb.rungs {
            rung.id = HOSTILE.into();
            rung.change = HOSTILE.into();
            rung.attempt.why = HOSTILE.into();
        }
        climb.warnings.push(HOSTILE.into());
        climb.plan = HOSTILE.into();
        climb
    }

    fn all(format: Format) -> Vec<String> {
        let climb = climb();
        let sheet = sheet::of_climb(&climb);
        let held: Vec<Held> =
            read("total>=99x").unwrap().iter().map(|one| one.hold(&sheet).unwrap()).collect();
        let finding = AuditFinding {
            id: "x".into(),
            object: HOSTILE.into(),
            title: HOSTILE.into(),
            found: HOSTILE.into(),
            ..AuditFinding::default()
        };
        let audit = Audit { findings: vec![finding], ..Audit::default() };
        let load = LoadRun { request: HOSTILE.into(), ..LoadRun::default() };
        vec![
            write(format, Subject::Climb(&climb), &held),
            write(format, Subject::Audit(&audit, Some(Level::Low)), &[]),
            write(format, Subject::Load(&load, Some(HOSTILE)), &[]),
        ]
    }

    #[test]
    fn nothing_that_a_stranger_named_is_obeyed_in_any_format() {
        for format in [Format::Markdown, Format::Csv, Format::Junit, Format::Github] {
            for text in all(format) {
                assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{format:?}: {text}");
            }
        }
        for text in all(Format::Markdown) {
            assert!(!text.contains('<') && !text.contains("](") && !text.contains("@all"), "{text}");
            let rows = text.lines().filter(|line| line.starts_with('|'));
            let widths: Vec<usize> = rows.map(|line| line.matches('|').count()).collect();
            assert!(widths.chunk_by(|a, b| a == b).all(|run| run.len() > 1), "a cell became two: {text}");
        }
        for text in all(Format::Github) {
            let commands = ["::error", "::warning", "::notice"];
            assert!(
                text.lines().all(|line| commands.iter().any(|command| line.starts_with(command))),
                "{text}"
            );
            assert!(text.lines().all(|line| !line.starts_with("::error::pwned")), "{text}");
        }
        for text in all(Format::Junit) {
            assert!(!text.contains("<img") && text.contains("&lt;img"), "{text}");
            assert!(text.matches('<').count() == text.matches('>').count(), "{text}");
        }
        for text in all(Format::Csv) {
            assert!(text.ends_with("\r\n") && !text.contains("\n="), "{text}");
        }
    }
}
