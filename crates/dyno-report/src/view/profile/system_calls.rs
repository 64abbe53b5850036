//! System calls by their time from entry to exit.

use dyno_profile::diff;
use dyno_record::profile::{Kind, Profile, SystemCall};

use super::functions::{ROWS_MAX, captioned};
use crate::number::{NONE, count, hundredths, latency, micros};
use crate::view::block::{Block, OnPage, OnTerminal, Section};
use crate::view::table::{self, Cell, Column, Row, Table, figure, words};

/// Rows of a terminal.
const TERMINAL_ROWS_MAX: usize = 16;
/// A longer name has a line of its own.
const NAME_MAX: usize = 24;

/// None when none were counted.
pub(super) fn section(profile: &Profile) -> Option<Section> {
    let mut calls: Vec<(&String, &SystemCall)> = profile.system_calls.iter().collect();
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.total_ns));
    let (rate, by) = match diff::requests(profile) {
        Some(requests) => ("per req", requests as f64),
        None => ("per s", profile.duration_s.max(1e-9)),
    };
    let columns = [
        Column::words("system call", NAME_MAX),
        Column::page("calls"),
        Column::figure(rate, 1, 12),
        Column::page("ms in all"),
        Column::figure("errors", 5, 12),
        Column::figure("mean", 2, 12),
        Column::figure("p50 <", 4, 12),
        Column::figure("p99 <", 3, 12),
        Column::figure("max", 1, 12),
    ];
    let rows: Vec<Row> = calls.iter().take(ROWS_MAX).map(|(name, call)| row(name, call, by)).collect();
    if rows.is_empty() {
        return None;
    }
    let caption = captioned("System calls by time from entry to exit", calls.len(), "calls");
    let table = Table { terminal_rows_max: TERMINAL_ROWS_MAX, ..Table::new(caption, &columns, rows) };
    let blocks = vec![Block::Table(table)];
    let on_terminal = if profile.kind == Kind::OffCpu { OnTerminal::Found } else { OnTerminal::Nowhere };
    Some(Section::new("calls", "System calls", (OnPage::Body, on_terminal), blocks))
}

fn row(name: &str, call: &SystemCall, by: f64) -> Row {
    let calls = call.count as f64;
    let us = |us: f64| figure(latency(us), us);
    let rate = calls / by;
    let cells = vec![
        words(name),
        table::count(calls),
        figure(if rate < 10.0 { hundredths(rate) } else { count(rate) }, rate),
        figure(micros(call.total_ns as f64 / 1e6), call.total_ns as f64),
        table::count(call.errors as f64),
        us(call.total_ns as f64 / 1e3 / calls.max(1.0)),
        bound(call, 0.5),
        bound(call, 0.99),
        us(call.max_ns as f64 / 1e3),
    ];
    cells.into()
}

fn bound(call: &SystemCall, share: f64) -> Cell {
    match below(call, share) {
        Some(ns) => figure(latency(ns / 1e3), ns),
        None => figure(NONE, f64::NAN),
    }
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
