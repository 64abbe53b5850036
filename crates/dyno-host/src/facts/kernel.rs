//! Who reads, and the kernel.

use dyno_record::facts::{Kernel, Reader};
use dyno_sys::{proc, user};

use super::read::{fact, parsed, text};

/// Symbols of the parts that asking would load, with the names that the facts have for them.
const PARTS: [(&str, &str); 5] = [
    ("nf_tables_getrule", "nf_tables"),
    ("tcp_diag_dump", "tcp_diag"),
    ("packet_diag_dump", "packet_diag"),
    ("ipt_do_table", "ip_tables"),
    ("ip6t_do_table", "ip6_tables"),
];

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// This process.
pub(super) fn reader() -> Reader {
    let status = proc::text("/proc/self/status").unwrap_or_default();
    Reader {
        uid: user::current().0,
        capabilities: proc::parse_capabilities(&status),
        network_namespace: fact("/proc/self/ns/net", proc::link_name("/proc/self/ns/net")),
        looked_into: None,
    }
}

/// The kernel.
pub(super) fn kernel() -> Kernel {
    let symbols: Vec<&str> = PARTS.iter().map(|(symbol, _)| *symbol).collect();
    let found = proc::kernel_symbols(&symbols).unwrap_or_default();
    let parts = PARTS.iter().filter(|(symbol, _)| found.iter().any(|one| one == symbol));
    Kernel {
        release: text("/proc/sys/kernel/osrelease"),
        command_line: text("/proc/cmdline"),
        clocksource: text(&format!("{CLOCKS}/current_clocksource")),
        clocksources: text(&format!("{CLOCKS}/available_clocksource")),
        security_modules: text("/sys/kernel/security/lsm"),
        parts: parts.map(|(_, name)| (*name).to_owned()).collect(),
        autogroup: parsed("/proc/sys/kernel/sched_autogroup_enabled", |text| Some(text.to_owned())),
    }
}
