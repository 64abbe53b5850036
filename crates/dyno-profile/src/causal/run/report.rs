//! What an experiment has measured, as a record: every site with its figures, its verdict and the reason for it.

use dyno_measure::stats;
use dyno_record::causal::{
    self as record, CAUSAL_SCHEMA, Causal, Credibility, Point, SlowDown, Treatment, Verdict,
};

use super::case::Case;
use super::experiment::Outcome;
use super::lost::Lost;
use super::measured::{Excluded, Measured, foreign_percent};
use super::schedule::VISITS_MIN;
use super::seen::{self, is_crowded, latency_us, per_second, rate};
use super::site_run::SiteRun;
use super::slow_down::{self, Plan};
use super::verdict;
use super::whole;
use crate::causal::rig::site::{Place, Reach};
use crate::causal::rig::window::Window;

/// Beyond this level, percent, the method extrapolates.
const LEVEL_PERCENT_MAX: u32 = 50;

const NS_PER_S: f64 = 1e9;

/// Only what belongs to the experiment is filled in.
pub(super) fn causal(mut outcome: Outcome<'_>) -> Causal {
    let slopes = outcome.sites.iter_mut().filter_map(|site| site.estimates.slope.as_mut());
    verdict::adjust(&mut slopes.collect::<Vec<_>>());
    let outcome = &outcome;
    let mut sites: Vec<record::Site> = (0..outcome.sites.len()).map(|at| site(outcome, at)).collect();
    sites.sort_by(|a, b| by_weight(b).total_cmp(&by_weight(a)));
    assert_eq!(sites.len(), outcome.sites.len(), "a site that was tried is in the record");
    let nulls = || nulls(outcome);
    Causal {
        schema: CAUSAL_SCHEMA.to_owned(),
        seed: outcome.asked.seed,
        options: record::Options {
            levels_percent: outcome.asked.levels_percent.clone(),
            budget_s: outcome.asked.budget.as_secs_f64(),
            ..record::Options::default()
        },
        progress: record::Progress {
            name: outcome.asked.progress.clone(),
            metric: outcome.asked.metric,
            per_second: per_second(nulls()),
            latency_us: latency_us(nulls()),
            ..record::Progress::default()
        },
        credibility: credibility(outcome),
        control: outcome.control.found().map(|found| found.recorded()),
        overhead: outcome.watching.overhead(inserted_percent(outcome)),
        warnings: warnings(outcome),
        sites,
        ..Causal::default()
    }
}

/// The windows of all sites.
fn measured<'o>(outcome: &'o Outcome<'_>) -> impl Iterator<Item = &'o Measured> {
    outcome.sites.iter().flat_map(|site| &site.measured)
}

/// Windows without delay.
fn nulls<'o>(outcome: &'o Outcome<'_>) -> impl Iterator<Item = &'o Window> {
    let of_sites = measured(outcome).filter(|one| one.is_null()).map(|one| &one.window);
    outcome.nulls.iter().chain(of_sites)
}

/// What was seen over all windows.
fn credibility(outcome: &Outcome<'_>) -> Credibility {
    let windows = measured(outcome).map(|one| &one.window).chain(&outcome.nulls);
    let sds = outcome.sites.iter().map(|site| site.estimates.nulls.sd_percent);
    let sds: Vec<f64> = sds.filter(|sd| *sd > 0.0).collect();
    Credibility {
        dropped_windows: measured(outcome).filter(|one| one.excluded.is_some()).count(),
        null_sd_percent: if sds.is_empty() { 0.0 } else { stats::mean(&sds) },
        ..seen::credibility(windows, outcome.sampling)
    }
}

/// Share of the time that was inserted as delay, over all windows with delays.
fn inserted_percent(outcome: &Outcome<'_>) -> f64 {
    let delayed = || measured(outcome).filter(|one| matches!(one.treatment, Treatment::SpeedUp(_)));
    let effective = delayed().filter_map(|one| one.effective);
    let inserted_ns: f64 = effective.map(|effective| effective.inserted_ns).sum();
    let length_ns: f64 = delayed().map(|one| one.window.length_ns as f64).sum();
    100.0 * inserted_ns / length_ns.max(1.0)
}

