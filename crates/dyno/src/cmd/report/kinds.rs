//! The kinds of records that are drawn again: how each is read, and what is made of it. A kind is a variant and a line in
//! each function.

use std::path::Path;

use dyno_lab::{Failure, file};
use dyno_record::audit::{AUDIT_SCHEMA, Audit};
use dyno_record::causal::{CAUSAL_SCHEMA, Causal, CausalError};
use dyno_record::climb::{CLIMB_SCHEMA, Climb, RecordError};
use dyno_record::diagnosis::Diagnosis;
use dyno_record::difference::{DIFFERENCE_SCHEMA, Difference};
use dyno_record::figure::Sheet;
use dyno_record::finding::DIAGNOSIS_SCHEMA;
use dyno_record::load::{LOAD_SCHEMA, LoadRun};
use dyno_record::sane::{self, ReadError};
use dyno_record::sheet::{of_audit, of_climb, of_diagnosis, of_load};
use dyno_report::Color;
use dyno_report::export::Subject;
use dyno_report::number::visible;
use dyno_report::{page, text};

/// What the schema of every climb's record begins with, before its version.
const FAMILY: &str = "dyno.climb/";

/// Where a figure comes from that no measurement gives.
pub(crate) const BY_HAND: &str = "it was written or changed by hand, or damaged: no run of dyno writes that";

/// A record that was read.
pub(super) enum Record {
    Climb(Box<Climb>),
    Causal(Box<Causal>),
    Diagnosis(Box<Diagnosis>),
    Load(Box<LoadRun>),
    Audit(Box<Audit>),
    Difference(Box<Difference>),
}

impl Record {
    /// Reads a record as what it says of itself, whatever its version.
    pub(super) fn read(path: &Path, text: &str) -> Result<Record, Failure> {
        let schema = schema(text);
        let plain = Plain { path, text, schema: &schema };
        Ok(match schema.split('/').next().unwrap_or_default() {
            "dyno.causal" => Record::Causal(Box::new(causal_record(path, text)?)),
            "dyno.diagnosis" => Record::Diagnosis(Box::new(
                plain.read(DIAGNOSIS_SCHEMA, "dyno diagnose PID --json > diagnosis.json")?,
            )),
            "dyno.load" => Record::Load(Box::new(plain.read(LOAD_SCHEMA, "dyno load URL -o load.json")?)),
            "dyno.audit" => {
                Record::Audit(Box::new(plain.read(AUDIT_SCHEMA, "dyno audit --json > audit.json")?))
            }
            "dyno.difference" => Record::Difference(Box::new(
                plain.read(DIFFERENCE_SCHEMA, "dyno judge A B --json > difference.json")?,
            )),
            "" => return Err(no_record(path)),
            _ => Record::Climb(Box::new(climb_record(path, text)?)),
        })
    }

