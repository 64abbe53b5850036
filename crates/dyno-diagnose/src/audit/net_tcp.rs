//! TCP's own settings: ports, memory, pauses.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::fact::Gap;
use dyno_record::facts::Facts;

use super::draft::{
    CONNECTIONS, Check, LATENCY, Looked, MEMORY, Say, Seen, THROUGHPUT, finding, unknown, with_sysctl,
};
use super::moved::{Moved, OF_CONNECTIONS, counted, moved, only_told};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.ports", about: "ports for connections that this machine opens", look: ports },
    Check { id: "net.timewait", about: "closed connections that still wait", look: time_wait },
    Check { id: "net.memory", about: "memory for all of TCP", look: memory },
    Check { id: "net.buffers", about: "how far a connection's buffers may grow", look: buffers },
    Check { id: "net.idle", about: "sending slowly again after a pause", look: idle },
    Check { id: "net.tcpopts", about: "what TCP agrees on when a connection begins", look: options },
    Check { id: "net.synqueue", about: "connections that are half open", look: half_open },
];

/// Ports from which a proxy or a load generator is short of them: the default has 28,232.
const PORTS_WANTED: i64 = 60_000;

fn ports(facts: &Facts) -> Seen {
    let value = facts.sysctl("net.ipv4.ip_local_port_range")?;
    let ends: Vec<i64> = value.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [first, last] = ends[..] else { return Ok(Looked::fine(value)) };
    let found = format!("{first} to {last}: {} ports", last - first + 1);
    if last - first >= PORTS_WANTED {
        return Ok(Looked::Fine(found));
    }
    let made = finding("A proxy here can open few connections to one address", found, "1024 to 65535")
        .gain(CONNECTIONS, unknown("a limit, not a speed"))
        .risk(Risk::Operational, "a port that a server wants at its start may be taken")
        .why("Each connection to the same address and port needs a port of its own at this end.");
    Ok(with_sysctl(made, "net.ipv4.ip_local_port_range", "1024 65535", value).into())
}

fn time_wait(facts: &Facts) -> Seen {
    let (lately, overflows) = counted(facts, &["TCPTimeWaitOverflow"])?;
    let waiting = facts.network.sockets.known()?.get("TCP tw").copied().unwrap_or(0);
    let max = facts.sysctl_number("net.ipv4.tcp_max_tw_buckets")?;
    let found = format!("{waiting} of {max} wait, {overflows} overflows (now {lately})");
    if lately == 0 && 2 * i128::from(waiting) < i128::from(max) {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "Many connections are closed soon after they were opened, and keep their ports for a minute",
        found,
        "connections that are kept, or a larger table",
    )
    .gain(CONNECTIONS, unknown("a late packet may be taken for a new connection's"))
    .risk(Risk::Operational, "more memory, about 200 bytes each")
    .why(
        "A closed connection keeps its ports for a minute. Connections that are kept open need none of this.",
    );
    Ok(with_sysctl(made, "net.ipv4.tcp_max_tw_buckets", &(max * 4).to_string(), &max.to_string()).into())
}

fn memory(facts: &Facts) -> Seen {
    let pages = facts.network.sockets.known()?.get("TCP mem").copied().unwrap_or(0);
    let value = facts.sysctl("net.ipv4.tcp_mem")?;
    let limits: Vec<u64> = value.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, pressure, max] = limits[..] else { return Ok(Looked::fine(value)) };
    let found = format!("{pages} pages in use; pressure from {pressure}, at most {max}");
    if pages < pressure {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "TCP is short of memory: buffers shrink, and new data may be refused",
        found,
        "limits twice as high",
    )
    .gain(CONNECTIONS, unknown("connections are slowed and lost"))
    .loses()
    .risk(Risk::Operational, "other programs have less memory")
    .why(
        "Above the middle limit every connection's buffers are kept small; at the last one data is dropped.",
    );
    let wanted = limits.iter().map(|limit| (limit * 2).to_string()).collect::<Vec<_>>().join(" ");
    Ok(with_sysctl(made, "net.ipv4.tcp_mem", &wanted, value).into())
}

/// What 100 Mbit/s over 80 ms need; the kernel's defaults are 4 and 6 MB.
const BUFFER_BYTES: u64 = 1 << 20;
/// Beyond this, somebody has let buffers grow further than any kernel does by itself: 32 MB since Linux 6.18, 6 MB before
/// (net/ipv4/tcp.c, tcp_init).
const LARGE_BUFFER_BYTES: u64 = 32 << 20;

