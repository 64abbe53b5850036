//! What is counted: found in the target; and where nothing is said, the likeliest of what could be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::units::thousands;
use dyno_profile::causal::{
    Candidate, Children, Entry, Live, Named, Probe, Progress, Resolver, Rig, Span, Subject, candidates,
    passed_per_second, ranked, rates,
};
use dyno_profile::{Options, Recorder, Target};
use dyno_record::causal as record;
use dyno_record::profile::Profile;
use dyno_sys::{Pid, mark, proc};

use super::asked::{Asked, Point};
use super::event::Event;
use super::failure::{no_site, not_counted, not_run};
use crate::failure::Failure;
use crate::look::refused::not_profiled;

/// How long system calls are watched for candidates, and stacks sampled meanwhile.
const WATCHED: Duration = Duration::from_secs(2);
/// Samples per second: callers are seen, and nobody is slowed down for a look.
const LOOK_HZ: u64 = 499;
/// How long each function's entries are counted.
const WATCHED_EACH: Duration = Duration::from_millis(150);
/// Functions that are counted: the rest is on few stacks, and each takes its time.
const FUNCTIONS_MAX: usize = 24;
/// Counting takes no more than this part of the budget, or than this: a short budget is of no use without progress.
const COUNTING_PART: u32 = 8;
const COUNTING_LEAST: Duration = Duration::from_millis(2_500);
/// Other candidates that the record names.
const CANDIDATES_MAX: usize = 8;
/// How long a named progress point is looked at, to know its rate, and how long at most until it is met first: five visits
/// in four seconds are the fewest that are measured.
const RATED: Duration = Duration::from_millis(500);
const MET_WITHIN: u32 = 6;
/// Visits per second from which on a probe would take a quarter of the time of one core: a microsecond each, or fifteen
/// where the instruction under it is single-stepped. Under such a probe no thread can pass more than some 66,000 times: what
/// is passed all the time is beyond the limit too.
const VISITS_MAX: f64 = 250_000.0;
const VISITS_STEPPED_MAX: f64 = 16_000.0;
/// Share of a core, percent, that the probe may take before a warning says so.
const PROBE_PERCENT_TOLD: f64 = 2.0;

/// What is counted, and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The places.
    pub(super) progress: Progress,
    /// As records name it.
    pub(super) name: String,
    /// Why it was taken, where nobody named it.
    pub(super) chosen: Option<String>,
    /// What else could have been.
    pub(super) others: Vec<Candidate>,
    /// How often it comes, where that was seen.
    pub(super) per_second: Option<f64>,
    /// Where probes are put into the target's code.
    places: Vec<Probe>,
}

impl Found {
    fn named((progress, places): (Progress, Vec<Probe>), name: &str) -> Found {
        let name = name.to_owned();
        Found { progress, name, chosen: None, others: Vec::new(), per_second: None, places }
    }

    /// What counting takes of the target, which stands in no comparison with and without the rest: all windows have it.
    pub(super) fn warning(&self) -> Option<String> {
        // At a quarter of a core of each visit's limit.
        let of_place = |place: &Probe| 25.0 * self.per_second.unwrap_or(0.0) / most_per_second(place);
        let percent: f64 = self.places.iter().map(of_place).sum();
        (percent >= PROBE_PERCENT_TOLD).then(|| {
            format!(
                "counting progress takes about {percent:.0} % of one core from the target by itself, in all windows alike: --progress at a place that is passed less often takes less"
            )
        })
    }

    /// The other candidates as records hold them.
    pub(super) fn candidates(&self) -> Vec<record::Candidate> {
        let recorded = |one: &Candidate| record::Candidate {
            name: one.progress.clone(),
            per_second: one.per_second,
            share_percent: one.share_percent,
        };
        self.others.iter().map(recorded).collect()
    }
}

/// Whether a progress point is written as one, as far as that is seen without a target.
///
/// # Errors
/// When it is not; the error says what was perhaps meant.
pub fn can_be_counted(asked: &str) -> Result<(), Failure> {
    asked.parse::<Named>().map(|_| ()).map_err(|error| not_counted(&error))
}

/// What is counted, with its places. Where nothing was named the likeliest is taken, and an event says so.
pub(super) fn resolved(
    asked: &Asked,
    resolver: &Resolver,
    on_event: &mut dyn FnMut(Event<'_>),
    stop: &AtomicBool,
) -> Result<Found, Failure> {
    match &asked.point {
        Point::Replies(load) => Ok(Found::named((replies(*load)?, Vec::new()), "right answers of dyno load")),
        Point::Named(name) => Ok(Found::named(named(name, resolver)?, name)),
        Point::None => {
            on_event(Event::Stage("nothing is named that counts as progress: looking for what could"));
            let could_be = could_be(asked, resolver, stop)?;
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::interrupted());
            }
            let found = taken(asked, resolver, &could_be)?;
            let why = found.chosen.as_deref().unwrap_or_default();
            on_event(Event::Stage(&format!("progress: {}, {why}", found.name)));
            Ok(found)
        }
    }
}

