//! Two records of a kind held against each other: what differs, how sure that is, and what else changed.
//!
//! `dyno judge A B` writes it; its field names are an interface (docs/records.md). The records were made at different times:
//! no pair joins them, so that each figure pays with both intervals, and what changed on the machine forbids conclusions.

use dyno_measure::apart::{Known, apart, apart_in_one_start};
use dyno_measure::shares::by_chance;
use dyno_measure::units::percent_of_log;
use serde::{Deserialize, Serialize};

use crate::figure::{Better, Decides, Figure, Forbids, Sheet, Starts, Unit};
use crate::plan_text;
use crate::sheet::{FINAL_SETTING, REQUEST_BYTES, RIGHT_ANSWER, RUNG, STEP};

/// Name and number of this record's shape.
pub const DIFFERENCE_SCHEMA: &str = "dyno.difference/1";

/// Two records compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// [`DIFFERENCE_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// What both are: `climb`, `load`, `profile` or `diagnosis`.
    pub kind: String,
    /// The record before.
    pub a: Compared,
    /// The record after.
    pub b: Compared,
    /// B against A, by the figure that decides; `not_judged` where there is none, or where it must not be.
    pub verdict: Verdict,
    /// Why, in words.
    pub why: String,
    /// What else differs between them.
    pub changes: Vec<Change>,
    /// Every figure of both.
    pub figures: Vec<Delta>,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
}

/// One of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Its file.
    pub file: String,
    /// Its schema.
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
}

/// Something that is not the same in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What.
    pub what: String,
    /// How it was.
    pub a: String,
    /// How it is.
    pub b: String,
    /// What that forbids to conclude.
    pub forbids: Forbids,
}

/// What came of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// It differs, and what that is due to cannot be told.
    Differs,
    /// The intervals do not exclude that both are alike.
    NoDifference,
    /// It was not judged.
    NotJudged,
}

impl Verdict {
    /// As tables print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Differs => "differs",
            Verdict::NoDifference => "no difference seen",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// A figure of one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// None where it was not measured.
    pub value: Option<f64>,
    /// Its own interval.
    pub interval: Option<[f64; 2]>,
    /// The verdict beside it in its record.
    pub word: String,
}

/// A figure of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// Its name.
    pub name: String,
    /// What it is.
    pub what: String,
    /// What it counts.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// In A; none where A has no such figure.
    pub a: Option<Value>,
    /// In B.
    pub b: Option<Value>,
    /// B against A, percent; of shares: percentage points.
    pub effect: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it was not judged.
    pub why: String,
}

/// Two records that cannot be held against each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DifferenceError {
    /// One is a climb, the other a load.
    #[error("{} is a {}, {} is a {}", files[0], kinds[0], files[1], kinds[1])]
    Kinds {
        /// The files.
        files: [String; 2],
        /// What they are.
        kinds: [&'static str; 2],
    },
    /// They have different schemas.
    #[error("{} has the schema \"{}\", {} has \"{}\"", files[0], schemas[0], files[1], schemas[1])]
    Schemas {
        /// The files.
        files: [String; 2],
        /// What they say.
        schemas: [String; 2],
    },
    /// Two climbs of different plans.
    #[error("{} is of \"{}\", {} is of \"{}\"", files[0], plans[0], files[1], plans[1])]
    Plans {
        /// The files.
        files: [String; 2],
        /// What they climbed.
        plans: [String; 2],
    },
}

/// A sheet and the file that it is of.
#[derive(Debug, Clone, Copy)]
pub struct Named<'s> {
    /// The file.
    pub file: &'s str,
    /// Its sheet.
    pub sheet: &'s Sheet,
}

impl Difference {
    /// Holds B against A.
    ///
    /// # Errors
    /// When they are of different kinds, schemas or plans: no figure of one is a figure of the other.
    pub fn of(a: Named<'_>, b: Named<'_>, version: &str) -> Result<Self, DifferenceError> {
        same_shape(a, b)?;
        let changes = changes(a.sheet, b.sheet);
        let forbids = changes.iter().map(|change| change.forbids).max().unwrap_or(Forbids::Nothing);
        let names = names(a.sheet, b.sheet);
        let figures: Vec<Delta> =
            names.iter().filter_map(|name| delta(a.sheet, b.sheet, name, forbids)).collect();
        let (verdict, why) = answer(a.sheet, &figures, forbids, &changes);
        Ok(Self {
            schema: DIFFERENCE_SCHEMA.into(),
            version: version.into(),
            kind: a.sheet.kind.into(),
            a: compared(a),
            b: compared(b),
            verdict,
            why,
            changes,
            figures,
            warnings: warnings(a, b),
        })
    }

