//! The first screen: the best answer in a sentence, what it does not mean, what it cost.

use dyno_record::causal::{Causal, Metric, Point, Site, Verdict};

use super::words::point_words;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::{paragraph, tied};
use crate::text::causal as text;

/// The window's title.
pub(super) fn title(record: &Causal) -> String {
    format!("{} · dyno causal", number::visible(&record.target.name))
}

/// Everything above the contents.
pub(super) fn head(record: &Causal) -> Tag {
    tag("header")
        .push(kicker(record))
        .push_all(record.cut_short.iter().map(|why| {
            alert(
                "Cut short.",
                &format!("{}. Everything below was measured before that.", number::visible(why)),
            )
        }))
        .push_all(record.warnings.iter().map(|warning| alert("Warning.", &number::visible(warning))))
        .push(answer(record))
        .push(tag("div").class("aside").push(limits(record)).push(costs(record)))
}

fn kicker(record: &Causal) -> Tag {
    let date = crate::date::date(record.started_unix_s);
    let took = number::duration(record.duration_s);
    let target = number::visible(&record.target.name);
    tag("p").class("kicker").text(format!("Causal profile · {target} · {date} · {took}"))
}

fn alert(word: &'static str, text: &str) -> Tag {
    tag("p").class("alert").push(tag("strong").text(word)).text(format!(" {text}"))
}

/// The site that is worth most, or that none is.
fn answer(record: &Causal) -> Tag {
    let block = tag("div").class("answer");
    let best = record.sites.iter().filter(|site| site.verdict == Verdict::Helps).find_map(with_point);
    let hurts: Vec<&Site> = record.sites.iter().filter(|site| site.verdict == Verdict::Hurts).collect();
    let block = match best {
        Some((site, point)) => block.push(headline(record, site, point)).push(interval(point)),
        None => block.push(none(record)),
    };
    block.push_all(hurts.into_iter().filter_map(with_point).map(|(site, point)| {
        alert(
            "Contention.",
            &tied(&format!(
                "{} made {} % faster changes the time per visit by {}: the program becomes slower.",
                number::visible(&site.name),
                point.speedup_percent,
                point_words(&negated(point))
            )),
        )
    }))
}

fn with_point(site: &Site) -> Option<(&Site, &Point)> {
    site.greatest().map(|point| (site, point))
}

/// Time per visit instead of time saved.
fn negated(point: &Point) -> Point {
    let [low, high] = point.interval_percent;
    Point { effect_percent: -point.effect_percent, interval_percent: [-high, -low], ..*point }
}

fn headline(record: &Causal, site: &Site, point: &Point) -> Tag {
    let what = match record.progress.metric {
        Metric::Throughput => "less time per visit of the progress point",
        Metric::Latency => "less time from begin to end",
    };
    let name = tag("code").text(number::visible(&site.name));
    let unit = tag("span")
        .class("unit")
        .text(format!("{what}, if "))
        .push(name)
        .text(format!(" were {}\u{a0}% faster", point.speedup_percent));
    let big = tag("span").class("big").text(format!("{:.1}\u{a0}%", point.effect_percent));
    tag("h1").push(big).text(" ").push(unit)
}

fn interval(point: &Point) -> Tag {
    let [low, high] = point.interval_percent;
    let text = format!("95 % interval {low:.1} … {high:.1} %, from {} rounds", point.rounds);
    tag("p").class("interval").text(tied(&text))
}

fn none(record: &Causal) -> Tag {
    let measurable = record.sites.iter().any(|site| site.verdict != Verdict::NotMeasurable);
    let (short, long) = match (record.sites.is_empty(), measurable) {
        (true, _) => ("Nothing was tried", "No site was measured before the end."),
        (_, true) => (
            "Nothing helps",
            "No site that was tried would make the program faster, as far as can be seen here.",
        ),
        (_, false) => ("Nothing could be told", "Each site's reason stands beside its curve."),
    };
    tag("div").push(tag("h1").push(tag("span").class("unit").text(short))).push(paragraph(long))
}

/// What the number above does not mean.
fn limits(record: &Causal) -> Tag {
    let item =
        |lead: &str, rest: String| tag("li").push(tag("strong").text(lead)).text(format!(" {}", tied(&rest)));
    let loop_words = match record.credibility.load_bound {
        Some(true) => "The target was the limit, not its load.".to_owned(),
        Some(false) => "The target was not the limit: its clients were. What is faster then waits longer.".to_owned(),
        None => "Whether the target or its load was the limit cannot be told from here; under a load that is not limited by it nothing helps.".to_owned(),
    };
    let list = tag("ul")
        .push(item("One thing at a time.", "Each curve says what this site alone brings. Two of them do not add up.".into()))
        .push(item("Virtual.", "The site was not made faster: all others were paused for it. What a real change brings besides, such as fewer wake-ups or less memory, is not in it.".into()))
        .push(item("The load.", loop_words))
        .push(item("Small sites.", "What has less than 1 % of the time can bring no more than that, unless others wait for it.".into()));
    tag("div").class("limits").push(tag("h2").text("What it cannot say")).push(list)
}

fn costs(record: &Causal) -> Tag {
    let lines = text::costs(record).into_iter().chain(text::belief(&record.credibility));
    let list =
        lines.map(|(name, words)| tag("div").push(tag("dt").text(name)).push(tag("dd").text(tied(&words))));
    tag("div")
        .push(tag("h2").text("How far it may be believed, and what it cost"))
        .push(tag("dl").class("facts").push_all(list))
}
