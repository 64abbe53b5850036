//! The planted host: audited clean and planted, climbed, compared with the clean one, and looked over for what was left.
//!
//! `dyno specimen run planted-host` calls it in a laboratory that the process has entered. Everything is planted there: the host
//! has none of it at any time.

use std::time::Duration;

use dyno_climb::climb::{ClimbError, Event, Options, climb};
use dyno_climb::dial::Setting;
use dyno_climb::meter::{ArmSpec, Length, Meter, Opening, Trouble};
use dyno_climb::plan::Plan;
use dyno_climb::planted::clean;
use dyno_diagnose::audit::audit;
use dyno_host::facts::{self, Wanted};
use dyno_host::lab::{Lab, MOVING};
use dyno_measure::Prng;
use dyno_measure::estimate::compare_paired;
use dyno_measure::stats::median;
use dyno_record::audit::Goal;
use dyno_record::climb::Climb;
use dyno_record::planted::{Found, PLANTED_SCHEMA, PlantedHost, Rates, Snapshot};

use crate::failure::chain;
use crate::launch::{Arm, World};

/// What the plants add to an audit: the rules three, as they are many, stand before the established, and have connections
/// tracked. A log line per reply is seen by its system calls only: the climb's proof finds it.
const EXPECTED: [&str; 7] =
    ["nf.linear", "nf.first", "nf.ct", "net.qdisc", "net.rps", "tap.packet", "app.seccomp"];
/// What they hide: with packets handed to the server's CPU each connection looks as if it had come in there.
const HIDDEN: [&str; 1] = ["app.locality"];
/// Checks of what moves by itself: neighbours and stolen time.
const LEFT_OUT: [&str; 2] = ["host.neigh", "host.steal"];
/// How long neighbours would be watched: they are left out.
const WATCH: Duration = Duration::from_millis(100);
/// Rounds of the comparison with the clean host: an interval of some percent.
const ROUNDS: usize = 20;

