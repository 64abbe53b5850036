//! The page as a whole: well-formed, closed to strangers' markup, small, and whole for every kind of record.

use dyno_record::climb::*;

use super::*;
use crate::page::html::tests::{assert_balanced, tags};
use crate::page::tests::{HOSTILE, assert_shown_and_never_run};
use crate::samples::climb::sample_climb;

/// 400 kB is what a page may weigh (it is mailed, and kept beside each record).
const PAGE_BYTES_MAX: usize = 400_000;

#[test]
fn a_whole_climb_is_one_well_formed_page_below_its_size() {
    let page = render(&sample_climb(1));
    assert_balanced(&page);
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
}

#[test]
fn a_very_long_climb_is_thinned_and_says_so() {
    let mut climb = sample_climb(2);
    let trial = climb.series.trials[1].clone();
    climb.series.trials.extend(std::iter::repeat_n(trial, 80));
    let page = render(&climb);
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    assert!(page.contains("One pair in 2"), "thinning is not said");
}

#[test]
fn the_first_screen_answers_in_order() {
    let page = render(&sample_climb(3));
    let page = &page[page.find("<main>").expect("a page has a main part")..];
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let order = [
        "2.30×",
        "99\u{a0}% interval 2.21 … 2.38",
        "1.03× (1.01 … 1.05)",
        "What it cannot say",
        "Apply it",
        "dyno serve",
        "The ladder",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
    for owed in [
        "Loopback.",
        "40\u{a0}%",
        "Closed loop.",
        "without one-send",
        "Warning.",
        "seed 3",
        "lines still in the ring",
    ] {
        at(owed);
    }
}

#[test]
fn every_rung_has_its_row_its_card_and_its_reason() {
    let climb = sample_climb(4);
    let page = render(&climb);
    for (k, rung) in climb.rungs.iter().enumerate() {
        let n = k + 1;
        assert!(page.contains(&format!("href=\"#rung-{n}\"")), "row of {}", rung.id);
        assert!(page.contains(&format!("id=\"rung-{n}\"")), "card of {}", rung.id);
        assert!(page.contains(rung.attempt.verdict.words()), "verdict of {}", rung.id);
    }
    for reason in ["one server CPU", "p99 grew by 22\u{a0}%", "First try:", "fails without it"] {
        assert!(page.contains(reason), "{reason}");
    }
}

#[test]
fn every_picture_has_its_sentence_or_is_part_of_one() {
    for (name, attributes) in tags(&render(&sample_climb(5))) {
        let inner = attributes.contains("class=\"cut\"");
        let outer = name == "svg" && attributes.contains("height") && attributes.contains("class=") && !inner;
        assert!(
            !outer || attributes.contains("aria-label=\"") || attributes.contains("aria-hidden"),
            "{attributes}"
        );
    }
}

/// Every word of the record replaced by an attack.
fn hostile() -> Climb {
    let mut value = serde_json::to_value(sample_climb(8)).expect("a record is plain data");
    let words = ["schema", "verdict", "metric", "first", "side", "stage", "schedule", "basis", "role"];
    let more =
        ["id", "trial", "leave_one_out_trial", "block_columns", "kind", "by", "origin", "unit", "deed"];
    let kept = [&words[..], &more].concat();
    poison(&mut value, "", &kept);
    let mut climb = Climb::from_json(&value.to_string()).expect("still a record");
    for rung in &mut climb.rungs {
        rung.id.push_str(HOSTILE);
    }
    climb.cut_short = Some(HOSTILE.into());
    climb
}

fn poison(value: &mut serde_json::Value, key: &str, kept: &[&str]) {
    match value {
        serde_json::Value::String(text) if !kept.contains(&key) => *text = HOSTILE.to_owned(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| poison(item, key, kept)),
        serde_json::Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, item)| poison(item, key, kept));
        }
        _ => {}
    }
}

#[test]
fn a_hostile_record_is_shown_and_never_run() {
    assert_shown_and_never_run(&render(&hostile()), 1);
}

#[test]
fn a_record_without_anything_is_still_a_page() {
    let page = render(&Climb::default());
    assert_balanced(&page);
    assert!(page.contains("No total"), "{page}");
}

#[test]
fn a_climb_cut_short_says_so_before_all_else() {
    let mut climb = sample_climb(9);
    (climb.total, climb.floor, climb.noise) = (None, None, None);
    climb.cut_short = Some("interrupted".into());
    climb.rungs.truncate(3);
    let page = render(&climb);
    assert_balanced(&page);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(at("Cut short") < at("3 of 3 rungs kept"));
}

fn each(climb: &mut Climb, spoil: fn(&mut Rung)) {
    climb.rungs.iter_mut().for_each(spoil);
}

#[test]
fn every_part_may_be_missing_or_no_number() {
    let whole = sample_climb(10);
    let broken: [fn(&mut Climb); 6] = [
        |climb| climb.series = Series::default(),
        |climb| each(climb, |rung| (rung.attempt.trial, rung.leave_one_out) = (None, None)),
        |climb| each(climb, |rung| rung.attempt.effect_percent = Some(f64::NAN)),
        |climb| each(climb, |rung| rung.attempt.effect_percent = Some(1e300)),
        |climb| climb.total = Some(Total::default()),
        |climb| {
            let pairs = climb.series.trials.iter_mut().flat_map(|compared| &mut compared.trial.pairs);
            pairs.for_each(|pair| pair.a.replies = 0);
        },
    ];
    for (k, spoil) in broken.iter().enumerate() {
        let mut climb = whole.clone();
        spoil(&mut climb);
        let page = render(&climb);
        assert_balanced(&page);
        assert!(!page.contains("NaN") && !page.contains(">inf"), "case {k}");
    }
}

#[test]
fn an_interval_that_holds_one_is_no_difference() {
    let mut climb = sample_climb(11);
    let total = climb.total.as_mut().expect("the sample has a total");
    total.gain = Ratio { ratio: 1.01, interval: [0.98, 1.04] };
    assert!(render(&climb).contains("no difference seen"));
}
