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
mod moving;
mod neighbours;
mod netfilter;
pub(crate) mod network;
mod read;
mod server;
mod sysctls;
mod watchers;

use std::time::{Duration, Instant};

use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{FACTS_SCHEMA, Facts, Server};
use dyno_sys::{Pid, clock, namespace, proc};

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
    let network_before = moving::Moving::take(wanted.server);
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
        ..Facts::default()
    };
    read_network(wanted.server, &mut facts);
    facts.server = wanted.server.map(|pid| of_server(pid, &facts));
    std::thread::sleep(wanted.watch.saturating_sub(begun.elapsed()));
    let after = neighbours::Look::take(wanted.server);
    neighbours::compare(&before, &after, &mut facts);
    moving::compare(network_before, moving::Moving::take(wanted.server), &mut facts);
    facts.took_s = begun.elapsed().as_secs_f64();
    facts
}

/// The network that the server sees, or this process where none is named.
fn read_network(server: Option<Pid>, facts: &mut Facts) {
    let Some(pid) = server.filter(|pid| kernel::is_elsewhere(*pid)) else { return enter_network(facts) };
    let (parts, interrupts) = (facts.kernel.parts.clone(), facts.cpus.interrupts.clone());
    let inside = namespace::in_network_of(pid, || {
        let mut facts = Facts::default();
        facts.kernel.parts = parts;
        facts.cpus.interrupts = interrupts;
        enter_network(&mut facts);
        facts
    });
    match read::fact("the server's network namespace", inside) {
        Fact::Value(seen) => {
            (facts.network, facts.netfilter, facts.sysctls) = (seen.network, seen.netfilter, seen.sysctls);
            facts.cut.extend(seen.cut);
            facts.reader.looked_into = proc::link_name(&format!("/proc/{pid}/ns/net")).ok();
        }
        Fact::Absent(what) => facts.network.devices = Fact::Absent(what),
        Fact::Unread(why) => hide_network(facts, &why),
    }
}

/// The network of this thread's namespace.
fn enter_network(facts: &mut Facts) {
    facts.sysctls = sysctls::sysctls();
    facts.network = network::network(&facts.kernel.parts, &mut facts.cut);
    if let (Fact::Value(devices), Fact::Value(all)) = (&mut facts.network.devices, &facts.cpus.interrupts) {
        devices::match_interrupts(devices, all);
    }
    facts.netfilter = netfilter::netfilter(&facts.kernel.parts, &mut facts.cut);
}

/// Another namespace's network is not this one's: rather nothing than what the server does not see.
fn hide_network(facts: &mut Facts, why: &Unread) {
    let network = &mut facts.network;
    network.devices = Fact::Unread(why.clone());
    network.taps = Fact::Unread(why.clone());
    network.listeners = Fact::Unread(why.clone());
    network.counters = Fact::Unread(why.clone());
    network.softnet = Fact::Unread(why.clone());
    network.sockets = Fact::Unread(why.clone());
    facts.netfilter.nftables = Fact::Unread(why.clone());
    facts.netfilter.legacy = Fact::Unread(why.clone());
    facts.netfilter.conntrack = Fact::Unread(why.clone());
    facts.sysctls = sysctls::sysctls();
    let of_network = facts.sysctls.iter_mut().filter(|(name, _)| name.starts_with("net."));
    of_network.for_each(|(_, fact)| *fact = Fact::Unread(why.clone()));
}

fn of_server(pid: Pid, facts: &Facts) -> Server {
    server::server(pid, &facts.network.listeners)
}
