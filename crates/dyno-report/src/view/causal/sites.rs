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
    Column::figure("saved per %", 2, 24).under("saved per % faster {}"),
    Column::figure("saved, when faster", 1, 32).under("saved {}"),
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
        Verdict::NotMeasurable => ("not measurable", ""),
        other => (other.words(), ""),
    };
    let or_none = |value: Option<(String, f64)>| {
        value.map_or_else(|| figure(NONE, f64::NAN), |(words, value)| figure(words, value))
    };
    let carrying = site.carrying();
    let slope = site.slope.filter(|slope| tells(slope.interval, 0.02)).map(|slope| {
        let half = (slope.interval[1] - slope.interval[0]).abs() / 2.0;
        (format!("{:.2} ±{half:.2}", slope.per_percent).replace('-', "−"), slope.per_percent)
    });
    let saved = carrying.filter(|point| tells(point.interval_percent, 1.0)).map(|point| {
        (
            format!("{} at {} %{}", effect_of(point), point.speedup_percent, mark(site, point)),
            point.effect_percent,
        )
    });
    let cells = vec![
        link(&site.name, anchor(at)),
        or_none(site.share_percent.map(|share| (format!("{share:.1}"), share))),
        or_none(slope),
        or_none(saved),
        table::known(carrying.map(|point| point.rounds as f64), |rounds| rounds.to_string()),
        table::verdict(show::Verdict { word, tone: tone(site.verdict) }),
    ];
    Row { cells, why: why.to_owned(), notes: notes(site), ..Row::default() }
}

/// What stands behind a figure that no verdict rests on.
fn mark(site: &Site, point: &Point) -> &'static str {
    if point.biased && site.verdict == Verdict::NotMeasurable { ", biased" } else { "" }
}

/// The reason, and the other levels: those that it has not told.
fn notes(site: &Site) -> Vec<String> {
    let carrying = site.carrying().map(|point| point.speedup_percent);
    let is_told = |point: &&Point| site.reason.contains(&format!("{} % faster saves", point.speedup_percent));
    let others =
        site.points.iter().filter(|point| Some(point.speedup_percent) != carrying && !is_told(point));
    let others = others.filter(|point| tells(point.interval_percent, 1.0));
    let level = |point: &Point| {
        let doubt = if point.biased { " (biased: no verdict rests on it)" } else { "" };
        format!("{} % faster saves {}{doubt}", point.speedup_percent, effect_of(point))
    };
    std::iter::once(site.reason.clone()).chain(others.map(level)).collect()
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

    /// Planted faults: the greatest level stands in the table, biased as it is; levels are told twice.
    #[test]
    fn a_level_that_no_verdict_rests_on_is_marked_and_none_is_told_twice() {
        let point = |speedup_percent, biased| {
            let effect_percent = f64::from(speedup_percent) / 2.0;
            let interval_percent = [effect_percent - 3.0, effect_percent + 3.0];
            Point { speedup_percent, effect_percent, interval_percent, biased, ..Point::default() }
        };
        let points = vec![point(10, false), point(25, false), point(50, true)];
        let reason = "25 % faster saves 12.5 % (9.5 to 15.5) of the time per visit".to_owned();
        let site = Site { verdict: Verdict::Helps, points, reason: reason.clone(), ..Site::default() };
        assert!(format!("{:?}", row(0, &site).cells).contains("+12.5 % ±3.0 at 25 %"));
        let marked = "50 % faster saves +25.0 % ±3.0 (biased: no verdict rests on it)".to_owned();
        assert_eq!(notes(&site), [reason, "10 % faster saves +5.0 % ±3.0".to_owned(), marked]);
        let none = Site { verdict: Verdict::NotMeasurable, points: vec![point(50, true)], ..Site::default() };
        assert!(format!("{:?}", row(0, &none).cells).contains("at 50 %, biased"));
    }
}
