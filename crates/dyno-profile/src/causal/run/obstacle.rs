//! What makes every figure of a site worthless, if anything does: asked by the verdict before it reads a figure, in the
//! order in which it would mislead most. Pure.

use dyno_record::causal::Metric;

use super::backlog::Backlog;
use super::case::Case;
use super::control::{Found as Control, Rest, filled_in_words};
use super::schedule::ROUNDS_MIN;
use super::whole::{Behind, PiledUp};

/// Pauses due at windows' ends, of all that was inserted, from which on the correction for them is guesswork.
const UNPAID_PERCENT_MAX: f64 = 10.0;
/// Time that windows may cut off at their ends, percent.
pub(super) const HIDDEN_PERCENT_MAX: f64 = 3.0;
/// Part of its share of a profile that a site must be met in, and the share of it from which on chance says no less: of two
/// percent of three seconds, sixty samples, it would be three deviations.
const MET_PART_MIN: f64 = 0.6;
const MET_SHARE_MIN: f64 = 2.0;
/// Samples that must come, of those that are due, percent.
const SAMPLED_PERCENT_MIN: f64 = 90.0;
/// A level whose pauses are short.
const SMALL_LEVEL_PERCENT: f64 = 10.0;
/// Share of a run that may pass outside of windows before that is why they are few.
const WAITED_SHARE_MAX: f64 = 0.5;
/// How often a quota may be used up in a whole run.
const THROTTLED_MAX: u64 = 5;

/// What makes every figure of a site worthless, if anything does.
pub(super) fn obstacle(case: &Case<'_>) -> Option<String> {
    case.lost
        .most(case.credibility)
        .or_else(|| elsewhere(case))
        .or_else(|| unpaid(case))
        .or_else(|| outside(case))
        .or_else(|| unsettled_or_few(case))
        .or_else(|| not_tried(case))
        .or_else(|| biased(case))
}

/// The site's work lies where windows do not count, or units are counted that never end.
fn elsewhere(case: &Case<'_>) -> Option<String> {
    if let Some(PiledUp { units }) = case.piled_up {
        return Some(format!(
            "{units} more units were under way in the last third of the windows than in the first, and they came at a steady pace: units begin that never end (an error, an early return), or a queue grows, and what is counted is not the time of one that ends"
        ));
    }
    if let Some(dropped) = case.dropped {
        return Some(format!(
            "{:.0} % of its samples lie in the {:.0} % of the windows that were set aside as unlike the others: it runs in phases that are longer than a round, and no window stands for all of them",
            dropped.hits_percent, dropped.windows_percent
        ));
    }
    (case.hidden_percent > HIDDEN_PERCENT_MAX).then(|| {
        format!(
            "{:.0} % of the time lies before the first and after the last visit of windows of {:.1} s: something between two visits takes too long for them; give it some minutes",
            case.hidden_percent,
            case.length.as_secs_f64()
        )
    })
}

/// Threads were hardly delayed: what is taken out of the time was not in it.
fn unpaid(case: &Case<'_>) -> Option<String> {
    let percent = case.credibility.unpaid_percent;
    (percent > UNPAID_PERCENT_MAX).then(|| {
        format!(
            "threads still owed {percent:.0} % of the pauses when windows ended: they are seldom on a core when a sample falls"
        )
    })
}

/// Not the target says how often visits come, or it does not have the CPUs for itself.
fn outside(case: &Case<'_>) -> Option<String> {
    match case.backlog {
        Some(Backlog::Waits([before, since])) => {
            return Some(format!(
                "paced from outside: left alone it waits for something outside {before:.2} times a visit, and {since:.2} times between pauses, where it works off what came in during them"
            ));
        }
        Some(Backlog::Pace([before, since])) => {
            return Some(format!(
                "it became faster, and why is not known: {before:.1} visits a second before the first pause, and {since:.1} between pauses, as of what is paced from outside and works off what came in during them, or of a machine or a program that gets faster by itself: try again later"
            ));
        }
        Some(Backlog::HandsOn([before, since])) => {
            return Some(format!(
                "perhaps it works off a backlog: before the first pause its threads wait for each other {before:.2} times a visit, and {since:.2} times between pauses, as where a queue between them fills or drains for longer than can be waited for (or where a program warms up: try again later)"
            ));
        }
        None => {}
    }
    let counts_visits = case.metric == Metric::Throughput;
    if let Some(control) = case.control.filter(|_| counts_visits) {
        if let Rest::Told(filled) = control.rest {
            return Some(format!(
                "paced from outside: {}: so much is left over beside the work that comes in",
                filled_in_words(filled)
            ));
        }
        let alike = format!(
            "pauses of {:.0} % of the time for all threads alike make visits {:.0} % rarer",
            control.inserted_percent, control.fell_percent
        );
        if control.is_paced() {
            return Some(format!(
                "paced from outside: {alike}, so that a timer, a limit or the load decides how often they come"
            ));
        }
        if control.is_dear() {
            let why = if case.throttled > 0 {
                "a quota of CPU time, which they use up"
            } else {
                "they cost more than they last, as where a quota of CPU time is used up, or the beat of a clock is missed"
            };
            return Some(format!("{alike}: {why}"));
        }
    }
    let of_pairs = case.control.filter(|_| !counts_visits);
    if let Some(why) = of_pairs.and_then(|control| queued_or_timed(&control)) {
        return Some(why);
    }
    if case.throttled > THROTTLED_MAX {
        return Some(format!(
            "a quota of CPU time was used up {} times: pauses use it up too",
            case.throttled
        ));
    }
    case.starved_percent.filter(|_| case.control.is_none()).map(|percent| {
        format!("its threads never wait and yet run only {percent:.0} % of the time: they have a quota of CPU time, which pauses use up too")
    })
}

