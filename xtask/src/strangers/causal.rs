//! `cargo xtask strangers --causal`: `dyno causal` on programs that nobody here wrote, against twins in which that part is really shorter.
//!
//! Each line of `xtask/strangers/twins.tsv` is a program and its twin. The program is asked of once; then both work in turns, in
//! pairs of windows, and what a unit takes is compared by their own counts. Not part of CI: it takes some 25 minutes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::trouble::{Outcome, Trouble};

use super::pairs::{self, Actual};
use super::predicted::{self, Predicted};
use super::program::{Program, Start};
use super::standing::{self, Met};
use super::twin_page as page;
use super::twins::Twin;

/// How long each is asked: less than the profiler takes if nothing is said, so that all of them take some 25 minutes.
const ASKED: &str = "30s";
/// Pairs of windows in turns.
const PAIRS: usize = 8;

/// Where things are.
pub(super) struct Places {
    pub(super) scripts: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) dyno: PathBuf,
    /// The page of evidence, where it is to be written.
    pub(super) write: Option<PathBuf>,
}

/// Runs all of them.
///
/// # Errors
/// When the page cannot be written.
pub(super) fn run(places: &Places, twins: Vec<Twin>) -> Result<Outcome, Trouble> {
    let mut all = Vec::new();
    for twin in twins {
        let met = meet(places, twin);
        println!("{}", page::line(&met));
        all.push(met);
    }
    println!("\n{}", page::sum(&all));
    if let Some(path) = &places.write {
        page::write(path, &page::page(&all, ASKED))?;
    }
    Ok(Outcome::done_if(|| standing::holds(&all)))
}

/// One program: predicted, and really shortened.
fn meet(places: &Places, twin: Twin) -> Met {
    let (predicted, actual) =
        match Program::start(&places.scripts, &places.scratch, &start(&twin, 0, &twin.name)) {
            Err(trouble) => (Err(trouble), None),
            Ok(program) => {
                let predicted = predicted::ask(&places.dyno, ASKED, &program, &twin);
                let actual = predicted.is_ok().then(|| really(places, &twin, &program));
                (predicted, actual)
            }
        };
    told(twin, predicted, actual)
}

fn told(twin: Twin, predicted: Result<Predicted, Trouble>, actual: Option<Result<Actual, Trouble>>) -> Met {
    let trouble = predicted.as_ref().err().or(actual.as_ref().and_then(|actual| actual.as_ref().err()));
    let trouble = trouble.map(ToString::to_string);
    Met { twin, predicted: predicted.ok(), actual: actual.and_then(Result::ok), trouble }
}

fn really(places: &Places, twin: &Twin, program: &Program) -> Result<Actual, Trouble> {
    program.pause();
    let name = format!("{}-twin", twin.name);
    let other = Program::start(&places.scripts, &places.scratch, &start(twin, 1, &name))?;
    pairs::measure([program, &other], PAIRS, Duration::from_secs_f64(twin.window_s))
}

fn start<'a>(twin: &'a Twin, variant: usize, name: &'a str) -> Start<'a> {
    Start { name, script: &twin.script, variant: &twin.variants[variant] }
}

/// One line for each, for `--list`.
pub(super) fn list(twins: &[Twin]) {
    for twin in twins {
        println!("{:<18} {:<11} {:<26} {}", twin.name, twin.kind, twin.expected(), twin.known_by);
    }
}

/// Those whose names have one of these words in them.
///
/// # Errors
/// When the table cannot be read.
pub(super) fn chosen(scripts: &Path, only: Option<&str>) -> Result<Vec<Twin>, Trouble> {
    let mut twins = super::twins::read(&scripts.join("twins.tsv"))?;
    twins.retain(|twin| only.is_none_or(|only| twin.is_named(only)));
    Ok(twins)
}
