//! The climb on a terminal, word for word and at every width: it is made by its view and drawn by the writer.
#![allow(clippy::unwrap_used)]

use dyno_record::climb::{Climb, Effect, Figures, Noise, Ratio};

use super::climb_table;
use crate::color::Color;
use crate::samples::climb::sample_climb;

/// The sample with figures that a person chose, so that a snapshot does not move with the generator.
fn small() -> Climb {
    let mut climb = sample_climb(1);
    climb.rungs.retain(|rung| ["one-send", "edge", "workers", "log-off"].contains(&rung.id.as_str()));
    let figures_of =
        [(-33.1, -32.4, 9.3), (0.1, f64::NAN, 7.2), (-3.4, -3.1, 6.9), (f64::NAN, f64::NAN, f64::NAN)];
    for (rung, (step, gain, cpu_us)) in climb.rungs.iter_mut().zip(figures_of) {
        let around = |value: f64| [value - 0.8, value + 0.8];
        rung.attempt.effect_percent = rung.attempt.effect_percent.map(|_| step);
        rung.attempt.interval_percent = rung.attempt.interval_percent.map(|_| around(step));
        let fresh = Effect { effect_percent: gain, interval_percent: around(gain), pairs: 120 };
        rung.leave_one_out = rung.leave_one_out.map(|_| fresh);
        let figures = |cpu_us| Figures {
            requests_per_second: 8e5 / cpu_us,
            cpu_us_per_request: cpu_us,
            p50_us: 402.0,
            p99_us: 1_890.0,
        };
        rung.attempt.figures = rung.attempt.figures.map(|_| [figures(13.9), figures(cpu_us)]);
        if let Some(first) = &mut rung.first_attempt {
            (first.effect_percent, first.interval_percent) = (Some(0.2), Some([-1.0, 1.4]));
        }
    }
    climb.noise = Some(Noise {
        aa_percent: 0.2,
        interval_percent: [-0.7, 1.1],
        visible_percent: 1.1,
        pairs: 240,
        tries: 1,
        trial: None,
        starts_percent: None,
    });
    for (arm, p99_us) in climb.total.as_mut().unwrap().arms.iter_mut().zip([1_900.0, 1_200.0, 800.0, 780.0]) {
        arm.figures.p99_us = p99_us;
    }
    climb
}

#[test]
fn a_wide_terminal_shows_every_column() {
    let text = climb_table(&small(), 150, Color::Plain);
    assert_eq!(text, include_str!("wide.txt"), "{text}");
}

