//! One process: its threads, descendants, times, memory, CPUs and watched descriptors (`proc_pid(5)`).

use crate::affinity::CpuSet;
use crate::tasks::{numbers_in, tasks};
use crate::{Pid, Tid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

/// What is used of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub pid: Pid,
    /// One letter: R running, S sleeping, D in uninterruptible sleep, T stopped, Z ended and not waited for.
    pub state: char,
    /// Its parent's number.
    pub parent: Pid,
    /// Whether it is about to end: it runs no more of its program.
    pub is_ending: bool,
    /// User time in clock ticks, ended threads included.
    pub user_ticks: u64,
    /// Kernel time in clock ticks, ended threads included.
    pub system_ticks: u64,
    /// User and kernel time of children that ended and were waited for, and of theirs, in clock ticks.
    pub children_ticks: (u64, u64),
    /// Its first thread's niceness.
    pub nice: i32,
    /// Its first thread's policy, by the kernel's number (0 the usual one, 5 `SCHED_IDLE`).
    pub policy: u32,
    /// When it started, in clock ticks since boot: distinguishes a process from a later one of the same number.
    pub start_ticks: u64,
    /// The CPU that it, or its first thread, was last on.
    pub cpu: usize,
}

/// Process `pid` and all its descendants, ended ones that nobody waited for included; `pid` first. Empty when it is gone.
pub fn tree(pid: Pid) -> Vec<Pid> {
    if stat(pid).is_err() {
        return Vec::new();
    }
    // The children files cost one read per thread; without them (no CONFIG_PROC_CHILDREN) all of /proc is scanned.
    if fs::metadata(format!("/proc/{pid}/task/{pid}/children")).is_ok() {
        return grow(pid, children_of);
    }
    let families = families();
    grow(pid, |parent| families.get(&parent).cloned().unwrap_or_default())
}

fn grow(root: Pid, children: impl Fn(Pid) -> Vec<Pid>) -> Vec<Pid> {
    let mut seen = BTreeSet::from([root]);
    let mut found = vec![root];
    let mut next = 0;
    // Numbers are finite and each is taken once, so this ends even if /proc changes under it.
    while let Some(&parent) = found.get(next) {
        found.extend(children(parent).into_iter().filter(|&child| seen.insert(child)));
        next += 1;
    }
    found
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let listed = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let numbers =
        |text: String| -> Vec<Pid> { text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect() };
    tasks(pid).into_iter().map(listed).flat_map(numbers).collect()
}

/// Every process of the machine under its parent.
fn families() -> BTreeMap<Pid, Vec<Pid>> {
    let mut families = BTreeMap::<Pid, Vec<Pid>>::new();
    for stat in numbers_in("/proc").into_iter().filter_map(|pid| stat(pid).ok()) {
        families.entry(stat.parent).or_default().push(stat.pid);
    }
    families
}

/// What /proc/PID/stat says now. `ENOENT` when the process is gone.
pub fn stat(pid: Pid) -> io::Result<Stat> {
    parsed(pid, "stat", parse_stat)
}

/// Of linux/sched.h: set at the beginning of a task's end.
const PF_EXITING: u32 = 4;

/// Reads /proc/PID/stat. The name in it may hold blanks and brackets, so fields are counted from its last bracket.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // Numbered from 1 in proc_pid_stat(5); the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let flags: u32 = field(9)?.parse().ok()?;
    Some(Stat {
        pid,
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        is_ending: flags & PF_EXITING != 0,
        user_ticks: field(14)?.parse().ok()?,
        system_ticks: field(15)?.parse().ok()?,
        children_ticks: (field(16)?.parse().ok()?, field(17)?.parse().ok()?),
        nice: field(19)?.parse().ok()?,
        policy: field(41)?.parse().ok()?,
        start_ticks: field(22)?.parse().ok()?,
        cpu: field(39)?.parse().ok()?,
    })
}

/// The state letter of a process, `Z` for one that ended and was not waited for.
pub fn state(pid: Pid) -> io::Result<char> {
    stat(pid).map(|stat| stat.state)
}

