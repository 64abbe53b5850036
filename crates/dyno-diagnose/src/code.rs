//! What the machine code at a hot instruction does: the loop it is in, decoded from the bytes that stood there.
//!
//! Without hardware counters this is what distinguishes waiting from work: a loop that only looks at one place until it changes,
//! one that strides over a table, one that goes from node to node, one that stores where another thread stores. x86-64
//! only; other machines' code gives no loop, and rules say that they did not look.

mod rows;
mod trial;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dyno_record::observation::{HotSpot, Registers};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

use super::ahead::{Ahead, GENERAL, order};

/// Instructions that are followed from a hot one: a loop longer than this is no tight loop.
const FOLLOWED_MAX: usize = 512;
/// Instructions of a loop that only waits: an atomic, a compare, a pause and a jump, with some room.
const WAITING_MAX: usize = 14;

/// The shortest way from a hot instruction back to itself.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) instructions: Vec<Instruction>,
    accesses: Vec<Access>,
    /// The registers that each instruction writes.
    written: Vec<Vec<Register>>,
    /// Whether a value goes on from turn to turn.
    carries: bool,
    /// Registers that nothing in the loop writes and that held the same value nearly each time it was seen.
    constants: Vec<(Register, i64)>,
}

/// One place in memory that the loop reads or writes each time round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    /// The place of its instruction in the loop.
    at: usize,
    base: Register,
    index: Register,
    scale: u32,
    displacement: u64,
    bytes: u64,
    reads: bool,
    writes: bool,
    /// On the stack or in the thread's own storage: no other thread uses it.
    own: bool,
    /// What it does when the loop is tried out, where that can be.
    tried: Option<Tried>,
}

/// Where an access goes when its loop is tried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tried {
    /// By how many bytes it is further in each turn.
    bytes: i64,
    /// Where it lies in one turn, beside the other accesses of the same loop.
    place: u64,
}

/// How the places that a loop reads follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    /// The same place each time.
    Still,
    /// So many bytes further each time.
    Stride(u64),
    /// The next place stands in the last one.
    Chase,
    /// Computed anew each time.
    Scattered,
}

/// Of what was seen, of a thread's address or of a register, what must be the same for it to stay so; and how often it was seen.
const UNMOVED_MIN: f64 = 0.9;
const UNMOVED_SEEN_MIN: usize = 8;

/// No process has memory from here on (x86-64, pages of four levels).
const USER_END: u64 = 1 << 47;

/// What a register holds that is further than this is no step.
const STEP_BYTES_MAX: u64 = 1 << 30;

/// Registers that nothing in a loop writes, with what they nearly always held: the length of a row, say.
fn constants(written: &[Vec<Register>], seen: &[Registers]) -> Vec<(Register, i64)> {
    let held = |at: usize| {
        let mut values = BTreeMap::<u64, usize>::new();
        seen.iter().for_each(|one| *values.entry(one.values[at]).or_default() += 1);
        values.into_iter().max_by_key(|(_, times)| *times)
    };
    let is_written = |register: &Register| written.iter().any(|written| written.contains(register));
    let kept = GENERAL.iter().enumerate().filter(|(_, register)| !is_written(register));
    kept.filter_map(|(at, register)| {
        let (value, times) = held(at)?;
        let stays = times >= UNMOVED_SEEN_MIN && times as f64 >= UNMOVED_MIN * seen.len() as f64;
        let value = value.cast_signed();
        (stays && value.unsigned_abs() <= STEP_BYTES_MAX).then_some((*register, value))
    })
    .collect()
}

/// Of each thread the address that it was nearly always seen with, if there is one.
fn unmoved(found: Vec<(&Registers, u64)>) -> Vec<(&Registers, u64)> {
    let mut of_threads = BTreeMap::<u32, BTreeMap<u64, usize>>::new();
    for (by, address) in &found {
        *of_threads.entry(by.tid).or_default().entry(*address).or_default() += 1;
    }
    let stays = |by: &Registers, address: u64| {
        let seen = &of_threads[&by.tid];
        let (all, here) = (seen.values().sum::<usize>(), seen[&address]);
        all >= UNMOVED_SEEN_MIN && here as f64 >= UNMOVED_MIN * all as f64
    };
    found.into_iter().filter(|(by, address)| stays(by, *address)).collect()
}

impl Loop {
    /// The loop around a hot instruction, if its bytes were seen and they lead back to it.
    pub(super) fn around(spot: &HotSpot) -> Option<Loop> {
        let bytes = bytes(&spot.code)?;
        let all = reachable(&bytes, spot.code_at, spot.address)?;
        let way = way_back(&all, spot.address)?;
        let mut info = InstructionInfoFactory::new();
        let accesses = way.iter().enumerate().flat_map(|(at, one)| accesses(&mut info, at, one)).collect();
        let written: Vec<_> = way.iter().map(|instruction| written(&mut info, instruction)).collect();
        let carries = carries(&mut info, &way);
        let constants = constants(&written, &spot.seen);
        let mut all = Loop { instructions: way, accesses, written, carries, constants };
        all.try_out(&spot.seen);
        Some(all)
    }

    /// Where it begins.
    #[cfg(test)]
    fn start(&self) -> u64 {
        self.instructions.iter().map(Instruction::ip).min().unwrap_or(0)
    }

