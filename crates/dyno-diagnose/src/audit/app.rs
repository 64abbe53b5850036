//! The named server: its processes against the CPUs, its listeners, its connections.

use std::collections::BTreeSet;

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::fact::Gap;
use dyno_record::facts::{Device, Facts, Locality, Threads};

use super::app_order::{self, order};
use super::cpu_list::cpus;
use super::draft::{
    ALL, CONNECTIONS, Check, FAST, LATENCY, Looked, Say, Seen, THROUGHPUT, counted, finding, measured,
    present, published, server, unknown,
};
use super::here;
use super::moved::{Moved, OF_CONNECTIONS, counted as counted_tcp, moved, only_told};
use super::net_tcp::longer_queue;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "app.workers", about: "threads of the server against CPUs", look: workers },
    Check { id: "app.overcommit", about: "serving processes against CPUs", look: overcommit },
    Check { id: "app.pin", about: "CPUs that the server's threads may use", look: pin },
    Check { id: "app.foreign", about: "others that listen on the server's port", look: foreign },
    Check {
        id: "app.locality",
        about: "whether packets come in on the CPU that serves them",
        look: locality,
    },
    Check {
        id: "app.order",
        about: "whether listeners stand in the order of their workers' CPUs",
        look: order,
    },
    Check { id: "app.busypoll", about: "busy polling of the server's epoll instances", look: busy_poll },
    Check { id: "app.backlog", about: "connections that wait to be accepted", look: backlog },
    Check { id: "app.files", about: "descriptors that the server may open", look: files },
];

fn threads(facts: &Facts) -> Result<&Threads, Gap> {
    server(facts)?.threads.known()
}

/// CPUs that the server may use: of all, those that its threads may run on, and no more than its quota pays for.
fn usable(facts: &Facts) -> Result<u32, Gap> {
    let server = server(facts)?;
    let lists = server.threads.known()?.cpus.keys();
    let allowed: BTreeSet<u32> = lists.flat_map(|list| cpus(list)).collect();
    let count = facts.cpu_count()?;
    let allowed = if allowed.is_empty() { count } else { count.min(allowed.len() as u32) };
    let quota = server.cgroup.value().and_then(|group| group.cpus);
    Ok(quota.map_or(allowed, |quota| allowed.min(quota.ceil().max(1.0) as u32)))
}

fn workers(facts: &Facts) -> Seen {
    let threads = threads(facts)?;
    let cpus = usable(facts)?;
    let found = format!("{} on {}", counted(threads.count as usize, "thread"), counted(cpus as usize, "CPU"));
    if threads.serving == 0 || threads.count >= cpus {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("The server has fewer threads than the machine has CPUs", found, "a worker for each CPU that it may use and nobody else needs")
        .gain(THROUGHPUT, published(25.0, "all four CPUs used instead of some"))
        .risk(Risk::None, "")
        .why("A thread runs on one CPU at a time. Where others need the remaining CPUs, or one is not busy, nothing is gained.")
        .see(&["top -H"])
        .apply(&["the server's own setting, as nginx's worker_processes or dyno serve --workers; then restart it"])
        .revert(&["the setting as it was; then restart it"])
        .into())
}

fn overcommit(facts: &Facts) -> Seen {
    let threads = threads(facts)?;
    let (serving, cpus) = (threads.serving, usable(facts)?);
    let found = format!(
        "{} that serve, {} for them",
        counted(serving as usize, "process"),
        counted(cpus as usize, "CPU")
    );
    if serving <= cpus.max(1) + 1 {
        return Ok(Looked::Fine(found));
    }
    Ok(finding(
        "More processes serve than there are CPUs for them",
        found,
        "one for each CPU, where they do not wait for disks or others",
    )
    .gain(
        THROUGHPUT,
        measured(
            0.0,
            10.0,
            "eight workers on two CPUs, against two: no loss was seen, and their memory is used",
        ),
    )
    .choice()
    .risk(Risk::Operational, "a server that waits in its handlers needs more processes than CPUs")
    .why("Processes beyond the number of CPUs only take turns, and each uses memory of its own.")
    .see(&["top -H"])
    .apply(&["the server's own setting; then restart it"])
    .revert(&["the setting as it was; then restart it"])
    .into())
}

