//! A record as checks that passed, failed or were passed over: what runners of tests and workflows know.

use dyno_record::audit::{Audit, Level};
use dyno_record::climb::{Climb, Rung, RungVerdict};
use dyno_record::condition::Held;
use dyno_record::diagnosis::Diagnosis;
use dyno_record::difference::{Delta, Difference, Verdict};
use dyno_record::figure::{Better, Figure, Sheet, Unit};
use dyno_record::finding::Confidence;
use dyno_record::judged::{Again, Judged};
use dyno_record::load::LoadRun;

use super::subject::Subject;
use crate::{figures, number};

/// What came of a check, each with its reason or figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed(String),
    /// No failure, and worth a look.
    Noted(String),
    Failed(String),
    Skipped(String),
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    /// What it is one of: `rung`, `condition`.
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

/// All of a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Checks {
    pub(super) name: String,
    /// The answer in a line.
    pub(super) headline: String,
    pub(super) seconds: f64,
    pub(super) cases: Vec<Case>,
    pub(super) warnings: Vec<String>,
}

/// The checks of a record, and the conditions that were held against it.
pub(super) fn of(subject: Subject<'_>, held: &[Held]) -> Checks {
    let checks = match subject {
        Subject::Climb(climb) => of_climb(climb),
        Subject::Judged(judged) => of_judged(judged),
        Subject::Difference(difference) => of_difference(difference),
        Subject::Numbers(sheet, answer) => of_numbers(sheet, answer),
        Subject::Load(run, failed) => of_load(run, failed),
        Subject::Diagnosis(record, least) => of_diagnosis(record, least),
        Subject::Audit(audit, least) => of_audit(audit, least),
    };
    let conditions = held.iter().map(condition);
    Checks { cases: conditions.chain(checks.cases).collect(), ..checks }
}

fn case(group: &'static str, name: impl Into<String>, outcome: Outcome) -> Case {
    Case { group, name: name.into(), outcome }
}

fn condition(held: &Held) -> Case {
    let said = figures::held(held);
    let outcome = match (held.met, held.crosses) {
        (false, _) => Outcome::Failed(said),
        (true, true) => Outcome::Noted(said),
        (true, false) => Outcome::Passed(said),
    };
    case("condition", held.text.clone(), outcome)
}

fn of_climb(climb: &Climb) -> Checks {
    let headline = match &climb.total {
        Some(total) => format!("{} requests per CPU-second", number::times_with_interval(&total.gain)),
        None => "no total".to_owned(),
    };
    let cut = climb
        .cut_short
        .iter()
        .map(|why| format!("cut short: {}", why.strip_prefix("cut short: ").unwrap_or(why)));
    Checks {
        name: format!("dyno climb {}", climb.plan),
        headline,
        seconds: climb.duration_s,
        cases: climb.rungs.iter().map(rung).collect(),
        warnings: cut.chain(climb.warnings.iter().cloned()).collect(),
    }
}

fn rung(rung: &Rung) -> Case {
    let attempt = &rung.attempt;
    let step = || number::estimate(attempt.effect_percent, attempt.interval_percent);
    let confirmed =
        rung.leave_one_out.map(|effect| number::effect(effect.effect_percent, effect.interval_percent));
    let said = match attempt.verdict {
        RungVerdict::Kept => format!("kept {}", confirmed.unwrap_or_else(step)),
        verdict => format!("{} {} {}", verdict.words(), step(), attempt.why),
    };
    let outcome = match attempt.verdict {
        RungVerdict::Failed => Outcome::Failed(said),
        RungVerdict::NotPossible | RungVerdict::NotMeasured | RungVerdict::NotApplied => {
            Outcome::Skipped(said)
        }
        _ => Outcome::Passed(said),
    };
    case("rung", rung.id.clone(), outcome)
}

fn of_judged(judged: &Judged) -> Checks {
    let one = |one: &Again| {
        let again = one.again.map_or("nothing to judge", RungVerdict::words);
        let said = format!("stored {}, judged again {again}", one.stored.words());
        let outcome = match (one.again, one.differs()) {
            (None, _) => Outcome::Skipped(said),
            (_, true) => Outcome::Failed(said),
            (_, false) => Outcome::Passed(said),
        };
        case("verdict", one.rung.clone(), outcome)
    };
    let total = judged.total_follows.map(|follows| match follows {
        true => case("verdict", "total", Outcome::Passed("total and floor follow from their rounds".into())),
        false => {
            case("verdict", "total", Outcome::Failed("total or floor do not follow from their rounds".into()))
        }
    });
    Checks {
        name: "dyno judge".to_owned(),
        headline: format!("{}: {}", judged.file, crate::view::judged::conclusion(judged)),
        cases: judged.verdicts.iter().map(one).chain(total).collect(),
        ..Checks::default()
    }
}

/// A record judged again in rows: how many verdicts, and how many are not reached again.
pub(super) fn sheet_of_judged(judged: &Judged) -> Sheet {
    let figure = |one: &Again| {
        let differs = f64::from(u8::from(one.differs()));
        let figure = Figure::new(
            format!("rung.{}", one.rung),
            "verdicts that differ",
            (Unit::Count, Better::Lower),
            one.again.map(|_| differs),
        );
        figure.word(one.stored.words()).basis(one.again.map_or("nothing to judge", RungVerdict::words))
    };
    Sheet { kind: "judged", figures: judged.verdicts.iter().map(figure).collect(), ..Sheet::default() }
}