    /// Whether it only looks at memory until another thread changes it: short, without a call, nothing counted, nothing
    /// stored but by an atomic, and what it looks at does not move.
    pub(super) fn only_waits(&self) -> bool {
        let short = self.instructions.len() <= WAITING_MAX;
        let alone = !self.instructions.iter().any(is_call_or_system_call);
        let looks = self.accesses.iter().any(|access| access.reads && !access.own);
        let stores = self.accesses.iter().any(|access| access.writes && !access.reads && !access.own);
        let still = self.accesses.iter().all(|access| self.is_still(access));
        // A loop that counts, or makes a value of its last one, is work or ends by itself; retries of an adaptive lock have
        // `pause` in them.
        let works = !self.pauses() && self.carries;
        short && alone && looks && !stores && still && !works && !self.adds()
    }

    /// Whether it is a hint to the CPU that the thread waits.
    pub(super) fn pauses(&self) -> bool {
        self.instructions.iter().any(|instruction| instruction.mnemonic() == Mnemonic::Pause)
    }

    /// Whether it uses an atomic.
    pub(super) fn is_atomic(&self) -> bool {
        self.instructions.iter().any(is_atomic)
    }

    /// An atomic addition always succeeds: its loop works.
    fn adds(&self) -> bool {
        let adds = [Mnemonic::Xadd, Mnemonic::Add, Mnemonic::Inc, Mnemonic::Sub, Mnemonic::Dec];
        self.instructions.iter().any(|one| is_atomic(one) && adds.contains(&one.mnemonic()))
    }

    /// How the reads follow each other; the most telling of all reads, those of the stack left out.
    pub(super) fn walk(&self) -> Walk {
        let reads = self.accesses.iter().filter(|access| access.reads && !access.own);
        let walks: Vec<Walk> = reads.map(|access| self.walk_of(access)).collect();
        let longest = walks.iter().filter_map(|walk| match walk {
            Walk::Stride(bytes) => Some(*bytes),
            _ => None,
        });
        if walks.contains(&Walk::Chase) {
            Walk::Chase
        } else if walks.contains(&Walk::Scattered) {
            Walk::Scattered
        } else {
            longest.max().map_or(Walk::Still, Walk::Stride)
        }
    }

    fn walk_of(&self, access: &Access) -> Walk {
        if self.is_still(access) {
            return Walk::Still;
        }
        if self.leads_to_itself(access.base) {
            return Walk::Chase;
        }
        match self.stepped(access).or_else(|| access.tried.map(|tried| tried.bytes)) {
            Some(bytes) => Walk::Stride(bytes.unsigned_abs()),
            None => Walk::Scattered,
        }
    }

    /// By how many bytes an access goes on each time round where its registers step.
    fn stepped(&self, access: &Access) -> Option<i64> {
        let step = |register: Register| {
            if register == Register::None || !self.is_written(register) {
                Some(0)
            } else {
                self.step(register).or_else(|| self.step_of_copied(access.at, register))
            }
        };
        Some(step(access.base)? + step(access.index)? * i64::from(access.scale))
    }

    /// By how many bytes it goes on each time round, where that leaves out whole lines of memory between what it reads.
    pub(super) fn skips(&self, line_bytes: u64) -> Option<u64> {
        let Walk::Stride(_) = self.walk() else { return None };
        let moving = || self.accesses.iter().filter(|access| access.reads && !access.own);
        let stride = |access: &Access| match self.walk_of(access) {
            Walk::Stride(bytes) => Some(bytes),
            _ => None,
        };
        let skipped = |access: &Access| {
            let stride = stride(access)?;
            let place = |one: &Access| {
                let [base, index] = [one.base, one.index].map(|register| self.origin(one.at, register));
                (base, index, one.scale)
            };
            let beside = moving().filter(|other| place(other) == place(access));
            let lines = beside.flat_map(|other| {
                let (at, line) = (other.displacement.cast_signed(), line_bytes.cast_signed());
                let last = at.wrapping_add(other.bytes.max(1).cast_signed() - 1);
                at.div_euclid(line)..=last.div_euclid(line)
            });
            let lines = match self.stepped(access) {
                Some(_) => lines.collect::<BTreeSet<i64>>().len() as u64,
                None => self.lines_tried(access, line_bytes)?,
            };
            (stride > line_bytes * lines).then_some(stride)
        };
        moving().filter_map(skipped).max()
    }

    fn is_written(&self, register: Register) -> bool {
        self.written.iter().any(|written| written.contains(&register))
    }

    fn is_still(&self, access: &Access) -> bool {
        [access.base, access.index].iter().all(|register| !self.is_written(*register))
    }

    /// By how much a register grows each time round, when nothing else writes it.
    fn step(&self, register: Register) -> Option<i64> {
        let mut step = None;
        for (instruction, _) in
            self.instructions.iter().zip(&self.written).filter(|(_, written)| written.contains(&register))
        {
            let by = constant_step(instruction, register, &self.constants)?;
            step = Some(step.unwrap_or(0) + by);
        }
        step.filter(|by| *by != 0)
    }

    /// The same of what was copied into a register before the instruction at `at`.
    fn step_of_copied(&self, at: usize, register: Register) -> Option<i64> {
        self.copied(at, register).and_then(|of| self.step(of))
    }

    /// What stepped and was copied into a register before the instruction at `at`, or the register itself: of a loop that is unrolled the
    /// first part may use the one, and the others the other.
    fn origin(&self, at: usize, register: Register) -> Register {
        match self.step(register) {
            Some(_) => register,
            None => self.copied(at, register).unwrap_or(register),
        }
    }

