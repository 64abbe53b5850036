//! System calls that a process gives up for good (`seccomp(2)`): a filter of one list, written and installed here.
//!
//! A filter says for each call what becomes of it; what it does not name is refused. Called by children of the engine's
//! supervisor once they have everything that they need. Nothing here chooses calls.

mod calls;
mod copy;
mod rule;

use crate::errno::checked_long;
pub use calls::{Purpose, rules};
pub use copy::Filter;
pub use rule::{Action, Rule};
use std::io;

/// How many rules a filter takes: a jump of a filter goes no further than its program is long, and that is 4,096.
pub const RULES_MAX: usize = 512;

/// What the kernel calls this architecture (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls from this number on are those of x32, under the same architecture's name.
const X32: u32 = 0x4000_0000;

/// Where the kernel shows a call's number, its architecture and its arguments (struct seccomp_data).
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IS_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Keeps every thread of this process, and whatever it starts, to these calls; others answer `EPERM`. For good.
///
/// # Errors
/// `EACCES` unless the process has `no_new_privs`; `EINVAL` of a kernel without filters.
pub fn confine(rules: &[Rule]) -> io::Result<()> {
    let program = program(rules);
    match install(&program, libc::SECCOMP_FILTER_FLAG_TSYNC)? {
        0 => Ok(()),
        // The number of a thread that has a filter of its own.
        _ => Err(io::Error::from_raw_os_error(libc::EBUSY)),
    }
}

/// How often a filter of [`weigh_down`] looks at an argument: as the lists of container engines do for a call in their middle.
const LOOKS: usize = 100;

/// Adds a filter that allows everything, and looks at an argument of each call on the way: what one costs, without what it
/// is for. For this thread and whatever it starts, for good.
///
/// # Errors
/// As [`confine`].
pub fn weigh_down() -> io::Result<()> {
    // The number of a call alone would be decided once and for all (Linux 5.11): a look at an argument is not.
    let mut program = vec![step(LOAD, ARGUMENTS_AT)];
    program.extend((0..LOOKS).map(|look| jump(IS, 0x7000_0000 + look as u32, 0, 0)));
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    install(&program, 0).map(|_| ())
}

/// The kernel's answer.
fn install(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: `filter` points to `program`, which is as long as said; both live through the call, and the kernel copies them.
    checked_long(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) })
}

/// The filter's instructions: the number is compared with each rule's in turn. The kernel finds out by itself which calls are
/// always allowed, and runs nothing for those (Linux 5.11).
fn program(rules: &[Rule]) -> Vec<libc::sock_filter> {
    assert!(rules.len() <= RULES_MAX, "a filter of {} rules", rules.len());
    let mut program = vec![
        step(LOAD, ARCHITECTURE_AT),
        jump(IS, ARCHITECTURE, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, NUMBER_AT),
        jump(IS_AT_LEAST, X32, 0, 1),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for (number, action) in rules {
        let number = u32::try_from(*number).expect("the numbers of calls are small");
        let steps = steps(*action);
        program.push(jump(IS, number, 0, steps.len() as u8));
        program.extend(steps);
    }
    program.push(step(RETURN, REFUSED));
    program
}

fn steps(action: Action) -> Vec<libc::sock_filter> {
    match action {
        Action::Allow => vec![step(RETURN, libc::SECCOMP_RET_ALLOW)],
        Action::Unknown => vec![step(RETURN, UNKNOWN)],
        Action::Kill => vec![step(RETURN, libc::SECCOMP_RET_KILL_PROCESS)],
        Action::AllowIf { argument, mask, value } => vec![
            // The lower half: both architectures are little-endian.
            step(LOAD, ARGUMENTS_AT + 8 * argument),
            step(AND, mask),
            jump(IS, value, 0, 1),
            step(RETURN, libc::SECCOMP_RET_ALLOW),
            step(LOAD, NUMBER_AT),
        ],
    }
}

fn step(code: u16, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would make of a call: the few instructions that are used here, carried out.
    fn outcome(rules: &[Rule], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend_from_slice(&number.to_ne_bytes());
        data.extend_from_slice(&architecture.to_ne_bytes());
        data.extend_from_slice(&0_u64.to_ne_bytes());
        arguments.iter().for_each(|argument| data.extend_from_slice(&argument.to_ne_bytes()));
        let (program, mut at, mut held) = (program(rules), 0, 0_u32);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let mut go = |is: bool| at += usize::from(if is { jt } else { jf });
            match code {
                LOAD => {
                    let word = data[k as usize..][..4].first_chunk().expect("four bytes");
                    held = u32::from_ne_bytes(*word);
                }
                AND => held &= k,
                IS => go(held == k),
                IS_AT_LEAST => go(held >= k),
                RETURN => return k,
                _ => panic!("an instruction that is not used here"),
            }
        }
    }

    const RULES: [Rule; 5] = [
        (1, Action::Allow),
        (9, Action::AllowIf { argument: 2, mask: 4, value: 0 }),
        (9, Action::AllowIf { argument: 2, mask: 6, value: 6 }),
        (59, Action::Kill),
        (435, Action::Unknown),
    ];

    #[test]
    fn each_call_gets_its_own_rules_answer_and_others_are_refused() {
        let of = |number| outcome(&RULES, ARCHITECTURE, number, [0; 6]);
        assert_eq!(of(1), libc::SECCOMP_RET_ALLOW);
        assert_eq!(of(59), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(of(435), UNKNOWN);
        for number in [0, 2, 8, 10, 58, 60, 436, 0x3fff_ffff] {
            assert_eq!(of(number), REFUSED, "{number}");
        }
    }

    #[test]
    fn an_argument_is_looked_at_where_a_rule_says_so() {
        let of = |bits| outcome(&RULES, ARCHITECTURE, 9, [4, 4, bits, 4, 4, 4]);
        assert_eq!([of(0), of(3), of(1 << 40)], [libc::SECCOMP_RET_ALLOW; 3]);
        assert_eq!([of(4), of(5), of(0xffff_fffd)], [REFUSED; 3]);
        assert_eq!([of(6), of(7)], [libc::SECCOMP_RET_ALLOW; 2], "a second rule of the same call");
    }

    #[test]
    fn calls_of_other_architectures_end_the_process() {
        for architecture in [0x4000_0003, 0xc000_003e, 0xc000_00b7] {
            let expected = if architecture == ARCHITECTURE {
                libc::SECCOMP_RET_ALLOW
            } else {
                libc::SECCOMP_RET_KILL_PROCESS
            };
            assert_eq!(outcome(&RULES, architecture, 1, [0; 6]), expected);
        }
        assert_eq!(outcome(&RULES, ARCHITECTURE, X32 | 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
    }
}
