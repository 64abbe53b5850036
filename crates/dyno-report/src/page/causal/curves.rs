//! Small multiples: a curve for each site over the same axes.

use dyno_record::causal::{Causal, HotLine, Metric, Site, SourceKind, Treatment, Verdict, Window};

use super::words::{point_words, sentence, verdict_word};
use crate::number;
use crate::page::chart::{Effect, Estimate, Scale, Trust, effect};
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, paragraph, tied};
use crate::page::table::{Edge, number as cell, plain_table};

/// Single windows on a page, over all curves: ten bytes each.
const WINDOWS_MAX: usize = 8_000;
/// Source lines beside a curve.
const LINES_MAX: usize = 4;
/// The method's own part of an interval, in points, above which its reason is told.
const OWN_POINTS_TOLD: f64 = 0.5;
/// An effect beyond this is drawn at the edge, unless it is itself an answer: one wild interval would flatten all others.
const DOUBTFUL_MAX: f64 = 15.0;

pub(super) fn section(record: &Causal) -> Option<Section> {
    if record.sites.is_empty() {
        return None;
    }
    let up = scale(record);
    let most = record.sites.iter().flat_map(|site| &site.points).map(|point| point.speedup_percent).max();
    let windows: usize = record.sites.iter().map(|site| site.windows.len()).sum();
    let view = Axes {
        up,
        most: f64::from(most.unwrap_or(0)),
        stride: windows.div_ceil(WINDOWS_MAX).max(1),
        metric: record.progress.metric,
    };
    let read_me = format!(
        "Across: how much faster the site was made, virtually. Upwards: time saved {}; below zero the program became slower. \
        Dot and whisker: the effect and its 95 % interval; hollow where it is known to be biased. Blue line and wedge: all levels together. Grey band: what the site's own runs without any speed-up differ by. \
        Thin line: what its share of the samples would suggest. Small dots: single windows.",
        per(view.metric)
    );
    let cards = record.sites.iter().enumerate().map(|(at, site)| card(&view, at, site));
    let content = tag("div").push(paragraph(tied(&read_me))).push(tag("div").class("causes").push_all(cards));
    Some(Section::new("curves", "What each would bring", content))
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

fn card(view: &Axes, at: usize, site: &Site) -> Tag {
    let name = tag("code").class("id").text(number::visible(&site.name));
    let title = tag("h3").push(name).push(verdict_word(site.verdict));
    let why = tag("p").class("why").text(tied(&number::visible(&site.reason)));
    tag("article")
        .class("cause")
        .attr("id", format!("site-{}", at + 1))
        .push(title)
        .push(tag("figure").push(curve(view, site)))
        .push(why)
        .push_all(place(site))
        .push_all(figures(site, view.metric))
}

fn curve(view: &Axes, site: &Site) -> Tag {
    let estimate = |point: &dyno_record::causal::Point| Estimate {
        across: f64::from(point.speedup_percent),
        value: point.effect_percent,
        interval: point.interval_percent,
        trust: if point.biased { Trust::Biased } else { Trust::Sound },
    };
    let estimates: Vec<Estimate> = site.points.iter().map(estimate).collect();
    let nulls = (site.nulls.rounds > 0).then_some(site.nulls.interval_percent);
    let cloud = cloud(site, view);
    let sentence = sentence(site);
    effect(&Effect {
        across_max: view.most,
        up: view.up,
        estimates: &estimates,
        slope: site.slope.map(|slope| (slope.per_percent, slope.interval)),
        suggested: site.share_percent.map(|share| share / 100.0),
        nulls: nulls.filter(|ends| ends.iter().all(|end| end.is_finite())),
        cloud: &cloud,
        sentence: &sentence,
    })
}

/// Every window with a speed-up against the windows without one of its round, in percent saved.
fn cloud(site: &Site, view: &Axes) -> Vec<(f64, f64)> {
    let saved = |window: &Window| {
        let Treatment::SpeedUp(percent) = window.treatment else { return None };
        let base = base(site, window.round, view.metric)?;
        let value = window.value_us(view.metric).filter(|_| window.dropped.is_none())?;
        Some((f64::from(percent), 100.0 * (1.0 - value / base)))
    };
    site.windows.iter().filter_map(saved).step_by(view.stride).collect()
}

/// What a round's windows without a speed-up came to, on average.
fn base(site: &Site, round: u32, metric: Metric) -> Option<f64> {
    let nulls = site.windows.iter().filter(|window| {
        window.round == round && window.treatment == Treatment::Nothing && window.dropped.is_none()
    });
    let values: Vec<f64> = nulls.filter_map(|window| window.value_us(metric)).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean > 0.0).then_some(mean)
}

