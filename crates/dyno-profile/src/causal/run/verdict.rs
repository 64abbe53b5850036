//! What may be said of a site, and why. Pure: figures in, one of four answers and a sentence out.
//!
//! A verdict is never read from a figure whose bias is known: what stands in the way is asked first (`obstacle`), in the
//! order in which it would mislead most.

use dyno_record::causal::{Credibility, Metric, Point, Slope, SlowDown, Verdict};

use super::case::{CHANCE_MAX, Case, WORTH_POINTS};
use super::control::{Rest, filled_in_words};
use super::obstacle::obstacle;
use super::schedule::{NARROW_POINTS, narrow_enough};
use super::seen::OUTER_WAKES_PER_VISIT;

/// Share of samples in loops that wait from which on others may be held up by pauses of those who spin.
const SPINNING_PERCENT_MAX: f64 = 10.0;
/// So many times what a speed-up saves a slow-down may cost beside them, for as much of it: others may take over as the limit.
const SPINNING_COST_MAX: f64 = 2.0;
/// Wake-ups of each other, per second, from which on threads wait for each other.
const INNER_WAKES_MIN: f64 = 1.0;
/// What other processes use of the CPUs, percent, from which on they are named as a cause of noise.
const OTHERS_PERCENT_NAMED: f64 = 5.0;
/// What the hypervisor kept of the CPUs, percent, from which on it is named as a cause of noise.
const STEAL_PERCENT_NAMED: f64 = 2.0;

/// Multiplies chances by how many sites were tried, the smallest by all of them, the next by one less (Holm, 1979).
pub(super) fn adjust(slopes: &mut [&mut Slope]) {
    slopes.sort_by(|a, b| a.p.total_cmp(&b.p));
    let (n, mut least) = (slopes.len(), 0.0_f64);
    for (at, slope) in slopes.iter_mut().enumerate() {
        least = least.max((slope.p * (n - at) as f64).min(1.0));
        slope.p_adjusted = least;
    }
    debug_assert!(slopes.iter().all(|slope| slope.p_adjusted >= slope.p), "more sites never prove more");
}

/// The answer and its reason.
pub(super) fn verdict(case: &Case<'_>) -> (Verdict, String) {
    let (verdict, said) = judged(case);
    match case.callees_percent {
        Some(percent) => (
            verdict,
            format!(
                "{said}; only its own code was made faster: what it calls has {percent:.0} % of the samples (--inclusive)"
            ),
        ),
        None => (verdict, said),
    }
}

fn judged(case: &Case<'_>) -> (Verdict, String) {
    if let Some(obstacle) = obstacle(case) {
        return (Verdict::NotMeasurable, obstacle);
    }
    let (Some(slope), Some(greatest)) = (case.estimates.slope, case.greatest()) else {
        return (Verdict::NotMeasurable, "too few windows could be used".to_owned());
    };
    debug_assert!(!greatest.biased, "no verdict is read from a figure whose bias is known");
    let level = f64::from(greatest.speedup_percent);
    let [low, high] = slope.interval.map(|per_percent| per_percent * level);
    // The method's own error is no chance: what it and chance together may explain is nothing.
    let is_beyond = low > greatest.allowance_points || high < -greatest.allowance_points;
    let is_real = slope.p_adjusted < CHANCE_MAX && is_beyond && greatest.effect_percent.abs() >= WORTH_POINTS;
    // The line and the figure that is given must say the same: a curve that rises and falls has no slope to speak of.
    let agree = slope.per_percent.is_sign_positive() == greatest.effect_percent.is_sign_positive();
    let (gain, loss) = (case.gain(), case.loss());
    if let (Some(gain), Some(loss)) = (gain, loss) {
        return rises_and_falls(case, gain, loss);
    }
    match slope.per_percent * level {
        total if is_real && agree && total >= WORTH_POINTS => helps(case, greatest),
        total if is_real && agree && total <= -WORTH_POINTS => hurts(case, greatest),
        _ => contention(case).unwrap_or_else(|| neither(case, slope, greatest)),
    }
}

/// A curve that rises first: it is no contention that the part is faster, only that it is faster by so much.
fn rises_and_falls(case: &Case<'_>, gain: &Point, loss: &Point) -> (Verdict, String) {
    let fallen = Point { effect_percent: -loss.effect_percent, interval_percent: flipped(loss), ..*loss };
    let falls = effect_in_words(case, &fallen, "costs");
    if gain.biased || gain.speedup_percent > loss.speedup_percent {
        let rises = effect_in_words(case, gain, "saves");
        return (Verdict::NotMeasurable, format!("levels disagree: {rises}, and {falls}"));
    }
    let (verdict, said) = helps(case, gain);
    (verdict, format!("{said}; beyond that it turns: {falls}"))
}

