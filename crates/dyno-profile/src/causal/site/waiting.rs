//! Loops in which a thread waits for another one, told by what they do: they look at memory that does not move, store nothing
//! but by an atomic, and work out nothing from one turn to the next.
//!
//! A profile's sites are weighed by them, and the probe is told them: whoever is sampled there owes nothing. So what does any
//! work must not be taken for one. x86-64 only; elsewhere there are none.

use std::ops::Range;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::entry::{decoded, jump};

/// Instructions of a loop that only waits: an atomic, a compare, a pause and a jump, with some room.
const WAITING_MAX: usize = 14;
/// And of one that says so itself, by a `pause`: a runtime's loop looks at its clock and its settings as well.
const PAUSING_MAX: usize = 100;
/// And of a function that does nothing but pause, or give its turn away, which loops elsewhere call.
const PAUSING_FUNCTION_MAX: usize = 8;
/// Registers that a called function leaves as it likes.
const LEFT_BY_CALLS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
/// The number of sched_yield(2).
const SCHED_YIELD: u32 = 24;

/// The loops of a function that only wait, as it lies at `at`; all of it, where it does nothing but pause or give its turn away.
pub(super) fn waiting_loops(code: &[u8], at: u64) -> Vec<Range<u64>> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let all = decoded(code, at);
    let mut loops = loops(&all);
    if loops.is_empty() && (only_pauses(&all) || gives_way(&all)) {
        return std::iter::once(at..at + code.len() as u64).collect();
    }
    // The innermost first: one that holds another one which works does so too.
    loops.sort_by_key(|one| one.end - one.start);
    let (mut waiting, mut working): (Vec<Range<u64>>, Vec<Range<u64>>) = Default::default();
    for one in loops {
        let holds = |inner: &Range<u64>| one.start < inner.start && inner.end <= one.end;
        let first = all.partition_point(|other| other.ip() < one.start);
        let last = all.partition_point(|other| other.ip() < one.end);
        let is_waiting = !working.iter().any(holds) && waits(&all[first..last]);
        if is_waiting { waiting.push(one) } else { working.push(one) }
    }
    waiting
}

/// From where a jump leads back to, to behind that jump.
fn loops(all: &[Instruction]) -> Vec<Range<u64>> {
    let back = |one: &Instruction| {
        let target = jump(one).filter(|to| *to <= one.ip())?;
        all.binary_search_by_key(&target, Instruction::ip).ok()?;
        Some(target..one.next_ip())
    };
    all.iter().filter_map(back).collect()
}

fn waits(body: &[Instruction]) -> bool {
    let says_so = body.iter().any(|one| one.mnemonic() == Mnemonic::Pause);
    says_so && body.len() <= PAUSING_MAX && !works_beside(body)
        || body.len() <= WAITING_MAX && only_waits(body)
}

/// Whether some way round a loop leaves its `pause` out and works: there it deals with what has come.
fn works_beside(body: &[Instruction]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let written = written(body, &mut factory);
    let mut fresh: Vec<Register> = Vec::new();
    for at in round_without_pause(body) {
        let one = &body[at];
        if matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            fresh.extend(LEFT_BY_CALLS);
            continue;
        }
        let info = factory.info(one);
        let is_own = |register: Register| matches!(register, Register::RSP | Register::RBP);
        let stores =
            info.used_memory().iter().any(|memory| !is_own(memory.base()) && !reads_only(memory.access()));
        if stores && !is_atomic(one) {
            return true;
        }
        let reads = info.used_registers().iter().filter(|used| used.access() != OpAccess::Write);
        let mut reads = reads.map(|used| used.register().full_register());
        let carries = reads.any(|register| written.contains(&register) && !fresh.contains(&register));
        let is_neutral =
            clears(one) || compares(one) || counts(one) || is_atomic(one) || one.mnemonic() == Mnemonic::Mov;
        if carries && !is_neutral && one.flow_control() == FlowControl::Next {
            return true;
        }
        let writes = info.used_registers().iter().filter(|used| !reads_only(used.access()));
        fresh.extend(writes.map(|used| used.register().full_register()));
    }
    false
}

