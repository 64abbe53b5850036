//! What can be read of running processes from outside, for proofs: procfs, and duplicates of their sockets.
//!
//! The proofs beside, and the launch of a server, call it; it changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

use dyno_climb::proof::{FileFlag, Reading};
use dyno_sys::setting::scheduling;
use dyno_sys::socket::{Addr, SockOpt};
use dyno_sys::{Pid, Tid, child, proc, socket};

use crate::launch::foreign_listener;

/// Bit of `EPOLLET` in the events that fdinfo shows.
const EPOLLET: u32 = 1 << 31;
/// The mode of a task with a filter (SECCOMP_MODE_FILTER).
const FILTER: u32 = 2;

/// Tasks of all these processes.
pub(super) fn threads(pids: &[Pid]) -> Reading {
    Reading::Number(pids.iter().map(|pid| proc::tasks(*pid).len()).sum::<usize>() as f64)
}

/// Filters that system calls of all these tasks pass. A kernel before 5.10 does not tell how many: there each task that has any
/// counts once.
pub(super) fn filters(pids: &[Pid]) -> Reading {
    let costs = pids.iter().flat_map(|pid| proc::task_costs(*pid));
    let of = |cost: proc::TaskCost| cost.seccomp_filters.max(u32::from(cost.seccomp == FILTER));
    Reading::Number(costs.map(|cost| f64::from(of(cost))).sum())
}

/// Memory of these processes that stands in huge pages, MB.
pub(super) fn huge_pages(pids: &[Pid]) -> Reading {
    let read: io::Result<Vec<_>> = pids.iter().map(|pid| proc::memory_use(*pid)).collect();
    match read {
        Ok(all) => Reading::Number(all.iter().map(|one| one.huge as f64 / 1e6).sum()),
        Err(error) => Reading::CannotTell(format!("its memory cannot be read: {error}")),
    }
}

/// Whether every task of these processes is scheduled in this class, and is as nice as that where it matters.
pub(super) fn scheduled(pids: &[Pid], class: &str, nice: Option<i32>) -> Reading {
    let wanted = nice.map_or_else(|| class.to_owned(), |nice| format!("{class} nice {nice}"));
    let place = |tid| match nice {
        None => scheduling::class_of(tid),
        Some(_) => scheduling::place_of(tid),
    };
    let tids = pids.iter().flat_map(|pid| proc::tasks(*pid));
    all_stand(tids.filter_map(|tid| place(tid).ok()), &wanted, "in class")
}

/// Whether the timer slack of every task of these processes is this. Reading that of another process needs CAP_SYS_NICE.
pub(super) fn timer_slack(pids: &[Pid], ns: u64) -> Reading {
    match slacks_of(pids.iter().flat_map(|pid| proc::tasks(*pid))) {
        Ok(slacks) => {
            all_stand(slacks.into_iter().map(|slack| format!("{slack} ns")), &format!("{ns} ns"), "at")
        }
        Err(error) => Reading::CannotTell(format!("timer slack of another process cannot be read: {error}")),
    }
}

/// Those of threads that live; one may end at any time.
fn slacks_of(tids: impl Iterator<Item = Tid>) -> io::Result<Vec<u64>> {
    tids.map(proc::timer_slack_ns).filter(|read| !is_of_ended(read)).collect()
}

fn is_of_ended<T>(read: &io::Result<T>) -> bool {
    read.as_ref().is_err_and(proc::is_gone)
}

/// One thread that stands elsewhere may be the one that serves.
fn all_stand(read: impl Iterator<Item = String>, wanted: &str, word: &str) -> Reading {
    let read: Vec<String> = read.collect();
    let others: Vec<&String> = read.iter().filter(|one| *one != wanted).collect();
    match (read.first(), others.first()) {
        (None, _) => Reading::CannotTell("no thread of the server could be asked".into()),
        (_, None) => Reading::Fact { text: wanted.to_owned(), holds: true },
        (_, Some(other)) => {
            let text = format!("{} of {} threads are not {word} {wanted}: {other}", others.len(), read.len());
            Reading::Fact { text, holds: false }
        }
    }
}

