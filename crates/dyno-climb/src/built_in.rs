//! The plan of `dyno climb` without a plan: `dyno serve` from an ordinary first version upwards.

use crate::load::LoadSpec;
use crate::plan::{Launch, Plan};
use crate::rung::{Step, Surroundings, steps};

/// The built-in ladder of `dyno serve`, from an ordinary first version upwards.
#[must_use]
pub fn built_in(surroundings: &Surroundings) -> Plan {
    let argv = ["{program}", "serve", "--listen", "{address}:{port}", "--control-fd", "{control}"];
    // In the laboratory the filters of a dial are put in front of the server, and its class is chosen.
    let under = ["{program}", "netlab", "under", "--filters", "{filters}", "--class", "{class}", "--"];
    let under = if surroundings.network.is_some() { &under[..] } else { &[] };
    let argv: Vec<String> =
        under.iter().chain(&argv).map(|word| word.replace("{program}", &surroundings.program)).collect();
    let launch = Launch { argv, warm_up_ms: 100, ready_ms: 10_000, control: true, ..Launch::default() };
    let load = LoadSpec { path: "/json".into(), ..LoadSpec::default() };
    let (mut dials, mut rungs) = (Vec::new(), Vec::new());
    for Step { dial, rung } in steps(surroundings) {
        dials.extend(dial);
        rungs.push(rung);
    }
    let network = if surroundings.network.is_some() { ", behind an ordinary host's network" } else { "" };
    let name = format!("dyno serve, from --naive{network}");
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
    fn in_the_laboratory_the_plan_has_a_network_and_elsewhere_none() {
        let network = Some(crate::rung::NetworkHere { server_mask: "1".into(), ..Default::default() });
        let plan = built_in(&Surroundings { server_cpus: 1, network, ..Surroundings::default() });
        plan.check().expect("the laboratory's plan");
        assert!(plan.lab_dial().is_some() && plan.loopback_text().is_none());
        assert_eq!(built_in(&Surroundings::default()).lab_dial(), None);
    }

    /// Planted fault: the file stands on the command line whatever the log is, and `serve` warns whoever applies it.
    #[test]
    fn a_setting_without_a_log_names_no_file_for_it() {
        let plan = built_in(&Surroundings::default());
        let names_file = |words: &[String]| words.iter().any(|word| word == "--log-file");
        for value in &plan.dial("log").values {
            assert_eq!(names_file(&value.words), value.name != "off", "{}", value.name);
        }
        assert!(!names_file(&plan.launch.argv));
    }

    #[test]
    fn every_rung_says_what_it_claims_on_whose_word_and_at_what_risk() {
        let network = Some(crate::rung::NetworkHere { server_mask: "1".into(), ..Default::default() });
        let here = Surroundings { server_cpus: 2, network, ..Surroundings::default() };
        for rung in built_in(&here).rungs {
            for (what, text) in [("claim", &rung.claim), ("source", &rung.source), ("risk", &rung.risk)] {
                assert!(text.len() >= 4, "{}: {what} is \"{text}\"", rung.id);
            }
        }
    }
}
