//! `dyno specimen run planted-host`: a whole host with planted defects, in a laboratory of its own.
//!
//! Prepares the ground as `dyno climb --netns` does; the lab plants, audits, climbs and compares.

use std::process::ExitCode;

use dyno_climb::climb::{ClimbError, INSTANCES, Options, Order, Profiles};
use dyno_climb::meter::Trouble;
use dyno_climb::planted::planted_host;
use dyno_host::changes::HostChanges;
use dyno_lab::Failure;
use dyno_lab::launch::scratch::Scratch;
use dyno_lab::launch::{Ground, Interrupt, World, laboratory};
use dyno_lab::specimens::planted;
use dyno_record::planted::PlantedHost;
use dyno_report::text;
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::keeper::Keeper;

use crate::cli::specimen::Run;
use crate::cmd::climb::{Screen, described, finish_machine, new_record, split};
use crate::cmd::exit;
use crate::{out, this_run};

/// Its name, beside those of the catalogue.
pub(super) const NAME: &str = "planted-host";
/// What it is, for `dyno specimen explain`.
pub(super) const ABOUT: &str = "\
planted-host: a server that is fine, on a host that is not.

  In two network namespaces of its own, as root, it plants at the server's end: 300 rules in one chain,
  tracking of connections behind them, a limiter that never limits as the root qdisc, packets handed to
  the server's CPU (RPS), ten sockets that hear every packet; and at the server three stacked filters of
  system calls and a log line written for each reply.

  It audits the clean and the planted host: findings may differ by the plants only. It climbs from the
  planted host, each rung with its proof. It compares what was reached with the clean host, servers side
  by side; 95 % must be back. It compares every setting with what it was before: none may differ.

  Nothing of the real host is changed. Elsewhere the plants cost 78 % of the clean rate.
";

/// A climb of six rungs, of which the least brings some 5 %: in half of it the filters were not confirmed.
const CLIMB_NS: u64 = 240_000_000_000;

/// Runs it.
pub(super) fn run(args: &Run) -> Result<ExitCode, Failure> {
    if args.defect || args.repaired || args.causal || args.neutral {
        return Err(Failure::usage("the planted host has no sides, no names and no parts")
            .likely("--defect, --repaired, --neutral and --causal are the programs'")
            .try_this("dyno specimen run planted-host"));
    }
    let (server_cpus, load_cpus, shared) = split(None, None)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::error("cannot find this program").because(&error))?;
    let plan = planted_host(&program.display().to_string(), &laboratory::mask(server_cpus.iter()));
    // While this process is on the host: what a dead climb left there is looked for there.
    let scratch =
        Scratch::new(HostChanges::Refused, &mut |warning| out::say(&format!("warning: {warning}\n")))?;
    let lab = laboratory::entered_for(&plan)?;
    let _ = dyno_sys::proc::raise_nofile_to_hard();
    let cannot = |error: &dyn std::error::Error| Failure::error("cannot start the keeper").because(error);
    let keeper = Keeper::start().map_err(|error| cannot(&error))?;
    keeper.remove_at_end(scratch.path()).map_err(|error| cannot(&error))?;
    let interrupt =
        Interrupt::listen().map_err(|error| Failure::error("cannot receive signals").because(&error))?;
    if let [cpu] = load_cpus[..] {
        let _ = affinity::set_current(&CpuSet::single(cpu));
    }
    let ground = Ground {
        server_cpus: server_cpus.clone(),
        load_cpus: load_cpus.clone(),
        scratch: scratch.path().to_owned(),
        plan_dir: "/".into(),
        host_changes: HostChanges::Refused,
        user: scratch.caller(),
    };
    let mut record = new_record(&server_cpus, &load_cpus);
    record.network = Some(described(&lab));
    if shared {
        record.warnings.push("one CPU for server and load: throughput means little".into());
    }
    let mut world = World::new(&plan, ground, keeper, interrupt).in_lab(lab);
    let mut screen = Screen::new();
    let (mut host, outcome) =
        planted::run(&plan, &mut world, &options(args, server_cpus.len()), record, &mut |event| {
            screen.show(event);
        });
    screen.clear();
    finish_machine(&mut host.climb, &world);
    let finished = world.finish();
    shown(args, &host)?;
    finished.map_err(|trouble| Failure::not_restored(trouble.to_string()))?;
    ended(outcome)?;
    Ok(if host.is_passed() { exit::DONE } else { ExitCode::from(exit::NO) })
}

fn options(args: &Run, server_cpus: usize) -> Options {
    Options {
        time_ns: args.time.map_or(CLIMB_NS, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        order: Order::Given,
        seed: args.seed.unwrap_or_else(this_run::seed_of_the_day),
        instances: INSTANCES,
        server_cpus,
        only: Vec::new(),
        // What was planted is to be found, however little it costs.
        worthwhile_percent: Some(0.0),
        profiles: Profiles::None,
    }
}

fn shown(args: &Run, host: &PlantedHost) -> Result<(), Failure> {
    if !args.json {
        return out::print(&text::planted_host(host, out::terminal_width()));
    }
    let json = serde_json::to_string(host)
        .map_err(|error| Failure::error("the record cannot be written").because(&error))?;
    out::print(&(json + "\n"))
}

fn ended(outcome: Result<(), ClimbError>) -> Result<(), Failure> {
    match outcome {
        Ok(()) => Ok(()),
        Err(ClimbError::Ended(Trouble::Interrupted)) => Err(Failure::interrupted()),
        Err(error @ ClimbError::Noise(_)) => Err(Failure::no(error.to_string())
            .try_this("stop what else runs on these CPUs, or give it more time with --for")),
        Err(error) => Err(Failure::error(error.to_string()).because(&error)),
    }
}
