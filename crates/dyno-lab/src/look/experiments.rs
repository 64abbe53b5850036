//! Experiments on one arm under its load: what it would bring if functions of the server were faster.
//!
//! The load is a process of its own, as beside `dyno causal`: it takes part, and this process must not.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_climb::load::LoadSpec;
use dyno_profile::causal::{Children, Choice, Reach};
use dyno_record::causal::Causal;
use dyno_sys::Pid;
use dyno_sys::affinity::CpuSet;
use dyno_sys::clock::{mono_ns, process_cpu_ns, sleep_ns};
use dyno_sys::keeper::Launch;

use super::causal::{Asked, Point, Told, experiment};
use crate::launch::{Arm, STOP_GRACE_NS, World, busy};

/// Functions that are tried: each takes its part of the time, and what is foretold rests on the heaviest.
const SITES_MAX: usize = 3;
/// A lighter function's curve could not tell nothing from everything in the time there is.
const SHARE_PERCENT_MIN: f64 = 5.0;
/// A change is seldom more than half of a function; where it is all of it the line goes on.
const LEVELS_PERCENT: [u32; 2] = [25, 50];
/// The load runs until it is stopped; this bounds it when nobody does.
const LOAD_LONGEST: &str = "10m";
/// Connections are made and the first answers come.
const SETTLE_NS: u64 = 500_000_000;
/// Between looks at whether it still runs.
const LOOK_NS: u64 = 10_000_000;

impl World<'_> {
    pub(crate) fn causal_of(&mut self, arm: &mut Arm, for_ns: u64, seed: u64) -> Result<Causal, String> {
        let load = self.start_load(&arm.spec.load, arm.port)?;
        let found = self.settled(load).and_then(|()| self.experimented(arm, load, for_ns, seed));
        self.tally.beside(process_cpu_ns(load).unwrap_or(0));
        // What would not end is ended with the keeper.
        let _ = self.keeper.stop(load, STOP_GRACE_NS);
        found
    }

    fn experimented(&self, arm: &Arm, load: Pid, for_ns: u64, seed: u64) -> Result<Causal, String> {
        let asked = Asked {
            pid: arm.pid,
            children: Children::Followed,
            point: Point::Replies(load),
            participants: vec![load],
            sites: Vec::new(),
            choice: Choice { share_percent_min: SHARE_PERCENT_MIN, ..Choice::whole(SITES_MAX) },
            reach: Reach::Own,
            levels: LEVELS_PERCENT.to_vec(),
            budget: Duration::from_nanos(for_ns),
            seed,
        };
        let (stop, interrupted) = (AtomicBool::new(false), Cell::new(false));
        let mut told = |_: Told<'_>| {
            if self.interrupt.seen() {
                interrupted.set(true);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let found = experiment(&asked, &mut told, &stop);
        if interrupted.get() {
            return Err("interrupted".to_owned());
        }
        found.map_err(|failure| failure.in_one_line())
    }

    fn start_load(&mut self, load: &LoadSpec, port: u16) -> Result<Pid, String> {
        let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut cpus = CpuSet::empty();
        busy(&self.ground.load_cpus, load.connections).iter().for_each(|cpu| cpus.insert(*cpu));
        let mut argv = vec![own.display().to_string()];
        argv.extend(words(load, port, &cpus)?);
        let launch = Launch {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            cpus: Some(cpus),
            output: self.output_file().map_err(|trouble| trouble.to_string())?.into(),
            inherit: Vec::new(),
            user: None,
        };
        let held = self.keeper.hold(&launch).map_err(|error| format!("cannot start the load: {error}"))?;
        self.exits.begin(&self.keeper, held.pid());
        self.keeper.release(held).map_err(|error| format!("cannot start the load: {error}"))
    }

    fn settled(&mut self, load: Pid) -> Result<(), String> {
        let until_ns = mono_ns() + SETTLE_NS;
        while mono_ns() < until_ns {
            if let Some(status) = self.exit_of(load) {
                return Err(format!("the load ended at once: {status}"));
            }
            sleep_ns(LOOK_NS);
        }
        Ok(())
    }
}

/// A plan's load as words of `dyno load`. A flag and its value are one word: a body may begin with a hyphen.
///
/// # Errors
/// When a text of the plan would mean something else there.
pub fn words(load: &LoadSpec, port: u16, cpus: &CpuSet) -> Result<Vec<String>, String> {
    let texts = [Some(&load.body), load.expect_body.as_ref()];
    if texts.into_iter().flatten().any(|text| text.starts_with('@')) {
        return Err("a body that begins with @ would be taken for a file's name".to_owned());
    }
    let mut words = vec!["load".to_owned()];
    let mut say = |flag: &str, value: String| words.push(format!("{flag}={value}"));
    say("--duration", LOAD_LONGEST.to_owned());
    say("--pin", cpus.to_string());
    say("--connections", load.connections.to_string());
    say("--pipeline", load.pipeline.to_string());
    say("--method", load.method.clone());
    say("--expect", format!("status={}", load.expect_status));
    load.headers.iter().for_each(|(name, value)| say("--header", format!("{name}: {value}")));
    load.expect_body.iter().for_each(|body| say("--expect", format!("body={body}")));
    if !load.body.is_empty() {
        say("--body", load.body.clone());
    }
    words.push(format!("http://127.0.0.1:{port}{}", load.path));
    Ok(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_body_that_would_be_read_from_a_file_is_refused() {
        let load = LoadSpec { body: "@home".into(), ..LoadSpec::default() };
        assert!(words(&load, 1, &CpuSet::single(0)).unwrap_err().contains("begins with @"));
    }
}