/// Files that these processes have open whose path contains the text, with this flag.
pub(super) fn open_files(pids: &[Pid], contains: &str, flag: FileFlag) -> Reading {
    // O_SYNC is O_DSYNC and a bit more.
    let asked = |word: &str| word == flag.name() || flag == FileFlag::Dsync && word == "O_SYNC";
    let read = pids.iter().map(|pid| proc::open_files(*pid)).filter(|read| !is_of_ended(read));
    let all: Vec<BTreeMap<String, String>> = match read.collect::<io::Result<_>>() {
        Ok(all) => all,
        Err(error) => return Reading::CannotTell(format!("its open files cannot be read: {error}")),
    };
    if all.is_empty() {
        return Reading::CannotTell("no process of the server could be asked".into());
    }
    let files = all.into_iter().flatten();
    let found = files.filter(|(path, flags)| path.contains(contains) && flags.split(' ').any(asked));
    let paths: BTreeSet<String> = found.map(|(path, _)| path).collect();
    Reading::Number(paths.len() as f64)
}

/// Tasks of these processes that may run on one CPU only, counted once per CPU.
pub(super) fn pinned(pids: &[Pid]) -> Reading {
    let tids = pids.iter().flat_map(|pid| proc::tasks(*pid));
    let masks = tids.filter_map(|tid| proc::cpus_allowed(tid).ok());
    let single: BTreeMap<usize, ()> = masks
        .filter(|mask| mask.len() == 1)
        .filter_map(|mask| mask.iter().next())
        .map(|cpu| (cpu, ()))
        .collect();
    Reading::Number(single.len() as f64)
}

/// Of accepted connections, those that are told by their last packet, and those of these that came as is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    all: usize,
    told: usize,
    so: usize,
}

impl Share {
    /// Whether every connection is told that can be read.
    pub(super) fn is_whole(self) -> bool {
        self.told == self.all
    }

    /// The one that tells of more connections; of two alike the other.
    pub(super) fn fuller(self, other: Share) -> Share {
        if other.told >= self.told { other } else { self }
    }

    /// In percent.
    pub(super) fn reading(self) -> Reading {
        match self {
            Share { all: 0, .. } => Reading::CannotTell("no accepted connection could be read".into()),
            Share { told: 0, .. } => {
                Reading::CannotTell("no connection's last packet brought a request".into())
            }
            Share { told, so, .. } => Reading::Number(100.0 * so as f64 / told as f64),
        }
    }

    fn add(&mut self, is_request: bool, is_so: io::Result<bool>) {
        self.all += 1;
        if let (true, Ok(so)) = (is_request, is_so) {
            self.told += 1;
            self.so += usize::from(so);
        }
    }
}

/// What connections had received at the look before, and how often that was more than at the one before it.
#[derive(Debug, Default)]
pub(super) struct Looks {
    received: BTreeMap<(Pid, i32), (u32, u8)>,
}

/// Requests between two looks before a connection is told: a client that was at rest acknowledges the first answer at once, on
/// the server's CPU, which cannot be told from the request's own packet in the same tick of the kernel.
const REQUESTS: u8 = 2;

impl Looks {
    /// Whether the last packet was a request that followed others: see [`socket::last_brought_data`].
    fn is_request(&mut self, held: &Held) -> bool {
        let Ok(sending) = socket::sending(&held.copy) else { return false };
        let (received, more) = self.received.entry((held.pid, held.fd)).or_insert((sending.received, 0));
        if *received != sending.received {
            (*received, *more) = (sending.received, REQUESTS.min(*more + 1));
        }
        *more >= REQUESTS && socket::last_brought_data(&held.copy).is_ok_and(|data| data)
    }
}

/// A duplicate of a connection that a process has accepted. It lives for a look: while it does, the server cannot close it.
struct Held {
    pid: Pid,
    fd: i32,
    copy: OwnedFd,
}

/// A process with the numbers of its accepted connections: the tables that say them are long, and read once.
#[derive(Debug)]
pub(super) struct Serving {
    pid: Pid,
    fds: Vec<i32>,
}

/// Those of a port.
pub(super) fn serving(pids: &[Pid], port: u16) -> Vec<Serving> {
    pids.iter().map(|pid| Serving { pid: *pid, fds: proc::sockets_accepted(*pid, port) }).collect()
}

/// The accepted connections whose last request came on the one CPU that their process may run on.
pub(super) fn local(all: &[Serving], looks: &mut Looks) -> Share {
    let mut share = Share::default();
    for serving in all {
        let Ok(mask) = proc::cpus_allowed(serving.pid) else { continue };
        let is_home = |cpu: usize| mask.len() == 1 && mask.contains(cpu);
        for held in accepted(serving) {
            let cpu = socket::incoming_cpu(&held.copy);
            share.add(looks.is_request(&held), cpu.map(|cpu| cpu.is_some_and(is_home)));
        }
    }
    share
}

