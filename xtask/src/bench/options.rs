//! How a bench is run: what its flags say.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::flags::Flags;
use crate::repo::Repo;
use crate::shapes::{self, Shape};
use crate::trouble::Trouble;

/// Slices per arm unless told otherwise: gives intervals of some 5 % on a shared machine.
const CYCLES: usize = 12;
/// Above this a run is not watched by anybody any more.
const CYCLES_MAX: usize = 10_000;
/// Long enough that starting and connecting are below one percent of it.
const SLICE: Duration = Duration::from_secs(1);

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// How a bench is run.
pub(crate) struct Options {
    pub(crate) cycles: usize,
    pub(crate) slice: Duration,
    pub(crate) seed: u64,
    /// Names of the arms wanted; empty means all.
    pub(crate) only: Vec<String>,
    pub(crate) server_cpu: usize,
    pub(crate) load_cpu: usize,
    pub(crate) history: PathBuf,
}

impl Options {
    pub(super) fn take(repo: &Repo, flags: &mut Flags) -> Result<Options, Trouble> {
        let duration = |text: &str| dyno_measure::units::parse_duration(text).ok();
        let list = |text: &str| Some(text.split(',').map(str::to_owned).collect());
        let cycles =
            flags.value("--cycles", |text| text.parse().ok().filter(|n| (1..=CYCLES_MAX).contains(n)))?;
        Ok(Options {
            cycles: cycles.unwrap_or(CYCLES),
            slice: flags.value("--slice", duration)?.unwrap_or(SLICE),
            seed: flags.parsed("--seed")?.unwrap_or_else(unix_s),
            only: flags.value("--only", list)?.unwrap_or_default(),
            server_cpu: flags.parsed("--server-cpu")?.unwrap_or(0),
            load_cpu: flags.parsed("--load-cpu")?.unwrap_or(1),
            history: flags.parsed("--history")?.unwrap_or_else(|| repo.path("bench/history.jsonl")),
        })
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

/// What `peers` alone is asked.
pub(crate) struct Contest {
    pub(crate) shapes: Vec<Shape>,
    /// Another build of dyno, measured beside this one.
    pub(crate) against: Option<PathBuf>,
}

impl Contest {
    pub(super) fn take(flags: &mut Flags) -> Result<Option<Contest>, Trouble> {
        let names = flags.parsed::<String>("--shape")?;
        let against = flags.parsed::<PathBuf>("--against")?;
        if let Some(path) = against.as_ref().filter(|path| !path.is_file()) {
            return Err(Trouble::new(format!("--against {}: there is no such file", path.display())));
        }
        let given = names.is_some() || against.is_some();
        let shapes = names.map_or_else(|| Ok(shapes::all()), |names| shapes::named(&names))?;
        Ok(given.then_some(Contest { shapes, against }))
    }
}

impl Default for Contest {
    fn default() -> Contest {
        Contest { shapes: shapes::all(), against: None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn contest(line: &str) -> Result<Option<Contest>, Trouble> {
        Contest::take(&mut Flags::new(line.split_whitespace().map(str::to_owned).collect()))
    }

    #[test]
    fn shapes_are_chosen_by_name_and_all_of_them_otherwise() {
        let names = |contest: Contest| contest.shapes.iter().map(|shape| shape.name).collect::<Vec<_>>();
        assert_eq!(names(contest("--shape browser,wrk").unwrap().unwrap()), ["browser", "wrk"]);
        assert!(contest("").unwrap().is_none());
        assert_eq!(names(Contest::default()).len(), 5);
        let refused = contest("--shape wrk,wrong").err().unwrap().to_string();
        assert!(refused.contains("\"wrong\"") && refused.contains("x16-different"), "{refused}");
    }

    #[test]
    fn a_build_to_measure_against_has_to_be_there() {
        assert!(contest("--against /nowhere/dyno").is_err());
        let own = std::env::current_exe().unwrap();
        let given = contest(&format!("--against {}", own.display())).unwrap().unwrap();
        assert_eq!((given.against, given.shapes.len()), (Some(own), 5));
    }
}
