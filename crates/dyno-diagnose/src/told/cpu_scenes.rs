//! Programs that use their CPUs: for their own code, memory, the kernel.

use dyno_record::observation::{Goroutines, Memory, Packets, Registers, SoftIrq, Tap, Transfers};
use dyno_record::profile::{SystemCall, WaitClass};

use super::Told;
use crate::scene::{COLUMNS, COUNT, FIND, Scene, WAIT, WALK, busy_load, registers};

fn busy(stack: &str, weight: u64) -> Scene {
    Scene::new(&[9.0, 7.0]).on("main;work", 100 - weight).on(stack, weight)
}

fn own_code() -> Vec<Told> {
    let hot = |share: f64, code| Scene::new(&[9.0]).on("main;work", 100).hot(code, share, vec![]);
    vec![
        ("a walk from node to node", hot(0.7, FIND)),
        ("a walk from node to node now and then", hot(0.3, FIND)),
        ("one function", Scene::new(&[9.2]).on("main;digest", 97).on("main;other", 3)),
        ("one function of two threads", Scene::new(&[9.2, 9.0]).on("main;digest", 60).on("main;other", 40)),
        ("an interpreter", Scene::new(&[9.2]).on("main;_PyEval_EvalFrameDefault", 60).on("main;other", 40)),
        (
            "one call",
            Scene::new(&[9.2])
                .on("main;_PyEval_EvalFrameDefault;list_count;long_compare", 70)
                .on("main;_PyEval_EvalFrameDefault;list_count", 25)
                .on("main;_PyEval_EvalFrameDefault", 5),
        ),
        (
            "tables are read row by row",
            busy("main;serve;ExecScan;heap_getnextslot", 40).on("main;serve;ExecScan;ExecInterpExpr", 30),
        ),
        ("it makes bytes of objects", busy("main;put;_pickle_dumps;0x10", 40)),
        (
            "it asks for collections",
            busy("GangWorker::loop();G1FullGCMarkTask::work(unsigned int)", 40)
                .on("VMThread::run();VM_G1CollectFull::doit()", 10),
        ),
        ("it makes text", busy("main;page;snprintf;vfprintf", 40)),
        ("it allocates", busy("main;page;malloc;_int_malloc", 55)),
        ("it allocates and does nothing else", busy("main;page;malloc", 90)),
        ("stacks grow", busy("main.page;runtime.newstack;runtime.copystack", 20)),
        ("it copies", busy("main;page;memcpy", 30)),
        (
            "it spins",
            Scene::new(&[5.0; 4]).on("run;work", 75).on("run;sched_yield;__x64_sys_sched_yield_[k]", 25).hot(
                WAIT,
                0.4,
                vec![registers(1, 0x1000, 0)],
            ),
        ),
        ("it asks again and again", busy("main.loop;runtime.selectnbrecv;runtime.chanrecv", 70)),
        ("a stripped program", Scene::new(&[9.0]).on("0x10;0x20", 60).on("0x10;0x30", 40)),
        ("it hardly ran", Scene::new(&[0.5]).on("main;work", 50)),
    ]
}

fn memory() -> Vec<Told> {
    let scattered: Vec<Registers> =
        (0..32_u64).map(|at| registers(1, 0x7000_0000, at.wrapping_mul(0x9e37_79b9) % (160 << 20))).collect();
    let table = |huge_mib: u64, share| {
        Scene::new(&[9.0]).on("main;work", 100).hot(WALK, share, scattered.clone()).with(|seen| {
            let (anonymous_bytes, huge_bytes, huge_pages) = (1_280 << 20, huge_mib << 20, "madvise".into());
            seen.memory = Some(Memory { rss_bytes: 1_300 << 20, anonymous_bytes, huge_bytes, huge_pages });
        })
    };
    const COLUMN: (&str, u64) = ("488b074883c708f20f5804304839fa75ef", 0xc);
    let rows = (0..1_000_u64).step_by(31).map(|row| {
        let mut seen = registers(1, 0x1000 + 8 * row, 0x9000);
        seen.values[0] = 0x7f00_0000 + row * (16 << 10);
        seen
    });
    let stores = |distance: u64| -> Vec<Registers> {
        (0..8).flat_map(|_| [registers(1, 0x1000, 0), registers(2, 0x1000 + distance, 0)]).collect()
    };
    let shared = |run_s: f64, distance, share| {
        Scene::new(&[run_s, run_s]).on("run;work", 100).hot(COUNT, share, stores(distance))
    };
    let faults = |stack: &str, weight| {
        busy(stack, weight).with(|seen| (seen.process.minor_faults, seen.process.major_faults) = (40_000, 10))
    };
    vec![
        ("pages are made", faults("main;page;asm_exc_page_fault_[k];clear_page_erms_[k]", 32)),
        ("pages are made now and then", faults("main;page;asm_exc_page_fault_[k];clear_page_erms_[k]", 8)),
        ("address spaces are copied", faults("main;fork;kernel_clone_[k];dup_mmap_[k]", 20)),
        ("a large table", table(100, 0.5)),
        ("a large table now and then", table(100, 0.2)),
        ("a large table in huge pages", table(1_000, 0.5)),
        ("columns", Scene::new(&[9.0]).on("main;work", 100).hot(COLUMNS, 0.5, vec![])),
        ("one number of each row", Scene::new(&[9.0]).on("main;work", 100).hot(COLUMN, 0.6, rows.collect())),
        ("words of one line", shared(8.0, 8, 0.5)),
        ("one word", shared(8.0, 0, 0.5)),
        ("words of one line in turns", shared(5.0, 8, 0.5)),
        ("words of one line now and then", shared(8.0, 8, 0.2)),
        (
            "words of one line in Go",
            shared(8.0, 0, 0.5)
                .with(|seen| seen.goroutines = Some(Goroutines { looks: 9, ..Goroutines::default() })),
        ),
    ]
}

