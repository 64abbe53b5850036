//! What stands before every system call or return from the kernel: measures against weaknesses of the processor, audit, tracers.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::fact::{Gap, Unread};
use dyno_record::facts::Facts;

use super::draft::{Check, FAST, Looked, Say, Seen, counted, finding, measured, published, unknown};
use super::here;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "sec.mitig", about: "measures against weaknesses of the processor", look: mitigations },
    Check { id: "sec.audit.on", about: "whether audit is on", look: audit_on },
    Check { id: "sec.audit.rules", about: "audit rules for system calls", look: audit_rules },
    Check {
        id: "sec.audit.sticky",
        about: "tasks that still pay for an audit that was on",
        look: audit_sticky,
    },
    Check { id: "sec.trace", about: "the kernel's own tracer", look: trace },
    Check { id: "sec.bpf", about: "BPF programs on the way of calls and packets", look: bpf },
];

/// Kinds of BPF programs that run for system calls, scheduling or packets.
const BPF_ON_PATH: [&str; 13] = [
    "kprobe",
    "tracepoint",
    "raw_tracepoint",
    "raw_tracepoint_writable",
    "tracing",
    "perf_event",
    "lsm",
    "xdp",
    "sched_cls",
    "cgroup_skb",
    "sock_ops",
    "sk_skb",
    "struct_ops",
];

fn mitigations(facts: &Facts) -> Seen {
    let all = facts.security.vulnerabilities.known()?;
    let line = facts.kernel.command_line.value().cloned().unwrap_or_default();
    let on: Vec<&str> = all
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation:"))
        .map(|(name, _)| name.as_str())
        .collect();
    if on.is_empty() {
        return Ok(Looked::fine(format!("no measure is in force on {}", counted(all.len(), "weakness"))));
    }
    let words =
        line.split_whitespace().filter(|word| word.contains("mitigations=")).collect::<Vec<_>>().join(" ");
    if words.split(' ').any(|word| word == "mitigations=off") {
        return Ok(Looked::fine(format!("mitigations=off is set; still in force: {}", on.join(", "))));
    }
    let said =
        if words.is_empty() { "nothing about them on the kernel's command line".into() } else { words };
    Ok(finding(
        "The kernel works around weaknesses of the processor at each system call and switch",
        format!("in force: {}; {said}", on.join(", ")),
        "leave them, unless nothing but your own code ever runs here",
    )
    .gain(FAST, published(28.0, "all of them off, on a processor of 2018"))
    .choice()
    .risk(Risk::Reboot, "any program on this machine, or in a guest of it, may read the memory of others")
    .why("So that no program reads another one's memory, the kernel throws away what the processor has guessed, at each system call and each switch between programs.")
    .see(&["grep . /sys/devices/system/cpu/vulnerabilities/*"])
    .apply(&["add mitigations=off to the kernel's command line in your boot loader, and reboot"])
    .revert(&["remove it again, and reboot"])
    .into())
}

fn audit_on(facts: &Facts) -> Seen {
    let audit = facts.security.audit.known()?;
    let found = format!("enabled={}, daemon={}, lost={}", audit.enabled, audit.daemon, audit.lost);
    if audit.enabled == 0 {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "Audit is on: each system call is prepared to be written down",
        found,
        "off, where nobody reads it",
    )
    .gain(FAST, measured(0.0, 1.0, "audit on without rules, against off"))
    .risk(Risk::Security, "nothing is written down any more; some rules of an organisation demand it")
    .why("A program that audit watches takes a slower way into the kernel at each system call.")
    .see(&["sudo auditctl -s"]);
    if audit.enabled == LOCKED {
        return Ok(until_boot(made, "delete the line -e 2, and add -e 0").into());
    }
    Ok(made
        .hand(MACHINES)
        .apply(&["sudo auditctl -e 0  # then restart the server: a task that began before stays marked"])
        .revert(&["sudo auditctl -e 1"])
        .into())
}

