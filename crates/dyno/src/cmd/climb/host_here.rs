//! What is read of the host for rungs that are told and not tried: once, before a laboratory is entered.
//!
//! `dyno climb --netns` calls it. It only reads.

use dyno_climb::rung::HostHere;
use dyno_host::facts;
use dyno_record::fact::Gap;
use dyno_record::facts::{Audit, AuditRule};

/// What rungs say that are told and not tried.
pub(super) fn host_here() -> HostHere {
    let facts = facts::read(&facts::Wanted::default());
    let unread = |why: Gap| match why {
        Gap::Absent(what) => format!("{what} is not here"),
        Gap::Unread(why) => format!("not read: {}", why.why),
    };
    let mitigations = facts.security.vulnerabilities.known().map(|all| {
        let on = all.iter().filter(|(_, state)| state.starts_with("Mitigation:"));
        let names: Vec<&str> = on.map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            "none is in force".to_owned()
        } else {
            format!("in force: {}", names.join(", "))
        }
    });
    let on_exit = |rules: &[AuditRule]| rules.iter().filter(|rule| rule.list == "exit").count();
    let audit = facts.security.audit.known();
    let audit_words = |audit: &Audit| {
        format!("audit reads enabled={} and {} rules for system calls", audit.enabled, on_exit(&audit.rules))
    };
    HostHere {
        mitigations: mitigations.unwrap_or_else(unread),
        audit_rules: audit.as_ref().map_or(0, |audit| on_exit(&audit.rules)),
        audit: audit.map_or_else(unread, audit_words),
        flow_entries: facts.sysctl("net.core.rps_sock_flow_entries").map_or_else(unread, str::to_owned),
        clocksource: facts.kernel.clocksource.known().map_or_else(unread, Clone::clone),
    }
}
