//! A tap: a socket that is handed a copy of every packet of a namespace (`packet(7)`), with a ring in shared memory.
//!
//! The laboratory plants them to show what they cost, and counts what they saw. Nothing reads what is in the ring.

use crate::errno::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// What the ring holds: as a capture program's with its defaults cut down, 4 blocks of 64 KiB.
const RING: libc::tpacket_req =
    libc::tpacket_req { tp_block_size: 64 * 1024, tp_block_nr: 4, tp_frame_size: 2_048, tp_frame_nr: 4 * 32 };
/// `ETH_P_LOOP`, a test of Ethernet. A tap that once was bound can only be bound to something else: a protocol of 0 means the
/// one before (net/packet/af_packet.c, `packet_bind`).
const NOBODY_SENDS: u16 = 0x0060;
const RING_BYTES: usize = (RING.tp_block_size * RING.tp_block_nr) as usize;

/// Whether a tap is handed packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// Every one.
    All,
    /// None: the socket is there, and waits for a protocol that nobody sends.
    Nothing,
}

/// A tap with its ring.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    ring: ptr::NonNull<libc::c_void>,
    hears: Hears,
    seen: u64,
}

// SAFETY: the ring is never read or written here; the address is only given back to the kernel, once.
unsafe impl Send for Tap {}

impl Tap {
    /// A tap in this thread's namespace that hears nothing yet: binding waits for every CPU, opening need not.
    pub fn open() -> io::Result<Tap> {
        // SAFETY: socket takes three integers.
        let fd = checked(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let (level, len) = (libc::SOL_PACKET, size_of_val(&RING) as libc::socklen_t);
        let wanted = RING;
        let ring = (&raw const wanted).cast();
        // SAFETY: `wanted` is a structure of this length and lives through the call.
        checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, libc::PACKET_RX_RING, ring, len) })?;
        let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping where the kernel likes; nothing of ours is there.
        let at = unsafe { libc::mmap(ptr::null_mut(), RING_BYTES, both, shared, fd.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = ptr::NonNull::new(at).expect("the kernel maps nothing at zero");
        Ok(Tap { fd, ring, hears: Hears::Nothing, seen: 0 })
    }

    /// Has it hear all packets of all devices, or nothing any more.
    pub fn set(&mut self, hears: Hears) -> io::Result<()> {
        if self.hears == hears {
            return Ok(());
        }
        let protocol = match hears {
            Hears::All => (libc::ETH_P_ALL as u16).to_be(),
            Hears::Nothing => NOBODY_SENDS.to_be(),
        };
        // SAFETY: the structure is plain integers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a socket address of this length that lives through the call.
        checked(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        self.hears = hears;
        Ok(())
    }

    /// Packets that it was handed so far, those that found no room in the ring included.
    pub fn seen(&mut self) -> io::Result<u64> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of_val(&stats) as libc::socklen_t;
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let at = (&raw mut stats).cast();
        // SAFETY: `stats` is writable and as long as `len` says.
        checked(unsafe { libc::getsockopt(self.fd.as_raw_fd(), level, option, at, &raw mut len) })?;
        // Reading sets the kernel's count back to zero.
        self.seen += u64::from(stats.tp_packets);
        Ok(self.seen)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `open` with this length, and nobody else has its address.
        unsafe { libc::munmap(self.ring.as_ptr(), RING_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::namespace::OwnNetwork;
    use std::net::UdpSocket;

    #[test]
    fn a_tap_sees_packets_only_while_it_is_bound_to_all() {
        let Ok(own) = OwnNetwork::make() else { return };
        own.within(|| {
            crate::netlink::link::set_up(1).unwrap();
            let mut tap = Tap::open().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let sent = |tap: &mut Tap, hears| {
                tap.set(hears).unwrap();
                let before = tap.seen().unwrap();
                socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
                tap.seen().unwrap() - before
            };
            assert_eq!(sent(&mut tap, Hears::Nothing), 0, "present, and not in force");
            assert!(sent(&mut tap, Hears::All) >= 1);
            assert_eq!(sent(&mut tap, Hears::Nothing), 0);
        })
        .unwrap();
    }
}