/// Runs it; what was reached is in the record also where it ended early.
///
/// # Errors
/// What ended it.
pub fn run(
    plan: &Plan,
    world: &mut World<'_>,
    options: &Options,
    record: Climb,
    watch: &mut dyn FnMut(&Event<'_>),
) -> (PlantedHost, Result<(), ClimbError>) {
    let mut host = PlantedHost { schema: PLANTED_SCHEMA.into(), climb: record, ..PlantedHost::default() };
    let outcome = in_order(plan, world, options, &mut host, watch);
    (host, outcome)
}

fn in_order(
    plan: &Plan,
    world: &mut World<'_>,
    options: &Options,
    host: &mut PlantedHost,
    watch: &mut dyn FnMut(&Event<'_>),
) -> Result<(), ClimbError> {
    let before = snapshot(world).map_err(ClimbError::Start)?;
    host.audit = audited(plan, world).map_err(ClimbError::Start)?;
    climb(plan, options, world, &mut host.climb, watch)?;
    let reached = host.climb.reached().map(|reached| setting_of(plan, &reached.final_setting));
    if let Some(reached) = reached {
        let rates = rates(plan, world, &reached, options.seed).map_err(ClimbError::Ended)?;
        host.rates = Some(rates);
    }
    lab(world).and_then(|lab| lab.clear().map_err(knob)).map_err(ClimbError::Ended)?;
    let after = snapshot(world).map_err(ClimbError::Ended)?;
    host.snapshot = compared(&before, &after);
    Ok(())
}

/// Findings on the clean host and on the planted one, each with its own server.
fn audited(plan: &Plan, world: &mut World<'_>) -> Result<Found, Trouble> {
    let before = findings(plan, world, clean(plan))?;
    let after = findings(plan, world, plan.start())?;
    let [expected, hidden, left_out] =
        [&EXPECTED[..], &HIDDEN, &LEFT_OUT].map(|ids| ids.iter().map(|id| (*id).to_owned()).collect());
    Ok(Found { before, after, expected, hidden, left_out })
}

fn findings(plan: &Plan, world: &mut World<'_>, setting: Setting) -> Result<Vec<String>, Trouble> {
    let arm = world.open(Opening::Server(&ArmSpec { setting, load: plan.load.clone() }))?;
    let facts = facts::read(&Wanted { server: Some(arm.server()), watch: WATCH });
    world.close(arm);
    let mut ids: Vec<String> =
        audit(&facts, Goal::Throughput).findings.into_iter().map(|one| one.id).collect();
    ids.retain(|id| !LEFT_OUT.contains(&id.as_str()));
    ids.dedup();
    Ok(ids)
}

/// Servers of the three hosts live beside each other, and one at a time has traffic.
fn rates(plan: &Plan, world: &mut World<'_>, reached: &Setting, seed: u64) -> Result<Rates, Trouble> {
    let settings = [clean(plan), plan.start(), reached.clone()];
    let mut arms: Vec<Arm> = Vec::new();
    let mut rng = Prng::new(seed);
    let mut measured = [const { Vec::new() }; 3];
    let outcome = (|| {
        for setting in settings {
            let spec = ArmSpec { setting, load: plan.load.clone() };
            arms.push(world.open(Opening::Server(&spec))?);
        }
        for _ in 0..ROUNDS {
            let mut order = [0, 1, 2];
            rng.shuffle(&mut order);
            for at in order {
                let block = world.block(&mut arms[at], Length::Long)?.block;
                measured[at].push(block.replies as f64 / (block.wall_ns as f64 / 1e9));
            }
        }
        Ok(())
    })();
    arms.into_iter().for_each(|arm| world.close(arm));
    outcome.map(|()| rates_of(&measured))
}

fn rates_of([clean, planted, recovered]: &[Vec<f64>; 3]) -> Rates {
    let against = |side: &[f64]| {
        let estimate = compare_paired(clean, side, 0.05).expect("there are rounds enough for an interval");
        (estimate.percent(), estimate.interval_percent())
    };
    Rates {
        rounds: clean.len(),
        clean: median(clean.iter().copied()),
        planted: median(planted.iter().copied()),
        recovered: median(recovered.iter().copied()),
        planted_percent: against(planted),
        recovered_percent: against(recovered),
    }
}

/// A setting as its record has it: `dial=value`.
fn setting_of(plan: &Plan, words: &[String]) -> Setting {
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    pairs.fold(plan.start(), |setting, (dial, value)| setting.with(dial, value))
}

type Values = std::collections::BTreeMap<String, String>;

fn snapshot(world: &mut World<'_>) -> Result<Values, Trouble> {
    lab(world)?.snapshot().map_err(knob)
}

fn lab<'l>(world: &'l mut World<'_>) -> Result<&'l mut Lab, Trouble> {
    world.lab_mut().ok_or_else(|| Trouble::Knob("the planted host lives in a laboratory".into()))
}

fn knob(error: dyno_host::lab::LabError) -> Trouble {
    Trouble::Knob(chain(&error))
}

fn compared(before: &Values, after: &Values) -> Snapshot {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let read = |values: &Values, name: &String| values.get(name).cloned().unwrap_or_else(|| "nothing".into());
    let differ = names.iter().filter(|name| before.get(**name) != after.get(**name));
    let words = |name: &&String| format!("{name}: {} → {}", read(before, name), read(after, name));
    Snapshot {
        values: names.len(),
        differ: differ.map(words).collect(),
        left_out: MOVING.map(str::to_owned).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_changed_came_or_went_is_told() {
        let values = |pairs: &[(&str, &str)]| -> Values {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (before, after) =
            (values(&[("a", "1"), ("b", "2"), ("c", "3")]), values(&[("a", "1"), ("b", "9"), ("d", "4")]));
        let snapshot = compared(&before, &after);
        assert_eq!(snapshot.differ, ["b: 2 → 9", "c: 3 → nothing", "d: nothing → 4"]);
        assert!(compared(&before, &before).differ.is_empty());
    }

    #[test]
    fn what_is_recovered_is_held_against_the_clean_rate() {
        let rates = |recovered: f64| rates_of(&[vec![100.0; 8], vec![30.0; 8], vec![recovered; 8]]);
        assert!(rates(99.0).is_recovered() && !rates(90.0).is_recovered());
        assert!((rates(99.0).planted_percent.0 + 70.0).abs() < 0.01);
    }
}
