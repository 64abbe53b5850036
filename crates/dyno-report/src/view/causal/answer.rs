//! The best answer in a sentence, and what it does not mean.

use dyno_record::causal::{Causal, Metric, Point, Site, Verdict};

use crate::number::effect;
use crate::view::block::{Block, Fact, Headline, Item, OnPage, Section};

/// The site that is worth most, or that none is.
pub(super) fn answer(record: &Causal) -> Section {
    let best = record.sites.iter().filter(|site| site.verdict == Verdict::Helps).find_map(with_point);
    let headline = best.map_or_else(|| none(record), |(site, point)| headline(record, site, point));
    let hurts = record.sites.iter().filter(|site| site.verdict == Verdict::Hurts).filter_map(with_point);
    let contention = hurts.map(|(site, point)| Fact::alert("contention", contention(site, point)));
    let blocks = vec![Block::Headline(headline), Block::Facts(contention.collect())];
    Section::page("answer", "", OnPage::Head, blocks)
}

fn with_point(site: &Site) -> Option<(&Site, &Point)> {
    site.carrying().map(|point| (site, point))
}

/// Time per visit instead of time saved.
fn contention(site: &Site, point: &Point) -> String {
    let [low, high] = point.interval_percent;
    let longer = effect(-point.effect_percent, [-high, -low]);
    format!(
        "{} made {} % faster changes the time per visit by {longer}: the program becomes slower.",
        site.name, point.speedup_percent
    )
}

fn headline(record: &Causal, site: &Site, point: &Point) -> Headline {
    let what = match record.progress.metric {
        Metric::Throughput => "less time per visit of the progress point",
        Metric::Latency => "less time from begin to end",
    };
    let [low, high] = point.interval_percent;
    Headline {
        big: format!("{:.1} %", point.effect_percent),
        unit: format!("{what}, if"),
        subject: site.name.clone(),
        rest: format!("were {} % faster", point.speedup_percent),
        interval: format!("95 % interval {low:.1} … {high:.1} %, from {} rounds", point.rounds),
        from: String::new(),
    }
}

fn none(record: &Causal) -> Headline {
    let measurable = record.sites.iter().any(|site| site.verdict != Verdict::NotMeasurable);
    let (short, long) = match (record.sites.is_empty(), measurable) {
        (true, _) => ("Nothing was tried", "No site was measured before the end."),
        (_, true) => (
            "Nothing helps",
            "No site that was tried would make the program faster, as far as can be seen here.",
        ),
        (_, false) => ("Nothing could be told", "Each site's reason stands beside its curve."),
    };
    Headline { unit: short.to_owned(), from: long.to_owned(), ..Headline::default() }
}

/// What the number above does not mean.
pub(super) fn limits(record: &Causal) -> Section {
    let is_answered = record.sites.iter().any(|site| site.verdict != Verdict::NotMeasurable);
    let load = match record.credibility.load_bound {
        Some(true) => "The target was the limit, not its load.",
        Some(false) if is_answered => {
            "The target takes turns with its clients: it waits for them, and they for it. With more of them, or others, it is another target."
        }
        Some(false) => "The target was not the limit: its clients were. What is faster then waits longer.",
        None => {
            "Whether the target or its load was the limit cannot be told from here; under a load that is not limited by it nothing helps."
        }
    };
    let items = vec![
        Item::new(
            "One thing at a time.",
            "Each curve says what this site alone brings. Two of them do not add up.",
        ),
        Item::new(
            "Virtual.",
            "The site was not made faster: all others were paused for it. What a real change brings besides, such as fewer wake-ups or less memory, is not in it.",
        ),
        Item::new("The load.", load),
        Item::new(
            "Small sites.",
            "What has less than 1 % of the time can bring no more than that, unless others wait for it.",
        ),
    ];
    Section::page("limits", "What it cannot say", OnPage::Beside, vec![Block::List("", items)])
}
