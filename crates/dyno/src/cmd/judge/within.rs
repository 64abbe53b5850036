//! What an interval of two lists holds, and what it cannot: starts of a program, which a flat list does not show.

use dyno_lab::Failure;
use dyno_measure::apart::{Known, apart_in_one_start};
use dyno_measure::dependence::Told;
use dyno_measure::judge::{Estimate, Verdict};
use dyno_measure::means::Means;
use dyno_measure::starts::{Order, PAIRS_OF_STARTS_MIN, of_starts};

use super::numbers::{Numbers, Source};

/// Fewer starts have an interval many times as wide as what they differ by.
const STARTS_ENOUGH: usize = 4;
/// Numbers of two sides that differ by more are not of one thing: nanoseconds and days are fourteen powers of ten apart.
const APART_MAX: f64 = 1e15;

/// The order in which both sides' starts were made.
fn order(is_unpaired: bool) -> Order {
    if is_unpaired { Order::None } else { Order::InTurns }
}

/// By starts, where a side says where they begin.
pub(super) fn by_starts(
    a: &Numbers,
    b: &Numbers,
    is_unpaired: bool,
    alpha: f64,
) -> Option<(Told, Option<Means>)> {
    let is_said = a.has_starts() || b.has_starts();
    let [of_a, of_b] = [a, b].map(starts);
    let (told, means) = is_said.then(|| of_starts(&of_a, &of_b, order(is_unpaired), alpha)).flatten()?;
    Some((told.rounded(rounding(a, b)), means))
}

/// What rounding may have made of a ratio, log.
pub(super) fn rounding(a: &Numbers, b: &Numbers) -> f64 {
    a.rounding() + b.rounding()
}

/// The numbers of each start; hyperfine starts the program for each number.
fn starts(list: &Numbers) -> Vec<&[f64]> {
    match list.source {
        Source::Hyperfine => list.values.chunks(1).collect(),
        Source::List | Source::Go => list.by_start(),
    }
}

/// How many starts a side has.
pub(super) fn counts(a: &Numbers, b: &Numbers) -> [usize; 2] {
    [a, b].map(|list| starts(list).len())
}

/// What was compared, in words.
pub(super) fn counted([a, b]: [usize; 2], is_unpaired: bool) -> String {
    match !is_unpaired && a == b && a >= PAIRS_OF_STARTS_MIN {
        true => format!("{a} pairs of starts"),
        false => format!("{b} against {a} starts"),
    }
}

/// What few starts do not tell.
pub(super) fn few_starts([a, b]: [usize; 2]) -> Option<String> {
    let least = a.min(b);
    let few = if least == 1 { "start on a side is little" } else { "starts on a side are few" };
    (least < STARTS_ENOUGH).then(|| {
        format!("{least} {few}: more starts tell smaller differences, and more numbers of each do not")
    })
}

/// Another start of the same program is in no interval of a flat list. Not said where that could not change the answer.
/// `is_exact`: the numbers of a side are the same in every run, as bytes and allocations are, and so they are in every start.
pub(super) fn one_start(
    (verdict, estimate): (Verdict, &Estimate),
    is_exact: bool,
    [a, b]: [&Numbers; 2],
) -> Option<&'static str> {
    let is_flat = [a, b].iter().any(|list| list.starts.len() == 1);
    let sources = [a.source, b.source];
    let of = if sources.contains(&Source::Go) { ONE_RUN } else { ONE_START };
    let is_one =
        is_flat && !(is_exact && estimate.half_width < EXACT) && !sources.contains(&Source::Hyperfine);
    (is_one && may_be_a_start(verdict, estimate)).then_some(of)
}

/// Whether what single starts are supposed to differ by, as between two loads, may take the answer away.
pub(super) fn may_be_a_start(verdict: Verdict, estimate: &Estimate) -> bool {
    let exact = Known { log: 0.0, half_width: 0.0 };
    let nearest = estimate.log_ratio.abs() - estimate.half_width;
    verdict == Verdict::NoDifference || nearest < apart_in_one_start(exact, exact).half_width
}

/// Rounding of logarithms is far below.
const EXACT: f64 = 1e-9;
const ONE_START: &str = "the interval is that of these numbers: if each side is one start of a program, another start of the same one may differ by 1 to 2 % \
     more; give several starts a side, in turns, each after a line \"# start\", and the interval is that of starts";
const ONE_RUN: &str = "all numbers of one go test are one start of the program, and another start of the same one may differ by 1 to 2 % more: run it \
     several times a side, in turns, into the same files (>> old, >> new), and the interval is that of starts";

/// Runs of one side failed: what ends at once is not faster.
pub(super) fn one_failed(a: &Numbers, b: &Numbers) -> Option<Failure> {
    let (bad, good) = match (a.failed, b.failed) {
        (0, 0) => return None,
        (0, _) => (b, a),
        (_, 0) => (a, b),
        _ => return None,
    };
    let what = format!(
        "{} of {} runs of {} failed, and none of {}",
        bad.failed,
        bad.values.len(),
        bad.name,
        good.name
    );
    Some(
        Failure::error(what)
            .likely("it crashed or was refused (hyperfine -i passes over that): the time of a run that fails is of another thing")
            .try_this("hyperfine without -i, which says how it fails; a status that means something can be swallowed: sh -c 'COMMAND; true'"),
    )
}

/// Where runs of both sides failed, which may be how the program says something.
pub(super) fn all_failed([a, b]: [&Numbers; 2]) -> String {
    let of = |list: &Numbers| format!("{} of {} runs of {}", list.failed, list.values.len(), list.name);
    format!("{} and {} ended with another status than 0", of(a), of(b))
}

/// Numbers that are no measurements of one thing: their ratios have no percent.
pub(super) fn too_far_apart(a: &Numbers, b: &Numbers) -> Option<Failure> {
    let ends = |list: &Numbers| {
        let low = list.values.iter().copied().fold(f64::INFINITY, f64::min);
        [low, list.values.iter().copied().fold(0.0, f64::max)]
    };
    let [[a_low, a_high], [b_low, b_high]] = [a, b].map(ends);
    let (low, high) = (a_low.min(b_low), a_high.max(b_high));
    (high.ln() - low.ln() > APART_MAX.ln()).then(|| {
        let what = format!("{} and {} hold numbers from {low:e} to {high:e}", a.name, b.name);
        Failure::error(what)
            .likely("they are in different units, or one of them is damaged: no two measurements of one thing lie so far apart")
            .try_this("the same unit on both sides")
    })
}
