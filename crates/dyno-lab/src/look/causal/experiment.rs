//! The experiments on a process that runs: from what is asked for to the record. The verb and specimens call it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_profile::causal::{
    self, Children, Choice, Live, Progress, Reach, Resolver, Spinning, Subject, Tried, of_processes,
};
use dyno_profile::{Options, Recorder, Target};
use dyno_record::causal::{Causal, Metric, Point, Standing};
use dyno_record::machine::Missing;
use dyno_record::profile::{Profile, Target as Named};
use dyno_sys::clock::{mono_ns, process_cpu_ns};
use dyno_sys::{Pid, affinity, proc};

use super::asked::Asked;
use super::event::Event;
use super::failure::{no_site, not_run, unknown};
use super::progress::{self, Found};
use crate::failure::Failure;
use crate::look::refused::not_profiled;

/// What a profile takes that chooses sites: two percent of ten seconds are two hundred samples.
const CHOOSING: Duration = Duration::from_secs(10);
/// What it takes where sites are named and only their shares are wanted.
const WEIGHING: Duration = Duration::from_secs(3);
/// A profile takes no more than this part of the budget.
const PROFILE_PART: u32 = 4;

/// Experiments until the budget is spent or somebody wants to stop.
pub fn experiment(
    asked: &Asked,
    on_event: &mut dyn FnMut(Event<'_>),
    stop: &AtomicBool,
) -> Result<Causal, Failure> {
    let begun_ns = mono_ns();
    let started_unix_s = dyno_sys::clock::real_coarse_s();
    on_event(Event::Stage("reading its symbols"));
    let resolver = Resolver::open(asked.pid).map_err(|error| no_site(&error))?;
    let found = progress::resolved(asked, &resolver, on_event, stop)?;
    let found = progress::rated(asked, found, stop)?;
    let named =
        asked.sites.iter().map(|name| resolver.named(name, asked.reach).map_err(|error| no_site(&error)));
    let named = named.collect::<Result<Vec<Tried>, Failure>>()?;
    on_event(Event::Stage("profiling it, to know its sites"));
    let profile = profile(asked, stop)?;
    let spent = Duration::from_nanos(mono_ns() - begun_ns);
    let fits = found.per_second.map_or(asked.choice.sites_max, |per_second| {
        causal::sites_that_fit(per_second, asked.budget.saturating_sub(spent))
    });
    let choice = Choice { sites_max: asked.choice.sites_max.min(fits), ..asked.choice };
    let (sites, missing) = sites(asked, &resolver, (named, &choice), &profile);
    if sites.is_empty() && stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    if sites.is_empty() {
        return Err(unknown(asked, &profile));
    }
    on_event(Event::Stage("attaching"));
    let spent = Duration::from_nanos(mono_ns() - begun_ns);
    let left = asked.budget.saturating_sub(spent);
    let children = children_cpu_ns(asked);
    let spinning = resolver.spinning(&profile);
    let mut record = run(asked, &found, (&sites, &spinning), left, on_event, stop)?;
    let children = children_cpu_ns(asked).saturating_sub(children);
    tell_children(&mut record, children as f64 / 1e9);
    record.started_unix_s = started_unix_s;
    record.duration_s = (mono_ns() - begun_ns) as f64 / 1e9;
    record.options.budget_s = asked.budget.as_secs_f64();
    record.not_measured.extend(missing);
    record.warnings.extend(found.warning());
    record.warnings.extend(profile.warnings.iter().map(|warning| format!("in the profile: {warning}")));
    Ok(record)
}

fn profile(asked: &Asked, stop: &AtomicBool) -> Result<Profile, Failure> {
    let wanted = if asked.sites.is_empty() { CHOOSING } else { WEIGHING };
    let options = Options { duration: Some(wanted.min(asked.budget / PROFILE_PART)), ..Options::default() };
    let recorder =
        Recorder::open(&Target::Process(asked.pid), &options).map_err(|error| not_profiled(&error))?;
    let profile = recorder.record(stop).map_err(|error| not_profiled(&error))?;
    Ok(match asked.children {
        Children::Followed => profile,
        // What its children did is not tried.
        Children::Strangers => of_processes(&profile, &[asked.pid]),
    })
}

/// Named ones with their shares, or the ones with most samples.
fn sites(
    asked: &Asked,
    resolver: &Resolver,
    (mut named, choice): (Vec<Tried>, &Choice),
    profile: &Profile,
) -> (Vec<Tried>, Vec<Missing>) {
    if asked.sites.is_empty() {
        return resolver.chosen(profile, choice);
    }
    named.iter_mut().for_each(|tried| resolver.weigh(tried, profile));
    (named, Vec::new())
}

fn run(
    asked: &Asked,
    found: &Found,
    (sites, spinning): (&[Tried], &Spinning),
    budget: Duration,
    on_event: &mut dyn FnMut(Event<'_>),
    stop: &AtomicBool,
) -> Result<Causal, Failure> {
    let subject = Subject {
        children: asked.children,
        participants: asked.participants.clone(),
        seed: asked.seed,
        ..Subject::new(asked.pid)
    };
    let places: Vec<causal::Site> = sites.iter().map(|tried| tried.site.clone()).collect();
    let live = Live::open(&subject, &found.progress, &places, stop).map_err(|error| not_run(&error))?;
    let mut live = live.with_spinning(spinning).map_err(|error| not_run(&error))?;
    let wanted = causal::Asked {
        levels_percent: asked.levels.clone(),
        budget,
        seed: asked.seed,
        metric: if matches!(found.progress, Progress::Between { .. }) {
            Metric::Latency
        } else {
            Metric::Throughput
        },
        progress: found.name.clone(),
        cpus: affinity::of(asked.pid).map_or(1, |cpus| cpus.len()),
    };
    let mut watch = |event: &causal::RoundEvent<'_>| {
        let told =
            |point: Point| (point.speedup_percent, point.effect_percent, half_width(point.interval_percent));
        let effect = event.running.map(told);
        let standing = Standing {
            site: event.site,
            round: event.round as usize,
            effect,
            done: event.done,
            left: event.left,
        };
        on_event(Event::Standing(standing));
        if let Some(warning) = &event.warning {
            on_event(Event::Warning(warning));
        }
    };
    let record = causal::run(&wanted, &mut live, sites, &mono_ns, &mut watch, stop);
    let mut record = record.map_err(|error| not_run(&error))?;
    record.version = env!("CARGO_PKG_VERSION").to_owned();
    record.target = target(asked.pid);
    record.progress.chosen.clone_from(&found.chosen);
    record.progress.candidates = found.candidates();
    record.options.sites.clone_from(&asked.sites);
    record.options.inclusive = asked.reach == Reach::Inclusive;
    record.options.participants = asked.participants.iter().map(|pid| pid.cast_unsigned()).collect();
    Ok(record)
}

/// CPU time of the target's children, where they are not tried with it.
fn children_cpu_ns(asked: &Asked) -> u64 {
    let others = proc::tree(asked.pid).into_iter().filter(|pid| *pid != asked.pid);
    match asked.children {
        Children::Followed => 0,
        Children::Strangers => others.filter_map(|pid| process_cpu_ns(pid).ok()).sum(),
    }
}

/// Share of one CPU that children must have used to be told.
const CHILDREN_SHARE_MIN: f64 = 0.05;

/// Children that are not tried are strangers on the CPUs; they are the target's own all the same.
fn tell_children(record: &mut Causal, children_s: f64) {
    let share = children_s / record.duration_s.max(1e-9);
    if share < CHILDREN_SHARE_MIN {
        return;
    }
    let said = format!(
        "its own children used {:.0} % of one CPU meanwhile, and count as other processes: --children takes them in",
        100.0 * share
    );
    let is_lost = |site: &&mut dyno_record::causal::Site| site.reason.starts_with("other processes used");
    record.sites.iter_mut().filter(is_lost).for_each(|site| site.reason += &format!("; {said}"));
    record.warnings.push(said);
}

fn half_width([low, high]: [f64; 2]) -> f64 {
    (high - low).abs() / 2.0
}

fn target(pid: Pid) -> Named {
    Named {
        pid: Some(pid.cast_unsigned()),
        name: proc::name(pid).unwrap_or_default(),
        argv: proc::command_line(pid).unwrap_or_default(),
        scope: "process".into(),
        also: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::causal::Site;

    #[test]
    fn children_that_have_the_cpus_are_told_as_its_own() {
        let lost = Site { reason: "other processes used 77.0 % of the CPUs".to_owned(), ..Site::default() };
        let record = || Causal { duration_s: 10.0, sites: vec![lost.clone()], ..Causal::default() };
        let mut told = record();
        tell_children(&mut told, 7.0);
        assert!(told.sites[0].reason.ends_with("--children takes them in"), "{}", told.sites[0].reason);
        assert!(told.warnings[0].contains("70 % of one CPU"));
        let mut idle = record();
        tell_children(&mut idle, 0.1);
        assert_eq!(idle, record());
    }
}
