//! One server: its threads, listeners, sockets, memory and limits.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use dyno_record::fact::Fact;
use dyno_record::facts::{
    Arrivals, Cgroup, EpollPolling, Group, Holder, Listener, Scheduled, Server, ServerListener,
    SocketOptions, Threads,
};
use dyno_sys::proc::{self, parse_status_field};
use dyno_sys::socket::{SockOpt, incoming_cpu, last_brought_data, read_option};
use dyno_sys::{Pid, child, epoll};

use super::limits::{CONNECTIONS_MAX, QUEUES_MAX, THREADS_MAX};
use super::read::{fact, unread};
use crate::place;

/// How a thread is scheduled that nobody asked for anything else.
const USUAL: &str = "other 0";
/// Options that some check reads.
const OPTIONS: [SockOpt; 7] = [
    SockOpt::NoDelay,
    SockOpt::Congestion,
    SockOpt::BusyPoll,
    SockOpt::PreferBusyPoll,
    SockOpt::IncomingCpu,
    SockOpt::IncomingNapiId,
    SockOpt::DeferAccept,
];
/// Libraries that allocate, by a part of their file's name.
const ALLOCATORS: [(&str, &str); 5] = [
    ("jemalloc", "jemalloc"),
    ("mimalloc", "mimalloc"),
    ("tcmalloc", "tcmalloc"),
    ("snmalloc", "snmalloc"),
    ("ld-musl", "musl"),
];

/// All of it.
pub(super) fn server(pid: Pid, listeners: &Fact<Vec<Listener>>) -> Server {
    let pids = proc::tree(pid);
    let own = listeners.clone().map(|all| of_server(&all, &pids));
    Server {
        pid,
        name: proc::name(pid).unwrap_or_default(),
        threads: threads(&pids, listeners),
        listeners: own,
        options: options(&pids),
        epolls: epolls(&pids),
        allocator: allocator(&pids),
        rss_bytes: memory(&pids, |one| one.rss),
        huge_bytes: memory(&pids, |one| one.huge),
        swapped_bytes: fact("VmSwap", status(pid))
            .map(|text| proc::parse_status_kib(&text, "VmSwap").unwrap_or(0)),
        files: files(pid),
        files_hard: files_hard(pid),
        cgroup: cgroup(pid),
        pids,
    }
}

fn status(pid: Pid) -> std::io::Result<String> {
    proc::text(&format!("/proc/{pid}/status"))
}

fn threads(pids: &[Pid], listeners: &Fact<Vec<Listener>>) -> Fact<Threads> {
    let mut threads = Threads::default();
    for pid in pids {
        let before = threads.count;
        for tid in proc::tasks(*pid).into_iter().take(THREADS_MAX) {
            add_thread(&mut threads, *pid, tid);
        }
        threads.of_largest = threads.of_largest.max(threads.count - before);
    }
    let serving = |pid: &&Pid| listeners.value().into_iter().flatten().any(|one| one.pids.contains(pid));
    threads.serving = pids.iter().filter(serving).count() as u32;
    match threads.count {
        0 => Fact::Absent("the server has ended".into()),
        _ => Fact::Value(threads),
    }
}

fn add_thread(threads: &mut Threads, pid: Pid, tid: Pid) {
    let folder = format!("/proc/{pid}/task/{tid}");
    // One that ended meanwhile is none.
    let Ok(status) = proc::text(&format!("{folder}/status")) else { return };
    let field = |name: &str| parse_status_field(&status, name).unwrap_or_default().to_owned();
    threads.count += 1;
    *threads.cpus.entry(field("Cpus_allowed_list")).or_default() += 1;
    *threads.seccomp_filters.entry(field("Seccomp_filters").parse().unwrap_or(0)).or_default() += 1;
    *threads.speculation.entry(field("Speculation_Store_Bypass")).or_default() += 1;
    threads.without_huge_pages += u32::from(field("THP_enabled") == "0");
    let stat = proc::text(&format!("{folder}/stat")).unwrap_or_default();
    let scheduling = scheduling(&stat);
    if let (true, Ok(task)) = (scheduling != USUAL, place::task(pid, tid)) {
        threads.apart.push(Scheduled { task, scheduling: scheduling.clone(), nice: nice(&stat) });
    }
    *threads.scheduling.entry(scheduling).or_default() += 1;
    if let Ok(slack) = proc::timer_slack_ns(tid) {
        *threads.timer_slack_ns.entry(slack).or_default() += 1;
    }
}

/// A field of a thread's stat, counted from the last bracket: a name may hold some.
fn field(stat: &str, number: usize) -> &str {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().nth(number - 3).unwrap_or_default()
}