    /// The register that was copied into another one: a counter of 32 bits as one of 64, say.
    fn copied(&self, at: usize, register: Register) -> Option<Register> {
        let copy = &self.instructions[self.writer_before(at, register)?];
        let is_copy = matches!(copy.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd)
            && copy.op0_kind() == OpKind::Register
            && copy.op1_kind() == OpKind::Register;
        is_copy.then(|| copy.op1_register().full_register())
    }

    /// Whether the register's next value is read from memory at its last one, by moves alone: what its value was made of
    /// is followed backwards, round the loop, until it comes from itself.
    fn leads_to_itself(&self, register: Register) -> bool {
        let uses = |instruction: &Instruction| instruction.memory_base().full_register() == register;
        let mut using = (0..self.instructions.len()).filter(|at| uses(&self.instructions[*at]));
        using.any(|at| {
            let Some(first) = self.writer_before(at, register) else { return false };
            self.comes_from(first, first, false, &mut BTreeSet::new())
        })
    }

    /// Whether what an instruction writes was made of what `origin` wrote a turn before, with a load on the way.
    fn comes_from(
        &self,
        at: usize,
        origin: usize,
        loaded_before: bool,
        seen: &mut BTreeSet<(usize, bool)>,
    ) -> bool {
        if !seen.insert((at, loaded_before)) {
            return false;
        }
        let (source, loaded) = match moved(&self.instructions[at]) {
            Some(Moved::Register(source)) => (source, loaded_before),
            Some(Moved::Memory(base)) => (base, true),
            None => return false,
        };
        // A conditional move may leave what was there.
        let kept = is_conditional_move(&self.instructions[at])
            .then(|| self.instructions[at].op0_register().full_register());
        let follows = |source: Register, loaded: bool, seen: &mut BTreeSet<(usize, bool)>| {
            let Some(before) = self.writer_before(at, source) else { return false };
            before == origin && loaded || self.comes_from(before, origin, loaded, seen)
        };
        follows(source, loaded, seen) || kept.is_some_and(|kept| follows(kept, loaded_before, seen))
    }

    /// The last instruction before this one, round the loop, that writes a register; itself if it is the only one.
    fn writer_before(&self, at: usize, register: Register) -> Option<usize> {
        let count = self.instructions.len();
        (1..=count)
            .map(|back| (at + count - back) % count)
            .find(|before| self.written[*before].contains(&register))
    }

    /// Addresses that it stores to, by thread: only those that stay where they are while it goes round. That they do shows
    /// in the code; or, where the address is loaded anew each time, in what was seen of each thread.
    pub(super) fn stores<'s>(&self, seen: &'s [Registers]) -> Vec<(&'s Registers, u64)> {
        self.stores_by_place(seen).into_iter().map(|(by, address, _)| (by, address)).collect()
    }

    /// The same with where the instruction stands that stores.
    pub(super) fn stores_by_place<'s>(&self, seen: &'s [Registers]) -> Vec<(&'s Registers, u64, u64)> {
        let stores = self.accesses.iter().filter(|access| access.writes && !access.own);
        let of = |access: &Access| {
            let found = seen.iter().filter_map(|one| Some((one, address(access, one)?))).collect::<Vec<_>>();
            let found = match () {
                () if self.is_still(access) => found,
                () if self.is_known(access) => unmoved(found),
                () => Vec::new(),
            };
            let place = self.instructions[access.at].ip();
            found.into_iter().map(move |(by, address)| (by, address, place))
        };
        stores.flat_map(of).collect()
    }

    /// Where the instructions stand that store to places which are not to be computed from the registers at the hot one.
    pub(super) fn unknown_stores(&self) -> impl Iterator<Item = u64> {
        let stores = self.accesses.iter().filter(|access| access.writes && !access.own);
        let unknown = stores.filter(|access| !self.is_still(access) && !self.is_known(access));
        unknown.map(|access| self.instructions[access.at].ip())
    }

    /// Whether the registers of an access hold at the hot instruction, where the loop begins here, what they held or will
    /// hold at the access: nothing writes them on one of the two ways.
    fn is_known(&self, access: &Access) -> bool {
        [access.base, access.index].iter().all(|register| {
            let writes = |written: &Vec<Register>| written.contains(register);
            let (before, after) = self.written.split_at(access.at);
            !before.iter().any(writes) || !after.iter().any(writes)
        })
    }

    /// Addresses that it reads, one for each time it was seen, where the place moves.
    #[cfg(test)]
    fn reads(&self, seen: &[Registers]) -> Vec<u64> {
        self.addresses_read(seen, |access| !self.is_still(access))
    }

    /// The same of the reads of one instruction.
    pub(super) fn reads_at(&self, seen: &[Registers], place: u64) -> Vec<u64> {
        let is_there = |access: &Access| self.instructions[access.at].ip() == place;
        self.addresses_read(seen, |access| !self.is_still(access) && is_there(access))
    }

    /// Where the instructions stand that read from places which move.
    pub(super) fn places_read(&self) -> BTreeSet<u64> {
        self.places(|walk| walk != Walk::Still)
    }

    /// Where those stand of which each read is somewhere else.
    pub(super) fn places_jumped(&self) -> BTreeSet<u64> {
        self.places(|walk| matches!(walk, Walk::Scattered | Walk::Chase))
    }

    fn places(&self, wanted: impl Fn(Walk) -> bool) -> BTreeSet<u64> {
        let reads = self.accesses.iter().filter(|access| access.reads && !access.own);
        let wanted = reads.filter(|access| wanted(self.walk_of(access)));
        wanted.map(|access| self.instructions[access.at].ip()).collect()
    }

    fn addresses_read(&self, seen: &[Registers], wanted: impl Fn(&Access) -> bool) -> Vec<u64> {
        let reads = self.accesses.iter().filter(|access| access.reads && !access.own && wanted(access));
        reads.flat_map(|access| seen.iter().filter_map(|one| self.address_read(access, one))).collect()
    }

    /// Where an access went to in the turn in which it was sampled, if its registers are still what they were then; or else
    /// where it goes to in the next one, if that can be computed. A load may have overwritten the register that its address was
    /// made of: what it brought is no address.
    fn address_read(&self, access: &Access, seen: &Registers) -> Option<u64> {
        let since = &self.written[access.at..];
        let is_kept = |register: &Register| !since.iter().any(|written| written.contains(register));
        let found = if [access.base, access.index].iter().all(is_kept) {
            address(access, seen)
        } else {
            let mut ahead = Ahead::of(seen);
            for (instruction, written) in self.instructions.iter().zip(&self.written).take(access.at) {
                ahead.pass(instruction, written);
            }
            address_with(access, |register| ahead.value(register))
        };
        found.filter(|address| *address < USER_END)
    }

    /// Whether it moves bytes and does nothing with them: loads and stores of vectors or words, and steps.
    pub(super) fn only_copies(&self) -> bool {
        let reads =
            self.accesses.iter().any(|access| access.reads && !access.writes && !self.is_still(access));
        let writes =
            self.accesses.iter().any(|access| access.writes && !access.reads && !self.is_still(access));
        let string = self.instructions.iter().any(|one| one.is_string_instruction() && one.has_rep_prefix());
        string || reads && writes && self.instructions.iter().all(is_move_or_step)
    }
}

