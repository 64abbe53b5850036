//! What a process and each of its threads used: CPU, switches, faults, bytes, memory, filters. Counters since their start:
//! callers take differences.

use super::process::{folder, is_gone, parse_stat, parse_status_field, parse_status_kib};
use crate::tasks::{read_numbers, tasks};
use crate::{Pid, Tid};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;

/// One thread's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskCost {
    /// Its number.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// Nanoseconds on a CPU.
    pub run_ns: u64,
    /// Nanoseconds runnable without one.
    pub wait_ns: u64,
    /// Switches because it had to wait.
    pub voluntary: u64,
    /// Switches because its turn was over.
    pub involuntary: u64,
    /// Its seccomp mode: 0 is none.
    pub seccomp: u32,
    /// Filters before its system calls.
    pub seccomp_filters: u32,
    /// Who traces it (ptrace), where somebody does.
    pub tracer: Option<Pid>,
}

/// Page faults of a process, its ended and waited-for children's not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Without a disk.
    pub minor: u64,
    /// With one.
    pub major: u64,
}

/// /proc/PID/io.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCount {
    /// Bytes that calls read.
    pub read_bytes: u64,
    /// Calls that read.
    pub read_calls: u64,
    /// Bytes that calls wrote.
    pub write_bytes: u64,
    /// Calls that wrote.
    pub write_calls: u64,
    /// Bytes that were to go to a disk.
    pub disk_write_bytes: u64,
}

/// Memory of a process by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Resident.
    pub rss: u64,
    /// Of it, anonymous.
    pub anonymous: u64,
    /// Anonymous memory in transparent huge pages, and reserved huge pages.
    pub huge: u64,
}

/// The counters of every thread of `pid`, ascending. A thread that ends meanwhile is left out.
pub fn task_costs(pid: Pid) -> Vec<TaskCost> {
    tasks(pid).into_iter().filter_map(|tid| task_cost(pid, tid)).collect()
}

fn task_cost(pid: Pid, tid: Tid) -> Option<TaskCost> {
    let read = |file: &str| {
        let raw = fs::read(format!("/proc/{pid}/task/{tid}/{file}")).ok()?;
        Some(String::from_utf8_lossy(&raw).into_owned())
    };
    let mut cost = parse_task_status(&read("status")?);
    let schedstat = read("schedstat").unwrap_or_default();
    let mut words = schedstat.split_whitespace().map(|word| word.parse().unwrap_or(0));
    cost.run_ns = words.next().unwrap_or(0);
    cost.wait_ns = words.next().unwrap_or(0);
    Some(TaskCost { tid, name: read("comm")?.trim().to_owned(), ..cost })
}

/// Switches and filters in /proc/PID/task/TID/status.
pub fn parse_task_status(text: &str) -> TaskCost {
    let number = |name| parse_status_field(text, name).and_then(|value| value.parse().ok()).unwrap_or(0);
    TaskCost {
        voluntary: number("voluntary_ctxt_switches"),
        involuntary: number("nonvoluntary_ctxt_switches"),
        seccomp: number("Seccomp") as u32,
        seccomp_filters: number("Seccomp_filters") as u32,
        tracer: Some(number("TracerPid") as Pid).filter(|pid| *pid > 0),
        ..TaskCost::default()
    }
}

/// Page faults since the start.
pub fn faults(pid: Pid) -> io::Result<Faults> {
    let text = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat"))?).into_owned();
    Ok(parse_faults(&text).unwrap_or_default())
}

/// Fields 10 and 12 of /proc/PID/stat.
pub fn parse_faults(text: &str) -> Option<Faults> {
    parse_stat(text)?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(Faults { minor: field(10)?, major: field(12)? })
}

/// Bytes and calls since the start. Needs the right to trace the process.
pub fn io_count(pid: Pid) -> io::Result<IoCount> {
    fs::read_to_string(format!("/proc/{pid}/io")).map(|text| parse_io(&text))
}

