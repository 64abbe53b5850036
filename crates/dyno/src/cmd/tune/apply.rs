//! `dyno tune plan`, `apply` and `confirm`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use dyno_host::change::HostError;
use dyno_host::host::Kernel;
use dyno_host::tune::effect;
use dyno_host::tune::rollback::open;
use dyno_host::tune::session::Session;
use dyno_host::tune::state::{State, Waited};
use dyno_lab::Failure;
use dyno_record::tune::{Changes, Effect, Plan, Planned};

use super::bench::{Bench, unusable};
use super::{ask, chosen, rollback, words};
use crate::cli::tune::{TuneApply, TunePlan};
use crate::cmd::{exit, stop};
use crate::out;

/// How long a confirmation may take to be heard.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// `dyno tune plan`.
pub(super) fn plan(args: &TunePlan) -> Result<ExitCode, Failure> {
    let plan = chosen::plan_for(&args.ids, &args.chosen)?;
    match args.json {
        true => out::print(&(super::compare::json(&plan)? + "\n"))?,
        false => out::print(&words::plan(&plan))?,
    }
    Ok(exit::DONE)
}

/// `dyno tune apply`.
pub(super) fn apply(args: &TuneApply, folder: &Path) -> Result<ExitCode, Failure> {
    if args.consent.dry_run {
        let plan = chosen::plan_for(&args.ids, &args.chosen)?;
        out::print(&words::plan(&plan))?;
        return check(&plan, args).map(|()| exit::DONE);
    }
    let mut bench = Bench::open(folder)?;
    stop::listen()?;
    let plan = chosen::plan_for(&args.ids, &args.chosen)?;
    out::say(&words::plan(&plan));
    check(&plan, args)?;
    if plan.steps.iter().all(|step| step.changes.is_empty()) {
        out::print("nothing was changed\n")?;
        return bench.close().map(|()| exit::DONE);
    }
    if !ask::agreed(args.consent, "Change these settings?")? {
        return Err(Failure::no("nothing was changed"));
    }
    let told = if args.json { Told::Json } else { Told::Text };
    let effects = carry_out(&mut bench, &plan, args.confirm_within, told)?;
    if told == Told::Json {
        out::print(&(super::compare::json(&record(&bench, &plan, effects))? + "\n"))?;
    }
    bench.close().map(|()| exit::DONE)
}

/// How the changes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Each with its effect, in words.
    Text,
    /// The same as a record, when they are kept.
    Json,
    /// They are files for the next boot.
    Files,
}

/// What this plan has left in the journal, with the effect of each change.
fn record(bench: &Bench, plan: &Plan, effects: Vec<Effect>) -> Changes {
    let all = open(&bench.journal);
    let planned = plan.steps.iter().flat_map(|step| &step.changes);
    let row = |(planned, effect): (&Planned, Effect)| {
        let own = all.iter().find(|open| open.left.what == planned.spec.what)?;
        Some(rollback::row(own, Some(effect)))
    };
    rollback::changes(planned.zip(effects).filter_map(row).collect())
}

/// Whether the plan is the one that was shown, and what it asks for was given.
fn check(plan: &Plan, args: &TuneApply) -> Result<(), Failure> {
    if let Some(shown) = args.plan.as_ref().filter(|shown| **shown != plan.hash) {
        return Err(Failure::error(format!(
            "plan {shown} is not what would be done now: that is {}",
            plan.hash
        ))
        .likely("the host has changed since, or other findings were named")
        .try_this("dyno tune plan with the same ids, and read it again"));
    }
    for step in &plan.steps {
        if let Some(why) = &step.cannot {
            return Err(Failure::error(format!("{} cannot be done: {why}", step.id)));
        }
        let is_accepted = args.accept_risk.contains(&step.id);
        if step.lowers_defence() && !step.changes.is_empty() && !is_accepted {
            return Err(Failure::error(format!("{} lowers a defence: {}", step.id, step.prices.security))
                .try_this(format!("--accept-risk {}, if that is what you want", step.id)));
        }
    }
    let cuts = plan.steps.iter().flat_map(|step| &step.changes).find_map(|change| change.cuts.as_ref());
    match cuts.filter(|_| args.confirm_within.is_none()) {
        Some(cuts) => Err(Failure::error(format!("this could cut your way in: {cuts}"))
            .try_this("--confirm-within 60s, and dyno tune confirm from a new connection")),
        None => Ok(()),
    }
}

/// Makes the changes, and keeps them once nobody need fear for the way in.
pub(super) fn carry_out(
    bench: &mut Bench,
    plan: &Plan,
    confirm_within: Option<Duration>,
    told: Told,
) -> Result<Vec<Effect>, Failure> {
    let mut session = Session::new(&bench.keeper, &mut bench.journal);
    let mut lines = Vec::new();
    let made = session.carry_out(plan, &mut Kernel, &mut |made| lines.push(words::made(made)));
    if let Err(error) = made {
        out::print(&lines.concat())?;
        let failure = refused(&error);
        return Err(undone(session).err().unwrap_or(failure));
    }
    // Files wait for the next boot: nothing of them can be in force yet.
    let effects = match told {
        Told::Files => Vec::new(),
        Told::Text | Told::Json => session.prove(plan, &mut || std::thread::sleep(effect::PAUSE)),
    };
    if told != Told::Json {
        out::print(&words::with_effects(&lines, &effects))?;
    }
    if let Some(within) = confirm_within {
        out::say(&format!(
            "everything is put back in {within:?} unless it is confirmed: dyno tune confirm\n"
        ));
        match bench.state.wait(&plan.hash, within, &stop::asked) {
            Ok(Waited::Confirmed) => out::say("confirmed\n"),
            Ok(waited) => return Err(undone(session).err().unwrap_or_else(|| unconfirmed(waited))),
            Err(error) => return Err(undone(session).err().unwrap_or_else(|| unusable(&error))),
        }
    }
    if stop::asked() {
        return Err(undone(session).err().unwrap_or_else(Failure::interrupted));
    }
    session.keep().map_err(|error| Failure::error("cannot keep the changes").because(&error))?;
    Ok(effects)
}

fn undone(session: Session<'_, dyno_sys::keeper::Keeper>) -> Result<(), Failure> {
    session.undo(&mut Kernel).map_err(|error| {
        Failure::not_restored("not everything is back").because(&error).try_this("dyno tune status")
    })
}

fn unconfirmed(waited: Waited) -> Failure {
    match waited {
        Waited::Interrupted => Failure::no("broken off: everything was put back"),
        _ => Failure::no("nobody confirmed: everything was put back"),
    }
}

fn refused(error: &HostError) -> Failure {
    let failure = Failure::error("nothing was changed, or all of it was put back").because(error);
    match error {
        HostError::Knob(_) => failure.likely("the kernel does not take this value here, or it is read-only"),
        _ => failure,
    }
}

/// `dyno tune confirm`.
pub(super) fn confirm(folder: &Path) -> Result<ExitCode, Failure> {
    let state = State::open(folder).map_err(|error| unusable(&error))?;
    let Some((hash, pid)) = state.waits() else {
        return Err(Failure::no("nothing waits to be confirmed")
            .likely("its time was over, or it was killed: everything was put back then")
            .try_this("dyno tune status"));
    };
    match state.confirm(&hash, HEARD_WITHIN).map_err(|error| unusable(&error))? {
        true => out::print(&format!("plan {hash} of process {pid} is kept\n")).map(|()| exit::DONE),
        false => Err(Failure::no("the confirmation came too late: everything was put back")
            .try_this("dyno tune status")),
    }
}