fn warnings(outcome: &Outcome<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if outcome.watching.is_unknown() && !outcome.too_few_visits {
        warnings.push("there was no time to measure what watching costs".to_owned());
    }
    if outcome.control.is_missing() && !outcome.too_few_visits {
        warnings.push(format!(
            "there is no control, since three pairs of windows of {:.1} s had no time or were lost: whether pauses alone look like an effect is not known; give it some minutes",
            outcome.length.as_secs_f64()
        ));
    }
    let lost: u64 = measured(outcome).map(|one| one.window.lost).sum();
    if lost > 0 {
        warnings
            .push(format!("{lost} threads or processes were more than the tables hold: they took no part"));
    }
    let unsettled = measured(outcome).filter(|one| one.excluded == Some(Excluded::Unsettled)).count();
    if unsettled > 0 {
        warnings.push(format!(
            "what was done in one window still showed in the next, as where a queue fills and drains: {unsettled} windows are not used, and the others settled for {} s first",
            outcome.settle.as_secs_f64()
        ));
    }
    for site in outcome.sites.iter().filter(|site| site.carryover_points > 0.0) {
        warnings.push(format!(
            "{}: what was done in one window still showed in the next, by {:.1} %, and there was no time to let it settle: its figures may be off by as much; give it some minutes",
            site.tried.site.name, site.carryover_points
        ));
    }
    let [asked, tried] = [&outcome.asked.levels_percent, &outcome.levels].map(Vec::len);
    if tried < asked && !outcome.too_few_visits {
        let levels: Vec<String> = outcome.levels.iter().map(|level| format!("{level} %")).collect();
        warnings.push(format!(
            "there was no time for all levels at {} sites, at windows of {:.2} s: only {} faster was tried; --for some minutes, or fewer --site, for all",
            outcome.sites.len(),
            outcome.length.as_secs_f64(),
            levels.join(" and ")
        ));
    }
    let greatest = outcome.asked.levels_percent.iter().max();
    if let Some(greatest) = greatest.filter(|greatest| **greatest > LEVEL_PERCENT_MAX) {
        warnings.push(format!("{greatest} % is beyond half: where a part nearly vanishes other costs go with it, and the figure is an extrapolation"));
    }
    warnings
}

fn site(outcome: &Outcome<'_>, at: usize) -> record::Site {
    let site = &outcome.sites[at];
    let points = site.points(outcome.sampling, outcome.control.found());
    let credibility = Credibility {
        dropped_windows: site.measured.iter().filter(|one| one.excluded.is_some()).count(),
        null_sd_percent: site.estimates.nulls.sd_percent,
        ..seen::credibility(site.windows(), outcome.sampling)
    };
    let slow_down = slow_down(outcome, site, &points);
    let (verdict, reason) = answer(outcome, at, &points, &credibility, slow_down.as_ref());
    assert!(!reason.is_empty(), "a verdict has a reason");
    record::Site {
        name: site.tried.site.name.clone(),
        source: site.tried.source.clone(),
        share_percent: site.tried.share_percent,
        verdict,
        reason,
        points: points.into_iter().map(|(point, _)| point).collect(),
        slope: site.estimates.slope,
        nulls: site.estimates.nulls,
        no_slow_down: match &site.slow_down {
            Plan::Impossible(why) => Some(why.clone()),
            Plan::Longer(_) if slow_down.is_none() => Some("there was no time for it".to_owned()),
            Plan::Longer(_) | Plan::NotWanted => None,
        },
        slow_down,
        spent_s: site.spent_ns as f64 / NS_PER_S,
        credibility,
        windows: site.measured.iter().map(recorded).collect(),
    }
}

fn slow_down(outcome: &Outcome<'_>, site: &SiteRun<'_>, points: &[(Point, f64)]) -> Option<SlowDown> {
    let claim = site.claim().and_then(|claim| {
        let mut points = points.iter().map(|(point, _)| point);
        points.find(|point| point.speedup_percent == claim.speedup_percent)
    });
    let (cost, metric) = (site.estimates.cost, outcome.asked.metric);
    slow_down::outcome(&site.slow_down, cost, &site.measured, metric, outcome.sampling.period_ns, claim)
}