/// Where nothing binds interrupts, binding threads has nothing to match.
fn pin(facts: &Facts) -> Seen {
    let threads = threads(facts)?;
    let sets: Vec<String> = threads.cpus.iter().map(|(cpus, count)| format!("{count} on {cpus}")).collect();
    Ok(Looked::fine(format!("threads by CPUs: {}; binding alone measured no difference", sets.join(", "))))
}

fn foreign(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let listeners = server.listeners.known()?;
    if listeners.is_empty() {
        return Ok(Looked::NotHere("a TCP listener of the server".into()));
    }
    let found: Vec<AuditFinding> = listeners
        .iter()
        .filter(|one| !one.strangers.is_empty())
        .map(|one| {
            let names: Vec<String> = one
                .strangers
                .iter()
                .map(|group| match group.pid {
                    Some(pid) => format!("{} ({pid}) with {}", group.name, counted(group.sockets as usize, "socket")),
                    None => format!("an unseen process with {}", counted(group.sockets as usize, "socket")),
                })
                .collect();
            let kills: Vec<String> =
                one.strangers.iter().filter_map(|group| Some(format!("sudo kill {}", group.pid?))).collect();
            let kills: Vec<&str> = kills.iter().map(String::as_str).collect();
            let theirs: u32 = one.strangers.iter().map(|group| group.sockets).sum();
            let share = 100.0 * f64::from(theirs) / f64::from(theirs + one.sockets).max(1.0);
            finding(
                format!("Somebody else takes connections on {}", one.local),
                format!("{}; the server has {}", names.join(", "), counted(one.sockets as usize, "socket")),
                "the server's processes alone",
            )
            .about(&one.local)
            .gain(ALL, measured(share.floor(), share.ceil(), "the share of sockets: a server left over took half of all connections"))
            .loses()
            .risk(Risk::Operational, "what it has accepted is closed")
            .why("Sockets that share a port each get a share of its connections, whoever they belong to. Most often it is an earlier version of the server that was never stopped.")
            .see(&["sudo ss -ltnp"])
            .apply(&kills)
            .revert(&["start it again"])
        })
        .collect();
    Ok(Looked::found_or(found, || format!("{}, all of the server", counted(listeners.len(), "address"))))
}

/// Share of connections whose packets come in where they are served, below which steering is worth a look.
const LOCAL_MIN: f64 = 90.0;

fn locality(facts: &Facts) -> Seen {
    let options = server(facts)?.options.known()?;
    if let (0, Some(seen)) = (options.pinned, here::measured(facts).and_then(|here| here.locality.value())) {
        return Ok(worked_on_elsewhere(seen));
    }
    if options.pinned == 0 {
        let why = match options.asked {
            0 => "no connection is open: measured under load",
            _ => {
                "no process that is bound to one CPU has a connection whose last packet brought data: measured under load"
            }
        };
        return Ok(Looked::NotHere(why.into()));
    }
    let share = 100.0 * f64::from(options.local) / f64::from(options.pinned);
    let found = format!("{} of {} connections ({share:.0} %)", options.local, options.pinned);
    if share >= LOCAL_MIN {
        return Ok(Looked::Fine(found));
    }
    if app_order::is_wrong(facts) {
        return Ok(Looked::Fine(format!("{found}: its listeners stand in the wrong order (app.order)")));
    }
    Ok(finding("Packets come in on other CPUs than those that serve them", found, "all on the CPU of the worker that serves them")
        .gain(FAST, measured(6.0, 31.0, "from 44 % to 100 % local with two pinned clients; 38 % published with a network card of four queues"))
        .risk(Risk::None, "")
        .why("A connection's data then moves between the caches of two CPUs, and one wakes the other.")
        .see(&["sudo ss -tni"])
        .apply(&["let the server order its listeners by CPU and attach a BPF filter that picks by CPU (SO_ATTACH_REUSEPORT_CBPF), as dyno serve --reuseport cpu does"])
        .revert(&["the setting as it was; then restart it"])
        .into())
}

