//! What was gained, what it is worth against the floor, what it does not mean, and how to have it.

use dyno_record::climb::{Arm, Climb, Ratio, Role, RungVerdict, Total};

use crate::apply;
use crate::number;
use crate::view::block::{Block, Fact, Headline, Item, OnPage, OnTerminal, Section};
use crate::view::chart::{Bar, Chart, Figure};
use crate::view::show::On;
use crate::view::words::{machine, paragraph, seen};

use super::conditions::neighbours;
use super::standing::price;
use super::widths;

/// What a gain is a gain in.
const UNIT: &str = "requests per CPU-second";

pub(super) fn title(climb: &Climb) -> String {
    match &climb.total {
        Some(total) => format!("{} {UNIT} · dyno climb", number::times(total.gain.ratio)),
        None => "dyno climb".to_owned(),
    }
}

/// The gain with its interval, and the figures that put it into proportion.
pub(super) fn answer(climb: &Climb) -> Section {
    let headline = climb.total.as_ref().map_or_else(|| no_total(climb), headline);
    let left = vec![Block::Headline(headline), Block::Facts(proportions(climb))];
    let right = climb.total.as_ref().map(|total| vec![Block::Figure(arms_drawn(climb, total))]);
    let columns = std::iter::once(left).chain(right).collect();
    Section::new("gain", "", (OnPage::Head, OnTerminal::Answer), vec![Block::Columns(columns)])
}

fn headline(total: &Total) -> Headline {
    let [low, high] = total.gain.interval;
    let starts = if total.starts > 1 { format!(" in {} starts", total.starts) } else { String::new() };
    Headline {
        big: number::times(total.gain.ratio),
        unit: format!("{UNIT}{}", seen(&total.gain)),
        interval: format!("99 % interval {low:.2} … {high:.2}"),
        from: format!(
            "Final setting against the start, on fresh data: {} rounds{starts}, all arms live at once, in random order.",
            number::count(total.rounds as f64)
        ),
        ..Headline::default()
    }
}

fn no_total(climb: &Climb) -> Headline {
    let kept = climb.rungs.iter().filter(|rung| rung.attempt.verdict == RungVerdict::Kept).count();
    let from = format!(
        "{kept} of {} rungs kept. What they bring together was not measured, and steps neither add nor multiply up to it.",
        climb.rungs.len()
    );
    Headline { unit: "No total".to_owned(), from, ..Headline::default() }
}

fn proportions(climb: &Climb) -> Vec<Fact> {
    let total = climb.total.as_ref();
    let floor = match &climb.floor {
        Some(floor) => {
            let words = format!(" of the smallest loop that answers these bytes{}", seen(floor));
            Fact::with_figure("floor", number::times_with_interval(floor), words)
        }
        None => Fact::new("floor", "not measured").on(On::Page),
    };
    let p99 = arms(climb).map(|arms| {
        let [from, to] = arms.map(|arm| number::latency(arm.figures.p99_us));
        Fact::with_figure("p99", format!("{from} → {to}"), " (under saturation; not an SLO)")
    });
    let without = total.and_then(|total| total.without.as_ref()).map(|without| {
        let words = format!(" without {}: the start has it already{}", without.rung, seen(&without.gain));
        Fact::with_figure("headline", number::times_with_interval(&without.gain), words).on(On::Page)
    });
    let total = total.map(|total| Fact::new("total", in_a_line(climb, total)).on(On::Terminal));
    let wider = widths::of_total(climb).map(|why| Fact::new("interval", why));
    [total, wider, Some(floor), without, p99].into_iter().flatten().collect()
}

/// The total for a terminal, where it has no large letters.
fn in_a_line(climb: &Climb, total: &Total) -> String {
    let way = arms(climb).map(|arms| {
        let [from, to] = arms.map(|arm| number::micros(arm.figures.cpu_us_per_request));
        format!("{from} → {to} µs · ")
    });
    let Ratio { ratio, interval: [low, high] } = total.gain;
    let gain = format!("{} {UNIT} ({low:.2} … {high:.2}){}", number::times(ratio), seen(&total.gain));
    let without = total.without.as_ref().map(|one| {
        let gain = number::times_with_interval(&one.gain);
        format!(" · without {} {gain}{}", one.rung, seen(&one.gain))
    });
    format!("{}{gain}{}", way.unwrap_or_default(), without.unwrap_or_default())
}

/// The start and the end of the total, where both were measured.
fn arms(climb: &Climb) -> Option<[&Arm; 2]> {
    let arms = &climb.total.as_ref()?.arms;
    let of = |role| arms.iter().find(|arm| arm.role == role);
    Some([of(Role::Naive)?, of(Role::Final)?])
}