/// The verdict and its reason.
fn answer(
    outcome: &Outcome<'_>,
    at: usize,
    points: &[(Point, f64)],
    credibility: &Credibility,
    slow_down: Option<&SlowDown>,
) -> (Verdict, String) {
    if outcome.too_few_visits {
        let seconds = outcome.length.as_secs_f64();
        let reason = format!(
            "too few visits: the progress point was met less than {VISITS_MIN} times in {seconds:.0} s"
        );
        return (Verdict::NotMeasurable, reason);
    }
    let (site, asked) = (&outcome.sites[at], outcome.asked);
    let others = outcome.sites.iter().enumerate().filter(|(other, _)| *other != at);
    let spinning = others.filter(|(_, site)| site.tried.is_spinning);
    let named_percent: f64 = spinning.filter_map(|(_, site)| site.tried.share_percent).sum();
    let own_percent = site.tried.share_percent.filter(|_| site.tried.is_spinning).unwrap_or(0.0);
    let least_percent = asked.levels_percent.iter().copied().min().unwrap_or(0);
    let switches = rate(site.windows(), |window| window.runnable_waits);
    verdict::verdict(&Case {
        metric: asked.metric,
        estimates: &site.estimates,
        points,
        credibility,
        least_pause_us: credibility.period_us * f64::from(least_percent) / 100.0,
        slow_down,
        lost: Lost::of(&site.measured),
        carries_over: site.carries_over.then_some(outcome.settle),
        carryover_points: site.carryover_points,
        // Loops that no site names hold others up all the same.
        spinning_elsewhere_percent: named_percent.max(outcome.spinning_percent - own_percent),
        is_spinning: site.tried.is_spinning,
        is_wait: matches!(site.tried.site.place, Place::Wait(_)),
        never_met: site.windows().all(|window| window.hits == 0),
        is_crowded: is_crowded(switches, credibility.target_cpu_percent, asked.cpus),
        sites: outcome.sites.len(),
        share_percent: site.tried.share_percent,
        per_second: seen::per_second(site.windows()),
        control: outcome.control.found(),
        backlog: outcome.backlog,
        throttled: outcome.throttled,
        starved_percent: seen::starved_percent(credibility, asked.cpus),
        hidden_percent: outcome.hidden_percent,
        piled_up: whole::piled_up(site.windows()),
        dropped: whole::dropped(&site.measured),
        behind: whole::behind(&site.measured, nulls(outcome)),
        callees_percent: site.tried.source.callees_percent,
        in_step: outcome.levels.iter().any(|level| site.is_in_step(*level)),
        met_percent: met_percent(site),
        is_inclusive: site.tried.site.reach == Reach::Inclusive,
        sampled_percent: sampled_percent(site.windows()),
        runs_in_phases: whole::runs_in_phases(&site.measured),
        length: outcome.length,
        took: outcome.took,
        waited: outcome.waited,
    })
}

/// Samples that came, of those that were due, percent; `None` where that is not known.
fn sampled_percent<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<f64> {
    let (came, due) =
        windows.fold((0, 0), |(came, due), window| (came + window.ticks, due + window.ticks_due));
    (due > 0).then(|| 100.0 * came as f64 / due as f64)
}

/// Share of the samples that met the site while it was made faster, percent.
fn met_percent(site: &SiteRun<'_>) -> f64 {
    let tried = site.measured.iter().filter(|one| matches!(one.treatment, Treatment::SpeedUp(_)));
    let (hits, samples) =
        tried.fold((0, 0), |(hits, samples), one| (hits + one.window.hits, samples + one.window.samples));
    100.0 * hits as f64 / samples.max(1) as f64
}

/// Claims first, the greatest effect first; then what has none, then what cannot be said.
fn by_weight(site: &record::Site) -> f64 {
    let effect = site.carrying().map_or(0.0, |point| point.effect_percent.abs());
    match site.verdict {
        Verdict::Helps | Verdict::Hurts => 2_000.0 + effect,
        Verdict::NoEffect => 1_000.0 + effect,
        Verdict::NotMeasurable => effect.min(999.0),
    }
}

fn recorded(one: &Measured) -> record::Window {
    let window: &Window = &one.window;
    let effective = one.effective.as_ref();
    record::Window {
        round: one.round,
        treatment: one.treatment,
        length_ms: window.length_ns as f64 / 1e6,
        visits: window.visits,
        period_us: effective.map(|effective| effective.period_ns / 1e3),
        latency_us: effective.and_then(|effective| effective.latency_ns).map(|latency| latency / 1e3),
        inserted_ms: effective.map_or(0.0, |effective| effective.inserted_ns / 1e6),
        hits: window.hits,
        samples: window.samples,
        foreign_percent: foreign_percent(window),
        dropped: one.excluded.map(|why| why.words().to_owned()),
    }
}
