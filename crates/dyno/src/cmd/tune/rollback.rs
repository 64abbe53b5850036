//! `dyno tune status` and `rollback`.

use std::path::Path;
use std::process::ExitCode;

use dyno_host::host::Kernel;
use dyno_host::journal::Journal;
use dyno_host::recovery::{Left, Now};
use dyno_host::tune::effect::{self, Asked};
use dyno_host::tune::rollback::{Foreign, Open, Outcome, open};
use dyno_host::tune::state::State;
use dyno_lab::Failure;
use dyno_record::commands::command;
use dyno_record::tune::{CHANGES_SCHEMA, Changes, Effect, Held};
use dyno_record::visible::visible;

use super::bench::{Bench, unusable};
use super::{ask, chosen, words};
use crate::cli::tune::{TuneRollback, TuneStatus};
use crate::cmd::exit;
use crate::out;

/// What stands beside a change that was never kept.
const UNKEPT: &str = "not kept";

/// `dyno tune status`.
pub(super) fn status(args: &TuneStatus, folder: &Path) -> Result<ExitCode, Failure> {
    let all = if folder.exists() { open(&journal(folder)?) } else { Vec::new() };
    let effects = effects(&all);
    if args.json {
        let rows = all.iter().zip(effects).map(|(open, effect)| row(open, effect)).collect();
        return out::print(&(super::compare::json(&changes(rows))? + "\n")).map(|()| exit::DONE);
    }
    let mut text = String::new();
    for (one, effect) in all.iter().zip(effects) {
        let (state, reads) = words::now(&one.left.now(&Kernel));
        text.push_str(&format!(
            "{}  {}  was {}, {state}{}\n",
            visible(one.by.as_deref().unwrap_or(UNKEPT)),
            visible(&one.left.what.to_string()),
            words::value(&one.left.old),
            if reads.is_empty() { String::new() } else { format!(": {}", words::value(&reads)) }
        ));
        text.push_str(&effect.map_or_else(String::new, |effect| words::effect(&effect)));
    }
    if all.is_empty() {
        text.push_str("the journal holds no change\n");
    }
    if let Some((hash, pid)) = State::open(folder).ok().and_then(|state| state.waits()) {
        text.push_str(&format!("process {pid} waits for plan {hash} to be confirmed: dyno tune confirm\n"));
    }
    out::print(&text).map(|()| exit::DONE)
}

pub(super) fn journal(folder: &Path) -> Result<Journal, Failure> {
    let state = State::open(folder).map_err(|error| unusable(&error))?;
    state.journal().map_err(|error| unusable(&error))
}

/// The effect of each that stands where it was written, asked again.
fn effects(all: &[Open]) -> Vec<Option<Effect>> {
    let stands = |open: &&Open| matches!(open.left.now(&Kernel), Now::Ours(_)) && !open.left.ours.is_empty();
    let standing: Vec<&Open> = all.iter().filter(stands).collect();
    let mut asked = Vec::new();
    for open in &standing {
        let Left { what, old, ours, .. } = &open.left;
        asked.push(Asked { what, old, wanted: ours.last().map_or("", String::as_str) });
    }
    let mut shown = effect::prove(&asked, &mut || std::thread::sleep(effect::PAUSE)).into_iter();
    let mut of = |open: &Open| {
        let is_asked = standing.iter().any(|one| one.left.number == open.left.number);
        if is_asked { shown.next() } else { None }
    };
    all.iter().map(&mut of).collect()
}

pub(super) fn changes(changes: Vec<Held>) -> Changes {
    Changes { schema: CHANGES_SCHEMA.into(), version: env!("CARGO_PKG_VERSION").into(), changes }
}

pub(super) fn row(open: &Open, effect: Option<Effect>) -> Held {
    let (state, reads) = words::now(&open.left.now(&Kernel));
    Held {
        number: open.left.number,
        by: open.by.clone(),
        what: open.left.what.clone(),
        was: open.left.old.clone(),
        state: state.to_owned(),
        reads,
        effect,
    }
}

/// `dyno tune rollback`.
pub(super) fn rollback(args: &TuneRollback, folder: &Path) -> Result<ExitCode, Failure> {
    if args.consent.dry_run {
        let chosen =
            if folder.exists() { chosen_of(open(&journal(folder)?), &args.ids)? } else { Vec::new() };
        return out::print(&told(&chosen)).map(|()| exit::DONE);
    }
    let mut bench = Bench::open(folder)?;
    let chosen = chosen_of(open(&bench.journal), &args.ids)?;
    if chosen.is_empty() {
        out::print("nothing to roll back\n")?;
        return bench.close().map(|()| exit::DONE);
    }
    out::say(&told(&chosen));
    if !ask::agreed(args.consent, "Put these back?")? {
        return Err(Failure::no("nothing was changed"));
    }
    let foreign = if args.forget { Foreign::Forgotten } else { Foreign::Told };
    let (mut text, mut failed, mut foreigners) = (String::new(), 0usize, 0usize);
    bench.roll_back(&chosen, foreign, &mut |open, outcome| {
        text.push_str(&(words::outcome(open, outcome) + "\n"));
        failed += usize::from(matches!(outcome, Outcome::Failed(_)));
        foreigners += usize::from(matches!(outcome, Outcome::Foreign(_)) && !args.forget);
    })?;
    out::print(&text)?;
    bench.close()?;
    if failed > 0 {
        return Err(Failure::not_restored(format!("{} not back", words::counted(failed, "setting")))
            .try_this("dyno tune status; dyno tune rollback tries again"));
    }
    Ok(if foreigners > 0 { ExitCode::from(exit::NO) } else { exit::DONE })
}

/// What would be done, with commands that do the same.
fn told(chosen: &[Open]) -> String {
    let mut text = format!("{} to roll back\n", words::counted(chosen.len(), "change"));
    for open in chosen {
        let (state, reads) = words::now(&open.left.now(&Kernel));
        let reads =
            if reads.is_empty() { state.to_owned() } else { format!("{state}: {}", words::value(&reads)) };
        text.push_str(&format!(
            "{}  {}\n  {reads} → {}\n  do: {}\n",
            visible(open.by.as_deref().unwrap_or(UNKEPT)),
            visible(&open.left.what.to_string()),
            words::value(&open.left.old),
            visible(&command(&open.left.what, &open.left.old))
        ));
    }
    text
}

fn chosen_of(all: Vec<Open>, ids: &[String]) -> Result<Vec<Open>, Failure> {
    let known: Vec<&str> =
        dyno_diagnose::audit::catalogue().into_iter().map(|(id, _)| id).chain(["persist"]).collect();
    if let Some(id) = ids.iter().find(|id| !known.contains(&id.as_str())) {
        return Err(chosen::unknown(id, &known));
    }
    let is_meant = |open: &Open| ids.is_empty() || open.by.as_ref().is_some_and(|by| ids.contains(by));
    Ok(all.into_iter().filter(is_meant).collect())
}