fn audit_rules(facts: &Facts) -> Seen {
    let audit = facts.security.audit.known()?;
    let always: Vec<_> =
        audit.rules.iter().filter(|rule| rule.list == "exit" && rule.action == "always").collect();
    // Those about one file wait by its number, and are asked only for calls that touched it.
    let of_files = always.iter().filter(|rule| rule.of_file).count();
    let on_exit = always.len() - of_files;
    let spared = audit.rules.iter().any(|rule| rule.list == "task" && rule.action == "never");
    let found = format!(
        "{} for system calls, {of_files} for single files, {} in all",
        counted(on_exit, "rule"),
        audit.rules.len()
    );
    if on_exit == 0 || spared || audit.enabled == 0 {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        format!("{} of audit are asked at the end of each system call", counted(on_exit, "rule")),
        found,
        "no rules for system calls, or a rule that spares new tasks: never,task",
    )
    .gain(FAST, measured(3.0, 11.0, "11 rules; 3 % on a small server, 11 % on nginx"))
    .risk(Risk::Security, "what these rules would have written down is not written down")
    .why("Every rule is compared with every system call when it ends, whether it is about that call or not.")
    .see(&["sudo auditctl -l"]);
    if audit.enabled == LOCKED {
        return Ok(until_boot(made, "add the line -a never,task before the others").into());
    }
    Ok(made
        .hand(MACHINES)
        .apply(&[
            "sudo auditctl -a never,task  # spares every task that begins from now on",
            "sudo systemctl restart SERVER  # a task that began before stays marked until it ends",
        ])
        .revert(&[
            "sudo auditctl -d never,task",
            "sudo systemctl restart SERVER  # so that it is audited again",
        ])
        .into())
}

/// `auditctl -e 2`: until the next boot nobody may change anything.
const LOCKED: u32 = 2;
/// Why tune does not touch audit.
const MACHINES: &str =
    "audit is the whole machine's, and what is not written down while it is off is lost for good";

fn until_boot(made: AuditFinding, edit: &str) -> AuditFinding {
    made.hand("audit is locked (-e 2): until the next boot the kernel takes no change of it")
        .apply(&[&format!("in /etc/audit/rules.d/*.rules {edit}"), "sudo augenrules --load; sudo reboot"])
        .revert(&["the files as they were", "sudo augenrules --load; sudo reboot"])
}

/// Audit that was ever on marks tasks; no interface tells it, only the time of a system call does.
fn audit_sticky(facts: &Facts) -> Seen {
    let audit = facts.security.audit.known()?;
    let spared = audit.rules.iter().any(|rule| rule.list == "task" && rule.action == "never");
    if spared {
        return Ok(Looked::fine("a rule never,task spares new tasks"));
    }
    let why = "the kernel does not say it; only the time of a system call in a new process shows it";
    let here = here::measured(facts).and_then(|measured| measured.call_ns.value());
    let (took, needs) = match here {
        Some(call) => {
            (format!(": {} here; elsewhere 130 ns bare and 222 ns after audit was on", here::ns(call)), "")
        }
        None => (String::new(), "dyno audit --measure, which times one"),
    };
    Err(Gap::Unread(Unread {
        what: "whether audit was ever on".into(),
        why: format!("{why}{took}"),
        needs: needs.into(),
        ..Unread::default()
    }))
}

fn trace(facts: &Facts) -> Seen {
    let tracing = facts.watchers.tracing.known()?;
    let on_calls = tracing.events.iter().filter(|event| event.contains("syscalls")).count();
    let found = format!(
        "tracer {}, {}, {}, {}",
        tracing.tracer,
        counted(tracing.events.len(), "event"),
        counted(tracing.probes as usize, "probe"),
        counted(tracing.instances.len(), "instance")
    );
    if tracing.tracer == "nop" && tracing.events.is_empty() && tracing.probes == 0 {
        return Ok(Looked::Fine(found));
    }
    let what = if on_calls > 0 { "system calls among them" } else { "no system calls among them" };
    Ok(finding("The kernel's tracer is at work", format!("{found} ({what})"), "off while nobody reads it")
        .gain(FAST, unknown("it depends on what is traced; system calls cost most"))
        .risk(Risk::Operational, "whoever started the trace gets nothing more")
        .why("Each event that is on writes a record whenever it happens, on every CPU.")
        .see(&["sudo cat /sys/kernel/tracing/current_tracer /sys/kernel/tracing/set_event"])
        .apply(&[
            "echo nop | sudo tee /sys/kernel/tracing/current_tracer",
            "echo | sudo tee /sys/kernel/tracing/set_event",
        ])
        .revert(&["start the trace again by whatever started it"])
        .into())
}

