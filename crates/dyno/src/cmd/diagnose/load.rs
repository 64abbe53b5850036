//! The load of a diagnosis: the words of `--load` as `dyno load` reads them.

use std::time::Duration;

use clap::Parser;
use dyno_lab::Failure;
use dyno_load::OpenError;
use dyno_load::run::LoadPlan;
use dyno_sys::affinity::{self, CpuSet};

use crate::cli::{self, Cli, Verb};
use crate::cmd::load as verb;

/// What `--load` says.
pub(super) struct Asked {
    args: Box<cli::Load>,
    pub(super) plan: LoadPlan,
}

impl Asked {
    /// Reads the words of `--load` as `dyno load` would, and takes CPUs that the server leaves. The load lasts as long as the
    /// watching, about `time`.
    pub(super) fn parse(words: &str, server: &CpuSet, time: Duration) -> Result<Asked, Failure> {
        let mut args = parsed(words)?;
        verb::refuse_what_is_not_there_yet(&args)?;
        // wrk's two threads would take a small machine from the server: one is enough until the figures say otherwise.
        args.threads = args.threads.or(std::num::NonZeroUsize::new(1).filter(|_| args.pin.is_none()));
        let free: CpuSet = affinity::allowed().iter().filter(|cpu| !server.contains(*cpu)).collect();
        let threads = verb::threads(&args)?;
        let mut plan = verb::plan(&args, threads)?;
        if args.pin.is_none() && !free.is_empty() {
            plan.placement = verb::pinned(&free, threads);
        }
        verb::make_room(args.connections.get() as u64 + threads as u64)?;
        Ok(Asked { args, plan: plan.beside(verb::ns(time)) })
    }

    /// Why it never began, in three lines.
    pub(super) fn not_opened(&self, error: &OpenError) -> Failure {
        verb::not_opened(error, &self.args, "--for ")
    }
}

fn parsed(words: &str) -> Result<Box<cli::Load>, Failure> {
    let words = words.split_whitespace().filter(|word| *word != "dyno" && *word != "load");
    let line = ["dyno", "load"].into_iter().chain(words);
    match Cli::try_parse_from(line).map(|cli| cli.verb) {
        Ok(Some(Verb::Load(args))) => Ok(args),
        Ok(_) => {
            Err(Failure::usage("--load names no load").try_this("--load 'http://127.0.0.1:8080/ -c 64'"))
        }
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(Failure::usage(format!("--load: {first}"))
                .likely("it takes what stands after 'dyno load'")
                .try_this("--load 'http://127.0.0.1:8080/ -c 64'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_load::Placement;

    fn parse(words: &str) -> Result<Asked, Failure> {
        Asked::parse(words, &affinity::allowed(), Duration::from_secs(10))
    }

    #[test]
    fn the_words_of_a_load_are_those_of_dyno_load() {
        let asked = parse("http://127.0.0.1:1/json -c 8").ok();
        let asked = asked.expect("a plain load is understood");
        assert_eq!((asked.plan.session.connections, asked.plan.placement), (8, Placement::Unpinned(1)));
        let whole = parse("dyno load http://127.0.0.1:1/ -c 2 -t 2").ok();
        assert_eq!(whole.expect("the verb itself may stand there").plan.placement.threads(), 2);
    }

    /// Planted fault: first answers are awaited as by a run of a day.
    #[test]
    fn a_silent_server_is_awaited_for_three_times_as_long_as_is_watched() {
        let asked = parse("http://127.0.0.1:1/ -T 1h").ok();
        let asked = asked.expect("a plain load is understood");
        assert_eq!(asked.plan.opening_ns_max, 30_000_000_000);
        let addr = "127.0.0.1:1".parse().expect("an address");
        let (timeout_ns, answered, connections) = (asked.plan.opening_ns_max, 0, 10);
        let lines =
            asked.not_opened(&OpenError::TimedOut { addr, timeout_ns, answered, connections }).lines();
        assert!(lines.contains("--for 1200s to await it for all of --timeout"), "{lines}");
    }

    #[test]
    fn a_load_that_makes_no_sense_is_told_in_three_lines() {
        for words in ["", "-c 8", "http://h/ --nonsense"] {
            let lines = parse(words).err().expect("it is no load").lines();
            assert_eq!(lines.lines().count(), 3, "{lines}");
        }
    }
}
