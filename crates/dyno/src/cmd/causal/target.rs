//! What is experimented with: a process, or a command that is started for it; and the load beside it.

use dyno_lab::launch::Exits;
use dyno_lab::launch::load::{LoadCommand, LoadProcess};
use dyno_lab::launch::target::{alive, started};
use dyno_lab::look::causal::Point;
use dyno_lab::{Failure, chain};
use dyno_sys::keeper::Keeper;
use dyno_sys::{Pid, proc};

use crate::cli;
use crate::cmd::recording::whole;
use crate::cmd::stop;
use crate::out::say;

/// A target and what was started for it; both end with this value.
pub(super) struct Opened {
    /// The process.
    pub(super) pid: Pid,
    load: Option<LoadProcess>,
    keeper: Keeper,
}

/// Opens the target; the load runs then.
pub(super) fn open(args: &cli::Causal) -> Result<Opened, Failure> {
    // Before any other thread: it forks.
    let keeper =
        Keeper::start().map_err(|error| Failure::error("cannot start the keeper").because(&error))?;
    stop::listen()?;
    let pid = match args.pid.or(args.pid_alone) {
        Some(pid) => alive(whole(pid))?,
        None => started(&keeper, &args.command)?,
    };
    let start =
        |words: &String| LoadProcess::start(&keeper, &mut Exits::default(), &LoadCommand::of_words(words)?);
    let load = args.load.as_ref().map(start).transpose()?;
    Ok(Opened { pid, load, keeper })
}

impl Opened {
    /// The process of the load, which takes part.
    pub(super) fn load_pid(&self) -> Option<Pid> {
        self.load.as_ref().map(|load| load.pid)
    }

    /// What is counted.
    pub(super) fn point(&self, args: &cli::Causal) -> Point {
        match (&args.progress, self.load_pid()) {
            (Some(named), _) => Point::Named(named.clone()),
            (None, Some(load)) => Point::Replies(load),
            (None, None) => Point::None,
        }
    }

    /// A failure that is the load's is told as such.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        let gone = self.load.as_ref().filter(|load| proc::tree(load.pid).is_empty());
        gone.map_or(failure, |load| load.trouble("ended before the experiments did"))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(load) = &self.load {
            // A load that is gone already is what is wanted.
            if let Err(error) = load.stop(&self.keeper) {
                say(&format!("warning: the load would not end: {}\n", chain(&error)));
            }
        }
    }
}
