//! Which waits are meant, in the probe's terms: system calls by what they wait for, files by their numbers.
//!
//! The rig calls it when it opens.

use dyno_sys::bpf::causal::{Waits, WaitsFor};
use dyno_sys::{Pid, proc};

use crate::calls::{self, First};
use crate::causal::rig::site::WaitKind;
use crate::error::Error;

/// What system calls wait for. The others wait for something else, unless all waits are meant.
pub(super) fn named_waits() -> Vec<(u32, WaitsFor)> {
    calls::numbered(|call| match (call.waits_for, call.first) {
        (calls::WaitsFor::Lock, _) => Some(WaitsFor::Lock),
        (calls::WaitsFor::Disk, First::Descriptor) => Some(WaitsFor::DiskDescriptor),
        (calls::WaitsFor::Disk, _) => Some(WaitsFor::Disk),
        (calls::WaitsFor::Peer, _) => Some(WaitsFor::Network),
        (calls::WaitsFor::Either, _) => Some(WaitsFor::Descriptor),
        (calls::WaitsFor::Sleep | calls::WaitsFor::Unsaid, _) => None,
    })
}

/// A kind of wait in the probe's words.
pub(super) fn waits(pid: Pid, kind: &WaitKind) -> Result<Waits, Error> {
    Ok(match kind {
        WaitKind::Any => Waits::Any,
        WaitKind::Lock => Waits::Lock,
        WaitKind::Disk => Waits::Disk,
        WaitKind::Network => Waits::Network,
        WaitKind::File(path) => {
            // As the target sees it: it may live in another root.
            let file = proc::file_id(pid, path);
            Waits::File(file.map_err(|source| Error::NoFile { pid, path: path.clone(), source })?)
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;
    use dyno_sys::trace::call_number;

    #[test]
    fn each_call_waits_for_what_its_row_says() {
        let waits = |name| {
            let asked = call_number(name).unwrap();
            named_waits().into_iter().find(|(number, _)| *number == asked).map(|(_, waits)| waits)
        };
        let cases = [
            ("futex", Some(WaitsFor::Lock)),
            ("flock", Some(WaitsFor::Lock)),
            ("fsync", Some(WaitsFor::DiskDescriptor)),
            ("pread64", Some(WaitsFor::DiskDescriptor)),
            ("openat", Some(WaitsFor::Disk)),
            ("epoll_pwait", Some(WaitsFor::Network)),
            ("io_uring_enter", Some(WaitsFor::Network)),
            ("read", Some(WaitsFor::Descriptor)),
            ("clock_nanosleep", None),
            ("close", None),
        ];
        for (name, expected) in cases {
            assert_eq!(waits(name), expected, "{name}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_number_and_one_that_is_not_there_is_named() {
        let pid = child::this();
        assert!(matches!(waits(pid, &WaitKind::File("/proc/self/exe".to_owned())), Ok(Waits::File(_))));
        let error = waits(pid, &WaitKind::File("/no/such".to_owned())).unwrap_err();
        assert!(error.to_string().contains("/no/such"));
    }
}