/// Contention that shows at levels whose figures are inexact only: where the loss is greater than all that they may be
/// off by, that there is one is certain.
fn contention(case: &Case<'_>) -> Option<(Verdict, String)> {
    let tests = case.points.len() as f64 * case.sites as f64;
    let is_loss = |(point, p): &&(Point, f64)| {
        point.biased && p * tests < CHANCE_MAX && point.interval_percent[1] <= -WORTH_POINTS
    };
    let (point, _) = case.points.iter().filter(is_loss).max_by_key(|(point, _)| point.speedup_percent)?;
    Some(hurts(case, point))
}

fn helps(case: &Case<'_>, point: &Point) -> (Verdict, String) {
    let said = effect_in_words(case, point, "saves");
    if let Some(slow) = case.slow_down.filter(|slow| slow.contradicts) {
        let [low, high] = slow.interval_percent;
        return (
            Verdict::NotMeasurable,
            format!(
                "the virtual speed-up {said}, but really slowing it down by {:.0} % costs only {:.1} % ({low:.1} to {high:.1}): one of them is wrong",
                slow.slowdown_percent, slow.cost_percent
            ),
        );
    }
    if let Some(why) = impossible(case).or_else(|| unproved(case, point)) {
        return (Verdict::NotMeasurable, format!("the virtual speed-up {said}, but {why}"));
    }
    if let Some(why) = spins_in_a_crowd(case) {
        return (Verdict::NotMeasurable, format!("the virtual speed-up {said}, but {why}"));
    }
    if let Some(why) = pays_elsewhere(case) {
        if case.slow_down.is_none() {
            return (
                Verdict::NotMeasurable,
                format!("the virtual speed-up {said}, but {why}, and nothing else bears the figure out"),
            );
        }
        if let Some(slow) = case.slow_down.filter(|slow| !bears_out(slow, point)) {
            return (
                Verdict::NotMeasurable,
                format!(
                    "the virtual speed-up {said}, but really slowing it down by {:.0} % costs only {:.1} %, and {why}",
                    slow.slowdown_percent, slow.cost_percent
                ),
            );
        }
        if costs_more(case, point) {
            return (
                Verdict::NotMeasurable,
                format!("the virtual speed-up {said}{}, but {why}: the figure is too small", beside(case)),
            );
        }
    }
    (Verdict::Helps, format!("{}{}{}{}", said, turns(case), beside(case), lasts(case)))
}

/// Whether really slowing the site down may cost as much as the virtual speed-up saves at least, for as much of it.
fn bears_out(slow: &SlowDown, point: &Point) -> bool {
    let share = f64::from(point.speedup_percent) / slow.slowdown_percent.max(1.0);
    slow.interval_percent[1] * share >= point.interval_percent[0]
}

/// Whether really slowing the site down costs more than the virtual speed-up saves, for as much of it. Beside loops that wait
/// others may take over as the limit. Where CPUs are what is short they do not: the same work is saved and added, at each level.
fn costs_more(case: &Case<'_>, point: &Point) -> bool {
    let Some(slow) = case.slow_down else { return false };
    let is_more = |point: &Point, times: f64| {
        let share = f64::from(point.speedup_percent) / slow.slowdown_percent.max(1.0);
        slow.interval_percent[0] * share > times * point.interval_percent[1]
    };
    match case.is_crowded {
        true => case.unbiased().any(|(point, _)| is_more(point, 1.0)),
        false => is_more(point, SPINNING_COST_MAX),
    }
}

/// Why pauses may be paid by others than those who would wait longer, if they may: by loops that wait, and on a core that
/// threads share, where what one does is put to the next one's account, also if they have nothing to do with each other.
fn pays_elsewhere(case: &Case<'_>) -> Option<String> {
    if case.spinning_elsewhere_percent > SPINNING_PERCENT_MAX {
        return Some(pays_late(case));
    }
    case.is_crowded.then(|| {
        "more threads want to run than there are cores: whoever has a core next is taken to have waited for the one before"
            .to_owned()
    })
}

/// Who waits by spinning pauses at its own samples like whoever works, and holds up others by it at another time.
fn pays_late(case: &Case<'_>) -> String {
    format!("{}: whoever spins pays late", spins(case))
}

/// Loops that wait where more threads want to run than there are cores: whatever the figure says, up or down.
fn spins_in_a_crowd(case: &Case<'_>) -> Option<String> {
    (case.is_crowded && case.spinning_elsewhere_percent > SPINNING_PERCENT_MAX).then(|| {
        format!(
            "{}, on cores that others want: pauses change who has one, and so would the real change",
            spins(case)
        )
    })
}

fn spins(case: &Case<'_>) -> String {
    format!("{:.0} % of the samples lie in loops that wait", case.spinning_elsewhere_percent)
}