/// What is counted, and the places where that takes a probe.
fn named(text: &str, resolver: &Resolver) -> Result<(Progress, Vec<Probe>), Failure> {
    let mut places = Vec::new();
    let mut find = |place: &str| -> Result<Vec<Entry>, Failure> {
        let probe = resolver.probe(place).map_err(|error| no_site(&error))?;
        places.push(probe.clone());
        Ok(probe.entries)
    };
    let progress = text.parse::<Named>().map_err(|error| not_counted(&error))?.resolved(&mut find)?;
    Ok((progress, places))
}

/// Visits per second from which on a probe there would stall the target.
fn most_per_second(place: &Probe) -> f64 {
    if place.emulated { VISITS_MAX } else { VISITS_STEPPED_MAX }
}

/// Where the answers of our own load are counted: the probe is put into its process alone.
fn replies(load: Pid) -> Result<Progress, Failure> {
    let (image, offset) = mark::reply_place().map_err(|error| {
        Failure::error("cannot find where this program counts answers")
            .because(&error)
            .likely("/proc is not mounted here")
            .try_this("--progress syscall:write")
    })?;
    Ok(Progress::At { entries: vec![Entry { image, offset }], whom: vec![load] })
}

/// How often it comes, which says how much can be tried; what never comes, or too often for a probe, fails at once.
pub(super) fn rated(asked: &Asked, found: Found, stop: &AtomicBool) -> Result<Found, Failure> {
    if found.per_second.is_some() {
        return Ok(found);
    }
    for place in &found.places {
        let rate = passed_per_second(&processes(asked), &place.entries, RATED / 2);
        bearable(place, rate.map_err(|error| not_run(&error))?.unwrap_or(0.0))?;
    }
    let subject = Subject {
        children: asked.children,
        participants: asked.participants.clone(),
        seed: asked.seed,
        ..Subject::new(asked.pid)
    };
    let mut live = Live::open(&subject, &found.progress, &[], stop).map_err(|error| not_run(&error))?;
    let span = Span { settle: Duration::ZERO, length: RATED };
    for _ in 0..MET_WITHIN {
        let window = live.detached(span).map_err(|error| not_run(&error))?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        if window.visits > 0 {
            let per_second = window.visits as f64 * 1e9 / window.length_ns.max(1) as f64;
            // A phase may have begun since.
            found.places.iter().try_for_each(|place| bearable(place, per_second))?;
            return Ok(Found { per_second: Some(per_second), ..found });
        }
    }
    Err(never_met(asked, &found.name))
}

fn processes(asked: &Asked) -> Vec<Pid> {
    match asked.children {
        Children::Followed => proc::tree(asked.pid),
        Children::Strangers => vec![asked.pid],
    }
}

/// That a probe there does not stall the target.
fn bearable(place: &Probe, per_second: f64) -> Result<(), Failure> {
    if per_second > most_per_second(place) { Err(too_often(place, per_second)) } else { Ok(()) }
}

fn too_often(place: &Probe, per_second: f64) -> Failure {
    let stepped = if place.emulated { "" } else { ", on an instruction that the kernel single-steps," };
    Failure::usage(format!(
        "{} is passed {} times a second: a probe there{stepped} would stall it",
        place.name,
        thousands(per_second)
    ))
    .likely("it is a small part of a unit of work")
    .try_this("--progress with its caller, or with what is done for every hundredth")
}

fn never_met(asked: &Asked, name: &str) -> Failure {
    let seconds = RATED.as_secs_f64() * f64::from(MET_WITHIN);
    let failure =
        Failure::usage(format!("{name} was not met once in {seconds:.0} s: nothing would be counted"));
    if asked.children == Children::Strangers && proc::tree(asked.pid).len() > 1 {
        return failure
            .likely("its children do the work, and it only waits for them")
            .try_this(format!("dyno causal {} --children --progress {name}", asked.pid));
    }
    failure
        .likely("it calls another (sendto or writev for write), or nobody asks it anything")
        .try_this(format!("dyno causal {}, which looks for what could be counted", asked.pid))
}

/// What could be counted, the likeliest first.
fn could_be(asked: &Asked, resolver: &Resolver, stop: &AtomicBool) -> Result<Vec<Candidate>, Failure> {
    let pids = processes(asked);
    let (calls, profile) = watched(asked.pid, &pids, stop)?;
    let functions = resolver.passed(&profile, &pids, FUNCTIONS_MAX);
    let times = (WATCHED_EACH, (asked.budget / COUNTING_PART).max(COUNTING_LEAST));
    let functions = rates(&pids, &functions, times, stop).map_err(|error| not_run(&error))?;
    Ok(ranked(calls, functions))
}

