//! The climb as a table on a terminal.
//!
//! `dyno climb` prints it at its end, `dyno report` for any old record. All words come from the record and are made
//! visible first: a name with an escape sequence in it is shown, not obeyed.

use dyno_record::climb::{Arm, Attempt, Climb, Figures, Ratio, Rung, RungVerdict};

use super::foretold;
use super::table::{Align, Column, Row, lines, render};
use crate::apply;
use crate::color::Color;
use crate::number::{self, visible};

/// Columns of the labels of header and footer.
const LABEL_WIDTH: usize = 10;
/// A longer name has a line for itself: the table keeps its shape at 60 columns.
const NAME_MAX: usize = 18;
/// A longer change goes under its row.
const CHANGE_MAX: usize = 36;
/// A reason may hold the last words of a server that died; this much of it is a table's business, the record has it all.
const WHY_CHARS_MAX: usize = 300;

/// From the right: the confirmed gain falls first, then the tail, the rate, the CPU; the step's figure is the last.
const COLUMNS: [Column; 7] = [
    column("rung", Align::Left, None, NAME_MAX),
    column("change", Align::Left, Some(2), CHANGE_MAX),
    column("req/s", Align::Right, Some(4), 12),
    column("CPU µs/req", Align::Right, Some(3), 12),
    column("p50/p99 µs", Align::Right, Some(5), 20),
    column("step", Align::Right, Some(1), 20),
    column("gain (confirmed)", Align::Right, Some(6), 20),
];

const fn column(head: &'static str, align: Align, falls: Option<u8>, cell_max: usize) -> Column {
    Column { head, align, falls, cell_max }
}

/// The whole climb in at most `width` columns (40 at least).
pub fn climb_table(climb: &Climb, width: usize, color: Color) -> String {
    let mut out = String::new();
    push_header(&mut out, climb, width, color);
    if !climb.rungs.is_empty() {
        out.push('\n');
        let rows: Vec<Row> = start_row(climb)
            .into_iter()
            .chain(climb.rungs.iter().map(|rung| row(climb, rung, color)))
            .collect();
        out.push_str(&render(&COLUMNS, "verdict", &rows, width));
    }
    out.push('\n');
    push_results(&mut out, climb, width);
    push_caveats(&mut out, climb, width, color);
    out
}

fn push_header(out: &mut String, climb: &Climb, width: usize, color: Color) {
    if let Some(why) = &climb.cut_short {
        let why = why.strip_prefix("cut short: ").unwrap_or(why);
        let label = painted("cut short", 33, color);
        push_line(
            out,
            "cut short",
            &label,
            &format!("{}: what follows was measured before that", visible(why)),
            width,
        );
    }
    push_label(out, "machine", &machine(climb), width);
    let noise = match &climb.noise {
        Some(noise) => format!(
            "A against A: {} over {} pairs · effects from {:.1} % up are visible here today",
            number::effect(noise.aa_percent, noise.interval_percent),
            noise.pairs,
            noise.visible_percent
        ),
        None => "not measured: how small an effect would show is unknown".to_owned(),
    };
    push_label(out, "noise", &noise, width);
}

fn machine(climb: &Climb) -> String {
    let m = &climb.machine;
    let plural = if m.cpus == 1 { "" } else { "s" };
    let vm = if m.virtual_machine { ", VM" } else { "" };
    format!(
        "{} CPU{plural} ({}{vm}), Linux {} · server on {}, load on {} · {}",
        m.cpus,
        visible(&m.model),
        visible(&m.kernel),
        visible(&m.server_cpus),
        visible(&m.load_cpus),
        visible(&climb.load.to_string())
    )
}

/// Where the climb starts: what its first rung measured on the side before it, under the plan's own load.
fn start_row(climb: &Climb) -> Option<Row> {
    let first = climb
        .rungs
        .iter()
        .find(|rung| rung.attempt.figures.is_some() && own_load(climb, &rung.attempt).is_none());
    let figures = first?.attempt.figures?[0];
    let mut cells = vec!["start".to_owned(), String::new()];
    cells.extend(figure_cells(Some(&figures)));
    cells.extend([String::new(), String::new()]);
    Some(Row { elsewhere: vec![String::new(); cells.len()], cells, ..Row::default() })
}

fn row(climb: &Climb, rung: &Rung, color: Color) -> Row {
    let attempt = &rung.attempt;
    let gain = confirmed(rung).unwrap_or_default();
    let change = visible(&rung.change);
    let mut cells = vec![visible(&rung.id), change.clone()];
    cells.extend(figure_cells(attempt.figures.as_ref().map(|[_, after]| after)));
    cells.extend([step(attempt), gain.clone()]);
    let mut elsewhere = vec![String::new(); cells.len()];
    elsewhere[1] = change;
    elsewhere[6] = if gain.is_empty() { gain } else { format!("confirmed {gain}") };
    let end = attempt.verdict.words().to_owned();
    let end_printed = painted(&end, hue(attempt.verdict), color);
    Row { cells, elsewhere, end_printed, end, why: why(attempt), notes: notes(climb, rung) }
}

