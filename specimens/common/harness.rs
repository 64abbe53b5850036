//! What every Rust specimen shares: which side runs, for how long, and the line of figures at its end.
//!
//! `program defect|repaired [--for SECONDS]` prints `ready` when its preparations are over, works until the time is up
//! or SIGTERM or SIGINT comes, and prints `{"units":N,"elapsed_ns":N,"cpu_ns":N,"notes":{}}`. The specimen is in the
//! other file.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Numbers of linux/signal.h and linux/time.h, the same on every architecture that Linux 64-bit Rust knows but MIPS.
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

static OVER: AtomicBool = AtomicBool::new(false);

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

extern "C" fn stop(_number: i32) {
    OVER.store(true, Relaxed);
}

/// Which program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Defect,
    Repaired,
}

/// Whether the time is up.
#[inline]
pub fn is_over() -> bool {
    OVER.load(Relaxed)
}

/// Reads the command line and takes the signals that end a run.
pub fn begin() -> Side {
    for number in [SIGINT, SIGTERM] {
        // SAFETY: the handler does nothing but store to an atomic, which a handler may.
        unsafe { signal(number, stop) };
    }
    match std::env::args().nth(1).as_deref() {
        Some("defect") => Side::Defect,
        Some("repaired") => Side::Repaired,
        _ => {
            eprintln!("usage: program defect|repaired [--for SECONDS]");
            std::process::exit(2);
        }
    }
}

/// A run whose units, time and CPU count.
pub struct Run {
    start: Instant,
    cpu_ns: u64,
}

impl Run {
    /// Preparations are over.
    pub fn start() -> Run {
        println!("ready");
        if let Some(seconds) = std::env::args().nth(3).and_then(|text| text.parse().ok()) {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs_f64(seconds));
                OVER.store(true, Relaxed);
            });
        }
        Run { start: Instant::now(), cpu_ns: cpu_ns() }
    }

    /// The last line.
    pub fn end(self, units: u64) {
        let (elapsed_ns, cpu_ns) = (self.start.elapsed().as_nanos(), cpu_ns() - self.cpu_ns);
        println!("{{\"units\":{units},\"elapsed_ns\":{elapsed_ns},\"cpu_ns\":{cpu_ns},\"notes\":{{}}}}");
    }
}

fn cpu_ns() -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is a live, writable timespec of this ABI for the length of the call.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}