    /// As a sheet: B's changes against A in percent, by the same names.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let figure = |delta: &Delta| {
            let unit = if delta.unit == Unit::Share { Unit::Share } else { Unit::Percent };
            let what = format!("{}, B against A", delta.what);
            let figure =
                Figure::new(&delta.name, what, (unit, delta.better), delta.effect).within(delta.interval);
            Figure { alone: delta.unit, ..figure.word(delta.verdict.words()).basis(&delta.why) }
        };
        Sheet {
            kind: "difference",
            schema: self.schema.clone(),
            version: self.version.clone(),
            started_unix_s: self.b.started_unix_s,
            figures: self.figures.iter().map(figure).collect(),
            warnings: self.warnings.clone(),
            ..Sheet::default()
        }
    }
}

fn same_shape(a: Named<'_>, b: Named<'_>) -> Result<(), DifferenceError> {
    let files = || [a.file.to_owned(), b.file.to_owned()];
    if a.sheet.kind != b.sheet.kind {
        return Err(DifferenceError::Kinds { files: files(), kinds: [a.sheet.kind, b.sheet.kind] });
    }
    if a.sheet.schema != b.sheet.schema {
        let schemas = [a.sheet.schema.clone(), b.sheet.schema.clone()];
        return Err(DifferenceError::Schemas { files: files(), schemas });
    }
    let plan = |sheet: &Sheet| condition(sheet, "plan").unwrap_or_default();
    let plans = [plan(a.sheet), plan(b.sheet)];
    if plans[0] != plans[1] {
        return Err(DifferenceError::Plans { files: files(), plans });
    }
    Ok(())
}

fn condition(sheet: &Sheet, what: &str) -> Option<String> {
    sheet.conditions.iter().find(|one| one.what == what).map(|one| one.value.clone())
}

fn compared(named: Named<'_>) -> Compared {
    let Sheet { schema, version, started_unix_s, cut_short, .. } = named.sheet;
    Compared {
        file: named.file.to_owned(),
        schema: schema.clone(),
        version: version.clone(),
        started_unix_s: *started_unix_s,
        cut_short: cut_short.clone(),
    }
}

/// What is not the same in both, what forbids the most first.
#[must_use]
pub fn changes(a: &Sheet, b: &Sheet) -> Vec<Change> {
    let change = |one: &crate::figure::Condition| {
        let (was, now) = (one.value.as_str(), condition(b, one.what));
        // Older records do not say what was asked and expected to the last byte.
        let is_told = [was, now.as_deref().unwrap_or_default()].iter().all(|told| !told.is_empty());
        if [REQUEST_BYTES, RIGHT_ANSWER].contains(&one.what) && !is_told {
            return None;
        }
        let now = now.unwrap_or_default();
        // Of a dozen dials those are told that ended elsewhere.
        let (a, b) = match one.what {
            FINAL_SETTING => (beyond(was, &now), beyond(&now, was)),
            _ => (was.to_owned(), now.clone()),
        };
        (now != was).then(|| Change { what: one.what.into(), a, b, forbids: one.forbids })
    };
    // A name that is another text may be what was changed on purpose, and is then the cause.
    let texts = plan_text::changed(&a.texts, &b.texts).into_iter();
    let texts = texts.map(|one| Change { what: one.name, a: one.a, b: one.b, forbids: Forbids::Cause });
    let mut changes: Vec<Change> = a.conditions.iter().filter_map(change).chain(texts).collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.forbids));
    changes
}

/// Words of one that the other has not.
fn beyond(one: &str, other: &str) -> String {
    let others: Vec<&str> = other.split(' ').collect();
    one.split(' ').filter(|word| !others.contains(word)).collect::<Vec<_>>().join(" ")
}

