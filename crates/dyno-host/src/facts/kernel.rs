//! Who reads, and the kernel.

use dyno_record::facts::{Kernel, Reader};
use dyno_sys::{Pid, proc, user};

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

/// Whether a process has another network than this one, or one that cannot be told.
pub(super) fn is_elsewhere(pid: Pid) -> bool {
    let network = |process: &str| proc::link_name(&format!("/proc/{process}/ns/net")).ok();
    network(&pid.to_string()) != network("self")
}

/// The kernel.
pub(super) fn kernel() -> Kernel {
    let symbols: Vec<&str> = PARTS.iter().map(|(symbol, _)| *symbol).collect();
    let found = proc::kernel_symbols(&symbols).unwrap_or_default();
    let parts = PARTS.iter().filter(|(symbol, _)| found.iter().any(|one| one == symbol));
    let mounts = proc::text("/proc/self/mountinfo").unwrap_or_default();
    let (read_only, writable) = read_only_mounts(&mounts);
    Kernel {
        read_only: read_only.into_iter().chain(super::sysctls::fixed()).collect(),
        writable,
        release: text("/proc/sys/kernel/osrelease"),
        command_line: text("/proc/cmdline"),
        clocksource: text(&format!("{CLOCKS}/current_clocksource")),
        clocksources: text(&format!("{CLOCKS}/available_clocksource")),
        security_modules: text("/sys/kernel/security/lsm"),
        parts: parts.map(|(_, name)| (*name).to_owned()).collect(),
        autogroup: parsed("/proc/sys/kernel/sched_autogroup_enabled", |text| Some(text.to_owned())),
    }
}

/// Mounts at most that are told: a container has some ten of them.
const MOUNTS_MAX: usize = 64;

/// Folders and files under /proc and /sys that are mounted read-only, and those inside of them that are not. Of several mounts on
/// one place the last one counts.
fn read_only_mounts(mountinfo: &str) -> (Vec<String>, Vec<String>) {
    let mut all: Vec<(String, bool)> = Vec::new();
    for line in mountinfo.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (Some(place), Some(options)) = (words.get(4), words.get(5)) else { continue };
        if !["/proc", "/sys"].iter().any(|root| *place == *root || place.starts_with(&format!("{root}/"))) {
            continue;
        }
        all.retain(|(known, _)| known != place);
        all.push(((*place).to_owned(), options.split(',').any(|option| option == "ro")));
    }
    let (closed, open): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, is_read_only)| *is_read_only);
    let closed: Vec<String> = closed.into_iter().map(|(place, _)| place).take(MOUNTS_MAX).collect();
    let is_inside = |place: &String| closed.iter().any(|outer| place.starts_with(&format!("{outer}/")));
    let open = open.into_iter().map(|(place, _)| place).filter(is_inside).take(MOUNTS_MAX).collect();
    (closed, open)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: any mount counts; then a folder that was mounted writable over one that was not is told as read-only.
    #[test]
    fn the_last_mount_on_a_place_says_whether_it_is_read_only() {
        let text = "22 1 0:20 / /proc rw,nosuid - proc proc rw\n\
                    23 1 0:21 / /sys ro,nosuid - sysfs sysfs ro\n\
                    24 22 0:20 /sys /proc/sys ro - proc proc rw\n\
                    25 1 0:22 / /etc ro - ext4 x ro\n";
        let closed = |text: &str| read_only_mounts(text).0;
        assert_eq!(closed(text), ["/sys", "/proc/sys"]);
        let over = format!("{text}26 24 0:20 /sys /proc/sys rw - proc proc rw\n");
        assert_eq!(closed(&over), ["/sys"]);
        assert!(closed("\n x y\n").is_empty());
        let inside = format!("{text}27 24 0:20 /sys/net /proc/sys/net rw - proc proc rw\n");
        assert_eq!(read_only_mounts(&inside).1, ["/proc/sys/net"]);
    }
}