fn buffers(facts: &Facts) -> Seen {
    let (rmem, wmem) = (facts.sysctl("net.ipv4.tcp_rmem")?, facts.sysctl("net.ipv4.tcp_wmem")?);
    let last =
        |text: &str| text.split_whitespace().last().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let found = format!("tcp_rmem={}, tcp_wmem={}", words(rmem), words(wmem));
    let (name, was) =
        if last(wmem) < last(rmem) { ("net.ipv4.tcp_wmem", wmem) } else { ("net.ipv4.tcp_rmem", rmem) };
    if let Some(why) = unused(facts, name) {
        return Ok(Looked::Fine(format!("{found}; {why}")));
    }
    let set = |last: u64| {
        let mut all: Vec<String> = was.split_whitespace().map(str::to_owned).collect();
        all.pop();
        all.push(last.to_string());
        all.join(" ")
    };
    if last(was) < BUFFER_BYTES {
        let made = finding("A connection's buffers may not grow far", found, "4 MB or more")
            .gain(THROUGHPUT, unknown("large bodies over long distances; nothing for small ones"))
            .risk(Risk::Operational, "each connection may take more memory")
            .why("Data that was sent and is not yet acknowledged has to fit into the buffers of both ends.");
        return Ok(with_sysctl(made, name, &set(4 << 20), was).into());
    }
    if last(rmem).max(last(wmem)) <= LARGE_BUFFER_BYTES {
        return Ok(Looked::Fine(found));
    }
    let (name, was) =
        if last(rmem) > last(wmem) { ("net.ipv4.tcp_rmem", rmem) } else { ("net.ipv4.tcp_wmem", wmem) };
    let most: Vec<&str> = was.split_whitespace().collect();
    let wanted =
        format!("{} {} {}", most.first().unwrap_or(&"4096"), most.get(1).unwrap_or(&"131072"), 6 << 20);
    let made = finding(
        "One connection may take much memory for its buffers",
        found,
        "6 MB, where connections are many",
    )
    .gain(MEMORY, unknown("only connections that are read or sent slowly use it"))
    .risk(Risk::Operational, "large bodies over long distances are slower")
    .why("A receiver that stops reading lets the buffer grow to its limit.");
    Ok(with_sysctl(made, name, &wanted, was).into())
}

/// Why a larger buffer would not be used, where something else keeps it small.
pub(super) fn unused(facts: &Facts, name: &str) -> Option<String> {
    let is_off = |other: &str| facts.sysctl(other).is_ok_and(|value| value.trim() == "0");
    if is_off("net.ipv4.tcp_window_scaling") {
        return Some("net.ipv4.tcp_window_scaling=0 holds every window below 64 KB, whatever the buffers (net.tcpopts)".into());
    }
    let is_receiving = name.ends_with("tcp_rmem");
    (is_receiving && is_off("net.ipv4.tcp_moderate_rcvbuf")).then(|| {
        "net.ipv4.tcp_moderate_rcvbuf=0: buffers do not grow, whatever their limit (net.tcpopts)".into()
    })
}

/// Settings that guides for hardening turn off, and what is missing then.
const OPTIONS: [(&str, &str); 4] = [
    ("net.ipv4.tcp_window_scaling", "no more than 64 kB can be on its way"),
    ("net.ipv4.tcp_sack", "after a loss, what has arrived is sent again too"),
    ("net.ipv4.tcp_timestamps", "how long a packet takes is guessed from few of them"),
    ("net.ipv4.tcp_moderate_rcvbuf", "receive buffers stay as small as they begin"),
];

