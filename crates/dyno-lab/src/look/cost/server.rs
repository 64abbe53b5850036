//! What a server does for a reply: its system calls, watched for a moment (`ptrace(2)`), told apart by what they are made on.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{Facts, Watched};
use dyno_sys::trace::{Seen, watch_syscalls};
use dyno_sys::{Pid, Tid, clock, proc};

use crate::failure::chain;

/// A traced call takes some ten microseconds, so that this is over in a twentieth of a second; the time is for idle servers.
const CALLS_MAX: usize = 5_000;
const WATCH_NS: u64 = 400_000_000;
/// How often it is looked whether that is over.
const LOOK_NS: u64 = 5_000_000;
/// Threads that are stopped for it.
const THREADS_MAX: usize = 256;
/// Replies from which something is said of each.
const REPLIES_MIN: u64 = 20;

const READS: [&str; 2] = ["read", "readv"];
const RECEIVES: [&str; 3] = ["recvfrom", "recvmsg", "recvmmsg"];
const WRITES: [&str; 2] = ["write", "writev"];
const SENDS: [&str; 4] = ["sendto", "sendmsg", "sendmmsg", "sendfile"];
const FILE_WRITES: [&str; 5] = ["write", "writev", "pwrite64", "pwritev", "pwritev2"];
const SYNCS: [&str; 3] = ["fsync", "fdatasync", "sync_file_range"];

/// Watches it.
pub(super) fn watched(facts: &Facts, pids: &[Pid]) -> Fact<Watched> {
    let Some(server) = &facts.server else { return Fact::Absent("a server to look at".into()) };
    let unread = |why: String, needs: &str| {
        Fact::Unread(Unread {
            what: "what the server does for a reply".into(),
            why,
            needs: needs.to_owned(),
            ..Unread::default()
        })
    };
    let ports: Vec<u16> =
        server.listeners.value().into_iter().flatten().filter_map(|one| port(&one.local)).collect();
    let tids: BTreeMap<Tid, Pid> = pids
        .iter()
        .flat_map(|pid| proc::tasks(*pid).into_iter().map(move |tid| (tid, *pid)))
        .take(THREADS_MAX)
        .collect();
    let numbers: Vec<Tid> = tids.keys().copied().collect();
    let begun = clock::mono_ns();
    let seen = watch_syscalls(&numbers, CALLS_MAX, &mut || wait(begun + WATCH_NS));
    let kinds = |pid: Pid| Kinds::of(pid, &ports);
    match seen {
        Err(error) => {
            unread(chain(&error), "root, or a kernel.yama.ptrace_scope of 0: sudo dyno audit --measure")
        }
        Ok(seen) => {
            let mut watched = judged(&seen, &tids, kinds);
            watched.seconds = (clock::mono_ns() - begun) as f64 / 1e9;
            match watched.replies {
                replies if replies >= REPLIES_MIN => Fact::Value(watched),
                replies => {
                    unread(format!("it sent {replies} replies while it was watched"), "a server under load")
                }
            }
        }
    }
}

fn wait(deadline_ns: u64) {
    while clock::mono_ns() < deadline_ns {
        clock::sleep_ns(LOOK_NS);
    }
}

fn port(local: &str) -> Option<u16> {
    local.rsplit(':').next()?.parse().ok()
}

/// What a process's descriptors are.
struct Kinds {
    accepted: BTreeSet<i32>,
    pid: Pid,
    files: BTreeMap<i32, bool>,
}

impl Kinds {
    fn of(pid: Pid, ports: &[u16]) -> Kinds {
        let accepted = ports.iter().flat_map(|port| proc::sockets_accepted(pid, *port)).collect();
        Kinds { accepted, pid, files: BTreeMap::new() }
    }

    /// Whether it is a regular file; `/dev/null` and terminals are none.
    fn is_file(&mut self, fd: i32) -> bool {
        let pid = self.pid;
        *self.files.entry(fd).or_insert_with(|| {
            let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
            target.is_absolute() && !target.starts_with("/dev")
        })
    }
}

