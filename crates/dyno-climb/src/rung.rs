//! The built-in ladder of `dyno serve`: a rung and its dial are one file in `rung/` and one line in [`steps`].
//!
//! Each rung moves one dial one step, and says what it claims, on whose word, at what risk, and how to see it. The words are
//! those of the server's flags; a test in the binary feeds each of them to the engine's own parser.

mod allocator;
mod batch;
mod borrowed_headers;
mod congestion;
mod cpu_steering;
mod date_cache;
mod edge;
mod log_off;
mod log_ring;
mod one_send;
mod outbox;
mod pin;
mod recv_send;
mod reuseport;
mod short_read;
mod spin;
mod step;
mod workers;

use crate::plan::{Launch, LoadSpec, Plan};
pub use crate::plan::{Needs, Rung};
use step::Step;
pub use step::Surroundings;

/// In the order in which they are climbed; dials stand on the command line in the order of their first rungs.
fn steps(surroundings: &Surroundings) -> Vec<Step> {
    let all: &[fn(&Surroundings) -> Step] = &[
        one_send::step,
        log_ring::step,
        log_off::step,
        recv_send::step,
        short_read::step,
        outbox::step,
        borrowed_headers::step,
        date_cache::step,
        edge::step,
        batch::step,
        congestion::step,
        allocator::step,
        spin::step,
        workers::step,
        reuseport::step,
        pin::step,
        cpu_steering::step,
    ];
    all.iter().map(|step| step(surroundings)).collect()
}

/// The built-in plan, from an ordinary first version upwards.
#[must_use]
pub fn built_in(surroundings: &Surroundings) -> Plan {
    let argv = ["{program}", "serve", "--listen", "127.0.0.1:{port}", "--control-fd", "{control}"];
    let mut argv: Vec<String> =
        argv.iter().map(|word| word.replace("{program}", &surroundings.program)).collect();
    argv.extend(["--log-file".into(), "{dir}/access.log".into()]);
    let launch = Launch { argv, warm_up_ms: 100, ready_ms: 10_000, control: true, ..Launch::default() };
    let load = LoadSpec { path: "/json".into(), ..LoadSpec::default() };
    let (mut dials, mut rungs) = (Vec::new(), Vec::new());
    for Step { dial, rung } in steps(surroundings) {
        dials.extend(dial);
        rungs.push(rung);
    }
    let name = "dyno serve, from --naive".into();
    Plan { name, launch, load, dials, rungs, headline: Some("one-send".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_plan_makes_sense_on_small_and_large_machines() {
        for server_cpus in [1, 2, 48] {
            let surroundings =
                Surroundings { program: "dyno".into(), server_cpus, ..Surroundings::default() };
            built_in(&surroundings).check().expect("the built-in plan");
        }
    }

    #[test]
    fn every_rung_says_what_it_claims_on_whose_word_and_at_what_risk() {
        for rung in built_in(&Surroundings { server_cpus: 2, ..Surroundings::default() }).rungs {
            for (what, text) in [("claim", &rung.claim), ("source", &rung.source), ("risk", &rung.risk)] {
                assert!(text.len() >= 4, "{}: {what} is \"{text}\"", rung.id);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_a_rung_of_the_plan() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rung");
        let files = std::fs::read_dir(folder).expect("the folder of the rungs").count();
        let rungs = built_in(&Surroundings::default()).rungs.len();
        assert_eq!(files, rungs + 1, "one file each, and step.rs");
    }
}
