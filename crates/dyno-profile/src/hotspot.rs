//! Java's compiled code: what HotSpot has made, where it lies, how large its frames are and what its methods are called.
//!
//! The virtual machine keeps a table of its own structures in its library, for the debugger that comes with it
//! (`gHotSpotVMStructs`). By it the heaps of compiled code are walked in the process's memory, without an agent, without an option
//! and without stopping anything. Compiled code keeps no frame pointer; it says how many words each of its frames has, and that
//! is all it takes to walk through them. The unwinder asks for the way; names are read with the code, which may be gone before they are
//! asked for.
//!
//! What is read may change meanwhile: lengths are bounded, and what is nonsense is passed over. A compiled method stands for
//! all that was folded into it; the interpreter's frames are all called `Interpreter`.

mod structs;

use std::collections::BTreeMap;

use dyno_sys::Pid;
use dyno_sys::clock::mono_ns;
use dyno_sys::proc::Memory;

use structs::{FRAME_BYTES_MAX, HEAD_BYTES, Piece, Structs};

/// Where an address lies in no code that is known the heaps are walked again, this often at most, and for no more than such a part of the
/// time: a small server's take a millisecond, the largest one's a tenth of a second.
const READ_AGAIN_NS: u64 = 20_000_000;
const RESTS: u64 = 10;
/// Blocks that are read in all, free ones included; the largest servers have some 60,000. Whatever a target writes there ends.
const BLOCKS_MAX: usize = 1 << 18;

/// A Java virtual machine that runs.
pub(crate) struct HotSpot {
    memory: Memory,
    structs: Structs,
    blobs: BTreeMap<u64, Blob>,
    /// When they may be walked again.
    next_ns: u64,
}

/// A piece of its code.
struct Blob {
    end: u64,
    way: Way,
    /// Where the description of its method lies, if it is one.
    method: Option<u64>,
    /// Read with it: it may be gone before it is asked for.
    name: Option<String>,
}

/// A function: where it begins, its bytes, and its name.
pub(crate) type Function = (u64, u64, String);

/// How its frames are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// They have so many bytes, from this address on.
    BySize { bytes: u64, complete: u64 },
    /// They have a frame pointer.
    ByFramePointer,
    /// The same, and the caller's stack pointer is kept: arguments of a compiled caller were moved.
    Interpreter,
    /// It stands between callers of one kind and callees of another, without a frame.
    Adapter,
}

/// Where a frame was entered from: what is returned to, and the caller's stack and frame pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) returns_to: u64,
    pub(crate) sp: u64,
    pub(crate) frame: u64,
}

impl HotSpot {
    /// That of a process; `None` where it has none, or its memory may not be read.
    pub(crate) fn of(pid: Pid) -> Option<HotSpot> {
        let (memory, structs) = Structs::of(pid)?;
        Some(HotSpot { memory, structs, blobs: BTreeMap::new(), next_ns: 0 })
    }

