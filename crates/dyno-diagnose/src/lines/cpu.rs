//! Lines of what CPUs are used for.

use dyno_record::finding::Class;
use dyno_record::observation::{Memory, Packets, Registers, SoftIrq, Transfers};
use dyno_record::profile::SystemCall;

use super::Line;
use crate::scene::{COLUMNS, COUNT, FIND, Scene, WAIT, WALK, busy_load, registers};

/// Of a thousand parts of two CPUs' time, so many in this stack.
fn spends(stack: &str, parts: f64) -> Scene {
    Scene::new(&[9.0, 9.0]).on("main;work", 1_000 - parts as u64).on(stack, parts as u64)
}

fn hot(code: (&str, u64), share: f64, seen: Vec<Registers>) -> Scene {
    Scene::new(&[9.0, 9.0]).on("run;work", 100).hot(code, share, seen)
}

fn stores(run_s: f64, share: f64) -> Scene {
    let seen = (0..8).flat_map(|_| [registers(1, 0x1000, 0), registers(2, 0x1008, 0)]).collect();
    Scene::new(&[run_s, run_s]).on("run;work", 100).hot(COUNT, share, seen)
}

fn table(share: f64, mib: u64, huge_mib: u64, addresses: u64) -> Scene {
    let scattered =
        (0..addresses).map(|at| registers(1, 0x7000_0000, at.wrapping_mul(0x9e37_79b9) % (160 << 20)));
    hot(WALK, share, scattered.collect()).with(|seen| {
        let (anonymous_bytes, huge_bytes) = (mib << 20, huge_mib << 20);
        seen.memory =
            Some(Memory { rss_bytes: mib << 20, anonymous_bytes, huge_bytes, huge_pages: "madvise".into() });
    })
}

/// A function that is so many hundredths of what a thread does that runs for so long.
fn one_function(run_s: f64, weight: u64) -> Scene {
    Scene::new(&[run_s]).on("main;digest", weight).on("main;other", 100 - weight)
}

/// Calls in a second of a server with ten thousand requests a second, of whose CPU time so much is the kernel's.
fn calls(name: &str, rate: f64, kernel: f64) -> Scene {
    let of = |rate: f64| SystemCall { count: 10 * rate as u64, ..SystemCall::default() };
    let scene = spends("main;do_syscall_64_[k];tcp_sendmsg_[k]", kernel).load(busy_load());
    scene.with(|seen| {
        let all = &mut seen.off_cpu.as_mut().unwrap().system_calls;
        all.insert("write".to_owned(), of(10_000.0));
        all.insert(name.to_owned(), of(rate));
    })
}

/// Calls in a second of a program that is asked nothing, of its two CPUs' ones.
fn storm(rate: f64, kernel: f64) -> Scene {
    let call = SystemCall { count: 10 * rate as u64, ..SystemCall::default() };
    spends("main;getpid;entry_SYSCALL_64_[k];__x64_sys_getpid_[k]", kernel).with(|seen| {
        seen.off_cpu.as_mut().unwrap().system_calls.insert("getpid".to_owned(), call);
    })
}

fn sends(parts: f64, device_packets: u64, softirq: Vec<SoftIrq>) -> Scene {
    spends("main;write;do_syscall_64_[k];tcp_sendmsg_[k]", parts).with(|seen| {
        let loopback_packets = 1_000 - device_packets;
        seen.packets = Some(Packets { device_packets, loopback_packets, ..Packets::default() });
        seen.host.softirq = softirq;
    })
}

fn handed(handed_over: f64) -> Vec<SoftIrq> {
    vec![SoftIrq { handed_over: handed_over as u64, ..SoftIrq::default() }]
}

fn local(net_rx: f64) -> Vec<SoftIrq> {
    let of = |net_rx, targets| SoftIrq { net_rx, targets, ..SoftIrq::default() };
    vec![of(net_rx as u64, true), of(1_000 - net_rx as u64, false)]
}

/// Writes of so many bytes in a second, for each of which so few are read.
fn pieces(out: f64, in_: f64, bytes: u64) -> Scene {
    let of = |rate: f64| SystemCall { count: 10 * rate as u64, ..SystemCall::default() };
    spends("main;write;do_syscall_64_[k];tcp_sendmsg_[k]", 600.0).with(|seen| {
        let calls = [("writev".to_owned(), of(out)), ("recvfrom".to_owned(), of(in_))];
        seen.off_cpu.as_mut().unwrap().system_calls = calls.into();
        seen.process.writes = Some(Transfers { calls: 10 * out as u64, bytes: 10 * out as u64 * bytes });
        seen.packets.as_mut().unwrap().connections = 4;
    })
}

