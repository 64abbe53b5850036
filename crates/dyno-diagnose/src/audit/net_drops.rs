//! Packets that are lost inside this machine.

use dyno_record::audit::Risk;
use dyno_record::facts::Facts;

use super::draft::{ALL, Check, FAST, Looked, Say, Seen, finding, unknown, with_sysctl};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.softnet", about: "backlogs before the protocols", look: softnet },
    Check { id: "net.prune", about: "data thrown away in full receive buffers", look: prune },
];

fn softnet(facts: &Facts) -> Seen {
    let softnet = *facts.network.softnet.known()?;
    let (dropped, squeezed, _) = softnet.lately;
    let found = format!(
        "dropped {} (now {dropped}), squeezed {} (now {squeezed}), handed over {}, of {} packets",
        softnet.dropped, softnet.squeezed, softnet.handed_over, softnet.packets
    );
    // Since boot a few are history; a drop in a million is no trouble of today.
    let is_history = dropped == 0 && softnet.dropped.saturating_mul(1_000_000) <= softnet.packets;
    if is_history && squeezed == 0 {
        return Ok(Looked::Fine(found));
    }
    let (name, wanted) = match dropped > 0 || !is_history {
        true => ("net.core.netdev_max_backlog", "10000"),
        false => ("net.core.netdev_budget", "1200"),
    };
    let was = facts.sysctl(name)?.to_owned();
    let made = finding(
        "Packets wait for the CPU, or are dropped because a backlog is full",
        found,
        format!("{name}={wanted}"),
    )
    .gain(FAST, unknown("dropped packets are sent again, after a pause"))
    .risk(Risk::None, "")
    .why("Packets that arrive faster than a CPU works on them wait in a backlog of fixed length.");
    let made = with_sysctl(made, name, wanted, &was);
    Ok(if dropped > 0 || !is_history { made.loses() } else { made }.into())
}

/// The same least and usual size, and twice the largest: 16 MiB at least, and never less than it was.
fn larger(was: &str) -> String {
    let sizes: Vec<u64> = was.split_whitespace().filter_map(|size| size.parse().ok()).collect();
    let [least, usual, most] = sizes[..] else { return "4096 131072 16777216".to_owned() };
    format!("{least} {usual} {}", most.saturating_mul(2).clamp(16 << 20, 1 << 30).max(most))
}

fn prune(facts: &Facts) -> Seen {
    let counters = facts.network.counters.known()?;
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    let names = ["PruneCalled", "TCPRcvQDrop", "TCPBacklogDrop", "TCPMemoryPressures", "TCPAbortOnMemory"];
    let found = names.map(|name| format!("{name} {}", count(name))).join(", ");
    if names.iter().all(|name| count(name) == 0) {
        return Ok(Looked::Fine(found));
    }
    let was = facts.sysctl("net.ipv4.tcp_rmem")?.to_owned();
    let lost = count("TCPRcvQDrop") + count("TCPBacklogDrop") + count("TCPAbortOnMemory") > 0;
    let made = finding("Receive buffers were full, and data was squeezed or thrown away", found, "larger buffers, or a server that reads sooner")
        .gain(ALL, unknown("what is thrown away is sent again, after a pause"))
        .risk(Risk::Operational, "each connection may take more memory")
        .why("Counted since this namespace was made. The kernel tidies a full buffer up, and drops what still does not fit.");
    let made = with_sysctl(made, "net.ipv4.tcp_rmem", &larger(&was), &was);
    Ok(if lost { made.loses() } else { made }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: a constant, which made the buffers of a tuned host smaller.
    #[test]
    fn buffers_that_were_full_are_never_advised_to_be_smaller() {
        assert_eq!(larger("4096\t131072\t6291456"), "4096 131072 16777216");
        assert_eq!(larger("4096\t131072\t33554432"), "4096 131072 67108864");
        assert_eq!(larger("8192 262144 2147483647"), "8192 262144 2147483647");
    }
}
