//! The climb as a table on a terminal.
//!
//! `dyno climb` prints it at its end, `dyno report` for any old record. All words come from the record and are made
//! visible first: a name with an escape sequence in it is shown, not obeyed.

use dyno_measure::record::{Arm, Attempt, Climb, Figures, Ratio, Rung, RungVerdict};

use super::Color;
use super::number::{self, visible};
use super::table::{Align, Column, Row, lines, render};
use crate::report::apply;

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
pub(crate) fn climb_table(climb: &Climb, width: usize, color: Color) -> String {
    let mut out = String::new();
    push_header(&mut out, climb, width, color);
    if !climb.rungs.is_empty() {
        out.push('\n');
        let rows: Vec<Row> =
            start_row(climb).into_iter().chain(climb.rungs.iter().map(|rung| row(climb, rung, color))).collect();
        out.push_str(&render(&COLUMNS, "verdict", &rows, width));
    }
    out.push('\n');
    push_results(&mut out, climb, width);
    push_caveats(&mut out, climb, width, color);
    out
}

fn push_header(out: &mut String, climb: &Climb, width: usize, color: Color) {
    if let Some(why) = &climb.cut_short {
        let label = painted("cut short", 33, color);
        push_line(out, "cut short", &label, &format!("{}: what follows was measured before that", visible(why)), width);
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
    let first = climb.rungs.iter().find(|rung| rung.attempt.figures.is_some() && own_load(climb, &rung.attempt).is_none());
    let figures = first?.attempt.figures?[0];
    let mut cells = vec!["start".to_owned(), String::new()];
    cells.extend(figure_cells(Some(&figures)));
    cells.extend([String::new(), String::new()]);
    Some(Row { elsewhere: vec![String::new(); cells.len()], cells, ..Row::default() })
}

fn row(climb: &Climb, rung: &Rung, color: Color) -> Row {
    let attempt = &rung.attempt;
    let gain = rung.leave_one_out.map(|e| number::effect(e.effect_percent, e.interval_percent)).unwrap_or_default();
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

/// Rate, CPU and tail of one side.
fn figure_cells(figures: Option<&Figures>) -> [String; 3] {
    figures.map_or_else(Default::default, |f| {
        let tail = format!("{}/{}", number::count(f.p50_us), number::count(f.p99_us));
        [number::count(f.requests_per_second), number::micros(f.cpu_us_per_request), tail]
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
        notes.push(format!("under {load}"));
    }
    if !rung.bundle.is_empty() {
        notes.push(format!("judged together with {}", visible(&rung.bundle.join(", "))));
    }
    if let Some(first) = &rung.first_attempt {
        notes.push(format!("first try: {} {}", first.verdict.words(), step(first)).trim_end().to_owned());
    }
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
            text.push_str(&format!(" · without {} {gain}", visible(&without.rung)));
        }
        push_label(out, "total", &text, width);
    }
    if let Some(floor) = &climb.floor {
        let ratio = number::times_with_interval(floor);
        push_label(out, "floor", &format!("{ratio} of the smallest loop that answers these bytes"), width);
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
    let seen = if unclear(gain) { ": no difference seen" } else { "" };
    let [low, high] = gain.interval;
    format!("{} requests per CPU-second ({low:.2} … {high:.2}){seen}", number::times(gain.ratio))
}

/// Whether an interval holds 1, or is none at all.
pub(crate) fn unclear(ratio: &Ratio) -> bool {
    let [low, high] = ratio.interval;
    !(low > 1.0 || high < 1.0)
}

/// Commands are folded between arguments, so that what is copied still runs.
fn push_apply(out: &mut String, climb: &Climb, width: usize) {
    let room = width.saturating_sub(LABEL_WIDTH);
    let commands = climb.total.as_ref().map(apply::commands).unwrap_or_default();
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
    use super::*;
    use crate::report::sample::sample_climb;
    #[test]
    fn x() {
        for w in [60,80,100,140] { println!("{}", climb_table(&sample_climb(7), w, Color::Plain)); }
    }
}