/// The gain to quote. What was turned back and not confirmed has its figure in the reason.
fn confirmed(rung: &Rung) -> Option<String> {
    let kept = rung.leave_one_out.filter(|_| rung.attempt.verdict == RungVerdict::Kept);
    kept.map(|e| number::effect(e.effect_percent, e.interval_percent))
}

/// Rate, CPU and tail of one side.
fn figure_cells(figures: Option<&Figures>) -> [String; 3] {
    figures.map_or_else(Default::default, |f| {
        let tail = format!("{}/{}", number::count(f.p50_us), number::count(f.p99_us));
        // Two decimals in all rows: a column is read downwards.
        [number::count(f.requests_per_second), number::hundredths(f.cpu_us_per_request), tail]
    })
}

/// The step's own figure.
fn step(attempt: &Attempt) -> String {
    match (attempt.effect_percent, attempt.interval_percent) {
        (Some(value), Some(interval)) => number::effect(value, interval),
        (Some(value), None) => number::percent(value),
        (None, _) => String::new(),
    }
}

/// A kept rung's reason is its figures; every other verdict owes one.
fn why(attempt: &Attempt) -> String {
    if attempt.verdict == RungVerdict::Kept {
        return String::new();
    }
    let whole = visible(&attempt.why);
    match whole.char_indices().nth(WHY_CHARS_MAX) {
        Some((end, _)) => format!("{} … (all of it is in the record)", &whole[..end]),
        None => whole,
    }
}

fn notes(climb: &Climb, rung: &Rung) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(load) = own_load(climb, &rung.attempt) {
        let only = climb.own_load_only(&rung.attempt) && rung.attempt.verdict == RungVerdict::Kept;
        let kept = if only { ", and kept for that load only: the final setting goes without it" } else { "" };
        notes.push(format!("under {load}{kept}"));
    }
    if !rung.bundle.is_empty() {
        notes.push(format!("judged together with {}", visible(&rung.bundle.join(", "))));
    }
    if let Some(first) = &rung.first_attempt {
        notes.push(format!("first try: {} {}", first.verdict.words(), step(first)).trim_end().to_owned());
    }
    notes.extend(rung.attempt.causal.as_ref().map(foretold::line));
    notes
}

/// The rung's load when it is not the plan's.
pub(crate) fn own_load(climb: &Climb, attempt: &Attempt) -> Option<String> {
    let other = !attempt.load.is_empty() && attempt.load != climb.load.to_string();
    other.then(|| visible(&attempt.load))
}

fn push_results(out: &mut String, climb: &Climb, width: usize) {
    if let Some(total) = &climb.total {
        let way = arms(climb).map(|(from, to)| {
            let cpu = |arm: &Arm| number::micros(arm.figures.cpu_us_per_request);
            format!("{} → {} µs · ", cpu(from), cpu(to))
        });
        let mut text = way.unwrap_or_default() + &gain_in_words(&total.gain);
        if let Some(without) = &total.without {
            let gain = number::times_with_interval(&without.gain);
            text.push_str(&format!(" · without {} {gain}{}", visible(&without.rung), seen(&without.gain)));
        }
        push_label(out, "total", &text, width);
    }
    if let Some(floor) = &climb.floor {
        let ratio = number::times_with_interval(floor);
        let text = format!("{ratio} of the smallest loop that answers these bytes{}", seen(floor));
        push_label(out, "floor", &text, width);
    }
    if let Some((from, to)) = arms(climb) {
        let p99 = |arm: &Arm| number::latency(arm.figures.p99_us);
        push_label(out, "p99", &format!("{} → {} (under saturation; not an SLO)", p99(from), p99(to)), width);
    }
    push_apply(out, climb, width);
}

/// The start and the end of the total, where both were measured.
pub(crate) fn arms(climb: &Climb) -> Option<(&Arm, &Arm)> {
    let arms = &climb.total.as_ref()?.arms;
    let named = |name: &str| arms.iter().find(|arm| arm.name == name);
    Some((named("naive")?, named("final")?))
}

fn gain_in_words(gain: &Ratio) -> String {
    let [low, high] = gain.interval;
    format!("{} requests per CPU-second ({low:.2} … {high:.2}){}", number::times(gain.ratio), seen(gain))
}

/// What is said behind a ratio whose interval holds 1.
pub(crate) fn seen(ratio: &Ratio) -> &'static str {
    if unclear(ratio) { ": no difference seen" } else { "" }
}

/// Whether an interval holds 1, or is none at all.
pub(crate) fn unclear(ratio: &Ratio) -> bool {
    let [low, high] = ratio.interval;
    !(low > 1.0 || high < 1.0)
}

/// Commands are folded between arguments, so that what is copied still runs.
fn push_apply(out: &mut String, climb: &Climb, width: usize) {
    let room = width.saturating_sub(LABEL_WIDTH);
    let commands = apply::commands(climb);
    for (k, line) in commands.iter().flat_map(|command| apply::folded(command, room)).enumerate() {
        let label = if k == 0 { "apply" } else { "" };
        out.push_str(&format!("{label:<LABEL_WIDTH$}{line}\n"));
    }
}

