//! Tables: functions by their time, what changed of it, and system calls.

use std::collections::BTreeMap;

use dyno_profile::diff::{self, Basis};
use dyno_profile::name;
use dyno_profile::top::{Function, functions};
use dyno_record::profile::{Origin, Profile, SystemCall};

use super::measure::{Measure, share};
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::paragraph;
use crate::page::table::{Edge, Row, number as figure, table, words};

/// Rows of a table: what is below is less than anybody reads, and is in the record.
const ROWS_MAX: usize = 100;

/// Functions by their own time.
pub(super) fn functions_table(profile: &Profile, measure: &Measure) -> Tag {
    let found = functions(profile);
    let whole = profile.total_ns() as f64;
    let heads = [
        ("function", Edge::Left),
        (own_head(measure), Edge::Right),
        ("share", Edge::Right),
        ("with callees", Edge::Right),
        ("of it user", Edge::Right),
        ("of it kernel", Edge::Right),
        ("where", Edge::Left),
    ];
    let rows = found.iter().take(ROWS_MAX).map(|function| function_row(function, measure, whole)).collect();
    let table = table("Functions by time of their own", &heads, rows);
    with_rest(table, found.len(), "functions")
}

/// The head over a function's own time: a head holds its unit.
fn own_head(measure: &Measure) -> &'static str {
    match measure.unit {
        "µs/request" => "itself, µs/request",
        "ms" => "itself, ms",
        "s" => "itself, s",
        "samples/request" => "itself, samples/request",
        _ => "itself, samples",
    }
}

fn function_row(function: &Function, measure: &Measure, whole: f64) -> Row {
    let part = |weight: u64| figure(share(weight as f64, whole), weight as f64);
    let own = function.own as f64;
    let cells = vec![
        figure(measure.figure(own), own),
        part(function.own),
        part(function.total),
        part(function.total_user()),
        part(function.total_kernel),
        words(place(function)),
    ];
    (function_name(&function.name), cells)
}

/// A name that the page's script turns into a search for it.
fn function_name(name: &str) -> Tag {
    tag("span").class("function").text(number::visible(name))
}

fn place(function: &Function) -> String {
    let file = number::visible(name::file_name(&function.module));
    match function.origin {
        Origin::Kernel if file.is_empty() => "kernel".to_owned(),
        _ => file,
    }
}

fn with_rest(table: Tag, rows: usize, what: &str) -> Tag {
    let made = tag("div").push(table);
    match rows.saturating_sub(ROWS_MAX) {
        0 => made,
        rest => made.push(paragraph(format!("{rest} more {what} are in the record."))),
    }
}

/// Functions by how much their own time changed.
pub(super) fn changes_table(before: &Profile, after: &Profile, basis: Basis, measure: &Measure) -> Tag {
    let mut sums: BTreeMap<(String, Origin), [[f64; 2]; 2]> = BTreeMap::new();
    for ((side, profile), scale) in [before, after].into_iter().enumerate().zip(basis.scales()) {
        for function in functions(profile) {
            let sums = sums.entry((function.name, function.origin)).or_default();
            sums[0][side] += function.own as f64 * scale;
            sums[1][side] += function.total as f64 * scale;
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    let change = |[before, after]: [f64; 2]| after - before;
    rows.sort_by(|a, b| change(b.1[0]).abs().total_cmp(&change(a.1[0]).abs()));
    let heads = [
        ("function", Edge::Left),
        ("itself before", Edge::Right),
        ("after", Edge::Right),
        ("change", Edge::Right),
        ("with callees before", Edge::Right),
        ("after", Edge::Right),
        ("change", Edge::Right),
    ];
    let count = rows.len();
    let rows = rows.into_iter().take(ROWS_MAX).map(|((name, _), [own, total])| {
        let side = |[before, after]: [f64; 2]| {
            let change = after - before;
            [
                (measure.figure(before), before),
                (measure.figure(after), after),
                (measure.change(change), change),
            ]
        };
        let cells = side(own).into_iter().chain(side(total)).map(|(text, value)| figure(text, value));
        (function_name(&name), cells.collect())
    });
    let caption = format!("Functions by how much their own time changed, in {}", measure.said);
    with_rest(table(&caption, &heads, rows.collect()), count, "functions")
}

/// System calls by their time; none when none were counted.
pub(super) fn system_calls(profile: &Profile) -> Option<Tag> {
    let mut calls: Vec<(&String, &SystemCall)> = profile.system_calls.iter().collect();
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.total_ns));
    let requests = diff::requests(profile);
    let heads = [
        ("system call", Edge::Left),
        ("calls", Edge::Right),
        ("per request", Edge::Right),
        ("ms in all", Edge::Right),
        ("mean", Edge::Right),
        ("99 % below", Edge::Right),
        ("longest", Edge::Right),
        ("errors", Edge::Right),
    ];
    let count = calls.len();
    let rows = calls.into_iter().take(ROWS_MAX).map(|(name, call)| call_row(name, call, requests));
    let rows: Vec<Row> = rows.collect();
    (count > 0)
        .then(|| with_rest(table("System calls by time from entry to exit", &heads, rows), count, "calls"))
}

fn call_row(name: &str, call: &SystemCall, requests: Option<u64>) -> Row {
    let count = call.count as f64;
    let mean_us = call.total_ns as f64 / count.max(1.0) / 1e3;
    let per_request = requests.map(|requests| count / requests as f64);
    let longest_us = call.max_ns as f64 / 1e3;
    let below_us = below(call, 0.99).map(|ns| ns / 1e3);
    let known = |text: String, value: Option<f64>| match value {
        Some(value) => figure(text, value),
        None => figure("", f64::NAN),
    };
    let cells = vec![
        figure(number::count(count), count),
        known(per_request.map(number::hundredths).unwrap_or_default(), per_request),
        figure(number::micros(call.total_ns as f64 / 1e6), call.total_ns as f64),
        figure(number::latency(mean_us), mean_us),
        known(below_us.map(number::latency).unwrap_or_default(), below_us),
        figure(number::latency(longest_us), longest_us),
        figure(number::count(call.errors as f64), call.errors as f64),
    ];
    (tag("span").text(number::visible(name)), cells)
}

/// A length that this share of calls stayed below: the upper edge of its class, or the longest call.
fn below(call: &SystemCall, share: f64) -> Option<f64> {
    let total: u64 = call.log2_ns.iter().sum();
    let mut seen = 0;
    let class = call.log2_ns.iter().position(|count| {
        seen += count;
        total > 0 && seen as f64 >= share * total as f64
    })?;
    Some(2_f64.powi(i32::try_from(class).unwrap_or(i32::MAX)).min(call.max_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_that_most_calls_stay_below_is_an_edge_or_the_longest() {
        let mut call = SystemCall { log2_ns: vec![0, 0, 0, 98, 1, 1], max_ns: 20, ..SystemCall::default() };
        assert_eq!(below(&call, 0.5), Some(8.0));
        assert_eq!(below(&call, 0.99), Some(16.0));
        assert_eq!(below(&call, 1.0), Some(20.0), "no call was longer");
        call.log2_ns.clear();
        assert_eq!(below(&call, 0.99), None);
    }
}
