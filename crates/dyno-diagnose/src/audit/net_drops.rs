//! Packets that are lost inside this machine.

use dyno_record::audit::Risk;
use dyno_record::facts::Facts;

use super::draft::{ALL, Check, FAST, Looked, Say, Seen, finding, unknown, with_sysctl};
use super::net_tcp::unused;

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
    match dropped > 0 || !is_history {
        true => overflowing(facts, found),
        false => squeezed_turns(facts, found),
    }
}

/// Twice what it is, and at least what helps elsewhere: a host that was tuned is never advised to go back.
fn at_least(was: &str, least: u64) -> String {
    let was: u64 = was.trim().parse().unwrap_or(0);
    was.saturating_mul(2).max(least).to_string()
}

fn overflowing(facts: &Facts, found: String) -> Seen {
    let name = "net.core.netdev_max_backlog";
    let was = facts.sysctl(name)?;
    let wanted = at_least(was, 10_000);
    let made = finding(
        "Packets are dropped because they arrive faster than a CPU works on them",
        found,
        format!("{name}={wanted}"),
    )
    .gain(FAST, unknown("dropped packets are sent again, after a pause"))
    .loses()
    .risk(Risk::None, "")
    .why("Packets wait for their CPU in a queue of fixed length; one that finds it full is dropped.");
    Ok(with_sysctl(made, name, &wanted, was).into())
}

/// A turn ends after so many packets, or after so many µs, whichever is first (net/core/dev.c, net_rx_action): both are raised,
/// for the count does not tell which it was.
fn squeezed_turns(facts: &Facts, found: String) -> Seen {
    let (packets, time) = ("net.core.netdev_budget", "net.core.netdev_budget_usecs");
    let (was, was_us) = (facts.sysctl(packets)?, facts.sysctl(time)?);
    let (wanted, wanted_us) = (at_least(was, 600), at_least(was_us, 4_000));
    let made = finding(
        "The kernel breaks off working on packets while more of them wait",
        found,
        format!("{packets}={wanted}, {time}={wanted_us}"),
    )
    .gain(FAST, unknown("packets that are left wait for the next turn"))
    .risk(Risk::None, "")
    .why(
        "Work on packets is done in turns, each of which ends after so many packets or so many microseconds.",
    );
    let made = with_sysctl(made, packets, &wanted, was);
    let [see, apply, revert] = [made.see.clone(), made.apply.clone(), made.revert.clone()];
    let mut made = with_sysctl(made, time, &wanted_us, was_us);
    made.see.splice(0..0, see);
    made.apply.splice(0..0, apply);
    made.revert.splice(0..0, revert);
    Ok(made.into())
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
    if let Some(why) = unused(facts, "net.ipv4.tcp_rmem") {
        return Ok(Looked::Fine(format!("{found}; {why}")));
    }
    let was = facts.sysctl("net.ipv4.tcp_rmem")?.to_owned();
    let full = ["PruneCalled", "TCPRcvQDrop", "TCPBacklogDrop"].iter().map(|name| count(name)).sum::<u64>();
    let lost = count("TCPRcvQDrop") + count("TCPBacklogDrop") + count("TCPAbortOnMemory") > 0;
    let made = finding("Receive buffers were full, and data was squeezed or thrown away", found, "larger buffers, or a server that reads sooner")
        .gain(ALL, unknown("what is thrown away is sent again, after a pause"))
        .risk(Risk::Operational, "each connection may take more memory")
        .why("Counted since this namespace was made. The kernel tidies a full buffer up, and drops what still does not fit.");
    // Where all of TCP was short of memory, a larger buffer for each connection makes it shorter.
    let made = match full {
        0 => {
            let all = facts.sysctl("net.ipv4.tcp_mem")?;
            let double: Vec<String> = all
                .split_whitespace()
                .filter_map(|pages| Some((pages.parse::<u64>().ok()?.saturating_mul(2)).to_string()))
                .collect();
            with_sysctl(made, "net.ipv4.tcp_mem", &double.join(" "), all)
        }
        _ => with_sysctl(made, "net.ipv4.tcp_rmem", &larger(&was), &was),
    };
    Ok(if lost { made.loses() } else { made }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::{AuditFinding, Goal};
    use dyno_record::fact::Fact;
    use dyno_record::facts::Softnet;

    fn found(facts: &Facts, id: &str) -> AuditFinding {
        let all = crate::audit::audit(facts, Goal::Throughput).findings;
        all.into_iter().find(|one| one.id == id).unwrap_or_default()
    }

    fn facts(softnet: Softnet, sysctls: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        facts.network.softnet = Fact::Value(softnet);
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        for (name, value) in sysctls {
            facts.sysctls.insert((*name).to_owned(), Fact::Value((*value).to_owned()));
        }
        facts
    }

    /// Planted fault: a constant, which made a longer queue shorter.
    #[test]
    fn a_queue_that_still_drops_is_never_advised_to_be_shorter() {
        let of = |was| {
            let dropping = Softnet { packets: 10, dropped: 5, lately: (5, 0, 0), ..Softnet::default() };
            found(&facts(dropping, &[("net.core.netdev_max_backlog", was)]), "net.softnet").changes[0]
                .wanted
                .clone()
        };
        assert_eq!((of("1000"), of("30000")), ("10000".to_owned(), "60000".to_owned()));
    }

    /// Planted fault: packets alone are raised; then a turn that ends by its time ends as before.
    #[test]
    fn turns_that_end_early_get_more_packets_and_more_time() {
        let squeezed = Softnet { packets: 10, squeezed: 5, lately: (0, 5, 0), ..Softnet::default() };
        let limits = [("net.core.netdev_budget", "300"), ("net.core.netdev_budget_usecs", "8000")];
        let made = found(&facts(squeezed, &limits), "net.softnet");
        let wanted: Vec<&str> = made.changes.iter().map(|spec| spec.wanted.as_str()).collect();
        assert_eq!((wanted, made.revert.len()), (vec!["600", "16000"], 2));
    }

    #[test]
    fn where_all_of_tcp_is_short_of_memory_no_connection_is_advised_to_take_more() {
        let of = |counter: &str| {
            let mut facts = facts(
                Softnet::default(),
                &[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_mem", "10 20 30")],
            );
            facts.network.counters = Fact::Value([(counter.to_owned(), 3)].into());
            found(&facts, "net.prune").changes[0].clone()
        };
        assert_eq!(of("TCPMemoryPressures").wanted, "20 40 60");
        assert!(of("PruneCalled").what.to_string().ends_with("tcp_rmem"));
    }

    /// Planted fault: a constant, which made the buffers of a tuned host smaller.
    #[test]
    fn buffers_that_were_full_are_never_advised_to_be_smaller() {
        assert_eq!(larger("4096\t131072\t6291456"), "4096 131072 16777216");
        assert_eq!(larger("4096\t131072\t33554432"), "4096 131072 67108864");
        assert_eq!(larger("8192 262144 2147483647"), "8192 262144 2147483647");
    }
}