fn push_caveats(out: &mut String, climb: &Climb, width: usize, color: Color) {
    for missing in &climb.not_measured {
        push_label(out, "unknown", &format!("{}: {}", visible(&missing.what), visible(&missing.why)), width);
    }
    for warning in &climb.warnings {
        push_line(out, "warning", &painted("warning", 33, color), &visible(warning), width);
    }
}

fn push_label(out: &mut String, label: &str, text: &str, width: usize) {
    push_line(out, label, label, text, width);
}

/// A label, and beside it a paragraph. `printed` is the label as it is shown, with colour.
fn push_line(out: &mut String, label: &str, printed: &str, text: &str, width: usize) {
    let room = width.max(40) - LABEL_WIDTH;
    for (k, line) in lines(text, room).iter().enumerate() {
        let (label, printed) = if k == 0 { (label, printed) } else { ("", "") };
        let blanks = " ".repeat(LABEL_WIDTH - label.len());
        out.push_str(&format!("{printed}{blanks}{line}\n"));
    }
}

/// SGR numbers: green, red, yellow, or dim for what says little.
fn hue(verdict: RungVerdict) -> u8 {
    match verdict {
        RungVerdict::Kept => 32,
        RungVerdict::Reverted | RungVerdict::Failed => 31,
        RungVerdict::Unconfirmed | RungVerdict::NotApplied => 33,
        RungVerdict::NoDifference | RungVerdict::NotPossible | RungVerdict::NotMeasured => 2,
    }
}

fn painted(word: &str, sgr: u8, color: Color) -> String {
    match color {
        Color::Plain => word.to_owned(),
        Color::Ansi => format!("\u{1b}[{sgr}m{word}\u{1b}[0m"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::samples::climb::sample_climb;
    use dyno_record::climb::{Effect, Noise, Predicted};

    /// The sample with figures that a person chose, so that a snapshot does not move with the generator.
    fn small() -> Climb {
        let mut climb = sample_climb(1);
        climb.rungs.retain(|rung| ["one-send", "edge", "workers", "log-off"].contains(&rung.id.as_str()));
        let told =
            [(-33.1, -32.4, 9.3), (0.1, f64::NAN, 7.2), (-3.4, -3.1, 6.9), (f64::NAN, f64::NAN, f64::NAN)];
        for (rung, (step, gain, cpu_us)) in climb.rungs.iter_mut().zip(told) {
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
        });
        for (arm, p99_us) in
            climb.total.as_mut().unwrap().arms.iter_mut().zip([1_900.0, 1_200.0, 800.0, 780.0])
        {
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
    fn sixty_columns_keep_rungs_steps_and_verdicts_and_lose_nothing() {
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
    fn columns_fall_in_one_order_as_the_terminal_narrows() {
        let heads = ["gain (confirmed)", "p50/p99 µs", "req/s", "CPU µs/req", "change"];
        let (climb, mut shown) = (sample_climb(3), heads.len());
        for width in (60..160).rev() {
            let text = climb_table(&climb, width, Color::Plain);
            let head = text.lines().find(|line| line.trim_start().starts_with("rung ")).unwrap();
            let here: Vec<bool> = heads.iter().map(|name| head.contains(name)).collect();
            assert!(here.is_sorted(), "{width}: {head}");
            let count = here.iter().filter(|there| **there).count();
            assert!(count <= shown && head.contains("verdict"), "{width}: {head}");
            shown = count;
        }
        assert!(shown < 2, "sixty columns cannot hold them");
    }

    #[test]
    fn colour_is_on_words_and_only_when_asked() {
        let (plain, painted) =
            [Color::Plain, Color::Ansi].map(|color| climb_table(&small(), 100, color)).into();
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
    fn what_was_foretold_stands_under_its_rung() {
        let mut climb = sample_climb(8);
        climb.rungs[0].attempt.causal = Some(Predicted {
            predicted_percent: Some(-30.0),
            interval_percent: Some([-33.0, -27.0]),
            drift_percent: Some(1.0),
            measured_percent: Some(-31.0),
            measured_interval_percent: Some([-32.0, -30.0]),
            ..Predicted::default()
        });
        let text = climb_table(&climb, 100, Color::Plain);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
        let (first, second) = (at(&climb.rungs[0].id), at(&climb.rungs[1].id));
        let line = at("time per request: predicted −30.0 % ±3.0, measured −31.0 % ±1.0");
        assert!(first < line && line < second, "{text}");
    }

    #[test]
    fn a_climb_without_a_total_still_says_how_to_apply_it() {
        let mut climb = sample_climb(7);
        climb.reached = climb.total.take().map(|total| total.reached);
        assert!(climb_table(&climb, 100, Color::Plain).contains("\napply     dyno serve"));
    }
}