fn bpf(facts: &Facts) -> Seen {
    let programs = facts.watchers.bpf.known()?;
    let on_path: Vec<String> = programs
        .iter()
        .filter(|program| BPF_ON_PATH.contains(&program.kind.as_str()))
        .map(|program| format!("{} {} ({})", program.kind, program.name, program.id))
        .collect();
    let devices = facts.network.devices.value().map(Vec::as_slice).unwrap_or_default();
    let filtered = devices.iter().filter(|device| device.filters.value().is_some_and(|all| !all.is_empty()));
    let filters: Vec<String> = filtered.map(|device| format!("filters on {}", device.name)).collect();
    let all = [on_path, filters].concat();
    if all.is_empty() {
        return Ok(Looked::fine(format!("{} loaded, none on the way", counted(programs.len(), "program"))));
    }
    let more = if all.len() > 6 { format!(" and {} more", all.len() - 6) } else { String::new() };
    Ok(finding(
        "BPF programs run for system calls, scheduling or packets",
        format!("{}{more}", all.iter().take(6).cloned().collect::<Vec<_>>().join(", ")),
        "only those that somebody needs",
    )
    .gain(FAST, unknown("it depends on the programs; their time can be counted"))
    .risk(Risk::Security, "they may be a firewall, a container network, or somebody's eyes on the machine")
    .why("Each of them runs every time the event happens that it is attached to.")
    .see(&["sudo bpftool prog show", "sudo sysctl -w kernel.bpf_stats_enabled=1; sleep 1; sudo bpftool prog show; sudo sysctl -w kernel.bpf_stats_enabled=0"])
    .apply(&["stop the program that loaded them"])
    .revert(&["start it again"])
    .into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::Goal;
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Audit, AuditRule};

    fn found(enabled: u32) -> Vec<AuditFinding> {
        let rule = AuditRule { list: "exit".into(), action: "always".into(), ..AuditRule::default() };
        let mut facts = Facts::default();
        facts.security.audit = Fact::Value(Audit { enabled, rules: vec![rule], ..Audit::default() });
        crate::audit::audit(&facts, Goal::Throughput).findings
    }

    /// Planted fault: the lock is not looked at; then a command is advised that the kernel refuses.
    #[test]
    fn audit_that_is_locked_is_changed_by_a_boot_and_by_nothing_else() {
        assert!(found(1).iter().all(|one| one.apply.iter().all(|line| !line.contains("reboot"))));
        let locked = found(2);
        assert_eq!(locked.len(), 2);
        for one in locked {
            assert!(one.by_hand.contains("locked") && one.apply[1].ends_with("reboot"), "{one:?}");
            assert!(one.apply.iter().all(|line| !line.contains("auditctl")), "{one:?}");
        }
    }

    /// Planted fault: watches of files count; then a host of fifty of them is told to pay at each system call.
    #[test]
    fn rules_about_single_files_are_not_asked_for_each_call() {
        let of = |of_file: &[bool]| {
            let rule = |of_file: &bool| AuditRule {
                list: "exit".into(),
                action: "always".into(),
                of_file: *of_file,
                ..AuditRule::default()
            };
            let mut facts = Facts::default();
            let rules = of_file.iter().map(rule).collect();
            facts.security.audit = Fact::Value(Audit { enabled: 1, rules, ..Audit::default() });
            crate::audit::audit(&facts, Goal::Throughput)
        };
        let watched = of(&[true; 50]);
        let fine = watched.fine.iter().find(|one| one.id == "sec.audit.rules").unwrap();
        assert!(fine.found.starts_with("0 rules for system calls, 50 for single files"), "{}", fine.found);
        let both = of(&[true, false, true]);
        assert!(
            both.findings.iter().any(|one| one.title.starts_with("1 rule of audit")),
            "{:?}",
            both.findings
        );
    }

    /// Planted fault: the command line is not read; then what stands there already is advised.
    #[test]
    fn mitigations_that_are_off_already_are_no_finding() {
        let of = |line: &str| {
            let mut facts = Facts::default();
            let all = [("retbleed".to_owned(), "Mitigation: untrained return thunk".to_owned())];
            facts.security.vulnerabilities = Fact::Value(all.into());
            facts.kernel.command_line = Fact::Value(line.into());
            crate::audit::audit(&facts, Goal::Throughput).findings.len()
        };
        assert_eq!([of("quiet"), of("quiet mitigations=off"), of("mitigations=auto,nosmt")], [1, 0, 1]);
    }
}