/// Every figure of A, then those of B alone. Steps are said where they are all that is known of a rung.
fn names(a: &Sheet, b: &Sheet) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in a.figures.iter().chain(&b.figures) {
        if !names.contains(&figure.name) && !figure.name.starts_with(STEP) {
            names.push(figure.name.clone());
        }
    }
    names
}

fn delta(a: &Sheet, b: &Sheet, name: &str, forbids: Forbids) -> Option<Delta> {
    let (mut of_a, mut of_b) = (a.figure(name), b.figure(name));
    let mut note = "";
    // A confirmed gain and a step's own figure are two figures: then both steps are compared.
    if let (Some(one), Some(other), Some(rung)) = (of_a, of_b, name.strip_prefix(RUNG)) {
        let step = format!("{STEP}{rung}");
        if one.basis != other.basis && one.value.is_some() && other.value.is_some() {
            (of_a, of_b) = (a.figure(&step), b.figure(&step));
            note = "both steps' own figures: not both are confirmed";
        }
    }
    let any = of_a.or(of_b)?;
    // A kind of errors that neither has is no news.
    let none = |figure: Option<&Figure>| figure.is_some_and(|figure| figure.value == Some(0.0));
    if any.unit == Unit::Count && name.contains('.') && none(of_a) && none(of_b) {
        return None;
    }
    let word = |figure: Option<&Figure>| figure.map(|figure| figure.word.clone());
    let measured = |figure: Option<&Figure>| figure.is_some_and(|figure| figure.value.is_some());
    // That the figure which decides is missing in both is the answer.
    let decides = any.decides == Decides::Verdict;
    if !decides && !measured(of_a) && !measured(of_b) && word(of_a) == word(of_b) {
        return None;
    }
    let (effect, interval, verdict, why) = judged(of_a, of_b, forbids, a.starts);
    let value =
        |figure: &Figure| Value { value: figure.value, interval: figure.interval, word: figure.word.clone() };
    Some(Delta {
        name: name.to_owned(),
        what: any.what.clone(),
        unit: any.unit,
        better: any.better,
        a: of_a.map(value),
        b: of_b.map(value),
        effect,
        interval,
        verdict,
        why: [note.to_owned(), why]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    })
}

type Judged = (Option<f64>, Option<[f64; 2]>, Verdict, String);

/// Why a figure is not judged, before anything is computed.
fn unjudged(a: &Figure, b: &Figure, forbids: Forbids) -> Option<String> {
    let steps = |figure: &Figure| figure.basis.split(", ").skip(1).collect::<Vec<_>>().join(", ");
    if a.unit == Unit::Percent && steps(a) != steps(b) {
        return Some("another metric or another load".into());
    }
    if let Some(changed) = plan_text::changed(&a.of, &b.of).first() {
        return Some(changed.to_string());
    }
    match forbids {
        Forbids::All => Some("what was measured is not the same".into()),
        Forbids::Absolute if a.unit.is_absolute() => Some("another machine".into()),
        _ if a.better == Better::Neither => Some(String::new()),
        _ => None,
    }
}

fn judged(a: Option<&Figure>, b: Option<&Figure>, forbids: Forbids, starts: Starts) -> Judged {
    let (Some(a), Some(b)) = (a, b) else {
        let only = if a.is_some() { "only in A" } else { "only in B" };
        return (None, None, Verdict::NotJudged, only.into());
    };
    let (Some(was), Some(is)) = (a.value, b.value) else {
        let missing: Vec<&str> =
            [("A", a), ("B", b)].iter().filter(|(_, f)| f.value.is_none()).map(|(side, _)| *side).collect();
        return (None, None, Verdict::NotJudged, format!("not measured in {}", missing.join(" and ")));
    };
    let why = unjudged(a, b, forbids);
    if let Some(broken) = broken(a, b).filter(|_| why.is_none()) {
        return (plain(a.unit, was, is), None, Verdict::Worse, broken);
    }
    let known = known(a).zip(known(b));
    let told = known.map(|(a, b)| if starts == Starts::One { apart_in_one_start(a, b) } else { apart(a, b) });
    let Some(told) = told else {
        let why = why.unwrap_or_else(|| no_interval(a, b));
        return (plain(a.unit, was, is), None, Verdict::NotJudged, why);
    };
    let effect = Some(percent_of_log(told.log));
    let interval = Some([told.log - told.half_width, told.log + told.half_width].map(percent_of_log));
    if let Some(why) = why {
        return (effect, interval, Verdict::NotJudged, why);
    }
    let verdict = match (told.log.abs() > told.half_width, told.log > 0.0, a.better) {
        (false, ..) => Verdict::NoDifference,
        (true, ..) if forbids == Forbids::Absolute => Verdict::Differs,
        (true, true, Better::Higher) | (true, false, Better::Lower) => Verdict::Better,
        _ => Verdict::Worse,
    };
    let why =
        if verdict == Verdict::Differs { "another machine: whose doing it is cannot be told" } else { "" };
    (effect, interval, verdict, why.into())
}

