//! `cargo xtask bench load`: the CPU per request of `dyno load` itself, beside wrk and the least client there can be.
//!
//! All drive the same floor server, one at a time on the load CPU. CPU includes the start and the connecting of each.

use std::path::Path;
use std::process::Command;

use super::arms::{Arm, Stable, built_in_c};
use super::options::Options;
use super::series::{Part, Slice, interleaved};
use super::slice::{dyno_load, measured, number, record, without_errors};
use super::{history, table};
use crate::command::{command, find_program};
use crate::repo::Repo;
use crate::shapes;
use crate::trouble::{Outcome, Trouble};

/// What is asked: each generator makes the same bare GET of it.
const PATH: &str = "/json";

/// Connections of each load.
const CONNECTIONS: [usize; 2] = [64, 256];

/// How a generator tells its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// In a JSON record, as `requests`.
    Json,
    /// As wrk does: `12345 requests in 1.00s`.
    Words,
}

struct Generator {
    name: &'static str,
    tells: Tells,
}

/// Runs the bench.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<Outcome, Trouble> {
    if options.slice.subsec_nanos() != 0 {
        return Err(Trouble::new("a slice of this bench is whole seconds").likely("wrk takes no others"));
    }
    let dyno = repo.release_dyno()?;
    let minimal = built_in_c(repo, "bench/minimal/client.c")?;
    let stable = Stable::new(repo, options)?;
    let model = stable.dyno(&dyno, "dyno", &[])?;
    // Its request is a digit of a port shorter than theirs: each is still one.
    let bare = shapes::named("wrk")?.swap_remove(0);
    let floor = stable.floor(&dyno, &model, &bare)?;
    model.server.stop()?;
    let generators = generators(options);
    let mut results = Vec::new();
    for connections in CONNECTIONS {
        let names: Vec<String> = generators.iter().map(|generator| generator.name.to_owned()).collect();
        let all = interleaved(&names, options.cycles, options.seed, &mut |at| {
            let generator = &generators[at];
            let run = match generator.name {
                "minimal" => minimal_run(&minimal, options, &floor, connections),
                "wrk" => wrk_run(options, &floor, connections),
                _ => dyno_load(&dyno, options, &floor.server, PATH, connections),
            };
            slice(generator, &run, options)
        })?;
        let name = format!("{connections} connections");
        println!(
            "\n{name}, {} cycles of {:?}, 95 % intervals; the generator's own CPU",
            options.cycles, options.slice
        );
        table::lines(&all, &["minimal", "wrk"], Part::Total).iter().for_each(|line| println!("{line}"));
        results.push((name, all));
    }
    history::append(repo, options, "load", &results)?;
    Ok(Outcome::Done)
}

fn generators(options: &Options) -> Vec<Generator> {
    let all = [
        Generator { name: "dyno", tells: Tells::Json },
        Generator { name: "minimal", tells: Tells::Json },
        Generator { name: "wrk", tells: Tells::Words },
    ];
    let wanted = all.into_iter().filter(|generator| options.wants(generator.name));
    wanted.filter(|generator| generator.name != "wrk" || wrk_is_there()).collect()
}

fn wrk_is_there() -> bool {
    let there = find_program("wrk").is_some();
    if !there {
        eprintln!("not measured: wrk is not installed (cargo xtask test)");
    }
    there
}

fn minimal_run(program: &Path, options: &Options, floor: &Arm, connections: usize) -> Command {
    let mut run = command([program.to_string_lossy()]);
    let numbers = [connections.to_string(), options.slice.as_millis().to_string()];
    run.arg(floor.server.addr().port().to_string()).arg(PATH).args(numbers);
    run
}

fn wrk_run(options: &Options, floor: &Arm, connections: usize) -> Command {
    let seconds = format!("{}s", options.slice.as_secs());
    let mut run = command(["wrk", "-t", "1", "-c", &connections.to_string(), "-d", &seconds]);
    run.arg(format!("http://{}{}", floor.server.addr(), PATH));
    run
}

fn slice(generator: &Generator, run: &Command, options: &Options) -> Result<Slice, Trouble> {
    let measured = measured(run, options.load_cpu)?;
    let requests = requests(generator.tells, &measured.printed, run)?;
    let per_s = requests / options.slice.as_secs_f64();
    Ok(Slice { cpu_us: measured.cpu_us / requests, user_us: None, per_s })
}

fn requests(tells: Tells, printed: &str, run: &Command) -> Result<f64, Trouble> {
    match tells {
        Tells::Json => {
            let record = record(printed, run)?;
            without_errors(&record, run)?;
            number(&record, &["requests"], run)
        }
        Tells::Words => {
            let count = printed.lines().find_map(|line| line.trim().split_once(" requests in "));
            let count = count.and_then(|(count, _)| count.parse::<f64>().ok()).filter(|count| *count > 0.0);
            count.ok_or_else(|| Trouble::new("wrk does not say how many requests it made"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn requests_are_read_as_each_generator_tells_them() {
        let run = command(["x"]);
        let wrk = "Running 1s test\n  113342 requests in 1.10s, 16.21MB read\nRequests/sec: 103038\n";
        assert_eq!(requests(Tells::Words, wrk, &run).unwrap(), 113_342.0);
        assert_eq!(requests(Tells::Json, "{\"requests\":5}", &run).unwrap(), 5.0);
        assert!(requests(Tells::Words, "Running 1s test\n", &run).is_err());
        assert!(requests(Tells::Json, "{\"replies\":5}", &run).is_err());
    }
}