/// Where no thread is bound, connections have no CPU to be compared with; the interrupts of the machine say it roughly.
fn worked_on_elsewhere(seen: &Locality) -> Looked {
    let [least, most] = seen.elsewhere_percent.interval;
    let cpus: Vec<String> = seen.server_cpus.iter().map(u32::to_string).collect();
    let found = format!(
        "{:.0} % [{least:.0}, {most:.0}] of {:.0} receive interrupts a second came on CPUs where the server did not run; it ran on {}",
        seen.elsewhere_percent.value,
        seen.per_second,
        cpus.join(", ")
    );
    if least <= 100.0 - LOCAL_MIN {
        return Looked::Fine(found);
    }
    finding("Packets are worked on by other CPUs than those that serve them", found, "all on the CPU of the worker that serves them")
        .gain(FAST, measured(6.0, 31.0, "from 44 % to 100 % local with two pinned clients; with a client on this machine the other CPU is often the client's own"))
        .risk(Risk::None, "")
        .why("A packet's data then moves between the caches of two CPUs, and one wakes the other.")
        .see(&["grep NET_RX /proc/softirqs"])
        .apply(&["bind workers to CPUs, and the card's interrupts to the same ones (net.irq)"])
        .revert(&["the setting as it was; then restart it"])
        .into()
}

fn busy_poll(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let epolls = server.epolls.known()?;
    let set: Vec<String> = epolls
        .iter()
        .filter(|one| one.busy_poll_usecs > 0)
        .map(|one| {
            format!("{} µs, budget {}, prefer {}", one.busy_poll_usecs, one.budget, u8::from(one.prefer))
        })
        .collect();
    if set.is_empty() {
        let found = format!("off in {}", counted(epolls.len(), "epoll instance"));
        if comes_by_no_queue(facts) {
            return Ok(Looked::fine(format!(
                "{found}; none of its connections comes from a device that can be polled"
            )));
        }
        if can_be_polled(facts)?.is_empty() {
            return Ok(Looked::fine(format!("{found}; no device here can be polled")));
        }
        return Ok(finding("The server sleeps until an interrupt wakes it", found, "200 µs, where one connection's latency matters")
            .gain(LATENCY, measured(40.0, 70.0, "one connection at a time; with 64 no difference"))
            .risk(Risk::CpuBurn, "a CPU is busy while it waits")
            .why("Waking takes longer than the work of a small request; polling the device for a while avoids it.")
            .see(&["dyno audit facts --json --pid PID"])
            .apply(&["ioctl EPIOCSPARAMS in the server (Linux 6.9), or sudo sysctl -w net.core.busy_poll=50 for every server"])
            .revert(&["sudo sysctl -w net.core.busy_poll=0"])
            .into());
    }
    let options = server.options.known()?;
    let ids = options.values.get("SO_INCOMING_NAPI_ID");
    let without = ids.and_then(|ids| ids.get("0")).copied().unwrap_or(0);
    if without == 0 || options.asked == 0 {
        return Ok(Looked::Fine(set.join("; ")));
    }
    Ok(finding(
        "Busy polling is set and does nothing: its connections come from no queue that can be polled",
        format!("{}; {without} of {} connections have NAPI id 0", set.join("; "), options.asked),
        "a device whose queues have NAPI ids, or no busy polling",
    )
    .gain(LATENCY, measured(0.0, 0.0, "busy polling without NAPI ids: no difference seen [−7, +14]"))
    .risk(Risk::None, "")
    .why("The loopback device has no queue that could be polled. A virtual cable (veth) has one only while its other end does not send large segments (TSO is off).")
    .see(&["dyno audit facts --json --pid PID"])
    .apply(&["the server's own setting"])
    .revert(&["the setting as it was"])
    .into())
}

/// Devices that are up and have queues that can be polled.
pub(super) fn can_be_polled(facts: &Facts) -> Result<Vec<&Device>, Gap> {
    let mut all = Vec::new();
    for device in facts.network.devices.known()?.iter().filter(|device| device.is_up) {
        let has_queues = present(&device.napi_ids)?.is_some_and(|ids| !ids.is_empty());
        all.extend(has_queues.then_some(device));
    }
    Ok(all)
}

