//! `dyno specimen run NAME --causal`: a causal profile of the defect, then the same parts shortened for real, interleaved.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::Prng;
use dyno_profile::causal::{Children, Choice, Reach};
use dyno_record::comparison::{Figures, Made};
use dyno_record::specimen::{Causal, Participants, Side};
use dyno_record::truth::{Truth, Variant, variants};
use dyno_sys::{Pid, proc};

use super::measure::Measuring;
use super::ready::Ready;
use super::runner::Halt;
use crate::failure::Failure;
use crate::launch::load::{LoadCommand, LoadProcess};
use crate::look::causal::{Asked, Event, Point, experiment};

/// Time of the experiments, and as much again for what is tried for real.
const EXPERIMENTS: Duration = Duration::from_secs(60);
/// Virtual and real.
const LEVELS: [u32; 3] = [10, 25, 50];
/// The shortest run that is worth starting a process for.
pub const RUN_NS_MIN: u64 = 20_000_000;
/// A program comes to its steady state.
const SETTLE: Duration = Duration::from_millis(300);

/// How both halves are to be made.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Time of the experiments, and as much again for what is tried for real; a minute where nothing is said.
    pub budget: Option<Duration>,
    /// Rounds of what is tried for real.
    pub rounds: u32,
    /// Seed of every coin.
    pub seed: u64,
    /// The command line and the machine, for the record.
    pub made: Made,
}

/// Both halves, as much of the second as there is, and what ended that early.
///
/// # Errors
/// When nothing was predicted.
pub fn compare(
    wanted: &Wanted,
    ready: &mut Ready,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(Truth, Result<(), Halt>), Halt> {
    let causal = ready.specimen.causal.clone().ok_or_else(|| no_parts(&ready.specimen.name))?;
    let budget = wanted.budget.unwrap_or(EXPERIMENTS);
    let mut predicted = predicted(ready, &causal, budget, wanted.seed, on_event)?;
    predicted.command.clone_from(&wanted.made.command);
    predicted.machine.clone_from(&wanted.made.machine);
    let command = wanted.made.command.clone();
    let variants = variants(&causal.sites, &LEVELS);
    let runs = u64::from(wanted.rounds) * variants.len() as u64;
    let run_ns = (u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX) / runs).max(RUN_NS_MIN);
    let mut truth = Truth::new(&ready.specimen, predicted, command, variants, run_ns);
    let ended = rounds(ready, &mut truth, wanted.rounds, on_event);
    on_event(Event::Over);
    truth.cut_short = match &ended {
        Ok(()) => None,
        Err(Halt::Interrupted) => Some("interrupted".to_owned()),
        Err(Halt::Failed(failure)) => Some(failure.what().to_owned()),
    };
    truth.judge(&causal.sites);
    Ok((truth, ended))
}

fn no_parts(name: &str) -> Failure {
    Failure::usage(format!("{name} has no parts that could be shortened for real"))
        .likely("its defect is shown by its repair alone")
        .try_this("dyno specimen list --json, for those with \"causal\":true")
}

/// The profile of the defect, while it is loaded as it wants to be.
fn predicted(
    ready: &mut Ready,
    causal: &Causal,
    budget: Duration,
    seed: u64,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<dyno_record::causal::Causal, Halt> {
    let connections = ready.specimen.load.as_ref().map(|load| load.connections);
    let mut measuring = ready.measuring();
    let running = measuring.start(&[Side::Defect.word().to_owned()], None)?;
    let line = measuring.ready(&running)?;
    let load = connections.map(|connections| start_load(&mut measuring, &line, connections)).transpose()?;
    std::thread::sleep(SETTLE);
    let reach = if causal.sites.iter().any(|site| site.inclusive) { Reach::Inclusive } else { Reach::Own };
    let asked = Asked {
        pid: running.pid,
        children: Children::Strangers,
        point: point(causal, load.as_ref()),
        participants: participants(causal, running.pid, load.as_ref()),
        sites: causal.sites.iter().map(|site| site.name.clone()).collect(),
        choice: Choice::new(reach),
        reach,
        levels: LEVELS.to_vec(),
        budget,
        seed,
    };
    let stop = AtomicBool::new(false);
    let runner = &mut *measuring.runner;
    let mut pass_on = |event: Event<'_>| {
        stop.fetch_or(runner.interrupted(), Ordering::Relaxed);
        on_event(event);
    };
    let record = experiment(&asked, &mut pass_on, &stop);
    on_event(Event::Over);
    load.as_ref().map_or(Ok(()), |load| runner.stop_load(load))?;
    runner.stop(&running)?;
    if stop.load(Ordering::Relaxed) || runner.interrupted() {
        return Err(Halt::Interrupted);
    }
    Ok(record?)
}

fn start_load(measuring: &mut Measuring<'_>, line: &str, connections: usize) -> Result<LoadProcess, Halt> {
    let url = line.strip_prefix("ready ").unwrap_or_default();
    let command = LoadCommand::of_words(&format!("{url} -c{connections}"))?;
    Ok(measuring.runner.start_load(&command)?)
}

/// A server's answers are counted by the load, everything else by itself.
fn point(causal: &Causal, load: Option<&LoadProcess>) -> Point {
    match load {
        Some(load) => Point::Replies(load.pid),
        None => Point::Named(causal.progress.clone()),
    }
}

fn participants(causal: &Causal, pid: Pid, load: Option<&LoadProcess>) -> Vec<Pid> {
    let children = match causal.participants {
        Participants::None => Vec::new(),
        Participants::Children => proc::tree(pid).into_iter().filter(|other| *other != pid).collect(),
    };
    children.into_iter().chain(load.map(|load| load.pid)).collect()
}

/// Every variant once a round, in random order, a new process for each.
fn rounds(
    ready: &mut Ready,
    truth: &mut Truth,
    rounds: u32,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), Halt> {
    let mut coin = Prng::new(truth.seed);
    for round in 1..=rounds {
        on_event(Event::Stage(&format!("for real: round {round} of {rounds}")));
        let figures = one_round(ready, &truth.variants, truth.run_ns, &mut coin)?;
        truth.add(&figures);
    }
    Ok(())
}

fn one_round(
    ready: &mut Ready,
    variants: &[Variant],
    run_ns: u64,
    coin: &mut Prng,
) -> Result<Vec<Figures>, Halt> {
    let mut order: Vec<usize> = (0..variants.len()).collect();
    coin.shuffle(&mut order);
    let mut figures = vec![Figures::default(); variants.len()];
    for at in order {
        figures[at] = ready.measuring().one_variant(&variants[at].words(), run_ns)?;
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::catalogue::find;
    use super::*;

    #[test]
    fn a_specimen_without_parts_says_where_there_are_some() {
        assert_eq!(no_parts("sync-log").lines().lines().count(), 3);
    }

    #[test]
    fn answers_are_counted_by_a_load_and_units_by_the_program() {
        let causal = find("three-parts").unwrap().causal.unwrap();
        assert!(matches!(point(&causal, None), Point::Named(name) if name == "progress"));
        assert!(participants(&causal, 1, None).is_empty());
    }
}
