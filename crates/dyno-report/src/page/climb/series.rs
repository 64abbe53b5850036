//! Raw series behind a click: every pair of a trial as the effect that it alone would have shown.

use dyno_measure::judge::{self, PAIRS_MIN, Rule};
use dyno_measure::series::{Block, Metric};
use dyno_measure::units::percent_of_log;
use dyno_record::trial::Compared;

use super::view::View;
use crate::page::chart::{Points, points};
use crate::page::html::{Tag, tag};
use crate::page::parts::{effect_words, tied};

/// A trial's pairs, with the effect that was read from them; recomputed here when the record names none.
pub(super) fn trial(view: &View<'_>, compared: &Compared, read: Option<(f64, [f64; 2])>) -> Tag {
    let trial = &compared.trial;
    let logs: Vec<f64> = trial.pairs.iter().map(|pair| pair.log_ratio(trial.metric)).collect();
    let title = format!("{}: {} pairs, {}", compared.title(), logs.len(), trial.metric);
    let lost = match trial.invalid_pairs {
        0 => String::new(),
        n => format!(" {n} pairs were thrown away: too few replies, or no clock."),
    };
    details(view, &title, &logs, read, &lost)
}

/// CPU per request of one arm against another in every round of the total, with what was read from its starts.
pub(super) fn rounds(view: &View<'_>, title: &str, from: usize, to: usize) -> Option<Tag> {
    let cpu = |round: &[Block], at: usize| round.get(at).map(|block| block.value(Metric::CpuPerRequest));
    let of_round = |round: &Vec<Block>| Some((cpu(round, to)? / cpu(round, from)?).ln());
    let logs: Vec<f64> = view.climb.series.rounds.iter().filter_map(of_round).collect();
    let levels = view.climb.total.as_ref().and_then(|total| total.levels(&view.climb.series));
    let read = levels.and_then(|levels| levels.ratio(from, to)).map(|e| (e.percent(), e.interval_percent()));
    (!logs.is_empty()).then(|| details(view, title, &logs, read, ""))
}

fn details(view: &View<'_>, title: &str, logs: &[f64], read: Option<(f64, [f64; 2])>, lost: &str) -> Tag {
    let values: Vec<f64> = logs.iter().map(|log| percent_of_log(*log)).collect();
    let estimate = read.or_else(|| trimmed(logs));
    let words = effect_words(estimate.map(|(value, _)| value), estimate.map(|(_, interval)| interval));
    let sentence = format!("Effect of each pair in percent, in the order of measuring; estimate {words}.");
    let series = Points { values: &values, stride: view.stride, estimate, sentence: &sentence };
    let (picture, beyond) = points(&series);
    let mut caption =
        format!("Each dot is one pair's effect, in the order of measuring. Line and band: {words}.");
    match beyond {
        0 => {}
        1 => caption.push_str(" A wild one lies beyond the picture and stands at its edge."),
        n => caption.push_str(&format!(" {n} wild ones lie beyond the picture and stand at its edge.")),
    }
    if view.stride > 1 {
        caption.push_str(&format!(" One pair in {} is drawn; the record has all.", view.stride));
    }
    caption.push_str(lost);
    let figure = tag("figure").push(picture).push(tag("figcaption").text(tied(&caption)));
    tag("details").push(tag("summary").text(tied(title))).push(figure)
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