/// Whether the server's connections were asked, and none came by a queue that can be polled.
pub(super) fn comes_by_no_queue(facts: &Facts) -> bool {
    let options = facts.server.as_ref().and_then(|server| server.options.value());
    let ids = options.and_then(|options| options.values.get("SO_INCOMING_NAPI_ID"));
    ids.is_some_and(|ids| !ids.is_empty() && ids.keys().all(|id| id == "0"))
}

fn backlog(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let listeners = server.listeners.known()?;
    let (lately, overflows) = counted_tcp(facts, &["ListenOverflows"])?;
    let connections = counted_tcp(facts, &["PassiveOpens"])?.1;
    let Some(fullest) = listeners.iter().max_by_key(|one| one.waiting) else {
        return Ok(Looked::NotHere("a TCP listener of the server".into()));
    };
    let found = format!(
        "{} of {} wait on {}; {overflows} overflows in this namespace since it was made, {lately} of them while the facts were read",
        fullest.waiting, fullest.backlog, fullest.local
    );
    let is_filling = 2 * fullest.waiting > fullest.backlog.max(1);
    // The counter is of all listeners of the namespace: alone there, it is the server's.
    let is_now = is_filling || lately > 0 && is_alone(facts);
    if !is_now && moved((lately, overflows), connections, OF_CONNECTIONS) == Moved::No {
        return Ok(Looked::Fine(found));
    }
    let made = finding("Connections were refused because the queue of a listener was full", found, "a longer queue, and a server that accepts sooner")
        .gain(ALL, unknown("connections are lost, not slowed"))
        .risk(Risk::None, "")
        .why("A connection that finds the queue full is dropped; its client tries again after a second. net.core.somaxconn limits what a server may ask for.");
    let made = longer_queue(facts, made)?;
    Ok(match (is_now, lately) {
        (true, _) => made.loses(),
        (false, 0) => only_told(made),
        (false, _) => of_somebody(made),
    }
    .into())
}

/// Whether every listener of the namespace is the server's.
fn is_alone(facts: &Facts) -> bool {
    let own = facts.server.as_ref().and_then(|server| server.listeners.value());
    let is_own = |local: &String| own.into_iter().flatten().any(|one| one.local == *local);
    let all = facts.network.listeners.value();
    all.is_some_and(|all| all.iter().all(|one| is_own(&one.local)))
}

fn of_somebody(mut made: AuditFinding) -> AuditFinding {
    made.changes.clear();
    made.hand("the counter is of all listeners here, and the server's has room: ss -ltn shows whose queue (Recv-Q) fills")
}

/// What is given where the kernel lets it: its own first `fs.nr_open`.
const FILES_GIVEN: u64 = 1 << 20;
/// What a server for many connections should be allowed.
const FILES_WANTED: u64 = 65_536;

