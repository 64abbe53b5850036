//! Raw series behind a click: every pair of a trial as the effect that it alone would have shown.

use dyno_measure::judge::{self, PAIRS_MIN, Rule};
use dyno_measure::series::{Block as Measured, Metric};
use dyno_measure::units::percent_of_log;
use dyno_record::climb::Climb;
use dyno_record::trial::Compared;

use crate::number;
use crate::view::block::Block;
use crate::view::chart::{Chart, Figure, Points};

/// Raw points on a page, over all its series: ten bytes each leave room for everything else within 400 kB.
const POINTS_MAX: usize = 12_000;

/// A trial's pairs, with the effect that was read from them; recomputed here when the record names none.
pub(super) fn trial(climb: &Climb, compared: &Compared, read: Option<(f64, [f64; 2])>) -> Block {
    let trial = &compared.trial;
    let logs: Vec<f64> = trial.pairs.iter().map(|pair| pair.log_ratio(trial.metric)).collect();
    let title = format!("{}: {} pairs, {}", compared.title(), logs.len(), trial.metric);
    let lost = match trial.invalid_pairs {
        0 => String::new(),
        n => format!(" {n} pairs were excluded: too few replies, or no clock."),
    };
    details(climb, title, &logs, read, &lost)
}

/// CPU per request of one arm against another in every round of the total, with what was read from its starts.
pub(super) fn rounds(climb: &Climb, title: &str, from: usize, to: usize) -> Option<Block> {
    let cpu = |round: &[Measured], at: usize| round.get(at).map(|block| block.value(Metric::CpuPerRequest));
    let of_round = |round: &Vec<Measured>| Some((cpu(round, to)? / cpu(round, from)?).ln());
    let logs: Vec<f64> = climb.series.rounds.iter().filter_map(of_round).collect();
    let levels = climb.total.as_ref().and_then(|total| total.levels(&climb.series));
    let read = levels.and_then(|levels| levels.ratio(from, to)).map(|e| (e.percent(), e.interval_percent()));
    (!logs.is_empty()).then(|| details(climb, title.to_owned(), &logs, read, ""))
}

fn details(climb: &Climb, title: String, logs: &[f64], read: Option<(f64, [f64; 2])>, lost: &str) -> Block {
    let values: Vec<f64> = logs.iter().map(|log| percent_of_log(*log)).collect();
    let estimate = read.or_else(|| trimmed(logs));
    let words = number::estimate(estimate.map(|(value, _)| value), estimate.map(|(_, interval)| interval));
    let stride = stride(climb);
    let points = Points::new(&values, stride, estimate);
    let beyond = match points.beyond() {
        0 => String::new(),
        1 => " A wild one lies beyond the picture and stands at its edge.".to_owned(),
        n => format!(" {n} wild ones lie beyond the picture and stand at its edge."),
    };
    let thinned = if stride > 1 {
        format!(" One pair in {stride} is drawn; the record has all.")
    } else {
        String::new()
    };
    let figure = Figure {
        chart: Chart::Points(points),
        sentence: format!("Effect of each pair in percent, in the order of measuring; estimate {words}."),
        caption: format!(
            "Each dot is one pair's effect, in the order of measuring. Line and band: {words}.{beyond}{thinned}{lost}"
        ),
    };
    Block::Details(title, vec![Block::Figure(figure)])
}

/// Every how many-th raw point is drawn.
fn stride(climb: &Climb) -> usize {
    let pairs: usize = climb.series.trials.iter().map(|compared| compared.trial.pairs.len()).sum();
    (pairs + climb.series.rounds.len()).div_ceil(POINTS_MAX).max(1)
}

/// The trimmed mean of what is finite, with the interval of the judge's quick rule.
fn trimmed(logs: &[f64]) -> Option<(f64, [f64; 2])> {
    let finite: Vec<f64> = logs.iter().copied().filter(|log| log.is_finite()).collect();
    if finite.len() < PAIRS_MIN {
        return None;
    }
    let estimate = judge::trimmed_mean(&finite, Rule::QUICK.z);
    Some((estimate.percent(), estimate.interval_percent()))
}
