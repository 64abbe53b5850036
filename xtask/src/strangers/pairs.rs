//! A program against its twin, in pairs of windows in turns: while one works the other is stopped. What is compared is wall
//! time per unit, by the count that the program or its client keeps. The strangers' task calls this.

use std::time::{Duration, Instant};

use dyno_measure::estimate::compare_paired;

use crate::command::output;
use crate::trouble::Trouble;

use super::limits;
use super::program::Program;

/// Of 95 %.
const ALPHA: f64 = 0.05;
/// A program that was stopped finds its pace, before it is counted.
const SETTLE: Duration = Duration::from_millis(200);
/// Fewer units in a window than this are too coarse to compare.
const UNITS_MIN: f64 = 10.0;

/// What the twin really saves per unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Actual {
    /// In percent, with its interval.
    pub(crate) saved: f64,
    pub(crate) interval: [f64; 2],
    pub(crate) pairs: usize,
    /// Units that the program as it is does in a second.
    pub(crate) per_s: f64,
}

/// Measures both in turns.
///
/// # Errors
/// When one of them does not work, or cannot be counted.
pub(crate) fn measure(both: [&Program; 2], pairs: usize, window: Duration) -> Result<Actual, Trouble> {
    both.iter().for_each(|program| program.pause());
    let mut periods = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        // Each is the first one in half of the pairs.
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            periods[side].push(period(both[side], window)?);
        }
    }
    compared(&periods[0], &periods[1]).ok_or_else(|| Trouble::new("too few pairs"))
}

/// The saving of the second list of periods against the first.
fn compared(program: &[f64], twin: &[f64]) -> Option<Actual> {
    let estimate = compare_paired(program, twin, ALPHA)?;
    let [low, high] = estimate.interval_percent();
    let mean = program.iter().sum::<f64>() / program.len() as f64;
    Some(Actual {
        saved: -estimate.percent(),
        interval: [-high, -low],
        pairs: program.len(),
        per_s: 1.0 / mean,
    })
}

/// Seconds per unit while it works for so long.
fn period(program: &Program, window: Duration) -> Result<f64, Trouble> {
    program.go_on();
    std::thread::sleep(SETTLE);
    let (first, begun) = count(program)?;
    std::thread::sleep(window);
    let (last, ended) = count(program)?;
    program.pause();
    let units = last - first;
    if units < UNITS_MIN {
        return Err(Trouble::new(format!("{units} units in {window:?}: too few to compare")));
    }
    Ok((ended - begun).as_secs_f64() / units)
}

/// The count and when it was read: in the middle of reading it.
fn count(program: &Program) -> Result<(f64, Instant), Trouble> {
    let words = program.said("count").next().ok_or_else(|| Trouble::new("the script says no count"))?;
    let begun = Instant::now();
    let text = output(&mut limits::counting(words))?;
    let read = begun + begun.elapsed() / 2;
    let count =
        text.trim().parse().map_err(Trouble::cannot(format!("read the count \"{}\"", text.trim())))?;
    Ok((count, read))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_twin_that_takes_three_quarters_of_the_time_saves_a_quarter_whatever_the_machine_does_meanwhile() {
        let program: Vec<f64> = (0..8).map(|at| 0.01 * (1.0 + 0.1 * f64::from(at))).collect();
        let twin: Vec<f64> = program
            .iter()
            .enumerate()
            .map(|(at, period)| period * (0.75 + 0.001 * (at % 2) as f64))
            .collect();
        let actual = compared(&program, &twin).unwrap();
        assert!((actual.saved - 24.95).abs() < 0.05, "{actual:?}");
        assert!(actual.interval[0] < 24.95 && actual.interval[1] > 24.95, "{actual:?}");
        assert!(actual.interval[1] - actual.interval[0] < 0.3, "{actual:?}");
        let back = compared(&twin, &program).unwrap();
        assert!(back.saved < -33.0 && back.interval[0] < back.interval[1], "{back:?}");
    }
}
