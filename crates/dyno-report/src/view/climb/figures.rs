//! The figures as tables: every arm of the total, every dial turned back.

use dyno_record::climb::{Arm, Climb, Role, Rung, Total};

use super::{rungs, series};
use crate::number;
use crate::view::block::{Block, OnPage, Section};
use crate::view::table::{Align, Cell, Column, Row, Table, count, figure, link, verdict, words};
use crate::view::words::paragraph;

pub(super) fn section(climb: &Climb) -> Option<Section> {
    let arms = climb.total.as_ref().map(|total| arms(climb, total)).unwrap_or_default();
    let blocks: Vec<Block> = arms.into_iter().chain(turned_back(climb)).collect();
    (!blocks.is_empty()).then(|| Section::page("figures", "Figures", OnPage::Body, blocks))
}

/// Absolute figures of the total's arms, with user and system time where the tick saw them.
fn arms(climb: &Climb, total: &Total) -> Vec<Block> {
    let heads = ["req/s", "CPU µs/req", "user µs/req", "kernel µs/req", "p50 µs", "p99 µs"].map(Column::page);
    let columns: Vec<Column> = std::iter::once(Column::words("arm", 0)).chain(heads).collect();
    let rows = total.arms.iter().map(|arm| arm_cells(arm).into()).collect();
    let place = |role| total.arms.iter().position(|arm| arm.role == role);
    let against = |from| {
        let (from, to) = (place(from)?, place(Role::Final)?);
        let name = &total.arms[from].name;
        series::rounds(climb, &format!("CPU per request in every round: final against {name}"), from, to)
    };
    let note = "User and kernel time are sampled by the kernel's tick; the ± is that sampling's error (one standard error).";
    let table = Table::new("The total's arms, absolute", &columns, rows);
    let series = [Role::Naive, Role::Floor].into_iter().filter_map(against);
    [Block::Table(table), paragraph(note)].into_iter().chain(series).collect()
}

fn arm_cells(arm: &Arm) -> Vec<Cell> {
    let f = &arm.figures;
    let part = |share: Option<f64>| match share {
        Some(share) => {
            let us = share * f.cpu_us_per_request;
            let error = arm.user_share_error.map(|error| format!(" ±{:.2}", error * f.cpu_us_per_request));
            figure(format!("{us:.2}{}", error.unwrap_or_default()), us)
        }
        None => figure(number::NONE, f64::NAN),
    };
    vec![
        words(&arm.name),
        count(f.requests_per_second),
        figure(number::micros(f.cpu_us_per_request), f.cpu_us_per_request),
        part(arm.user_share),
        part(arm.user_share.map(|share| 1.0 - share)),
        count(f.p50_us),
        count(f.p99_us),
    ]
}

const TURNED_BACK: [Column; 5] = [
    Column::words("rung", 0),
    Column::page("step"),
    Column::page("turned back"),
    Column::page("pairs"),
    Column { align: Align::Left, ..Column::page("verdict") },
];

/// Every kept dial turned back on fresh data.
fn turned_back(climb: &Climb) -> Vec<Block> {
    let row = |(at, rung): (usize, &Rung)| -> Option<Row> {
        let back = rung.leave_one_out?;
        let step = rung.attempt.effect_percent;
        let cells = vec![
            link(&rung.id, rungs::anchor(at)),
            figure(number::estimate(step, rung.attempt.interval_percent), step.unwrap_or(f64::NAN)),
            figure(number::effect(back.effect_percent, back.interval_percent), back.effect_percent),
            count(back.pairs as f64),
            verdict(rungs::verdict_on(climb, &rung.attempt)),
        ];
        Some(cells.into())
    };
    let rows: Vec<Row> = climb.rungs.iter().enumerate().filter_map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let note = "One dial at a time goes back to where the climb found it, with the dials that need it, all others staying where they ended. \
        This is the effect of having the rung, on data that decided nothing; it is the figure to quote.";
    let caption = "Leave one out: change of the rung's metric, 99 % interval";
    vec![Block::Table(Table::new(caption, &TURNED_BACK, rows)), paragraph(note)]
}