/// Where it lies: its file and line, and its hottest lines.
fn place(site: &Site) -> Option<Tag> {
    let source = &site.source;
    let file = source.file.as_ref().map(|file| match source.line {
        Some(line) => format!("{}:{line}", number::visible(file)),
        None => number::visible(file),
    });
    let module = source.module.as_ref().map(|module| number::visible(module));
    let copies = (source.ranges > 1).then(|| format!("{} stretches of code", source.ranges));
    let callees = source.inclusive.then(|| "with all it calls".to_owned());
    let share = site.share_percent.map(|share| format!("{share:.1} % of the samples"));
    let words: Vec<String> = [share, file.or(module), callees, copies].into_iter().flatten().collect();
    let list = lines(&source.hot_lines, source.kind);
    (!words.is_empty() || list.is_some()).then(|| {
        tag("div")
            .class("place")
            .push(tag("p").class("small-words").text(tied(&words.join(" · "))))
            .push_all(list)
    })
}

fn lines(hot: &[HotLine], kind: SourceKind) -> Option<Tag> {
    if hot.is_empty() || kind == SourceKind::Line {
        return None;
    }
    let line = |one: &HotLine| {
        let at = format!("{}:{}", number::visible(&one.file), one.line);
        tag("li").push(tag("code").text(at)).text(format!(" {:.1}\u{a0}%", one.share_percent))
    };
    Some(tag("ul").class("hot-lines").push_all(hot.iter().take(LINES_MAX).map(line)))
}

/// The figures of the curve, one click away.
fn figures(site: &Site, metric: Metric) -> Option<Tag> {
    if site.points.is_empty() {
        return None;
    }
    let saved = match metric {
        Metric::Throughput => "saved per visit",
        Metric::Latency => "saved from begin to end",
    };
    let heads = [
        ("faster by", Edge::Left),
        (saved, Edge::Right),
        ("rounds", Edge::Right),
        ("set aside", Edge::Right),
        ("inserted", Edge::Right),
    ];
    let row = |point: &dyno_record::causal::Point| {
        let cells = vec![
            cell(point_words(point), point.effect_percent),
            cell(point.rounds, point.rounds as f64),
            cell(point.dropped, point.dropped as f64),
            cell(tied(&format!("{:.1} %", point.inserted_percent)), point.inserted_percent),
        ];
        (tag("span").text(format!("{}\u{a0}%", point.speedup_percent)), cells)
    };
    let rows = site.points.iter().map(row).collect();
    let table = tag("div").class("small").push(plain_table(&heads, rows));
    let details = tag("details").push(tag("summary").text("Figures")).push(table);
    Some(
        details.push_all(notes(site, metric).into_iter().map(|note| tag("p").class("why").text(tied(&note)))),
    )
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
    if own > OWN_POINTS_TOLD {
        notes.push(format!(
            "Of the intervals up to ±{own:.1} points are the method's own: threads hand work to each other after few pauses, or one window shows in the next."
        ));
    }
    if let Some(slow) = &site.slow_down {
        notes.push(format!(
            "Really slowed down: each of {} calls per second made {} longer ({:.0} %) costs {} {} over {} rounds{}.",
            number::count(slow.calls_per_second),
            number::latency(slow.added_ns as f64 / 1e3),
            slow.slowdown_percent,
            number::effect(slow.cost_percent, slow.interval_percent),
            per(metric),
            slow.rounds,
            if slow.contradicts { ": less than the speed-up promises" } else { "" }
        ));
    }
    notes.extend(site.no_slow_down.iter().map(|why| format!("Not slowed down: {}.", number::visible(why))));
    notes
}