/// Chance by which errors are called more where they are not.
const MORE_ALPHA: f64 = 0.01;

/// What needs no interval: a surely larger share of errors, or no answer at all where the other side has some.
fn broken(a: &Figure, b: &Figure) -> Option<String> {
    let (was, is) = (a.value?, b.value?);
    if a.better == Better::Higher && a.unit == Unit::PerSecond && was > 0.0 && is == 0.0 {
        return Some("nothing was answered".to_owned());
    }
    if !a.decides.is_guard() || a.decides != b.decides {
        return None;
    }
    let (some, many) = ([was as u64, is as u64], [a.among?, b.among?]);
    let is_strict = a.decides == Decides::StrictGuard && was == 0.0 && is > 0.0;
    let is_more = is_strict || by_chance(some, many) < MORE_ALPHA;
    is_more.then(|| format!("{} of {} in A, {} of {} in B", some[0], many[0], some[1], many[1]))
}

/// Why a figure has no interval: what its record says of it, where both are not percentages, or that there is none.
fn no_interval(a: &Figure, b: &Figure) -> String {
    let said = [a, b].into_iter().find(|figure| figure.interval.is_none() && !figure.basis.is_empty());
    said.filter(|figure| figure.unit == Unit::PerSecond)
        .map_or("no interval".to_owned(), |figure| figure.basis.clone())
}

/// A figure on the scale of logarithms: a change in percent as the ratio that it is.
fn known(figure: &Figure) -> Option<Known> {
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    let (value, interval) = (figure.value?, figure.interval?);
    match figure.unit {
        Unit::Percent => Known::of(ratio(value), interval.map(ratio)),
        Unit::Share => None,
        _ => Known::of(value, interval),
    }
}

/// The change of figures without intervals.
fn plain(unit: Unit, was: f64, is: f64) -> Option<f64> {
    let change = match unit {
        Unit::Share => is - was,
        Unit::Percent => 100.0 * ((1.0 + is / 100.0) / (1.0 + was / 100.0) - 1.0),
        _ => 100.0 * (is / was - 1.0),
    };
    // From nothing to something is no percentage.
    change.is_finite().then_some(change)
}

fn answer(a: &Sheet, figures: &[Delta], forbids: Forbids, changes: &[Change]) -> (Verdict, String) {
    let deciding = a.figures.iter().find(|figure| figure.decides == Decides::Verdict);
    let Some(delta) = deciding.and_then(|one| figures.iter().find(|delta| delta.name == one.name)) else {
        return (Verdict::NotJudged, format!("no figure of a {} decides by itself", a.kind));
    };
    let guards = a.figures.iter().filter(|figure| figure.decides.is_guard());
    let mut tripped = guards.flat_map(|one| {
        figures.iter().find(|delta| delta.name == one.name && delta.verdict == Verdict::Worse)
    });
    if let Some(guard) = tripped.next() {
        return (Verdict::Worse, format!("by {}: {}", guard.name, guard.why));
    }
    let because = |least: Forbids| {
        let all = changes.iter().filter(|change| change.forbids >= least);
        all.map(|change| change.what.as_str()).collect::<Vec<_>>().join(", ")
    };
    let why = match (delta.verdict, forbids) {
        (_, Forbids::All) => format!("not the same work: {} differ", because(Forbids::All)),
        (Verdict::NotJudged, _) => format!("{}: {}", delta.name, delta.why),
        (_, Forbids::Absolute) => format!(
            "the machines differ ({}): times and rates are not compared, and whose doing a difference is cannot be told",
            because(Forbids::Absolute)
        ),
        (_, Forbids::Cause) => {
            format!("by {}; it may be due to what changed: {}", delta.name, because(Forbids::Cause))
        }
        (_, Forbids::Nothing) => format!("by {}", delta.name),
    };
    (delta.verdict, why)
}