/// The accepted connections whose last request came by polling: they have a NAPI id then.
pub(super) fn polled(all: &[Serving], looks: &mut Looks) -> Share {
    let mut share = Share::default();
    for held in all.iter().flat_map(accepted) {
        let id = socket::int_option(&held.copy, SockOpt::IncomingNapiId);
        share.add(looks.is_request(&held), id.map(|id| id != 0));
    }
    share
}

fn accepted(serving: &Serving) -> impl Iterator<Item = Held> {
    let pid = serving.pid;
    let pidfd = child::pidfd_open(pid).ok();
    serving.fds.iter().filter_map(move |fd| {
        let copy = child::pidfd_getfd(pidfd.as_ref()?, *fd).ok()?;
        Some(Held { pid, fd: *fd, copy })
    })
}

/// Whether a mapped file's path contains the text, in any of these processes.
pub(super) fn maps(pids: &[Pid], contains: &str) -> Reading {
    let mut found = pids
        .iter()
        .flat_map(|pid| proc::maps(*pid).unwrap_or_default())
        .filter(|file| file.contains(contains));
    match found.next() {
        Some(file) => Reading::Fact { text: file, holds: true },
        None => Reading::Fact { text: format!("no mapped file contains {contains}"), holds: false },
    }
}

/// Processes that listen on `address`; with a foreign process among them the server cannot be measured.
pub(super) fn listeners(pids: &[Pid], address: &Addr) -> Reading {
    let listening = proc::listeners(address);
    match foreign_listener(&listening, pids, address) {
        Some(why) => Reading::CannotTell(why),
        None => Reading::Number(listening.len() as f64),
    }
}

/// Whether the accepted connections on `port` are watched edge-triggered.
pub(super) fn epoll_flags(pids: &[Pid], port: u16, edge: bool) -> Reading {
    for pid in pids {
        let accepted = proc::sockets_accepted(*pid, port);
        let watched = proc::epoll_events(*pid).unwrap_or_default();
        if let Some((_, events)) = watched.iter().find(|(fd, _)| accepted.contains(fd)) {
            let is_edge = events & EPOLLET != 0;
            let word = if is_edge { "edge" } else { "level" };
            return Reading::Fact { text: format!("{events:x}, {word}"), holds: is_edge == edge };
        }
    }
    Reading::CannotTell("no accepted connection is watched by epoll".into())
}

