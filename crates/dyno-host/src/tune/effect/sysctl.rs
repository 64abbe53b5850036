//! Proofs of settings of the network's protocols, `/proc/sys/net`.
//!
//! What is copied into a socket when it is made is read back from a socket that is made for it, and those made before are
//! looked for; what only works beside another setting has that looked at. It only reads.

use std::net::Ipv4Addr;

use dyno_record::tune::Effect;
use dyno_sys::proc;

use super::seen::{self, Moved, Sight};
use super::sockets;
use super::steering::FLOWS;
use crate::counted;
use crate::facts::network;

const ROOT: &str = "/proc/sys/net/";
const POLLED: &str = "busy polled";
const RECEIVED: &str = "received";
const DROPPED: &str = "dropped";
const SQUEEZED: &str = "squeezed";
const DEVICES_MAX: usize = 10_000;
const QUEUES_MAX: usize = 10_000;
/// Fewer packets show nothing.
const PACKETS_MIN: u64 = 8;

fn name(path: &str) -> &str {
    path.strip_prefix(ROOT).unwrap_or(path)
}

/// Counters that show it.
pub(super) fn moving(path: &str) -> Moved {
    let softnet = || network::softnet().value().copied().unwrap_or_default();
    match name(path) {
        "core/busy_poll" => Moved::default().with(POLLED, counted::busy_polled().ok()).with(
            RECEIVED,
            seen::text("/proc/thread-self/net/dev").map(|dev| proc::parse_dev(&dev).device_packets),
        ),
        "core/netdev_max_backlog" => Moved::default().with(DROPPED, softnet().dropped),
        "core/netdev_budget" | "core/netdev_budget_usecs" => {
            Moved::default().with(SQUEEZED, softnet().squeezed)
        }
        _ => Moved::default(),
    }
}

pub(super) fn judge(path: &str, old: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    match name(path) {
        "core/somaxconn" => sockets::backlog(old, wanted),
        "core/busy_poll" => busy_poll(wanted, sight),
        "core/rps_sock_flow_entries" => flows(wanted, sight),
        "core/netdev_max_backlog" => still(sight, DROPPED, "packets were dropped before a full backlog"),
        "core/netdev_budget" | "core/netdev_budget_usecs" => {
            still(sight, SQUEEZED, "turns ended with work left")
        }
        "ipv4/ip_local_port_range" => sockets::ports(old, wanted),
        "ipv4/tcp_rmem" => sockets::buffer(sockets::Side::Receiving, old, wanted),
        "ipv4/tcp_wmem" => sockets::buffer(sockets::Side::Sending, old, wanted),
        "ipv4/tcp_congestion_control" => sockets::congestion(wanted),
        "ipv4/tcp_slow_start_after_idle" => sockets::after_idle(wanted),
        "ipv4/tcp_max_syn_backlog" => half_open(sight),
        "netfilter/nf_conntrack_max" => exceeded(
            sight.number("/proc/sys/net/netfilter/nf_conntrack_count"),
            old,
            "connections are tracked",
        ),
        "netfilter/nf_conntrack_buckets" => Effect::in_force(format!(
            "the kernel tells the length of its table, which is {}",
            sight.number(path).unwrap_or(0)
        )),
        "ipv4/neigh/default/gc_thresh3" => exceeded(neighbours(sight), old, "neighbours are known"),
        "ipv4/tcp_mem" => Effect::not_shown(
            "the kernel asks for it when a socket's buffer grows".to_owned(),
            "more pages under mem of TCP in /proc/net/sockstat than the old limit",
        ),
        "ipv4/tcp_max_tw_buckets" => exceeded(time_wait(sight), old, "closed connections wait"),
        "core/bpf_jit_enable" | "core/bpf_jit_harden" => Effect::not_shown(
            "programs of before stay as they were loaded".to_owned(),
            "a program that is loaded from now on: jited in bpftool prog show",
        ),
        other => Effect::not_shown(
            format!("no proof of {} is known", other.replace('/', ".")),
            "the load for which it was set",
        ),
    }
}