/// The instructions on ways from a loop's first one back to it that meet no `pause`, in their order.
fn round_without_pause(body: &[Instruction]) -> Vec<usize> {
    let place = |ip: u64| body.binary_search_by_key(&ip, Instruction::ip).ok();
    let follow = |at: usize| {
        let one = &body[at];
        let falls = !matches!(
            one.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        );
        let next = falls.then_some(at + 1).filter(|next| *next < body.len());
        [next, jump(one).and_then(place)].into_iter().flatten()
    };
    let is_pause = |at: usize| body[at].mnemonic() == Mnemonic::Pause;
    let mut met = vec![false; body.len()];
    let mut open: Vec<usize> = (0..body.len().min(1)).collect();
    while let Some(at) = open.pop() {
        if !is_pause(at) && !std::mem::replace(&mut met[at], true) {
            open.extend(follow(at));
        }
    }
    let mut returns = vec![false; body.len()];
    let mut is_new = true;
    while is_new {
        is_new = false;
        for at in (0..body.len()).rev() {
            let comes_back = || follow(at).any(|next| next == 0 || returns[next]);
            if met[at] && !returns[at] && comes_back() {
                (returns[at], is_new) = (true, true);
            }
        }
    }
    (0..body.len()).filter(|at| returns[*at]).collect()
}

/// A `pause` among a few instructions that end by returning.
fn only_pauses(all: &[Instruction]) -> bool {
    let end = all.iter().position(|one| one.flow_control() != FlowControl::Next);
    end.is_some_and(|end| {
        end < PAUSING_FUNCTION_MAX
            && all[end].flow_control() == FlowControl::Return
            && all[..end].iter().any(|one| one.mnemonic() == Mnemonic::Pause)
    })
}

/// A system call that lets others run.
fn gives_way(all: &[Instruction]) -> bool {
    let call = all.iter().take(PAUSING_FUNCTION_MAX).position(|one| one.mnemonic() == Mnemonic::Syscall);
    let sets = |one: &&Instruction| {
        one.mnemonic() == Mnemonic::Mov
            && one.op0_kind() == OpKind::Register
            && one.op0_register().full_register() == Register::RAX
    };
    let number = call.and_then(|call| all[..call].iter().rev().find(sets));
    number.is_some_and(|one| one.op1_kind() == OpKind::Immediate32 && one.immediate32() == SCHED_YIELD)
}

fn reads_only(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess | OpAccess::None)
}

/// Steps a counter by a fixed amount.
fn counts(one: &Instruction) -> bool {
    let by = matches!(one.mnemonic(), Mnemonic::Add | Mnemonic::Sub) && is_number(one.op1_kind());
    one.op0_kind() == OpKind::Register && (by || matches!(one.mnemonic(), Mnemonic::Inc | Mnemonic::Dec))
}

fn is_number(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8 | OpKind::Immediate8to32 | OpKind::Immediate8to64 | OpKind::Immediate32to64
    ) || matches!(kind, OpKind::Immediate8to16 | OpKind::Immediate16 | OpKind::Immediate32)
}

