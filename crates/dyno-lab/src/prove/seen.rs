//! What can be read of running processes from outside, for proofs: procfs, and duplicates of their sockets.
//!
//! The proofs beside, and the launch of a server, call it; it changes nothing.

use std::collections::BTreeMap;

use dyno_climb::proof::Reading;
use dyno_host::counted;
use dyno_sys::setting::scheduling;
use dyno_sys::socket::{Addr, SockOpt};
use dyno_sys::{Pid, child, proc, socket};

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
    let read: std::io::Result<Vec<_>> = pids.iter().map(|pid| proc::memory_use(*pid)).collect();
    match read {
        Ok(all) => Reading::Number(all.iter().map(|one| one.huge as f64 / 1e6).sum()),
        Err(error) => Reading::CannotTell(format!("its memory cannot be read: {error}")),
    }
}

/// Whether every task of these processes is scheduled in this class.
pub(super) fn scheduled(pids: &[Pid], class: &str) -> Reading {
    let tids = pids.iter().flat_map(|pid| proc::tasks(*pid));
    let classes: Vec<String> = tids.filter_map(|tid| scheduling::class_of(tid).ok()).collect();
    let others = classes.iter().filter(|one| *one != class).count();
    match classes.first() {
        None => Reading::CannotTell("no thread of the server could be asked".into()),
        Some(_) if others == 0 => Reading::Fact { text: class.to_owned(), holds: true },
        Some(_) => {
            let text = format!("{others} of {} threads are not in class {class}", classes.len());
            Reading::Fact { text, holds: false }
        }
    }
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

/// Share of the accepted connections on `port` that arrive on the one CPU their process may run on, in percent.
pub(super) fn local(pids: &[Pid], port: u16) -> Reading {
    let (mut here, mut all) = (0.0, 0.0);
    for pid in pids {
        let Ok(mask) = proc::cpus_allowed(*pid) else { continue };
        let Ok(pidfd) = child::pidfd_open(*pid) else { continue };
        for fd in proc::sockets_accepted(*pid, port) {
            let copy = child::pidfd_getfd(&pidfd, fd);
            let Ok(Some(cpu)) = copy.and_then(socket::incoming_cpu) else { continue };
            all += 1.0;
            here += f64::from(u8::from(mask.len() == 1 && mask.contains(cpu)));
        }
    }
    if all == 0.0 {
        Reading::CannotTell("no accepted connection could be read".into())
    } else {
        Reading::Number(100.0 * here / all)
    }
}

/// Share of the accepted connections on `port` whose last packet came by polling, in percent: they have a NAPI id then.
pub(super) fn polled(pids: &[Pid], port: u16) -> Reading {
    let (mut polled, mut all) = (0.0, 0.0);
    for pid in pids {
        let Ok(pidfd) = child::pidfd_open(*pid) else { continue };
        for fd in proc::sockets_accepted(*pid, port) {
            let Ok(id) = counted::napi_id(&pidfd, fd) else { continue };
            all += 1.0;
            polled += f64::from(u8::from(id != 0));
        }
    }
    if all == 0.0 {
        Reading::CannotTell("no accepted connection could be read".into())
    } else {
        Reading::Number(100.0 * polled / all)
    }
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
        Err(error) => Err(std::io::Error::other(error)),
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
        assert!(matches!(scheduled(&[child::this()], "batch"), Reading::Fact { holds: false, .. }));
        drop(end);
        thread.join().expect("the thread does not panic");
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let pid = sleeper.id().cast_signed();
        assert!(matches!(scheduled(&[pid], "other"), Reading::Fact { holds: true, .. }));
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

    #[test]
    fn our_own_process_can_be_read() {
        let pid = child::this();
        assert!(matches!(threads(&[pid]), Reading::Number(n) if n >= 1.0));
        assert!(matches!(maps(&[pid], "libc"), Reading::Fact { holds: true, .. }));
        assert!(matches!(maps(&[pid], "no-such-library"), Reading::Fact { holds: false, .. }));
    }
}