fn warnings(a: Named<'_>, b: Named<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let seconds = b.sheet.started_unix_s.abs_diff(a.sheet.started_unix_s);
    if b.sheet.started_unix_s < a.sheet.started_unix_s {
        all.push(format!("B ({}) is older than A ({})", b.file, a.file));
    }
    if a.sheet.starts == Starts::One && matches!(a.sheet.kind, "load") {
        all.push("each side is one start of its server, and starts are supposed to differ by 2 %: below 7 % no difference is told; dyno climb measures what they differ by".into());
    }
    if a.sheet.kind == "climb" && seconds > 0 {
        all.push("the two were made at different times: what changed meanwhile and stands in no record is in no interval".into());
    }
    for (side, named) in [("A", a), ("B", b)] {
        let cut = named.sheet.cut_short.as_ref();
        let cut = cut.map(|why| why.strip_prefix("cut short: ").unwrap_or(why));
        let cut = cut.map(|why| format!("{side} ended early: {why}"));
        all.extend(cut);
        all.extend(named.sheet.warnings.iter().map(|warning| format!("{side}: {warning}")));
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::figure::Condition;
    use crate::plan_text::PlanText;

    fn sheet(total: f64, half: f64, model: &str) -> Sheet {
        let total = Figure::new("total", "gain", (Unit::Ratio, Better::Higher), Some(total));
        let total = Figure { interval: total.value.map(|v| [v - half, v + half]), ..total }.deciding();
        let cpu = Figure::new("cpu", "CPU", (Unit::Us, Better::Lower), Some(7.0)).within(Some([6.9, 7.1]));
        let p99 = Figure::new("p99", "tail", (Unit::Us, Better::Lower), Some(900.0));
        let conditions = vec![
            Condition::new("plan", "serve", Forbids::All),
            Condition::new("processor", model, Forbids::Absolute),
            Condition::new("load", "GET /", Forbids::All),
        ];
        let figures = vec![total, cpu, p99];
        Sheet { kind: "climb", schema: "dyno.climb/2".into(), conditions, figures, ..Sheet::default() }
    }

    fn of(a: &Sheet, b: &Sheet) -> Result<Difference, DifferenceError> {
        Difference::of(Named { file: "a", sheet: a }, Named { file: "b", sheet: b }, "0")
    }

    fn verdict(difference: &Difference, name: &str) -> Verdict {
        difference.figures.iter().find(|one| one.name == name).unwrap().verdict
    }

    #[test]
    fn a_difference_needs_both_intervals_to_exclude_it() {
        let a = sheet(2.0, 0.05, "x");
        assert_eq!(of(&a, &sheet(2.2, 0.05, "x")).unwrap().verdict, Verdict::Better);
        assert_eq!(of(&a, &sheet(1.8, 0.05, "x")).unwrap().verdict, Verdict::Worse);
        // Each alone excludes the other's estimate; together they do not.
        let near = of(&a, &sheet(2.06, 0.05, "x")).unwrap();
        assert_eq!((near.verdict, near.why.as_str()), (Verdict::NoDifference, "by total"));
    }

    #[test]
    fn without_an_interval_nothing_is_judged() {
        let one = of(&sheet(2.0, 0.05, "x"), &sheet(2.2, 0.05, "x")).unwrap();
        assert_eq!(verdict(&one, "p99"), Verdict::NotJudged);
        assert_eq!(verdict(&one, "cpu"), Verdict::NoDifference);
    }

    #[test]
    fn another_machine_forbids_times_and_causes() {
        let one = of(&sheet(2.0, 0.05, "x"), &sheet(1.5, 0.05, "y")).unwrap();
        assert_eq!((verdict(&one, "cpu"), verdict(&one, "total")), (Verdict::NotJudged, Verdict::Differs));
        assert_eq!(one.verdict, Verdict::Differs);
        assert!(one.why.contains("processor"), "{}", one.why);
        let mut other = sheet(1.5, 0.05, "x");
        other.conditions[2].value = "GET /other".into();
        let one = of(&sheet(2.0, 0.05, "x"), &other).unwrap();
        assert_eq!(
            (one.verdict, one.figures.iter().all(|f| f.verdict == Verdict::NotJudged)),
            (Verdict::NotJudged, true)
        );
    }

    #[test]
    fn what_has_another_shape_is_refused() {
        let a = sheet(2.0, 0.05, "x");
        let kind = Sheet { kind: "load", ..a.clone() };
        assert!(matches!(of(&a, &kind), Err(DifferenceError::Kinds { .. })));
        let schema = Sheet { schema: "dyno.climb/3".into(), ..a.clone() };
        assert!(matches!(of(&a, &schema), Err(DifferenceError::Schemas { .. })));
        let mut plan = a.clone();
        plan.conditions[0].value = "nginx".into();
        assert!(matches!(of(&a, &plan), Err(DifferenceError::Plans { .. })));
    }

    #[test]
    fn of_the_final_setting_those_dials_are_told_that_ended_elsewhere() {
        let (mut a, mut b) = (sheet(2.0, 0.05, "x"), sheet(2.0, 0.05, "x"));
        a.conditions.push(Condition::new(FINAL_SETTING, "send=joined log=sync edge=level", Forbids::Nothing));
        b.conditions.push(Condition::new(FINAL_SETTING, "send=joined log=ring edge=level", Forbids::Nothing));
        let change = &of(&a, &b).unwrap().changes[0];
        assert_eq!((change.a.as_str(), change.b.as_str()), ("log=sync", "log=ring"));
    }

    /// Planted fault: names are compared and not what they stand for.
    #[test]
    fn a_rung_whose_name_is_another_text_in_b_is_not_compared() {
        let with = |text: &str| {
            let means =
                |name: &str, text: &str| PlanText { name: name.into(), text: text.into(), start: false };
            let of = vec![means("log=off", text)];
            let rung = |name: &str| {
                Figure::new(name, "gain", (Unit::Percent, Better::Lower), Some(-9.0))
                    .within(Some([-9.5, -8.5]))
            };
            let mut sheet = sheet(2.0, 0.05, "x");
            sheet.figures.extend([rung("rung.log-off").of(of.clone()), rung("rung.edge")]);
            Sheet { texts: of, ..sheet }
        };
        let (a, b) = (with("access_log off;"), with("access_log /dev/null;"));
        let one = of(&a, &b).unwrap();
        assert_eq!(
            (verdict(&one, "rung.log-off"), verdict(&one, "rung.edge")),
            (Verdict::NotJudged, Verdict::NoDifference)
        );
        let why = &one.figures.iter().find(|one| one.name == "rung.log-off").unwrap().why;
        assert_eq!(why, "`log=off` is not the same in both: access_log off; / access_log /dev/null;");
        assert!(
            one.changes.iter().any(|change| change.what == "log=off" && change.forbids == Forbids::Cause)
        );
        assert_eq!(verdict(&of(&a, &a).unwrap(), "rung.log-off"), Verdict::NoDifference);
        let older = Sheet { texts: Vec::new(), figures: sheet(2.0, 0.05, "x").figures, ..a.clone() };
        assert!(of(&older, &b).unwrap().changes.is_empty(), "an older record says nothing of texts");
    }

    #[test]
    fn a_confirmed_gain_is_not_compared_with_a_step() {
        let rung = |name: &str, value: f64, basis: &str| {
            let figure = Figure::new(name, "gain", (Unit::Percent, Better::Lower), Some(value));
            figure.within(Some([value - 1.0, value + 1.0])).basis(basis)
        };
        let mut a = sheet(2.0, 0.05, "x");
        let mut b = a.clone();
        a.figures.extend([rung("rung.edge", -30.0, "confirmed, CPU"), rung("step.edge", -10.0, "step, CPU")]);
        b.figures.extend([rung("rung.edge", -10.0, "step, CPU"), rung("step.edge", -10.0, "step, CPU")]);
        let one = of(&a, &b).unwrap();
        let edge = one.figures.iter().find(|one| one.name == "rung.edge").unwrap();
        assert_eq!((edge.verdict, edge.effect), (Verdict::NoDifference, Some(0.0)));
        assert!(edge.why.contains("steps' own") && one.figures.iter().all(|one| one.name != "step.edge"));
    }
}
