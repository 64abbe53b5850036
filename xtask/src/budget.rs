//! `cargo xtask budget`: what a request costs in things that can be counted, against docs/budgets.md.
//!
//! A stopwatch on a shared machine cannot see one percent; counts can, and they are the same tomorrow. The engine's example
//! `demo`, which answers what `dyno serve` does by itself, runs under callgrind, answers N requests and then, started anew,
//! 2N; the difference over N is the request's own cost. Every shape of [`crate::shapes`] is counted, so that no shape pays
//! for another one's speed.
//! `ci` and people call it; with `--write` it puts what it measured into the table.

mod callgrind;
mod table;

use std::path::Path;

use crate::budget::callgrind::Counts;
use crate::flags::{Flags, Given};
use crate::repo::Repo;
use crate::shapes;
use crate::trouble::{Outcome, Trouble};
use table::Measured;

const PAGE: &str = "docs/budgets.md";

/// Requests of the shorter run: enough that what starting costs, which varies, is below one percent of the difference.
/// What goes by the clock (timers, the date) remains: instructions repeat to 1 or 2 %, the other counts to the hundredth.
const REQUESTS: u64 = 10_000;

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let write = flags.switch("--write");
    flags.finish()?;
    let page = repo.read(PAGE)?;
    let rows = table::rows(&page)?;
    let measured = measure(&repo.release_demo()?, &repo.scratch("budget")?)?;
    if write == Given::Yes {
        let updated = table::written(&page, &measured);
        std::fs::write(repo.path(PAGE), updated).map_err(Trouble::cannot(format!("write {PAGE}")))?;
    }
    let verdicts = table::verdicts(&rows, &measured);
    verdicts.iter().for_each(|verdict| println!("{verdict}"));
    Ok(Outcome::done_if(|| verdicts.iter().all(table::Verdict::holds)))
}

fn measure(server: &Path, folder: &Path) -> Result<Vec<Measured>, Trouble> {
    let mut all = Vec::new();
    for shape in shapes::all() {
        let name = shape.name;
        let (bytes, more) = (shape.request_bytes(), 2 * REQUESTS);
        eprintln!("budget: {name}, {REQUESTS} and {more} requests of {bytes} bytes under callgrind");
        let [once, twice] =
            both(|folder, requests| callgrind::serve(server, folder, &shape, requests), folder)?;
        // A worker's profile that is not there would leave every budget kept.
        if twice.instructions < once.instructions + REQUESTS {
            return Err(Trouble::new(format!("a request of {name} would cost less than one instruction"))
                .likely("the worker's profile is missing; see target/xtask/budget/*/said"));
        }
        all.extend(per_request(name, &once, &twice));
    }
    Ok(all)
}

/// The shorter run and the longer one beside each other, each in a folder of its own: one process is busy in each.
fn both(
    serve: impl Fn(&Path, u64) -> Result<Counts, Trouble> + Sync,
    folder: &Path,
) -> Result<[Counts; 2], Trouble> {
    let run = |name: &str, requests| {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        serve(&folder, requests)
    };
    std::thread::scope(|scope| {
        let once = scope.spawn(|| run("once", REQUESTS));
        let twice = run("twice", 2 * REQUESTS);
        Ok([once.join().expect("it panics nowhere")?, twice?])
    })
}

fn per_request(shape: &str, once: &Counts, twice: &Counts) -> [Measured; 3] {
    let per = |once: u64, twice: u64| (twice as f64 - once as f64) / REQUESTS as f64;
    [
        ("instructions", per(once.instructions, twice.instructions)),
        ("system-calls", per(once.system_calls, twice.system_calls)),
        ("allocations", per(once.allocations, twice.allocations)),
    ]
    .map(|(count, value)| Measured { name: format!("{shape}-{count}"), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault: one folder for both, where the profiles of one would be counted for the other.
    #[test]
    fn both_runs_have_a_folder_of_their_own_and_a_failure_of_one_is_told() {
        let folder = std::env::temp_dir().join(format!("dyno-budget-{}", std::process::id()));
        let counted = |folder: &Path, requests| {
            let name = folder.file_name().map_or(0, |name| name.len() as u64);
            Ok(Counts { instructions: requests, system_calls: name, allocations: 0 })
        };
        let both_counted =
            both(counted, &folder).map(|all| all.map(|one| (one.instructions, one.system_calls)));
        assert_eq!(both_counted, Ok([(REQUESTS, 4), (2 * REQUESTS, 5)]));
        let failing = |_: &Path, requests| match requests {
            REQUESTS => Err(Trouble::new("no profile")),
            _ => Ok(Counts::default()),
        };
        assert_eq!(both(failing, &folder), Err(Trouble::new("no profile")));
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn what_both_runs_share_is_no_cost_of_a_request() {
        let once = Counts { instructions: 1_000_000, system_calls: 300, allocations: 7_000 };
        let twice = Counts {
            instructions: 1_000_000 + 250 * REQUESTS,
            system_calls: 300 + 3 * REQUESTS,
            allocations: 7_000,
        };
        let values = per_request("wrk", &once, &twice).map(|measured| measured.value);
        assert_eq!(values, [250.0, 3.0, 0.0]);
    }
}
