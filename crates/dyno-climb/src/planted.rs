//! The plan of the planted host (`dyno specimen run planted-host`): a server that is fine, on a host that is not.
//!
//! Every dial starts where the defect is, and each rung takes one away. The clean host is the setting with all of them taken.

use dyno_measure::series::Metric;
use dyno_record::lab::{Count, Part, planted};

use crate::dial::{Dial, How, Setting, Value};
use crate::load::LoadSpec;
use crate::plan::{Launch, Plan};
use crate::proof::{Bound, Proof};
use crate::rung::Rung;

/// What is planted at the server, beside the network's parts.
const STACKED: &str = "3";
/// Where every dial stands on a clean host.
const CLEAN: &str = "clean";
const PLANTED: &str = "planted";

/// A part of the network with the proof that it is in force, and what keeps it clean.
fn of_part(part: Part) -> (&'static str, Count, Bound, &'static str) {
    match part {
        Part::Rules => (
            "300 rules before the established are accepted",
            Count::RulesPassed,
            Bound::Drops(50.0),
            "security: the rules refused addresses that never came",
        ),
        Part::Qdisc => (
            "a limiter at 40 Gbit/s, one lock for all queues",
            Count::Queued,
            Bound::Drops(0.5),
            "operations: nothing limits what is sent",
        ),
        // Packets that find the other CPU awake are not counted; of a burst of fifty requests one is sure to be.
        Part::Rps => (
            "packets are handed to the server's CPU",
            Count::HandedOver,
            Bound::Drops(0.005),
            "none where queues reach every CPU that serves",
        ),
        _ => (
            "ten sockets hear every packet",
            Count::Tapped,
            Bound::Drops(5.0),
            "operations: whoever captured sees nothing",
        ),
    }
}

fn value(name: &str, words: &[&str], text: &str) -> Value {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Value { name: name.into(), words, text: text.into() }
}

fn dial(name: &str, how: How, planted: Value, clean: Value) -> Dial {
    Dial { name: name.into(), how, values: vec![planted, clean], start: 0 }
}

fn rung(dial: &str, claim: &str, risk: &str, proof: Proof) -> Rung {
    Rung {
        id: format!("{dial}-{CLEAN}"),
        dial: dial.into(),
        to: CLEAN.into(),
        needs: Vec::new(),
        claim: format!("planted: {claim}"),
        source: "docs/ladder.md, the planted host".into(),
        risk: risk.into(),
        metric: Metric::SecondsPerRequest,
        only_named: false,
        load: None,
        server_cpus: 1,
        impossible: None,
        state: None,
        elsewhere: String::new(),
        proofs: vec![proof],
        in_place: false,
    }
}

/// The plan; `program` is this program, `server_mask` its servers' CPUs.
#[must_use]
pub fn planted_host(program: &str, server_mask: &str) -> Plan {
    let (mut dials, mut rungs) = (Vec::new(), Vec::new());
    for (part, text) in planted(server_mask) {
        let (claim, count, per_request, risk) = of_part(part);
        let values = [value(PLANTED, &[], &text), value(CLEAN, &[], part.fresh())];
        let [planted, clean] = values;
        dials.push(dial(part.name(), How::Lab { part }, planted, clean));
        rungs.push(rung(part.name(), claim, risk, Proof::Network { count, per_request }));
    }
    dials.push(dial("filters", How::Template, value(PLANTED, &[], STACKED), value(CLEAN, &[], "0")));
    let stacked = "three filters that look at arguments, one on top of the other";
    // On one thread alone they would be three: master, supervisor and worker pass them.
    let filters = Proof::Filters { count: Bound::Drops(6.0) };
    rungs.push(rung("filters", stacked, "security: what filters refuse is open", filters));
    let sync = value(PLANTED, &["--log", "sync", "--log-file", "{dir}/access.log"], "");
    dials.push(dial("log", How::Arg, sync, value(CLEAN, &["--log", "off"], "")));
    let names = ["write", "writev", "sendto", "sendmsg"].map(str::to_owned).to_vec();
    let writes = Proof::Syscalls { names, per_request: Bound::Drops(0.8) };
    rungs.push(rung("log", "a line is written for each reply", "gives up the access log", writes));
    Plan {
        name: "the planted host".into(),
        launch: launch(program),
        load: LoadSpec { path: "/json".into(), ..LoadSpec::default() },
        dials,
        rungs,
        memory_max_bytes: None,
        headline: None,
    }
}

fn launch(program: &str) -> Launch {
    let words = [
        program,
        "netlab",
        "under",
        "--filters",
        "{filters}",
        "--",
        program,
        "serve",
        "--listen",
        "{address}:{port}",
        "--workers",
        "1",
        "--control-fd",
        "{control}",
    ];
    let argv = words.map(str::to_owned).to_vec();
    Launch { argv, warm_up_ms: 100, ready_ms: 10_000, control: true, ..Launch::default() }
}

/// The clean host.
#[must_use]
pub fn clean(plan: &Plan) -> Setting {
    plan.dials.iter().fold(plan.start(), |setting, dial| setting.with(&dial.name, CLEAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_has_a_rung_that_takes_it_away_and_none_is_left_on_the_clean_host() {
        let plan = planted_host("dyno", "1");
        plan.check().expect("the plan of the planted host");
        assert_eq!(plan.dials.len(), plan.rungs.len());
        let clean = clean(&plan);
        for dial in &plan.dials {
            assert!(plan.rungs.iter().any(|rung| rung.dial == dial.name && clean.get(&dial.name) == rung.to));
        }
    }
}
