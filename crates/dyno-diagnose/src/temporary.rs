//! Files that are made, written, read again and taken away at once: work that did not find room in memory. The rule for system calls
//! asks.
//!
//! A sort with a small buffer, a proxy that puts each body into a file, tables of a database for one statement: they are known by
//! what they do with files, since nothing else takes as many away as it makes and reads as much as it writes.

use dyno_record::finding::{Class, Confidence};

use super::draft::{Draft, percent};
use super::facts::{Cost, Facts};

/// Files that are removed in a second; fewer are somebody's housekeeping.
const REMOVED_PER_S_MIN: f64 = 100.0;
/// Times that files are opened for each that is removed: to write it, to read it, and as often for others.
const OPENED_MAX: f64 = 4.0;
/// Of what is written and what is read, the less for the more: what is written is read again, once.
const READ_AGAIN_MIN: f64 = 0.5;
/// Bytes written for each file that is removed: smaller ones are marks, locks and letters; larger ones do not belong into memory.
const BYTES: std::ops::RangeInclusive<f64> = 4_096.0..=16_777_216.0;
/// CPU time in files and descriptors.
const SHARE_MIN: f64 = 0.25;

pub(super) fn files(facts: &Facts<'_>) -> Option<Draft> {
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    let (removed, opened) = (off.calls_per_s(&["unlink*"]), off.calls_per_s(&["open", "openat*", "creat"]));
    let moved = |moved: Option<dyno_record::observation::Transfers>| {
        moved.map_or(0.0, |moved| moved.bytes as f64 / facts.seen.duration_s.max(1e-9))
    };
    let (read, written) = (moved(facts.seen.process.reads), moved(facts.seen.process.writes));
    let bytes = written / removed.max(1e-9);
    let is_temporary = removed >= REMOVED_PER_S_MIN
        && opened <= OPENED_MAX * removed
        && read.min(written) >= READ_AGAIN_MIN * read.max(written)
        && BYTES.contains(&bytes);
    let share = on.share(&[Cost::Files, Cost::SystemCall]);
    (is_temporary && share >= SHARE_MIN).then(|| {
        let summary =
            format!("{removed:.0} files a second are made, written, read again and removed: {:.0} kB each", bytes / 1e3);
        Draft::new(Class::SyscallHeavy, share, summary)
            .sure(Confidence::Low)
            .fact(format!("{} of the CPU is in files", percent(share)), share, "share")
            .fact(format!("{opened:.0} files are opened a second"), opened, "calls/s")
            .sign("whether they have to be files, whoever made them knows")
            .next("keep it in memory: a larger buffer (sort -S, work_mem, tmp_table_size, client_body_buffer_size), larger and fewer pieces; or a tmpfs for them")
            .at(on.places(&[Cost::Files]).first().map(|place| place.0.clone()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::Transfers;
    use dyno_record::profile::SystemCall;

    use crate::scene::Scene;

    /// A program a part of whose CPU time is in files: those opened and removed in ten seconds, and the megabytes written and read.
    fn sorts(files: u64, opened: u64, removed: u64, written: u64, read: u64) -> Scene {
        let write = "main;merge;fwrite;do_syscall_64_[k];vfs_write_[k];ext4_buffered_write_iter_[k]";
        Scene::new(&[9.9]).on(write, files).on("main;merge;compare", 60 - files).on("main;keys", 40).with(
            |seen| {
                let calls = &mut seen.off_cpu.as_mut().unwrap().system_calls;
                for (name, count) in [("openat", opened), ("unlink", removed)] {
                    calls.insert(name.into(), SystemCall { count, ..SystemCall::default() });
                }
                let moved = |bytes: u64| Some(Transfers { calls: bytes * 100, bytes: bytes * 1_000_000 });
                (seen.process.writes, seen.process.reads) = (moved(written), moved(read));
            },
        )
    }

    /// `sort -S 100K`. Planted faults: whatever removes files; whatever opens many; what is not
    /// read again; what is small; however little of the CPU is in files.
    #[test]
    fn files_that_are_made_read_and_removed_at_once_are_told() {
        let said = sorts(40, 32_000, 15_000, 2_400, 2_400).diagnosed().findings.remove(0);
        assert_eq!(said.class, Class::SyscallHeavy);
        assert!(
            said.summary.starts_with("1500 files a second are made, written, read again"),
            "{}",
            said.summary
        );
        // A proxy whose kernel has more to do with packets.
        let sends = |files| sorts(files, 32_000, 15_000, 2_400, 2_400).on("main;send;tcp_sendmsg_[k]", 60);
        assert_eq!(sends(38).classes(), [], "little of the CPU");
        assert_eq!(sends(45).classes(), [Class::SyscallHeavy]);
        assert_eq!(sorts(40, 1_500, 900, 2_400, 2_400).classes(), [], "now and then");
        assert_eq!(sorts(40, 320_000, 15_000, 2_400, 2_400).classes(), [], "a build");
        assert_eq!(sorts(40, 32_000, 15_000, 2_400, 900).classes(), [], "a cache that makes room");
        assert_eq!(sorts(40, 32_000, 15_000, 40, 40).classes(), [], "letters");
    }
}
