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

use super::causal::{Asked, Event, Point, experiment};
use crate::failure::Failure;
use crate::launch::load::{LoadCommand, LoadProcess};
use crate::launch::{Arm, World};

/// Functions that are tried: each takes its part of the time, and what is predicted rests on the heaviest.
const SITES_MAX: usize = 3;
/// A lighter function's curve would be too uncertain in the time there is.
const SHARE_PERCENT_MIN: f64 = 5.0;
/// A change is seldom more than half of a function; where it is all of it the line goes on.
const LEVELS_PERCENT: [u32; 2] = [25, 50];

impl World<'_> {
    pub(crate) fn causal_of(&mut self, arm: &mut Arm, for_ns: u64, seed: u64) -> Result<Causal, String> {
        let load = self.start_load(&arm.spec.load, arm.port).map_err(|failure| failure.in_one_line())?;
        let found = self.experimented(arm, load.pid, for_ns, seed);
        self.tally.beside(load.cpu_ns());
        // What would not end is ended with the keeper.
        let _ = load.stop(&self.keeper);
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
        let mut on_event = |_: Event<'_>| {
            if self.interrupt.seen() {
                interrupted.set(true);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let found = experiment(&asked, &mut on_event, &stop);
        if interrupted.get() {
            return Err("interrupted".to_owned());
        }
        found.map_err(|failure| failure.in_one_line())
    }

    /// It is placed as the threads of a block are.
    fn start_load(&mut self, load: &LoadSpec, port: u16) -> Result<LoadProcess, Failure> {
        let cpus = self.ground.load_cpus.iter().copied().take(load.connections).collect();
        let command = LoadCommand::of_spec(load, port, cpus)?;
        LoadProcess::start(&self.keeper, &mut self.exits, &command)
    }
}