/// Whether nothing of a process runs any more: it is gone, or ended and nobody waited for it. A leader that has ended is a
/// zombie too, but its other threads may live.
pub fn has_ended(pid: Pid) -> bool {
    has_thread_ended(pid) && tasks(pid).len() <= 1
}

/// Whether an error of this module says that the process or thread has ended: its files are no longer there, or those that
/// are open have nothing to say (ESRCH).
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// How late timers of a thread may be, ns; 0 for one that is scheduled in real time. Needs CAP_SYS_NICE for another process's.
pub fn timer_slack_ns(tid: Tid) -> io::Result<u64> {
    parsed(tid, "timerslack_ns", |text| text.trim().parse().ok())
}

/// Whether a thread runs no more; others of its process may.
pub fn has_thread_ended(tid: Tid) -> bool {
    state(tid).map_or(true, |state| matches!(state, 'Z' | 'X'))
}

/// The thread that stands for a process: its first one, or where that has ended, and took its maps, files and links with
/// it, one that lives on.
pub fn standing_for(pid: Pid) -> Tid {
    let lives = |tid: &Tid| !has_thread_ended(*tid);
    if lives(&pid) { pid } else { tasks(pid).into_iter().find(lives).unwrap_or(pid) }
}

/// The folder of /proc in which the maps, files and links of a process are found ([`standing_for`]).
pub fn folder(pid: Pid) -> String {
    format!("/proc/{}", standing_for(pid))
}

/// The process of a thread.
pub fn process_of(tid: Tid) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    parse_status_field(&text, "Tgid")?.trim().parse().ok()
}

/// Nanoseconds that the living threads of `pid` ran (schedstat, exact to the last switch or tick). Threads that ended
/// are not in it: [`crate::clock::process_cpu_ns`] has them.
pub fn run_ns(pid: Pid) -> io::Result<u64> {
    let mut sum = 0;
    let tasks = tasks(pid);
    if tasks.is_empty() {
        return Err(gone());
    }
    for tid in tasks {
        // A thread that ended since it was listed counts nothing.
        sum += task_run_ns(pid, tid).unwrap_or(0);
    }
    Ok(sum)
}

/// CPU time of one thread, up to its last tick (/proc/PID/task/TID/schedstat); `None` when it is gone.
pub fn task_run_ns(pid: Pid, tid: Tid) -> Option<u64> {
    parse_run_ns(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?)
}

/// The first number of /proc/PID/schedstat: nanoseconds on a CPU.
pub fn parse_run_ns(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// User and kernel time of the process in clock ticks (1/100 s), sampled by the tick; ended threads included.
pub fn user_system_ticks(pid: Pid) -> io::Result<(u64, u64)> {
    stat(pid).map(|stat| (stat.user_ticks, stat.system_ticks))
}

/// The most memory the process ever had resident, in bytes (`VmHWM`).
pub fn rss_peak_bytes(pid: Pid) -> io::Result<u64> {
    parsed(pid, "status", |text| parse_status_kib(text, "VmHWM"))
}

/// Resident memory now, in bytes, pages shared with others counted by share (`Pss`): sums over a server's processes mean
/// something. Needs the right to trace the process.
pub fn pss_bytes(pid: Pid) -> io::Result<u64> {
    parsed(pid, "smaps_rollup", |text| parse_status_kib(text, "Pss"))
}

/// Resident memory now, in bytes (`VmRSS`).
pub fn rss_bytes(pid: Pid) -> io::Result<u64> {
    parsed(pid, "status", |text| parse_status_kib(text, "VmRSS"))
}

/// Where thread `tid` may run, as /proc says.
pub fn cpus_allowed(tid: Tid) -> io::Result<CpuSet> {
    parsed(tid, "status", |text| parse_status_field(text, "Cpus_allowed_list")?.parse().ok())
}

/// The value of one field of /proc/PID/status, trimmed.
pub fn parse_status_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let value = |line: &'t str| line.strip_prefix(name)?.strip_prefix(':');
    text.lines().find_map(value).map(str::trim)
}

/// Anonymous memory of `pid`, at a glance; reserved huge pages are taken for such.
pub fn anonymous_bytes(pid: Pid) -> io::Result<u64> {
    parsed(pid, "status", |text| {
        Some(parse_status_kib(text, "RssAnon")? + parse_status_kib(text, "HugetlbPages").unwrap_or(0))
    })
}

