//! How long each stage of a task took, told at its end, so that the next one who wants it shorter sees where its time goes.
//!
//! `ci` tells it.

use std::time::{Duration, Instant};

/// The stages that are over.
pub(crate) struct Times {
    begun: Instant,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    elapsed: Duration,
    /// Time on a CPU, of all that was waited for meanwhile.
    cpu: Duration,
}

impl Times {
    /// From now on.
    pub(crate) fn begin() -> Times {
        Times { begun: Instant::now(), rows: Vec::new() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Does a stage.
    pub(crate) fn stage<T>(&mut self, name: &str, body: impl FnOnce() -> T) -> T {
        eprintln!("== {name} ({} s)", self.elapsed().as_secs());
        let (begun, cpu) = (Instant::now(), crate::limit::children_cpu());
        let value = body();
        let cpu = crate::limit::children_cpu().saturating_sub(cpu);
        self.rows.push(Row { name: name.to_owned(), elapsed: begun.elapsed(), cpu });
        value
    }

    /// A table of all of them.
    pub(crate) fn table(&self) -> String {
        let line = |name: &str, elapsed: Duration, cpu: Duration| {
            format!("{:>7.1} s {:>7.1} s of CPU  {name}\n", elapsed.as_secs_f64(), cpu.as_secs_f64())
        };
        let cpu = self.rows.iter().map(|row| row.cpu).sum();
        let rows: String = self.rows.iter().map(|row| line(&row.name, row.elapsed, row.cpu)).collect();
        rows + &line("in all", self.elapsed(), cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_fails_has_its_row_too() {
        let mut times = Times::begin();
        assert_eq!(times.stage("format", || Err::<(), _>("no")), Err("no"));
        times.stage("tidy", || ());
        let table = times.table();
        let names: Vec<&str> = table.lines().filter_map(|line| line.split("  ").last()).collect();
        assert_eq!(names, ["format", "tidy", "in all"]);
    }
}
