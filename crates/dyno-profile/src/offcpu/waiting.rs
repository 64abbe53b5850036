//! What /proc knows of a thread that waits: its state, its name, where it stands in user code and in the kernel.

use std::fs;
use std::io::{Read, Seek, SeekFrom};

use dyno_sys::bpf::offcpu::STACK_BYTES;
use dyno_sys::{Pid, Tid, proc};

use crate::stack::raw::Raw;

/// Where a thread waits, as /proc/PID/task/TID/syscall says it.
pub(super) struct Place {
    pub(super) system_call: Option<u32>,
    pub(super) ip: u64,
    pub(super) sp: u64,
}

impl Place {
    pub(super) fn of(pid: Pid, tid: Tid) -> Option<Place> {
        Place::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?)
    }

    /// A number, six arguments, the stack pointer and the instruction pointer; -1 and no arguments outside a call.
    fn parse(text: &str) -> Option<Place> {
        let mut words = text.split_whitespace();
        let number: i64 = words.next()?.parse().ok()?;
        let mut last = words.rev().map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
        let (ip, sp) = (last.next()??, last.next()??);
        Some(Place { system_call: u32::try_from(number).ok(), ip, sp })
    }
}

/// Memory from a stack pointer up, as much as is there.
pub(super) fn stack_memory(pid: Pid, sp: u64) -> Vec<u8> {
    let mut memory = Vec::new();
    if let Ok(mut file) = fs::File::open(format!("{}/mem", proc::folder(pid)))
        && file.seek(SeekFrom::Start(sp)).is_ok()
    {
        // Beyond the stack's end the kernel answers with an error; what came before it stays.
        let _ = file.take(STACK_BYTES as u64).read_to_end(&mut memory);
    }
    memory
}

/// The kernel's functions that a waiting thread stands in, the leaf first.
pub(super) fn kernel_functions(pid: Pid, tid: Tid) -> Vec<Raw> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stack")).unwrap_or_default();
    text.lines().filter_map(stack_line).map(Raw::KernelNamed).collect()
}

/// `[<0>] function+0x12/0x34`.
fn stack_line(line: &str) -> Option<String> {
    let function = line.split_once("] ")?.1.split('+').next()?;
    Some(function.to_owned())
}

pub(super) fn state(pid: Pid, tid: Tid) -> Option<char> {
    stat(pid, tid).map(|stat| stat.state)
}

/// Whether a thread is gone, or about to end: the probe has seen its end then.
pub(super) fn is_ending(pid: Pid, tid: Tid) -> bool {
    stat(pid, tid).is_none_or(|stat| stat.is_ending)
}

fn stat(pid: Pid, tid: Tid) -> Option<proc::Stat> {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    proc::parse_stat(&String::from_utf8_lossy(&text))
}

pub(super) fn name(pid: Pid, tid: Tid) -> String {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_waiting_threads_place_is_read_and_a_running_one_has_none() {
        let place = Place::parse("230 0x0 0x0 0x7f 0x7e 0x0 0x0 0x7ffe0249e928 0x7fdb72fe5503\n").unwrap();
        assert_eq!((place.system_call, place.sp, place.ip), (Some(230), 0x7ffe_0249_e928, 0x7fdb_72fe_5503));
        let outside = Place::parse("-1 0x7ffe0249e928 0x7fdb72fe5503\n").unwrap();
        assert_eq!((outside.system_call, outside.ip), (None, 0x7fdb_72fe_5503));
        assert!(Place::parse("running\n").is_none());
    }

    #[test]
    fn a_kernel_stack_is_read_without_its_offsets() {
        assert_eq!(stack_line("[<0>] hrtimer_nanosleep+0x74/0xf0").as_deref(), Some("hrtimer_nanosleep"));
        assert_eq!(stack_line(""), None);
    }
}