/// A field of /proc/PID/status that is given in kB (of 1,024 bytes), in bytes.
pub fn parse_status_kib(text: &str, name: &str) -> Option<u64> {
    parse_status_field(text, name)?.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Whether every thread of `pid` sleeps now, waiting for an event. A process that is gone or stopped does not sleep.
pub fn all_sleeping(pid: Pid) -> bool {
    let sleeps = |tid: &Tid| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
        parse_stat(&text).is_some_and(|stat| stat.state == 'S')
    };
    let tasks = tasks(pid);
    !tasks.is_empty() && tasks.iter().all(sleeps)
}

/// What the process watches in all its epoll instances: descriptor and event bits (edge-triggered has `0x8000_0000`).
pub fn epoll_events(pid: Pid) -> io::Result<Vec<(i32, u32)>> {
    // An unreadable folder is an error, an empty one is an answer.
    fs::read_dir(format!("/proc/{pid}/fd"))?;
    let is_epoll = |fd: &i32| {
        let link = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
    };
    let info = |fd| fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let epolls = numbers_in(&format!("/proc/{pid}/fd")).into_iter().filter(is_epoll);
    Ok(epolls.flat_map(|fd| parse_epoll_fdinfo(&info(fd))).collect())
}

/// The watched descriptors in an epoll instance's fdinfo: lines like `tfd: 5 events: 80000019 data: …`.
pub fn parse_epoll_fdinfo(text: &str) -> Vec<(i32, u32)> {
    let watched = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let fd = words.next()?.parse().ok()?;
        let bits = words.skip_while(|word| *word != "events:").nth(1)?;
        Some((fd, u32::from_str_radix(bits, 16).ok()?))
    };
    text.lines().filter_map(watched).collect()
}

/// The files mapped into the process, each once, sorted: which libraries are there.
pub fn maps(pid: Pid) -> io::Result<Vec<String>> {
    read(pid, "maps").map(|text| parse_maps(&text))
}