/// RFC 7323 (windows, timestamps), RFC 2018 (selective acknowledgements): all are on by default.
fn options(facts: &Facts) -> Seen {
    let mut off = Vec::new();
    for (name, what) in OPTIONS {
        let value = facts.sysctl(name)?;
        if value.trim() == "0" {
            off.push((name, what));
        }
    }
    let Some((_, first)) = off.first() else { return Ok(Looked::fine("all of them are on")) };
    let names: Vec<String> = off.iter().map(|(name, _)| format!("{name}=0")).collect();
    let made = finding("Part of TCP that long and lossy ways need is turned off", names.join(", "), "1, as the kernel has it by default")
        .gain(THROUGHPUT, unknown("large replies over long distances, or where packets are lost; nothing on a quiet local network"))
        .risk(Risk::Operational, "somebody turned it off for a reason: against attacks of 2019 (SACK), or to hide how long the machine runs (timestamps)")
        .why(&format!("Both ends agree on it when a connection begins. Without it {first}."))
        .choice();
    let set = |value: &str| {
        off.iter().map(|(name, _)| format!("sudo sysctl -w {name}={value}")).collect::<Vec<_>>()
    };
    let see = off.iter().map(|(name, _)| format!("sysctl {name}")).collect();
    let made = AuditFinding { see, apply: set("1"), revert: set("0"), ..made };
    let file = |name: &str| What::File(format!("/proc/sys/{}", name.replace('.', "/")));
    Ok(off.iter().fold(made, |made, (name, _)| made.set(file(name), "1")).into())
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn idle(facts: &Facts) -> Seen {
    let value = facts.sysctl("net.ipv4.tcp_slow_start_after_idle")?;
    let found = format!("tcp_slow_start_after_idle={value}");
    if value == "0" {
        return Ok(Looked::Fine(found));
    }
    if let Some(why) = nobody_asks(facts) {
        return Ok(Looked::Fine(format!("{found}; no effect here: {why}")));
    }
    let made = finding(
        "A kept connection starts slowly again after each pause",
        found,
        "0, where kept connections send large replies",
    )
    .gain(LATENCY, unknown("replies of more than ten packets over long distances; nothing for small ones"))
    .risk(Risk::Operational, "after a pause it may send faster than the network can take by now")
    .why("After a short pause TCP forgets how fast the network was, and begins slowly again.");
    Ok(with_sysctl(made, "net.ipv4.tcp_slow_start_after_idle", "0", value).into())
}

/// Whether congestion control has a rate of its own: then the kernel does not slow down after a pause, whatever this says
/// (net/ipv4/tcp.h, `tcp_slow_start_after_idle_check`: `cong_control`).
fn nobody_asks(facts: &Facts) -> Option<String> {
    let has_rate = |name: &str| name.starts_with("bbr");
    let system = facts.sysctl("net.ipv4.tcp_congestion_control").ok()?;
    let options = facts.server.as_ref().and_then(|server| server.options.value());
    let used = options.and_then(|options| options.values.get("TCP_CONGESTION"));
    // What connections use counts where they were asked: a listener may have another one than the system.
    match used.filter(|used| !used.is_empty()) {
        Some(used) if used.keys().all(|name| has_rate(name)) => {
            Some("the server's connections use bbr, which never asks for it".into())
        }
        Some(_) => None,
        None => has_rate(system).then(|| format!("connections use {system}, which never asks for it")),
    }
}

fn half_open(facts: &Facts) -> Seen {
    let dropped = counted(facts, &["TCPReqQFullDrop"])?;
    let cookies = counted(facts, &["TCPReqQFullDoCookies"])?;
    let value = facts.sysctl("net.ipv4.tcp_max_syn_backlog")?;
    let found = format!(
        "tcp_max_syn_backlog={value}{}, {} dropped (now {}), {} answered with cookies (now {})",
        if is_void(facts) { " (nobody asks for it: tcp_syncookies is on)" } else { "" },
        dropped.1,
        dropped.0,
        cookies.1,
        cookies.0
    );
    let connections = counted(facts, &["PassiveOpens"])?.1;
    let moved = moved((dropped.0 + cookies.0, dropped.1 + cookies.1), connections, OF_CONNECTIONS);
    if moved == Moved::No {
        return Ok(Looked::Fine(found));
    }
    let made = finding("Clients that began to connect found no room", found, "a longer queue of the listener")
        .gain(CONNECTIONS, unknown("connections are lost, or lose their options"))
        .risk(Risk::None, "")
        .why("A connection is half open until its client has answered. With cookies it is taken without being remembered, and loses what it negotiated.");
    // With cookies on, the kernel asks for the listener's own queue alone (net/ipv4/tcp_input.c, tcp_conn_request).
    let made = match (facts.sysctl_number("net.ipv4.tcp_syncookies")?, value.trim().parse::<u64>()) {
        (0, Ok(most)) if most < HALF_OPEN_WANTED => {
            let wanted = HALF_OPEN_WANTED.to_string();
            with_sysctl(made, "net.ipv4.tcp_max_syn_backlog", &wanted, value)
        }
        _ => longer_queue(facts, made)?,
    };
    Ok(if moved == Moved::Now { made.loses() } else { only_told(made) }.into())
}

/// Whether the kernel never looks at the limit of half-open connections: it does not while cookies are on.
fn is_void(facts: &Facts) -> bool {
    facts.sysctl_number("net.ipv4.tcp_syncookies").is_ok_and(|cookies| cookies != 0)
}

/// Half-open connections for which there should be room.
const HALF_OPEN_WANTED: u64 = 65_536;
/// A queue of a listener that nobody finds too short.
pub(super) const QUEUE_WANTED: u64 = 65_535;

/// A longer queue for listeners: by the limit of what a server may ask for, or, where that is high already, by what it asks.
pub(super) fn longer_queue(facts: &Facts, finding: AuditFinding) -> Result<AuditFinding, Gap> {
    let most = facts.sysctl("net.core.somaxconn")?;
    let limit: u64 = most.trim().parse().unwrap_or(0);
    let listeners = facts.server.as_ref().and_then(|server| server.listeners.value());
    let asked = listeners.into_iter().flatten().map(|one| u64::from(one.backlog)).max();
    let is_the_limit = asked.is_none_or(|asked| asked >= limit);
    if limit < QUEUE_WANTED && is_the_limit {
        let mut made = with_sysctl(finding, "net.core.somaxconn", &QUEUE_WANTED.to_string(), most);
        made.apply.push("restart the server: a listener keeps the length that it was made with".into());
        return Ok(made);
    }
    let asks = asked.map_or_else(|| "less".to_owned(), |asked| asked.to_string());
    Ok(finding
        .hand(&format!(
            "net.core.somaxconn={limit} would allow more than the server asks for ({asks}): the length is the argument of its listen()"
        ))
        .see(&["ss -ltn  # Send-Q is the length"])
        .apply(&["the server's own setting: nginx 'listen … backlog=65535', most others have one of that name; then restart it"])
        .revert(&["the setting as it was; then restart it"]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Goal, Level};
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Server, ServerListener, SocketOptions};

    fn facts(sysctls: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        facts.network.counters = Fact::Value([("TCPReqQFullDoCookies".to_owned(), 9)].into());
        facts.network.lately = facts.network.counters.clone();
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        for (name, value) in sysctls {
            facts.sysctls.insert(format!("net.{name}"), Fact::Value((*value).to_owned()));
        }
        facts
    }

    fn found(facts: &Facts, id: &str) -> Option<AuditFinding> {
        let goals = Goal::ALL.into_iter();
        goals.flat_map(|goal| crate::audit::audit(facts, goal).findings).find(|one| one.id == id)
    }

    fn fine(facts: &Facts, id: &str) -> String {
        let all = crate::audit::audit(facts, Goal::Latency).fine;
        all.into_iter().find(|one| one.id == id).map(|one| one.found).unwrap_or_default()
    }

    /// Planted fault: cookies are not asked for; then a limit is raised that the kernel does not look at.
    #[test]
    fn with_cookies_on_the_listeners_own_queue_is_advised_and_without_them_the_limit() {
        let of = |cookies, somaxconn, half_open| {
            let facts = facts(&[
                ("ipv4.tcp_syncookies", cookies),
                ("ipv4.tcp_max_syn_backlog", half_open),
                ("core.somaxconn", somaxconn),
            ]);
            found(&facts, "net.synqueue").unwrap()
        };
        assert!(of("1", "4096", "512").found.contains("nobody asks for it: tcp_syncookies"));
        assert!(!of("0", "4096", "512").found.contains("nobody asks"));
        let changed = |made: AuditFinding| made.changes.first().map(|spec| spec.what.to_string());
        assert_eq!(changed(of("1", "4096", "512")), Some("/proc/sys/net/core/somaxconn".into()));
        assert_eq!(changed(of("0", "4096", "512")), Some("/proc/sys/net/ipv4/tcp_max_syn_backlog".into()));
        assert_eq!(
            changed(of("0", "4096", "262144")),
            Some("/proc/sys/net/core/somaxconn".into()),
            "never lowered"
        );
        let by_hand = of("1", "65535", "512");
        assert!(by_hand.changes.is_empty() && by_hand.by_hand.contains("listen()"), "{by_hand:?}");
    }

    /// Planted fault: the counter since boot is judged; then one cookie is a High for ever.
    #[test]
    fn cookies_that_were_sent_once_change_nothing() {
        let mut facts = facts(&[
            ("ipv4.tcp_syncookies", "1"),
            ("ipv4.tcp_max_syn_backlog", "512"),
            ("core.somaxconn", "4096"),
        ]);
        facts.network.lately = Fact::Value([].into());
        let of = |facts: &mut Facts, opened| {
            let counters = [("TCPReqQFullDoCookies", 9), ("PassiveOpens", opened)];
            facts.network.counters = Fact::Value(counters.map(|(name, n)| (name.to_owned(), n)).into());
            found(facts, "net.synqueue")
        };
        assert_eq!(of(&mut facts, 1_000_000), None);
        let told = of(&mut facts, 100).unwrap();
        assert_eq!((told.changes.len(), told.level), (0, Level::Low), "{told:?}");
    }

    #[test]
    fn a_server_that_asks_for_a_short_queue_is_told_to_ask_for_more() {
        let mut facts = facts(&[
            ("ipv4.tcp_syncookies", "1"),
            ("ipv4.tcp_max_syn_backlog", "512"),
            ("core.somaxconn", "4096"),
        ]);
        let listener =
            ServerListener { local: "0.0.0.0:80".into(), backlog: 128, ..ServerListener::default() };
        facts.server = Some(Server { listeners: Fact::Value(vec![listener]), ..Server::default() });
        let made = found(&facts, "net.synqueue").unwrap();
        assert!(made.changes.is_empty() && made.by_hand.contains("(128)"), "{made:?}");
    }

    #[test]
    fn options_that_somebody_turned_off_are_one_finding_and_each_a_change() {
        let of = |sack, timestamps| {
            facts(&[
                ("ipv4.tcp_window_scaling", "1"),
                ("ipv4.tcp_sack", sack),
                ("ipv4.tcp_timestamps", timestamps),
                ("ipv4.tcp_moderate_rcvbuf", "1"),
            ])
        };
        assert_eq!(found(&of("1", "1"), "net.tcpopts"), None);
        let both = found(&of("0", "0"), "net.tcpopts").unwrap();
        assert_eq!((both.changes.len(), both.apply.len(), both.revert.len()), (2, 2, 2));
    }

    /// Planted fault: congestion control is not asked for; then a setting is changed that bbr never reads.
    #[test]
    fn slow_start_after_a_pause_is_no_finding_where_nobody_asks_for_it() {
        let of = |system: &str| {
            facts(&[("ipv4.tcp_slow_start_after_idle", "1"), ("ipv4.tcp_congestion_control", system)])
        };
        assert!(found(&of("cubic"), "net.idle").is_some());
        assert_eq!(found(&of("bbr"), "net.idle"), None);
        assert!(fine(&of("bbr"), "net.idle").contains("no effect here: connections use bbr"));
        let mut server = of("bbr");
        let used = [("TCP_CONGESTION".to_owned(), [("cubic".to_owned(), 4)].into())].into();
        let options = SocketOptions { asked: 4, values: used, ..SocketOptions::default() };
        server.server = Some(Server { options: Fact::Value(options), ..Server::default() });
        assert!(found(&server, "net.idle").is_some(), "its connections use another one");
    }

    /// Planted fault: 16 MB; then what a new kernel has by itself is told as somebody's choice.
    #[test]
    fn what_a_kernel_has_by_default_is_not_too_much() {
        let of = |most: &str| {
            let rmem = format!("4096 131072 {most}");
            found(&facts(&[("ipv4.tcp_rmem", &rmem), ("ipv4.tcp_wmem", "4096 16384 4194304")]), "net.buffers")
        };
        assert_eq!(of("33554432"), None);
        assert!(of("67108864").is_some());
    }

    #[test]
    fn buffers_that_nothing_would_use_are_not_advised_to_grow() {
        let of = |scaling, moderate| {
            facts(&[
                ("ipv4.tcp_rmem", "4096 131072 524288"),
                ("ipv4.tcp_wmem", "4096 16384 4194304"),
                ("ipv4.tcp_window_scaling", scaling),
                ("ipv4.tcp_moderate_rcvbuf", moderate),
            ])
        };
        assert!(found(&of("1", "1"), "net.buffers").is_some());
        assert_eq!(found(&of("0", "1"), "net.buffers"), None);
        assert_eq!(found(&of("1", "0"), "net.buffers"), None);
    }
}
