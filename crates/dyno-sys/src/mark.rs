//! A place in this program that others can count visits of: a probe on it sees every right answer that our generator got.
//!
//! `dyno load` passes it; `dyno causal` puts a probe there, at the offset that [`reply_place`] finds in this very file.

use std::io;
use std::path::PathBuf;

use crate::proc;

/// An answer came and was right. Does nothing: its first instruction is one that the kernel need not execute elsewhere
/// when a probe takes its place (arch/x86/kernel/uprobes.c: nops are skipped, and five bytes can become a call).
#[inline(never)]
pub fn reply() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a nop of five bytes changes neither memory, nor the stack, nor a register.
    unsafe {
        std::arch::asm!(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: a nop changes neither memory, nor the stack, nor a register.
    unsafe {
        std::arch::asm!("nop", options(nostack, preserves_flags));
    }
}

/// This program's file as this process has it open, and where in it [`reply`] begins.
///
/// # Errors
/// When /proc cannot be read, or does not know this program's own code.
pub fn reply_place() -> io::Result<(PathBuf, u64)> {
    let address = reply as *const () as u64;
    let mappings = proc::mappings(crate::child::this())?;
    let own = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
    let own = own.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok((PathBuf::from("/proc/self/exe"), address - own.start + own.offset))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_place_holds_the_function_and_it_begins_with_a_nop_or_a_push() {
        reply();
        let (file, offset) = reply_place().unwrap();
        let bytes = std::fs::read(file).unwrap();
        let start = &bytes[offset as usize..offset as usize + 5];
        let nop: &[u8] =
            if cfg!(target_arch = "x86_64") { &[0x0f, 0x1f, 0x44, 0, 0] } else { &[0x1f, 0x20, 0x03, 0xd5] };
        // A build with frame pointers begins with a push.
        assert!(start.starts_with(nop) || start[0] == 0x55, "{start:x?}");
    }
}