/// The addresses that an atomic at a hot instruction worked on, by who was sampled there. A sample is mostly taken behind an
/// atomic, which is what took the time.
pub(super) fn at_atomic(spot: &HotSpot) -> Vec<(&Registers, u64)> {
    let Some(bytes) = bytes(&spot.code) else { return Vec::new() };
    let before = || before(&bytes, spot.code_at, spot.address);
    let here = decoded(&bytes, spot.code_at, spot.address).filter(is_atomic);
    let mut info = InstructionInfoFactory::new();
    let Some(atomic) = here.or_else(|| before().filter(is_atomic)) else { return Vec::new() };
    let written = if atomic.ip() == spot.address { Vec::new() } else { written(&mut info, &atomic) };
    let is_kept =
        |access: &Access| ![access.base, access.index].iter().any(|register| written.contains(register));
    let accesses = accesses(&mut info, 0, &atomic);
    let of = accesses.iter().find(|access| access.writes && !access.own && is_kept(access));
    of.map_or_else(Vec::new, |of| spot.seen.iter().filter_map(|one| Some((one, address(of, one)?))).collect())
}

/// Bytes in which decoding that began within an instruction has found the next one's beginning.
const SETTLED_BYTES: u64 = 64;

/// The instruction before the one at `address`.
fn before(bytes: &[u8], at: u64, address: u64) -> Option<Instruction> {
    let first = address.saturating_sub(SETTLED_BYTES).max(at);
    (first..address).find_map(|start| {
        let (mut next, mut last) = (start, None);
        while next < address {
            last = decoded(bytes, at, next);
            next = last.map_or(next + 1, |one| one.next_ip());
        }
        last.filter(|_| next == address)
    })
}

fn is_conditional_move(instruction: &Instruction) -> bool {
    format!("{:?}", instruction.mnemonic()).starts_with("Cmov")
}

/// Where a moved value came from.
enum Moved {
    Register(Register),
    Memory(Register),
}

/// What a plain or conditional move, or an addition of a constant, takes into its target.
fn moved(instruction: &Instruction) -> Option<Moved> {
    let is_move = instruction.mnemonic() == Mnemonic::Mov || is_conditional_move(instruction);
    let plain = is_move && instruction.op0_kind() == OpKind::Register;
    match (plain, instruction.op1_kind()) {
        (true, OpKind::Register) => Some(Moved::Register(instruction.op1_register().full_register())),
        // A 64-bit pointer is loaded whole; the index, if any, only says which child.
        (true, OpKind::Memory) if instruction.op0_register().size() == 8 => {
            Some(Moved::Memory(instruction.memory_base().full_register()))
        }
        _ if instruction.mnemonic() == Mnemonic::Lea && instruction.memory_index() == Register::None => {
            Some(Moved::Register(instruction.memory_base().full_register()))
        }
        _ => None,
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// All instructions that can follow `from`, by address.
fn reachable(bytes: &[u8], at: u64, from: u64) -> Option<BTreeMap<u64, Instruction>> {
    let mut found = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(address) = next.pop_front().filter(|_| found.len() < FOLLOWED_MAX) {
        if found.contains_key(&address) {
            continue;
        }
        let Some(instruction) = decoded(bytes, at, address) else { continue };
        next.extend(successors(&instruction));
        found.insert(address, instruction);
    }
    (!found.is_empty()).then_some(found)
}

fn decoded(bytes: &[u8], at: u64, address: u64) -> Option<Instruction> {
    let offset = usize::try_from(address.checked_sub(at)?).ok()?;
    let code = bytes.get(offset..)?;
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = if decoder.can_decode() { decoder.decode() } else { return None };
    (instruction.code() != Code::INVALID).then_some(instruction)
}

fn successors(instruction: &Instruction) -> Vec<u64> {
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => vec![instruction.next_ip()],
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
            vec![instruction.next_ip(), instruction.near_branch_target()]
        }
        FlowControl::UnconditionalBranch => vec![instruction.near_branch_target()],
        _ => Vec::new(),
    }
}