fn of_difference(record: &Difference) -> Checks {
    let why = &record.why;
    let said = format!("{} ({why})", record.verdict.words());
    let answer = match record.verdict {
        Verdict::Worse => Outcome::Failed(said.clone()),
        Verdict::NotJudged => Outcome::Skipped(said.clone()),
        Verdict::Differs => Outcome::Noted(said.clone()),
        Verdict::Better | Verdict::NoDifference => Outcome::Passed(said.clone()),
    };
    Checks {
        name: format!("dyno judge {}", record.kind),
        headline: format!("{} against {}: {said}", record.b.file, record.a.file),
        seconds: 0.0,
        cases: std::iter::once(case("answer", "B against A", answer))
            .chain(record.figures.iter().map(delta))
            .collect(),
        warnings: record.warnings.clone(),
    }
}

/// One figure alone is no failure: only the answer is, as in the exit status.
fn delta(delta: &Delta) -> Case {
    let effect = figures::change(delta.unit, delta.effect, delta.interval);
    let said = format!("{} {effect} {}", delta.verdict.words(), delta.why);
    let outcome = match delta.verdict {
        Verdict::Worse | Verdict::Differs => Outcome::Noted(said),
        Verdict::NotJudged => Outcome::Skipped(said),
        Verdict::Better | Verdict::NoDifference => Outcome::Passed(said),
    };
    case("figure", delta.name.clone(), outcome)
}

fn of_numbers(sheet: &Sheet, answer: &str) -> Checks {
    let one = |figure: &Figure| {
        let outcome = if figure.word == "worse" {
            Outcome::Failed(answer.into())
        } else {
            Outcome::Passed(answer.into())
        };
        case("answer", figure.what.clone(), outcome)
    };
    Checks {
        name: "dyno judge".to_owned(),
        headline: answer.to_owned(),
        cases: sheet.figures.iter().map(one).collect(),
        warnings: sheet.warnings.clone(),
        ..Checks::default()
    }
}

fn of_load(run: &LoadRun, failed: Option<&str>) -> Checks {
    let errors = run.errors.total();
    let said = format!(
        "{} right answers, {} errors",
        number::count(run.requests as f64),
        number::count(errors as f64)
    );
    let outcome = match (failed, errors) {
        (Some(why), _) => Outcome::Failed(why.to_owned()),
        (None, 0) => Outcome::Passed(said),
        (None, _) => Outcome::Noted(said),
    };
    let rate = number::count(run.requests_per_second);
    Checks {
        name: "dyno load".to_owned(),
        headline: format!(
            "{rate} requests per second, p99 {}",
            number::latency(run.latency_us.p99.unwrap_or(f64::NAN))
        ),
        seconds: run.duration_s,
        cases: vec![case("answers", run.request.clone(), outcome)],
        warnings: dyno_record::sheet::of_load(run).warnings,
    }
}

fn of_diagnosis(record: &Diagnosis, least: Option<Confidence>) -> Checks {
    let found = record.findings.iter().map(|finding| {
        let said = finding.summary.clone();
        let counts = least.is_some_and(|least| finding.confidence >= least);
        let outcome = if counts { Outcome::Failed(said) } else { Outcome::Noted(said) };
        case("finding", finding.class.name(), outcome)
    });
    let out = record
        .ruled_out
        .iter()
        .map(|out| case("ruled out", out.class.name(), Outcome::Passed(out.by.clone())));
    let unseen = record
        .not_looked_at
        .iter()
        .map(|one| case("not seen", one.what.clone(), Outcome::Skipped(one.why.clone())));
    Checks {
        name: format!("dyno diagnose {}", record.target.name),
        headline: format!("{} found", record.findings.len()),
        seconds: record.duration_s,
        cases: found.chain(out).chain(unseen).collect(),
        warnings: record.warnings.clone(),
    }
}

fn of_audit(audit: &Audit, least: Option<Level>) -> Checks {
    let found = audit.findings.iter().map(|finding| {
        let said = format!("{} Found: {}. Better: {}.", finding.title, finding.found, finding.recommended);
        let counts = least.is_some_and(|least| finding.level >= least);
        let outcome = if counts { Outcome::Failed(said) } else { Outcome::Noted(said) };
        case("finding", format!("{} {}", finding.id, finding.object), outcome)
    });
    let fine = audit.fine.iter().map(|one| case("fine", one.id.clone(), Outcome::Passed(one.found.clone())));
    let unseen = audit
        .not_looked_at
        .iter()
        .map(|one| case("not seen", one.id.clone(), Outcome::Skipped(one.why.clone())));
    Checks {
        name: "dyno audit".to_owned(),
        headline: match audit.saw_too_little() {
            true => crate::view::audit::too_little(audit),
            false => format!("{} found for {}", audit.findings.len(), audit.goal.name()),
        },
        seconds: audit.took_s,
        cases: found.chain(fine).chain(unseen).collect(),
        warnings: audit.warnings.clone(),
    }
}