pub(super) const LINES: &[Line] = &[
    (
        Class::Spinning,
        "yields",
        |parts| spends("run;sched_yield;__x64_sys_sched_yield_[k]", parts),
        199.0,
        200.0,
    ),
    (Class::Spinning, "loops", |share| hot(WAIT, share, vec![]), 0.19, 0.2),
    (
        Class::Spinning,
        "asks again",
        |parts| spends("run;runtime.selectnbrecv;runtime.chanrecv", parts),
        499.0,
        500.0,
    ),
    (Class::FalseSharingSuspected, "loops", |share| stores(9.0, share), 0.29, 0.3),
    (Class::FalseSharingSuspected, "together", |run| stores(run, 0.5), 5.99, 6.0),
    (
        Class::PageFaults,
        "CPU time",
        |parts| spends("main;asm_exc_page_fault_[k];clear_page_erms_[k]", parts),
        149.0,
        150.0,
    ),
    (Class::TlbReach, "loops", |share| table(share, 1_280, 0, 32), 0.29, 0.3),
    (Class::TlbReach, "memory", |mib| table(0.5, mib as u64, 0, 32), 255.0, 256.0),
    (Class::TlbReach, "huge pages", |mib| table(0.5, 1_280, mib as u64, 32), 640.0, 639.0),
    (Class::TlbReach, "addresses", |many| table(0.5, 1_280, 0, many as u64), 15.0, 16.0),
    (Class::CacheMissesSuspected, "loops", |share| hot(COLUMNS, share, vec![]), 0.29, 0.3),
    (Class::Formatting, "CPU time", |parts| spends("main;snprintf;vfprintf", parts), 249.0, 250.0),
    (Class::AllocationChurn, "CPU time", |parts| spends("main;page;malloc", parts), 249.0, 250.0),
    (Class::AllocationChurn, "all of it", |parts| spends("main;page;malloc", parts), 850.0, 849.0),
    (Class::AllocationChurn, "stacks", |parts| spends("main.page;runtime.newstack", parts), 99.0, 100.0),
    (Class::Copying, "CPU time", |parts| spends("main;page;memcpy", parts), 249.0, 250.0),
    (Class::UserHotSpot, "a walk", |share| hot(FIND, share, vec![]), 0.49, 0.5),
    (Class::UserHotSpot, "a function", |weight| one_function(9.0, weight as u64), 89.0, 90.0),
    (Class::UserHotSpot, "of a busy thread", |run| one_function(run, 99), 7.99, 8.0),
    (Class::SyscallHeavy, "writes for each request", |rate| calls("writev", rate, 600.0), 25_000.0, 25_001.0),
    (Class::SyscallHeavy, "reads for each request", |rate| calls("read", rate, 600.0), 45_000.0, 45_001.0),
    (
        Class::SyscallHeavy,
        "others for each request",
        |rate| calls("close", rate, 600.0),
        120_000.0,
        120_001.0,
    ),
    (Class::SyscallHeavy, "the kernel's share", |kernel| calls("read", 90_000.0, kernel), 349.0, 350.0),
    (Class::SyscallHeavy, "calls of a CPU", |rate| storm(rate, 700.0), 179_999.0, 180_000.0),
    (
        Class::SyscallHeavy,
        "pieces of a CPU's time",
        |rate| pieces(rate - 100.0, 100.0, 256),
        179_999.0,
        180_000.0,
    ),
    (Class::SyscallHeavy, "pieces for each", |out| pieces(out, 50_000.0, 256), 300_000.0, 300_001.0),
    (
        Class::SyscallHeavy,
        "bytes of a piece",
        |bytes| pieces(200_000.0, 100.0, bytes as u64),
        1_024.0,
        1_023.0,
    ),
    (Class::SyscallHeavy, "the kernel's share of nothing", |kernel| storm(900_000.0, kernel), 349.0, 350.0),
    (
        Class::KernelNetwork,
        "rules",
        |parts| spends("main;write;tcp_sendmsg_[k];nft_do_chain_[k]", parts),
        99.0,
        100.0,
    ),
    (
        Class::KernelNetwork,
        "connections",
        |parts| spends("main;accept;inet_csk_accept_[k]", parts),
        99.0,
        100.0,
    ),
    (
        Class::FilteredSyscalls,
        "CPU time",
        |parts| spends("main;read;seccomp_run_filters_[k]", parts),
        29.0,
        30.0,
    ),
    (
        Class::PacketTap,
        "CPU time",
        |parts| {
            spends("main;write;packet_rcv_[k]", parts).with(|seen| {
                seen.packets.as_mut().unwrap().device_packets = 9;
            })
        },
        9.0,
        10.0,
    ),
    (Class::WrongCore, "handed over", |many| sends(500.0, 100, handed(many)), 499.0, 500.0),
    (Class::WrongCore, "traffic", |parts| sends(parts, 100, handed(900.0)), 49.0, 50.0),
    (Class::WrongCore, "local interrupts", |net_rx| sends(500.0, 900, local(net_rx)), 200.0, 199.0),
    (Class::WrongCore, "over devices", |many| sends(500.0, many as u64, local(9.0)), 499.0, 500.0),
];
