//! Two records of a kind held against each other. What may be said of them is `dyno_record::difference`'s.

use std::path::Path;
use std::process::ExitCode;

use dyno_lab::{Failure, file};
use dyno_record::causal::CAUSAL_SCHEMA;
use dyno_record::climb::{CLIMB_SCHEMA, Climb};
use dyno_record::diagnosis::Diagnosis;
use dyno_record::difference::{Difference, DifferenceError, Named, Verdict};
use dyno_record::figure::{Figure, Sheet, Unit};
use dyno_record::finding::DIAGNOSIS_SCHEMA;
use dyno_record::load::{LOAD_SCHEMA, LoadRun};
use dyno_record::profile::{PROFILE_SCHEMA, Profile, ProfileError};
use dyno_record::sane::{self, ReadError};
use dyno_record::sheet::{of_climb, of_diagnosis, of_load};
use dyno_record::visible::visible;
use dyno_report::export::Subject;

use super::side::Input;
use super::written::{exported, json};
use crate::cli::{self, Format};
use crate::cmd::{exit, gate};
use crate::out;

/// What a text says of itself, when it is a record of ours.
pub(super) fn schema(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let head: Head = serde_json::from_str(text).ok()?;
    head.schema.starts_with("dyno.").then_some(head.schema)
}

/// Runs the verb on two records.
pub(super) fn run(
    args: &cli::Judge,
    conditions: &gate::Conditions,
    [a, b]: [&Input; 2],
) -> Result<ExitCode, Failure> {
    only_for_numbers(args)?;
    if let (Some(html), Some(other)) = (&args.html, &args.b) {
        file::not_over(&[&args.a, other], html)?;
    }
    let sheets = [sheet(a)?, sheet(b)?];
    let named = |input: &'_ Input, sheet| (visible(&input.name), sheet);
    let [(file_a, sheet_a), (file_b, sheet_b)] = [named(a, &sheets[0]), named(b, &sheets[1])];
    let sides = (Named { file: &file_a, sheet: sheet_a }, Named { file: &file_b, sheet: sheet_b });
    let record =
        Difference::of(sides.0, sides.1, env!("CARGO_PKG_VERSION")).map_err(|error| unlike(&error))?;
    let held = conditions.hold(&with_unmeasured(record.sheet(), &sheets))?;
    let subject = Subject::Difference(&record);
    let page = || dyno_report::page::difference::render(&record);
    let to_stdout = args.html.as_ref().is_some_and(|path| path.as_os_str() == "-");
    out::print(&match args.format.wanted(cli::Json::of(args.json)) {
        _ if to_stdout => page(),
        Format::Json => json(&record)?,
        Format::Table => {
            dyno_report::text::difference(&record, out::terminal_width(), args.color.on_stdout())
        }
        other => exported(other, subject, &held),
    })?;
    if let Some(path) = args.html.as_ref().filter(|_| !to_stdout) {
        file::write_file(path, page().as_bytes(), dyno_lab::user::caller())?;
        out::say(&format!("report    {}\n", path.display()));
    }
    let met = gate::told(&held);
    Ok(if record.verdict == Verdict::Worse || !met { ExitCode::from(exit::NO) } else { exit::DONE })
}

/// The figures of both, those with that neither measured: a condition on one of them is not met, and no mistake.
fn with_unmeasured(mut of_both: Sheet, sides: &[Sheet; 2]) -> Sheet {
    for figure in sides.iter().flat_map(|side| &side.figures) {
        if figure.value.is_none() && of_both.figure(&figure.name).is_none() {
            // As of those that were measured: a share's change is in points, any other in percent.
            let unit = if figure.unit == Unit::Share { Unit::Share } else { Unit::Percent };
            let missing = Figure::new(&figure.name, &figure.what, (unit, figure.better), None);
            let missing = missing.basis("not measured in A and B");
            of_both.figures.push(Figure { alone: figure.unit, ..missing });
        }
    }
    of_both
}

fn only_for_numbers(args: &cli::Judge) -> Result<(), Failure> {
    let flags = [("--unpaired", args.unpaired), ("--higher", args.higher), ("--name", !args.name.is_empty())];
    match flags.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Failure::usage(format!("{flag} is for lists of numbers, and two records are given"))
                .likely("records say themselves what is better, and are never paired")
                .try_this("dyno judge A B"))
        }
    }
}

fn unlike(error: &DifferenceError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        DifferenceError::Kinds { .. } => failure
            .likely("records of two kinds have no figure in common")
            .try_this("two climbs, two loads, two profiles or two diagnoses"),
        DifferenceError::Schemas { .. } => failure
            .likely("two versions of dyno wrote them, and a figure may mean another thing")
            .try_this("measure again with one version"),
        DifferenceError::Plans { .. } => failure
            .likely("another plan has another start, and other rungs")
            .try_this("two climbs of one plan; dyno compare DIR keeps plans apart"),
    }
}

/// Reads a record of a kind that can be compared.
fn sheet(input: &Input) -> Result<Sheet, Failure> {
    let schema = schema(&input.text).unwrap_or_default();
    let family = schema.split('/').next().unwrap_or_default();
    let known = [CLIMB_SCHEMA, LOAD_SCHEMA, PROFILE_SCHEMA, DIAGNOSIS_SCHEMA];
    let of = |family: &str| known.iter().find(|one| one.split('/').next() == Some(family)).copied();
    let Some(wanted) = of(family) else { return Err(not_compared(input, &schema)) };
    if schema != wanted && family != "dyno.climb" {
        return Err(other_version(input, &schema, wanted));
    }
    match wanted {
        CLIMB_SCHEMA => crate::cmd::report::climb_record(Path::new(&input.path), &input.text)
            .map(|climb: Climb| of_climb(&climb)),
        LOAD_SCHEMA => parsed::<LoadRun>(input).map(|run| of_load(&run)),
        DIAGNOSIS_SCHEMA => parsed::<Diagnosis>(input).map(|record| of_diagnosis(&record)),
        _ => Profile::from_json(&input.text)
            .map(|profile| dyno_profile::sheet::of_profile(&profile))
            .map_err(|error| {
                let failure = Failure::error(format!("{}: {error}", input.name)).because(&error);
                let impossible = matches!(error, ProfileError::Impossible(_));
                let likely = if impossible { crate::cmd::report::BY_HAND } else { "it is damaged" };
                failure.likely(likely).try_this("dyno profile PID -o profile.json")
            }),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(input: &Input) -> Result<T, Failure> {
    sane::read(&input.text).map_err(|error| {
        let failure = Failure::error(format!("{}: {error}", input.name));
        match error {
            ReadError::Impossible(_) => failure
                .likely(crate::cmd::report::BY_HAND)
                .try_this("measure again, and keep the record as it is written"),
            ReadError::Shape { .. } => {
                failure.likely("the record is cut or damaged").try_this("python3 -m json.tool FILE")
            }
        }
    })
}

fn other_version(input: &Input, schema: &str, wanted: &str) -> Failure {
    Failure::error(format!("{}: the record's schema is \"{}\"", input.name, visible(schema)))
        .likely(format!("another version of dyno wrote it; this one knows {wanted}"))
        .try_this("the dyno that wrote it, or a newer one")
}

fn not_compared(input: &Input, schema: &str) -> Failure {
    let name = &input.name;
    let failure = Failure::usage(format!("{name} is \"{}\", which is not compared", visible(schema)));
    let failure = failure.likely("climbs, loads, profiles and diagnoses are");
    match schema == CAUSAL_SCHEMA {
        true => failure.try_this(format!("dyno report {name}")),
        false => failure.try_this("dyno judge --help"),
    }
}
