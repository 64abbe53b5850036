//! The figures as tables: every arm of the total, every rung, every dial turned back.

use dyno_record::climb::{Arm, Rung, RungVerdict, Total};

use super::series;
use super::view::View;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, effect_words, paragraph};
use crate::page::table::{Cell, Edge, nothing, number as cell, table, words};

pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let climb = view.climb;
    let content = tag("div")
        .push_all(climb.total.as_ref().map(|total| arms(view, total)))
        .push_all(turned_back(&climb.rungs))
        .push_all((!climb.rungs.is_empty()).then(|| rungs(&climb.rungs)));
    (!content.is_empty()).then(|| Section::new("figures", "Figures", content))
}

/// Absolute figures of the total's arms, with user and system time where the tick saw them.
fn arms(view: &View<'_>, total: &Total) -> Tag {
    let heads = [
        ("arm", Edge::Left),
        ("req/s", Edge::Right),
        ("CPU µs/req", Edge::Right),
        ("user µs/req", Edge::Right),
        ("kernel µs/req", Edge::Right),
        ("p50 µs", Edge::Right),
        ("p99 µs", Edge::Right),
    ];
    let rows = total.arms.iter().map(|arm| (tag("span").text(&arm.name), arm_cells(arm))).collect();
    let place = |name: &str| total.arms.iter().position(|arm| arm.name == name);
    let against = |from: &str, title: &str| series::rounds(view, title, place(from)?, place("final")?);
    tag("div")
        .push(table("The total's arms, absolute", &heads, rows))
        .push(paragraph("User and kernel time are sampled by the kernel's tick; the ± is that sampling's error (one standard error)."))
        .push_all(against("naive", "CPU per request in every round: final against naive"))
        .push_all(against("floor", "CPU per request in every round: final against floor"))
}

fn arm_cells(arm: &Arm) -> Vec<Cell> {
    let f = &arm.figures;
    let part = |share: Option<f64>| match share {
        Some(share) => {
            let us = share * f.cpu_us_per_request;
            let error = arm.user_share_error.map(|error| format!(" ±{:.2}", error * f.cpu_us_per_request));
            cell(format!("{us:.2}{}", error.unwrap_or_default()), us)
        }
        None => cell(number::NONE, f64::NAN),
    };
    vec![
        cell(number::count(f.requests_per_second), f.requests_per_second),
        cell(number::micros(f.cpu_us_per_request), f.cpu_us_per_request),
        part(arm.user_share),
        part(arm.user_share.map(|share| 1.0 - share)),
        cell(number::count(f.p50_us), f.p50_us),
        cell(number::count(f.p99_us), f.p99_us),
    ]
}

/// Every rung that was turned back on fresh data, beside what its step said.
fn turned_back(rungs: &[Rung]) -> Option<Tag> {
    let heads = [
        ("rung", Edge::Left),
        ("step", Edge::Right),
        ("turned back", Edge::Right),
        ("pairs", Edge::Right),
        ("verdict", Edge::Left),
    ];
    let row = |rung: &Rung| {
        let back = rung.leave_one_out?;
        let step = rung.attempt.effect_percent;
        Some((
            tag("span").text(&rung.id),
            vec![
                cell(effect_words(step, rung.attempt.interval_percent), step.unwrap_or(f64::NAN)),
                cell(number::effect(back.effect_percent, back.interval_percent), back.effect_percent),
                cell(number::count(back.pairs as f64), back.pairs as f64),
                words(rung.attempt.verdict.words()),
            ],
        ))
    };
    let rows: Vec<_> = rungs.iter().filter_map(row).collect();
    let note = "One dial at a time goes back to where the climb found it, with the dials that need it, all others staying where they ended. \
        This is the effect of having the rung, on data that decided nothing; it is the figure to quote.";
    (!rows.is_empty()).then(|| {
        tag("div")
            .push(table("Leave one out: change of the rung's metric, 99 % interval", &heads, rows))
            .push(paragraph(note))
    })
}

/// Every rung with the absolute figures of its own trial.
fn rungs(rungs: &[Rung]) -> Tag {
    let heads = [
        ("rung", Edge::Left),
        ("req/s", Edge::Right),
        ("CPU µs/req", Edge::Right),
        ("p50 µs", Edge::Right),
        ("p99 µs", Edge::Right),
        ("step", Edge::Right),
        ("confirmed", Edge::Right),
        ("pairs", Edge::Right),
        ("verdict", Edge::Left),
    ];
    let rows = rungs.iter().map(|rung| (tag("span").text(&rung.id), rung_cells(rung))).collect();
    table("Every rung, with the figures of its own side of its own trial", &heads, rows)
}

fn rung_cells(rung: &Rung) -> Vec<Cell> {
    let attempt = &rung.attempt;
    let absolute =
        |read: fn(&dyno_record::climb::Figures) -> f64, written: fn(f64) -> String| match &attempt.figures {
            Some([_, with]) => cell(written(read(with)), read(with)),
            None => nothing(),
        };
    let confirmed = rung.leave_one_out.filter(|_| attempt.verdict == RungVerdict::Kept);
    vec![
        absolute(|f| f.requests_per_second, number::count),
        absolute(|f| f.cpu_us_per_request, number::micros),
        absolute(|f| f.p50_us, number::count),
        absolute(|f| f.p99_us, number::count),
        cell(
            effect_words(attempt.effect_percent, attempt.interval_percent),
            attempt.effect_percent.unwrap_or(f64::NAN),
        ),
        match confirmed {
            Some(e) => cell(number::effect(e.effect_percent, e.interval_percent), e.effect_percent),
            None => nothing(),
        },
        if attempt.pairs > 0 {
            cell(number::count(attempt.pairs as f64), attempt.pairs as f64)
        } else {
            nothing()
        },
        words(attempt.verdict.words()),
    ]
}
