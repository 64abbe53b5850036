//! Every check of the audit speaks where its trouble is and is silent where it is not: one facts file of a host on which all is
//! well, and for each check what is edited in it to make that check speak.
//!
//! Whoever writes a check writes its line here: the first test walks the list of all checks and fails without one.

use std::collections::BTreeSet;

use dyno_diagnose::audit::{audit, catalogue};
use dyno_record::audit::Goal;

use crate::host::{Edits, edited, speaking};

/// Checks that tell what they saw and never find: nothing that they look at is known to cost anything by itself
/// (docs/ladder.md), or the kernel does not tell it.
const ONLY_TELL: [&str; 3] = ["app.pin", "net.gro", "sec.audit.sticky"];

const CHAIN: &str = "/netfilter/nftables/value";

/// What makes a check speak, and it alone.
pub(crate) const SPEAK: &[(&str, Edits)] = &[
    ("app.workers", &[("@server/threads/value/count", "1")]),
    ("app.overcommit", &[("@server/threads/value/count", "9"), ("@server/threads/value/serving", "9")]),
    (
        "app.foreign",
        &[("@server/listeners/value/0/strangers", r#"[{"pid": 77, "name": "old", "sockets": 1}]"#)],
    ),
    ("app.locality", &[("@server/options/value/local", "4")]),
    // Each CPU's connections go to the other's worker.
    (
        "app.order",
        &[(
            "@server/options/value/arrivals",
            r#"[{"on": 0, "served_on": 1, "connections": 32}, {"on": 1, "served_on": 0, "connections": 32}]"#,
        )],
    ),
    // Set, and its connections come by no queue that can be polled.
    ("app.busypoll", &[("@server/epolls/value/0/busy_poll_usecs", "50")]),
    ("app.backlog", &[("@server/listeners/value/0/waiting", "4000")]),
    ("app.files", &[("@server/files/value", "[100, 1024]")]),
    ("app.seccomp", &[("@server/threads/value/seccomp_filters", r#"{"3": 2}"#)]),
    ("app.spec", &[("@server/threads/value/speculation", r#"{"thread force mitigated": 2}"#)]),
    ("app.sched", &[("@server/threads/value/scheduling", r#"{"other 7": 2}"#)]),
    ("app.cgroup", &[("@server/cgroup/value/cpus", "1.5"), ("@server/cgroup/value/throttled_lately", "5")]),
    ("app.alloc", &[("@server/threads/value/of_largest", "2")]),
    ("app.thp", &[("@server/rss_bytes/value", "1073741824")]),
    ("app.rw", &[("/measured/server/value/reads", "100")]),
    ("app.syscalls", &[("/measured/server/value/calls/getpid", "300")]),
    ("app.split", &[("/measured/server/value/sends", "200")]),
    ("app.log", &[("/measured/server/value/file_writes", "100")]),
    ("sec.mitig", &[("/security/vulnerabilities/value/retbleed", r#""Mitigation: untrained return thunk""#)]),
    ("sec.audit.on", &[("/security/audit/value/enabled", "1")]),
    ("sec.trace", &[("/watchers/tracing/value/tracer", r#""function""#)]),
    ("sec.bpf", &[("/watchers/bpf/value/0/kind", r#""kprobe""#)]),
    ("nf.linear", &[(CHAIN, r#"[{"family": "ip", "hook": "input", "rules": 11}]"#)]),
    ("nf.legacy", &[("/netfilter/legacy/value", r#"[{"family": "ip", "hook": "input", "rules": 101}]"#)]),
    (
        "nf.ct",
        &[(CHAIN, r#"[{"hook": "input", "rules": [{"tests": ["established"], "action": "accept"}]}]"#)],
    ),
    ("nf.ctfull", &[("/netfilter/conntrack/value/count", "60000")]),
    // No hook leads to it: nothing is held against them one by one.
    ("nf.unused", &[(CHAIN, r#"[{"rules": [{"packets": 20000}]}, {"rules": 11}]"#)]),
    ("tap.packet", &[("/network/taps/value/0/protocol", "3")]),
    ("tap.promisc", &[("@eth0/promiscuity", "1")]),
    ("net.rps", &[("@eth0/rps/value/0/value", r#""2""#)]),
    ("net.rfs", &[("@set/net.core.rps_sock_flow_entries/value", r#""32768""#)]),
    ("net.xps", &[("@eth0/xps/value/0/value", r#""0""#), ("@eth0/xps/value/1/value", r#""0""#)]),
    ("net.rss", &[("@eth0/channels/value/is", "1")]),
    ("net.irq", &[("/cpus/interrupts/value/1/effective", r#""0""#)]),
    ("net.coal", &[("@eth0/adaptive_rx/value", "false")]),
    ("net.rings", &[("@eth0/rx_missed", "5"), ("@eth0/rx_missed_lately", "5")]),
    // Packets come by a queue that can be polled, and only the server's own instance polls it.
    (
        "net.busypoll",
        &[
            ("@server/options/value/values/SO_INCOMING_NAPI_ID", r#"{"8193": 10}"#),
            ("@server/epolls/value/0/busy_poll_usecs", "50"),
        ],
    ),
    ("net.defer", &[("@set/net.core.busy_poll/value", r#""50""#), ("@eth0/defer_hard_irqs/value", "0")]),
    ("net.threaded", &[("@eth0/threaded/value", "1")]),
    (
        "net.tso",
        &[("@eth0/features/value", "[\"tx-scatter-gather\"]"), ("@eth0/wanted_features/value", "[]")],
    ),
    ("net.qdisc", &[("@eth0/qdiscs/value/0/kind", r#""tbf""#)]),
    ("net.cc", &[("@server/options/value/values/TCP_CONGESTION", r#"{"bbr": 10}"#)]),
    (
        "net.softnet",
        &[("/network/softnet/value/dropped", "5"), ("/network/softnet/value/lately", "[5, 0, 0]")],
    ),
    (
        "net.prune",
        &[("/network/counters/value/PruneCalled", "9"), ("/network/lately/value/PruneCalled", "9")],
    ),
    ("net.ports", &[("@tcp/ip_local_port_range/value", r#""32768\t60999""#)]),
    ("net.timewait", &[("/network/sockets/value/TCP tw", "60000")]),
    ("net.memory", &[("/network/sockets/value/TCP mem", "30000")]),
    ("net.buffers", &[("@tcp/tcp_rmem/value", r#""4096\t131072\t524288""#)]),
    ("net.idle", &[("@tcp/tcp_slow_start_after_idle/value", r#""1""#)]),
    ("net.tcpopts", &[("@tcp/tcp_sack/value", r#""0""#)]),
    (
        "net.synqueue",
        &[
            ("/network/counters/value/TCPReqQFullDoCookies", "9"),
            ("/network/lately/value/TCPReqQFullDoCookies", "9"),
        ],
    ),
    ("host.clock", &[("/kernel/clocksource/value", r#""hpet""#)]),
    ("host.steal", &[("/cpus/lately/value/steal", "9.0")]),
    ("host.idle", &[("/cpus/idle/states/value/1/disabled", "false")]),
    ("host.freq", &[("/cpus/frequency/governors/value", r#"{"performance": "0", "powersave": "1"}"#)]),
    ("host.neigh", &[("/neighbours/value/0/cpu_percent", "90.0")]),
    ("host.nmi", &[("@set/kernel.nmi_watchdog/value", r#""1""#)]),
    ("host.thp", &[("/memory/thp/value", r#""always madvise [never]""#)]),
    (
        "host.defrag",
        &[
            ("/memory/thp/value", r#""[always] madvise never""#),
            ("/memory/thp_defrag/value", r#""[always] defer defer+madvise madvise never""#),
        ],
    ),
    ("host.swap", &[("/memory/swaps/value/0/used_bytes", "1073741824")]),
    ("host.pressure", &[("/cpus/pressure/memory/value/avg10", "9.0")]),
    ("host.numa", &[("@set/kernel.numa_balancing/value", r#""1""#)]),
    ("host.ksm", &[("/memory/ksm/value", r#""1""#)]),
    // Two more CPUs, kept from the server.
    (
        "host.isolated",
        &[("/cpus/count", "4"), ("/cpus/online/value", r#""0-3""#), ("/cpus/isolated/value", r#""2-3""#)],
    ),
    ("host.turbo", &[("/cpus/frequency/no_turbo/value", "true")]),
    (
        "host.energy",
        &[
            ("/cpus/frequency/governors", r#"{"absent": "governors"}"#),
            ("/cpus/frequency/preferences/value", r#"{"power": "0-1"}"#),
        ],
    ),
    ("host.reclaim", &[("@set/vm.zone_reclaim_mode/value", r#""1""#)]),
    ("host.io", &[("/cpus/pressure/io/value/avg10", "20.0")]),
    ("host.jit", &[("@set/net.core.bpf_jit_harden/value", r#""2""#)]),
    ("host.writeback", &[("@set/vm.dirty_ratio/value", r#""20""#)]),
    ("net.neigh", &[("/network/counters/value/NeighbourEntries", "1000")]),
];

/// What makes a check speak, and another one with it that is about the same thing.
pub(crate) const SPEAK_WITH: &[(&str, &str, Edits)] = &[
    (
        "app.swap",
        "host.swap",
        &[("/memory/swaps/value/0/used_bytes", "1073741824"), ("@server/swapped_bytes/value", "1048576")],
    ),
    (
        "sec.audit.rules",
        "sec.audit.on",
        &[
            ("/security/audit/value/enabled", "1"),
            ("/security/audit/value/rules", r#"[{"list": "exit", "action": "always"}]"#),
        ],
    ),
    (
        "nf.first",
        "nf.ct",
        &[(
            CHAIN,
            r#"[{"family": "ip", "hook": "input", "rules": [
                {"tests": ["address"], "action": "drop"}, {"tests": ["address"], "action": "drop"},
                {"tests": ["address"], "action": "drop"}, {"tests": ["established"], "action": "accept"}
            ]}]"#,
        )],
    ),
    ("nf.nat", "nf.ct", &[(CHAIN, r#"[{"kind": "nat", "rules": [{"action": "masquerade"}]}]"#)]),
];

fn registry() -> BTreeSet<&'static str> {
    catalogue().into_iter().map(|(id, _)| id).collect()
}

/// Planted fault: a new check in any list of the audit; then nothing here makes it speak.
#[test]
fn every_check_of_the_registry_has_a_line_that_makes_it_speak_or_only_tells() {
    let lines: Vec<&str> = SPEAK.iter().map(|(id, _)| *id).collect();
    let with: Vec<&str> = SPEAK_WITH.iter().map(|(id, ..)| *id).collect();
    let all = [&lines[..], &with, &ONLY_TELL].concat();
    assert_eq!(all.len(), registry().len(), "a line too many, or too few");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), registry());
}

/// Planted fault: a check finds on any host (`net.ports` where the range is wide); or it passes over what it should have read, and
/// is silent because it did not look.
#[test]
fn every_check_looks_at_a_host_on_which_all_is_well_and_is_silent() {
    let facts = edited(&[]);
    assert_eq!(speaking(&facts), BTreeSet::new());
    let judged = audit(&facts, Goal::Throughput);
    let fine: BTreeSet<&str> = judged.fine.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(fine, registry(), "{:?} {:?}", judged.not_here, judged.not_looked_at);
}

/// Planted fault: `time_wait` or `neighbours` compares with twice the table's size; then nothing is said of one that is nearly full.
#[test]
fn every_check_speaks_where_its_trouble_is_and_no_other_does() {
    for (id, edits) in SPEAK {
        assert_eq!(speaking(&edited(edits)), [(*id).to_owned()].into(), "{id}");
    }
    for (id, other, edits) in SPEAK_WITH {
        assert_eq!(speaking(&edited(edits)), [id, other].map(|id| (*id).to_owned()).into(), "{id}");
    }
}