fn judged(seen: &[Seen], tids: &BTreeMap<Tid, Pid>, kinds: impl Fn(Pid) -> Kinds) -> Watched {
    let mut watched = Watched::default();
    let mut of: BTreeMap<Pid, Kinds> = BTreeMap::new();
    // Connections that have asked and were not answered yet.
    let mut asked: BTreeSet<(Pid, i32)> = BTreeSet::new();
    for call in seen {
        *watched.calls.entry(call.name.clone().into_owned()).or_default() += 1;
        let Some(pid) = tids.get(&call.tid).copied() else { continue };
        let kinds = of.entry(pid).or_insert_with(|| kinds(pid));
        let is = |names: &[&str]| names.contains(&call.name.as_ref());
        if kinds.accepted.contains(&call.first) {
            count_connection(&mut watched, &mut asked, (pid, call.first), call, is);
        } else if is(&FILE_WRITES) && kinds.is_file(call.first) {
            watched.file_writes += 1;
        } else if is(&SYNCS) {
            watched.syncs += 1;
        }
    }
    watched
}

fn count_connection(
    watched: &mut Watched,
    asked: &mut BTreeSet<(Pid, i32)>,
    connection: (Pid, i32),
    call: &Seen,
    is: impl Fn(&[&str]) -> bool,
) {
    if is(&READS) || is(&RECEIVES) {
        *(if is(&READS) { &mut watched.reads } else { &mut watched.receives }) += 1;
        if call.answer > 0 {
            asked.insert(connection);
        }
    } else if is(&WRITES) || is(&SENDS) {
        *(if is(&WRITES) { &mut watched.writes } else { &mut watched.sends }) += 1;
        if call.answer > 0 && asked.remove(&connection) {
            watched.replies += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &'static str, fd: i32, answer: i64) -> Seen {
        Seen { tid: 7, name: name.into(), first: fd, answer }
    }

    fn judged_on(seen: &[Seen]) -> Watched {
        let kinds = |pid| Kinds { accepted: [5, 6].into(), pid, files: [(3, true), (4, false)].into() };
        judged(seen, &[(7, 7)].into(), kinds)
    }

    #[test]
    fn a_head_and_a_body_are_one_reply_in_two_sends() {
        let one = [call("epoll_wait", 8, 1), call("read", 5, 90), call("write", 5, 60), call("write", 5, 20)];
        let log = [call("write", 3, 40), call("write", 4, 1), call("fdatasync", 3, 0), call("read", 5, -11)];
        let seen = judged_on(&[&one[..], &log, &[call("recvfrom", 6, 90), call("sendto", 6, 80)]].concat());
        assert_eq!((seen.replies, seen.writes, seen.sends), (2, 2, 1));
        assert_eq!((seen.reads, seen.receives, seen.file_writes, seen.syncs), (2, 1, 1, 1));
        assert!((seen.calls_per_reply() - 5.0).abs() < 1e-9, "{seen:?}");
    }

    #[test]
    fn a_file_is_told_from_a_device_and_a_pipe() {
        use std::os::fd::AsRawFd;
        let own = std::fs::File::open("/proc/self/exe").expect("this program is a file");
        let null = std::fs::File::open("/dev/null").expect("it is always there");
        let (pipe, _end) = std::io::pipe().expect("a pipe");
        let mut kinds = Kinds::of(dyno_sys::child::this(), &[]);
        let is = [own.as_raw_fd(), null.as_raw_fd(), pipe.as_raw_fd(), 9_999].map(|fd| kinds.is_file(fd));
        assert_eq!(is, [true, false, false, false]);
    }

    #[test]
    fn what_is_sent_unasked_or_to_others_is_no_reply() {
        let seen =
            judged_on(&[call("write", 5, 9), call("sendto", 9, 9), call("read", 5, 0), call("write", 5, 9)]);
        assert_eq!((seen.replies, seen.writes, seen.sends), (0, 2, 0));
    }
}