/// The file names of /proc/PID/maps, each once, sorted; anonymous and special mappings (`[heap]`) left out.
pub fn parse_maps(text: &str) -> Vec<String> {
    // Five columns stand before the name, which may hold blanks itself.
    let name = |line: &str| line.find('/').map(|at| line[at..].to_owned());
    text.lines().filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

fn read(pid: Pid, file: &str) -> io::Result<String> {
    // A command name need not be UTF-8, and it stands in stat and status.
    fs::read(format!("/proc/{pid}/{file}")).map(|raw| String::from_utf8_lossy(&raw).into_owned())
}

/// A text that could not be understood is an error that names the file.
fn parsed<T>(pid: Pid, file: &str, parse: impl FnOnce(&str) -> Option<T>) -> io::Result<T> {
    let odd =
        || io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/{file} has an unknown shape"));
    parse(&read(pid, file)?).ok_or_else(odd)
}

fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::child::this;

    const STAT: &str = "4242 (a) (b c) S 17 4242 4242 0 -1 4194304 1 0 0 0 7 11 13 19 20 -4 3 0 998877 1 2 3 4 5 6 7 8 9 \
                        10 11 12 13 14 15 17 5 0 3 0";

    #[test]
    fn a_name_with_blanks_and_brackets_moves_no_field() {
        let expected = Stat {
            pid: 4242,
            state: 'S',
            parent: 17,
            is_ending: false,
            user_ticks: 7,
            system_ticks: 11,
            children_ticks: (13, 19),
            nice: -4,
            policy: 3,
            start_ticks: 998_877,
            cpu: 5,
        };
        assert_eq!(parse_stat(STAT), Some(expected));
        let ending = STAT.replace("4194304", "4194308");
        assert!(parse_stat(&ending).unwrap().is_ending);
    }

    #[test]
    fn a_stat_cut_anywhere_is_no_stat_and_no_panic() {
        let end = STAT.find("998877").unwrap();
        assert!((0..end).all(|cut| parse_stat(&STAT[..cut]).is_none()));
    }

    #[test]
    fn status_fields_are_found_whole() {
        let status =
            "Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t 12 kB\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(parse_status_kib(status, "VmHWM"), Some(1_234 * 1_024));
        assert_eq!(parse_status_field(status, "Cpus_allowed_list"), Some("0-1"));
        assert_eq!(parse_status_field(status, "Cpus_allowed"), Some("3"));
        assert_eq!((parse_status_kib(status, "VmSwap"), parse_status_kib(status, "Name")), (None, None));
    }

    #[test]
    fn watched_descriptors_come_with_their_bits() {
        let fdinfo = "pos:\t0\nflags:\t02\ntfd:        5 events: 80000019 data:  5  pos:0 ino:1 sdev:8\n\
                      tfd:        7 events:       19 data:                7\n";
        assert_eq!(parse_epoll_fdinfo(fdinfo), [(5, 0x8000_0019), (7, 0x19)]);
    }

    #[test]
    fn mapped_files_are_named_once() {
        let maps = "55d0-55d1 r--p 0 08:01 12 /usr/bin/a b\n55d1-55d2 r-xp 0 08:01 12 /usr/bin/a b\n\
                    7f00-7f01 rw-p 0 00:00 0 \n7f01-7f02 rw-p 0 00:00 0 [heap]\n7f-7f r--p 0 08:01 9 /lib/x.so\n";
        assert_eq!(parse_maps(maps), ["/lib/x.so", "/usr/bin/a b"]);
    }

    #[test]
    fn schedstat_begins_with_the_time_on_a_cpu() {
        assert_eq!((parse_run_ns("1234 56 7\n"), parse_run_ns("")), (Some(1_234), None));
    }

    #[test]
    fn this_process_can_be_read() {
        let me = this();
        assert!(run_ns(me).unwrap() > 0 && rss_bytes(me).unwrap() > 0);
        assert!(rss_peak_bytes(me).unwrap() >= rss_bytes(me).unwrap() / 2);
        assert_eq!(cpus_allowed(me).unwrap(), crate::affinity::of(me).unwrap());
        assert!(maps(me).unwrap().iter().any(|name| name.contains("dyno_sys")));
        assert!(tasks(me).contains(&me) && !all_sleeping(me), "this very thread runs");
        assert!(user_system_ticks(me).is_ok() && state(me).unwrap().is_ascii_uppercase());
    }

    #[test]
    fn a_gone_process_is_an_error_or_empty() {
        let gone = i32::MAX - 1;
        assert!(
            run_ns(gone).is_err()
                && rss_bytes(gone).is_err()
                && maps(gone).is_err()
                && epoll_events(gone).is_err()
        );
        assert!(tree(gone).is_empty() && tasks(gone).is_empty() && !all_sleeping(gone));
    }

    #[test]
    fn both_ways_to_a_tree_agree() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let root = child.id().cast_signed();
        let deadline_ns = crate::clock::mono_ns() + 5_000_000_000;
        while tree(root).len() < 2 {
            assert!(crate::clock::mono_ns() < deadline_ns, "the grandchild never came");
            std::thread::yield_now();
        }
        let families = families();
        let scanned = grow(root, |parent| families.get(&parent).cloned().unwrap_or_default());
        assert_eq!(scanned, tree(root));
        for &pid in scanned.iter().rev() {
            crate::signal::kill(pid, crate::signal::Signal::Kill).unwrap();
        }
        child.wait().unwrap();
    }

    #[test]
    fn edge_triggering_shows_in_the_watched_bits() {
        let (reader, _writer) = crate::socket::pipe().unwrap();
        let epoll = crate::epoll::Epoll::new().unwrap();
        epoll.add(&reader, 1, crate::epoll::Interest::READ.edge()).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let bits = epoll_events(this()).unwrap().into_iter().find(|watched| watched.0 == fd).unwrap().1;
        assert_eq!(bits & 0x8000_0001, 0x8000_0001);
    }

    #[test]
    fn a_sleeper_is_seen_asleep() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let deadline_ns = crate::clock::mono_ns() + 5_000_000_000;
        while !all_sleeping(pid) {
            assert!(crate::clock::mono_ns() < deadline_ns, "sleep never slept");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