    /// The caller of the frame at `address`; `is_leaf` where it is the instruction that ran and none that is returned to.
    pub(crate) fn caller(
        &mut self,
        (address, is_leaf): (u64, bool),
        (sp, frame): (u64, u64),
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<Caller> {
        let way = self.way(address)?;
        let found = match way {
            Way::Adapter => Caller { returns_to: read(sp).ok()?, sp: sp.checked_add(8)?, frame },
            Way::Interpreter => by_interpreter(frame, read)?,
            Way::ByFramePointer => by_frame_pointer(frame, read)?,
            Way::BySize { bytes, complete } if is_leaf => {
                return self.of_leaf((bytes, address >= complete), (sp, frame), read);
            }
            Way::BySize { bytes, .. } => by_size(bytes, sp, read)?,
        };
        (found.sp > sp).then_some(found)
    }

    /// An instruction that ran may stand where its frame is not there yet, or no longer: who called compiled code is compiled,
    /// interpreted or a stub, so that it is seen what is a return address.
    fn of_leaf(
        &self,
        (bytes, is_complete): (u64, bool),
        (sp, frame): (u64, u64),
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<Caller> {
        let whole = by_size(bytes, sp, read);
        let at_entry =
            read(sp).ok().and_then(|returns_to| Some(Caller { returns_to, sp: sp.checked_add(8)?, frame }));
        let pushed = pushed(sp, read);
        let ways = if is_complete { [whole, at_entry, pushed] } else { [at_entry, pushed, whole] };
        ways.into_iter().flatten().find(|way| self.known(way.returns_to.wrapping_sub(1)).is_some())
    }

    /// All that it has compiled by now, or had when it was last there.
    pub(crate) fn functions(&mut self) -> Vec<Function> {
        self.read();
        let named = |(start, blob): (&u64, &Blob)| Some((*start, blob.end - start, blob.name.clone()?));
        self.blobs.iter().filter_map(named).collect()
    }

    fn way(&mut self, address: u64) -> Option<Way> {
        if let Some(found) = self.known(address) {
            return Some(found);
        }
        let begun_ns = mono_ns();
        if begun_ns < self.next_ns {
            return None;
        }
        self.read();
        let now_ns = mono_ns();
        self.next_ns = now_ns + READ_AGAIN_NS.max(RESTS * (now_ns - begun_ns));
        self.known(address)
    }

    fn known(&self, address: u64) -> Option<Way> {
        let (_, blob) = self.blobs.range(..=address).next_back()?;
        (address < blob.end).then_some(blob.way)
    }

    /// Walks the heaps. What lay where new code lies is forgotten; a machine that is gone says nothing new.
    fn read(&mut self) {
        let (mut blobs, mut classes, mut blocks) = (BTreeMap::new(), BTreeMap::new(), 0);
        for (low, high, log2) in self.structs.heaps(&self.memory) {
            let mut at = low;
            while at < high && blocks < BLOCKS_MAX {
                blocks += 1;
                let head = self.memory.read(at, HEAD_BYTES);
                let Some((bytes, piece)) = self.structs.block((at, &head), log2, &self.memory) else { break };
                let Some(end) = at.checked_add(bytes) else { break };
                if let Some(piece) = piece {
                    let is_within = at <= piece.begin && piece.begin < piece.end && piece.end <= end;
                    if is_within {
                        let old = self.blobs.get_mut(&piece.begin).filter(|old| {
                            old.method == piece.method && old.end == piece.end && old.name.is_some()
                        });
                        let name = match (old, piece.method) {
                            (Some(old), _) => old.name.take(),
                            (None, Some(method)) => {
                                self.structs.method_name(&self.memory, method, &mut classes)
                            }
                            (None, None) => Some(piece.name.clone()),
                        };
                        blobs.insert(piece.begin, blob(piece, name));
                    }
                }
                at = end;
            }
        }
        if !blobs.is_empty() {
            self.blobs = blobs;
        }
    }
}

/// The caller's frame pointer was pushed, or is about to be taken back.
fn pushed(sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Caller> {
    let end = sp.checked_add(16)?;
    let (frame, returns_to) = (read(sp).ok()?, read(end - 8).ok()?);
    Some(Caller { returns_to, sp: end, frame })
}

/// What the interpreter's frames are called.
const INTERPRETER: &str = "Interpreter";

fn blob(piece: Piece, called: Option<String>) -> Blob {
    let Piece { name, begin, end, complete, frame_bytes: bytes, method } = piece;
    let has = |part: &str| name.contains(part);
    let way = match bytes {
        _ if name == INTERPRETER => Way::Interpreter,
        _ if has("adapters") || has("vtable") || has("itable") => Way::Adapter,
        0 => Way::ByFramePointer,
        _ => Way::BySize { bytes, complete: begin.saturating_add(complete) },
    };
    Blob { end, way, method, name: called }
}

/// A frame of a fixed size: the return address is its highest word, the caller's frame pointer the one below.
fn by_size(bytes: u64, sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Caller> {
    let end = sp.checked_add(bytes).filter(|_| bytes >= 16)?;
    Some(Caller { returns_to: read(end - 8).ok()?, sp: end, frame: read(end - 16).ok()? })
}

fn by_frame_pointer(frame: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Caller> {
    let sp = frame.checked_add(16)?;
    Some(Caller { returns_to: read(frame + 8).ok()?, sp, frame: read(frame).ok()? })
}

/// The same, with the caller's stack pointer in the word below.
fn by_interpreter(frame: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Caller> {
    let plain = by_frame_pointer(frame, read)?;
    let sp = read(frame.checked_sub(8)?)
        .ok()
        .filter(|sp| (plain.sp..plain.sp.saturating_add(FRAME_BYTES_MAX)).contains(sp));
    Some(Caller { sp: sp.unwrap_or(plain.sp), ..plain })
}