fn nice(stat: &str) -> Option<i32> {
    field(stat, 19).parse().ok()
}

/// Policy and nice value, fields 41 and 19.
fn scheduling(stat: &str) -> String {
    match field(stat, 41) {
        "1" => "fifo".into(),
        "2" => "round robin".into(),
        "3" => "batch".into(),
        "5" => "idle".into(),
        "6" => "deadline".into(),
        _ => format!("other {}", field(stat, 19)),
    }
}

/// The server's listeners, with the sockets of others on the same address and port.
fn of_server(all: &[Listener], pids: &[Pid]) -> Vec<ServerListener> {
    let is_own = |one: &&Listener| one.pids.iter().any(|pid| pids.contains(pid));
    let places: BTreeSet<&String> = all.iter().filter(is_own).map(|one| &one.local).collect();
    let mut listeners = Vec::new();
    for local in places {
        let here = || all.iter().filter(|one| one.local == *local);
        let own: Vec<&Listener> = here().filter(is_own).collect();
        let fullest = own.iter().max_by_key(|one| one.waiting);
        let mut strangers: BTreeMap<(Option<i32>, String), u32> = BTreeMap::new();
        for one in here().filter(|one| !is_own(one)) {
            *strangers.entry((one.pids.first().copied(), one.owner.clone())).or_default() += 1;
        }
        let group = |((pid, name), sockets)| Group { pid, name, sockets };
        listeners.push(ServerListener {
            local: local.clone(),
            sockets: own.len() as u32,
            waiting: fullest.map_or(0, |one| one.waiting),
            backlog: fullest.map_or(0, |one| one.backlog),
            strangers: strangers.into_iter().map(group).collect(),
            order: order(local, &here().collect::<Vec<_>>()),
        });
    }
    listeners
}

/// The holders of an address's sockets in the order in which these began to listen. The kernel's table has the newest first, but
/// the oldest for IPv6 where the port is shared (`__inet_hash`, net/ipv4/inet_hashtables.c).
fn order(local: &str, all: &[&Listener]) -> Vec<Holder> {
    let holder = |one: &&Listener| match one.pids[..] {
        [pid] => status(pid).ok().map(|status| Holder {
            pid,
            cpus: parse_status_field(&status, "Cpus_allowed_list").unwrap_or_default().to_owned(),
        }),
        _ => None,
    };
    let holders: Option<Vec<Holder>> = all.iter().map(holder).collect();
    let mut holders = holders.filter(|holders| holders.len() > 1).unwrap_or_default();
    if !local.starts_with('[') {
        holders.reverse();
    }
    holders
}

/// Asks duplicates of the server's sockets; nothing is set on them, and they are closed at once.
fn options(pids: &[Pid]) -> Fact<SocketOptions> {
    let mut options = SocketOptions::default();
    let mut refused = None;
    for (pid, sockets) in proc::tcp_sockets_of(pids) {
        options.connections += sockets.len() as u32;
        let handle = child::pidfd_open(pid);
        let home = proc::cpus_allowed(pid).ok().filter(|cpus| cpus.len() == 1);
        let home = home.and_then(|cpus| cpus.iter().next());
        for fd in sockets.into_iter().take(CONNECTIONS_MAX) {
            let copy =
                handle.as_ref().map_err(std::io::Error::kind).map(|handle| child::pidfd_getfd(handle, fd));
            match copy {
                Ok(Ok(copy)) => add_options(&mut options, &copy, home),
                Ok(Err(error)) => refused = Some(error),
                Err(kind) => refused = Some(kind.into()),
            }
        }
    }
    match refused {
        Some(error) if options.asked == 0 => fact("socket options", Err(error)),
        _ => Fact::Value(options),
    }
}

fn add_options(options: &mut SocketOptions, socket: &OwnedFd, home: Option<usize>) {
    let is_listener = read_option(socket, SockOpt::AcceptConn).is_ok_and(|value| value == "1");
    if let (false, Some(home), Ok(true)) = (is_listener, home, last_brought_data(socket)) {
        add_arrival(options, socket, home);
    }
    let values = match is_listener {
        true => {
            options.connections -= 1;
            &mut options.listener_values
        }
        false => {
            options.asked += 1;
            &mut options.values
        }
    };
    for option in OPTIONS {
        if let Ok(value) = read_option(socket, option) {
            *values.entry(option.to_string()).or_default().entry(value).or_default() += 1;
        }
    }
}

