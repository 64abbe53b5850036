//! `cargo xtask mutants`: whether the tests see faults. A seeded sample of small changes to the code, each built and
//! tested alone; what no test noticed is listed.
//!
//! People call it before a release and after tests were changed; it takes hours and is no part of `ci`. The changes are
//! cargo-mutants' own, which is installed below the target folder where it is missing. They are made in a copy of the
//! repository. Results go into a page of docs/evidence, anew after each change, so that a run that was cut short has its
//! page too. Beside the page stands a list of what was tried, which `--continue` goes on from.

mod report;
mod strata;
mod tool;
mod tried;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::flags::{self, Flags, Given};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use report::Report;
use strata::{Mutant, Queues, STRATA};
use tool::{Fate, Tests, Tool};

/// What the project asks of itself: four in five would be little for code that judges.
const CAUGHT_PERCENT_MIN: f64 = 85.0;

const SAMPLE: usize = 200;
const HOURS: u64 = 3;
const SEED: u64 = 1;
const PAGE: &str = "docs/evidence/mutants.md";

/// How one run is made.
struct Options {
    seed: u64,
    sample: usize,
    time: Duration,
    page: PathBuf,
    /// Only these strata, or all.
    only: Option<String>,
    /// What an earlier run tried counts, and is not tried again.
    goes_on: bool,
}

impl Options {
    fn read(repo: &Repo, mut flags: Flags) -> Result<Options, Trouble> {
        let options = Options {
            seed: flags.parsed("--seed")?.unwrap_or(SEED),
            sample: flags.parsed("--sample")?.unwrap_or(SAMPLE),
            time: flags.value("--time", flags::time)?.unwrap_or(Duration::from_secs(HOURS * 3600)),
            page: flags.parsed("--page")?.unwrap_or_else(|| repo.path(PAGE)),
            only: flags.parsed("--only")?,
            goes_on: flags.switch("--continue") == Given::Yes,
        };
        flags.finish()?;
        Ok(options)
    }

    /// The line that would repeat it.
    fn command(&self) -> String {
        let only = self.only.as_ref().map(|only| format!(" --only {only}")).unwrap_or_default();
        format!("cargo xtask mutants --seed {} --sample {}{only}", self.seed, self.sample)
    }
}

/// Runs the verb.
pub(crate) fn run(repo: &Repo, flags: Flags) -> Result<Outcome, Trouble> {
    let options = Options::read(repo, flags)?;
    let end = Instant::now() + options.time;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    if !STRATA.iter().any(|stratum| wanted(stratum.name)) {
        let names: Vec<&str> = STRATA.iter().map(|stratum| stratum.name).collect();
        return Err(Trouble::new("--only names no stratum").remedy(format!("one of {}", names.join(", "))));
    }
    let tool = Tool::provide(repo)?;
    let listed = tool.list()?;
    let mut queues = Queues::new(listed, options.seed, wanted);
    let mut report = Report::new(options.command(), &queues, tried::commit(repo)?);
    let list = options.page.with_extension("tsv");
    if options.goes_on {
        report.take(tried::read(&list)?);
    }
    let mut limits = BTreeMap::new();
    while let Some(mutant) = queues.next(options.sample, |name| report.counted(name)) {
        if report.knows(&mutant.name) {
            continue;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let fate = fate_of(&tool, &mutant, &mut limits, left)?;
        eprintln!("{:<9} {}", fate.word(), mutant.name);
        report.add(mutant, fate);
        report.write(&options.page)?;
        tried::write(&list, report.tried())?;
    }
    report.write(&options.page)?;
    println!("{}", report.headline());
    Ok(Outcome::done_if(|| report.percent().is_some_and(|caught| caught >= CAUGHT_PERCENT_MIN)))
}

/// Tries one: a package's own tests beside its code first, which take seconds, and all of its tests only where those saw
/// nothing. The first of each is preceded by the tests without any change, which say how long they take.
fn fate_of(
    tool: &Tool,
    mutant: &Mutant,
    limits: &mut BTreeMap<(String, Tests), Duration>,
    left: Duration,
) -> Result<Fate, Trouble> {
    for tests in [Tests::BesideTheCode, Tests::All] {
        let key = (mutant.package.clone(), tests);
        let limit = match limits.get(&key) {
            Some(limit) => *limit,
            None => {
                let limit = tool.limit_of(&mutant.package, tests, left)?;
                limits.insert(key, limit);
                limit
            }
        };
        let fate = tool.test(mutant, tests, limit)?;
        if fate != Fate::Missed {
            return Ok(fate);
        }
    }
    Ok(Fate::Missed)
}