/// More than all the time that was taken from a part cannot be saved, unless others wait less for it: that is believed where
/// a real slow-down costs as much more.
fn impossible(case: &Case<'_>) -> Option<String> {
    let seen = case.credibility;
    let waits =
        seen.inner_wakes >= INNER_WAKES_MIN || case.is_spinning || case.spinning_elsewhere_percent > 0.0;
    let size = |point: &Point| f64::from(point.speedup_percent);
    let beyond =
        case.unbiased().map(|(point, _)| point).find(|point| point.interval_percent[0] > size(point))?;
    let is_borne_out = case.slow_down.is_some_and(|slow| bears_out(slow, beyond));
    let why = match (waits, case.slow_down) {
        (true, Some(_)) if is_borne_out => return None,
        (true, None) => "others may wait less for it, and no slow-down could be tried that would show it",
        _ => "something else changes with the pauses",
    };
    let Point { speedup_percent, effect_percent, .. } = beyond;
    Some(format!("{speedup_percent} % less of it cannot save {effect_percent:.1} %: {why}"))
}

/// A target that waits for time may be paced by it. Pauses for all alike would tell.
fn unproved(case: &Case<'_>, point: &Point) -> Option<String> {
    if let Some(control) = case.control {
        // How often units begin does not matter to how long they take.
        let rest = if case.metric == Metric::Latency { Rest::NotAsked } else { control.rest };
        if let Rest::Open(filled) = rest {
            let why = filled.map_or_else(|| "smaller pauses had no time".to_owned(), filled_in_words);
            return Some(format!("{why}: it may be paced from outside, and hardly rest; give it more time"));
        }
        let seeming = control.seeming_points(point.inserted_percent);
        return (!control.seems_less_than(point)).then(|| match control.shows_something() {
            false => format!(
                "what pauses for all threads alike do by themselves is not known well enough ({} pairs of windows; they may seem to save up to {seeming:.1} %){}: give it more time or a quieter machine",
                control.pairs,
                lost_to_others(case)
            ),
            true => format!(
                "pauses for all threads alike may seem to save up to {seeming:.1} % by themselves: it may be paced from outside, in part"
            ),
        });
    }
    // A real slow-down says little: who hardly rests pays it.
    let is_open = outer_wakes_per_visit(case) >= OUTER_WAKES_PER_VISIT;
    is_open.then(|| {
        "the target waits for something outside between visits, and whether that paces it could not be tried: it may be paced from outside"
            .to_owned()
    })
}

/// Who it was that took windows, where others were there.
fn lost_to_others(case: &Case<'_>) -> String {
    let percent = case.credibility.foreign_percent;
    if percent < OTHERS_PERCENT_NAMED {
        return String::new();
    }
    format!(", other processes using {percent:.0} % of the CPUs")
}

/// Said where others did less for each visit than they do without pauses, and nothing shows that they are waited for.
fn lasts(case: &Case<'_>) -> String {
    case.behind.filter(|behind| behind.fell_percent > 0.0).map_or_else(String::new, |behind| {
        format!(
            "; other threads did {:.0} % less for each visit meanwhile: if visits need what they do, it lasts no longer than what was done before",
            behind.fell_percent
        )
    })
}

/// Said where more was done for each visit, and nothing shows that anybody waits for it.
fn works_ahead(case: &Case<'_>) -> String {
    case.behind.filter(|behind| behind.fell_percent < 0.0).map_or_else(String::new, |behind| {
        format!(
            "; {:.0} % more work was done for each visit meanwhile: if visits need it, they wait for it once what is in store is used up",
            -behind.fell_percent
        )
    })
}

fn hurts(case: &Case<'_>, point: &Point) -> (Verdict, String) {
    let said = effect_in_words(
        case,
        &Point { effect_percent: -point.effect_percent, interval_percent: flipped(point), ..*point },
        "costs",
    );
    if let Some(why) = unchecked(case).or_else(|| spins_in_a_crowd(case)) {
        return (Verdict::NotMeasurable, format!("the virtual speed-up {said}, but {why}"));
    }
    let why = if case.is_spinning {
        "it is a loop that waits: while it runs, others are held up"
    } else {
        "those who get there sooner are in each other's way"
    };
    (Verdict::Hurts, format!("{said}: {why}"))
}

/// Pauses may cost a target more than they last: a control would tell, and there was none.
fn unchecked(case: &Case<'_>) -> Option<String> {
    let seen = case.credibility;
    let waits = outer_wakes_per_visit(case) >= OUTER_WAKES_PER_VISIT;
    (case.control.is_none() && (seen.capped > 0 || waits)).then(|| {
        let what =
            if waits { "it waits for something outside between visits" } else { "pauses were cut short" };
        format!("{what}, and no control says whether pauses alone cost it as much: give it some minutes")
    })
}

fn outer_wakes_per_visit(case: &Case<'_>) -> f64 {
    case.credibility.outer_wakes / case.per_second.max(1e-9)
}

fn flipped(point: &Point) -> [f64; 2] {
    let [low, high] = point.interval_percent;
    [-high, -low]
}