    /// What it is, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Record::Climb(_) => "a climb",
            Record::Causal(_) => "a causal profile",
            Record::Diagnosis(_) => "a diagnosis",
            Record::Load(_) => "a load",
            Record::Audit(_) => "an audit",
            Record::Difference(_) => "a comparison",
        }
    }

    /// Its figures by name, where it has any.
    pub(super) fn sheet(&self) -> Option<Sheet> {
        match self {
            Record::Climb(climb) => Some(of_climb(climb)),
            Record::Causal(_) => None,
            Record::Diagnosis(record) => Some(of_diagnosis(record)),
            Record::Load(run) => Some(of_load(run)),
            Record::Audit(audit) => Some(of_audit(audit)),
            Record::Difference(record) => Some(record.sheet()),
        }
    }

    /// The same for exporters. From which finding on a job fails was for the verb that looked.
    pub(super) fn subject(&self) -> Option<Subject<'_>> {
        match self {
            Record::Climb(climb) => Some(Subject::Climb(climb)),
            Record::Causal(_) => None,
            Record::Diagnosis(record) => Some(Subject::Diagnosis(record, None)),
            Record::Load(run) => Some(Subject::Load(run, None)),
            Record::Audit(audit) => Some(Subject::Audit(audit, None)),
            Record::Difference(record) => Some(Subject::Difference(record)),
        }
    }

    pub(super) fn json(&self) -> serde_json::Result<String> {
        match self {
            Record::Climb(climb) => serde_json::to_string(climb),
            Record::Causal(record) => serde_json::to_string(record),
            Record::Diagnosis(record) => serde_json::to_string(record),
            Record::Load(run) => serde_json::to_string(run),
            Record::Audit(audit) => serde_json::to_string(audit),
            Record::Difference(record) => serde_json::to_string(record),
        }
    }

    pub(super) fn table(&self, width: usize, color: Color) -> String {
        match self {
            Record::Climb(climb) => text::climb_table(climb, width, color),
            Record::Causal(record) => text::causal::causal(record, width, color),
            Record::Diagnosis(record) => text::diagnosis_card(record, width, color),
            Record::Load(run) => text::load_table(run, width, color),
            Record::Audit(audit) => text::audit::audit(audit, text::audit::Depth::Short, width, color),
            Record::Difference(record) => text::difference(record, width, color),
        }
    }

    pub(super) fn page(&self) -> String {
        match self {
            Record::Climb(climb) => page::climb::render(climb),
            Record::Causal(record) => page::causal::render(record),
            Record::Diagnosis(record) => page::diagnosis::render(record, &[]),
            Record::Load(run) => page::load::render(run),
            Record::Audit(audit) => page::audit::render(audit),
            Record::Difference(record) => page::difference::render(record),
        }
    }
}

/// What does not say of itself that it is a record.
fn no_record(path: &Path) -> Failure {
    Failure::error(format!("{} is no record of dyno: it names no schema", file::name(path)))
        .likely("it is empty, cut short or damaged, or another program wrote it")
        .try_this("dyno report --help, which says what is drawn")
}

fn causal_record(path: &Path, text: &str) -> Result<Causal, Failure> {
    Causal::from_json(text).map_err(|error| {
        let failure = Failure::error(format!("{}: {error}", file::name(path))).because(&error);
        let again = "dyno causal PID -o causal.json";
        match &error {
            CausalError::Schema { .. } => failure
                .likely(format!("another version of dyno wrote it; this one knows {CAUSAL_SCHEMA}"))
                .try_this("the dyno that wrote it, or a newer one"),
            CausalError::Impossible(_) => failure.likely(BY_HAND).try_this(again),
            CausalError::Shape(_) => failure.likely("it is damaged").try_this(again),
        }
    })
}

pub(crate) fn climb_record(path: &Path, text: &str) -> Result<Climb, Failure> {
    let name = file::name(path);
    Climb::from_json(text).map_err(|error| {
        let failure = Failure::error(format!("{name}: {error}")).because(&error);
        let again = "dyno climb -o climb.json";
        match &error {
            RecordError::Schema { found } if found.starts_with(FAMILY) => failure
                .likely(format!("another version of dyno wrote it; this one knows {CLIMB_SCHEMA}"))
                .try_this("the dyno that wrote it, or a newer one"),
            RecordError::Schema { found } => match verb_of(found) {
                Some((what, verb)) => {
                    failure.likely(format!("it is {what}")).try_this(verb.replace("FILE", &visible(&name)))
                }
                None => failure
                    .likely("another program wrote it, or another version of dyno")
                    .try_this("dyno report --help"),
            },
            RecordError::Impossible(_) => failure.likely(BY_HAND).try_this(again),
            _ => failure
                .likely("it is damaged, or was written by something else than dyno climb")
                .try_this(again),
        }
    })
}

/// What a text says of itself.
fn schema(text: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let whole = serde_json::from_str::<Head>(text).map(|head| head.schema);
    whole.ok().or_else(|| first_field(text).map(str::to_owned)).unwrap_or_default()
}

