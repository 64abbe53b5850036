//! The facts of this host, read once: what an audit judges.
//!
//! `dyno audit` calls [`read`]. Reading changes nothing: no module is loaded for it, nothing is mounted, no program of others is
//! called and no text meant for people is parsed. Every list has a limit, and what is beyond it is told. What may not be read
//! says so, with what would help.

mod cpus;
mod devices;
mod kernel;
mod limits;
mod memory;
mod neighbours;
mod netfilter;
mod network;
mod read;
mod server;
mod sysctls;
mod watchers;

use std::time::{Duration, Instant};

use dyno_record::fact::Fact;
use dyno_record::facts::{FACTS_SCHEMA, Facts, Server};
use dyno_sys::{Pid, clock};

/// What is wanted of the facts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// A server to look at.
    pub server: Option<Pid>,
    /// How long neighbours are watched at least. A tick of 10 ms is one percent of a second.
    pub watch: Duration,
}

/// Reads them.
#[must_use]
pub fn read(wanted: &Wanted) -> Facts {
    let begun = Instant::now();
    let before = neighbours::Look::take(wanted.server);
    let mut facts = Facts {
        schema: FACTS_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        taken_unix_s: clock::real_coarse_s(),
        reader: kernel::reader(),
        kernel: kernel::kernel(),
        cpus: cpus::cpus(),
        security: watchers::security(),
        watchers: watchers::watchers(),
        memory: memory::memory(),
        sysctls: sysctls::sysctls(),
        ..Facts::default()
    };
    facts.network = network::network(&facts.kernel.parts, &mut facts.cut);
    if let (Fact::Value(devices), Fact::Value(all)) = (&mut facts.network.devices, &facts.cpus.interrupts) {
        devices::match_interrupts(devices, all);
    }
    facts.netfilter = netfilter::netfilter(&facts.kernel.parts, &mut facts.cut);
    facts.server = wanted.server.map(|pid| of_server(pid, &facts));
    std::thread::sleep(wanted.watch.saturating_sub(begun.elapsed()));
    let after = neighbours::Look::take(wanted.server);
    neighbours::compare(&before, &after, &mut facts);
    facts.took_s = begun.elapsed().as_secs_f64();
    facts
}

fn of_server(pid: Pid, facts: &Facts) -> Server {
    server::server(pid, &facts.network.listeners)
}
