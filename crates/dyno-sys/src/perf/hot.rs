//! Samples of where a thread is in user code, with all its general registers: what its instructions were about to touch.
//!
//! For diagnosis: without hardware counters the addresses that hot instructions use tell what caches and TLBs suffer. One
//! event and one ring per thread, user mode only, so that a plain user may watch his own process. x86-64 only.

use super::attributes::{
    self as bits, Attributes, SAMPLE_IP, SAMPLE_REGS_USER, SAMPLE_STACK_USER, SAMPLE_TID,
};
use super::ring::Ring;
use crate::{Pid, Tid};
use std::io;
use std::os::fd::OwnedFd;

/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_RECORD_SAMPLE`.
const CPU_CLOCK: u64 = 0;
const RECORD_SAMPLE: u32 = 9;
/// Bytes of a record's head.
const HEAD_BYTES: usize = 8;
/// rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp and r8 to r15 in asm/perf_regs.h; the kernel gives them in this order.
const REGISTERS: u64 = 0xff | 0xff << 16;
/// Words above the stack pointer: the return address of a function without a frame is among the first.
const STACK_WORDS: usize = 16;
/// Room for some 200 samples between two looks.
const RING_BYTES: usize = 64 << 10;

/// A thread seen in user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotSample {
    /// Its process then.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The next instruction.
    pub ip: u64,
    /// rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 … r15.
    pub registers: [u64; 16],
    /// The first words from the stack pointer upwards.
    pub stack: Vec<u64>,
}

/// The samples of one thread. Closing it ends the sampling.
#[derive(Debug)]
pub struct HotSampler {
    // Dropped first: the mapping keeps the event alive.
    ring: Ring,
    _event: OwnedFd,
    bytes: Vec<u8>,
}

impl HotSampler {
    /// Begins to sample thread `tid`. `EACCES` without the right, `ESRCH` when it is gone, `ENOTSUP` on machines other
    /// than x86-64.
    pub fn open(tid: Tid, frequency_hz: u64) -> io::Result<HotSampler> {
        if !cfg!(target_arch = "x86_64") {
            return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
        }
        assert!(frequency_hz > 0, "a clock that never ticks");
        let attributes = Attributes {
            kind: bits::TYPE_SOFTWARE,
            config: CPU_CLOCK,
            sample_period_or_freq: frequency_hz,
            sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
            flags: bits::FREQ | bits::EXCLUDE_KERNEL | bits::EXCLUDE_HV,
            sample_regs_user: REGISTERS,
            sample_stack_user: (STACK_WORDS * size_of::<u64>()) as u32,
            ..Attributes::EMPTY
        };
        let event = bits::open(&attributes, tid, None)?;
        let ring = Ring::map(&event, RING_BYTES)?;
        Ok(HotSampler { ring, _event: event, bytes: Vec::new() })
    }

    /// Appends what was sampled since the last look.
    pub fn drain(&mut self, out: &mut Vec<HotSample>) {
        self.bytes.clear();
        self.ring.drain(&mut self.bytes);
        out.extend(samples(&self.bytes));
    }
}

/// The samples in a row of whole records; others are passed over.
fn samples(bytes: &[u8]) -> Vec<HotSample> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some((kind, record, after)) = next(rest) {
        if kind == RECORD_SAMPLE {
            found.extend(sample(record));
        }
        rest = after;
    }
    found
}

/// Kind and body of the first record, and what stands after it.
fn next(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let kind = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let size = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
    // A record that claims to be shorter than its head would be read for ever.
    let record = bytes.get(..size).filter(|_| size >= HEAD_BYTES)?;
    Some((kind, &record[HEAD_BYTES..], &bytes[size..]))
}

fn sample(body: &[u8]) -> Option<HotSample> {
    let word = |at: usize| Some(u64::from_ne_bytes(body.get(at * 8..at * 8 + 8)?.try_into().ok()?));
    let number = |at: usize| Some(i32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let (pid, tid) = (number(8)?, number(12)?);
    // Place 2 says whether registers follow: none for a kernel thread.
    if word(2)? == 0 {
        return None;
    }
    let mut registers = [0; 16];
    for (at, register) in registers.iter_mut().enumerate() {
        *register = word(3 + at)?;
    }
    let copied = (word(19)? as usize / 8).min(STACK_WORDS);
    let stack = (0..copied).map(|at| word(20 + at)).collect::<Option<Vec<u64>>>()?;
    // After the copy stands how much of it was readable.
    let valid = word(20 + copied).unwrap_or(0) as usize / 8;
    let stack = stack.into_iter().take(valid).collect();
    Some(HotSample { pid, tid, ip: word(0)?, registers, stack })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(words: &[u64]) -> Vec<u8> {
        let size = (HEAD_BYTES + words.len() * 8) as u16;
        let mut bytes = RECORD_SAMPLE.to_ne_bytes().to_vec();
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn body() -> Vec<u64> {
        let mut words = vec![0x40_1000, 7 << 32 | 5, 2];
        words.extend(100..116);
        words.push(16);
        words.extend([0xaa, 0xbb]);
        words.push(16);
        words
    }

    #[test]
    fn registers_and_stack_come_in_their_order() {
        let found = samples(&record(&body()));
        assert_eq!((found[0].ip, found[0].pid, found[0].tid, found[0].registers[15]), (0x40_1000, 5, 7, 115));
        assert_eq!(found[0].stack, [0xaa, 0xbb]);
    }

    #[test]
    fn a_record_cut_anywhere_is_no_sample_and_no_panic() {
        let whole = record(&body());
        assert!((0..whole.len()).all(|cut| samples(&whole[..cut]).is_empty()));
        let mut twice = whole.clone();
        twice.extend(&whole);
        assert_eq!(samples(&twice).len(), 2);
    }

    #[test]
    fn a_thread_without_registers_is_passed_over() {
        let mut words = body();
        words[2] = 0;
        assert!(samples(&record(&words)).is_empty());
    }
}