/// No claim: there is no effect, or none can be distinguished from noise and from what the method may be off by.
fn neither(case: &Case<'_>, slope: Slope, greatest: &Point) -> (Verdict, String) {
    if case.carryover_points >= NARROW_POINTS {
        return (
            Verdict::NotMeasurable,
            format!(
                "what was done in one window still showed in the next, by {:.1} %, and there was no time to let it settle: give it some minutes",
                case.carryover_points
            ),
        );
    }
    let is_flat = slope.p_adjusted >= CHANCE_MAX;
    let levels = case.unbiased().count() as f64;
    let is_effect =
        |(point, p): &&(Point, f64)| p * levels < CHANCE_MAX && point.effect_percent.abs() >= WORTH_POINTS;
    if let Some((point, _)) = case.unbiased().find(is_effect).filter(|_| is_flat) {
        return (
            Verdict::NotMeasurable,
            format!(
                "levels disagree: {}, and the line through all of them holds zero",
                effect_in_words(case, point, "saves")
            ),
        );
    }
    let narrow = case.unbiased().map(|(point, _)| point).filter(|point| is_narrow(point, case.share_percent));
    let widest = narrow.max_by_key(|point| point.speedup_percent);
    if case.runs_in_phases {
        return (
            Verdict::NotMeasurable,
            format!(
                "it runs in phases, in some windows and hardly in others: {}",
                too_wide(case.credibility, greatest)
            ),
        );
    }
    if let Some(point) = widest.filter(|_| is_flat || greatest.effect_percent.abs() < WORTH_POINTS) {
        let [low, high] = point.interval_percent;
        let said = format!(
            "{} % faster changes less than can be measured: {low:+.1} to {high:+.1} % of {}",
            point.speedup_percent,
            time_of(case.metric)
        );
        if case.spinning_elsewhere_percent > SPINNING_PERCENT_MAX {
            return (
                Verdict::NotMeasurable,
                format!("{said}, but {}: an effect may be hidden", pays_late(case)),
            );
        }
        if case.behind.is_some_and(|behind| behind.lives_on_backlog) {
            return (
                Verdict::NotMeasurable,
                format!("{said}, but a queue fills meanwhile{}", works_ahead(case)),
            );
        }
        return (Verdict::NoEffect, format!("{said}{}{}", lasts(case), works_ahead(case)));
    }
    (Verdict::NotMeasurable, too_wide(case.credibility, greatest))
}

/// Whether an interval around nothing excludes what would matter, all that the method may be off by in it.
fn is_narrow(point: &Point, share_percent: Option<f64>) -> bool {
    let [low, high] = point.interval_percent;
    low <= 0.0
        && high >= 0.0
        && low.abs().max(high.abs()) <= narrow_enough(point.speedup_percent, share_percent)
}

fn too_wide(credibility: &Credibility, greatest: &Point) -> String {
    let (noise, steal) = (credibility.null_sd_percent, credibility.steal_percent);
    let others = credibility.foreign_percent;
    let used =
        (others >= OTHERS_PERCENT_NAMED).then(|| format!(", other processes used {others:.0} % of the CPUs"));
    let kept =
        (steal >= STEAL_PERCENT_NAMED).then(|| format!(", and the hypervisor kept {steal:.0} % of the CPUs"));
    let stolen: String = used.into_iter().chain(kept).collect();
    let ([low, high], level) = (greatest.interval_percent, greatest.speedup_percent);
    let off = greatest.allowance_points;
    if 2.0 * off > (high - low) / 2.0 {
        return format!(
            "{level} % faster, the interval is {low:+.1} to {high:+.1} %, and {off:.1} points of each side are what the method may be off by here: more time would not change that"
        );
    }
    format!(
        "{level} % faster, after {} rounds the interval is still {low:+.1} to {high:+.1} % (a window without delay deviates by {noise:.1} %{stolen}): give it more time or a quieter machine",
        greatest.rounds
    )
}

/// `50 % faster saves 8.1 % (7.2 to 9.0) of the time per visit`.
fn effect_in_words(case: &Case<'_>, point: &Point, verb: &str) -> String {
    let [low, high] = point.interval_percent;
    format!(
        "{} % faster {verb} {:.1} % ({low:.1} to {high:.1}) of {}",
        point.speedup_percent,
        point.effect_percent,
        time_of(case.metric)
    )
}

/// What an effect is a share of.
fn time_of(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "the time per visit",
        Metric::Latency => "the time from begin to end",
    }
}

/// Said of a curve whose greatest level brings less than a smaller one.
fn turns(case: &Case<'_>) -> String {
    let unbiased = || case.unbiased().map(|(point, _)| point);
    let best = unbiased().max_by(|a, b| a.effect_percent.total_cmp(&b.effect_percent));
    let last = unbiased().max_by_key(|point| point.speedup_percent);
    match (best, last) {
        (Some(best), Some(last)) if best.interval_percent[0] > last.interval_percent[1] => {
            format!("; the gain is greatest at {} %", best.speedup_percent)
        }
        _ => String::new(),
    }
}

