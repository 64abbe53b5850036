//! Functions by the time that they took themselves, or in all.

use dyno_profile::top::{Function, functions};
use dyno_record::name;
use dyno_record::profile::{Kind, Origin, Profile};

use crate::number::{NONE, micros};
use crate::view::block::{Block, OnPage, OnTerminal, Section};
use crate::view::look::Order;
use crate::view::measure::{Measure, share};
use crate::view::show::On;
use crate::view::table::{self, Column, Row, Table, figure, known, words};

/// Rows of a page and of a terminal: what is below is less than anybody reads, and is in the record.
pub(super) const ROWS_MAX: usize = 100;
const TERMINAL_ROWS_MAX: usize = 20;
/// A template instance may fill a page; what is longer has a line of its own.
const NAME_MAX: usize = 56;

pub(super) fn section(profile: &Profile, measure: &Measure, order: Order) -> Section {
    let (found, first) = in_order(functions(profile), order);
    let columns = [
        Column::words("function", NAME_MAX),
        Column::page(own_head(measure)),
        Column::figure("self %", 1, 12).under("self % {}"),
        Column::figure("total %", 2, 12).under("total % {}"),
        Column::page("of it user %"),
        Column::figure("of it kernel %", 5, 16).under("of it kernel % {}"),
        Column::figure("self µs/req", 3, 12).under("self µs/req {}").on(On::Terminal),
        Column::figure("total µs/req", 4, 12).under("total µs/req {}").on(On::Terminal),
        Column::words("where", usize::MAX),
    ];
    let rows = found.iter().take(ROWS_MAX).map(|function| row(profile, measure, function)).collect();
    let caption = captioned(first, found.len(), "functions");
    let table = Table { terminal_rows_max: TERMINAL_ROWS_MAX, ..Table::new(caption, &columns, rows) };
    let blocks = vec![Block::Table(table)];
    match profile.kind {
        Kind::OnCpu => Section::new("functions", "Functions", (OnPage::Body, OnTerminal::Found), blocks),
        // On a terminal the places of waits say more than the functions.
        Kind::OffCpu => Section::page("functions", "Functions", OnPage::Body, blocks),
    }
}

/// The functions as they are to stand, and what the first of them have most of.
fn in_order(mut found: Vec<Function>, order: Order) -> (Vec<Function>, &'static str) {
    match order {
        Order::Own => (found, "Functions by time of their own"),
        Order::Total => {
            // Stable: what has the same time in all stays in the order of its own.
            found.sort_by_key(|function| std::cmp::Reverse(function.total));
            (found, "Functions by time in them and in what they call")
        }
    }
}

/// A caption that says how much is left out.
pub(super) fn captioned(what: &str, rows: usize, of: &str) -> String {
    match rows.saturating_sub(ROWS_MAX) {
        0 => what.to_owned(),
        rest => format!("{what}; {rest} more {of} are in the record"),
    }
}

/// The head over a function's own time: a head holds its unit.
fn own_head(measure: &Measure) -> &'static str {
    match measure.unit {
        "µs/request" => "self, µs/request",
        "ms" => "self, ms",
        "s" => "self, s",
        "samples/request" => "self, samples/request",
        _ => "self, samples",
    }
}

fn row(profile: &Profile, measure: &Measure, function: &Function) -> Row {
    let whole = profile.total_ns() as f64;
    let part = |weight: u64| {
        let share = share(weight as f64, whole);
        figure(share.trim_end_matches(" %"), weight as f64)
    };
    let requests = dyno_profile::diff::requests(profile);
    let us = |ns: u64| known(requests.map(|requests| ns as f64 / 1e3 / requests as f64), micros);
    let kernel = match function.origin {
        Origin::Kernel => figure(NONE, f64::NAN),
        _ => part(function.total_kernel),
    };
    let cells = vec![
        table::function(&function.name),
        figure(measure.figure(function.own as f64), function.own as f64),
        part(function.own),
        part(function.total),
        part(function.total_user()),
        kernel,
        us(function.own),
        us(function.total),
        words(place(function)),
    ];
    cells.into()
}

fn place(function: &Function) -> &str {
    match name::file_name(&function.module) {
        "" if function.origin == Origin::Kernel => "kernel",
        file => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, own: u64, total: u64) -> Function {
        Function { name: name.to_owned(), own, total, ..Function::default() }
    }

    /// Fault: `Order::Total` that leaves the order as it is.
    #[test]
    fn the_function_under_which_most_time_lies_comes_first_where_that_is_asked_for() {
        let found = || {
            vec![
                function("leaf", 60, 60),
                function("work", 40, 90),
                function("main", 0, 100),
                function("start", 0, 100),
            ]
        };
        let names = |order| {
            let (found, said) = in_order(found(), order);
            (found.into_iter().map(|function| function.name).collect::<Vec<_>>().join(" "), said)
        };
        assert_eq!(names(Order::Own), ("leaf work main start".to_owned(), "Functions by time of their own"));
        assert_eq!(names(Order::Total).0, "main start work leaf");
    }
}