/// Calls that send, and stacks, of the same two seconds.
fn watched(pid: Pid, pids: &[Pid], stop: &AtomicBool) -> Result<(Vec<Candidate>, Profile), Failure> {
    let options = Options { duration: Some(WATCHED), frequency_hz: LOOK_HZ, ..Options::default() };
    let recorder = Recorder::open(&Target::Process(pid), &options).map_err(|error| not_profiled(&error))?;
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| candidates(pids, WATCHED, stop));
        let profile = recorder.record(stop);
        let calls = calls.join().expect("it counts and does not panic");
        Ok((calls.map_err(|error| not_run(&error))?, profile.map_err(|error| not_profiled(&error))?))
    })
}

/// The likeliest of them.
fn taken(asked: &Asked, resolver: &Resolver, found: &[Candidate]) -> Result<Found, Failure> {
    let Some((best, others)) = found.split_first() else { return Err(nothing(asked)) };
    let others = others.iter().take(CANDIDATES_MAX).cloned().collect();
    let chosen = Some(why(best));
    let found = Found::named(named(&best.progress, resolver)?, &best.progress);
    Ok(Found { chosen, others, per_second: Some(best.per_second), ..found })
}

fn why(best: &Candidate) -> String {
    let rate = thousands(best.per_second);
    match best.share_percent {
        None => format!("{rate} a second: what it sends most often, and what is sent is likely an answer"),
        Some(share) => format!(
            "{rate} calls a second, on {share:.0} % of its stacks: nothing that is passed 20 to 20,000 times a second fits better"
        ),
    }
}

fn nothing(asked: &Asked) -> Failure {
    let failure =
        Failure::usage("nothing is named that counts as progress, and nothing was found that could");
    let has_children = proc::tree(asked.pid).len() > 1;
    if asked.children == Children::Strangers && has_children {
        return failure
            .likely("its children do the work, and it only waits for them")
            .try_this(format!("dyno causal {} --children", asked.pid));
    }
    failure
        .likely("it sends nothing and hardly runs: no function on its stacks is passed 20 to 20,000 times a second")
        .try_this("a load on it, or --progress FUNCTION, one that is called once for each unit of work")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_profile::causal::{Choice, Reach};

    fn asked() -> Asked {
        Asked {
            pid: dyno_sys::child::this(),
            children: Children::Strangers,
            point: Point::None,
            participants: Vec::new(),
            sites: Vec::new(),
            choice: Choice::new(Reach::Own),
            reach: Reach::Own,
            levels: vec![50],
            budget: WATCHED,
            seed: 1,
        }
    }

    fn candidate(progress: &str, share_percent: Option<f64>) -> Candidate {
        Candidate { progress: progress.to_owned(), per_second: 12_345.6, share_percent }
    }

    #[test]
    fn the_likeliest_is_taken_and_the_others_are_kept() {
        let resolver = Resolver::open(dyno_sys::child::this()).expect("this process can be read");
        let all = [candidate("syscall:write", None), candidate("serve", Some(70.0))];
        let found = taken(&asked(), &resolver, &all).expect("one of them");
        assert_eq!((found.name.as_str(), found.candidates().len()), ("syscall:write", 1));
        assert!(matches!(found.progress, Progress::SystemCall { .. }));
        assert!(found.chosen.is_some_and(|why| why.starts_with("12,346 a second")));
        assert_eq!(found.others[0].progress, "serve");
    }

    fn place(name: &str, emulated: bool) -> Probe {
        Probe { name: name.to_owned(), entries: Vec::new(), emulated }
    }

    /// Planted fault: one limit for all, which a single-stepped probe cannot be passed often enough to meet.
    #[test]
    fn a_place_that_is_single_stepped_stalls_the_target_sooner_and_its_cost_is_told() {
        let bears = |emulated, per_second| bearable(&place("step", emulated), per_second).is_ok();
        assert!(bears(true, 200_000.0) && !bears(true, 260_000.0));
        assert!(bears(false, 15_000.0) && !bears(false, 17_000.0) && !bears(false, 60_000.0));
        let found = |places, per_second| Found {
            per_second: Some(per_second),
            ..Found::named((Progress::Tracepoint(String::new()), places), "step")
        };
        assert_eq!(found(vec![place("step", true)], 15_000.0).warning(), None);
        let both = found(vec![place("begin", true), place("end", false)], 3_000.0).warning();
        assert!(both.is_some_and(|said| said.contains("about 5 % of one core")));
    }

    #[test]
    fn what_never_comes_and_what_comes_too_often_fail_in_three_lines() {
        let failures = [never_met(&asked(), "syscall:sendto"), too_often(&place("step", true), 1_234_567.0)];
        for (failure, word) in failures.into_iter().zip(["not met once in 3 s", "1,234,567 times"]) {
            let lines = failure.lines();
            assert!(lines.lines().count() == 3 && lines.contains(word), "{lines}");
        }
    }

    #[test]
    fn nothing_that_could_be_counted_fails_in_three_lines() {
        let resolver = Resolver::open(dyno_sys::child::this()).expect("this process can be read");
        let lines = taken(&asked(), &resolver, &[]).expect_err("nothing is there").lines();
        assert_eq!(lines.lines().count(), 3, "{lines}");
    }
}
