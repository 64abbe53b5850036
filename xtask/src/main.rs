//! The task runner: everything that is done to this repository by machine, started as `cargo xtask VERB`.
//!
//! People and `.ci/run` call it. A verb is a file; this one reads the first word, prints errors and exits. Tasks never
//! change git's state and write nothing outside the target folder but what they say they write.

mod bench;
mod beside;
mod book;
mod budget;
mod ci;
mod client;
mod command;
mod flags;
mod fuzz;
mod generate;
mod go;
mod hold;
mod install;
mod limit;
mod mutants;
mod netlab;
mod packages;
mod pictures;
mod repo;
mod rights;
mod server;
mod shapes;
mod simulate;
mod slow;
mod soak;
mod strangers;
mod test;
mod tidy;
mod times;
mod trouble;
mod watched;

use std::process::ExitCode;

use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

const HELP: &str = "\
Everything that is done to this repository by machine.

usage: cargo xtask VERB

  needs [--yes]     installs what the tests need, asking first
  test [--yes]      the same, and runs all of them
  ci                fmt, tidy, clippy, scripts, test, the manual, budget: what has to hold before a merge
  tidy              the rules of the project that a compiler does not know
  budget [--write]  instructions, system calls and allocations per request, of five shapes of requests, against
                    docs/budgets.md
  bench peers       server CPU per request, in all, in user space and in the kernel, beside the floor and other
                    servers, interleaved: [--shape A,B] of wrk, techempower, browser, x16-equal, x16-different;
                    [--against FILE], another build of dyno
  bench content     server CPU per reply with files of 1 kB to 10 MB, beside the floor, nginx and h2o
  bench load        the generator's CPU per request beside other generators, interleaved
                    all: [--cycles N] [--slice 1s] [--seed N] [--only A,B] [--server-cpu N] [--load-cpu N]
                          [--history FILE]
  simulate [SEEDS]  the engine's core on simulated networks: FIRST..LAST, or one seed, printed in full
  fuzz [A,B]        what strangers send, changed by a fuzzer; of request, chunked, response, fields, server, imports,
                    plan: [--time 60s] each, [--keep] what reaches new code, [--input FILE] of a finding once more
  strangers         dyno diagnose on programs that nobody here wrote, against what is known of them: [--only A,B]
                     [--dyno FILE] [--write PAGE] [--keep FOLDER] [--list] [--yes]; a quarter of an hour, as root, not in ci
                     --causal: dyno causal instead, against twins of programs in which a part is really shorter; some 25 minutes
  slow              thousands of slow clients before dyno serve, by slowhttptest, and good ones beside them:
                    [--connections 4000] [--only heads,bodies,readers] [--dyno FILE] [--write PAGE]
  soak              good, bad and slow clients, changes, rotations, reloads and kills at once, and whether memory stays
                    flat: [--time 30m] [--dyno FILE]
  hold              a million idle connections before dyno serve, requests beside them, and what each costs:
                    [--connections 1007000] [--dyno FILE]; as root, two minutes and ten gigabytes
  mutants           whether tests see faults: a seeded sample of small changes, each tested alone; takes hours
                    [--seed N] [--sample 200] [--time 3h] [--only proto,judge,measure,engine,verdicts]
                    [--page docs/evidence/mutants.md] [--continue]
  pictures          the README's pictures, from records that are given or made: [--climb FILE] [--profile FILE]
  netlab up|down|plant
                    a laboratory of two network namespaces, as root: made and held, ended, given the planted host's
                    defects; it tells how to enter it
  install [--prefix ~/.local] [--uninstall]
                    the release build with its completions (bash, zsh, fish), manual pages and schemas; or away with them
  book              the pages of docs/ as a book with search, in target/book; builds mdBook where it is missing
  gen [--check] [--dyno PATH]
                    writes the manual page of the command line from its own help, or compares
  gen bpf [--check] builds the BPF objects that are committed beside their sources, or compares; needs clang 14

exit: 0 done, 1 the answer is no, 2 error";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(outcome) => outcome.exit_code(),
        Err(trouble) => {
            eprintln!("{trouble}");
            ExitCode::from(2)
        }
    }
}

fn run(mut words: Vec<String>) -> Result<Outcome, Trouble> {
    if words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h" || word == "help") {
        println!("{HELP}");
        return Ok(Outcome::Done);
    }
    let verb = words.remove(0);
    let repo = Repo::find()?;
    let flags = Flags::new(words);
    match verb.as_str() {
        "needs" => packages::run(flags),
        "test" => test::run(&repo, flags),
        "ci" => ci::run(&repo, flags),
        "tidy" => tidy::run(&repo, flags),
        "budget" => budget::run(&repo, flags),
        "book" => book::run(&repo, flags),
        "install" => install::run(&repo, flags),
        "hold" => hold::run(&repo, flags),
        "bench" => bench::run(&repo, flags),
        "fuzz" => fuzz::run(&repo, flags),
        "mutants" => mutants::run(&repo, flags),
        "pictures" => pictures::run(&repo, flags),
        "netlab" => netlab::run(&repo, flags),
        "simulate" => simulate::run(&repo, flags),
        "slow" => slow::run(&repo, flags),
        "soak" => soak::run(&repo, flags),
        "strangers" => strangers::run(&repo, flags),
        "gen" => generate::run(&repo, flags),
        _ => Err(Trouble::new(format!("there is no task \"{verb}\"")).remedy("cargo xtask --help")),
    }
}