/// The instructions of the shortest way from `start` back to it, itself included.
fn way_back(all: &BTreeMap<u64, Instruction>, start: u64) -> Option<Vec<Instruction>> {
    let mut came_from = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for successor in all.get(&at).map(successors).unwrap_or_default() {
            if successor == start {
                return Some(trail(all, &came_from, at, start));
            }
            if all.contains_key(&successor) && !came_from.contains_key(&successor) {
                came_from.insert(successor, at);
                next.push_back(successor);
            }
        }
    }
    // `rep movsb` goes round by itself.
    let alone = all.get(&start).filter(|one| one.is_string_instruction() && one.has_rep_prefix());
    alone.map(|one| vec![*one])
}

fn trail(
    all: &BTreeMap<u64, Instruction>,
    came_from: &BTreeMap<u64, u64>,
    end: u64,
    start: u64,
) -> Vec<Instruction> {
    let mut trail = vec![end];
    let mut at = end;
    while at != start {
        at = came_from[&at];
        trail.push(at);
    }
    trail.iter().rev().map(|address| all[address]).collect()
}

fn accesses(info: &mut InstructionInfoFactory, at: usize, instruction: &Instruction) -> Vec<Access> {
    // A call's push and an address that is only computed are no access of interest.
    if is_call_or_system_call(instruction) || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
    {
        return Vec::new();
    }
    let access = |used: &iced_x86::UsedMemory| Access {
        at,
        base: used.base().full_register(),
        index: used.index().full_register(),
        scale: used.scale(),
        displacement: used.displacement(),
        bytes: used.memory_size().size() as u64,
        reads: matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        ),
        writes: matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        ),
        own: used.base() == Register::RSP || matches!(used.segment(), Register::FS | Register::GS),
        tried: None,
    };
    info.info(instruction).used_memory().iter().map(access).collect()
}

fn written(info: &mut InstructionInfoFactory, instruction: &Instruction) -> Vec<Register> {
    let writes = |access: OpAccess| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let used = info.info(instruction).used_registers();
    let general = used.iter().filter(|one| writes(one.access()) && one.register().is_gpr());
    general.map(|one| one.register().full_register()).collect()
}

/// Whether some value is made of what it was a turn before, in whatever registers it lies meanwhile. What an atomic brings
/// is news from memory.
fn carries(info: &mut InstructionInfoFactory, way: &[Instruction]) -> bool {
    let flows: Vec<Flow> = way.iter().map(|instruction| Flow::of(info, instruction)).collect();
    (0..flows.len()).any(|at| comes_from(&flows, at, at, &mut BTreeSet::new()))
}

/// The registers that an instruction takes values from, and those that it gives values to; the stack's is in neither.
#[derive(Default)]
struct Flow {
    from: Vec<Register>,
    to: Vec<Register>,
}

impl Flow {
    fn of(info: &mut InstructionInfoFactory, instruction: &Instruction) -> Flow {
        if is_atomic(instruction) {
            return Flow { from: Vec::new(), to: written(info, instruction) };
        }
        let mut flow = Flow::default();
        for one in info.info(instruction).used_registers() {
            let register = one.register().full_register();
            let holds = register.is_gpr() || register.is_vector_register();
            if !holds || register == Register::RSP {
                continue;
            }
            let access = one.access();
            let only_reads = matches!(access, OpAccess::Read | OpAccess::CondRead);
            let only_writes = matches!(access, OpAccess::Write | OpAccess::CondWrite);
            flow.from.extend((!only_writes).then_some(register));
            flow.to.extend((!only_reads).then_some(register));
        }
        flow
    }
}

/// Whether the value made at `at` was made of the one at `origin`, of this turn or the last.
fn comes_from(flows: &[Flow], at: usize, origin: usize, seen: &mut BTreeSet<usize>) -> bool {
    let count = flows.len();
    flows[at].from.iter().any(|register| {
        let mut before = (1..=count).map(|back| (at + count - back) % count);
        let Some(maker) = before.find(|before| flows[*before].to.contains(register)) else { return false };
        maker == origin || seen.insert(maker) && comes_from(flows, maker, origin, seen)
    })
}

/// `add r, 16`, `sub r, 8`, `inc r`, `dec r`, `lea r, [r+16]`; and the same with a register that is one of `constants` in place
/// of the number, as in `add r, s` and `lea r, [r+s*8]`.
fn constant_step(
    instruction: &Instruction,
    register: Register,
    constants: &[(Register, i64)],
) -> Option<i64> {
    let own =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register().full_register() == register;
    let held = |register: Register| {
        let mut of_it = constants.iter().filter(|(one, _)| *one == register.full_register());
        of_it.next().map(|(_, value)| *value)
    };
    let by_register = || {
        let whole = instruction.op1_kind() == OpKind::Register && instruction.op1_register().size() == 8;
        whole.then(|| held(instruction.op1_register())).flatten()
    };
    let constant =
        || (instruction.op_count() == 2).then(|| immediate(instruction).or_else(by_register)).flatten();
    let (base, index) = (instruction.memory_base().full_register(), instruction.memory_index());
    let lea = base == register && index == Register::None;
    let by_index = || match index.full_register() {
        index if base == register => Some(held(index)? * i64::from(instruction.memory_index_scale())),
        index if index == register && instruction.memory_index_scale() == 1 => held(base),
        _ => None,
    };
    match instruction.mnemonic() {
        _ if !own => None,
        Mnemonic::Add => constant(),
        Mnemonic::Sub => constant().map(|by| -by),
        Mnemonic::Inc => Some(1),
        Mnemonic::Dec => Some(-1),
        Mnemonic::Lea if lea => Some(instruction.memory_displacement64().cast_signed()),
        Mnemonic::Lea => Some(by_index()? + instruction.memory_displacement64().cast_signed()),
        _ => None,
    }
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    let is = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    is.then(|| instruction.immediate(1).cast_signed())
}

