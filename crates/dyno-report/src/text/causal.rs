//! What `dyno causal` shows on the terminal: where it stands while it runs, and at the end what each site would bring.

use std::time::Duration;

use dyno_record::causal::{Candidate, Causal, Credibility, OverheadPart, Point, Site, Verdict};

use super::table::{self, Align, Column, Row};
use crate::color::Color;
use crate::number::{NONE, clock, count, effect, latency, percent, visible};

/// A template instance may fill a page; what is longer has a line of its own.
const NAME_MAX: usize = 48;
/// Columns of the labels before a paragraph.
const LABEL: usize = 12;

const COLUMNS: [Column; 4] = [
    Column { head: "site", align: Align::Left, falls: None, cell_max: NAME_MAX },
    Column { head: "samples %", align: Align::Right, falls: Some(3), cell_max: 12 },
    Column { head: "saved per % faster", align: Align::Right, falls: Some(2), cell_max: 24 },
    Column { head: "saved, at most faster", align: Align::Right, falls: Some(1), cell_max: 32 },
];

/// Where the experiments stand.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'s> {
    /// The site whose turn it is.
    pub site: &'s str,
    /// Rounds of it that are over.
    pub round: usize,
    /// Its greatest level's effect and half width so far, in percent.
    pub effect: Option<(f64, f64)>,
    /// Sites that are done, of all.
    pub done: (usize, usize),
    /// Time left of the whole budget.
    pub left: Duration,
}

impl Standing<'_> {
    /// One line of at most `width` columns; parts fall away from the right, the time left last.
    pub fn line(&self, width: usize) -> String {
        let left = format!("({} left)", clock(self.left));
        let estimate = self.effect.map(|(value, half)| format!("saves {} ±{half:.1}", percent(value)));
        let done = (self.done.1 > 1).then(|| format!("{} of {} done", self.done.0, self.done.1));
        let head = [visible(self.site), format!("round {}", self.round)];
        let parts = head.into_iter().chain(estimate).chain(done);
        let mut line = String::new();
        for part in parts {
            if line.chars().count() + part.chars().count() + 2 + left.chars().count() > width {
                break;
            }
            line.push_str(&part);
            line.push_str("  ");
        }
        line.push_str(&left);
        line.chars().take(width).collect()
    }
}

/// Everything, in at most `width` columns.
pub fn causal(record: &Causal, width: usize, color: Color) -> String {
    let mut out = String::new();
    let mut say = |label: &str, text: &str| out.push_str(&labelled(label, text, width));
    say("target", &target(record));
    say("progress", &progress(record));
    record
        .progress
        .chosen
        .iter()
        .for_each(|why| say("taken", &format!("nothing was named; {}", visible(why))));
    others(record).iter().for_each(|text| say("or", text));
    record.cut_short.iter().for_each(|why| say("cut short", &visible(why)));
    record.warnings.iter().for_each(|warning| say("warning", &visible(warning)));
    let rows: Vec<Row> = record.sites.iter().map(|site| row(site, color)).collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table::render(&COLUMNS, "verdict", &rows, width));
        out.push('\n');
    }
    for (label, text) in costs(record).into_iter().chain(belief(&record.credibility)) {
        out.push_str(&labelled(label, &text, width));
    }
    for missing in &record.not_measured {
        let text = format!("{}: {}", visible(&missing.what), visible(&missing.why));
        out.push_str(&labelled("not tried", &text, width));
    }
    out
}

/// What watching and delaying cost, by name.
pub fn costs(record: &Causal) -> Vec<(&'static str, String)> {
    let cost = &record.overhead;
    let attached = cost.interval_percent.map(|interval| {
        format!("attached without delays: {} of a visit's time", effect(cost.attached_percent, interval))
    });
    let delayed = (cost.inserted_percent > 0.0)
        .then(|| format!("with delays: {:.1} % of the time was inserted, by design", cost.inserted_percent));
    let words: Vec<String> = attached.into_iter().chain(hooks(&cost.parts)).chain(delayed).collect();
    if words.is_empty() { Vec::new() } else { vec![("cost", words.join(" · "))] }
}

