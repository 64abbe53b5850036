//! Latency distributions of the total's arms, down to the rare ones.

use dyno_measure::series::Tail;
use dyno_record::climb::{Arm, Climb, Role};

use crate::number;
use crate::view::block::{Block, OnPage, Section};
use crate::view::chart::{Chart, Curve, Curves, Figure, Stroke};
use crate::view::table::{Column, Row, Table, count, figure, words};
use crate::view::words::paragraph;

/// Points of a curve: one per three pixels of the widest page.
const PLACES: usize = 240;
/// A quantile is drawn only with this many answers beyond it: fewer are anecdotes.
const BEYOND_MIN: f64 = 10.0;
/// Most nines: five need a million answers.
const NINES_MAX: f64 = 5.0;
/// The quantiles that the axis and the table name, by their nines.
const NAMED: [(f64, &str); 7] = [
    (0.0, "min"),
    (0.5, "p50"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
    (0.99999, "p99.999"),
];

pub(super) fn section(climb: &Climb) -> Option<Section> {
    let arms = &climb.total.as_ref()?.arms;
    let measured: Vec<&Arm> = arms.iter().filter(|arm| nines(&arm.latencies) > 0.5).collect();
    if measured.is_empty() {
        return None;
    }
    let read_me = "Time to answer against the share of requests that took at most that long; every step to the right is ten times rarer. \
        Closed loop under saturation: this is queueing behind the other connections, and says nothing about a service at half load.";
    let blocks =
        vec![paragraph(read_me), Block::Figure(picture(&measured)), Block::Table(quantiles(&measured))];
    Some(Section::page("latency", "Latency under saturation", OnPage::Body, blocks))
}

/// How many nines a distribution is deep enough for.
fn nines(tail: &Tail) -> f64 {
    let answers: u64 = tail.0.values().sum();
    (answers as f64 / BEYOND_MIN).log10().min(NINES_MAX)
}

fn picture(arms: &[&Arm]) -> Figure {
    let deepest = arms.iter().map(|arm| nines(&arm.latencies)).fold(0.0, f64::max);
    let read: Vec<Vec<(f64, f64)>> = arms.iter().map(|arm| quantile_curve(&arm.latencies, deepest)).collect();
    let values = || read.iter().flatten().map(|(_, ns)| ns.log10());
    let (low, high) =
        (values().fold(f64::INFINITY, f64::min) - 0.05, values().fold(f64::NEG_INFINITY, f64::max) + 0.05);
    let up = |ns: f64| (ns.log10() - low) / (high - low);
    let curve = |(arm, read): (&&Arm, &Vec<(f64, f64)>)| {
        let places = read.iter().map(|(x, ns)| (*x, up(*ns))).collect();
        Curve::new(arm.name.clone(), stroke(arm.role), places)
    };
    let named = NAMED.iter().map(|(q, name)| (-(1.0 - q).log10() / deepest, (*name).to_owned()));
    let chart = Chart::Curves(Curves {
        curves: arms.iter().zip(&read).map(curve).collect(),
        across: named.filter(|(x, _)| *x <= 1.001).collect(),
        up: levels(low, high).into_iter().map(|ns| (up(ns), round_latency(ns))).collect(),
    });
    Figure { chart, sentence: sentence(arms), caption: String::new() }
}

/// From the median's left to the deepest quantile: across from 0 to 1, and nanoseconds.
fn quantile_curve(tail: &Tail, deepest: f64) -> Vec<(f64, f64)> {
    let depth = nines(tail);
    (0..=PLACES)
        .map(|k| k as f64 / PLACES as f64)
        .filter(|x| x * deepest <= depth + 1e-9)
        .map(|x| (x, tail.quantile(1.0 - 10_f64.powf(-x * deepest)) as f64))
        .filter(|(_, ns)| *ns > 0.0)
        .collect()
}

/// 1, 2 and 5 times powers of ten between two logarithms.
fn levels(low: f64, high: f64) -> Vec<f64> {
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|k| k * 10_f64.powi(power)));
    all.filter(|ns| (low..=high).contains(&ns.log10())).collect()
}

/// A round latency without the zeros that a measured one would have.
fn round_latency(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{value:.0}\u{a0}{unit}")
}

fn stroke(role: Role) -> Stroke {
    match role {
        Role::Final => Stroke::Strong,
        Role::Floor => Stroke::Dotted,
        Role::Naive => Stroke::Thin,
        Role::Reached | Role::NaiveWithHeadline => Stroke::Dashed,
    }
}

fn sentence(arms: &[&Arm]) -> String {
    let of = |arm: &&Arm| {
        let at = |q: f64| number::latency(arm.latencies.quantile(q) as f64 / 1e3);
        format!("{} median {}, p99 {}", arm.name, at(0.5), at(0.99))
    };
    format!("Latency by percentile: {}.", arms.iter().map(of).collect::<Vec<_>>().join("; "))
}

fn quantiles(arms: &[&Arm]) -> Table {
    let deepest = arms.iter().map(|arm| nines(&arm.latencies)).fold(0.0, f64::max);
    let named: Vec<_> = NAMED.into_iter().filter(|(q, _)| -(1.0 - q).log10() <= deepest + 1e-9).collect();
    let columns: Vec<Column> = std::iter::once(Column::words("arm", 0))
        .chain(named.iter().map(|(_, name)| Column::page(name)))
        .collect();
    let row = |arm: &&Arm| -> Row {
        let cells = named.iter().map(|(q, _)| {
            let deep_enough = -(1.0 - q).log10() <= nines(&arm.latencies) + 1e-9;
            let us = arm.latencies.quantile(*q) as f64 / 1e3;
            if deep_enough { count(us) } else { figure(number::NONE, f64::NAN) }
        });
        std::iter::once(words(&arm.name)).chain(cells).collect::<Vec<_>>().into()
    };
    Table::new("Latency in µs", &columns, arms.iter().map(row).collect())
}