/// Sets a register, or the flags, to what does not depend on what stood there.
fn clears(one: &Instruction) -> bool {
    matches!(one.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
        && one.op1_kind() == OpKind::Register
        && one.op0_register() == one.op1_register()
}

fn compares(one: &Instruction) -> bool {
    matches!(one.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt)
}

fn is_atomic(one: &Instruction) -> bool {
    one.has_lock_prefix() || one.mnemonic() == Mnemonic::Xchg && one.op0_kind() == OpKind::Memory
}

/// Whether a short loop without a `pause` does nothing but look whether something has come.
fn only_waits(body: &[Instruction]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let written = written(body, &mut factory);
    // Registers that hold what was read, or set, in this turn.
    let mut fresh: Vec<Register> = Vec::new();
    let mut loaded: Vec<Register> = Vec::new();
    let (mut looks, mut steps, mut ends_by_itself) = (false, false, false);
    for one in body {
        let goes_on = [FlowControl::Next, FlowControl::ConditionalBranch, FlowControl::UnconditionalBranch];
        if !goes_on.contains(&one.flow_control()) {
            return false;
        }
        let info = factory.info(one);
        for memory in info.used_memory() {
            // What is walked over is not waited for, and what is stored is work.
            let moves = [memory.base(), memory.index()]
                .into_iter()
                .any(|register| register != Register::None && written.contains(&register.full_register()));
            if moves || !reads_only(memory.access()) && !is_atomic(one) {
                return false;
            }
        }
        let own = |register: Register| matches!(register, Register::RSP | Register::RBP);
        let looks_outside = info.used_memory().iter().any(|memory| !own(memory.base()));
        let reads = info.used_registers().iter().filter(|used| used.access() != OpAccess::Write);
        let reads: Vec<Register> = reads.map(|used| used.register().full_register()).collect();
        let is_carried = |register: &Register| written.contains(register) && !fresh.contains(register);
        let carries = !clears(one) && reads.iter().any(is_carried);
        if compares(one) {
            looks |= looks_outside || reads.iter().any(|register| fresh.contains(register));
            ends_by_itself |= carries;
        } else if counts(one) && carries {
            steps = true;
            ends_by_itself |= sets_flags_that_are_asked(body, one);
            continue;
        } else if is_atomic(one) {
            // An update that is tried again, of what was just read, is work; so is one whose outcome nobody asks for.
            let is_update = one.mnemonic() == Mnemonic::Cmpxchg && loaded.contains(&Register::RAX);
            looks |= !is_update && sets_flags_that_are_asked(body, one);
        } else if carries && one.flow_control() == FlowControl::Next {
            return false;
        }
        let writes = info.used_registers().iter().filter(|used| !reads_only(used.access()));
        fresh.extend(writes.map(|used| used.register().full_register()));
        if one.mnemonic() == Mnemonic::Mov && one.op1_kind() == OpKind::Memory {
            loaded.push(one.op0_register().full_register());
        }
    }
    looks && (!steps || ends_by_itself)
}

/// Whether a jump asks for the flags that a step of a counter leaves.
fn sets_flags_that_are_asked(body: &[Instruction], step: &Instruction) -> bool {
    let after = body.iter().find(|one| one.ip() == step.next_ip());
    after.is_some_and(|one| one.flow_control() == FlowControl::ConditionalBranch)
}

fn written(body: &[Instruction], factory: &mut InstructionInfoFactory) -> Vec<Register> {
    let mut all = Vec::new();
    for one in body {
        let used = factory.info(one).used_registers().iter().filter(|used| !reads_only(used.access()));
        all.extend(used.map(|used| used.register().full_register()));
    }
    all
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    fn found(code: &[u8]) -> Vec<Range<u64>> {
        waiting_loops(code, 0)
    }

    /// Planted faults: what moves is not asked (`moves` of no: a search is a wait); nor what is stored (`is_atomic` of all); what
    /// pauses is asked like the rest.
    #[test]
    fn a_loop_that_looks_at_one_place_waits_and_one_that_walks_or_counts_does_not() {
        // 0: mov (%rdi),%eax; 2: test %eax,%eax; 4: je 0
        assert_eq!(waiting_loops(&[0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa, 0xc3], 0x10), vec![0x10_u64..0x16]);
        // mov (%rdi),%rdi; test %rdi,%rdi; jne 0
        assert!(found(&[0x48, 0x8b, 0x3f, 0x48, 0x85, 0xff, 0x75, 0xf8]).is_empty());
        // mov (%rdi),%eax; dec %esi; jne 0
        assert!(found(&[0x8b, 0x07, 0xff, 0xce, 0x75, 0xfa]).is_empty());
        // inc %rcx; cmp %al,(%rdi,%rcx); jne 0: a byte is searched for
        assert!(found(&[0x48, 0xff, 0xc1, 0x38, 0x04, 0x0f, 0x75, 0xf8]).is_empty());
        // movl $1,(%rsi); mov (%rdi),%eax; test %eax,%eax; je 0: it tells somebody each time
        assert!(found(&[0xc7, 0x06, 1, 0, 0, 0, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf4]).is_empty());
        // pause; jmp 0
        assert_eq!(found(&[0xf3, 0x90, 0xeb, 0xfc]), vec![0_u64..4]);
        // xor %eax,%eax; lock cmpxchg %edx,(%rdi); jne 0
        assert_eq!(found(&[0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf8]), vec![0_u64..8]);
    }

    /// Planted fault: what is counted is never waited for.
    #[test]
    fn a_loop_that_looks_so_many_times_at_most_waits() {
        // mov (%rdi),%eax; test %eax,%eax; jne 0xa; dec %esi; jne 0; ret
        assert_eq!(
            found(&[0x8b, 0x07, 0x85, 0xc0, 0x75, 0x04, 0xff, 0xce, 0x75, 0xf6, 0xc3]),
            vec![0_u64..10]
        );
        // inc %esi; mov (%rdi),%eax; test %eax,%eax; je 0: it counts until it is stopped
        assert!(found(&[0xff, 0xc6, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf8]).is_empty());
    }

    /// Planted fault: whatever has a LOCK prefix looks (`looks` of any atomic).
    #[test]
    fn a_loop_that_updates_by_atomics_works() {
        // mov (%rdi),%eax; lea 1(%rax),%edx; lock cmpxchg %edx,(%rdi); jne 0
        assert!(found(&[0x8b, 0x07, 0x8d, 0x50, 0x01, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf5]).is_empty());
        // lock incl (%rdi); dec %ecx; jne 0
        assert!(found(&[0xf0, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xf9]).is_empty());
        // mov (%rdi),%eax; test %eax,%eax; jne 0; lock cmpxchg %edx,(%rdi); jne 0: a lock that is looked at first
        let lock = [0x8b, 0x07, 0x85, 0xc0, 0x75, 0xfa, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf4];
        assert_eq!(found(&lock), vec![0_u64..6, 0..12]);
    }

    /// Planted fault: arithmetic is not asked for (`carries` of none).
    #[test]
    fn a_loop_that_works_until_it_is_told_to_stop_does_not_wait() {
        // imul %rdx,%rsi; mov (%rdi),%eax; test %eax,%eax; je 0
        assert!(found(&[0x48, 0x0f, 0xaf, 0xf2, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf6]).is_empty());
        // mov (%rdi),%eax; and $1,%eax; test %eax,%eax; je 0: of what was read a bit is asked for
        assert_eq!(found(&[0x8b, 0x07, 0x83, 0xe0, 0x01, 0x85, 0xc0, 0x74, 0xf7]), vec![0_u64..9]);
    }

    /// Planted fault: loops within a loop are not looked at (`working` of none).
    #[test]
    fn a_loop_around_a_wait_and_work_is_work() {
        // 0: pause; 2: mov (%rdi),%eax; 4: test %eax,%eax; 6: jne 0; 8: imul %rdx,%rsi; c: dec %ecx; e: jne 8; 10: jmp 0
        let code = [
            0xf3, 0x90, 0x8b, 0x07, 0x85, 0xc0, 0x75, 0xf8, 0x48, 0x0f, 0xaf, 0xf2, 0xff, 0xc9, 0x75, 0xf8,
            0xeb, 0xee,
        ];
        assert_eq!(found(&code), vec![0_u64..8]);
    }

    /// Who takes what comes out of a ring. Planted fault: whatever has a `pause` in it waits (`works_beside` of no).
    #[test]
    fn a_loop_that_pauses_where_nothing_came_and_works_where_something_did_is_work() {
        // 0: mov (%rdi),%rax; 3: test %rax,%rax; 6: jne 0xc; 8: pause; a: jmp 0; c: imul $31,%rbx; 10: add %rax,%rbx; 13: jmp 0
        let ring = [
            0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x75, 0x04, 0xf3, 0x90, 0xeb, 0xf4, 0x48, 0x6b, 0xdb, 0x1f,
            0x48, 0x01, 0xc3, 0xeb, 0xeb,
        ];
        assert_eq!(found(&ring), vec![0_u64..12]);
        // The same with one way back, and what came stored: c: mov %rax,(%rsi); f: jmp 0xa
        let stored = [
            0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x75, 0x04, 0xf3, 0x90, 0xeb, 0xf4, 0x48, 0x89, 0x06, 0xeb,
            0xf9,
        ];
        assert!(found(&stored).iter().all(|one| one.end <= 12));
        // c: call 0x100; 11: jmp 0: it lets others run now and then
        let gives_way = [
            0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x75, 0x04, 0xf3, 0x90, 0xeb, 0xf4, 0xe8, 0xef, 0, 0, 0,
            0xeb, 0xed,
        ];
        assert_eq!(found(&gives_way), vec![0_u64..12, 0..19]);
    }

    /// As HotSpot's loops pause. Planted fault: where there is no loop nothing waits.
    #[test]
    fn a_function_that_only_pauses_waits() {
        // pause; mov $1,%eax; ret
        assert_eq!(found(&[0xf3, 0x90, 0xb8, 1, 0, 0, 0, 0xc3]), vec![0_u64..8]);
        // mov $1,%eax; ret
        assert!(found(&[0xb8, 1, 0, 0, 0, 0xc3]).is_empty());
        // endbr64; mov $24,%eax; syscall; ret: it lets others run; and with $39 it asks for its number
        let call = |number| [0xf3, 0x0f, 0x1e, 0xfa, 0xb8, number, 0, 0, 0, 0x0f, 0x05, 0xc3];
        assert_eq!(found(&call(24)), vec![0_u64..12]);
        assert!(found(&call(39)).is_empty());
    }
}
