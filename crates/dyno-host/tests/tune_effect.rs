//! Proofs of effect against the kernel, in network namespaces of the tests' own: a setting in force, and the same one written
//! while something beside it keeps it from its work.
//!
//! Packets come from a second namespace at the other end of a pair of devices, while the proof pauses. Without the right to
//! make namespaces there is nothing to test.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dyno_host::host::{Host, Kernel};
use dyno_host::place;
use dyno_host::tune::effect::{Asked, prove};
use dyno_record::change::{Task, What};
use dyno_record::tune::{Effect, Force};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::namespace;
use dyno_sys::socket::{self, Addr, ListenOptions};

/// Packets for a proof: thousands of µs for a thread that polls them.
const PACKETS: usize = 400;
/// Bytes of a reply that is cut into many packets.
const BULK_BYTES: usize = 4 << 20;
/// Nothing came for so long: all has been worked on.
const QUIET: Duration = Duration::from_millis(20);
/// No step takes so long.
const STUCK: Duration = Duration::from_secs(10);

/// One of these tests at a time: packets that are handed from CPU to CPU are counted for the whole machine, and a program that is
/// started holds what it has not closed yet.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_network(work: impl FnOnce() + Send) {
    let _alone = alone();
    if let Err(error) = namespace::in_new_network(work) {
        assert!(!namespace::may_make_network(), "{error}");
        eprintln!("not tested, without the right to make a network: {error}");
    }
}

fn run(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let status = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command}");
}

fn write(path: &str, value: &str) {
    std::fs::write(path, value).unwrap_or_else(|error| panic!("{path} {value}: {error}"));
}

fn file(path: &str) -> What {
    What::NetworkFile { network: place::network().unwrap(), path: path.into() }
}

fn device_file(name: &str) -> What {
    What::DeviceFile { device: place::device("vA").unwrap(), file: name.into() }
}

fn effect(what: &What, old: &str, wanted: &str, pause: &mut dyn FnMut()) -> Effect {
    prove(&[Asked { what, old, wanted }], pause).remove(0)
}

fn still(what: &What, old: &str, wanted: &str) -> Effect {
    effect(what, old, wanted, &mut || {})
}

#[track_caller]
fn shows(effect: &Effect, force: Force, word: &str) {
    assert_eq!(effect.force, force, "{effect}");
    assert!(effect.to_string().contains(word), "{effect}");
}

/// The machine's counters count for others too: one look, once nobody hands packets over.
#[track_caller]
fn is(look: impl FnOnce() -> Effect, force: Force) {
    nobody_hands_over();
    let effect = look();
    assert_eq!(effect.force, force, "{effect}");
}

/// Column 10 of /proc/net/softnet_stat, of all CPUs.
fn handed_over() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let column = |line: &str| u64::from_str_radix(line.split_whitespace().nth(9).unwrap(), 16).unwrap();
    text.lines().map(column).sum()
}

fn nobody_hands_over() {
    stands_still("somebody hands packets over all the time", handed_over);
}

