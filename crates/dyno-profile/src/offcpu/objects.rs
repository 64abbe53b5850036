//! What waits were for: descriptors by the file behind them, addresses by their process, faults by their mapping.
//!
//! The watch asks as soon as a wait for something new was seen, because descriptors are closed and their numbers used
//! again.

use std::collections::{BTreeMap, HashMap};

use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::Says;
use dyno_sys::proc::{self, Mapping};

use crate::calls::{self, First};

/// What the probe must know of the system calls of this machine.
pub(super) fn named_calls() -> Vec<(u32, Says)> {
    calls::numbered(|call| match call.first {
        First::Address => Some(Says::Address),
        First::Descriptor => Some(Says::Descriptor),
        First::Other => None,
    })
}

/// Names of what was waited for.
#[derive(Debug, Default)]
pub(super) struct Objects {
    says: HashMap<u32, Says>,
    files: BTreeMap<(Pid, u64), String>,
}

impl Objects {
    pub(super) fn new() -> Objects {
        Objects { says: named_calls().into_iter().collect(), files: BTreeMap::new() }
    }

    /// Something is waited for: the file behind a descriptor is looked up now.
    pub(super) fn seen(&mut self, pid: Pid, system_call: u32, object: u64) {
        if self.says.get(&system_call) != Some(&Says::Descriptor) {
            return;
        }
        // The probe reports the descriptor plus one.
        let Some(descriptor) = object.checked_sub(1) else { return };
        let Ok(file) = std::fs::read_link(format!("{}/fd/{descriptor}", proc::folder(pid))) else { return };
        let file = file.to_string_lossy().into_owned();
        let known = self.files.entry((pid, object)).or_insert_with(|| file.clone());
        if *known != file && !known.ends_with(OTHERS) {
            known.push_str(OTHERS);
        }
    }

    /// What a wait in this call was for.
    pub(super) fn name(&self, pid: Pid, system_call: u32, object: u64) -> Option<String> {
        match self.says.get(&system_call)? {
            Says::Address => Some(format!("{object:#x} (pid {pid})")),
            Says::Descriptor => {
                let unread = || object.checked_sub(1).map(|descriptor| format!("descriptor {descriptor}"));
                self.files.get(&(pid, object)).cloned().or_else(unread)
            }
        }
    }
}

/// Said of a descriptor that was several files, one after the other.
const OTHERS: &str = " and others";

/// Every mapping of a process: where its page faults lie.
#[derive(Debug, Default)]
pub(super) struct Mappings(Vec<Mapping>);

impl Mappings {
    pub(super) fn of(pid: Pid) -> Mappings {
        Mappings(proc::mappings(pid).unwrap_or_default())
    }

    pub(super) fn name(&self, address: u64) -> Option<String> {
        let inside = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let path = &self.0.iter().find(inside)?.path;
        Some(if path.is_empty() { "anonymous memory".to_owned() } else { path.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_sys::trace::call_number;

    #[test]
    fn a_descriptor_is_told_by_the_file_behind_it_and_a_lock_by_its_address() {
        let (Some(read), Some(futex)) = (call_number("read"), call_number("futex")) else { return };
        let file = std::fs::File::open("/proc/self/status");
        let descriptor =
            file.as_ref().map_or(0, |file| std::os::fd::AsRawFd::as_raw_fd(file).cast_unsigned());
        let me = dyno_sys::child::this();
        let mut objects = Objects::new();
        let object = u64::from(descriptor) + 1;
        objects.seen(me, read, object);
        assert!(objects.name(me, read, object).is_some_and(|name| name.ends_with("/status")));
        assert_eq!(objects.name(me, read, 1_000_000).as_deref(), Some("descriptor 999999"));
        assert_eq!(objects.name(7, futex, 0x10).as_deref(), Some("0x10 (pid 7)"));
        assert_eq!(objects.name(7, u32::MAX, 0x10), None);
    }

    #[test]
    fn only_an_argument_that_is_waited_for_is_named() {
        let says = |name| {
            let asked = call_number(name);
            named_calls().into_iter().find(|(number, _)| Some(*number) == asked).map(|(_, says)| says)
        };
        assert_eq!(says("futex"), Some(Says::Address));
        for name in ["read", "sendfile", "fsync", "epoll_pwait", "ioctl", "close"] {
            assert_eq!(says(name), Some(Says::Descriptor), "{name}");
        }
        // A folder to begin in, a list, a time, a ring's number: none of them is waited for.
        for name in ["openat", "statx", "ppoll", "clock_nanosleep", "io_uring_enter"] {
            assert_eq!(says(name), None, "{name}");
        }
    }

    #[test]
    fn a_fault_lies_in_a_mapping() {
        let rows = ["1000-2000 rw-p 0 00:00 0 [heap]", "3000-4000 rw-p 0 00:00 0"];
        let mappings = Mappings(proc::parse_mappings(&rows.join("\n")));
        assert_eq!(mappings.name(0x1800).as_deref(), Some("[heap]"));
        assert_eq!(mappings.name(0x3000).as_deref(), Some("anonymous memory"));
        assert_eq!(mappings.name(0x2000), None);
    }
}