fn files(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let (open, max) = *server.files.known()?;
    let found = format!("{open} open of {max}");
    let is_near = open.saturating_mul(10) > max.saturating_mul(8);
    if !is_near && max >= FILES_WANTED {
        return Ok(Looked::Fine(found));
    }
    let pid = server.pid;
    // More than fs.nr_open the kernel gives nobody, root neither.
    let most = facts.sysctl_number("fs.nr_open").ok().and_then(|most| u64::try_from(most).ok());
    let wanted = most.unwrap_or(FILES_GIVEN).min(FILES_GIVEN);
    if wanted <= max && !is_near {
        return Ok(Looked::Fine(format!("{found}; fs.nr_open={wanted} allows no more")));
    }
    // Of limits of which only one is named, prlimit sets both.
    let limit = |number: u64| if number == u64::MAX { "unlimited".to_owned() } else { number.to_string() };
    let hard = server.files_hard.unwrap_or(max);
    let (wanted, first, last) = match wanted <= max {
        true => {
            let set = |most: u64| format!("sudo sysctl -w fs.nr_open={most}");
            let more = max.saturating_mul(4);
            (more, format!("{} && ", set(more)), format!(" && {}", set(wanted)))
        }
        false => (wanted, String::new(), String::new()),
    };
    let made = finding("The server may not open many descriptors", found, format!("{FILES_WANTED} or more"))
        .gain(CONNECTIONS, unknown("each connection takes one; beyond it none is accepted"))
        .risk(Risk::None, "")
        .why("A server at its limit accepts nothing more until a connection is closed.")
        .see(&[&format!("grep 'open files' /proc/{pid}/limits")])
        .apply(&[&format!("{first}sudo prlimit --pid {pid} --nofile={wanted}:{}", limit(hard.max(wanted)))])
        .revert(&[&format!("sudo prlimit --pid {pid} --nofile={}:{}{last}", limit(max), limit(hard))]);
    Ok(if is_near { made.loses() } else { made }.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Goal, Level};
    use dyno_record::fact::Fact;
    use dyno_record::facts::{EpollPolling, Listener, Server, ServerListener};

    fn found(facts: &Facts, id: &str) -> Option<AuditFinding> {
        let all = crate::audit::audit(facts, Goal::Connections).findings;
        all.into_iter().find(|one| one.id == id)
    }

    fn serving(change: impl FnOnce(&mut Server)) -> Facts {
        let mut server = Server { pid: 7, ..Server::default() };
        change(&mut server);
        let mut facts = Facts { server: Some(server), ..Facts::default() };
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts
    }

    /// Planted fault: one number is written; then prlimit lowers how far the server may go as well, and nothing raises it again.
    #[test]
    fn a_limit_goes_back_with_how_far_it_may_be_raised() {
        let facts = serving(|server| {
            server.files = Fact::Value((10, 1_024));
            server.files_hard = Some(524_288);
        });
        let made = found(&facts, "app.files").unwrap();
        assert_eq!(made.apply, ["sudo prlimit --pid 7 --nofile=1048576:1048576"]);
        assert_eq!(made.revert, ["sudo prlimit --pid 7 --nofile=1024:524288"]);
    }

    /// Planted fault: the counter since boot, which is of all listeners, is taken for the server's now.
    #[test]
    fn an_overflow_of_another_listener_or_of_long_ago_is_no_loss_of_the_server() {
        let own = ServerListener { local: "0.0.0.0:80".into(), backlog: 511, ..ServerListener::default() };
        let mut facts = serving(|server| server.listeners = Fact::Value(vec![own]));
        facts.sysctls.insert("net.core.somaxconn".into(), Fact::Value("511".into()));
        let counters = |overflows: u64| {
            let all = [("ListenOverflows", overflows), ("PassiveOpens", 5_000)];
            Fact::Value(all.map(|(name, count)| (name.to_owned(), count)).into())
        };
        let listener = |local: &str| Listener { local: local.into(), ..Listener::default() };
        let mut of = |since, lately, all: &[&str]| {
            facts.network.counters = counters(since);
            facts.network.lately = counters(lately);
            facts.network.listeners = Fact::Value(all.iter().map(|local| listener(local)).collect());
            found(&facts, "app.backlog").map(|made| (made.level, made.changes.len()))
        };
        assert_eq!(of(3, 0, &["0.0.0.0:80"]), None, "long ago, and few");
        assert_eq!(of(50, 0, &["0.0.0.0:80"]), Some((Level::Low, 0)), "long ago");
        assert_eq!(of(3, 3, &["0.0.0.0:80", "0.0.0.0:9"]), Some((Level::Low, 0)), "somebody's");
        assert_eq!(of(3, 3, &["0.0.0.0:80"]), Some((Level::High, 1)));
    }

    /// Planted fault: no answer reads as no queue; then polling is told as impossible on a kernel that does not tell.
    #[test]
    fn whether_a_device_can_be_polled_is_not_known_where_the_kernel_does_not_tell() {
        let mut facts = serving(|server| server.epolls = Fact::Value(vec![EpollPolling::default()]));
        facts.network.devices = Fact::Value(vec![Device { is_up: true, ..Device::default() }]);
        let judged = crate::audit::audit(&facts, Goal::Latency);
        assert!(judged.not_looked_at.iter().any(|one| one.id == "app.busypoll"), "{:?}", judged.fine);
    }
}
