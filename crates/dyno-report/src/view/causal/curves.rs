//! Small multiples: a curve for each site over the same axes, with what is known of the site.

use dyno_record::causal::{
    Causal, HotLine, Metric, Point, Site, SlowedAt, SourceKind, Treatment, Verdict, Window,
};

use super::sites::{anchor, effect_of, tone};
use crate::number;
use crate::view::block::{Block, Card, Item, OnPage, Section, Shown, Voice};
use crate::view::chart::{Chart, Effect, Estimate, Figure, Scale, Trust};
use crate::view::show;
use crate::view::table::{self, Column, Table, count, figure, words};
use crate::view::words::{paragraph, said};

/// Single windows on a page, over all curves: ten bytes each.
const WINDOWS_MAX: usize = 8_000;
/// Source lines beside a curve.
const LINES_MAX: usize = 4;
/// The method's own part of an interval, in points, above which its reason is said.
const OWN_POINTS_SAID: f64 = 0.5;
/// An effect beyond this is drawn at the edge, unless it is itself an answer: one wild interval would flatten all others.
const DOUBTFUL_MAX: f64 = 15.0;

pub(super) fn section(record: &Causal) -> Option<Section> {
    let most = record.sites.iter().flat_map(|site| &site.points).map(|point| point.speedup_percent).max();
    let windows: usize = record.sites.iter().map(|site| site.windows.len()).sum();
    let axes = Axes {
        up: scale(record),
        most: f64::from(most.unwrap_or(0)),
        stride: windows.div_ceil(WINDOWS_MAX).max(1),
        metric: record.progress.metric,
    };
    let read_me = format!(
        "Across: how much faster the site was made, virtually. Upwards: time saved {}; below zero the program became slower. \
        Dot and whisker: the effect and its 95 % interval; hollow where it is known to be biased. Blue line and wedge: all levels together. Grey band: what the site's own runs without any speed-up differ by. \
        Thin line: what its share of the samples would suggest. Small dots: single windows.",
        per(axes.metric)
    );
    let cards = record.sites.iter().enumerate().map(|(at, site)| card(&axes, at, site)).collect();
    let blocks = vec![paragraph(read_me), Block::Cards(cards)];
    (!record.sites.is_empty()).then(|| Section::page("curves", "What each would bring", OnPage::Body, blocks))
}

/// What all curves share.
struct Axes {
    up: Scale,
    most: f64,
    stride: usize,
    metric: Metric,
}

/// What a time is the time of.
fn per(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "per visit",
        Metric::Latency => "from begin to end",
    }
}

/// A scale that holds every answer whole, and of what could not be told as much as is usual.
fn scale(record: &Causal) -> Scale {
    let ends = |site: &Site| {
        let most = if site.verdict == Verdict::NotMeasurable { DOUBTFUL_MAX } else { 100.0 };
        let all = site.points.iter().flat_map(|point| point.interval_percent);
        all.map(move |end| end.clamp(-most, most)).collect::<Vec<_>>()
    };
    Scale::around_zero(record.sites.iter().flat_map(ends).chain([-1.0, 2.0]))
}

fn card(axes: &Axes, at: usize, site: &Site) -> Card {
    let figure =
        Figure { chart: Chart::Effect(curve(axes, site)), sentence: sentence(site), caption: String::new() };
    let why = said(Voice::Why, "", &site.reason);
    let blocks =
        [Block::Figure(figure), why].into_iter().chain(place(site)).chain(figures(site, axes.metric));
    Card {
        anchor: anchor(at),
        name: site.name.clone(),
        aside: String::new(),
        verdict: Some(show::Verdict { word: site.verdict.words(), tone: tone(site.verdict) }),
        shown: Shown::Open,
        blocks: blocks.collect(),
    }
}

/// A sentence about a site for those who do not see its curve.
fn sentence(site: &Site) -> String {
    let level = |point: &Point| format!("{} % faster: {}", point.speedup_percent, effect_of(point));
    let levels: Vec<String> = site.points.iter().map(level).collect();
    format!("{}: {}. {}", site.name, site.verdict.words(), levels.join(", "))
}

fn curve(axes: &Axes, site: &Site) -> Effect {
    let estimate = |point: &Point| Estimate {
        across: f64::from(point.speedup_percent),
        value: point.effect_percent,
        interval: point.interval_percent,
        trust: if point.biased { Trust::Biased } else { Trust::Sound },
    };
    let finite = site.points.iter().filter(|point| point.effect_percent.is_finite());
    let mut estimates: Vec<Estimate> = finite.map(estimate).collect();
    estimates.sort_by(|a, b| a.across.total_cmp(&b.across));
    let nulls = (site.nulls.rounds > 0).then_some(site.nulls.interval_percent);
    let effect = Effect {
        across_max: axes.most,
        up: axes.up,
        estimates,
        slope: site.slope.map(|slope| (slope.per_percent, slope.interval)),
        suggested: site.share_percent.map(|share| share / 100.0),
        nulls: nulls.filter(|ends| ends.iter().all(|end| end.is_finite())),
        cloud: cloud(site, axes),
    };
    effect.checked()
}

