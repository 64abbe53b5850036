//! The page as a whole: well-formed, closed to strangers' markup, small, and whole for every kind of record.

use dyno_record::causal::{Treatment, *};

use super::render;
use crate::page::html::tests::{assert_balanced, tags};
use crate::page::tests::{HOSTILE, assert_shown_and_never_run};
use crate::samples::causal::sample;

/// 400 kB is what a page may weigh.
const PAGE_BYTES_MAX: usize = 400_000;

fn at(page: &str, text: &str) -> usize {
    page.find(text).unwrap_or_else(|| panic!("{text} is missing"))
}

#[test]
fn the_first_screen_answers_before_the_curves_do() {
    let page = render(&sample(1));
    assert_balanced(&page);
    let page = &page[at(&page, "<main>")..];
    let order = [
        "20.5\u{a0}%",
        "render::page",
        "19.6 … 21.4\u{a0}%",
        "What it cannot say",
        "What each would bring",
        "Figures",
    ];
    assert!(order.map(|text| at(page, text)).is_sorted(), "{:?}", order.map(|text| at(page, text)));
    for owed in
        ["Contention.", "spin_until_free", "steal 6\u{a0}%", "parse_head", "1.8\u{a0}%", "src/render.rs:57"]
    {
        at(page, owed);
    }
}

#[test]
fn every_site_has_its_curve_its_verdict_its_reason_and_its_sentence() {
    let record = sample(2);
    let page = render(&record);
    for (k, site) in record.sites.iter().enumerate() {
        at(&page, &format!("id=\"site-{}\"", k + 1));
        at(&page, site.verdict.words());
    }
    let drawings =
        tags(&page).iter().filter(|(_, attributes)| attributes.contains("class=\"effect\"")).count();
    assert_eq!(drawings, record.sites.len());
    assert!(tags(&page).iter().all(|(_, attributes)| {
        !attributes.contains("class=\"effect\"") || attributes.contains("aria-label=\"")
    }));
    at(&page, "less than five pauses");
}

#[test]
fn single_windows_are_drawn_against_their_own_round_and_what_was_set_aside_is_not() {
    let mut record = sample(3);
    record.sites.truncate(1);
    let all = record.sites[0].windows.iter().filter(|window| window.treatment != Treatment::Nothing).count();
    let set_aside = record.sites[0].windows.iter().filter(|window| window.dropped.is_some()).count();
    assert_eq!(render(&record).matches("h0").count(), all - set_aside);
}

#[test]
fn a_page_with_many_windows_stays_small() {
    let mut record = sample(4);
    let windows = record.sites[0].windows.clone();
    for site in &mut record.sites {
        site.windows = std::iter::repeat_n(windows.clone(), 60).flatten().collect();
    }
    let page = render(&record);
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
}

#[test]
fn a_hostile_record_is_shown_and_never_run() {
    let mut record = sample(6);
    record.target.name = HOSTILE.into();
    record.target.argv = vec![HOSTILE.into()];
    record.command = vec![HOSTILE.into()];
    record.cut_short = Some(HOSTILE.into());
    record.warnings = vec![HOSTILE.into()];
    record.progress.name = HOSTILE.into();
    record.version = HOSTILE.into();
    record.not_measured[0].what = HOSTILE.into();
    for site in &mut record.sites {
        (site.name, site.reason) = (HOSTILE.into(), HOSTILE.into());
        site.no_slow_down = Some(HOSTILE.into());
        site.source.file = Some(HOSTILE.into());
        site.source.module = Some(HOSTILE.into());
        site.source.hot_lines[0].file = HOSTILE.into();
        site.credibility.pause = HOSTILE.into();
    }
    record.credibility.pause = HOSTILE.into();
    assert_shown_and_never_run(&render(&record), 1);
}

#[test]
fn a_record_without_anything_is_still_a_page() {
    let page = render(&Causal::default());
    assert_balanced(&page);
    at(&page, "Nothing was tried");
}

#[test]
fn a_record_cut_short_says_so_before_all_else_and_nothing_helpful_is_said_too() {
    let mut record = sample(7);
    record.cut_short = Some("Ctrl-C".into());
    record.sites.retain(|site| site.verdict == Verdict::NoEffect);
    let page = render(&record);
    assert!(at(&page, "Cut short") < at(&page, "Nothing helps"));
}

fn each(record: &mut Causal, spoil: fn(&mut Site)) {
    record.sites.iter_mut().for_each(spoil);
}

#[test]
fn every_part_may_be_missing_or_no_number() {
    let broken: [fn(&mut Causal); 7] = [
        |record| each(record, |site| site.points.clear()),
        |record| each(record, |site| site.slope = None),
        |record| each(record, |site| site.windows.clear()),
        |record| each(record, |site| site.points[0].effect_percent = f64::NAN),
        |record| each(record, |site| site.points[0].interval_percent = [f64::NEG_INFINITY, f64::INFINITY]),
        |record| {
            each(record, |site| {
                site.nulls = Nulls { rounds: 3, interval_percent: [f64::NAN; 2], ..Nulls::default() };
            });
        },
        |record| each(record, |site| site.windows.iter_mut().for_each(|window| window.period_us = Some(0.0))),
    ];
    for (k, spoil) in broken.iter().enumerate() {
        let mut record = sample(8);
        spoil(&mut record);
        let page = render(&record);
        assert_balanced(&page);
        assert!(!page.contains("NaN") && !page.contains(">inf"), "case {k}");
    }
}