fn kernel() -> Vec<Told> {
    let calls = |rates: &[(&str, u64)], scene: Scene| {
        let call = |(name, count): &(&str, u64)| {
            ((*name).to_owned(), SystemCall { count: count * 10, ..SystemCall::default() })
        };
        let all = rates.iter().map(call).collect();
        scene.with(|seen| seen.off_cpu.as_mut().unwrap().system_calls = all)
    };
    let sends = || busy("main;write;do_syscall_64_[k];tcp_sendmsg_[k]", 60);
    let tap = |owner| Tap { protocol: 3, device: 2, owner };
    let tapped = |scene: Scene, taps| {
        scene.with(|seen| {
            seen.packets =
                Some(Packets { taps, device_packets: 900, loopback_packets: 100, ..Packets::default() });
        })
    };
    let softirq =
        |net_rx, handed_over, targets| SoftIrq { net_rx, handed_over, targets, ..SoftIrq::default() };
    let steered = |handed, device_packets, elsewhere| {
        sends().with(|seen| {
            seen.host.softirq = vec![softirq(100, handed, true), softirq(elsewhere, 0, false)];
            seen.packets = Some(Packets {
                device_packets,
                loopback_packets: 1_000 - device_packets,
                ..Packets::default()
            });
        })
    };
    let storm = busy("main;getpid;entry_SYSCALL_64_[k];__x64_sys_getpid_[k]", 70);
    let pieces = |scene: Scene| {
        scene.with(|seen| {
            seen.process.reads = Some(Transfers { calls: 2_500_000, bytes: 2_500_000 * 16 });
            seen.process.writes = Some(Transfers { calls: 2_500_000, bytes: 2_500_000 * 256 });
            seen.packets.as_mut().unwrap().connections = 4;
        })
    };
    let waits = storm_of_waits();
    vec![
        (
            "many calls for each request",
            calls(&[("write", 60_000), ("read", 20_000), ("close", 9_000)], sends().load(busy_load())),
        ),
        (
            "many other calls for each request",
            calls(&[("write", 10_000), ("read", 20_000), ("close", 130_000)], sends().load(busy_load())),
        ),
        (
            "enough calls for each request",
            calls(&[("write", 30_000), ("read", 20_000), ("close", 9_000)], sends().load(busy_load())),
        ),
        ("enough calls for each request and little of the kernel", {
            let sends = busy("main;write;do_syscall_64_[k];tcp_sendmsg_[k]", 20);
            calls(&[("write", 30_000), ("read", 20_000)], sends.load(busy_load()))
        }),
        (
            "nearly too many other calls for each request",
            calls(&[("write", 10_000), ("read", 10_000), ("close", 110_000)], sends().load(busy_load())),
        ),
        ("answers in pieces", pieces(calls(&[("recvfrom", 500), ("writev", 250_000)], sends()))),
        ("calls that move nothing", calls(&[("getpid", 900_000), ("read", 1_000)], storm)),
        (
            "calls of a few bytes",
            busy("main;read;entry_SYSCALL_64_[k];vfs_read_[k]", 70).with(|seen| {
                seen.process.reads = Some(Transfers { calls: 5_000_000, bytes: 15_000_000 });
            }),
        ),
        ("calls that wait", waits),
        (
            "filters before calls",
            busy("main;read;seccomp_run_filters_[k]", 12).with(|seen| seen.process.seccomp_filters = 3),
        ),
        (
            "somebody traces it",
            busy("main;read;syscall_trace_enter_[k];ptrace_stop_[k]", 40)
                .with(|seen| seen.process.traced_by = Some((77, "strace".to_owned()))),
        ),
        ("filters that cost little", busy("main;read;seccomp_run_filters_[k]", 2)),
        (
            "packets are tapped",
            tapped(busy("main;write;packet_rcv_[k]", 8), vec![tap(Some((7, "dump".to_owned()))), tap(None)]),
        ),
        ("taps that cost nothing", tapped(busy("main;write;tcp_sendmsg_[k]", 8), vec![tap(None)])),
        ("packets are handed on", steered(700, 900, 0)),
        ("packets are handed on over loopback", steered(200, 100, 0)),
        ("packets are worked on elsewhere", steered(0, 900, 900)),
        ("packets are worked on here", steered(0, 900, 300)),
        ("rules of a packet filter", busy("main;write;tcp_sendmsg_[k];nft_do_chain_[k]", 25)),
        ("a path of packets", sends()),
    ]
}

/// Futexes that threads sleep in.
fn storm_of_waits() -> Scene {
    let storm = "main;futex;entry_SYSCALL_64_[k];__x64_sys_futex_[k];futex_wake_[k]";
    let call = SystemCall { count: 3_000_000, ..SystemCall::default() };
    let scene = busy(storm, 80).off(1, WaitClass::Sleep, "main;futex;futex_wait_[k]", 0.5);
    scene.with(|seen| {
        let off = seen.off_cpu.as_mut().unwrap();
        off.system_calls.insert("futex".to_owned(), call);
        let stack = off.stacks.last_mut().unwrap();
        (stack.samples, stack.wait.as_mut().unwrap().system_call) = (500_000, Some("futex".to_owned()));
    })
}

pub(super) fn all() -> Vec<Told> {
    [own_code(), memory(), kernel()].into_iter().flatten().collect()
}