/// Every window with a speed-up against the windows without one of its round, in percent saved.
fn cloud(site: &Site, axes: &Axes) -> Vec<(f64, f64)> {
    let saved = |window: &Window| {
        let Treatment::SpeedUp(percent) = window.treatment else { return None };
        let base = base(site, window.round, axes.metric)?;
        let value = window.value_us(axes.metric).filter(|_| window.dropped.is_none())?;
        let saved = 100.0 * (1.0 - value / base);
        saved.is_finite().then_some((f64::from(percent), saved))
    };
    site.windows.iter().filter_map(saved).step_by(axes.stride).collect()
}

/// What a round's windows without a speed-up came to, on average.
fn base(site: &Site, round: u32, metric: Metric) -> Option<f64> {
    let null = |window: &&Window| window.round == round && window.treatment == Treatment::Nothing;
    let kept = site.windows.iter().filter(null).filter(|window| window.dropped.is_none());
    let values: Vec<f64> = kept.filter_map(|window| window.value_us(metric)).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean > 0.0).then_some(mean)
}

/// Where it lies: its file and line, and its hottest lines.
fn place(site: &Site) -> Vec<Block> {
    let source = &site.source;
    let file = source.file.as_ref().map(|file| match source.line {
        Some(line) => format!("{file}:{line}"),
        None => file.clone(),
    });
    let copies = (source.ranges > 1).then(|| format!("{} stretches of code", source.ranges));
    let callees = source.inclusive.then(|| "with all it calls".to_owned());
    let share = site.share_percent.map(|share| format!("{share:.1} % of the samples"));
    let parts = [share, file.or_else(|| source.module.clone()), callees, copies];
    let words: Vec<String> = parts.into_iter().flatten().collect();
    let line = |one: &HotLine| {
        Item::new(format!("{}:{}", one.file, one.line), format!("{:.1} %", one.share_percent))
    };
    let hot: Vec<Item> = match source.kind {
        SourceKind::Line => Vec::new(),
        _ => source.hot_lines.iter().take(LINES_MAX).map(line).collect(),
    };
    let words = (!words.is_empty()).then(|| said(Voice::Small, "", words.join(" · ")));
    let hot = (!hot.is_empty()).then_some(Block::List("", hot));
    words.into_iter().chain(hot).collect()
}

/// The figures of the curve, one click away.
fn figures(site: &Site, metric: Metric) -> Option<Block> {
    let saved = match metric {
        Metric::Throughput => "saved per visit",
        Metric::Latency => "saved from begin to end",
    };
    let heads = [saved, "rounds", "set aside", "inserted"].map(Column::page);
    let columns: Vec<Column> = std::iter::once(Column::words("faster by", 0)).chain(heads).collect();
    let row = |point: &Point| -> table::Row {
        let cells = vec![
            words(format!("{} %", point.speedup_percent)),
            figure(effect_of(point), point.effect_percent),
            count(point.rounds as f64),
            count(point.dropped as f64),
            figure(format!("{:.1} %", point.inserted_percent), point.inserted_percent),
        ];
        cells.into()
    };
    let table = Table::new("", &columns, site.points.iter().map(row).collect());
    let notes = notes(site, metric).into_iter().map(|note| said(Voice::Why, "", note));
    let blocks = std::iter::once(Block::Table(table)).chain(notes).collect();
    (!site.points.is_empty()).then(|| Block::Details("Figures".to_owned(), blocks))
}

/// Its nulls, and the slow-down that a claim was held against.
fn notes(site: &Site, metric: Metric) -> Vec<String> {
    let nulls = &site.nulls;
    let mut notes = Vec::new();
    if nulls.rounds > 0 {
        notes.push(format!(
            "Without a speed-up: {} {}; a window differs by {:.1} % (one standard deviation, {} rounds).",
            number::latency(nulls.mean_us),
            per(metric),
            nulls.sd_percent,
            nulls.rounds
        ));
    }
    let own = site.points.iter().map(|point| point.allowance_points).fold(0.0, f64::max);
    if own > OWN_POINTS_SAID {
        notes.push(format!(
            "Of the intervals up to ±{own:.1} points are the method's own: threads hand work to each other after few pauses, or one window shows in the next."
        ));
    }
    if let Some(slow) = &site.slow_down {
        notes.push(format!(
            "Really slowed down: each of {} {} per second made {} longer ({:.0} %) costs {} {} over {} rounds{}.",
            number::count(slow.calls_per_second),
            if slow.at == SlowedAt::Calls { "calls" } else { "samples in it" },
            number::latency(slow.added_ns as f64 / 1e3),
            slow.slowdown_percent,
            number::effect(slow.cost_percent, slow.interval_percent),
            per(metric),
            slow.rounds,
            if slow.contradicts { ": less than the speed-up promises" } else { "" }
        ));
    }
    notes.extend(site.no_slow_down.iter().map(|why| format!("Not slowed down: {why}.")));
    notes
}
