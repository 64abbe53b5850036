//! TCP's own settings: ports, memory, pauses.

use dyno_record::audit::Risk;
use dyno_record::facts::Facts;

use super::draft::{
    CONNECTIONS, Check, LATENCY, Looked, MEMORY, Say, Seen, THROUGHPUT, finding, unknown, with_sysctl,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.ports", about: "ports for connections that this machine opens", look: ports },
    Check { id: "net.timewait", about: "closed connections that still wait", look: time_wait },
    Check { id: "net.memory", about: "memory for all of TCP", look: memory },
    Check { id: "net.buffers", about: "how far a connection's buffers may grow", look: buffers },
    Check { id: "net.idle", about: "sending slowly again after a pause", look: idle },
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
    let counters = facts.network.counters.known()?;
    let overflows = counters.get("TCPTimeWaitOverflow").copied().unwrap_or(0);
    let waiting = facts.network.sockets.known()?.get("TCP tw").copied().unwrap_or(0);
    let max = facts.sysctl_number("net.ipv4.tcp_max_tw_buckets")?;
    let found = format!("{waiting} of {max} wait, {overflows} overflows");
    if overflows == 0 && 2 * i128::from(waiting) < i128::from(max) {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "Many connections are closed again at once, and wait",
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
/// Beyond this, buffers are memory that nothing of a local network needs.
const LARGE_BUFFER_BYTES: u64 = 16 << 20;

fn buffers(facts: &Facts) -> Seen {
    let (rmem, wmem) = (facts.sysctl("net.ipv4.tcp_rmem")?, facts.sysctl("net.ipv4.tcp_wmem")?);
    let last =
        |text: &str| text.split_whitespace().last().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let found = format!("tcp_rmem={}, tcp_wmem={}", words(rmem), words(wmem));
    let (name, was) =
        if last(wmem) < last(rmem) { ("net.ipv4.tcp_wmem", wmem) } else { ("net.ipv4.tcp_rmem", rmem) };
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
            .why("What is on its way has to fit into the sender's and the receiver's buffer.");
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

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn idle(facts: &Facts) -> Seen {
    let value = facts.sysctl("net.ipv4.tcp_slow_start_after_idle")?;
    let found = format!("tcp_slow_start_after_idle={value}");
    if value == "0" {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "A kept connection starts slowly again after each pause",
        found,
        "0, where kept connections send large replies",
    )
    .gain(LATENCY, unknown("replies of more than ten packets over long distances; nothing for small ones"))
    .risk(Risk::Operational, "after a pause a burst may meet a road that has become narrow")
    .why("After a pause of a round trip TCP forgets how much the way could carry.");
    Ok(with_sysctl(made, "net.ipv4.tcp_slow_start_after_idle", "0", value).into())
}

fn half_open(facts: &Facts) -> Seen {
    let counters = facts.network.counters.known()?;
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    let (dropped, cookies) = (count("TCPReqQFullDrop"), count("TCPReqQFullDoCookies"));
    let value = facts.sysctl("net.ipv4.tcp_max_syn_backlog")?;
    let found = format!("tcp_max_syn_backlog={value}, {dropped} dropped, {cookies} answered with cookies");
    if dropped + cookies == 0 {
        return Ok(Looked::Fine(found));
    }
    let made = finding("Clients that began to connect found no room", found, "65536, and a longer queue of the listener")
        .gain(CONNECTIONS, unknown("connections are lost, or lose their options"))
        .loses()
        .risk(Risk::None, "")
        .why("A connection is half open until its client has answered. With cookies it is taken without being remembered, and loses what it negotiated.");
    Ok(with_sysctl(made, "net.ipv4.tcp_max_syn_backlog", "65536", value).into())
}