/// Waits until nothing is counted any more.
fn stands_still(why_not: &str, count: impl Fn() -> u64) {
    let (until, mut last, mut since) = (Instant::now() + STUCK, count(), Instant::now());
    while since.elapsed() < QUIET {
        assert!(Instant::now() < until, "{why_not}");
        let now = count();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

/// `vA` here, with four queues, and `vB` in a namespace of its own.
struct Pair(Child);

impl Pair {
    fn new() -> Pair {
        let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let peer = Command::new("unshare").args(["--net", "sleep", "600"]).spawn().unwrap();
        let pair = Pair(peer);
        let until = Instant::now() + STUCK;
        while std::fs::read_link(format!("/proc/{}/ns/net", pair.0.id())).unwrap() == own {
            assert!(Instant::now() < until, "unshare made no namespace");
            std::thread::yield_now();
        }
        // Devices that come up speak IPv6 by themselves; a kernel without it has no such file.
        let quiet = || drop(std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"));
        quiet();
        pair.there(quiet);
        run("ip link add vA numtxqueues 4 numrxqueues 4 type veth peer name vB numtxqueues 4 numrxqueues 4");
        run(&format!("ip link set vB netns {}", pair.0.id()));
        run("ip addr add 10.9.0.1/24 dev vA");
        run("ip link set vA up");
        pair.there(|| {
            run("ip addr add 10.9.0.2/24 dev vB");
            run("ip link set vB up");
        });
        // Until the kernel has seen the carrier, which it looks at beside, a qdisc drops whatever is sent. The second `up` waits for
        // that look's lock.
        let state = || std::fs::read_to_string("/sys/class/net/vA/operstate").unwrap();
        while state() != "up\n" {
            assert!(Instant::now() < until, "vA is {}", state());
            std::thread::yield_now();
        }
        run("ip link set vA up");
        run("ip neigh add 10.9.0.2 dev vA lladdr 02:00:00:00:00:02");
        pair.there(|| run("ip link set vB address 02:00:00:00:00:02"));
        pair
    }

    fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        namespace::in_network_of(self.0.id().cast_signed(), work).unwrap()
    }

    /// Packets for nobody, from a thread on the first CPU.
    fn sends(&self) {
        self.there(|| {
            let first = affinity::allowed().iter().next().unwrap();
            affinity::set_current(&CpuSet::single(first)).unwrap();
            send("10.9.0.1:9");
        });
        settle();
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A thread that polls has packets left when the last one was sent.
fn settle() {
    let received = || std::fs::read_to_string("/sys/class/net/vA/statistics/rx_packets").unwrap();
    stands_still("packets come for ever", || received().trim().parse().unwrap());
}

fn send(to: &str) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // An answer that nobody listens comes back as an error of a later call.
    (0..PACKETS).for_each(|_| drop(socket.send_to(b"x", to)));
}

/// Planted fault: `handed` does not ask how many were handed over; then a mask of the CPU that has the packets anyway, and
/// one beside another queue's, are in force.
#[test]
fn packets_show_whether_a_mask_hands_them_to_another_cpu() {
    in_network(|| {
        let pair = Pair::new();
        let first = affinity::allowed().iter().next().unwrap();
        let own = format!("{:x}", 1u64 << first);
        let queue = |queue: usize| device_file(&format!("queues/rx-{queue}/rps_cpus"));
        let set = |mask: &str| {
            for queue in 0..4 {
                write(&format!("/sys/class/net/vA/queues/rx-{queue}/rps_cpus"), mask);
            }
        };
        let of = |what: &What, wanted: &str| effect(what, "0", wanted, &mut || pair.sends());
        shows(&still(&queue(0), "1", "0"), Force::NotShown, "0 packets came in on vA");
        is(|| of(&queue(0), "0"), Force::InForce);
        set(&own);
        is(|| of(&queue(0), &own), Force::NotInForce);
        // On a machine of one CPU there is nobody to hand packets to: what is in force is seen where there are two.
        let Some(second) = affinity::online().iter().find(|cpu| *cpu != first) else { return };
        let other = format!("{:x}", 1u64 << second);
        set(&other);
        is(|| of(&queue(0), &other), Force::InForce);
        // One queue's mask is 0 as it was wanted; the others still hand over.
        set(&other);
        write("/sys/class/net/vA/queues/rx-3/rps_cpus", "0");
        is(|| of(&queue(3), "0"), Force::NotInForce);
    });
}

/// A no-op that was met: the other end's TSO keeps packets from being polled, and the thread that should poll sleeps.
///
/// Planted fault: a thread that is there is in force.
#[test]
fn a_thread_whose_packets_pass_it_by_is_not_in_force() {
    in_network(|| {
        let pair = Pair::new();
        let threaded = device_file("threaded");
        let of = |wanted: &str| effect(&threaded, "0", wanted, &mut || pair.sends());
        shows(&of("1"), Force::NotInForce, "NAPI");
        run("ethtool -K vA gro on");
        write("/sys/class/net/vA/threaded", "1");
        is(|| of("1"), Force::NotInForce);
        pair.there(|| run("ethtool -K vB tso off"));
        is(|| of("1"), Force::InForce);
        // The last of its packets may come late.
        settle();
        shows(&still(&threaded, "0", "1"), Force::NotShown, "0 packets");
        write("/sys/class/net/vA/threaded", "0");
        is(|| of("0"), Force::InForce);
    });
}

/// A no-op that was met: interrupts of a device that nothing polls are put off for nobody.
///
/// Planted fault: NAPI instances are not asked for.
#[test]
fn putting_off_interrupts_that_nobody_polls_for_is_not_in_force() {
    in_network(|| {
        let _pair = Pair::new();
        let defer = device_file("napi_defer_hard_irqs");
        write("/sys/class/net/vA/napi_defer_hard_irqs", "2");
        shows(&still(&defer, "0", "2"), Force::NotInForce, "NAPI");
        run("ethtool -K vA gro on");
        shows(&still(&defer, "0", "2"), Force::NotInForce, "gro_flush_timeout of vA is 0");
        write("/sys/class/net/vA/gro_flush_timeout", "200000");
        shows(&still(&defer, "0", "2"), Force::NotShown, "NAPI id");
    });
}

/// Planted fault: that the device is up is not asked; then a qdisc that waits is in force, or only not shown.
#[test]
fn a_qdisc_is_in_force_when_it_counts_what_leaves_and_not_while_its_device_is_down() {
    in_network(|| {
        let _pair = Pair::new();
        let qdisc = What::Qdisc { device: place::device("vA").unwrap() };
        let of = || effect(&qdisc, "default", "pfifo", &mut || send("10.9.0.2:9"));
        shows(&of(), Force::InForce, "none through a queue");
        Kernel.write(&qdisc, b"pfifo").unwrap();
        shows(&of(), Force::InForce, "passed pfifo");
        shows(&still(&qdisc, "default", "pfifo"), Force::NotShown, "sent nothing");
        run("ip link set vA down");
        shows(&still(&qdisc, "default", "pfifo"), Force::NotInForce, "vA is down");
    });
}

/// Planted fault: the device's limit on segments is not read.
#[test]
fn an_offload_of_a_device_that_takes_no_large_segment_is_not_in_force() {
    in_network(|| {
        let pair = Pair::new();
        let tso = What::Feature { device: place::device("vA").unwrap(), name: "tx-tcp-segmentation".into() };
        let replies = || {
            let listener = TcpListener::bind("10.9.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            let reader =
                || pair.there(|| TcpStream::connect(at).unwrap().read_to_end(&mut Vec::new()).unwrap());
            std::thread::scope(|scope| {
                let reader = scope.spawn(reader);
                listener.accept().unwrap().0.write_all(&vec![0; BULK_BYTES]).unwrap();
                assert_eq!(reader.join().unwrap(), BULK_BYTES);
            });
        };
        shows(&effect(&tso, "off", "on", &mut || replies()), Force::InForce, "bytes in the mean");
        shows(&still(&tso, "off", "on"), Force::NotShown, "no large reply");
        run("ip link set dev vA gso_max_segs 1");
        shows(&effect(&tso, "off", "on", &mut || replies()), Force::NotInForce, "1 packets at most");
    });
}

/// Two no-ops that were met: packets are joined, and interrupts put off, for nobody, because the other end's TSO has packets
/// pass both by. One connection shows it.
///
/// Planted fault: connections are not looked at.
#[test]
fn joining_packets_that_pass_it_by_is_not_in_force() {
    in_network(|| {
        let pair = Pair::new();
        let gro = What::Feature { device: place::device("vA").unwrap(), name: "rx-gro".into() };
        shows(&still(&gro, "off", "on"), Force::NotInForce, "no NAPI instance");
        Kernel.write(&gro, b"on").unwrap();
        let defer = device_file("napi_defer_hard_irqs");
        write("/sys/class/net/vA/napi_defer_hard_irqs", "2");
        write("/sys/class/net/vA/gro_flush_timeout", "200000");
        shows(&still(&gro, "off", "on"), Force::NotShown, "no connection was seen");
        let connected = || {
            let listener = TcpListener::bind("10.9.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            let mut far = pair.there(|| TcpStream::connect(at).unwrap());
            let (mut near, _) = listener.accept().unwrap();
            far.write_all(b"a question").unwrap();
            near.read_exact(&mut [0; 10]).unwrap();
            (near, far)
        };
        let past = connected();
        for what in [&gro, &defer] {
            shows(
                &still(what, "0", if what == &gro { "on" } else { "2" }),
                Force::NotInForce,
                "pass the NAPI",
            );
        }
        drop(past);
        pair.there(|| run("ethtool -K vB tso off"));
        let _polled = connected();
        for what in [&gro, &defer] {
            shows(
                &still(what, "0", if what == &gro { "on" } else { "2" }),
                Force::InForce,
                "by NAPI instance",
            );
        }
    });
}

#[test]
fn queues_are_in_force_when_the_kernel_works_them_and_masks_when_nothing_goes_before_them() {
    in_network(|| {
        let _pair = Pair::new();
        let queues = What::Hardware { device: place::device("vA").unwrap(), field: "channels tx".into() };
        Kernel.write(&queues, b"2").unwrap();
        shows(&still(&queues, "4", "2"), Force::InForce, "works 2 queues");
        // Read back as it was written, and changed behind its back.
        shows(&still(&queues, "2", "4"), Force::NotInForce, "2 sending queues");
        let mask = device_file("queues/tx-0/xps_cpus");
        write("/sys/class/net/vA/queues/tx-0/xps_cpus", "1");
        shows(&still(&mask, "0", "1"), Force::NotShown, "which CPU sent");
        write("/sys/class/net/vA/queues/tx-0/xps_rxqs", "1");
        shows(&still(&mask, "0", "1"), Force::NotInForce, "xps_rxqs");
    });
}

/// Planted fault: listeners of before are not looked for; then the one that the finding is about keeps its queue, unseen.
#[test]
fn a_listener_of_before_keeps_its_queue_and_is_named() {
    in_network(|| {
        run("ip link set lo up");
        let path = "/proc/sys/net/core/somaxconn";
        write(path, "100");
        let options = ListenOptions { backlog: 60_000, ..ListenOptions::default() };
        let before = socket::listen(&Addr::Tcp("127.0.0.1:0".parse().unwrap()), &options).unwrap();
        write(path, "200");
        let told = still(&file(path), "100", "200");
        shows(&told, Force::NotInForce, "was made before and has room for 100");
        assert!(told.why.contains(&format!("({})", std::process::id())), "{told}");
        drop(before);
        is(|| still(&file(path), "100", "200"), Force::InForce);
        write(path, "150");
        shows(&still(&file(path), "100", "200"), Force::NotInForce, "room for 150");
    });
}

/// Planted fault: the file is read again in place of a new socket; it always agrees.
#[test]
fn a_new_socket_shows_ports_buffers_and_congestion_control() {
    in_network(|| {
        run("ip link set lo up");
        let ports = "/proc/sys/net/ipv4/ip_local_port_range";
        write(ports, "20000 20200");
        shows(&still(&file(ports), "32768 60999", "20000 20200"), Force::InForce, "port 20");
        shows(&still(&file(ports), "32768 60999", "30000 30200"), Force::NotInForce, "port 20");
        let buffers = "/proc/sys/net/ipv4/tcp_rmem";
        write(buffers, "4096 99000 6291456");
        shows(&still(&file(buffers), "4096 131072 6291456", "4096 99000 6291456"), Force::InForce, "99000");
        shows(&still(&file(buffers), "4096 99000 6291456", "4096 98000 6291456"), Force::NotInForce, "99000");
        shows(&still(&file(buffers), "4096 99000 1", "4096 99000 6291456"), Force::NotShown, "ss -tm");
        let control = "/proc/sys/net/ipv4/tcp_congestion_control";
        write(control, "reno");
        shows(&still(&file(control), "cubic", "reno"), Force::InForce, "reno");
        shows(&still(&file(control), "reno", "cubic"), Force::NotInForce, "reno");
    });
}

/// Planted fault: congestion control is not asked for; then a setting that nobody asks for is in force.
#[test]
fn a_connection_that_pauses_shows_whether_its_window_begins_slowly() {
    in_network(|| {
        run("ip link set lo up");
        let (idle, control) =
            ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "/proc/sys/net/ipv4/tcp_congestion_control");
        write(control, "reno");
        write(idle, "0");
        shows(&still(&file(idle), "1", "0"), Force::InForce, "before a pause");
        write(idle, "1");
        shows(&still(&file(idle), "1", "0"), Force::NotInForce, "before a pause");
        // A kernel may be built without it; one that lists it takes it.
        let is_taken = std::fs::write(control, "bbr").is_ok();
        let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        assert_eq!(is_taken, listed.contains("bbr"), "{listed}");
        if is_taken {
            write(idle, "0");
            shows(&still(&file(idle), "1", "0"), Force::NotInForce, "bbr");
        }
    });
}

/// A no-op that was met: polling that is set while the device that packets come by cannot be polled.
#[test]
fn polling_that_receives_no_packet_and_half_of_rfs_are_not_in_force() {
    in_network(|| {
        let pair = Pair::new();
        let poll = file("/proc/sys/net/core/busy_poll");
        shows(&effect(&poll, "0", "50", &mut || pair.sends()), Force::NotInForce, "NAPI");
        shows(&still(&poll, "0", "50"), Force::NotShown, "BusyPollRxPackets");
        let flows = file("/proc/sys/net/core/rps_sock_flow_entries");
        shows(&still(&flows, "0", "32768"), Force::NotInForce, "rps_flow_cnt of every queue is 0");
        write("/sys/class/net/vA/queues/rx-0/rps_flow_cnt", "64");
        shows(&still(&flows, "0", "32768"), Force::NotShown, "both tables");
    });
}

/// Planted fault: the table's comment alone is read; it stays when the rules are flushed, and when the table sleeps.
#[test]
fn a_table_whose_rules_are_flushed_or_sleep_is_not_in_force() {
    in_network(|| {
        run("ip link set lo up");
        let network = place::network().unwrap();
        let table = What::Table { network, family: "ip".into(), name: "dyno_x".into() };
        let rules = "chain out { type filter hook output priority raw; udp dport 9 counter notrack; }";
        Kernel.write(&table, rules.as_bytes()).unwrap();
        shows(&still(&table, "", rules), Force::NotShown, "no packet has come");
        send("127.0.0.1:9");
        shows(&still(&table, "", rules), Force::InForce, "packets came to the rules");
        run("nft add table ip dyno_x { flags dormant ; }");
        assert!(Kernel.holds(&table, rules.as_bytes()).unwrap(), "it reads back as it was written");
        shows(&still(&table, "", rules), Force::NotInForce, "dormant");
        run("nft delete table ip dyno_x");
        Kernel.write(&table, rules.as_bytes()).unwrap();
        run("nft flush table ip dyno_x");
        assert!(Kernel.holds(&table, rules.as_bytes()).unwrap(), "it reads back as it was written");
        shows(&still(&table, "", rules), Force::NotInForce, "have no rule");
    });
}

#[test]
fn a_thread_in_another_class_than_was_written_is_told() {
    let _alone = alone();
    let mut sleeper = Command::new("/bin/sleep").arg("600").spawn().unwrap();
    let task: Task = place::threads(sleeper.id().cast_signed()).unwrap()[0];
    Kernel.write(&What::Scheduler(task), b"batch priority 0").ok();
    let class = String::from_utf8(Kernel.read(&What::Scheduler(task)).unwrap()).unwrap();
    let own = class.split(' ').next().unwrap().to_owned();
    shows(&still(&What::Scheduler(task), "other nice 0", &own), Force::InForce, &own);
    shows(&still(&What::Scheduler(task), "other nice 0", "fifo priority 1"), Force::NotInForce, &own);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn what_is_gone_shows_nothing_and_says_why() {
    let network = dyno_record::change::Network { inode: 1, cookie: 1 };
    let what = What::NetworkFile { network, path: "/proc/sys/net/core/somaxconn".into() };
    shows(&still(&what, "1", "2"), Force::NotShown, "has ended");
}