#[test]
fn sixty_columns_keep_rungs_gains_and_verdicts_and_lose_nothing() {
    let text = climb_table(&small(), 60, Color::Plain);
    assert_eq!(text, include_str!("narrow.txt"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let climb = sample_climb(2);
    for width in 60..160 {
        for line in climb_table(&climb, width, Color::Plain).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn columns_fall_in_one_order_as_the_terminal_narrows_and_the_gain_stays() {
    let heads = ["p99 µs", "req/s", "CPU µs/req", "step", "change"];
    let (climb, mut shown) = (sample_climb(3), heads.len());
    for width in (60..160).rev() {
        let text = climb_table(&climb, width, Color::Plain);
        let head = text.lines().find(|line| line.trim_start().starts_with("rung ")).unwrap();
        let here: Vec<bool> = heads.iter().map(|name| head.contains(name)).collect();
        assert!(here.is_sorted(), "{width}: {head}");
        let count = here.iter().filter(|there| **there).count();
        assert!(count <= shown && head.contains("verdict"), "{width}: {head}");
        assert!(head.contains("gain (confirmed)"), "{width}: {head}");
        shown = count;
    }
    assert!(shown < 2, "sixty columns cannot hold them");
}

/// Each row has both of its sides: what stands in the next one was measured in other minutes. Planted fault: the side with
/// the change alone, so that rows read like stairs.
#[test]
fn a_slower_minute_is_no_step() {
    let mut climb = small();
    let figures =
        climb.rungs.iter_mut().find(|rung| rung.id == "edge").unwrap().attempt.figures.as_mut().unwrap();
    (figures[0].cpu_us_per_request, figures[1].cpu_us_per_request) = (12.05, 12.07);
    let text = climb_table(&climb, 150, Color::Plain);
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(row("one-send").contains(" 13.90 → 9.30 "), "{text}");
    assert!(row("edge").contains(" 12.05 → 12.07 "), "{text}");
}

/// Planted fault: a page has the risks, and a terminal has the command that takes them.
#[test]
fn what_a_kept_rung_risks_stands_under_it() {
    let mut climb = small();
    for rung in &mut climb.rungs {
        rung.risk =
            if rung.id == "one-send" { "none: the bytes are the same" } else { "lines are lost" }.into();
    }
    let text = climb_table(&climb, 150, Color::Plain);
    let under =
        |name: &str| text.lines().skip_while(|line| !line.trim_start().starts_with(name)).nth(1).unwrap();
    assert!(under("log-off").trim_start().starts_with("risk: lines are lost"), "{text}");
    assert_eq!(text.matches("risk:").count(), 1, "neither what risks nothing nor what was not kept: {text}");
}

#[test]
fn a_rung_under_another_load_stands_in_a_table_of_its_own() {
    let mut climb = sample_climb(8);
    let kept = climb.rungs.iter_mut().find(|rung| rung.id == "one-send").unwrap();
    kept.attempt.load = "GET /plaintext, 1 connection, closed loop".into();
    kept.attempt.own_load = true;
    let text = climb_table(&climb, 100, Color::Plain);
    let (first, own) = text.split_once("judged under GET /plaintext, 1 connection, closed loop").unwrap();
    assert!(first.contains("rung ") && !first.contains("one-send"), "{first}");
    let own: Vec<&str> = own.lines().take(4).collect();
    assert!(own[1].contains("gain (confirmed)"), "{own:?}");
    assert!(own[2].contains("one-send") && own[2].contains("kept for that load"), "{own:?}");
}

#[test]
fn colour_is_on_words_and_only_when_asked() {
    let (plain, painted) = [Color::Plain, Color::Ansi].map(|color| climb_table(&small(), 100, color)).into();
    assert!(!plain.contains('\u{1b}'));
    let mut stripped = painted.clone();
    for sgr in [0, 2, 31, 32, 33] {
        stripped = stripped.replace(&format!("\u{1b}[{sgr}m"), "");
    }
    assert_eq!(stripped, plain);
    assert!(painted.contains("\u{1b}[32mkept\u{1b}[0m"), "{painted}");
}

#[test]
fn a_terminal_obeys_nothing_in_a_record() {
    let mut climb = sample_climb(4);
    for rung in &mut climb.rungs {
        for text in [&mut rung.id, &mut rung.change, &mut rung.attempt.why, &mut rung.attempt.load] {
            text.push_str("\u{1b}]0;owned\u{7}\u{202e}\nnext");
        }
    }
    climb.warnings.push("\u{1b}[2J".into());
    climb.cut_short = Some("\u{9b}2J".into());
    let text = climb_table(&climb, 80, Color::Plain);
    assert!(!text.chars().any(|c| c != '\n' && crate::number::obeyed(c)), "{text:?}");
}

#[test]
fn an_empty_record_and_one_cut_short_have_their_lines() {
    let empty = climb_table(&Climb::default(), 80, Color::Plain);
    assert!(empty.contains("noise     not measured"), "{empty}");
    let mut climb = sample_climb(5);
    (climb.total, climb.floor, climb.noise) = (None, None, None);
    climb.cut_short = Some("interrupted".into());
    let text = climb_table(&climb, 80, Color::Plain);
    assert!(text.starts_with("cut short interrupted: what follows"), "{text}");
    climb.cut_short = Some("cut short: interrupted".into());
    assert_eq!(climb_table(&climb, 80, Color::Plain), text);
}

#[test]
fn ratios_that_may_be_one_are_called_so() {
    let mut climb = sample_climb(6);
    let text = climb_table(&climb, 140, Color::Plain);
    assert!(!text.contains("no difference seen"), "{text}");
    let one = Ratio { ratio: 1.01, interval: [0.98, 1.04] };
    let total = climb.total.as_mut().unwrap();
    (total.gain, total.without.as_mut().unwrap().gain, climb.floor) = (one, one, Some(one));
    let text = climb_table(&climb, 140, Color::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("no difference seen").count(), 3, "{text}");
    assert!(text.contains("(0.98 … 1.04): no difference seen · without one-send"), "{text}");
}

#[test]
fn a_climb_without_a_total_still_says_how_to_apply_it() {
    let mut climb = sample_climb(7);
    climb.reached = climb.total.take().map(|total| total.reached);
    assert!(climb_table(&climb, 100, Color::Plain).contains("\napply     dyno serve"));
}
