//! A climb's record judged again: every trial in it through the same judge with the same rules.
//!
//! A verdict that rests on measurements must follow from them; one that rests on what was seen at the time (not possible,
//! not applied, not measured, failed) has nothing in the record to judge and is passed on.

use crate::out;
use std::process::ExitCode;

use dyno_measure::judge::{self, Verdict};
use dyno_record::climb::{Attempt, Climb, Rung, RungVerdict};
use dyno_record::judged::{Again, JUDGED_SCHEMA, Judged};
use dyno_record::ratios::Ratios;
use dyno_record::sheet::of_climb;
use dyno_record::trial::Compared;

use super::numbers::Numbers;
use super::written::{exported, json};
use crate::cli::{self, Format};
use crate::cmd::{exit, gate, report};
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::export::Subject;
use dyno_report::number::visible;

/// Runs the verb on one record.
pub(super) fn run(args: &cli::Judge, conditions: &gate::Conditions) -> Result<ExitCode, Failure> {
    only_for_two_files(args)?;
    let climb = report::record(&args.a).map_err(|failure| alone(args).unwrap_or(failure))?;
    let held = conditions.hold(&of_climb(&climb))?;
    let verdicts = lines(&climb).map_err(|what| {
        let failure = Failure::error(format!("{}: {what}", file::name(&args.a)));
        failure.likely("the record is damaged, or was shortened").try_this("dyno climb -o climb.json")
    })?;
    let record = Judged {
        schema: JUDGED_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        file: file::name(&args.a),
        verdicts,
        total_follows: Ratios::follow(&climb),
    };
    out::print(&match args.format.wanted(cli::Json::of(args.json)) {
        Format::Json => json(&record)?,
        Format::Table => dyno_report::text::judged(&record, out::terminal_width(), args.color.on_stdout()),
        other => exported(other, Subject::Judged(&record), &held),
    })?;
    let met = gate::told(&held);
    Ok(if record.holds() && met { exit::DONE } else { ExitCode::from(exit::NO) })
}

fn only_for_two_files(args: &cli::Judge) -> Result<(), Failure> {
    let flags = [("--unpaired", args.unpaired), ("--higher", args.higher), ("--name", !args.name.is_empty())];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            let failure = Failure::usage(format!("{flag} compares two files, and one is given"));
            Err(failure.likely("a record alone is judged by its own rules").try_this("dyno judge A B"))
        }
        None => Ok(()),
    }
}

/// Numbers without others to compare them with: the second file was forgotten.
fn alone(args: &cli::Judge) -> Option<Failure> {
    // Standard input cannot be read a second time.
    let is_numbers = args.a.as_os_str() != "-" && Numbers::read(&args.a, None).is_ok();
    is_numbers.then(|| {
        let name = visible(&file::name(&args.a));
        Failure::usage(format!("{name} holds numbers, and there is nothing to compare them with"))
            .likely("a second file is missing")
            .try_this(format!("dyno judge {name} B"))
    })
}

fn lines(climb: &Climb) -> Result<Vec<Again>, String> {
    let mut lines = Vec::new();
    for rung in &climb.rungs {
        if let Some(first) = &rung.first_attempt {
            let again = step(climb, rung, first)?;
            lines.push(Again { rung: format!("{} (first try)", rung.id), stored: first.verdict, again });
        }
        lines.push(Again { rung: rung.id.clone(), stored: rung.attempt.verdict, again: whole(climb, rung)? });
    }
    Ok(lines)
}

/// The verdict of a rung's last try: its step, and where that was kept, the dial turned back.
fn whole(climb: &Climb, rung: &Rung) -> Result<Option<RungVerdict>, String> {
    let Some(again) = step(climb, rung, &rung.attempt)? else { return Ok(None) };
    if again != RungVerdict::Kept {
        return Ok(Some(again));
    }
    if rung.leave_one_out.is_none() {
        // It could not be confirmed, or the climb ended before it came to that: nothing was measured to say more.
        let unconfirmed = rung.attempt.verdict == RungVerdict::Unconfirmed;
        return Ok(Some(if unconfirmed { RungVerdict::Unconfirmed } else { again }));
    }
    let Some(id) = &rung.leave_one_out_trial else {
        return Err(format!("\"{}\" was confirmed without a trial", visible(&rung.id)));
    };
    let compared = find(climb, id)?;
    let judged = judge::cut_short(&compared.trial, &compared.rule, climb.seed);
    let confirmed = judged.filter(|judged| judged.verdict == Verdict::Better && judged.veto.is_none());
    Ok(Some(match confirmed {
        Some(judged) => better(climb, rung, judged.estimate.percent()),
        None => RungVerdict::Unconfirmed,
    }))
}

/// Kept, where the gain is worth its risk.
fn better(climb: &Climb, rung: &Rung, effect_percent: f64) -> RungVerdict {
    let bundle = climb.rungs.iter().filter(|other| rung.bundle.contains(&other.id));
    let worth = std::iter::once(rung).chain(bundle).all(|one| climb.is_worth(&one.risk, effect_percent));
    if worth { RungVerdict::Kept } else { RungVerdict::NotWorthwhile }
}

/// What a try's trial says; `None` when its verdict does not come from one.
fn step(climb: &Climb, rung: &Rung, attempt: &Attempt) -> Result<Option<RungVerdict>, String> {
    use RungVerdict::{Kept, NoDifference, NotWorthwhile, Reverted, Unconfirmed};
    if !matches!(attempt.verdict, Kept | Reverted | NotWorthwhile | NoDifference | Unconfirmed) {
        return Ok(None);
    }
    let Some(id) = &attempt.trial else {
        return Err(format!("a verdict \"{}\" without a trial", attempt.verdict.words()));
    };
    let compared = find(climb, id)?;
    let judged = judge::cut_short(&compared.trial, &compared.rule, climb.seed);
    Ok(Some(judged.map_or(RungVerdict::NotMeasured, |judged| match (judged.verdict, judged.veto) {
        (Verdict::Better, None) => better(climb, rung, judged.estimate.percent()),
        (Verdict::Better, Some(_)) | (Verdict::Worse, _) => Reverted,
        (Verdict::NoDifference, _) => NoDifference,
    })))
}

/// A trial whose every block had an answer: without one there is no ratio, and the judge has nothing to go by.
fn find<'c>(climb: &'c Climb, id: &str) -> Result<&'c Compared, String> {
    let compared = climb.trial(id).ok_or_else(|| format!("the trial \"{}\" is not in it", visible(id)))?;
    let trial = &compared.trial;
    let values = trial.pairs.iter().flat_map(|pair| [pair.a.value(trial.metric), pair.b.value(trial.metric)]);
    match values.into_iter().all(|value| value.is_finite() && value > 0.0) {
        true => Ok(compared),
        false => Err(format!("the trial \"{}\" has a block without a figure", visible(id))),
    }
}