/// What the programs in the kernel took, in words.
fn hooks(parts: &[OverheadPart]) -> Option<String> {
    let part = |part: &OverheadPart| format!("{} {:.2} %", visible(&part.name), part.percent);
    let parts: Vec<String> = parts.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("its programs in the kernel, of all CPUs: {}", parts.join(", ")))
}

/// The figures that say how far the rest may be believed, by name.
pub fn belief(seen: &Credibility) -> Vec<(&'static str, String)> {
    if seen.windows == 0 {
        return Vec::new();
    }
    let windows = format!(
        "{} run, {} set aside · one without a speed-up differs by {:.1} %",
        count(seen.windows as f64),
        count(seen.dropped_windows as f64),
        seen.null_sd_percent
    );
    let others = format!(
        "other processes {:.1} % of the CPUs, stolen {:.1} %",
        seen.foreign_percent, seen.steal_percent
    );
    vec![("windows", windows), ("pauses", pauses(seen)), ("wakes", wakes(seen)), ("others", others)]
}

fn pauses(seen: &Credibility) -> String {
    let how = match seen.pause.as_str() {
        "task_work" => "at the return to the program".to_owned(),
        "spin_in_sample" => "inside the sample: at most 1 ms each".to_owned(),
        other => visible(other),
    };
    format!(
        "{how} · {:.1} % unpaid when windows ended, {} cut off, {} missed",
        seen.unpaid_percent,
        count(seen.capped as f64),
        count(seen.missed as f64)
    )
}

fn wakes(seen: &Credibility) -> String {
    let run = seen
        .run_between_wakes_us
        .map_or(String::new(), |us| format!(" · {} of work between them", latency(us)));
    let limit = match seen.load_bound {
        Some(true) => " · the target is the limit",
        Some(false) => " · the load is the limit, not the target",
        None => "",
    };
    format!(
        "{} a second by its own threads{run}, {} from outside{limit}",
        count(seen.inner_wakes),
        count(seen.outer_wakes)
    )
}

fn labelled(label: &str, text: &str, width: usize) -> String {
    let lines = table::wrapped(text, width, LABEL);
    format!("{label:<LABEL$}{}", &lines[LABEL..])
}

fn target(record: &Causal) -> String {
    let pid = record.target.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    format!(
        "{}{pid} · {:.1} s · {} · seed {}",
        visible(&record.target.name),
        record.duration_s,
        sites_words(record.sites.len()),
        record.seed
    )
}

fn sites_words(sites: usize) -> String {
    if sites == 1 { "1 site".to_owned() } else { format!("{sites} sites") }
}

fn progress(record: &Causal) -> String {
    let progress = &record.progress;
    let latency = progress.latency_us.map(|us| format!(" · {} from begin to end", latency(us)));
    let rate = match progress.per_second {
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => count(rate),
    };
    format!("{} · {rate} per second{}", visible(&progress.name), latency.unwrap_or_default())
}

/// What could be counted instead, as it would be asked for.
pub fn others(record: &Causal) -> Option<String> {
    let told = |one: &Candidate| {
        let share = one.share_percent.map(|share| format!(", on {share:.0} % of its stacks"));
        let rate = count(one.per_second);
        format!("{} ({rate} per second{})", visible(&one.name), share.unwrap_or_default())
    };
    let all: Vec<String> = record.progress.candidates.iter().map(told).collect();
    (!all.is_empty()).then(|| format!("--progress {}", all.join(", ")))
}

