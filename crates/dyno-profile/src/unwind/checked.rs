//! What was walked, before it is shown: whether it can be true.
//!
//! The unwinder calls it for every stack. A return address lies in code that the process has at that moment; one that
//! does not was made up by a rule that did not fit (code without frame pointers whose register holds something else), and
//! everything behind it with it. A frame that was found in words read from memory afterwards must in addition be the
//! place behind a call, of the very function that it is said to have called: the words may be of another call by now.

use std::collections::HashMap;

use dyno_sys::Pid;
use dyno_sys::clock::mono_ns;

use super::walked::{Cut, Ended, Walked};
use crate::image::spaces::{AddressSpaces, Place};
use crate::image::{Image, UnwoundBy};

/// Mappings are read again this often at most, where an address lies in none that is known.
const READ_AGAIN_NS: u64 = 50_000_000;

/// The longest call of x86-64 that is told apart: a prefix, an opcode, two bytes of address form, four of distance.
#[cfg(target_arch = "x86_64")]
const CALL_BYTES: u64 = 8;
#[cfg(target_arch = "aarch64")]
const CALL_BYTES: u64 = 4;

/// What is known of address spaces and calls; what stands before an address in a file never changes.
#[derive(Default)]
pub(super) struct Checks {
    read_ns: HashMap<Pid, u64>,
    calls: HashMap<Place, Call>,
}

/// What stands before a return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// A call of what begins at this address of the file.
    To(u64),
    /// A call of what a register or memory says.
    Indirect,
    /// Something else.
    None,
    /// Nobody knows: code without a file, or Go, whose roots were never called.
    Unknown,
}

impl Checks {
    /// The stack up to the first frame that cannot be true. `far`: the first that was found in words read afterwards, and
    /// why those may be wrong.
    pub(super) fn passed(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        mut walked: Walked,
        far: Option<(usize, Cut)>,
    ) -> Walked {
        let addresses = &walked.addresses;
        let cut = (1..addresses.len()).find_map(|at| {
            let far = far.filter(|(first, _)| at >= *first).map(|(_, why)| why);
            let cut = self.fault(spaces, pid, (addresses[at - 1], addresses[at]), far)?;
            Some((at, cut))
        });
        if let Some((at, cut)) = cut {
            assert!(at > 0, "the leaf is where the thread was");
            walked.addresses.truncate(at);
            walked.ended = Ended::Cut(cut);
        }
        walked
    }

    /// Why a caller cannot be the caller of what it is said to have called.
    fn fault(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        (callee, caller): (u64, u64),
        far: Option<Cut>,
    ) -> Option<Cut> {
        if !self.is_code(spaces, pid, caller) {
            return Some(far.unwrap_or(Cut::Outside));
        }
        far.filter(|_| !self.is_called(spaces, pid, callee, caller))
    }

    fn is_code(&mut self, spaces: &mut AddressSpaces, pid: Pid, address: u64) -> bool {
        if spaces.is_code(pid, address) {
            return true;
        }
        // It may have been mapped since, and the record of that been lost.
        let now = mono_ns();
        let last = self.read_ns.entry(pid).or_insert(0);
        if now.saturating_sub(*last) < READ_AGAIN_NS {
            return false;
        }
        *last = now;
        spaces.read_more(pid);
        spaces.is_code(pid, address)
    }

    /// `caller` lies within its call.
    fn is_called(&mut self, spaces: &mut AddressSpaces, pid: Pid, callee: u64, caller: u64) -> bool {
        let Some(from) = spaces.locate(pid, caller) else { return true };
        let image = spaces.images().get(from.image);
        match *self.calls.entry(from).or_insert_with(|| call_before(image, from.address + 1)) {
            Call::Indirect | Call::Unknown => true,
            Call::None => false,
            Call::To(target) if image.is_linkage(target) => true,
            Call::To(target) => {
                let place = spaces.locate(pid, callee).filter(|place| place.image == from.image);
                place.is_some_and(|place| spaces.images().get(place.image).function(place.address) == target)
            }
        }
    }

    /// A process ended, or runs another program.
    pub(super) fn forget_process(&mut self, pid: Pid) {
        self.read_ns.remove(&pid);
    }
}

/// The call that returns to an address of a file.
fn call_before(image: &Image, returned: u64) -> Call {
    let elf = image.elf().filter(|_| image.unwound_by() == UnwoundBy::Dwarf);
    let Some(elf) = elf else { return Call::Unknown };
    let bytes = elf.bytes_at(returned.saturating_sub(CALL_BYTES), CALL_BYTES);
    bytes.map_or(Call::Unknown, |bytes| call_in(&bytes, returned))
}

