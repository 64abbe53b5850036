//! A causal profile as Coz writes its own, for the viewers that read those.
//!
//! One line for each window: what was selected, by how much it was sped up, how long the window was without the inserted
//! delay, and how often the progress point was passed. Fields are `name=value`, apart by tabs. Where the effect is on
//! latency the file holds the rate of ends all the same: Coz's latency points are counts of what is on its way, which no
//! window keeps.

use std::fmt::Write;

use dyno_record::causal::{Causal, Site, Treatment, Window};

/// The whole file.
pub fn text(record: &Causal) -> String {
    let start_ns = record.started_unix_s.saturating_mul(1_000_000_000);
    let mut out = format!("startup\ttime={start_ns}\n");
    for site in &record.sites {
        let name = selected(site);
        let kept = site.windows.iter().filter(|window| window.dropped.is_none());
        kept.for_each(|window| push(&mut out, &name, &field(&record.progress.name), window));
        let samples: u64 = site.windows.iter().map(|window| window.hits).sum();
        let _ = writeln!(out, "samples\tlocation={name}\tcount={samples}");
    }
    let _ = writeln!(out, "runtime\ttime={}", (record.duration_s * 1e9) as u64);
    out
}

fn push(out: &mut String, name: &str, progress: &str, window: &Window) {
    let speedup = match window.treatment {
        Treatment::Nothing => 0,
        Treatment::SpeedUp(percent) => percent,
        // Coz knows nothing like it.
        Treatment::SlowDown(_) => return,
    };
    let Some(period_us) = window.period_us.filter(|period| period.is_finite() && *period > 0.0) else {
        return;
    };
    let _ = writeln!(
        out,
        "experiment\tselected={name}\tspeedup={:.2}\tduration={:.0}\tselected-samples={}",
        f64::from(speedup) / 100.0,
        period_us * 1e3 * window.visits as f64,
        window.hits
    );
    let _ = writeln!(out, "throughput-point\tname={progress}\tdelta={}", window.visits);
}

/// The place as `FILE:LINE`, which is all that its viewers know; else the name.
fn selected(site: &Site) -> String {
    match (&site.source.file, site.source.line) {
        (Some(file), Some(line)) => field(&format!("{file}:{line}")),
        _ => field(&site.name),
    }
}

/// A value cannot hold what separates fields.
fn field(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::causal::sample;

    #[test]
    fn each_window_is_an_experiment_with_its_visits_and_what_was_set_aside_is_not() {
        let mut record = sample(1);
        record.sites.truncate(1);
        record.sites[0].name = "a\tb".into();
        let text = text(&record);
        let windows = record.sites[0].windows.iter().filter(|window| window.dropped.is_none()).count();
        assert_eq!(text.matches("experiment\tselected=src/render.rs:42\tspeedup=").count(), windows);
        assert_eq!(text.matches("throughput-point\tname=syscall:write\tdelta=3000\n").count(), windows);
        assert!(
            text.starts_with("startup\ttime=") && text.trim_end().ends_with("runtime\ttime=64200000000"),
            "{text}"
        );
        let fields = text.lines().flat_map(|line| line.split('\t').skip(1));
        assert!(fields.into_iter().all(|field| field.contains('=')), "{text}");
    }

    /// Planted fault: nanoseconds of a start that no clock shows do not fit into 64 bits.
    #[test]
    fn a_start_that_cannot_be_is_the_last_there_is() {
        let mut record = sample(2);
        record.started_unix_s = u64::MAX;
        assert!(text(&record).starts_with(&format!("startup\ttime={}\n", u64::MAX)));
    }

    #[test]
    fn the_duration_is_the_time_without_delays() {
        let mut record = sample(2);
        record.sites.truncate(1);
        record.sites[0].windows.truncate(1);
        let window = &mut record.sites[0].windows[0];
        (window.period_us, window.visits, window.treatment) = (Some(2.0), 1_000, Treatment::SpeedUp(25));
        assert!(text(&record).contains("speedup=0.25\tduration=2000000\t"), "{}", text(&record));
    }
}
