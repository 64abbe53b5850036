//! The off-CPU probe in the kernel: it loads, sees a process wait, and leaves nothing behind.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use dyno_sys::bpf;
use dyno_sys::bpf::offcpu::{Calls, Event, KERNEL_STACKS, Part, Probe, Says, Settings, Spans};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::signal::{Signal, kill};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

/// `read` on x86-64; elsewhere this file is not built.
const READ: u32 = 0;

const SECOND: u64 = 1_000_000_000;

/// Programs are counted on the whole machine: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A process that reads from a pipe nobody writes to.
fn reader() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

fn probe(pid: i32) -> Probe {
    probe_with(pid, Calls::Watched)
}

fn probe_with(pid: i32, calls: Calls) -> Probe {
    probe_of(pid, Settings { min_ns: 0, spans: Spans::Recorded, calls, kernel_stacks: KERNEL_STACKS })
}

fn probe_of(pid: i32, settings: Settings) -> Probe {
    let mut probe = Probe::load(settings).unwrap();
    probe.name_objects(&[(READ, Says::Descriptor)]).unwrap();
    probe.watch(pid).unwrap();
    probe.set_code(pid, &[(0x5000_0000_0000, 0x7fff_ffff_ffff)]).unwrap();
    probe.start().unwrap();
    probe
}

/// Programs and links of the whole machine that are not among `before`. Those of an earlier test may still be going.
fn new_since(before: &(Vec<u32>, Vec<u32>)) -> (usize, usize) {
    let (programs, links) = bpf::ids().unwrap();
    let count = |now: &[u32], before: &[u32]| now.iter().filter(|id| !before.contains(id)).count();
    (count(&programs, &before.0), count(&links, &before.1))
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_reader_of_an_empty_pipe_waits_and_its_stack_is_copied() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut child = reader();
    let pid = child.id().cast_signed();
    let mut probe = probe(pid);
    let mut pipe = child.stdin.take().unwrap();
    for _ in 0..10 {
        std::io::Write::write_all(&mut pipe, b"x").unwrap();
        sleep_ns(2_000_000);
    }
    let (mut stacks, mut spans) = (Vec::new(), 0);
    probe.drain(&mut |event| match event {
        Event::Shape(shape) => stacks.push((shape.id, shape.pid, shape.ip, shape.stack.len())),
        Event::Span(span) => spans += usize::from(span.to_ns > span.from_ns),
        _ => {}
    });
    probe.stop();
    let waits = probe.waits().unwrap();
    let of_read = |wait: &&bpf::offcpu::Wait| wait.part == Part::Wait && wait.system_call == Some(READ);
    let read = waits.iter().filter(of_read).max_by_key(|wait| wait.ns).unwrap();
    // One more than the descriptor, so that 0 stays none.
    assert_eq!((read.pid, read.object), (pid, Some(1)), "{read:?}");
    assert!((10_000_000..SECOND).contains(&read.ns), "{read:?}");
    assert!(
        stacks.iter().any(|(id, of, ip, bytes)| {
            Some(*id) == read.shape && *of == pid && *ip != 0 && *bytes > 1_000
        })
    );
    assert!(spans > 10, "{spans} spans");
    let wakers = probe.wakers().unwrap();
    let waker = wakers.iter().find(|waker| Some(waker.id) == read.waker).unwrap();
    assert_eq!(waker.pid, std::process::id().cast_signed(), "{waker:?}");
    assert!(probe.kernel_stack(read.kernel_stack.unwrap()).unwrap().len() > 4);
    assert!(probe.calls().unwrap().iter().any(|call| call.number == READ && call.count > 5));
    kill(pid, Signal::Kill).unwrap();
    child.wait().unwrap();
}

/// Fault: `call_of` that answers -1; or hooks of calls that are attached all the same.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn without_a_hook_at_system_calls_the_one_that_a_thread_waits_in_is_known() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = bpf::ids().unwrap();
    let mut child = reader();
    let pid = child.id().cast_signed();
    let mut probe = probe_with(pid, Calls::Passed);
    assert!(new_since(&before).1 < 8, "one link for each of the other hooks");
    let mut pipe = child.stdin.take().unwrap();
    for _ in 0..10 {
        std::io::Write::write_all(&mut pipe, b"x").unwrap();
        sleep_ns(2_000_000);
    }
    probe.stop();
    let waits = probe.waits().unwrap();
    let read = waits.iter().filter(|wait| wait.part == Part::Wait).max_by_key(|wait| wait.ns).unwrap();
    assert_eq!((read.pid, read.system_call, read.object), (pid, Some(READ), Some(1)), "{read:?}");
    assert!(probe.calls().unwrap().is_empty(), "none was counted");
    kill(pid, Signal::Kill).unwrap();
    child.wait().unwrap();
}

