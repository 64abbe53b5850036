//! Listeners of one port against the CPUs of their workers.
//!
//! A program of the group (`SO_ATTACH_REUSEPORT_CBPF`) gives a connection to the listener with a number, most often that of the CPU
//! that received it; the kernel numbers listeners in the order in which they began to listen. The program cannot be read back, so
//! the connections tell: where all that came in on a CPU are served by one worker, and it is another CPU's, the order is wrong.
//! By hash they would be spread over all workers.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::audit::Risk;
use dyno_record::facts::{Arrivals, Facts, ServerListener};

use super::draft::{FAST, Looked, Say, Seen, counted, finding, measured, server};

/// Connections that came in on one CPU from which their way is told: sixteen go to one of two workers by hash once in 30,000 times.
const ENOUGH: u32 = 16;
/// Percent of them that must go the same way: one may have been taken over by a neighbour.
const SAME_WAY: u32 = 90;
/// CPUs, and listeners, that a finding names.
const NAMED_MAX: usize = 4;

/// Where nearly all connections go that come in on a CPU: to the worker on that one.
struct Way {
    on: u32,
    served_on: u32,
    connections: u32,
    all: u32,
}

pub(super) fn order(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let shared: Vec<&ServerListener> =
        server.listeners.known()?.iter().filter(|one| one.sockets > 1).collect();
    if shared.is_empty() {
        return Ok(Looked::NotHere("a port on which the server has several listeners".into()));
    }
    let options = server.options.known()?;
    if options.arrivals.is_empty() {
        let why = match options.asked {
            0 => "no connection is open: measured under load",
            _ => {
                "no process that is bound to one CPU has a connection whose last packet brought data: measured under load"
            }
        };
        return Ok(Looked::NotHere(why.into()));
    }
    let Some(ways) = wrong_ways(facts) else {
        let local = counted(options.local as usize, "connection");
        return Ok(Looked::Fine(format!("{local} of {} came to the worker of its CPU", options.pinned)));
    };
    let told: Vec<String> = ways.iter().take(NAMED_MAX).map(Way::words).collect();
    let orders = shared.iter().filter(|one| !one.order.is_empty()).map(|one| order_words(one));
    let found: Vec<String> = told.into_iter().chain(orders).collect();
    Ok(finding(
        "Connections go to the worker of another CPU: listeners stand in the wrong order",
        found.join("; "),
        "the worker on CPU k begins to listen k-th",
    )
    .gain(FAST, measured(4.0, 11.0, "the wrong order against none, two pinned clients; the right order 6 to 31 % against none"))
    .risk(Risk::None, "")
    .why("A program of the port gives a connection to the listener with the number of the CPU that received it, and the kernel numbers listeners in the order in which they began to listen. So every request wakes a worker on another CPU: worse than no program at all. The last listener takes the number of one that is closed: who began in the right order stands in the wrong one where a worker was replaced, or where the server before still listened.")
    .see(&["sudo ss -ltnpe", "dyno audit facts --json --pid PID"])
    .apply(&["stop the server, and start it once nobody listens there any more", "where that is not it: have its sockets begin to listen one after another in the order of their workers' CPUs, before the first worker runs"])
    .revert(&["the setting as it was; then restart it"])
    .into())
}

/// Whether it is so, for those that would tell the same thing otherwise.
pub(super) fn is_wrong(facts: &Facts) -> bool {
    let shares = |one: &ServerListener| one.sockets > 1;
    let server = facts.server.as_ref();
    let listeners = server.and_then(|server| server.listeners.value());
    listeners.is_some_and(|all| all.iter().any(shares)) && wrong_ways(facts).is_some()
}

/// The way from each CPU, where all are told and at least one leads past the worker that is bound to that CPU.
fn wrong_ways(facts: &Facts) -> Option<Vec<Way>> {
    let server = facts.server.as_ref()?;
    let arrivals = &server.options.value()?.arrivals;
    let ways = ways(arrivals)?;
    let mut homes: BTreeSet<u32> = arrivals.iter().map(|one| one.served_on).collect();
    let bound = server.listeners.value().into_iter().flatten().flat_map(|one| &one.order);
    homes.extend(bound.filter_map(|holder| holder.cpus.parse::<u32>().ok()));
    ways.iter().any(|way| way.on != way.served_on && homes.contains(&way.on)).then_some(ways)
}

/// The way from each CPU that received enough connections; nothing where one has no way, or two share a worker: then no program
/// chose by CPU.
fn ways(arrivals: &[Arrivals]) -> Option<Vec<Way>> {
    let mut by_cpu: BTreeMap<u32, Vec<&Arrivals>> = BTreeMap::new();
    for one in arrivals {
        by_cpu.entry(one.on).or_default().push(one);
    }
    let mut ways = Vec::new();
    for (on, to) in by_cpu {
        let all: u32 = to.iter().map(|one| one.connections).sum();
        let most = to.iter().max_by_key(|one| one.connections)?;
        if all < ENOUGH {
            continue;
        }
        if 100 * most.connections < SAME_WAY * all {
            return None;
        }
        ways.push(Way { on, served_on: most.served_on, connections: most.connections, all });
    }
    let workers: BTreeSet<u32> = ways.iter().map(|way| way.served_on).collect();
    (!ways.is_empty() && workers.len() == ways.len()).then_some(ways)
}

impl Way {
    fn words(&self) -> String {
        let Way { on, served_on, connections, all } = self;
        format!("{connections} of {all} connections that came in on CPU {on} are served on CPU {served_on}")
    }
}

fn order_words(one: &ServerListener) -> String {
    let holder = |(at, holder): (usize, &dyno_record::facts::Holder)| {
        format!("{at} process {} on CPU {}", holder.pid, holder.cpus)
    };
    let named: Vec<String> = one.order.iter().enumerate().take(NAMED_MAX).map(holder).collect();
    let more = one.order.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("listeners of {} as they began to listen: {}{more}", one.local, named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(all: &[(u32, u32, u32)]) -> Vec<Arrivals> {
        all.iter().map(|&(on, served_on, connections)| Arrivals { on, served_on, connections }).collect()
    }

    fn told(all: &[(u32, u32, u32)]) -> Option<Vec<(u32, u32)>> {
        let ways = ways(&arrivals(all))?;
        Some(ways.iter().map(|way| (way.on, way.served_on)).collect())
    }

    /// Planted fault: the largest part is the way, however small; then a server without any program has its listeners in the wrong
    /// order half of the time.
    #[test]
    fn only_where_all_of_a_cpu_go_the_same_way_did_a_program_choose() {
        assert_eq!(told(&[(0, 1, 32), (1, 0, 32)]), Some(vec![(0, 1), (1, 0)]));
        assert_eq!(told(&[(0, 1, 20), (0, 0, 12), (1, 0, 32)]), None, "by hash");
        assert_eq!(told(&[(0, 1, 15), (1, 0, 15)]), None, "few may go the same way by chance");
        assert_eq!(told(&[(0, 0, 32), (1, 0, 32)]), None, "one worker serves all");
        assert_eq!(
            told(&[(0, 1, 30), (0, 0, 2), (1, 0, 32)]),
            Some(vec![(0, 1), (1, 0)]),
            "a neighbour took two"
        );
    }
}
