//! Who watches, and what stands before system calls: audit, the kernel's tracer, BPF programs, measures against the processor's
//! weaknesses.

use std::collections::BTreeMap;
use std::io;

use dyno_record::fact::Fact;
use dyno_record::facts::{Audit, AuditRule, BpfProgram, Security, Tracing, Watchers};
use dyno_sys::netlink::audit;
use dyno_sys::{bpf, proc};

use super::limits::{PROGRAMS_MAX, RULES_MAX};
use super::read::{fact, text, unread};

const WEAKNESSES: &str = "/sys/devices/system/cpu/vulnerabilities";
/// Where the tracer's files are, where somebody has mounted them. The older place mounts them when it is looked at.
const TRACING: &str = "/sys/kernel/tracing";
/// Kinds of BPF programs by number (`enum bpf_prog_type`).
const KINDS: [&str; 33] = [
    "unspec",
    "socket_filter",
    "kprobe",
    "sched_cls",
    "sched_act",
    "tracepoint",
    "xdp",
    "perf_event",
    "cgroup_skb",
    "cgroup_sock",
    "lwt_in",
    "lwt_out",
    "lwt_xmit",
    "sock_ops",
    "sk_skb",
    "cgroup_device",
    "sk_msg",
    "raw_tracepoint",
    "cgroup_sock_addr",
    "lwt_seg6local",
    "lirc_mode2",
    "sk_reuseport",
    "flow_dissector",
    "cgroup_sysctl",
    "raw_tracepoint_writable",
    "cgroup_sockopt",
    "tracing",
    "struct_ops",
    "ext",
    "lsm",
    "sk_lookup",
    "syscall",
    "netfilter",
];

/// Measures against weaknesses, and audit.
pub(super) fn security() -> Security {
    let vulnerabilities = fact(WEAKNESSES, proc::names(WEAKNESSES, 64)).map(|names| {
        let read =
            |name: String| (name.clone(), proc::text(&format!("{WEAKNESSES}/{name}")).unwrap_or_default());
        names.into_iter().map(read).collect::<BTreeMap<_, _>>()
    });
    Security { vulnerabilities, audit: audit_facts() }
}

fn audit_facts() -> Fact<Audit> {
    // What a refusal means here: the kernel answers the first user namespace alone.
    match audit::status().and_then(|status| Ok((status, audit::rules(RULES_MAX)?))) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => unread(
            "audit",
            error.raw_os_error(),
            "audit answers only processes of the host's first namespaces",
            "root on the host itself, outside of containers",
        ),
        asked => fact("audit", asked).map(|(status, rules)| Audit {
            enabled: status.enabled,
            daemon: status.daemon,
            lost: status.lost,
            rules: rules.into_iter().map(rule).collect(),
        }),
    }
}

fn rule(rule: audit::Rule) -> AuditRule {
    AuditRule {
        list: rule.list.into(),
        action: rule.action.into(),
        system_calls: rule.system_calls,
        fields: rule.fields,
        of_file: rule.of_file,
    }
}

/// The tracer and BPF.
pub(super) fn watchers() -> Watchers {
    let programs = fact("BPF programs", bpf::loaded(PROGRAMS_MAX));
    Watchers {
        tracing: tracing(),
        bpf: programs.map(|all| all.into_iter().map(program).collect()),
        bpf_stats: text("/proc/sys/kernel/bpf_stats_enabled"),
    }
}

fn program(loaded: bpf::Loaded) -> BpfProgram {
    let kind = KINDS.get(loaded.kind as usize).copied().unwrap_or("other");
    BpfProgram { id: loaded.id, name: loaded.name, kind: kind.into() }
}

fn tracing() -> Fact<Tracing> {
    let read = |file: &str| proc::text(&format!("{TRACING}/{file}"));
    let tracer = match read("current_tracer") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Not mounted is not absent: a tracer can be at work all the same.
            return unread(
                "tracefs",
                error.raw_os_error(),
                "the tracer's files are not mounted",
                "sudo mount -t tracefs tracefs /sys/kernel/tracing",
            );
        }
        tracer => tracer,
    };
    let lines = |file: &str| read(file).map_or(0, |text| text.lines().count() as u32);
    fact("tracefs", tracer).map(|tracer| Tracing {
        tracer,
        // One file lists what is on; asking each event's own file would be 2,000 reads.
        events: read("set_event")
            .map(|text| text.lines().take(PROGRAMS_MAX).map(str::to_owned).collect())
            .unwrap_or_default(),
        probes: lines("kprobe_events") + lines("uprobe_events"),
        instances: proc::names(&format!("{TRACING}/instances"), PROGRAMS_MAX).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_programs_have_the_kernels_numbers() {
        let kind = |number| program(bpf::Loaded { kind: number, ..bpf::Loaded::default() }).kind;
        assert_eq!(
            (kind(2).as_str(), kind(6).as_str(), kind(17).as_str()),
            ("kprobe", "xdp", "raw_tracepoint")
        );
        assert_eq!((kind(26).as_str(), kind(99).as_str()), ("tracing", "other"));
    }

    #[test]
    fn what_may_not_be_asked_is_no_silence() {
        // As root in the first namespaces it is a value; anywhere else it says why not.
        for known in [audit_facts().known().is_ok(), tracing().known().is_ok()] {
            let _ = known;
        }
        match audit_facts() {
            Fact::Value(audit) => assert!(audit.enabled <= 2),
            Fact::Absent(what) => assert_eq!(what, "audit"),
            Fact::Unread(why) => assert!(!why.why.is_empty()),
        }
    }
}