/// CPU per request of every arm, split where the kernel's tick saw enough.
fn arms_drawn(climb: &Climb, total: &Total) -> Figure {
    let levels = total.levels(&climb.series);
    let half_width = |at: usize| Some(levels.as_ref()?.level(at)?.half_width);
    let rows: Vec<Bar> = total.arms.iter().enumerate().map(|(at, arm)| bar(arm, half_width(at))).collect();
    let said: Vec<String> = rows.iter().map(|row| format!("{} {}", row.name, row.figure)).collect();
    let split = if total.arms.iter().any(|arm| arm.user_share.is_some()) {
        " Strong: the program's own (user) time; faint: the kernel's."
    } else {
        ""
    };
    Figure {
        chart: Chart::Bars(rows),
        sentence: format!("Server CPU per request: {}.", said.join(", ")),
        caption: format!("Server CPU per request, µs.{split} Line: 99 % interval."),
    }
}

/// An arm with its CPU per request, and the half width of its interval as a log ratio.
fn bar(arm: &Arm, half_width: Option<f64>) -> Bar {
    let cpu = arm.figures.cpu_us_per_request;
    Bar {
        name: arm.name.clone(),
        figure: format!("{} µs", number::micros(cpu)),
        value: cpu,
        full: arm.user_share,
        interval: half_width.map(|half| [cpu * (-half).exp(), cpu * half.exp()]),
    }
}

/// What the number above does not mean.
pub(super) fn limits(climb: &Climb) -> Section {
    let m = &climb.machine;
    let mut items = vec![
        way(climb),
        Item::new(
            "Closed loop.",
            format!(
                "{}: latency is what saturation makes of it, not what a user at a given rate would see.",
                climb.load
            ),
        ),
        Item::new("One machine.", format!("{}; {}.", machine(m), neighbours(m))),
    ];
    items.extend(climb.noise.as_ref().map(|noise| {
        Item::new(
            "Noise.",
            format!("Effects below {:.1} % were not visible that day.", noise.visible_percent),
        )
    }));
    let prices = prices(climb);
    if !prices.is_empty() {
        items.push(Item { items: prices, ..Item::new("Its price.", "What the fast setting gives up:") });
    }
    Section::page("limits", "What it cannot say", OnPage::Beside, vec![Block::List("", items)])
}

/// The way between server and load.
fn way(climb: &Climb) -> Item {
    match &climb.network {
        None => Item::new(
            "Loopback.",
            "Server and client share this machine; about 40 % of the server's CPU is the client's TCP input, absent behind a network card.",
        ),
        Some(network) => Item::new(
            "Two namespaces.",
            format!(
                "Server ({}) and client ({}) share this machine, joined by a virtual cable with {} queues: there are no interrupts, and whoever sends does part of the receiver's work.",
                network.server, network.load, network.queues
            ),
        ),
    }
}

/// What each rung risks that stands in the final setting.
fn prices(climb: &Climb) -> Vec<Item> {
    let priced = climb.rungs.iter().filter_map(|rung| Some((rung, price(climb, rung)?)));
    priced.map(|(rung, risk)| Item::new(format!("{}:", rung.id), risk)).collect()
}

/// The commands, as they can be pasted.
pub(super) fn apply(climb: &Climb) -> Section {
    let commands = apply::commands(climb);
    match commands.is_empty() {
        true => {
            let none = paragraph("The climb came to no setting but the start: there is nothing to apply.");
            Section::page("apply", "Apply it", OnPage::Beside, vec![none])
        }
        false => {
            let blocks = vec![Block::Commands("apply", commands)];
            Section::new("apply", "Apply it", (OnPage::Beside, OnTerminal::Answer), blocks)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::climb::sample_climb;
    use crate::view::words::unclear;

    #[test]
    fn ratios_that_may_be_one_are_called_so() {
        let one = Ratio { ratio: 1.01, interval: [0.98, 1.04] };
        assert!(unclear(&one) && unclear(&Ratio { interval: [f64::NAN; 2], ..one }));
        let mut climb = sample_climb(6);
        let total = climb.total.as_mut().expect("the sample has a total");
        (total.gain, climb.floor) = (one, Some(one));
        assert!(headline(climb.total.as_ref().expect("as before")).unit.ends_with("no difference seen"));
        let unclear =
            proportions(&climb).iter().filter(|fact| fact.text().contains("no difference seen")).count();
        assert_eq!(unclear, 2, "the total and the floor");
    }
}