/// What the slow-down adds to a claim that it does not contradict.
fn beside(case: &Case<'_>) -> String {
    let Some(slow) = case.slow_down else { return String::new() };
    let [low, high] = slow.interval_percent;
    let more = if low > slow.slowdown_percent {
        ": more than all of it, as where whoever waits for it waits in a queue and is woken for it; a real change may save more than is told"
    } else {
        ""
    };
    format!(
        "; really slowing it down by {:.0} % costs {:.1} % ({low:.1} to {high:.1}){more}",
        slow.slowdown_percent, slow.cost_percent
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::control::Found as Control;
    use super::super::estimate::Estimates;
    use super::super::lost::Lost;
    use super::super::whole::Behind;
    use super::super::whole::PiledUp;
    use super::*;
    use dyno_record::causal::SlowDown;
    use std::time::Duration;

    fn estimates(effect: f64, half: f64, p: f64) -> Estimates {
        let points = [10, 25, 50].map(|level| {
            let part = effect * f64::from(level) / 50.0;
            let point = Point {
                speedup_percent: level,
                effect_percent: part,
                interval_percent: [part - half, part + half],
                rounds: 20,
                ..Point::default()
            };
            (point, p)
        });
        let per_percent = effect / 50.0;
        let slope = Slope {
            per_percent,
            interval: [per_percent - half / 50.0, per_percent + half / 50.0],
            p,
            p_adjusted: p,
        };
        Estimates { points: points.to_vec(), slope: Some(slope), ..Estimates::default() }
    }

    fn case(estimates: &Estimates) -> Case<'_> {
        static PLAIN: std::sync::LazyLock<Credibility> = std::sync::LazyLock::new(Credibility::default);
        Case {
            metric: Metric::Throughput,
            estimates,
            points: &estimates.points,
            credibility: &PLAIN,
            least_pause_us: 100.0,
            slow_down: None,
            lost: Lost::default(),
            carries_over: None,
            carryover_points: 0.0,
            spinning_elsewhere_percent: 0.0,
            is_spinning: false,
            is_wait: false,
            never_met: false,
            is_crowded: false,
            sites: 1,
            share_percent: None,
            per_second: 1_000.0,
            control: None,
            backlog: None,
            throttled: 0,
            starved_percent: None,
            hidden_percent: 0.0,
            piled_up: None,
            dropped: None,
            behind: None,
            runs_in_phases: false,
            callees_percent: None,
            in_step: false,
            met_percent: 100.0,
            is_inclusive: false,
            sampled_percent: None,
            length: Duration::from_millis(250),
            took: Duration::from_secs(60),
            waited: Duration::ZERO,
        }
    }

    fn judged(estimates: &Estimates) -> (Verdict, String) {
        verdict(&case(estimates))
    }

    #[test]
    fn the_four_answers_and_their_reasons() {
        let (helps, why) = judged(&estimates(18.0, 0.8, 1e-9));
        assert_eq!(helps, Verdict::Helps);
        assert_eq!(why, "50 % faster saves 18.0 % (17.2 to 18.8) of the time per visit");
        let (hurts, why) = judged(&estimates(-6.0, 0.8, 1e-9));
        assert_eq!(hurts, Verdict::Hurts);
        assert!(why.starts_with("50 % faster costs 6.0 % (5.2 to 6.8)"), "{why}");
        assert_eq!(judged(&estimates(0.2, 0.8, 0.6)).0, Verdict::NoEffect);
        assert_eq!(judged(&estimates(0.3, 0.1, 1e-6)).0, Verdict::NoEffect, "real, and too small to matter");
        let (wide, why) = judged(&estimates(1.2, 2.8, 0.3));
        assert_eq!(wide, Verdict::NotMeasurable);
        assert!(why.contains("-1.6 to +4.0 %"), "{why}");
        let stolen = Credibility { steal_percent: 12.0, ..Credibility::default() };
        let noisy = estimates(1.2, 2.8, 0.3);
        let (_, why) = verdict(&Case { credibility: &stolen, ..case(&noisy) });
        assert!(why.contains("the hypervisor kept 12 % of the CPUs"), "{why}");
    }

    /// Planted faults: the control not asked (`is_own_pace` of none); asked for no more than its mean.
    #[test]
    fn who_takes_turns_with_its_client_is_measured_where_the_control_says_that_it_is_waited_for() {
        let good = estimates(18.0, 0.8, 1e-9);
        let asleep = Credibility { load_bound: Some(false), ..Credibility::default() };
        let told = |artefact: f64, half_width: f64| {
            let control = Some(Control::of_quarter(artefact, half_width));
            verdict(&Case { credibility: &asleep, control, ..case(&good) }).0
        };
        assert_eq!(told(0.0, 0.05), Verdict::Helps);
        assert_eq!(told(0.1, 0.2), Verdict::NotMeasurable, "a part of the pauses may be lost on it");
        assert_eq!(told(0.3, 0.05), Verdict::NotMeasurable, "it rests in a part of them");
        assert_eq!(verdict(&Case { credibility: &asleep, ..case(&good) }).0, Verdict::NotMeasurable);
    }

    /// Planted fault: whoever waits for somebody outside is refused, also where that wait is what is tried (`is_wait` not asked).
    #[test]
    fn of_a_wait_that_is_tried_it_is_no_obstacle_that_the_target_waits() {
        let good = estimates(18.0, 0.8, 1e-9);
        let asleep = Credibility { load_bound: Some(false), ..Credibility::default() };
        let told = |is_wait| verdict(&Case { credibility: &asleep, is_wait, ..case(&good) }).0;
        assert_eq!([told(true), told(false)], [Verdict::Helps, Verdict::NotMeasurable]);
    }

    /// Threads that wait in a loop use less CPU time where they wait less. Planted fault: that is work which was not done.
    #[test]
    fn what_others_spin_less_is_no_backlog() {
        let good = estimates(18.0, 0.8, 1e-9);
        let told = |spinning_elsewhere_percent| {
            let behind = Some(Behind { fell_percent: 7.0, lives_on_backlog: true });
            verdict(&Case { behind, spinning_elsewhere_percent, ..case(&good) }).1
        };
        assert!(told(30.0).contains("loops that wait"), "{}", told(30.0));
        assert!(told(0.5).contains("works off a backlog"), "{}", told(0.5));
    }

    #[test]
    fn who_tries_large_levels_alone_is_told_that_small_ones_have_short_pauses() {
        let good = estimates(18.0, 0.8, 1e-9);
        let points: Vec<(Point, f64)> =
            good.points.iter().map(|(point, p)| (Point { biased: true, ..*point }, *p)).collect();
        let seen = Credibility { period_us: 1_000.0, ..Credibility::default() };
        let told = |least_pause_us| {
            verdict(&Case { points: &points, credibility: &seen, least_pause_us, ..case(&good) }).1
        };
        assert!(told(250.0).contains("--levels 10"), "{}", told(250.0));
        assert!(!told(100.0).contains("--levels"), "{}", told(100.0));
    }

    #[test]
    fn what_stands_in_the_way_is_said_before_any_figure() {
        let good = estimates(18.0, 0.8, 1e-9);
        let owing = Credibility { unpaid_percent: 40.0, ..Credibility::default() };
        let unbound = Credibility { load_bound: Some(false), ..Credibility::default() };
        let spin = Credibility { pause: "spin_in_sample".to_owned(), ..Credibility::default() };
        let biased = good
            .points
            .clone()
            .into_iter()
            .map(|(point, p)| (Point { biased: true, ..point }, p))
            .collect::<Vec<_>>();
        let few: Vec<_> = good.points.iter().map(|(point, p)| (Point { rounds: 4, ..*point }, *p)).collect();
        for (case, words) in [
            (Case { credibility: &owing, ..case(&good) }, "owed 40 %"),
            (Case { credibility: &unbound, ..case(&good) }, "load-bound"),
            (Case { credibility: &spin, is_crowded: true, ..case(&good) }, "cores"),
            (Case { points: &biased, ..case(&good) }, "hand on"),
            (Case { points: &biased, in_step: true, ..case(&good) }, "in step"),
            (Case { never_met: true, ..case(&good) }, "not met once"),
            (Case { piled_up: Some(PiledUp { units: 600 }), ..case(&good) }, "never end"),
            (Case { lost: Lost { to_others: 0.6, ..Lost::default() }, ..case(&good) }, "other processes"),
            (
                Case { lost: Lost { to_hypervisor: 0.6, ..Lost::default() }, ..case(&good) },
                "the hypervisor kept",
            ),
            (Case { lost: Lost { to_few_visits: 0.6, ..Lost::default() }, ..case(&good) }, "visits"),
            (Case { lost: Lost { to_expiry: 0.6, ..Lost::default() }, ..case(&good) }, "dyno itself"),
            (
                Case { carries_over: Some(Duration::from_secs(1)), ..case(&good) },
                "still shows in the next after 1 s",
            ),
            (Case { spinning_elsewhere_percent: 30.0, ..case(&good) }, "loops that wait"),
            (
                Case { share_percent: Some(40.0), met_percent: 20.0, ..case(&good) },
                "met in 20 % of the samples where a profile finds it in 40 %: it lies at another address",
            ),
            (
                Case { share_percent: Some(40.0), met_percent: 20.0, is_inclusive: true, ..case(&good) },
                "frame pointers",
            ),
            (Case { sampled_percent: Some(60.0), ..case(&good) }, "only 60 % of the samples came"),
            (Case { points: &few, ..case(&good) }, "a verdict needs 5: give it more time"),
            (
                Case { points: &few, waited: Duration::from_secs(40), ..case(&good) },
                "of 60 s the kernel took 40 to put probes in",
            ),
        ] {
            let (answer, why) = verdict(&case);
            assert!(answer == Verdict::NotMeasurable && why.contains(words), "{why}");
        }
    }

    /// Planted fault: a small gain is told though really slowing the site down costs many times as much.
    #[test]
    fn a_gain_that_spinning_waiters_hide_most_of_is_no_answer() {
        let small = estimates(3.4, 1.0, 1e-9);
        let slow = SlowDown {
            contradicts: false,
            slowdown_percent: 50.0,
            cost_percent: 54.5,
            interval_percent: [50.0, 59.0],
            ..SlowDown::default()
        };
        let case = Case { slow_down: Some(&slow), spinning_elsewhere_percent: 30.0, ..case(&small) };
        let (answer, why) = verdict(&case);
        assert!(answer == Verdict::NotMeasurable && why.contains("the figure is too small"), "{why}");
    }

    /// A thread that has nothing to do with the visits seemed to save 25 % of them on the core that it shares.
    ///
    /// Planted faults: `pays_elsewhere` asks for loops that wait alone; none of `bears_out` and `costs_more`.
    #[test]
    fn where_threads_share_cores_a_gain_is_told_if_a_slow_down_costs_about_as_much() {
        let gain = estimates(25.0, 3.0, 1e-9);
        let told = |costs: Option<f64>| {
            let slow = costs.map(|cost| SlowDown {
                slowdown_percent: 50.0,
                cost_percent: cost,
                interval_percent: [cost - 2.0, cost + 2.0],
                ..SlowDown::default()
            });
            verdict(&Case { slow_down: slow.as_ref(), is_crowded: true, ..case(&gain) })
        };
        assert_eq!(told(Some(26.0)).0, Verdict::Helps);
        for (costs, words) in [
            (None, "nothing else bears"),
            (Some(10.0), "costs only 10.0 %"),
            (Some(50.0), "figure is too small"),
        ] {
            let (answer, why) = told(costs);
            assert!(answer == Verdict::NotMeasurable && why.contains(words), "{why}");
            assert!(why.contains("more threads want to run"), "{why}");
        }
        // A level that saves much less than it costs is none, however wide the greatest one's interval is. Planted fault: the
        // greatest alone is asked.
        let mut points = gain.points.clone();
        points[1].0 = Point { effect_percent: 8.0, interval_percent: [7.0, 9.0], ..points[1].0 };
        let slow = SlowDown {
            slowdown_percent: 50.0,
            cost_percent: 26.0,
            interval_percent: [24.0, 28.0],
            ..SlowDown::default()
        };
        let case = Case { points: &points, slow_down: Some(&slow), is_crowded: true, ..case(&gain) };
        let (answer, why) = verdict(&case);
        assert!(answer == Verdict::NotMeasurable && why.contains("figure is too small"), "{why}");
    }

    /// As four threads at a spin lock on two cores: 10 % less outside of it was told to save 5 %, and costs 3. Planted fault: what
    /// spins is not asked where cores are shared.
    #[test]
    fn where_loops_that_wait_hold_cores_that_others_want_nothing_is_told() {
        let gain = estimates(25.0, 3.0, 1e-9);
        let slow = SlowDown {
            slowdown_percent: 50.0,
            cost_percent: 26.0,
            interval_percent: [24.0, 28.0],
            ..SlowDown::default()
        };
        let told = |spinning_elsewhere_percent| {
            let slow_down = Some(&slow);
            verdict(&Case { slow_down, is_crowded: true, spinning_elsewhere_percent, ..case(&gain) })
        };
        let (answer, why) = told(30.0);
        assert!(answer == Verdict::NotMeasurable && why.contains("cores that others want"), "{why}");
        assert_eq!(told(3.0).0, Verdict::Helps);
    }

    /// A consumer that spins pays as late as it is sampled, and its producer, half of all time, seemed to be worth nothing.
    /// Planted fault: nothing is asked of who spins where no effect is found.
    #[test]
    fn no_effect_is_found_where_waiters_spin() {
        let flat = estimates(1.0, 1.5, 0.4);
        let (answer, why) = verdict(&Case { spinning_elsewhere_percent: 30.0, ..case(&flat) });
        assert!(
            answer == Verdict::NotMeasurable && why.contains("30 % of the samples lie in loops"),
            "{why}"
        );
        let (answer, why) = verdict(&Case { spinning_elsewhere_percent: 3.0, ..case(&flat) });
        assert_eq!(answer, Verdict::NoEffect, "{why}");
    }

    /// Planted fault: a loss is told that nothing was held against.
    #[test]
    fn contention_that_pauses_alone_might_explain_is_none() {
        let loss = estimates(-6.0, 0.8, 1e-9);
        let capped = Credibility { capped: 3, ..Credibility::default() };
        let woken = Credibility { outer_wakes: 200.0, ..Credibility::default() };
        for (credibility, word) in [(&capped, "cut short"), (&woken, "waits for something outside")] {
            let (answer, why) = verdict(&Case { credibility, ..case(&loss) });
            assert!(answer == Verdict::NotMeasurable && why.contains(word), "{why}");
        }
    }

    /// A part cannot cost more than itself unless others wait the longer for it, and they wait the less when it is faster.
    /// Planted fault: a slow-down of any cost is told alike.
    #[test]
    fn of_a_part_that_costs_more_than_itself_the_gain_is_a_least_one() {
        let good = estimates(28.0, 3.0, 1e-9);
        let told = |cost: f64| {
            let slow = SlowDown {
                slowdown_percent: 50.0,
                cost_percent: cost,
                interval_percent: [cost - 5.0, cost + 5.0],
                ..SlowDown::default()
            };
            verdict(&Case { slow_down: Some(&slow), ..case(&good) }).1
        };
        assert!(told(77.0).contains("may save more"), "{}", told(77.0));
        assert!(!told(52.0).contains("may save more"), "{}", told(52.0));
    }

    /// As a virtual machine that waits for its own timers now and then: its pairs differ, and by no more than chance. Planted
    /// faults: a gain is asked to be beyond all that pauses may seem to save, as if both were at their ends at once; what is
    /// chance is called a pace.
    #[test]
    fn a_control_that_shows_nothing_is_held_against_a_gain_as_one_figure_against_another() {
        let gain = estimates(14.6, 11.5, 1e-9);
        let told = |gain: &Estimates, artefact: f64, half_width: f64| {
            let control = Some(Control::of_quarter(artefact, half_width));
            let points: Vec<(Point, f64)> = gain
                .points
                .iter()
                .map(|(point, p)| (Point { inserted_percent: 15.0, ..*point }, *p))
                .collect();
            verdict(&Case { points: &points, control, ..case(gain) })
        };
        assert_eq!(told(&gain, 0.04, 0.17).0, Verdict::Helps);
        let (answer, why) = told(&gain, 0.04, 0.9);
        assert!(answer == Verdict::NotMeasurable && why.contains("not known well enough"), "{why}");
        let (answer, why) = told(&gain, 0.3, 0.1);
        assert!(answer == Verdict::NotMeasurable && why.contains("paced from outside, in part"), "{why}");
    }

    #[test]
    fn a_claim_that_a_slow_down_contradicts_is_none() {
        let good = estimates(15.0, 2.0, 1e-9);
        let slow = SlowDown {
            contradicts: true,
            slowdown_percent: 50.0,
            cost_percent: 5.0,
            interval_percent: [2.0, 8.0],
            ..SlowDown::default()
        };
        let (answer, why) = verdict(&Case { slow_down: Some(&slow), ..case(&good) });
        assert_eq!(answer, Verdict::NotMeasurable);
        assert!(why.contains("saves 15.0 %") && why.contains("costs only 5.0 % (2.0 to 8.0)"), "{why}");
    }

    #[test]
    fn who_looks_at_more_sites_needs_more_proof() {
        let mut slopes = [0.03, 0.001, 0.02].map(|p| Slope { p, ..Slope::default() });
        let mut all: Vec<&mut Slope> = slopes.iter_mut().collect();
        adjust(&mut all);
        let adjusted: Vec<f64> = slopes.iter().map(|slope| slope.p_adjusted).collect();
        assert_eq!(adjusted, [0.04, 0.003, 0.04]);
    }

    #[test]
    fn a_loss_greater_than_all_bias_of_hand_offs_is_contention() {
        let flat = estimates(0.2, 3.0, 0.6);
        let with = |effect: f64, half: f64, p: f64| {
            let mut points = flat.points.clone();
            points[2] = (
                Point {
                    effect_percent: effect,
                    interval_percent: [effect - half, effect + half],
                    biased: true,
                    ..points[2].0
                },
                p,
            );
            points
        };
        let judged = |points: &[(Point, f64)], sites| verdict(&Case { points, sites, ..case(&flat) });
        let (answer, why) = judged(&with(-20.0, 9.5, 1e-4), 3);
        assert_eq!(answer, Verdict::Hurts);
        assert!(why.starts_with("50 % faster costs 20.0 % (10.5 to 29.5)"), "{why}");
        assert_eq!(judged(&with(-20.0, 19.8, 1e-4), 3).0, Verdict::NotMeasurable, "it may be nothing");
        assert_eq!(
            judged(&with(-20.0, 9.5, 4e-3), 3).0,
            Verdict::NotMeasurable,
            "nine figures were looked at"
        );
        assert_eq!(
            judged(&with(20.0, 9.5, 1e-4), 3).0,
            Verdict::NotMeasurable,
            "a gain is read from unbiased levels"
        );
    }

    #[test]
    fn what_the_method_may_be_off_by_is_no_effect() {
        let small = estimates(2.0, 0.3, 1e-9);
        let off = small
            .points
            .iter()
            .map(|(point, p)| (Point { allowance_points: 2.5, ..*point }, *p))
            .collect::<Vec<_>>();
        assert_ne!(verdict(&Case { points: &off, ..case(&small) }).0, Verdict::Helps);
    }
}
