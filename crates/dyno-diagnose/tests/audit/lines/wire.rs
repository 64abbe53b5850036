//! Lines of checks about the way of packets: filters, taps, devices, TCP.

use super::Line;

const CHAIN: &str = "/netfilter/nftables/value";

pub(super) const LINES: &[Line] = &[
    (
        "nf.linear",
        &[(CHAIN, r#"[{"family": "inet", "hook": "output", "rules": 10}]"#)],
        &[(CHAIN, r#"[{"family": "inet", "hook": "output", "rules": 11}]"#)],
    ),
    (
        "nf.legacy",
        &[("/netfilter/legacy/value", r#"[{"family": "ip", "hook": "input", "rules": 100}]"#)],
        &[(
            "/netfilter/legacy/value",
            r#"[{"family": "ip6", "hook": "input", "table": "raw", "rules": 101}]"#,
        )],
    ),
    (
        "nf.ctfull",
        &[("/netfilter/conntrack/value", r#"{"count": 699, "max": 1000, "buckets": 3999}"#)],
        &[("/netfilter/conntrack/value", r#"{"count": 700, "max": 1000, "buckets": 3999}"#)],
    ),
    (
        "nf.ctfull",
        &[("/netfilter/conntrack/value", r#"{"count": 1, "max": 1000, "buckets": 4000}"#)],
        &[(
            "/netfilter/conntrack/value",
            r#"{"count": 1, "max": 1000, "buckets": 4000, "early_drops_lately": 1}"#,
        )],
    ),
    (
        "nf.unused",
        &[(CHAIN, r#"[{"rules": [{"packets": 9999}]}, {"rules": 11}]"#)],
        &[(CHAIN, r#"[{"rules": [{"packets": 10000}]}, {"rules": 11}]"#)],
    ),
    (
        "nf.unused",
        &[(CHAIN, r#"[{"rules": [{"packets": 10000}]}, {"rules": 10}]"#)],
        &[(CHAIN, r#"[{"rules": [{"packets": 10000}, {"packets": 3}]}, {"rules": 11}]"#)],
    ),
    (
        "net.coal",
        &[("@eth0/adaptive_rx/value", "false"), ("@eth0/rx_usecs/value", "16")],
        &[("@eth0/adaptive_rx/value", "false"), ("@eth0/rx_usecs/value", "15")],
    ),
    ("net.rings", &[("@eth0/rx_missed", "5")], &[("@eth0/rx_missed", "6")]),
    (
        "net.rings",
        &[("@eth0/rx_missed_lately", "5"), ("@eth0/rx_missed", "50"), ("@eth0/rx_ring/value/is", "4096")],
        &[("@eth0/rx_missed_lately", "5"), ("@eth0/rx_missed", "50"), ("@eth0/rx_ring/value/is", "4095")],
    ),
    (
        "net.rps",
        &[("@eth0/rps/value/0/value", r#""2""#), ("/cpus/count", "5")],
        &[("@eth0/rps/value/0/value", r#""2""#), ("/cpus/count", "4")],
    ),
    (
        "net.threaded",
        &[("@eth0/threaded/value", "1"), ("/cpus/count", "5")],
        &[("@eth0/threaded/value", "1"), ("/cpus/count", "4")],
    ),
    ("net.softnet", &[("/network/softnet/value/dropped", "5")], &[("/network/softnet/value/dropped", "6")]),
    (
        "net.softnet",
        &[("/network/softnet/value/squeezed", "9")],
        &[("/network/softnet/value/lately", "[0, 9, 0]")],
    ),
    (
        "net.prune",
        &[("/network/counters/value/PruneCalled", "5")],
        &[("/network/counters/value/PruneCalled", "6")],
    ),
    (
        "net.prune",
        &[("/network/counters/value/TCPMemoryPressures", "5")],
        &[
            ("/network/counters/value/TCPMemoryPressures", "6"),
            ("/network/lately/value/TCPMemoryPressures", "1"),
        ],
    ),
    (
        "net.ports",
        &[("@tcp/ip_local_port_range/value", r#""1024\t61024""#)],
        &[("@tcp/ip_local_port_range/value", r#""1024\t61023""#)],
    ),
    (
        "net.timewait",
        &[("/network/sockets/value/TCP tw", "32767")],
        &[("/network/sockets/value/TCP tw", "32768")],
    ),
    (
        "net.timewait",
        &[("/network/counters/value/TCPTimeWaitOverflow", "9")],
        &[
            ("/network/counters/value/TCPTimeWaitOverflow", "9"),
            ("/network/lately/value/TCPTimeWaitOverflow", "1"),
        ],
    ),
    (
        "net.memory",
        &[("/network/sockets/value/TCP mem", "19999")],
        &[("/network/sockets/value/TCP mem", "20000")],
    ),
    (
        "net.buffers",
        &[("@tcp/tcp_rmem/value", r#""4096 131072 1048576""#)],
        &[("@tcp/tcp_rmem/value", r#""4096 131072 1048575""#)],
    ),
    (
        "net.buffers",
        &[("@tcp/tcp_wmem/value", r#""4096 16384 1048576""#)],
        &[("@tcp/tcp_wmem/value", r#""4096 16384 1048575""#)],
    ),
    (
        "net.buffers",
        &[("@tcp/tcp_rmem/value", r#""4096 131072 33554432""#)],
        &[("@tcp/tcp_rmem/value", r#""4096 131072 33554433""#)],
    ),
    (
        "net.buffers",
        &[("@tcp/tcp_wmem/value", r#""4096 16384 33554432""#)],
        &[("@tcp/tcp_wmem/value", r#""4096 16384 33554433""#)],
    ),
    (
        "net.synqueue",
        &[
            ("/network/counters/value/TCPReqQFullDoCookies", "60"),
            ("/network/counters/value/TCPReqQFullDrop", "40"),
        ],
        &[
            ("/network/counters/value/TCPReqQFullDoCookies", "60"),
            ("/network/counters/value/TCPReqQFullDrop", "41"),
        ],
    ),
    (
        "net.synqueue",
        &[("@tcp/tcp_syncookies/value", r#""0""#), ("@tcp/tcp_max_syn_backlog/value", r#""65535""#)],
        &[
            ("@tcp/tcp_syncookies/value", r#""0""#),
            ("@tcp/tcp_max_syn_backlog/value", r#""65535""#),
            ("/network/counters/value/TCPReqQFullDrop", "500"),
            ("/network/lately/value/TCPReqQFullDrop", "1"),
        ],
    ),
    (
        "net.tcpopts",
        &[("@tcp/tcp_timestamps/value", r#""2""#)],
        &[("@tcp/tcp_timestamps/value", r#""0""#), ("@tcp/tcp_sack/value", r#""0""#)],
    ),
    (
        "net.idle",
        &[
            ("@tcp/tcp_slow_start_after_idle/value", r#""1""#),
            ("@server/options/value/values/TCP_CONGESTION", "{}"),
            ("@tcp/tcp_congestion_control/value", r#""bbr""#),
        ],
        &[
            ("@tcp/tcp_slow_start_after_idle/value", r#""1""#),
            ("@server/options/value/values/TCP_CONGESTION", "{}"),
        ],
    ),
    (
        "net.rss",
        &[("@eth0/channels/value", r#"{"is": 2, "max": 16}"#)],
        &[
            ("@eth0/channels/value", r#"{"is": 2, "max": 16}"#),
            ("/cpus/count", "3"),
            ("/cpus/online/value", r#""0-2""#),
        ],
    ),
    (
        "net.defer",
        &[("@set/net.core.busy_poll/value", r#""50""#), ("@eth0/gro_flush_ns/value", "1")],
        &[("@set/net.core.busy_poll/value", r#""50""#), ("@eth0/gro_flush_ns/value", "0")],
    ),
    (
        "net.neigh",
        &[("/network/counters/value/NeighbourEntries", "819")],
        &[("/network/counters/value/NeighbourEntries", "820")],
    ),
    (
        "net.neigh",
        &[("/network/counters/value/NeighbourTableFull", "9")],
        &[
            ("/network/counters/value/NeighbourTableFull", "9"),
            ("/network/lately/value/NeighbourTableFull", "1"),
        ],
    ),
    (
        "tap.packet",
        &[("/network/taps/value/0/protocol", "2054")],
        &[(
            "/network/taps/value",
            r#"[{"protocol": 3, "pid": 5, "owner": "d", "device": "eth0", "filter": 4}, {"protocol": 2048}, {"protocol": 34525, "pid": 5, "owner": "d", "ring_bytes": 65536}]"#,
        )],
    ),
    ("tap.promisc", &[("@eth0/promiscuity", "1"), ("@eth0/master", "3")], &[("@eth0/promiscuity", "1")]),
];