fn is_atomic(instruction: &Instruction) -> bool {
    let exchanges = instruction.mnemonic() == Mnemonic::Xchg
        && (instruction.op0_kind() == OpKind::Memory || instruction.op1_kind() == OpKind::Memory);
    instruction.has_lock_prefix() || exchanges
}

fn is_call_or_system_call(instruction: &Instruction) -> bool {
    let flow = instruction.flow_control();
    matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
        || instruction.mnemonic() == Mnemonic::Syscall
}

fn is_move_or_step(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic());
    let moves = ["Mov", "Vmov", "Prefetch", "Nop", "Movnt", "Vmovnt", "Lea"];
    let steps = ["Add", "Sub", "Inc", "Dec", "Cmp", "Test"];
    let steps_a_register = steps.contains(&name.as_str()) && instruction.op0_kind() == OpKind::Register;
    moves.iter().any(|start| name.starts_with(start))
        || steps_a_register && !matches!(instruction.op1_kind(), OpKind::Memory)
        || matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        )
}

/// The address that an access goes to with these registers; `None` for what is relative to a segment.
fn address(access: &Access, seen: &Registers) -> Option<u64> {
    address_with(access, |register| seen.values.get(order(register)?).copied())
}

fn address_with(access: &Access, held: impl Fn(Register) -> Option<u64>) -> Option<u64> {
    let value = |register: Register| match register {
        Register::None | Register::RIP => Some(0),
        register => held(register),
    };
    let index = value(access.index)?.wrapping_mul(u64::from(access.scale));
    Some(value(access.base)?.wrapping_add(index).wrapping_add(access.displacement))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What a C compiler made of small functions (x86-64, -O2), and an instruction within their loops.
    const COLUMNS: (&str, u64) =
        ("4863c631d2488d0487488db00090d0034863084805803e00004801ca4839f075ef4889d0c3", 0x10);
    const ROWS: (&str, u64) = ("488d8f803e000031c00f1f80000000004863174883c7044801d04839cf75f1c3", 0x13);
    const WAIT: (&str, u64) = ("488b074839f074f8c3", 0x3);
    const LOCK: (&str, u64) = ("ba01000000eb0b660f1f840000000000f39089d0870785c075f6c3", 0x14);
    const FIND: (&str, u64) = ("eb17660f1f44000048397710741a488b07480f4e47084889c74885ff75ea31c0c3", 0x16);
    const COUNT: (&str, u64) = ("bae80300000f1f00488b074883c00148890783ea0175f1c3", 0xf);
    const ADD: (&str, u64) = ("b8e80300000f1f00f04883070183e80175f6c3", 0xd);
    const COPY: (&str, u64) = ("4885d2741c31c0660f1f840000000000488b0cc648890cc74883c0014839c275efc3", 0x14);
    const WALK: (&str, u64) = (
        "49b8cdcccccccccccccc4889f0be00100000660f1f4400004889c248c1e20d4831c24889d048c1e8074831d04889c148c1e1114831c1\
         4889c849f7e048c1ea1b488d04924889ca48c1e0194829c2488b04d783e0014801c84883c80183ee0175b7c3",
        0x52,
    );

    fn around((code, offset): (&str, u64)) -> Loop {
        let spot = HotSpot {
            address: 0x40_0000 + offset,
            code_at: 0x40_0000,
            code: code.to_owned(),
            ..HotSpot::default()
        };
        Loop::around(&spot).unwrap()
    }

    fn seen(tid: u32, rdi: u64) -> Registers {
        let mut values = [0; 16];
        values[5] = rdi;
        Registers { tid, pid: 1, values }
    }

    #[test]
    fn a_loop_that_looks_at_one_place_only_waits() {
        assert!(around(WAIT).only_waits() && !around(WAIT).pauses());
        assert!(around(LOCK).only_waits() && around(LOCK).pauses() && around(LOCK).is_atomic());
    }

    #[test]
    fn loops_that_work_do_not_only_wait() {
        for (name, code) in [
            ("columns", COLUMNS),
            ("rows", ROWS),
            ("find", FIND),
            ("count", COUNT),
            ("add", ADD),
            ("copy", COPY),
            ("walk", WALK),
        ] {
            assert!(!around(code).only_waits(), "{name}");
        }
    }

    /// What V8 makes of `for (…) s = s * 31 + i`: each turn looks at the stack's limit, and the counter goes through another
    /// register. Planted fault: only a register that steps by a constant counts.
    #[test]
    fn a_loop_that_hands_its_counter_through_registers_does_not_only_wait() {
        let hash = ("458bcb4181f980841e000f8316000000456bc01f458d59014503c1493b65a077df", 0x1b);
        let code = around(hash);
        assert!(!code.only_waits() && code.walk() == Walk::Still);
        // Two flags are looked at in turn, by way of one register: nothing goes on.
        assert!(around(("488b074889c14839f174f5", 0x3)).only_waits());
    }

    #[test]
    fn the_order_of_reads_is_told() {
        assert_eq!(around(COLUMNS).walk(), Walk::Stride(16_000));
        assert_eq!(around(ROWS).walk(), Walk::Stride(4));
        assert_eq!(around(COPY).walk(), Walk::Stride(8));
        assert_eq!(around(FIND).walk(), Walk::Chase);
        assert_eq!(around(WALK).walk(), Walk::Scattered);
        assert_eq!(around(WAIT).walk(), Walk::Still);
    }

    /// `mov (%rdi),%rax; addq $1,(%rax,%rsi,8); mov $5,%eax; sub $1,%edx; jne`. Planted fault: what the registers hold at the
    /// hot instruction is taken for what they hold at the store.
    #[test]
    fn a_store_whose_address_came_and_went_is_known_where_it_stands_alone() {
        const CODE: &str = "488b07488304f001b80500000083ea0175ee";
        let seen = vec![seen(1, 0x1000); 8];
        let gone = around((CODE, 0xd));
        assert_eq!(
            (gone.stores(&seen).len(), gone.unknown_stores().collect::<Vec<_>>()),
            (0, vec![0x40_0003])
        );
        let there = around((CODE, 0x3));
        assert_eq!((there.stores(&seen).len(), there.unknown_stores().count()), (8, 0));
    }

    #[test]
    fn a_register_that_is_used_twice_is_no_walk_from_node_to_node() {
        // for (i…) sum += objects[i]->child->value: one register for both pointers.
        let fields =
            ("4885f67e23488d0cf731c00f1f440000488b174883c708488b5210480342104839f975ecc30f1f0031c0c3", 0x17);
        assert_eq!(around(fields).walk(), Walk::Scattered);
    }

    #[test]
    fn a_loop_that_reads_all_of_several_lines_skips_none() {
        // Four vectors of 32 bytes each time round, as in strlen and memcmp.
        let vectors = (
            "4839f7744bc5f1efc9c5fd6fd1c5fd6fc1c5fd6fd90f1f00c5e5d41fc5fdd447204883ef80c5edd457c0c5f5d44fe04839fe75e4\
             c5fdd4c3c5f5d4cac5fdd4c1c4e1f97ec0c5f877c30f1f800000000031c0c3",
            0x18,
        );
        assert_eq!((around(vectors).walk(), around(vectors).skips(64)), (Walk::Stride(128), None));
        assert_eq!(around(COLUMNS).skips(64), Some(16_000));
        assert_eq!(around(ROWS).skips(64), None);
    }

    /// What HotSpot makes of `to[j] += row[j]`: eight vectors of 64 bytes a turn, the first at the counter, the others at a copy of it.
    /// Planted fault: a copy is another place (`origin` of the register itself): one line of eight is seen.
    #[test]
    fn lines_that_are_read_at_a_copy_of_the_counter_are_read() {
        let along = (
            "62f17e486f84ab1000000062d17d48fe84a91000000062f17e487f84ab100000004c63d562b17e486f84935000000062\
             917d48fe84915000000062b17e487f84935000000062b17e486f84939000000062917d48fe84919000000062b17e487f\
             84939000000062b17e486f8493d000000062917d48fe8491d000000062b17e487f8493d000000062b17e486f84931001\
             000062917d48fe84911001000062b17e487f84931001000062b17e486f84935001000062917d48fe84915001000062b1\
             7e487f84935001000062b17e486f84939001000062917d48fe84919001000062b17e487f84939001000062b17e486f84\
             93d001000062917d48fe8491d001000062b17e487f8493d001000081c5800000003bea0f8ce7feffff",
            0x3a,
        );
        assert_eq!((around(along).walk(), around(along).skips(64)), (Walk::Stride(512), None));
    }

    /// `s += a[i * n + j]`, where n is known when it runs. Planted faults: a register is never a step; nor is it by `lea`, or is so without
    /// its scale; whatever it held once is its value.
    #[test]
    fn a_step_by_what_a_register_holds_is_a_step_where_it_holds_that_all_the_time() {
        const BY_ADD: (&str, u64) = (
            "4885d27e2b488d0c8f48c1e60231c031ff0f1f80000000004c63014883c0014801f14c01c74839c275ee4889f8c3",
            0x1f,
        );
        const BY_LEA: (&str, u64) = ("488b01488d0cf14801c24839f975f1", 0x7);
        let walk = |(code, offset): (&str, u64), of: &dyn Fn(u64) -> u64| {
            let held = |at: u64| {
                let mut values = [0; 16];
                (values[2], values[4]) = (0x7000_0000 + at * 8_000, of(at));
                Registers { tid: 1, pid: 1, values }
            };
            let spot = HotSpot {
                address: 0x40_0000 + offset,
                code_at: 0x40_0000,
                code: code.to_owned(),
                seen: (0..16).map(held).collect(),
                ..HotSpot::default()
            };
            Loop::around(&spot).unwrap().walk()
        };
        assert_eq!(walk(BY_ADD, &|_| 8_000), Walk::Stride(8_000));
        assert_eq!(walk(BY_LEA, &|_| 1_000), Walk::Stride(8_000));
        assert_eq!(walk(BY_ADD, &|at| 8 * at), Walk::Scattered, "a sieve");
        assert_eq!(walk(BY_ADD, &|_| 0x7f00_0000_0000), Walk::Scattered, "no step is so wide");
    }

    #[test]
    fn only_a_copy_is_a_copy() {
        assert!(around(COPY).only_copies());
        assert!(!around(ROWS).only_copies() && !around(COUNT).only_copies() && !around(FIND).only_copies());
        // rep movsb; ret
        assert!(around(("f3a4c3", 0)).only_copies());
        // mov al,[rdi]; xor al,0x55; mov [rsi],al; inc rdi; inc rsi; cmp rdi,rcx; jne
        assert!(!around(("8a073455880648ffc748ffc64839cf75efc3", 0)).only_copies(), "it works on them");
        // mov al,[rdi]; mov [rsi],al; inc rdi; inc rsi; cmp al,[rbp]; jne
        assert!(!around(("8a07880648ffc748ffc63a450075f1c3", 0)).only_copies(), "it compares them");
        // lodsb; cmp al,0; jne
        assert!(!around(("ac3c0075fbc3", 0)).only_copies(), "it only looks");
    }

    #[test]
    fn addresses_come_from_registers() {
        let seen_twice = [seen(1, 0x1000), seen(2, 0x1008)];
        let stores = around(COUNT).stores(&seen_twice);
        assert!(stores.contains(&(&seen_twice[0], 0x1000)) && stores.contains(&(&seen_twice[1], 0x1008)));
        assert!(stores.iter().all(|(by, address)| *address == 0xff8 + 8 * u64::from(by.tid)), "{stores:?}");
        let mut one = seen(1, 0x1_0000);
        one.values[3] = 5;
        assert_eq!(around(WALK).reads(&[one]), [0x1_0000 + 5 * 8]);
    }

    /// What a Java compiler makes of `p.count++` for ever, where `p` is looked up each time: the address of the store is
    /// loaded anew, and stays the same.
    const LOOKED_UP: (&str, u64) =
        ("458b42744f8b5cc4184983c3014f895cc418f0834424c0004d8b9f48030000418503ebdc", 0x18);

    #[test]
    fn a_place_that_is_looked_up_each_time_stays_where_it_is_seen() {
        let seen = |tid: u32, r8: u64| {
            let mut one = seen(tid, 0);
            one.values[8] = r8;
            one
        };
        let same: Vec<Registers> = (0..10).map(|_| seen(1, 0x1_0000)).collect();
        let stores = around(LOOKED_UP).stores(&same);
        assert_eq!(stores.len(), 10);
        assert!(stores.iter().all(|(_, address)| *address == 0x1_0000 * 8 + 0x18));
        // One that moves is not compared, nor one that was hardly seen.
        let moving: Vec<Registers> = (0..10).map(|turn| seen(1, 0x1_0000 + turn)).collect();
        assert!(
            around(LOOKED_UP).stores(&moving).is_empty() && around(LOOKED_UP).stores(&same[..5]).is_empty()
        );
        // Between the load and the store r8 is not yet, and no more, what it was: between two loads nothing is known.
        let rewritten = ("458b42744f895cc418458b4278ebf1", 0xd);
        assert!(around(rewritten).stores(&same).is_empty());
    }

    /// `mov %rax,%rdx; add %r9,%rax; and $0x3ff,%edx; mov (%r13,%rdx,8),%rdx; xor %rdx,%rsi; dec %edi; jne`. Planted fault:
    /// what the load left in rdx is taken for what its address was made of (`address` in place of `address_read`).
    #[test]
    fn what_a_load_brought_into_its_own_index_is_no_address() {
        const BITS: &str = "4889c24c01c881e2ff030000498b54d5004831d6ffcf75e8";
        let mut by = seen(1, 5);
        (by.values[0], by.values[3], by.values[9], by.values[13]) = (0x1403, 0xdead_beef, 0x10, 0x10_0000);
        // Before the load its index is known; after it, that of the next turn is computed.
        assert_eq!(around((BITS, 0x11)).reads(std::slice::from_ref(&by)), [0x10_0000 + 8 * 3]);
        assert_eq!(around((BITS, 0x14)).reads(std::slice::from_ref(&by)), [0x10_0000 + 8 * 3]);
        by.values[3] = 0x44;
        assert_eq!(around((BITS, 0xc)).reads(std::slice::from_ref(&by)), [0x10_0000 + 8 * 0x44]);
        // `mov (%rdi),%rcx; mov (%rcx,%rdx,8),%rcx; dec %esi; jne`: the base comes from memory, and is gone.
        let gone = "488b0f488b0cd1ffce75f5";
        let at_load = around((gone, 0x3));
        assert!(around((gone, 0x7)).reads(&[by.clone()]).is_empty());
        assert_eq!(at_load.places_read(), BTreeSet::from([0x40_0003]));
        assert_eq!(at_load.reads_at(&[by.clone()], 0x40_0003), [8 * 0x44]);
        by.values[2] = 1 << 50;
        assert!(at_load.reads(&[by]).is_empty(), "nothing lies there");
    }

    #[test]
    fn code_that_leads_nowhere_or_is_none_gives_no_loop() {
        for code in ["c3", "", "zz", "0f0b", "90"] {
            let spot = HotSpot {
                address: 0x40_0000,
                code_at: 0x40_0000,
                code: code.to_owned(),
                ..HotSpot::default()
            };
            assert!(Loop::around(&spot).is_none(), "{code}");
        }
    }

    #[test]
    fn a_loop_is_found_from_any_of_its_instructions() {
        for offset in [0x10, 0x13, 0x19, 0x1c, 0x1f] {
            assert_eq!(around((COLUMNS.0, offset)).start(), 0x40_0010, "{offset:#x}");
        }
    }
}
