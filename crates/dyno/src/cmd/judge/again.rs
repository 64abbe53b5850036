//! A climb's record judged again: every trial in it through the same judge with the same rules.
//!
//! A verdict that rests on measurements must follow from them; one that rests on what was seen at the time (not possible,
//! not applied, not measured, failed) has nothing in the record to judge and is passed on.

use crate::out;
use std::process::ExitCode;

use dyno_measure::judge::{self, Verdict};
use dyno_record::climb::{Attempt, Climb, Rung, RungVerdict};
use dyno_record::ratios::Ratios;
use dyno_record::trial::Compared;
use serde::Serialize;

use super::numbers::Numbers;
use crate::cli;
use crate::cmd::exit;
use crate::cmd::report;
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::number::{NAME_COLUMNS_MAX, visible};

/// One verdict of the record, and what its measurements say.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    rung: String,
    stored: RungVerdict,
    /// `None` when there is nothing to judge.
    again: Option<RungVerdict>,
}

impl Line {
    fn differs(&self) -> bool {
        self.again.is_some_and(|again| again != self.stored)
    }
}

/// Runs the verb on one record.
pub(super) fn run(args: &cli::Judge) -> Result<ExitCode, Failure> {
    only_for_two_files(args)?;
    let climb = report::record(&args.a).map_err(|failure| alone(args).unwrap_or(failure))?;
    let lines = lines(&climb).map_err(|what| {
        let failure = Failure::error(format!("{}: {what}", file::name(&args.a)));
        failure.likely("the record is damaged, or was shortened").try_this("dyno climb -o climb.json")
    })?;
    let follows = Ratios::follow(&climb);
    let text = match args.json {
        true => serde_json::to_string(&lines).map(|text| text + "\n"),
        false => Ok(table(&lines) + total_in_words(follows)),
    };
    out::print(&text.map_err(|error| Failure::error("cannot write JSON").because(&error))?)?;
    let differing = lines.iter().filter(|line| line.differs()).count();
    Ok(if differing == 0 && follows != Some(false) { exit::DONE } else { ExitCode::from(exit::NO) })
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

fn lines(climb: &Climb) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for rung in &climb.rungs {
        if let Some(first) = &rung.first_attempt {
            let again = step(climb, first)?;
            lines.push(Line { rung: format!("{} (first try)", rung.id), stored: first.verdict, again });
        }
        lines.push(Line { rung: rung.id.clone(), stored: rung.attempt.verdict, again: whole(climb, rung)? });
    }
    Ok(lines)
}

/// The verdict of a rung's last try: its step, and where that was kept, the dial turned back.
fn whole(climb: &Climb, rung: &Rung) -> Result<Option<RungVerdict>, String> {
    let Some(again) = step(climb, &rung.attempt)? else { return Ok(None) };
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
    let confirmed = judged.is_some_and(|judged| judged.verdict == Verdict::Better && judged.veto.is_none());
    Ok(Some(if confirmed { RungVerdict::Kept } else { RungVerdict::Unconfirmed }))
}

/// What a try's trial says; `None` when its verdict does not come from one.
fn step(climb: &Climb, attempt: &Attempt) -> Result<Option<RungVerdict>, String> {
    use RungVerdict::{Kept, NoDifference, Reverted, Unconfirmed};
    if !matches!(attempt.verdict, Kept | Reverted | NoDifference | Unconfirmed) {
        return Ok(None);
    }
    let Some(id) = &attempt.trial else {
        return Err(format!("a verdict \"{}\" without a trial", attempt.verdict.words()));
    };
    let compared = find(climb, id)?;
    let judged = judge::cut_short(&compared.trial, &compared.rule, climb.seed);
    Ok(Some(judged.map_or(RungVerdict::NotMeasured, |judged| match (judged.verdict, judged.veto) {
        (Verdict::Better, None) => Kept,
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

fn table(lines: &[Line]) -> String {
    let names: Vec<String> = lines.iter().map(|line| visible(&line.rung)).collect();
    let rung = names.iter().map(|name| name.chars().count()).chain(["rung".len()]).max().unwrap_or(0);
    let rung = rung.min(NAME_COLUMNS_MAX);
    // The head of its column is longer than every verdict.
    let stored = "stored verdict".len();
    let mut out = format!("  {:rung$}   stored verdict   judged again\n", "rung");
    for (line, name) in lines.iter().zip(&names) {
        let again = line.again.map_or("nothing to judge", RungVerdict::words);
        let mark = if line.differs() { "   differs" } else { "" };
        out.push_str(&format!("  {name:rung$}   {:stored$}   {again}{mark}\n", line.stored.words()));
    }
    out + &conclusion(lines)
}

/// Whether total and floor follow from their rounds; nothing where there are none to say it of.
fn total_in_words(follows: Option<bool>) -> &'static str {
    match follows {
        None => "",
        Some(true) => "total and floor follow from their rounds\n",
        Some(false) => "total or floor do not follow from their rounds\n",
    }
}

fn conclusion(lines: &[Line]) -> String {
    let judged = lines.iter().filter(|line| line.again.is_some()).count();
    let differing = lines.iter().filter(|line| line.differs()).count();
    match (judged, differing) {
        (0, _) => "no verdict in it rests on measurements\n".to_owned(),
        (1, 0) => "the one verdict that rests on measurements is reached again\n".to_owned(),
        (_, 0) => format!("all {judged} verdicts that rest on measurements are reached again\n"),
        _ => format!("{differing} of {judged} verdicts are not reached again\n"),
    }
}
