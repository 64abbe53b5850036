//! `dyno tune persist`.

use std::path::Path;
use std::process::ExitCode;

use dyno_host::host::{Host, Kernel};
use dyno_host::tune::persist::{Form, Lasting, changes, lasting};
use dyno_host::tune::rollback::{Foreign, Open, Outcome, open};
use dyno_lab::Failure;
use dyno_record::alike::did_you_mean;
use dyno_record::change::{ChangeSpec, What};
use dyno_record::commands::command;
use dyno_record::tune::{Plan, Planned, Step};
use dyno_record::visible::visible;

use super::bench::Bench;
use super::{apply, ask, chosen, rollback, words};
use crate::cli::audit::WantedFor;
use crate::cli::tune::{Chosen, TunePersist};
use crate::cmd::{exit, stop};
use crate::out;

/// Findings that the kernel's command line mends.
const BOOT: [&str; 1] = ["sec.mitig"];
/// What asks for the files, in the journal.
const BY: &str = "persist";

/// `dyno tune persist`.
pub(super) fn persist(args: &TunePersist, folder: &Path) -> Result<ExitCode, Failure> {
    let root = args.root.canonicalize().map_err(|error| {
        Failure::error(format!("cannot use the root {}", args.root.display())).because(&error)
    })?;
    let form = if args.tuned { Form::Tuned } else { Form::Files };
    if args.consent.dry_run {
        let all = if folder.exists() { open(&rollback::journal(folder)?) } else { Vec::new() };
        let wanted = lasting(&applied(&all, &args.ids)?, form);
        return out::print(&(told(&wanted, &root) + &advice()?)).map(|()| exit::DONE);
    }
    let mut bench = Bench::open(folder)?;
    stop::listen()?;
    let wanted = lasting(&applied(&open(&bench.journal), &args.ids)?, form);
    out::say(&(told(&wanted, &root) + &advice()?));
    if wanted.files.is_empty() {
        out::print("no file was written\n")?;
        return bench.close().map(|()| exit::DONE);
    }
    if !ask::agreed(args.consent, "Write these files?")? {
        return Err(Failure::no("nothing was changed"));
    }
    remove_earlier(&mut bench)?;
    let plan = plan(&changes(&wanted.files, &root))?;
    apply::carry_out(&mut bench, &plan, None, apply::Told::Files)?;
    bench.close().map(|()| exit::DONE)
}

/// What was applied and kept, with the values that it was kept at, the last one of each setting.
fn applied(all: &[Open], ids: &[String]) -> Result<Vec<(What, String)>, Failure> {
    let known: Vec<&str> = all.iter().filter_map(|open| open.by.as_deref()).filter(|by| *by != BY).collect();
    if let Some(id) = ids.iter().find(|id| !known.contains(&id.as_str())) {
        return Err(Failure::error(format!("{id} was not applied, and nothing of it can be made to last"))
            .likely(
                did_you_mean(id, known.iter().copied())
                    .unwrap_or_else(|| "it was rolled back, or is gone with the boot".to_owned()),
            )
            .try_this(format!("dyno tune apply {id}, or dyno tune status")));
    }
    let is_meant = |by: &str| by != BY && (ids.is_empty() || ids.iter().any(|id| id == by));
    let mut kept: Vec<(What, String)> = Vec::new();
    for open in all.iter().filter(|open| open.by.as_deref().is_some_and(is_meant)) {
        if let (Some(value), false) =
            (open.left.ours.last(), kept.iter().any(|(what, _)| *what == open.left.what))
        {
            kept.push((open.left.what.clone(), value.clone()));
        }
    }
    Ok(kept)
}

/// Files of an earlier persist are taken away before the new ones are written: a file of ours is never changed in place.
fn remove_earlier(bench: &mut Bench) -> Result<(), Failure> {
    let all = open(&bench.journal);
    let earlier: Vec<Open> = all.into_iter().filter(|open| open.by.as_deref() == Some(BY)).collect();
    let mut trouble = None;
    bench.roll_back(&earlier, Foreign::Told, &mut |open, outcome| {
        if matches!(outcome, Outcome::Failed(_) | Outcome::Foreign(_)) {
            trouble = Some(words::outcome(open, outcome));
        }
    })?;
    trouble.map_or(Ok(()), |why| Err(Failure::error(why)))
}

fn plan(specs: &[ChangeSpec]) -> Result<Plan, Failure> {
    let mut step = Step { id: BY.into(), ..Step::default() };
    for spec in specs {
        let was = Kernel.read(&spec.what).map_err(|error| {
            Failure::error("nothing was written").because(&error).likely("it is not ours to replace")
        })?;
        if was == spec.wanted.as_bytes() {
            continue;
        }
        let was = String::from_utf8_lossy(&was).into_owned();
        let (set, undo) = (command(&spec.what, &spec.wanted), command(&spec.what, &was));
        step.changes.push(Planned { spec: spec.clone(), was, set, undo, cuts: None });
    }
    let steps = vec![step];
    Ok(Plan { hash: Plan::hash_of(&steps), steps, ..Plan::default() })
}

fn told(wanted: &Lasting, root: &Path) -> String {
    let mut text = String::new();
    for (file, contents) in &wanted.files {
        text.push_str(&format!("{}\n", visible(&root.join(file).display().to_string())));
        contents.lines().for_each(|line| text.push_str(&format!("    {}\n", visible(line))));
    }
    for (what, why) in &wanted.not {
        text.push_str(&format!("{}  cannot be made to last: {}\n", visible(what), visible(why)));
    }
    wanted.besides.iter().for_each(|line| text.push_str(&format!("then: {line}\n")));
    text
}

/// What belongs on the kernel's command line, which is the boot loader's: advice, and never written.
fn advice() -> Result<String, Failure> {
    let chosen = Chosen { pid: None, goal: WantedFor::Throughput };
    let plan = chosen::plan_for(&BOOT.map(str::to_owned), &chosen)?;
    let lines = plan.by_hand.iter().flat_map(|hand| &hand.apply);
    Ok(lines.map(|line| format!("by hand, if at all: {}\n", visible(line))).collect())
}