fn add_arrival(options: &mut SocketOptions, socket: &OwnedFd, home: usize) {
    let Ok(Some(cpu)) = incoming_cpu(socket) else { return };
    let (on, served_on) = (cpu as u32, home as u32);
    options.pinned += 1;
    options.local += u32::from(on == served_on);
    let same = |one: &&mut Arrivals| (one.on, one.served_on) == (on, served_on);
    match options.arrivals.iter_mut().find(same) {
        Some(one) => one.connections += 1,
        None => options.arrivals.push(Arrivals { on, served_on, connections: 1 }),
    }
}

fn epolls(pids: &[Pid]) -> Fact<Vec<EpollPolling>> {
    let mut all = Vec::new();
    let mut failure = None;
    for pid in pids {
        let Ok(handle) = child::pidfd_open(*pid) else { continue };
        for fd in epoll_descriptors(*pid) {
            match child::pidfd_getfd(&handle, fd).and_then(|copy| epoll::polling(&copy)) {
                Ok(polling) => all.push(EpollPolling {
                    fd,
                    busy_poll_usecs: polling.busy_poll_usecs,
                    budget: u32::from(polling.budget),
                    prefer: polling.prefer != 0,
                }),
                Err(error) => failure = Some(error),
            }
        }
    }
    match failure {
        // ENOTTY is 25.
        Some(error) if error.raw_os_error() == Some(25) && all.is_empty() => {
            Fact::Absent("busy polling of an epoll instance (Linux 6.9)".into())
        }
        Some(error) if all.is_empty() => fact("epoll instances", Err(error)),
        _ => Fact::Value(all),
    }
}

fn epoll_descriptors(pid: Pid) -> Vec<i32> {
    let folder = format!("/proc/{pid}/fd");
    let names = proc::names(&folder, QUEUES_MAX).unwrap_or_default();
    let is_epoll = |fd: &i32| {
        proc::link_name(&format!("{folder}/{fd}")).is_ok_and(|target| target.contains("eventpoll"))
    };
    names.iter().filter_map(|name| name.parse().ok()).filter(is_epoll).collect()
}

fn allocator(pids: &[Pid]) -> Fact<String> {
    let Some(pid) = pids.last() else { return Fact::Absent("the server has ended".into()) };
    fact("mapped files", proc::maps(*pid)).map(|files| {
        let has =
            |part: &str| files.iter().any(|file| file.rsplit('/').next().unwrap_or(file).contains(part));
        let found = ALLOCATORS.iter().find(|(part, _)| has(part)).map(|(_, name)| *name);
        let glibc = has("libc.so.6").then_some("glibc");
        found.or(glibc).unwrap_or("static or other").to_owned()
    })
}

fn memory(pids: &[Pid], part: fn(&proc::MemoryUse) -> u64) -> Fact<u64> {
    let read: std::io::Result<Vec<_>> = pids.iter().map(|pid| proc::memory_use(*pid)).collect();
    fact("memory use", read).map(|all| all.iter().map(part).sum())
}

fn files(pid: Pid) -> Fact<(u64, u64)> {
    let limits = fact("limits", proc::text(&format!("/proc/{pid}/limits")));
    let open = fact("descriptors", proc::names(&format!("/proc/{pid}/fd"), usize::MAX));
    match (open, limits) {
        (Fact::Value(open), Fact::Value(limits)) => match parse_files_max(&limits) {
            Some((max, _)) => Fact::Value((open.len() as u64, max)),
            None => unread("limits", None, "there is no line of open files", ""),
        },
        (Fact::Absent(what), _) | (_, Fact::Absent(what)) => Fact::Absent(what),
        (Fact::Unread(why), _) | (_, Fact::Unread(why)) => Fact::Unread(why),
    }
}

fn files_hard(pid: Pid) -> Option<u64> {
    parse_files_max(&proc::text(&format!("/proc/{pid}/limits")).ok()?).map(|(_, hard)| hard)
}

/// The limit in the line `Max open files  1024  1048576  files`, and how far it may be raised.
fn parse_files_max(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    let mut limit = || {
        let word = words.next()?;
        word.parse().ok().or((word == "unlimited").then_some(u64::MAX))
    };
    Some((limit()?, limit()?))
}

