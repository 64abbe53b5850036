//! Files of /proc and /sys as text, bounded: what the host's facts are read with.
//!
//! Names in these folders come from whoever made a device or a process, so what is no UTF-8 is replaced.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};

/// The longest file that facts are read from: /proc/kallsyms has 8 MB on a kernel with everything.
const TEXT_BYTES_MAX: u64 = 32 << 20;

/// A file's text without blanks at its ends.
pub fn text(path: &str) -> io::Result<String> {
    let mut raw = Vec::new();
    File::open(path)?.take(TEXT_BYTES_MAX).read_to_end(&mut raw)?;
    Ok(String::from_utf8_lossy(&raw).trim().to_owned())
}

/// The names in a folder in order, `max` at most.
pub fn names(folder: &str, max: usize) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    let all: BTreeSet<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    Ok(all.into_iter().take(max).collect())
}

/// What a link leads to, by its last name.
pub fn link_name(path: &str) -> io::Result<String> {
    let target = fs::read_link(path)?;
    Ok(target.file_name().unwrap_or(target.as_os_str()).to_string_lossy().into_owned())
}

/// Which of these names are symbols of the running kernel or its modules: what is there without being loaded for us.
pub fn kernel_symbols(names: &[&str]) -> io::Result<Vec<String>> {
    let text = text("/proc/kallsyms")?;
    let symbols = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    let found: BTreeSet<&str> = symbols.filter(|symbol| names.contains(symbol)).collect();
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// Names of capabilities, by number (include/uapi/linux/capability.h).
const CAPABILITIES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The capabilities in force, by name, of a process's status.
pub fn parse_capabilities(status: &str) -> Vec<String> {
    let mask =
        super::parse_status_field(status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let mask = mask.unwrap_or(0);
    let has = |at: &usize| mask & 1 << at != 0;
    (0..CAPABILITIES.len()).filter(has).map(|at| CAPABILITIES[at].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn capabilities_are_named() {
        assert_eq!(parse_capabilities("CapEff:\t0000000000003000\n"), ["net_admin", "net_raw"]);
        assert!(parse_capabilities("CapEff:\tnonsense\n").is_empty());
        assert_eq!(parse_capabilities("CapEff:\t000001ffffffffff\n").len(), 41);
    }

    #[test]
    fn files_folders_and_links_are_read() {
        assert_eq!(text("/proc/sys/kernel/ostype").unwrap(), "Linux");
        assert!(names("/proc/self", 10_000).unwrap().contains(&"status".to_owned()));
        assert_eq!(names("/proc/self", 2).unwrap().len(), 2);
        assert!(link_name("/proc/self").unwrap().parse::<i32>().is_ok());
        assert_eq!(kernel_symbols(&["tcp_v4_rcv", "no_such_symbol_here"]).unwrap(), ["tcp_v4_rcv"]);
        assert_eq!(text("/proc/nonsense").unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