#[cfg(target_arch = "x86_64")]
fn call_in(bytes: &[u8], returned: u64) -> Call {
    let back = |count: usize| &bytes[bytes.len() - count..];
    if let [0xe8, distance @ ..] = back(5)
        && let Some(distance) = distance.first_chunk()
    {
        return Call::To(returned.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance))));
    }
    // `call *…`: opcode ff, and 2 in the middle of the byte behind it; as long as its address form is.
    let is_indirect = |count: usize| back(count)[0] == 0xff && back(count)[1] & 0x38 == 0x10;
    if [2, 3, 4, 6, 7].into_iter().any(is_indirect) { Call::Indirect } else { Call::None }
}

#[cfg(target_arch = "aarch64")]
fn call_in(bytes: &[u8], returned: u64) -> Call {
    let Some(word) = bytes.first_chunk().map(|word| u32::from_le_bytes(*word)) else { return Call::Unknown };
    if word >> 26 == 0b10_0101 {
        let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
        return Call::To((returned - 4).wrapping_add_signed(distance));
    }
    if word & 0xffff_fc1f == 0xd63f_0000 { Call::Indirect } else { Call::None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;
    use dyno_sys::perf::Mmap;

    fn spaces() -> AddressSpaces {
        let mut spaces = AddressSpaces::new();
        // No process of Linux has this number: nothing is read of it.
        spaces.exec(Pid::MAX);
        let (start, length, path) = (0x1000, 0x1000, b"//anon".as_slice());
        spaces.mmap(&Mmap { pid: Pid::MAX, time_ns: 0, start, length, offset: 0, inode: 0, path });
        spaces
    }

    fn passed(addresses: &[u64]) -> Walked {
        let walked = Walked { addresses: addresses.to_vec(), ended: Ended::AtRoot };
        Checks::default().passed(&mut spaces(), Pid::MAX, walked, None)
    }

    /// Fault: `fault` that never says `Outside`.
    #[test]
    fn a_stack_is_cut_before_the_first_return_address_that_lies_in_no_code() {
        let whole = passed(&[0x1010, 0x1020, 0x1030]);
        assert_eq!((whole.addresses.len(), whole.ended), (3, Ended::AtRoot));
        let cut = passed(&[0x1010, 0x1020, 0x70a7_fe5a4, 0x1030]);
        assert_eq!((cut.addresses.as_slice(), cut.ended), (&[0x1010, 0x1020][..], Ended::Cut(Cut::Outside)));
        assert_eq!(passed(&[0x9000]).addresses, [0x9000], "the leaf is where the thread was");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_is_told_from_what_only_looks_like_a_number_of_code() {
        let call = |bytes: &[u8]| call_in(&[&[0x90; 8][bytes.len()..], bytes].concat(), 0x1_0000);
        assert_eq!(call(&[0xe8, 0xf0, 0xff, 0xff, 0xff]), Call::To(0xfff0));
        assert_eq!(call(&[0xff, 0xd0]), Call::Indirect, "call *%rax");
        assert_eq!(call(&[0x41, 0xff, 0x54, 0x24, 0x08]), Call::Indirect, "call *8(%r12)");
        assert_eq!(call(&[0xff, 0x15, 1, 2, 3, 4]), Call::Indirect, "call *there(%rip)");
        assert_eq!(call(&[0xff, 0xe0]), Call::None, "jmp *%rax");
        assert_eq!(call(&[]), Call::None);
    }

    #[inline(never)]
    fn called(depth: u64) -> u64 {
        std::hint::black_box(depth) + 1
    }

    #[inline(never)]
    fn other(depth: u64) -> u64 {
        called(depth) + called(depth + 1)
    }

    /// Fault: `is_called` that takes any call for the right one.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_was_read_afterwards_must_be_behind_a_call_of_that_very_function() {
        assert_eq!(other(1), 5);
        let (mut spaces, me) = (AddressSpaces::new(), child::this());
        let (callee, caller) = (called as *const () as u64, other as *const () as u64);
        let code = |at: u64| own_bytes(me, at);
        let behind = (caller..caller + 200).find(|at| {
            let bytes = code(at - 8);
            call_in(&bytes, *at) == Call::To(callee)
        });
        let within = behind.unwrap() - 1;
        let mut ended = |addresses: [u64; 2]| {
            let walked = Walked { addresses: addresses.to_vec(), ended: Ended::AtRoot };
            Checks::default().passed(&mut spaces, me, walked, Some((1, Cut::Changed))).ended
        };
        assert_eq!(ended([callee + 1, within]), Ended::AtRoot);
        assert_eq!(ended([caller + 1, within]), Ended::Cut(Cut::Changed), "it calls another");
        // What stands before a function is another, which may end in anything: a place within is looked for.
        let no_call = (caller..caller + 200).find(|at| call_in(&code(at + 1 - 8), at + 1) == Call::None);
        assert_eq!(ended([callee + 1, no_call.unwrap()]), Ended::Cut(Cut::Changed), "no call stands there");
    }

    /// Eight bytes of this process's code.
    fn own_bytes(pid: Pid, at: u64) -> Vec<u8> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; 8];
        let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
        memory.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }
}
