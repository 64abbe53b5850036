//! What is counted: found in the target, or, where nothing is said, what could be.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_profile::causal::{Candidate, Named, Progress, Resolver, candidates, rates};

use super::experiment::{Asked, Point, replies};
use super::failure::{no_site, not_counted};
use super::{Told, failure};
use crate::cmd::failure::Failure;
use crate::print::number::count;

/// How long system calls are watched for candidates.
const WATCHED: Duration = Duration::from_secs(2);
/// How long each function is.
const WATCHED_EACH: Duration = Duration::from_millis(250);
/// Candidates that are told.
const CANDIDATES_MAX: usize = 5;
/// Functions whose names suggest that something is done there once for each unit.
const FUNCTIONS: [&str; 6] = ["progress", "main.progress", "handle", "serve", "process", "work"];

/// The name of what is counted, as records tell it.
pub(super) fn name(point: &Point) -> String {
    match point {
        Point::Named(name) => name.clone(),
        Point::Replies(_) => "right answers of dyno load".to_owned(),
        Point::None => String::new(),
    }
}

/// What is counted, with its places; candidates are told as a failure where nothing was named.
pub(super) fn resolved(
    asked: &Asked,
    resolver: &Resolver,
    told: &mut dyn FnMut(Told<'_>),
    stop: &AtomicBool,
) -> Result<Progress, Failure> {
    match &asked.point {
        Point::Replies(load) => replies(*load),
        Point::Named(name) => named(name, resolver),
        Point::None => {
            told(Told::Stage("nothing is named that counts as progress: looking for what could"));
            Err(could_be(asked, resolver, stop)?)
        }
    }
}

fn named(text: &str, resolver: &Resolver) -> Result<Progress, Failure> {
    let place =
        |text: &str| resolver.probe(text).map(|probe| vec![probe.entry]).map_err(|error| no_site(&error));
    match text.parse::<Named>().map_err(|error| not_counted(&error))? {
        Named::Code(text) => Ok(Progress::At { entries: place(&text)?, whom: Vec::new() }),
        Named::Between { begin, end } => Ok(Progress::Between { begin: place(&begin)?, end: place(&end)? }),
        other => other.resolved(&mut |_| Ok(Vec::new())).map_err(|error| not_counted(&error)),
    }
}

/// What could be counted, the most frequent first, as a failure that says so.
fn could_be(asked: &Asked, resolver: &Resolver, stop: &AtomicBool) -> Result<Failure, Failure> {
    let calls = candidates(asked.pid, WATCHED, stop).map_err(|error| failure::not_run(&error))?;
    let places = FUNCTIONS.iter().filter_map(|name| {
        let probe = resolver.probe(name).ok()?;
        Some((probe.name, vec![probe.entry]))
    });
    let places: Vec<_> = places.collect();
    let functions =
        rates(asked.pid, &places, WATCHED_EACH, stop).map_err(|error| failure::not_run(&error))?;
    Ok(told_candidates(asked, &functions.into_iter().chain(calls).collect::<Vec<_>>()))
}

fn told_candidates(asked: &Asked, found: &[Candidate]) -> Failure {
    let failure = Failure::usage("nothing is named that counts as progress");
    let Some(first) = found.first() else {
        return failure
            .likely("it sends nothing, and no function of it has a telling name")
            .try_this("--progress FUNCTION, one that is called once for each unit of work");
    };
    let told = |one: &Candidate| format!("{} ({} per second)", one.progress, count(one.per_second));
    let list: Vec<String> = found.iter().take(CANDIDATES_MAX).map(told).collect();
    failure
        .likely(format!("it could be {}", list.join(", ")))
        .try_this(format!("dyno causal {} --progress {}", asked.pid, first.progress))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_profile::causal::{Children, Reach};

    fn asked() -> Asked {
        Asked {
            pid: 7,
            children: Children::Strangers,
            point: Point::None,
            participants: Vec::new(),
            sites: Vec::new(),
            reach: Reach::Own,
            levels: vec![50],
            budget: WATCHED,
            seed: 1,
        }
    }

    #[test]
    fn candidates_are_told_in_three_lines_with_their_rates() {
        let call = Candidate { progress: "syscall:write".to_owned(), per_second: 12_345.6 };
        let lines = told_candidates(&asked(), &[call]).lines();
        assert!(lines.contains("it could be syscall:write (12,346 per second)"), "{lines}");
        assert!(lines.contains("try:    dyno causal 7 --progress syscall:write"), "{lines}");
        assert_eq!(told_candidates(&asked(), &[]).lines().lines().count(), 3);
    }
}
