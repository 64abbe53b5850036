//! How far a causal profile may be believed, and what it cost: of all of it, and of each site's own windows.

use dyno_record::causal::{Causal, Credibility, OverheadPart, Site};

use crate::number::{count, effect, latency, micros};
use crate::view::block::{Block, Fact, OnPage, OnTerminal, Section};
use crate::view::table::{self, Column, Table, figure, known, words};
use crate::view::words::paragraph;

/// Costs, then the figures that say how far the rest may be believed.
pub(super) fn section(record: &Causal) -> Option<Section> {
    let belief = belief(&record.credibility).into_iter().chain(control(record));
    let facts: Vec<Fact> = cost(record).into_iter().chain(belief).collect();
    let none = facts.is_empty();
    let place = (OnPage::Beside, OnTerminal::Below);
    let heading = "How far it may be believed, and what it cost";
    (!none).then(|| Section::new("belief", heading, place, vec![Block::Facts(facts)]))
}

/// What watching and delaying cost.
fn cost(record: &Causal) -> Option<Fact> {
    let cost = &record.overhead;
    let attached = cost.interval_percent.map(|interval| match is_told(interval) {
        true => {
            format!("attached without delays: {} of a visit's time", effect(cost.attached_percent, interval))
        }
        false => "what being attached costs is less than the windows differ by".to_owned(),
    });
    let delayed = (cost.inserted_percent > 0.0)
        .then(|| format!("with delays: {:.1} % of the time was inserted, by design", cost.inserted_percent));
    let words: Vec<String> = attached.into_iter().chain(hooks(&cost.parts)).chain(delayed).collect();
    (!words.is_empty()).then(|| Fact::new("cost", words.join(" · ")))
}

/// An interval of more points to each side says nothing of a cost of some points.
const COST_HALF_WIDTH_MAX: f64 = 10.0;

fn is_told([low, high]: [f64; 2]) -> bool {
    (high - low).abs() / 2.0 <= COST_HALF_WIDTH_MAX
}

/// What the programs in the kernel took.
fn hooks(parts: &[OverheadPart]) -> Option<String> {
    let parts: Vec<String> =
        parts.iter().map(|part| format!("{} {:.2} %", part.name, part.percent)).collect();
    (!parts.is_empty()).then(|| format!("its programs in the kernel, of all CPUs: {}", parts.join(", ")))
}

/// Pauses for all threads alike, while nothing was faster.
fn control(record: &Causal) -> Option<Fact> {
    let control = record.control?;
    // Of what was inserted, in points of the time.
    let [low, high] = control.interval_percent.map(|part| part * control.inserted_percent / 100.0);
    let words = format!(
        "pauses of {:.0} % of the time for all threads alike made visits {:.0} % rarer · as a speed-up that would look like {low:+.1} to {high:+.1} % saved, where 0 is right",
        control.inserted_percent, control.fell_percent
    );
    Some(Fact::new("control", words))
}

fn belief(seen: &Credibility) -> Vec<Fact> {
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
    let all = [("windows", windows), ("pauses", pauses(seen)), ("wakes", wakes(seen)), ("others", others)];
    all.into_iter().map(|(label, words)| Fact::new(label, words)).collect()
}

fn pauses(seen: &Credibility) -> String {
    let how = match seen.pause.as_str() {
        "task_work" => "at the return to the program",
        "spin_in_sample" => "inside the sample: at most 1 ms each",
        other => other,
    };
    format!(
        "{how} · {:.1} % unpaid when windows ended, {} cut off, {} missed",
        seen.unpaid_percent,
        count(seen.capped as f64),
        count(seen.missed as f64)
    )
}

/// Share of the samples in loops that wait, percent, from which on it is told.
const SPINNING_TOLD: f64 = 1.0;

