//! `cargo xtask bench peers`: server CPU per request of dyno, its floor, its naive start, another build of it, and
//! servers of other people, with each shape of requests.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::arms::{Arm, Stable, check};
use super::options::{Contest, Options};
use super::series::{Part, Series, interleaved};
use super::slice::{dyno_load, of_server};
use super::{history, table};
use crate::repo::Repo;
use crate::shapes::Shape;
use crate::trouble::{Outcome, Trouble};

/// Connections of every load: enough that a turn of a server's loop answers several.
const CONNECTIONS: usize = 64;

/// What each arm's CPU is set in relation to, where it was measured.
const YARDSTICKS: [&str; 3] = ["floor", "dyno", "against"];

/// A shape, with what it takes to measure it.
struct Setup<'c> {
    shape: &'c Shape,
    /// The batch, as the generator reads it.
    requests: PathBuf,
    floor: Arm,
}

/// Runs the bench.
pub(crate) fn run(repo: &Repo, options: &Options, contest: &Contest) -> Result<Outcome, Trouble> {
    let dyno = repo.release_dyno()?;
    let stable = Stable::new(repo, options)?;
    let model = stable.dyno(&dyno, "dyno", &[])?;
    let setup = |shape| Setup::new(&stable, &dyno, &model, shape);
    let setups: Vec<Setup<'_>> = contest.shapes.iter().map(setup).collect::<Result<_, _>>()?;
    let arms = arms(options, contest, &stable, &dyno, model)?;
    let mut results = Vec::new();
    for setup in &setups {
        let all: Vec<&Arm> = std::iter::once(&setup.floor).chain(&arms).collect();
        check(&all, setup.shape)?;
        let measured =
            measure(options, &all, &|arm| of_server(setup.generator(&dyno, options, arm), arm.server.pid()))?;
        print(setup.shape, options, &measured);
        results.push((setup.shape.name.to_owned(), measured));
    }
    history::append(repo, options, "peers", &results)?;
    Ok(naive_is_ordinary(&results[0].1))
}

/// All servers but the floors.
fn arms(
    options: &Options,
    contest: &Contest,
    stable: &Stable<'_>,
    dyno: &Path,
    model: Arm,
) -> Result<Vec<Arm>, Trouble> {
    let mut arms = vec![model];
    if options.wants("dyno-again") {
        // The same program twice: what differs between them is what this run cannot see.
        arms.push(stable.dyno(dyno, "dyno-again", &[])?);
    }
    if let Some(other) = &contest.against {
        arms.push(stable.dyno(other, "against", &[])?);
    }
    if options.wants("naive") {
        arms.push(stable.naive(dyno)?);
    }
    arms.extend(stable.peers()?);
    Ok(arms)
}

impl<'c> Setup<'c> {
    fn new(stable: &Stable<'_>, dyno: &Path, model: &Arm, shape: &'c Shape) -> Result<Setup<'c>, Trouble> {
        let requests = stable.file(&format!("{}.requests", shape.name), shape.batch().as_bytes())?;
        Ok(Setup { shape, requests, floor: stable.floor(dyno, model, shape)? })
    }

    /// The generator for a server: the batch again and again, every answer checked to its last byte.
    fn generator(&self, dyno: &Path, options: &Options, arm: &Arm) -> Command {
        let shape = self.shape;
        let mut generator = dyno_load(dyno, options, &arm.server, shape.path, CONNECTIONS);
        generator.arg("--requests").arg(&self.requests).args(["--pipeline", &shape.pipeline().to_string()]);
        generator.args(["--expect", "status=200", "--expect", &format!("body={}", shape.body)]);
        generator
    }
}

fn print(shape: &Shape, options: &Options, measured: &[Series]) {
    println!(
        "\n{}: {} of {} bytes at a time on {CONNECTIONS} connections, {} cycles of {:?}, 95 % intervals",
        shape.name,
        shape.pipeline(),
        shape.request_bytes(),
        options.cycles,
        options.slice
    );
    for part in Part::ALL {
        table::lines(measured, &YARDSTICKS, part).iter().for_each(|line| println!("{line}"));
    }
}

fn measure(
    options: &Options,
    arms: &[&Arm],
    slice: &dyn Fn(&Arm) -> Result<super::series::Slice, Trouble>,
) -> Result<Vec<Series>, Trouble> {
    // Each shape has a floor of its own; in its table there is only one.
    let name =
        |arm: &&Arm| if arm.name.starts_with("floor-") { "floor".to_owned() } else { arm.name.clone() };
    let names: Vec<String> = arms.iter().map(name).collect();
    interleaved(&names, options.cycles, options.seed, &mut |at| slice(arms[at]))
}

/// The start of a climb must be what an ordinary first version does, or its gain flatters: its cost lies between
/// hyper's and that of Go's net/http. Looked at with the first shape that was measured.
fn naive_is_ordinary(all: &[Series]) -> Outcome {
    let cpu_us =
        |name: &str| all.iter().find(|series| series.name == name).map(|series| series.cpu_us(Part::Total));
    match (cpu_us("hyper"), cpu_us("naive"), cpu_us("go")) {
        (Some(hyper), Some(naive), Some(go)) if (hyper..=go).contains(&naive) => {
            println!(
                "\nnaive: {naive:.2} µs lies between hyper's {hyper:.2} and go's {go:.2}: an ordinary start"
            );
            Outcome::Done
        }
        (Some(hyper), Some(naive), Some(go)) => {
            println!(
                "\nnaive: {naive:.2} µs lies outside {hyper:.2} (hyper) … {go:.2} (go): no ordinary start"
            );
            Outcome::No
        }
        _ => {
            println!("\nnaive: not compared, because hyper, naive or go was not measured");
            Outcome::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Slice;

    #[test]
    fn the_naive_start_has_to_cost_what_ordinary_servers_cost() {
        let series = |(name, cpu_us): (&str, f64)| Series {
            name: name.to_owned(),
            slices: vec![Slice { cpu_us, user_us: None, per_s: 1.0 }],
        };
        let outcome =
            |naive: f64| naive_is_ordinary(&[("hyper", 8.0), ("naive", naive), ("go", 17.0)].map(series));
        assert_eq!(outcome(13.0), Outcome::Done);
        assert_eq!(outcome(7.0), Outcome::No);
        assert_eq!(outcome(20.0), Outcome::No);
        assert_eq!(naive_is_ordinary(&[series(("naive", 1.0))]), Outcome::Done);
    }
}
