//! All sites in one table: effect, interval, verdict, reason.

use dyno_record::causal::{Causal, Point, Site, Verdict};

use crate::number::{NONE, effect};
use crate::view::block::{Block, OnPage, OnTerminal, Section};
use crate::view::show::{self, Tone};
use crate::view::table::{self, Column, Row, Table, figure, link};

/// A template instance may fill a page; what is longer has a line of its own.
const NAME_MAX: usize = 48;

const COLUMNS: [Column; 6] = [
    Column::words("site", NAME_MAX),
    Column::figure("samples %", 3, 12).under("samples {} %"),
    Column::figure("saved per % faster", 2, 24).under("saved per % faster {}"),
    Column::figure("saved, at most faster", 1, 32).under("saved {}"),
    Column::page("rounds"),
    Column::words("verdict", usize::MAX),
];

pub(super) fn section(record: &Causal) -> Option<Section> {
    let rows: Vec<Row> = record.sites.iter().enumerate().map(|(at, site)| row(at, site)).collect();
    let none = rows.is_empty();
    let table = Table::new("Every site", &COLUMNS, rows);
    let place = (OnPage::Body, OnTerminal::Found);
    (!none).then(|| Section::new("figures", "Figures", place, vec![Block::Table(table)]))
}

/// The anchor of a site's card.
pub(super) fn anchor(at: usize) -> String {
    format!("site-{}", at + 1)
}

/// What one level brings: `−3.1 % ±0.8` is a loss.
pub(super) fn effect_of(point: &Point) -> String {
    effect(point.effect_percent, point.interval_percent)
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Helps => Tone::Good,
        Verdict::Hurts => Tone::Bad,
        Verdict::NoEffect => Tone::Faint,
        Verdict::NotMeasurable => Tone::Doubt,
    }
}

/// An interval of more than so many points to each side tells nothing: no time saved is more than all of it.
const HALF_WIDTH_MAX: f64 = 100.0;

/// Whether an interval holds less than everything, where `whole` is all there is to save.
fn tells([low, high]: [f64; 2], whole: f64) -> bool {
    (high - low).abs() / 2.0 <= HALF_WIDTH_MAX * whole
}

fn row(at: usize, site: &Site) -> Row {
    // Short enough for a narrow terminal.
    let (word, why) = match site.verdict {
        Verdict::Hurts => ("hurts", "contention"),
        other => (other.words(), ""),
    };
    let or_none = |value: Option<(String, f64)>| {
        value.map_or_else(|| figure(NONE, f64::NAN), |(words, value)| figure(words, value))
    };
    let greatest = site.greatest();
    let slope = site.slope.filter(|slope| tells(slope.interval, 0.02)).map(|slope| {
        let half = (slope.interval[1] - slope.interval[0]).abs() / 2.0;
        (format!("{:.2} ±{half:.2}", slope.per_percent).replace('-', "−"), slope.per_percent)
    });
    let saved = greatest
        .filter(|point| tells(point.interval_percent, 1.0))
        .map(|point| (format!("{} at {} %", effect_of(point), point.speedup_percent), point.effect_percent));
    let cells = vec![
        link(&site.name, anchor(at)),
        or_none(site.share_percent.map(|share| (format!("{share:.1}"), share))),
        or_none(slope),
        or_none(saved),
        table::known(greatest.map(|point| point.rounds as f64), |rounds| rounds.to_string()),
        table::verdict(show::Verdict { word, tone: tone(site.verdict) }),
    ];
    Row { cells, why: why.to_owned(), notes: notes(site), ..Row::default() }
}

/// The reason, and the lower levels.
fn notes(site: &Site) -> Vec<String> {
    let greatest = site.greatest().map(|point| point.speedup_percent);
    let lower = site.points.iter().filter(|point| Some(point.speedup_percent) != greatest);
    let lower = lower.filter(|point| tells(point.interval_percent, 1.0));
    let level = |point: &Point| format!("{} % faster saves {}", point.speedup_percent, effect_of(point));
    std::iter::once(site.reason.clone()).chain(lower.map(level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of a program whose output comes in bursts: −795 % of a time, give or take 1,584. Planted fault: whatever was reckoned is
    /// shown.
    #[test]
    fn an_interval_that_holds_everything_is_not_shown() {
        assert!(tells([-2.0, 9.0], 1.0) && tells([-95.0, 95.0], 1.0));
        assert!(!tells([-2_379.0, 789.0], 1.0) && !tells([-47.0, 15.0], 0.02));
        let of = |interval_percent| {
            let point = Point { speedup_percent: 50, interval_percent, ..Point::default() };
            let site = Site { points: vec![point], ..Site::default() };
            format!("{:?}", row(0, &site))
        };
        assert!(of([-2.0, 9.0]).contains("at 50 %") && !of([-2_379.0, 789.0]).contains("at 50 %"));
    }
}
