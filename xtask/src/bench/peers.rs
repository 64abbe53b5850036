//! `cargo xtask bench peers`: server CPU per request of dyno, its floor, its naive start, and servers of other people.

use super::arms::{Arm, Stable, check};
use super::series::{Series, interleaved};
use super::slice::{Load, dyno_load, of_server};
use super::{Options, history, table};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

/// What is asked, and the body that everybody has to give.
const LOADS: [(Load, &str); 2] = [
    (Load { name: "json", path: "/json", connections: 64, pipeline: 1 }, "{\"message\":\"Hello, World!\"}"),
    (Load { name: "plaintext x16", path: "/plaintext", connections: 64, pipeline: 16 }, "Hello, World!"),
];

/// Runs the bench.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<Outcome, Trouble> {
    let dyno = repo.release_dyno()?;
    let stable = Stable::new(repo, options)?;
    let model = stable.dyno(&dyno, "dyno", &[])?;
    let floors: Vec<Arm> =
        LOADS.iter().map(|(load, _)| stable.floor(&dyno, &model, load.path)).collect::<Result<_, _>>()?;
    let mut arms = vec![model];
    if options.wants("dyno-again") {
        // The same program twice: what differs between them is what this run cannot see.
        arms.push(stable.dyno(&dyno, "dyno-again", &[])?);
    }
    if options.wants("naive") {
        arms.push(stable.naive(&dyno)?);
    }
    arms.extend(stable.peers()?);
    let mut results = Vec::new();
    for ((load, body), floor) in LOADS.iter().zip(&floors) {
        let all: Vec<&Arm> = std::iter::once(floor).chain(&arms).collect();
        check(&all, load.path, body)?;
        let measured = measure(options, &all, &|arm| {
            of_server(dyno_load(&dyno, options, &arm.server, load), arm.server.pid())
        })?;
        println!(
            "\n{}, {} connections, {} cycles of {:?}, 95 % intervals",
            load.name, load.connections, options.cycles, options.slice
        );
        table::lines(&measured, &["floor", "dyno"]).iter().for_each(|line| println!("{line}"));
        results.push((load.name.to_owned(), measured));
    }
    history::append(repo, options, "peers", &results)?;
    Ok(naive_is_ordinary(&results[0].1))
}

fn measure(
    options: &Options,
    arms: &[&Arm],
    slice: &dyn Fn(&Arm) -> Result<super::series::Slice, Trouble>,
) -> Result<Vec<Series>, Trouble> {
    // Each load has a floor of its own; in its table there is only one.
    let name =
        |arm: &&Arm| if arm.name.starts_with("floor-") { "floor".to_owned() } else { arm.name.clone() };
    let names: Vec<String> = arms.iter().map(name).collect();
    interleaved(&names, options.cycles, options.seed, &mut |at| slice(arms[at]))
}

/// The start of a climb must be what an ordinary first version does, or its gain flatters: its cost lies between
/// hyper's and that of Go's net/http.
fn naive_is_ordinary(all: &[Series]) -> Outcome {
    let cpu_us = |name: &str| all.iter().find(|series| series.name == name).map(Series::cpu_us);
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
            slices: vec![Slice { cpu_us, per_s: 1.0 }],
        };
        let outcome =
            |naive: f64| naive_is_ordinary(&[("hyper", 8.0), ("naive", naive), ("go", 17.0)].map(series));
        assert_eq!(outcome(13.0), Outcome::Done);
        assert_eq!(outcome(7.0), Outcome::No);
        assert_eq!(outcome(20.0), Outcome::No);
        assert_eq!(naive_is_ordinary(&[series(("naive", 1.0))]), Outcome::Done);
    }
}