/// Something goes on that was to end.
fn still(sight: &Sight<'_>, counter: &str, what: &str) -> Effect {
    match sight.moved.of(counter) {
        0 => Effect::not_shown(
            "nothing ran over meanwhile".to_owned(),
            "/proc/net/softnet_stat that stands still under the load under which it grew",
        ),
        count => Effect::not_in_force(format!("{count} {what} meanwhile: it is still too small")),
    }
}

/// Polling by who waits: packets that come have to be received so.
fn busy_poll(wanted: &str, sight: &Sight<'_>) -> Effect {
    let (polled, received) = (sight.moved.of(POLLED), sight.moved.of(RECEIVED));
    let seen = format!("{polled} of {received} packets were received by who polled for them");
    match (wanted.trim(), polled) {
        (_, 0) if received < PACKETS_MIN => {
            Effect::not_shown(seen, "packets, and BusyPollRxPackets in /proc/net/netstat that rises")
        }
        ("0", 0) => Effect::in_force(seen),
        ("0", _) => Effect::not_in_force(format!("{seen}: a socket or epoll has polling of its own")),
        (_, 0) => Effect::not_in_force(format!(
            "{seen}: nobody waited, or their device has no NAPI instance that its packets pass"
        )),
        _ => Effect::in_force(seen),
    }
}

/// RFS is two tables. The kernel tells the length of the one that it has, not what was written.
fn flows(wanted: &str, sight: &Sight<'_>) -> Effect {
    if wanted.trim() == "0" {
        return Effect::in_force(format!("{FLOWS} tells the length of the kernel's table, which is gone"));
    }
    let devices = proc::names("/sys/class/net", DEVICES_MAX).unwrap_or_default();
    let has_table = |device: &String| {
        let queues = format!("/sys/class/net/{device}/queues");
        let names = proc::names(&queues, QUEUES_MAX).unwrap_or_default();
        names.iter().any(|queue| {
            sight.number(&format!("{queues}/{queue}/rps_flow_cnt")).is_some_and(|entries| entries > 0)
        })
    };
    match devices.iter().any(has_table) {
        false => Effect::not_in_force(
            "rps_flow_cnt of every queue is 0: RFS needs the machine's table and the queue's".to_owned(),
        ),
        true => Effect::not_shown(
            "both tables are there".to_owned(),
            "packets that are handed over while their reader moves: column 10 of /proc/net/softnet_stat",
        ),
    }
}

/// With SYN cookies nobody asks how many half-open connections there may be (net/ipv4/tcp_input.c, tcp_conn_request).
fn half_open(sight: &Sight<'_>) -> Effect {
    match sight.number("/proc/sys/net/ipv4/tcp_syncookies") {
        Some(0) => Effect::not_shown(
            "the kernel asks for it when connections are half open".to_owned(),
            "a listener with more half-open connections than the old limit: ss -t state syn-recv",
        ),
        Some(cookies) => Effect::not_in_force(format!(
            "net.ipv4.tcp_syncookies is {cookies}, and with cookies the kernel does not ask for it: the listener's own queue is the limit"
        )),
        None => Effect::not_shown("net.ipv4.tcp_syncookies cannot be read".to_owned(), "its value: 0"),
    }
}

/// More than the old limit allowed.
fn exceeded(count: Option<u64>, old: &str, what: &str) -> Effect {
    let limit: Option<u64> = old.trim().parse().ok();
    match (count, limit) {
        (Some(count), Some(limit)) if count > limit => {
            Effect::in_force(format!("{count} {what}, and {limit} was the limit"))
        }
        (count, _) => Effect::not_shown(
            format!("{} {what}, which the old limit allowed too", count.unwrap_or(0)),
            "more of them than the old limit",
        ),
    }
}