/// Pauses change the time from begin to end by more than they last, or a clock says how long that is.
fn queued_or_timed(control: &Control) -> Option<String> {
    let alike = format!("pauses of {:.0} % of the time for all threads alike make", control.inserted_percent);
    if control.is_paced() {
        return Some(format!(
            "paced from outside: {alike} the time from begin to end hardly longer, so that a timer or a limit decides how long it is, or it lies between threads that owe pauses"
        ));
    }
    control.is_dear().then(|| {
        format!(
            "{alike} the time from begin to end {:.0} % longer beside what they last: what comes in meanwhile waits in a queue, or a quota of CPU time is used up",
            -control.artefact * control.inserted_percent
        )
    })
}

/// Windows depend on each other, or are too few.
fn unsettled_or_few(case: &Case<'_>) -> Option<String> {
    if let Some(settled) = case.carries_over {
        return Some(format!(
            "what was done in one window still shows in the next after {} s: a queue fills or drains for longer than can be waited for",
            settled.as_secs_f64()
        ));
    }
    let rounds = case.points.iter().map(|(point, _)| point.rounds).min().unwrap_or(0);
    (rounds < ROUNDS_MIN).then(|| {
        let few = format!("only {rounds} rounds could be used, and a verdict needs {ROUNDS_MIN}");
        let [waited_s, took_s] = [case.waited, case.took].map(|time| time.as_secs_f64());
        if waited_s > WAITED_SHARE_MAX * took_s {
            return format!(
                "{few}: of {took_s:.0} s the kernel took {waited_s:.0} to put probes in and take them out, as where others keep its own threads from the CPUs; try again later, or give it more time"
            );
        }
        format!("{few}: give it more time")
    })
}

/// The site never ran, or could not be sped up.
fn not_tried(case: &Case<'_>) -> Option<String> {
    if case.never_met {
        return Some(format!(
            "it was not met once in {} windows: it runs in another process, or not while it was watched",
            case.credibility.windows
        ));
    }
    let is_missed = |share: &f64| *share >= MET_SHARE_MIN && case.met_percent < MET_PART_MIN * share;
    if let Some(share) = case.share_percent.filter(is_missed) {
        return Some(missed(case, share));
    }
    (case.is_crowded && case.credibility.pause == "spin_in_sample").then(|| {
        "more threads want to run than there are cores, and this kernel's pauses hold a whole core".to_owned()
    })
}

/// The site was met in much fewer samples than a profile finds it in.
fn missed(case: &Case<'_>, share: f64) -> String {
    let found = case.met_percent;
    if case.is_inclusive {
        return format!(
            "its callers are found by frame pointers, and so it was met in {found:.0} % of the samples where a profile finds it in {share:.0} %: build with -fno-omit-frame-pointer, or name what it calls"
        );
    }
    format!(
        "it was met in {found:.0} % of the samples where a profile finds it in {share:.0} %: it lies at another address in some of the processes, as a library that each of them loads by itself, or it ran less often than before"
    )
}

/// Every figure is biased.
fn biased(case: &Case<'_>) -> Option<String> {
    let credibility = case.credibility;
    // Of one who takes turns with its client the control says that it is waited for, where a pause is not longer than a turn:
    // what lies before it meanwhile is no more than that.
    let pause_us =
        case.control.map_or(0.0, |control| control.inserted_percent / 100.0 * credibility.period_us);
    let is_own_pace =
        case.control.is_some_and(|control| control.is_own_pace()) && pause_us * case.per_second <= 1e6;
    // What takes how long from begin to end is the target's own, whoever says how often it begins.
    let counts_visits = case.metric == Metric::Throughput;
    // A wait that is tried may be for just that.
    if counts_visits && credibility.load_bound == Some(false) && !is_own_pace && !case.is_wait {
        return Some(
            "not load-bound: at most requests the target waits for a client, a timer or another process, and leaves CPUs free: that is the limit"
                .to_owned(),
        );
    }
    if let Some(percent) = case.sampled_percent.filter(|percent| *percent < SAMPLED_PERCENT_MIN) {
        return Some(format!(
            "only {percent:.0} % of the samples came that were due, and so too few pauses: kernel.perf_event_max_sample_rate is low, or somebody keeps the CPUs"
        ));
    }
    // Who waits in a loop uses less of the CPUs where he waits less.
    let spun = case.spinning_elsewhere_percent.max(0.0);
    let is_less = |behind: &Behind| behind.lives_on_backlog && behind.fell_percent > spun;
    if let Some(behind) = case.behind.filter(is_less) {
        return Some(format!(
            "works off a backlog: other threads did {:.0} % less for each visit while it was faster, and were not waited for: visits lived on a backlog between them, and what follows when it is used up was not seen",
            behind.fell_percent
        ));
    }
    if case.in_step && case.unbiased().next().is_none() {
        return Some(format!(
            "threads take turns of about as long as samples are apart ({:.0} µs), or a part of that, and fall in step with them: it is met more often, or less often, than it runs",
            credibility.period_us
        ));
    }
    let level_percent = 100.0 * case.least_pause_us / credibility.period_us.max(1.0);
    let is_large = level_percent.round() > SMALL_LEVEL_PERCENT;
    let smaller = if is_large { "; a smaller level has shorter ones (--levels 10,25,50)" } else { "" };
    case.unbiased().next().is_none().then(|| {
        format!(
            "threads hand on to each other every {:.0} µs, less than ten of the shortest pauses ({:.0} µs): the method is biased there{smaller}",
            credibility.run_between_wakes_us.unwrap_or(0.0),
            case.least_pause_us
        )
    })
}