/// Threads that wait for ten different things, a hundred times and more in a second, until they are told to stop.
fn waiting_for_ten_things(stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    fn waits(stop: &Arc<AtomicBool>, mut wait: impl FnMut() + Send + 'static) -> JoinHandle<()> {
        let stop = Arc::clone(stop);
        spawn(move || {
            while !stop.load(Relaxed) {
                wait();
            }
        })
    }
    let paced = |mut give: Box<dyn FnMut() + Send>| {
        waits(stop, move || {
            sleep_ns(5_000_000);
            give();
        })
    };
    let mut byte = [0; 1];
    let (mut pipe_out, mut pipe_in) = std::io::pipe().unwrap();
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let (asks, answers) = UnixDatagram::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut opened = TcpStream::connect(at).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let (sends, hears) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    sends.connect(hears.local_addr().unwrap()).unwrap();
    vec![
        waits(stop, || sleep_ns(2_000_000)),
        waits(stop, || std::thread::park_timeout(std::time::Duration::from_millis(2))),
        waits(stop, move || pipe_out.read_exact(&mut byte).unwrap()),
        paced(Box::new(move || pipe_in.write_all(b"x").unwrap())),
        waits(stop, move || near.read_exact(&mut byte).unwrap()),
        paced(Box::new(move || far.write_all(b"x").unwrap())),
        waits(stop, move || {
            let _ = answers.recv(&mut byte).unwrap();
        }),
        paced(Box::new(move || {
            let _ = asks.send(b"x").unwrap();
        })),
        waits(stop, move || accepted.read_exact(&mut byte).unwrap()),
        paced(Box::new(move || opened.write_all(b"x").unwrap())),
        waits(stop, move || {
            let _ = hears.recv(&mut byte).unwrap();
        }),
        paced(Box::new(move || {
            let _ = sends.send(b"x").unwrap();
        })),
        waits(stop, move || drop(listener.accept().unwrap())),
        paced(Box::new(move || drop(TcpStream::connect(at).unwrap()))),
    ]
}

/// Some thirty stacks in a table of 256, those of who wakes among them, and later whatever of the machine is interrupted then: on a busy
/// one a hundred and more, each another one. Those of the waits are there first. Fault: one place for each stack (`PLACES` of 1): of 32
/// loads, whose programs lie elsewhere each time, six lost one then, and all waits that it is of; that none of 24 does is one in 150. That
/// six places are all taken, by so few, is one in a million.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn kernel_stacks_that_want_the_same_place_are_all_kept() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let stop = Arc::new(AtomicBool::new(false));
    let threads = waiting_for_ten_things(&stop);
    let pid = std::process::id().cast_signed();
    let lost: Vec<(u64, usize)> = (0..24)
        .map(|_| {
            let (spans, calls) = (Spans::Summed, Calls::Passed);
            let mut probe = probe_of(pid, Settings { min_ns: 0, spans, calls, kernel_stacks: 256 });
            let until_ns = mono_ns() + SECOND / 5;
            while mono_ns() < until_ns {
                sleep_ns(10_000_000);
                probe.drain(&mut |_event| {});
            }
            probe.stop();
            let waits = probe.waits().unwrap();
            let stacks: std::collections::BTreeSet<i32> =
                waits.iter().filter_map(|wait| wait.kernel_stack).collect();
            let without = waits.iter().filter(|wait| wait.part == Part::Wait && wait.kernel_stack.is_none());
            (without.map(|wait| wait.count).sum(), stacks.len())
        })
        .collect();
    stop.store(true, Relaxed);
    // The stack of a wait that the watch began in is not known; no thread has more than one of those, the tests' own among them.
    let begun = threads.len() as u64 + 4;
    // What one waits for may not come any more: they end with the process.
    drop(threads);
    assert!(lost.iter().all(|(lost, stacks)| *lost < begun && *stacks >= 5), "{lost:?} of {begun}");
}

/// Two threads that hand something to and fro until they are told to stop.
fn pair(stop: &Arc<AtomicBool>) -> [JoinHandle<()>; 2] {
    let ((to, from), (back, returned)) = (sync_channel::<()>(0), sync_channel::<()>(0));
    let stop = Arc::clone(stop);
    let asks = move || while !stop.load(Relaxed) && to.send(()).is_ok() && returned.recv().is_ok() {};
    let answers = move || while from.recv().is_ok() && back.send(()).is_ok() {};
    [spawn(asks), spawn(answers)]
}

/// Fault: `end_thread` of the probe that takes the row out whether the end was told or not.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_thread_that_ends_while_the_ring_is_full_keeps_its_row() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut probe = probe_with(std::process::id().cast_signed(), Calls::Passed);
    let stop = Arc::new(AtomicBool::new(false));
    let pairs = [pair(&stop), pair(&stop)];
    let deadline = mono_ns() + 60 * SECOND;
    // Nobody reads the ring meanwhile.
    while probe.counts().lost_spans == 0 {
        assert!(mono_ns() < deadline, "the ring is not full: {:?}", probe.counts());
        sleep_ns(1_000_000);
    }
    let ended = spawn(|| std::fs::read_link("/proc/thread-self").unwrap()).join().unwrap();
    let tid: i32 = ended.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let deadline = mono_ns() + 5 * SECOND;
    // It is waited for a little before the kernel is through with it.
    let is_kept = |thread: &bpf::offcpu::Thread| thread.tid == tid && thread.open.is_empty();
    while !probe.threads().unwrap().iter().any(|thread| is_kept(thread) && thread.running_ns > 0) {
        assert!(mono_ns() < deadline, "no row of {tid} that has ended");
        sleep_ns(1_000_000);
    }
    stop.store(true, Relaxed);
    pairs.into_iter().flatten().for_each(|thread| thread.join().unwrap());
    probe.stop();
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_dropped_probe_is_gone_from_the_kernel() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = bpf::ids().unwrap();
    let mut child = reader();
    let probe = probe(child.id().cast_signed());
    assert!(new_since(&before).0 >= 8, "eight programs were loaded");
    drop(probe);
    // The kernel frees programs a grace period later, which on a full machine takes its time.
    let deadline = mono_ns() + 60 * SECOND;
    while new_since(&before) != (0, 0) {
        assert!(mono_ns() < deadline, "left behind: {:?}", new_since(&before));
        std::thread::yield_now();
    }
    kill(child.id().cast_signed(), Signal::Kill).unwrap();
    child.wait().unwrap();
}
