//! The plan of `dyno climb` without a plan: `dyno serve` from an ordinary first version upwards.

use crate::load::LoadSpec;
use crate::plan::{Launch, Plan};
use crate::rung::{Step, Surroundings, steps};

/// The built-in ladder of `dyno serve`, from an ordinary first version upwards.
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
    Plan { name, launch, load, dials, rungs, memory_max_bytes: None, headline: Some("one-send".into()) }
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
}