fn neighbours(sight: &Sight<'_>) -> Option<u64> {
    // One line of names, then one for each address; `ip neigh` shows others that count too.
    let table = (sight.text)("/proc/thread-self/net/arp")?;
    let addresses = table
        .lines()
        .filter(|line| line.split_whitespace().next().is_some_and(|word| word.parse::<Ipv4Addr>().is_ok()));
    Some(addresses.count() as u64)
}

fn time_wait(sight: &Sight<'_>) -> Option<u64> {
    let text = (sight.text)("/proc/thread-self/net/sockstat")?;
    let mut words = text.lines().find_map(|line| line.strip_prefix("TCP:"))?.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    fn sight<'s>(text: &'s dyn Fn(&str) -> Option<String>, counts: &[(&str, u64)]) -> Sight<'s> {
        let moved = counts.iter().fold(Moved::default(), |moved, (name, count)| moved.with(name, *count));
        Sight { text, moved }
    }

    fn force(name: &str, old: &str, wanted: &str, sight: &Sight<'_>) -> Force {
        judge(&format!("{ROOT}{name}"), old, wanted, sight).force
    }

    /// Planted fault: cookies are not asked for; then a limit that nobody asks for is not told.
    #[test]
    fn a_limit_on_half_open_connections_is_not_in_force_beside_cookies() {
        let of = |cookies: &'static str| {
            let text = move |_: &str| Some(cookies.to_owned());
            force("ipv4/tcp_max_syn_backlog", "512", "65536", &sight(&text, &[]))
        };
        assert_eq!([of("1"), of("0")], [Force::NotInForce, Force::NotShown]);
    }

    /// Planted fault: packets are not counted; then polling that receives none of them is in force, or not told.
    #[test]
    fn polling_that_receives_no_packet_is_not_in_force() {
        let of = |wanted, polled, received| {
            force("core/busy_poll", "0", wanted, &sight(&|_| None, &[(POLLED, polled), (RECEIVED, received)]))
        };
        assert_eq!(
            [of("50", 30, 90), of("50", 0, 90), of("50", 0, 2)],
            [Force::InForce, Force::NotInForce, Force::NotShown]
        );
        assert_eq!([of("0", 0, 90), of("0", 30, 90)], [Force::InForce, Force::NotInForce]);
    }

    #[test]
    fn what_still_runs_over_is_not_in_force_and_what_is_above_the_old_limit_is() {
        let of = |dropped| {
            force("core/netdev_max_backlog", "1000", "4000", &sight(&|_| None, &[(DROPPED, dropped)]))
        };
        assert_eq!([of(3), of(0)], [Force::NotInForce, Force::NotShown]);
        let tracked = |count: &'static str| {
            let text = move |_: &str| Some(count.to_owned());
            force("netfilter/nf_conntrack_max", "100", "400", &sight(&text, &[]))
        };
        assert_eq!([tracked("101"), tracked("99")], [Force::InForce, Force::NotShown]);
        let waits = |_: &str| Some("sockets: used 3\nTCP: inuse 1 orphan 0 tw 70 alloc 2 mem 1".to_owned());
        assert_eq!(force("ipv4/tcp_max_tw_buckets", "60", "240", &sight(&waits, &[])), Force::InForce);
    }

    /// Planted fault: the queues' tables are not looked at; then half of RFS is in force.
    #[test]
    fn half_of_rfs_is_not_in_force() {
        let none = sight(&|_| Some("0".into()), &[]);
        assert_eq!(force("core/rps_sock_flow_entries", "0", "32768", &none), Force::NotInForce);
        assert_eq!(force("core/rps_sock_flow_entries", "32768", "0", &none), Force::InForce);
    }

    #[test]
    fn what_nobody_knows_to_show_says_so() {
        assert_eq!(force("ipv4/unheard_of", "0", "1", &sight(&|_| None, &[])), Force::NotShown);
    }
}