fn row(site: &Site, color: Color) -> Row {
    let share = site.share_percent.map_or(NONE.to_owned(), |share| format!("{share:.1}"));
    let slope = site.slope.map_or(NONE.to_owned(), |slope| {
        let half = (slope.interval[1] - slope.interval[0]).abs() / 2.0;
        format!("{:.2} ±{half:.2}", slope.per_percent).replace('-', "−")
    });
    let greatest = site.greatest().map_or(NONE.to_owned(), |point| {
        format!("{} at {} %", effect(point.effect_percent, point.interval_percent), point.speedup_percent)
    });
    let elsewhere = vec![
        String::new(),
        format!("samples {share} %"),
        format!("saved per % faster {slope}"),
        format!("saved {greatest}"),
    ];
    Row {
        cells: vec![visible(&site.name), share, slope, greatest],
        elsewhere,
        end: word(site.verdict).to_owned(),
        end_printed: painted(site.verdict, color),
        why: if site.verdict == Verdict::Hurts { "contention".to_owned() } else { String::new() },
        notes: notes(site),
    }
}

/// The reason, and the lower levels.
fn notes(site: &Site) -> Vec<String> {
    let greatest = site.greatest().map(|point| point.speedup_percent);
    let lower = site.points.iter().filter(|point| Some(point.speedup_percent) != greatest);
    let level = |point: &Point| {
        format!(
            "{} % faster saves {}",
            point.speedup_percent,
            effect(point.effect_percent, point.interval_percent)
        )
    };
    [visible(&site.reason)].into_iter().chain(lower.map(level)).collect()
}

/// The verdict, short enough for a narrow terminal.
fn word(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Hurts { "hurts" } else { verdict.words() }
}

fn painted(verdict: Verdict, color: Color) -> String {
    let sgr = match verdict {
        Verdict::Helps => 32,
        Verdict::Hurts => 31,
        Verdict::NotMeasurable => 33,
        Verdict::NoEffect => return word(verdict).to_owned(),
    };
    match color {
        Color::Plain => word(verdict).to_owned(),
        Color::Ansi => format!("\u{1b}[{sgr}m{}\u{1b}[0m", word(verdict)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::causal::sample;

    const STANDING: Standing<'static> = Standing {
        site: "render::page",
        round: 7,
        effect: Some((8.1, 0.9)),
        done: (2, 8),
        left: Duration::from_secs(31),
    };

    #[test]
    fn progress_is_one_line_that_says_where_how_far_and_how_long() {
        assert_eq!(STANDING.line(80), "render::page  round 7  saves +8.1 % ±0.9  2 of 8 done  (0:31 left)");
        for width in 0..80 {
            assert!(STANDING.line(width).chars().count() <= width);
        }
    }

    #[test]
    fn each_site_has_its_effect_its_interval_its_verdict_and_its_reason() {
        let text = causal(&sample(1), 120, Color::Plain);
        let line =
            text.lines().find(|line| line.trim_start().starts_with("render::page")).unwrap_or_default();
        for owed in ["48.2", "0.41 ±0.02", "+20.5 % ±0.9 at 50 %", "helps"] {
            assert!(line.contains(owed), "{owed}: {text}");
        }
        for owed in [
            "hurts: contention",
            "less than five pauses",
            "10 % faster saves +4.1 % ±0.9",
            "attached without delays: +1.8 % ±1.4",
            "of all CPUs: samples 0.24 %",
            "11.8 % of the time was inserted",
            "the target is the limit",
            "parse_head: below 2 % of the samples",
        ] {
            let found = text.split_whitespace().collect::<Vec<_>>().join(" ").contains(owed);
            assert!(found, "{owed}: {text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_escapes_are_shown() {
        let mut record = sample(2);
        record.sites[0].name = "evil\u{1b}[2J".into();
        for width in [40, 60, 100] {
            let text = causal(&record, width, Color::Plain);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(!text.contains('\u{1b}'), "{text}");
        }
    }

    #[test]
    fn a_record_without_anything_is_still_told() {
        assert!(causal(&Causal::default(), 80, Color::Ansi).contains("0 sites"));
    }
}