fn wakes(seen: &Credibility) -> String {
    // Of what happens less than once a second there is nothing between two of them.
    let often = seen.run_between_wakes_us.filter(|_| seen.inner_wakes >= 1.0);
    let run = often.map(|us| format!(" · {} of work between them", latency(us)));
    let between =
        seen.run_between_spins_us.map(|us| format!(", {} of work between two of them", latency(us)));
    let spins = (seen.spinning_percent >= SPINNING_TOLD).then(|| {
        format!(
            " · {:.0} % of its samples wait in loops{}",
            seen.spinning_percent,
            between.unwrap_or_default()
        )
    });
    let limit = match seen.load_bound {
        Some(true) => " · the target is the limit",
        Some(false) => " · what wakes it from outside is the limit, not the target",
        None => "",
    };
    format!(
        "{} a second by its own threads{}, {} from outside{}{limit}",
        count(seen.inner_wakes),
        run.unwrap_or_default(),
        count(seen.outer_wakes),
        spins.unwrap_or_default()
    )
}

const COLUMNS: [Column; 9] = [
    Column::words("site", 0),
    Column::page("windows"),
    Column::page("set aside"),
    Column::page("others' CPU %"),
    Column::page("unpaid %"),
    Column::page("cut off"),
    Column::page("missed"),
    Column::page("run between wakes µs"),
    Column::page("noise %"),
];

const NOTE: &str = "Others' CPU: windows beside much of it are set aside. Unpaid: pauses still due when a window ended. Cut off and missed: pauses that were too long, or could not be made. \
    Run between wakes: where threads hand work to each other after less than five pauses, the method is biased. Noise: one window without a speed-up, one standard deviation.";

/// The same figures of each site.
pub(super) fn of_each(record: &Causal) -> Option<Section> {
    let rows: Vec<_> = record.sites.iter().map(row).collect();
    let none = rows.is_empty();
    let table = Table::new("Each site's own windows", &COLUMNS, rows);
    let blocks = vec![Block::Table(table), paragraph(NOTE)];
    (!none).then(|| Section::page("windows", "How far each site may be believed", OnPage::Body, blocks))
}

fn row(site: &Site) -> table::Row {
    let own = &site.credibility;
    let tenth = |value: f64| known(value.is_finite().then_some(value), |value| format!("{value:.1}"));
    let whole = |value: f64| figure(count(value), value);
    let cells = vec![
        words(&site.name),
        whole(own.windows as f64),
        whole(own.dropped_windows as f64),
        tenth(own.foreign_percent),
        tenth(own.unpaid_percent),
        whole(own.capped as f64),
        whole(own.missed as f64),
        known(own.run_between_wakes_us, micros),
        tenth(site.nulls.sd_percent),
    ];
    cells.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::causal::{Control, Overhead};

    /// Planted faults: of no wakes there is work between them; an interval of ±42 points stands for a cost; the control's
    /// figures are parts of parts.
    #[test]
    fn what_says_nothing_is_left_out_and_the_control_is_told_in_points() {
        let seen = |inner_wakes| Credibility {
            windows: 10,
            inner_wakes,
            run_between_wakes_us: Some(2e6),
            ..Credibility::default()
        };
        assert!(!wakes(&seen(0.2)).contains("between") && wakes(&seen(500.0)).contains("of work between"));
        let spins = Credibility { spinning_percent: 29.0, run_between_spins_us: Some(2_500.0), ..seen(0.0) };
        assert!(wakes(&spins).contains("29 % of its samples wait in loops, 2.50 ms of work between"));
        let of = |half: f64| {
            let overhead = Overhead {
                attached_percent: 3.0,
                interval_percent: Some([3.0 - half, 3.0 + half]),
                ..Overhead::default()
            };
            format!("{:?}", cost(&Causal { overhead, ..Causal::default() }))
        };
        assert!(of(4.0).contains("±4.0") && !of(15.0).contains('±'));
        let control = Control {
            inserted_percent: 25.0,
            fell_percent: 25.0,
            interval_percent: [-12.0, 20.0],
            ..Control::default()
        };
        let told = format!("{:?}", super::control(&Causal { control: Some(control), ..Causal::default() }));
        assert!(told.contains("-3.0 to +5.0 % saved"), "{told}");
    }
}