fn cgroup(pid: Pid) -> Fact<Cgroup> {
    let path = format!("/proc/{pid}/cgroup");
    let quotas = proc::cpu_quotas(pid);
    let (quota, held) = (proc::binding_quota(&quotas), proc::most_held(&quotas));
    fact(&path, proc::text(&path)).map(|groups| {
        let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = unified.unwrap_or("/").to_owned();
        let memory = proc::text(&format!("/sys/fs/cgroup{group}/memory.max")).ok();
        Cgroup {
            path: group,
            cpus: quota.and_then(|quota| quota.cpus),
            quota_file: held.map(|group| group.file.clone()).unwrap_or_default(),
            periods: quota.map_or(0, |quota| quota.periods),
            throttled: quota.map_or(0, |quota| quota.throttled),
            throttled_lately: 0,
            memory_max_bytes: memory.and_then(|text| text.parse().ok()),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn listener(local: &str, pid: i32, owner: &str) -> Listener {
        Listener { local: local.into(), pids: vec![pid], owner: owner.into(), ..Listener::default() }
    }

    #[test]
    fn somebody_else_on_the_servers_port_is_a_stranger() {
        let all = [
            listener("0.0.0.0:80", 7, "server"),
            listener("0.0.0.0:80", 8, "server"),
            listener("0.0.0.0:80", 99, "old server"),
            listener("0.0.0.0:22", 1, "sshd"),
        ];
        let own = of_server(&all, &[7, 8]);
        assert_eq!((own.len(), own[0].sockets), (1, 2));
        assert_eq!(own[0].strangers, [Group { pid: Some(99), name: "old server".into(), sockets: 1 }]);
    }

    /// Planted fault: the kernel's table is taken as it comes; then the newest listener of IPv4 is told as the first.
    #[test]
    fn holders_are_told_in_the_order_in_which_their_sockets_began_to_listen() {
        let (own, first) = (child::this(), 1);
        // As the kernel has them where this process listened last.
        let of = |local: &str| {
            let newest_first = [listener(local, own, "tests"), listener(local, first, "init")];
            order(local, &newest_first.each_ref()).iter().map(|holder| holder.pid).collect::<Vec<_>>()
        };
        assert_eq!(of("127.0.0.1:80"), [first, own]);
        assert_eq!(of("[::1]:80"), [own, first], "the oldest first there");
        assert_eq!(order("127.0.0.1:80", &[&listener("127.0.0.1:80", own, "tests")]), [], "alone");
        let mut shared = listener("127.0.0.1:80", own, "tests");
        shared.pids.push(first);
        assert_eq!(order("127.0.0.1:80", &[&shared, &shared]), [], "whose it is cannot be told");
    }

    /// The kernel's own order, which the test above takes for granted.
    #[test]
    fn the_kernel_lists_the_newest_listener_of_a_shared_port_first_and_with_ipv6_last() {
        use dyno_sys::socket::{ListenOptions, Reuseport, listen, local_addr};
        let options = ListenOptions { reuseport: Reuseport::On, ..ListenOptions::default() };
        for (any, newest_first) in [("127.0.0.1:0", true), ("[::1]:0", false)] {
            let Ok(first) = listen(&any.parse().unwrap(), &options) else { continue };
            let addr = local_addr(&first).unwrap();
            let second = listen(&addr, &options).unwrap();
            let inode = |fd: &OwnedFd| {
                let link = proc::link_name(&format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(fd)));
                let number = link.unwrap().trim_start_matches("socket:[").trim_end_matches(']').to_owned();
                number.parse::<u32>().unwrap()
            };
            let (all, _) = dyno_sys::netlink::sock_diag::listeners(100_000).unwrap();
            let here = all.iter().filter(|one| one.local.to_string() == addr.to_string());
            let mut seen: Vec<u32> = here.map(|one| one.inode).collect();
            if newest_first {
                seen.reverse();
            }
            assert_eq!(seen, [inode(&first), inode(&second)], "{any}");
        }
    }

    #[test]
    fn limits_and_policies_are_read() {
        assert_eq!(
            parse_files_max("Limit Soft\nMax open files            1024      4096     files"),
            Some((1_024, 4_096))
        );
        assert_eq!(
            parse_files_max("Max open files            unlimited unlimited files"),
            Some((u64::MAX, u64::MAX))
        );
        let fields: Vec<String> =
            (3..=41).map(|at| if at == 19 { "-5".into() } else { "0".to_string() }).collect();
        assert_eq!(scheduling(&format!("1 (a) b) {}", fields.join(" "))), "other -5");
    }

    #[test]
    fn this_process_is_read_like_a_server() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap().to_string();
        let pid = child::this();
        let server = server(pid, &Fact::Value(vec![listener(&local, pid, "tests")]));
        let threads = server.threads.value().unwrap();
        assert!(threads.count > 0 && threads.serving == 1 && server.pids.contains(&pid));
        assert!(server.options.value().is_some_and(|options| !options.listener_values.is_empty()));
        assert!(server.files.value().unwrap().0 > 2 && server.rss_bytes.value().unwrap() > &0);
        drop(socket);
    }
}