/// The fields of /proc/PID/io.
pub fn parse_io(text: &str) -> IoCount {
    let number = |name| parse_status_field(text, name).and_then(|value| value.parse().ok()).unwrap_or(0);
    IoCount {
        read_bytes: number("rchar"),
        read_calls: number("syscr"),
        write_bytes: number("wchar"),
        write_calls: number("syscw"),
        disk_write_bytes: number("write_bytes"),
    }
}

/// Memory by kind. Needs the right to trace the process.
pub fn memory_use(pid: Pid) -> io::Result<MemoryUse> {
    fs::read_to_string(format!("{}/smaps_rollup", folder(pid))).map(|text| parse_memory_use(&text))
}

/// The fields of /proc/PID/smaps_rollup.
pub fn parse_memory_use(text: &str) -> MemoryUse {
    let bytes = |name| parse_status_kib(text, name).unwrap_or(0);
    MemoryUse {
        rss: bytes("Rss"),
        anonymous: bytes("Anonymous") + bytes("Private_Hugetlb"),
        huge: bytes("AnonHugePages") + bytes("Private_Hugetlb") + bytes("Shared_Hugetlb"),
    }
}

/// Regular files that the process has open, by path, with those of their flags that make calls wait: `O_SYNC`, `O_DSYNC`,
/// `O_DIRECT`; empty flags for plain ones. A file that is open more than once has the flags of all its descriptors.
///
/// # Errors
/// When they may not be read, or the process has ended ([`super::is_gone`]).
pub fn open_files(pid: Pid) -> io::Result<BTreeMap<String, String>> {
    let folder = folder(pid);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for fd in read_numbers(&format!("{folder}/fd"))? {
        match open_file(&folder, fd) {
            Ok(Some((path, flags))) => {
                let known = files.entry(path).or_default();
                *known = joined(known, &flags);
            }
            Ok(None) => {}
            // It was closed meanwhile.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// What a descriptor names, where that is a file outside of /dev.
fn open_file(folder: &str, fd: i32) -> io::Result<Option<(String, String)>> {
    let path = fs::read_link(format!("{folder}/fd/{fd}"))?;
    let is_file = |path: &&str| path.starts_with('/') && !path.starts_with("/dev/");
    let Some(path) = path.to_str().filter(is_file) else { return Ok(None) };
    let info = fs::read_to_string(format!("{folder}/fdinfo/{fd}"))?;
    Ok(Some((path.to_owned(), sync_flags(&info))))
}

/// The words of both, each once.
fn joined(flags: &str, more: &str) -> String {
    let mut words: Vec<&str> = flags.split_whitespace().collect();
    words.extend(more.split_whitespace().filter(|word| !flags.split_whitespace().any(|one| one == *word)));
    words.join(" ")
}

/// The flags that make calls wait, in words.
fn sync_flags(fdinfo: &str) -> String {
    let octal = parse_status_field(fdinfo, "flags").unwrap_or("0");
    let flags = libc::c_int::from_str_radix(octal, 8).unwrap_or(0);
    let has = |flag: libc::c_int| flags & flag == flag;
    // O_SYNC is O_DSYNC and a bit more.
    let sync = if has(libc::O_SYNC) {
        "O_SYNC"
    } else if has(libc::O_DSYNC) {
        "O_DSYNC"
    } else {
        ""
    };
    let direct = if has(libc::O_DIRECT) { "O_DIRECT" } else { "" };
    [sync, direct].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The memory of another process, read without stopping it. Needs the right to trace it.
#[derive(Debug)]
pub struct Memory {
    file: fs::File,
}

impl Memory {
    /// Opens /proc/PID/mem.
    pub fn open(pid: Pid) -> io::Result<Memory> {
        fs::File::open(format!("{}/mem", folder(pid))).map(|file| Memory { file })
    }

    /// As many bytes from `address` on as are mapped there, up to `length`.
    pub fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let mut got = 0;
        // The kernel gives what is mapped; a hole ends it.
        while got < length {
            match self.file.read_at(&mut bytes[got..], address + got as u64) {
                Ok(more) if more > 0 => got += more,
                _ => break,
            }
        }
        bytes.truncate(got);
        bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::child::this;

    #[test]
    fn switches_and_filters_are_read_from_a_status() {
        let status = "Name:\tx\nTracerPid:\t77\nSeccomp:\t2\nSeccomp_filters:\t3\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t4\n";
        let cost = parse_task_status(status);
        assert_eq!((cost.voluntary, cost.involuntary, cost.seccomp, cost.seccomp_filters), (15, 4, 2, 3));
        assert_eq!((cost.tracer, parse_task_status("TracerPid:\t0\n").tracer), (Some(77), None));
        assert_eq!(parse_task_status(""), TaskCost::default());
    }

    #[test]
    fn faults_are_counted_from_the_names_last_bracket() {
        let stat = "4242 (a) (b c) S 17 4242 4242 0 -1 4194304 101 5 7 0 7 11 0 0 20 0 3 0 998877 1 2 3 \
                    4 5 6 7 8 9 10 11 12 13 14 15 17 5 0 0 0";
        assert_eq!(parse_faults(stat), Some(Faults { minor: 101, major: 7 }));
        assert_eq!(parse_faults("4242 (a"), None);
    }

    #[test]
    fn bytes_and_memory_are_read_from_samples() {
        let io = parse_io("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 9\nwrite_bytes: 4096\n");
        assert_eq!(
            (io.read_bytes, io.write_bytes, io.read_calls, io.write_calls, io.disk_write_bytes),
            (10, 20, 3, 4, 4_096)
        );
        let memory = parse_memory_use(
            "Rss:  100 kB\nAnonymous:  50 kB\nAnonHugePages:  2048 kB\nPrivate_Hugetlb: 4096 kB\n",
        );
        assert_eq!(
            memory,
            MemoryUse { rss: 102_400, anonymous: (50 + 4_096) << 10, huge: (2_048 + 4_096) << 10 }
        );
    }

    #[test]
    fn flags_that_make_calls_wait_are_named() {
        assert_eq!(sync_flags("pos:\t0\nflags:\t04110001\n"), "O_SYNC");
        assert_eq!(sync_flags("flags:\t0150001\n"), "O_DSYNC O_DIRECT");
        assert_eq!(sync_flags("flags:\t0100001\n"), "");
    }

    #[test]
    fn this_process_has_costs_and_its_memory_can_be_read() {
        let me = this();
        let costs = task_costs(me);
        assert!(costs.iter().any(|cost| cost.run_ns > 0 && !cost.name.is_empty()));
        assert!(
            faults(me).unwrap().minor > 0
                && memory_use(me).unwrap().rss > 0
                && io_count(me).unwrap().read_calls > 0
        );
        let here = b"a text to be found again".to_vec();
        let read = Memory::open(me).unwrap().read(here.as_ptr().addr() as u64, here.len());
        assert_eq!(read, here);
        assert!(Memory::open(me).unwrap().read(0, 16).is_empty());
    }

    #[test]
    fn a_file_that_is_open_is_named_with_its_flags() {
        use std::os::unix::fs::OpenOptionsExt;
        let path = std::env::temp_dir().join(format!("dyno-sys-{}-sync", this()));
        let file =
            fs::OpenOptions::new().create(true).append(true).custom_flags(libc::O_SYNC).open(&path).unwrap();
        let flags = || open_files(this()).unwrap().get(path.to_str().unwrap()).unwrap().clone();
        assert_eq!(flags(), "O_SYNC");
        // Planted fault: the last descriptor stands for the file; then a log that waits is taken for a plain one.
        let plain = fs::File::open(&path).unwrap();
        assert_eq!(flags(), "O_SYNC");
        drop((file, plain));
        fs::remove_file(path).unwrap();
        assert_eq!(
            (joined("O_SYNC", "O_SYNC O_DIRECT"), joined("", "")),
            ("O_SYNC O_DIRECT".into(), String::new())
        );
    }

    #[test]
    fn files_of_a_process_that_cannot_be_asked_are_not_none() {
        assert!(is_gone(&open_files(i32::MAX).unwrap_err()));
    }
}
