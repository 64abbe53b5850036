//! What `dyno profile` shows on the terminal: what was watched, where the time went, and what watching cost.

use dyno_profile::top::{self, Function};
use dyno_record::profile::{Origin, Profile};

use super::table::{self, Align, Column, Row};
use crate::number::{NONE, count, micros, visible};

/// Functions that are shown; the record has all.
const FUNCTIONS_MAX: usize = 20;

/// A template instance may fill a page; what is longer has a line of its own.
const NAME_MAX: usize = 56;

/// Columns of the labels before a paragraph, with the blanks behind them.
const LABEL: usize = 10;

const COLUMNS: [Column; 6] = [
    Column { head: "function", align: Align::Left, falls: None, cell_max: NAME_MAX },
    Column { head: "self %", align: Align::Right, falls: Some(1), cell_max: 12 },
    Column { head: "total %", align: Align::Right, falls: Some(2), cell_max: 12 },
    Column { head: "of it kernel %", align: Align::Right, falls: Some(5), cell_max: 16 },
    Column { head: "self µs/req", align: Align::Right, falls: Some(3), cell_max: 12 },
    Column { head: "total µs/req", align: Align::Right, falls: Some(4), cell_max: 12 },
];

/// Everything, in at most `width` columns.
pub fn profile(profile: &Profile, width: usize) -> String {
    let mut out = labelled("watched", &watched(profile), width);
    out.push_str(&labelled("cpu", &cpu(profile), width));
    out.push_str(&labelled("own cost", &cost(profile), width));
    for warning in &profile.warnings {
        out.push_str(&labelled("warning", &visible(warning), width));
    }
    let rows: Vec<Row> =
        top::functions(profile).iter().take(FUNCTIONS_MAX).map(|function| row(profile, function)).collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table::render(&COLUMNS, "where", &rows, width));
    }
    out
}

/// A paragraph whose first line begins with what it is about.
fn labelled(label: &str, text: &str, width: usize) -> String {
    let lines = table::wrapped(text, width, LABEL);
    format!("{label:<LABEL$}{}", &lines[LABEL..])
}

fn watched(profile: &Profile) -> String {
    let (target, sampling) = (&profile.target, &profile.sampling);
    let pid = target.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let frequency = sampling.frequency_hz.map(|hz| format!(" at {hz:.0} Hz")).unwrap_or_default();
    let cut =
        profile.cut_short.as_ref().map(|why| format!(" · cut short: {}", visible(why))).unwrap_or_default();
    format!(
        "{}{pid}, {} · {:.1} s · {}{frequency} · {} samples, {} lost{cut}",
        visible(&target.name),
        scope(&target.scope),
        profile.duration_s,
        sampling.event,
        count(sampling.samples as f64),
        count(sampling.lost as f64),
    )
}

fn scope(word: &str) -> &str {
    match word {
        "process" => "with its threads and children",
        "thread" => "one thread",
        "machine" => "all CPUs",
        other => other,
    }
}

/// CPU time in all, and on which side of the kernel's door.
fn cpu(profile: &Profile) -> String {
    let total = profile.total_ns() as f64;
    let kernel = kernel_ns(profile) as f64;
    let of_one_cpu = 100.0 * total / (profile.duration_s.max(1e-9) * 1e9);
    let share = |part: f64| 100.0 * part / total.max(1.0);
    let per_request = per_request(profile, total).map(|us| {
        let part = |ns| micros(per_request(profile, ns).unwrap_or(f64::NAN));
        format!(" · {} µs per request (user {}, kernel {})", micros(us), part(total - kernel), part(kernel))
    });
    format!(
        "{of_one_cpu:.1} % of one CPU: user {:.1} %, kernel {:.1} %{}",
        share(total - kernel),
        share(kernel),
        per_request.unwrap_or_default()
    )
}

fn kernel_ns(profile: &Profile) -> u64 {
    let origin = |frame: u32| profile.frames[frame as usize].origin;
    let in_kernel = |frames: &[u32]| frames.last().is_some_and(|leaf| origin(*leaf) == Origin::Kernel);
    profile.stacks.iter().filter(|stack| in_kernel(&stack.frames)).map(|stack| stack.weight_ns).sum()
}

fn cost(profile: &Profile) -> String {
    let own = format!("{:.1} % of one CPU in this profiler", profile.overhead.profiler_percent);
    if profile.sampling.samples == 0 {
        return own;
    }
    let whole = profile.sampling.samples.saturating_sub(profile.sampling.truncated);
    let share = 100.0 * whole as f64 / profile.sampling.samples.max(1) as f64;
    format!("{own} · {share:.1} % of the stacks are whole")
}

/// CPU microseconds per request, where requests were counted.
fn per_request(profile: &Profile, ns: f64) -> Option<f64> {
    let count = profile.requests.as_ref().map(|requests| requests.count).filter(|count| *count > 0)?;
    Some(ns / 1e3 / count as f64)
}

fn row(profile: &Profile, function: &Function) -> Row {
    let total = profile.total_ns().max(1) as f64;
    let percent = |ns: u64| format!("{:.1}", 100.0 * ns as f64 / total);
    let us = |ns: u64| per_request(profile, ns as f64).map(micros).unwrap_or_default();
    let kernel = match function.origin {
        Origin::Kernel => NONE.to_owned(),
        _ => percent(function.total_kernel),
    };
    let module = dyno_profile::name::file_name(&function.module);
    let cells = vec![
        visible(&function.name),
        percent(function.own),
        percent(function.total),
        kernel,
        us(function.own),
        us(function.total),
    ];
    let elsewhere = COLUMNS.iter().zip(&cells).enumerate().map(|(at, (column, cell))| match at {
        0 => String::new(),
        _ if cell.is_empty() => String::new(),
        _ => format!("{} {cell}", column.head),
    });
    Row {
        elsewhere: elsewhere.collect(),
        end: visible(module),
        end_printed: visible(module),
        cells,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::{Frame, Requests, Stack, Thread};

    fn two_functions() -> Profile {
        let frame = |name: &str, origin| Frame { name: name.to_owned(), origin, ..Frame::default() };
        let stack = |frames: &[u32], samples| Stack {
            frames: frames.to_vec(),
            samples,
            weight_ns: samples * 1_000_000,
            ..Stack::default()
        };
        let mut profile = Profile {
            duration_s: 1.0,
            threads: vec![Thread::default()],
            frames: vec![
                frame("main", Origin::User),
                frame("serve\u{1b}[31m", Origin::User),
                frame("tcp_sendmsg", Origin::Kernel),
            ],
            stacks: vec![stack(&[0, 1], 60), stack(&[0, 1, 2], 40)],
            requests: Some(Requests { count: 1_000, source: "load".to_owned() }),
            ..Profile::default()
        };
        profile.target.name = "server".to_owned();
        profile.sampling.samples = 100;
        profile
    }

    #[test]
    fn time_is_told_by_function_by_side_and_by_request() {
        let text = profile(&two_functions(), 120);
        assert!(text.contains("10.0 % of one CPU: user 60.0 %, kernel 40.0 %"), "{text}");
        assert!(text.contains("100 µs per request (user 60.0, kernel 40.0)"), "{text}");
        let serve = text.lines().find(|line| line.trim_start().starts_with("serve")).unwrap_or_default();
        let figures: Vec<&str> = serve.split_whitespace().skip(1).collect();
        assert_eq!(figures, ["60.0", "100.0", "40.0", "60.0", "100"], "{text}");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed_and_sixty_columns_are_enough() {
        let text = profile(&two_functions(), 60);
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }
}