/// A socket option of an accepted connection on `port`, from a duplicate of its descriptor (pidfd_getfd(2)).
pub(super) fn sockopt(pids: &[Pid], port: u16, option: &str, expect: &str) -> Reading {
    let read = |copy: std::os::fd::OwnedFd| match option.parse::<SockOpt>() {
        Ok(known) => socket::read_option(&copy, known),
        // A name, not a number: it has a call of its own.
        Err(_) if option == "congestion" => socket::congestion(&copy),
        Err(error) => Err(io::Error::other(error)),
    };
    for pid in pids {
        if let Some(fd) = proc::sockets_accepted(*pid, port).first() {
            let read =
                child::pidfd_open(*pid).and_then(|pidfd| child::pidfd_getfd(&pidfd, *fd)).and_then(read);
            return match read {
                Ok(text) => Reading::Fact { holds: text == expect, text },
                Err(error) => {
                    Reading::CannotTell(format!("the connection's descriptor cannot be copied: {error}"))
                }
            };
        }
    }
    Reading::CannotTell("no accepted connection was found".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_on_one_thread_counts_once_however_many_there_are() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let added = child::no_new_privs().and_then(|()| dyno_sys::seccomp::weigh_down());
            let status = proc::text("/proc/thread-self/status").unwrap_or_default();
            let own = proc::parse_status_field(&status, "Seccomp_filters").map(|text| text.trim().to_owned());
            let _ = tell.send((added.is_ok(), own));
            let _ = ended.recv();
        });
        let (added, own) = told.recv().expect("the thread tells");
        assert_eq!((added, own.as_deref()), (true, Some("1")));
        assert_eq!(filters(&[child::this()]), Reading::Number(1.0), "the others pass none");
        drop(end);
        thread.join().expect("the thread does not panic");
    }

    #[test]
    fn a_class_of_one_thread_is_not_in_force_while_others_serve_in_another() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = tell.send(scheduling::set_own("batch nice 0").is_ok());
            let _ = ended.recv();
        });
        assert_eq!(told.recv(), Ok(true), "everybody may be in less of a hurry");
        assert!(matches!(scheduled(&[child::this()], "batch", None), Reading::Fact { holds: false, .. }));
        drop(end);
        thread.join().expect("the thread does not panic");
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let pid = sleeper.id().cast_signed();
        assert!(matches!(scheduled(&[pid], "other", None), Reading::Fact { holds: true, .. }));
        assert!(matches!(scheduled(&[pid], "other", Some(0)), Reading::Fact { holds: true, .. }));
        let nicer = scheduled(&[pid], "other", Some(5));
        assert!(matches!(nicer, Reading::Fact { holds: false, .. }), "{nicer}");
        sleeper.kill().expect("it runs");
        sleeper.wait().expect("it was started here");
    }

    #[test]
    fn huge_pages_that_are_allowed_and_not_used_count_nothing() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let pid = sleeper.id().cast_signed();
        assert!(matches!(huge_pages(&[pid]), Reading::Number(mb) if mb < 1.0), "it has no memory for one");
        sleeper.kill().expect("it runs");
        sleeper.wait().expect("it was started here");
        assert!(matches!(huge_pages(&[i32::MAX]), Reading::CannotTell(_)));
    }

    /// Planted fault: the slack of the first thread stands for all.
    #[test]
    fn a_timer_slack_of_one_thread_is_not_in_force_while_others_have_another() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = tell.send(child::timer_slack(1_234).is_ok());
            let _ = ended.recv();
        });
        assert_eq!(told.recv(), Ok(true));
        let read = timer_slack(&[child::this()], 1_234);
        let is_read =
            matches!(&read, Reading::Fact { holds: false, text } if text.contains("are not at 1234 ns"));
        // A thread may read its own, and others' with CAP_SYS_NICE.
        assert!(is_read || matches!(read, Reading::CannotTell(_)), "{read}");
        drop(end);
        thread.join().expect("the thread does not panic");
    }

    /// Planted fault: a file counts that is open, however it was opened.
    #[test]
    fn a_file_that_is_open_without_the_flag_does_not_count() {
        use std::os::unix::fs::OpenOptionsExt;
        let path = std::env::temp_dir().join(format!("dyno-flag-{}", child::this()));
        // O_DSYNC of x86-64 and arm64 (asm-generic/fcntl.h).
        let open =
            |flags| std::fs::OpenOptions::new().append(true).create(true).custom_flags(flags).open(&path);
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let count = |flag| open_files(&[child::this()], &name, flag);
        let plain = open(0).expect("a file");
        assert_eq!(count(FileFlag::Dsync), Reading::Number(0.0));
        drop(plain);
        let waits = open(0o10_000).expect("a file");
        assert_eq!(count(FileFlag::Dsync), Reading::Number(1.0));
        assert_eq!(count(FileFlag::Sync), Reading::Number(0.0));
        let other = open(0).expect("a file");
        assert_eq!(count(FileFlag::Dsync), Reading::Number(1.0), "it is open with the flag and without");
        drop((waits, other));
        assert_eq!(count(FileFlag::Dsync), Reading::Number(0.0));
        std::fs::remove_file(path).expect("its file");
    }

    /// Planted fault: what cannot be read is nothing; then a log that waits is proved to be gone.
    #[test]
    fn files_that_cannot_be_read_are_not_none() {
        let of_none = open_files(&[i32::MAX], "log", FileFlag::Dsync);
        assert!(matches!(of_none, Reading::CannotTell(_)), "{of_none}");
    }

    #[test]
    fn a_thread_that_ended_meanwhile_says_nothing_of_the_others() {
        assert!(slacks_of([i32::MAX].into_iter()).is_ok_and(|read| read.is_empty()));
    }

    #[test]
    fn our_own_process_can_be_read() {
        let pid = child::this();
        assert!(matches!(threads(&[pid]), Reading::Number(n) if n >= 1.0));
        assert!(matches!(maps(&[pid], "libc"), Reading::Fact { holds: true, .. }));
        assert!(matches!(maps(&[pid], "no-such-library"), Reading::Fact { holds: false, .. }));
    }
}
