//! Packets that are lost inside this machine.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::fact::Gap;
use dyno_record::facts::Facts;

use super::draft::{ALL, Check, FAST, Looked, Say, Seen, finding, unknown, with_sysctl};
use super::moved::{Moved, OF_PACKETS, counted, moved, only_told};
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
    let mut all = Vec::new();
    match moved((dropped, softnet.dropped), softnet.packets, OF_PACKETS) {
        Moved::Now => all.push(overflowing(facts, &found)?.loses()),
        Moved::Before => all.push(only_told(overflowing(facts, &found)?)),
        Moved::No => {}
    }
    if squeezed > 0 && dropped == 0 {
        all.push(squeezed_turns(facts, &found)?);
    }
    Ok(Looked::found_or(all, || found))
}

/// Twice what it is, and at least what helps elsewhere: a host that was tuned is never advised to go back.
fn at_least(was: &str, least: u64) -> String {
    let was: u64 = was.trim().parse().unwrap_or(0);
    was.saturating_mul(2).max(least).to_string()
}

fn overflowing(facts: &Facts, found: &str) -> Result<AuditFinding, Gap> {
    let name = "net.core.netdev_max_backlog";
    let was = facts.sysctl(name)?;
    let wanted = at_least(was, 10_000);
    let made = finding(
        "Packets are dropped because they arrive faster than a CPU works on them",
        found,
        format!("{name}={wanted}"),
    )
    .gain(FAST, unknown("dropped packets are sent again, after a pause"))
    .risk(Risk::None, "")
    .why("Packets wait for their CPU in a queue of fixed length; one that finds it full is dropped.");
    Ok(with_sysctl(made, name, &wanted, was))
}

/// A turn ends after so many packets, or after so many µs, whichever is first (net/core/dev.c, net_rx_action): both are raised,
/// for the count does not tell which it was.
fn squeezed_turns(facts: &Facts, found: &str) -> Result<AuditFinding, Gap> {
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
    Ok(made)
}

/// The same least and usual size, and twice the largest: 16 MiB at least, and never less than it was.
fn larger(was: &str) -> String {
    let sizes: Vec<u64> = was.split_whitespace().filter_map(|size| size.parse().ok()).collect();
    let [least, usual, most] = sizes[..] else { return "4096 131072 16777216".to_owned() };
    format!("{least} {usual} {}", most.saturating_mul(2).clamp(16 << 20, 1 << 30).max(most))
}

/// Counters of data that found a full receive buffer.
const FULL: [&str; 3] = ["PruneCalled", "TCPRcvQDrop", "TCPBacklogDrop"];
/// Of all of TCP being short of memory.
const SHORT: [&str; 2] = ["TCPMemoryPressures", "TCPAbortOnMemory"];
/// And of those the ones that lose something.
const LOST: [&str; 3] = ["TCPRcvQDrop", "TCPBacklogDrop", "TCPAbortOnMemory"];

fn prune(facts: &Facts) -> Seen {
    let mut words = Vec::new();
    for name in FULL.into_iter().chain(SHORT) {
        let (lately, since) = counted(facts, &[name])?;
        words.push(format!("{name} {since} (now {lately})"));
    }
    let found = words.join(", ");
    let (full, short) = (counted(facts, &FULL)?, counted(facts, &SHORT)?);
    let packets = facts.network.softnet.value().map_or(0, |softnet| softnet.packets);
    let moved = moved((full.0 + short.0, full.1 + short.1), packets, OF_PACKETS);
    if moved == Moved::No {
        return Ok(Looked::Fine(found));
    }
    if let Some(why) = unused(facts, "net.ipv4.tcp_rmem") {
        return Ok(Looked::Fine(format!("{found}; {why}")));
    }
    let made = finding(
        "Receive buffers were full, and data was squeezed or thrown away",
        found,
        "larger buffers, or a server that reads sooner",
    )
    .gain(ALL, unknown("what is thrown away is sent again, after a pause"))
    .risk(Risk::Operational, "each connection may take more memory")
    .why("The kernel tidies a full buffer up, and drops what still does not fit.");
    let is_full = if moved == Moved::Now { full.0 > 0 } else { full.1 > 0 };
    let made = if is_full { with_larger_buffers(facts, made)? } else { with_more_memory(facts, made)? };
    let loses_now = counted(facts, &LOST)?.0 > 0;
    Ok(match moved {
        Moved::Now if loses_now => made.loses(),
        Moved::Now => made,
        _ => only_told(made),
    }
    .into())
}

fn with_larger_buffers(facts: &Facts, made: AuditFinding) -> Result<AuditFinding, Gap> {
    let was = facts.sysctl("net.ipv4.tcp_rmem")?;
    Ok(with_sysctl(made, "net.ipv4.tcp_rmem", &larger(was), was))
}

/// Where all of TCP was short of memory, a larger buffer for each connection makes it shorter.
fn with_more_memory(facts: &Facts, made: AuditFinding) -> Result<AuditFinding, Gap> {
    let all = facts.sysctl("net.ipv4.tcp_mem")?;
    let double = |pages: &str| Some(pages.parse::<u64>().ok()?.saturating_mul(2).to_string());
    let wanted: Vec<String> = all.split_whitespace().filter_map(double).collect();
    Ok(with_sysctl(made, "net.ipv4.tcp_mem", &wanted.join(" "), all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::{Goal, Level};
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

    /// Planted fault: what was dropped since boot is raised for; then each run of tune doubles the queue, and nothing ever drops.
    #[test]
    fn drops_that_are_over_are_told_and_nothing_is_set_for_them() {
        let limits = [("net.core.netdev_max_backlog", "1000"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")];
        let over = Softnet { packets: 1_000_000, dropped: 50, ..Softnet::default() };
        let mut facts = facts(over, &limits);
        facts.network.counters = Fact::Value([("PruneCalled".to_owned(), 9)].into());
        facts.network.lately = Fact::Value([].into());
        for id in ["net.softnet", "net.prune"] {
            let made = found(&facts, id);
            assert_eq!((made.changes.len(), made.level), (0, Level::Low), "{made:?}");
            assert!(made.by_hand.contains("while the facts were read") && !made.apply.is_empty());
        }
        facts.network.softnet = Fact::Value(Softnet { packets: 10_000_000_000, dropped: 50, ..over });
        assert_eq!((found(&facts, "net.softnet"), found(&facts, "net.prune")), Default::default());
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
            facts.network.lately = facts.network.counters.clone();
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