/// The schema of a text that ends too early: it stands first in every record.
fn first_field(text: &str) -> Option<&str> {
    let mut rest = text;
    for part in ["{", "\"schema\"", ":", "\""] {
        rest = rest.trim_start().strip_prefix(part)?;
    }
    rest.split_once('"').map(|(schema, _)| schema)
}

/// Records that are drawn by another verb: what each is, and which.
pub(crate) fn verb_of(schema: &str) -> Option<(&'static str, &'static str)> {
    let all = [
        ("dyno.climb/", "a climb", "dyno report FILE"),
        ("dyno.causal/", "a causal profile", "dyno report FILE"),
        ("dyno.load/", "a load", "dyno report FILE"),
        ("dyno.diagnosis/", "a diagnosis", "dyno report FILE"),
        ("dyno.audit/", "an audit", "dyno report FILE"),
        ("dyno.difference/", "a comparison", "dyno report FILE"),
        ("dyno.profile/", "a profile", "dyno flame FILE"),
        ("dyno.facts/", "the facts of a host", "dyno audit --from FILE"),
        ("dyno.seen/", "what a diagnosis saw", "dyno diagnose --from FILE"),
        ("dyno.history/", "the history of a folder", "dyno compare FOLDER"),
        ("dyno.numbers/", "two lists of numbers compared", "dyno judge A B"),
        ("dyno.judged/", "a climb judged again", "dyno judge CLIMB"),
        ("dyno.plan/", "a plan of host settings", "dyno tune apply --help"),
        ("dyno.snapshot/", "a snapshot of host settings", "dyno tune diff FILE"),
    ];
    all.iter().find(|(family, ..)| schema.starts_with(family)).map(|(_, what, verb)| (*what, *verb))
}

/// A record that is plain data under one schema.
struct Plain<'t> {
    path: &'t Path,
    text: &'t str,
    schema: &'t str,
}

impl Plain<'_> {
    fn read<T: serde::de::DeserializeOwned>(&self, wanted: &str, again: &str) -> Result<T, Failure> {
        let name = file::name(self.path);
        if self.schema != wanted {
            let what = format!("{name}: the record's schema is \"{}\"", visible(self.schema));
            return Err(Failure::error(what)
                .likely(format!("another version of dyno wrote it; this one knows {wanted}"))
                .try_this("the dyno that wrote it, or a newer one"));
        }
        sane::read(self.text).map_err(|error| {
            let failure = Failure::error(format!("{name}: {error}"));
            let likely = match error {
                ReadError::Impossible(_) => BY_HAND,
                ReadError::Shape { .. } => "it is cut or damaged",
            };
            failure.likely(likely).try_this(again)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(text: &str) -> String {
        Record::read(Path::new("x.json"), text).map(|_| ()).unwrap_err().lines()
    }

    /// Fault: whatever is no record is told as a broken climb, and a climb as the remedy.
    #[test]
    fn what_is_no_record_is_not_told_as_a_climb() {
        for text in ["", "garbage", "{}", "[1,2"] {
            let lines = refused(text);
            assert!(lines.starts_with("error: x.json is no record of dyno"), "{lines}");
            assert!(!lines.contains("dyno climb"), "{lines}");
        }
    }

    /// Fault: a schema that is read from whole texts alone.
    #[test]
    fn a_record_that_is_cut_short_keeps_its_kind() {
        assert!(refused("{\"schema\": \"dyno.load/1\", \"vers").contains("try:    dyno load URL"), "a load");
        assert!(refused("{\"schema\":\"dyno.climb/2\",\"vers").contains("not a climb record"), "a climb");
    }

    #[test]
    fn every_record_that_is_drawn_here_is_known_to_other_verbs() {
        for schema in
            [CLIMB_SCHEMA, CAUSAL_SCHEMA, DIAGNOSIS_SCHEMA, LOAD_SCHEMA, AUDIT_SCHEMA, DIFFERENCE_SCHEMA]
        {
            assert_eq!(verb_of(schema).map(|(_, verb)| verb), Some("dyno report FILE"), "{schema}");
        }
    }
}
