//! Where each check begins to speak: edits of the host on which all is well that fall just short of a line, and edits that reach it.

mod wire;

use crate::host::{Edits, edited, speaking};

const SPLIT_WRITES: &str = "/measured/server/value/writes";

/// A check, what it is still silent about, and what it speaks about.
pub(crate) type Line = (&'static str, Edits, Edits);

const OF_SERVER_AND_HOST: &[Line] = &[
    // More processes than CPUs: one beside them may be a master or a cache's.
    ("app.overcommit", &[("@server/threads/value/serving", "3")], &[("@server/threads/value/serving", "4")]),
    // A server of one thread where none serves yet.
    (
        "app.workers",
        &[("@server/threads/value/count", "1"), ("@server/threads/value/serving", "0")],
        &[("@server/threads/value/count", "1"), ("@server/threads/value/serving", "1")],
    ),
    // Of the CPUs, those that its threads may use, and no more than a quota pays for.
    (
        "app.overcommit",
        &[("@server/threads/value/cpus", r#"{"0": 2}"#), ("@server/threads/value/serving", "2")],
        &[("@server/threads/value/cpus", r#"{"0": 2}"#), ("@server/threads/value/serving", "3")],
    ),
    (
        "app.overcommit",
        &[("@server/cgroup/value/cpus", "1.1"), ("@server/threads/value/serving", "3")],
        &[("@server/cgroup/value/cpus", "1.0"), ("@server/threads/value/serving", "3")],
    ),
    ("app.locality", &[("@server/options/value/local", "9")], &[("@server/options/value/local", "8")]),
    // Fewer connections may have come the same way by chance.
    (
        "app.order",
        &[("@server/options/value/arrivals", r#"[{"on": 0, "served_on": 1, "connections": 15}]"#)],
        &[("@server/options/value/arrivals", r#"[{"on": 0, "served_on": 1, "connections": 16}]"#)],
    ),
    // One in ten may go another way.
    (
        "app.order",
        &[(
            "@server/options/value/arrivals",
            r#"[{"on": 0, "served_on": 1, "connections": 89}, {"on": 0, "served_on": 0, "connections": 11}]"#,
        )],
        &[(
            "@server/options/value/arrivals",
            r#"[{"on": 0, "served_on": 1, "connections": 90}, {"on": 0, "served_on": 0, "connections": 10}]"#,
        )],
    ),
    (
        "app.backlog",
        &[("@server/listeners/value/0/waiting", "2048")],
        &[("@server/listeners/value/0/waiting", "2049")],
    ),
    (
        "app.backlog",
        &[("/network/counters/value/ListenOverflows", "100")],
        &[("/network/counters/value/ListenOverflows", "101")],
    ),
    (
        "app.files",
        &[("@server/files/value", "[838860, 1048576]")],
        &[("@server/files/value", "[838861, 1048576]")],
    ),
    ("app.files", &[("@server/files/value", "[100, 65536]")], &[("@server/files/value", "[100, 65535]")]),
    // Nobody gets more than the kernel gives.
    (
        "app.files",
        &[("@server/files/value", "[100, 4096]"), ("@set/fs.nr_open/value", r#""4096""#)],
        &[("@server/files/value", "[100, 4096]"), ("@set/fs.nr_open/value", r#""4097""#)],
    ),
    (
        "app.files",
        &[("@server/files/value", "[3276, 4096]"), ("@set/fs.nr_open/value", r#""4096""#)],
        &[("@server/files/value", "[3277, 4096]"), ("@set/fs.nr_open/value", r#""4096""#)],
    ),
    (
        "app.seccomp",
        &[("@server/threads/value/seccomp_filters", r#"{"0": 1, "1": 1}"#)],
        &[("@server/threads/value/seccomp_filters", r#"{"0": 1, "2": 1}"#)],
    ),
    (
        "app.sched",
        &[("@server/threads/value/scheduling", r#"{"other -1": 1, "fifo": 1}"#)],
        &[("@server/threads/value/scheduling", r#"{"other 1": 1, "fifo": 1}"#)],
    ),
    (
        "app.sched",
        &[("@server/threads/value/scheduling", r#"{"rr": 2}"#)],
        &[("@server/threads/value/scheduling", r#"{"idle": 2}"#)],
    ),
    // Held in one percent of the periods since the group was made.
    (
        "app.cgroup",
        &[
            ("@server/cgroup/value/cpus", "2.0"),
            ("@server/cgroup/value/periods", "1000"),
            ("@server/cgroup/value/throttled", "9"),
        ],
        &[
            ("@server/cgroup/value/cpus", "2.0"),
            ("@server/cgroup/value/periods", "1000"),
            ("@server/cgroup/value/throttled", "10"),
        ],
    ),
    ("app.alloc", &[("@server/threads/value/of_largest", "1")], &[("@server/threads/value/of_largest", "2")]),
    (
        "app.alloc",
        &[("@server/threads/value/of_largest", "2"), ("@server/allocator/value", r#""jemalloc""#)],
        &[("@server/threads/value/of_largest", "2"), ("@server/allocator/value", r#""musl""#)],
    ),
    ("app.thp", &[("@server/rss_bytes/value", "268435455")], &[("@server/rss_bytes/value", "268435456")]),
    (
        "app.thp",
        &[("@server/rss_bytes/value", "1073741824"), ("@server/huge_bytes/value", "107374183")],
        &[("@server/rss_bytes/value", "1073741820"), ("@server/huge_bytes/value", "107374182")],
    ),
    ("app.rw", &[("/measured/server/value/reads", "49")], &[("/measured/server/value/reads", "50")]),
    (
        "app.rw",
        &[("/measured/server/value/sends", "60"), (SPLIT_WRITES, "49")],
        &[("/measured/server/value/sends", "60"), (SPLIT_WRITES, "50")],
    ),
    (
        "app.syscalls",
        &[("/measured/server/value/calls/getpid", "149")],
        &[("/measured/server/value/calls/getpid", "150")],
    ),
    ("app.split", &[("/measured/server/value/sends", "129")], &[("/measured/server/value/sends", "130")]),
    ("app.split", &[(SPLIT_WRITES, "29")], &[(SPLIT_WRITES, "30")]),
    (
        "app.log",
        &[("/measured/server/value/file_writes", "49")],
        &[("/measured/server/value/file_writes", "50")],
    ),
    ("app.log", &[("/measured/server/value/syncs", "49")], &[("/measured/server/value/syncs", "50")]),
    ("host.steal", &[("/cpus/lately/value/steal", "2.0")], &[("/cpus/lately/value/steal", "2.1")]),
    ("host.steal", &[("/cpus/since_boot/value/steal", "2.0")], &[("/cpus/since_boot/value/steal", "2.1")]),
    (
        "host.idle",
        &[("/cpus/idle/states/value/1/disabled", "false"), ("/cpus/idle/states/value/1/latency_us", "19")],
        &[("/cpus/idle/states/value/1/disabled", "false"), ("/cpus/idle/states/value/1/latency_us", "20")],
    ),
    (
        "host.clock",
        &[
            ("/kernel/clocksource/value", r#""kvm-clock""#),
            ("/kernel/clocksources/value", r#""kvm-clock hpet""#),
        ],
        &[("/kernel/clocksource/value", r#""kvm-clock""#)],
    ),
    (
        "host.neigh",
        &[("/neighbours/value/0/cpu_percent", "1.9")],
        &[("/neighbours/value/0/cpu_percent", "2.0")],
    ),
    (
        "host.pressure",
        &[("/cpus/pressure/memory/value/avg10", "0.9")],
        &[("/cpus/pressure/memory/value/avg10", "1.0")],
    ),
    ("host.io", &[("/cpus/pressure/io/value/avg10", "4.9")], &[("/cpus/pressure/io/value/avg10", "5.0")]),
    (
        "host.writeback",
        &[("@set/vm.dirty_ratio/value", r#""10""#), ("@set/vm.dirty_background_ratio/value", r#""9""#)],
        &[("@set/vm.dirty_ratio/value", r#""11""#), ("@set/vm.dirty_background_ratio/value", r#""4""#)],
    ),
    (
        "host.writeback",
        &[("@set/vm.dirty_ratio/value", r#""20""#), ("/memory/total_bytes", "17179869183")],
        &[("@set/vm.dirty_ratio/value", r#""20""#), ("/memory/total_bytes", "17179869184")],
    ),
    (
        "host.swap",
        &[("@set/vm.swappiness/value", r#""10""#)],
        &[("@set/vm.swappiness/value", r#""10""#), ("/memory/swaps/value/0/used_bytes", "1")],
    ),
    (
        "host.jit",
        &[("@set/net.core.bpf_jit_harden/value", r#""1""#)],
        &[("@set/net.core.bpf_jit_enable/value", r#""0""#)],
    ),
    (
        "sec.mitig",
        &[
            ("/security/vulnerabilities/value/meltdown", r#""Mitigation: PTI""#),
            ("/kernel/command_line/value", r#""mitigations=off""#),
        ],
        &[
            ("/security/vulnerabilities/value/meltdown", r#""Mitigation: PTI""#),
            ("/kernel/command_line/value", r#""x mitigations=auto""#),
        ],
    ),
    (
        "sec.trace",
        &[("/watchers/tracing/value/instances", r#"["trace"]"#)],
        &[("/watchers/tracing/value/events", r#"["syscalls:sys_enter_read"]"#)],
    ),
    (
        "sec.trace",
        &[("/watchers/tracing/value/tracer", r#""nop""#)],
        &[("/watchers/tracing/value/probes", "1")],
    ),
];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Line> {
    OF_SERVER_AND_HOST.iter().chain(wire::LINES)
}

/// Planted faults: `>` in place of `>=` at any of these lines; a line drawn at twice the figure.
#[test]
fn every_check_is_silent_just_short_of_its_line_and_speaks_at_it() {
    for (id, below, at) in all() {
        let silent = speaking(&edited(below));
        assert!(!silent.contains(*id), "{id} {below:?}: {silent:?}");
        assert!(speaking(&edited(at)).contains(*id), "{id} {at:?}");
    }
}
