//! Steering of a reuseport group: the connection goes to the worker whose CPU took the packet. Called once per group by
//! the engine. The program cannot be read back from the kernel: proofs look at where connections land.

use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Attaches a classic BPF program to the reuseport group of `fd`: socket index = CPU number mod `sockets`
/// (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5). The index counts sockets in the order in which they started to listen.
///
/// `EINVAL` when `sockets` is 0 or the socket has no `SO_REUSEPORT`.
pub fn attach_reuseport_by_cpu(fd: impl AsFd, sockets: u32) -> io::Result<()> {
    if sockets == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut program = by_cpu(sockets);
    let attached = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (fd, len) = (fd.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    let (number, place) = (libc::SO_ATTACH_REUSEPORT_CBPF, (&raw const attached).cast());
    // SAFETY: `attached` and the program it points to live through the call; the kernel copies both.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, number, place, len) })?;
    Ok(())
}

fn by_cpu(sockets: u32) -> [libc::sock_filter; 3] {
    let step = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    [
        // A = the CPU that runs this; a negative offset is the kernel's way to ask (net/core/filter.c).
        step(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            (libc::SKF_AD_OFF + libc::SKF_AD_CPU).cast_unsigned(),
        ),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{
        Accepted, ListenOptions, Reuseport, accept, connect, listen, local_addr, wait_readable,
    };
    use super::*;
    use crate::affinity::{CpuSet, allowed, set_current};

    #[test]
    fn a_connection_lands_on_the_socket_of_the_cpu_it_was_made_on() {
        let options = ListenOptions { reuseport: Reuseport::On, ..ListenOptions::default() };
        let first = listen(&"127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let addr = local_addr(&first).unwrap();
        let second = listen(&addr, &options).unwrap();
        attach_reuseport_by_cpu(&second, 2).unwrap();
        let listeners = [first, second];
        for cpu in allowed().iter().take(4) {
            // On loopback the softirq runs on the CPU of the sender.
            let made = std::thread::scope(|scope| {
                let pinned = || {
                    set_current(&CpuSet::single(cpu)).and_then(|()| connect(&addr).map_err(io::Error::other))
                };
                scope.spawn(pinned).join().unwrap().unwrap()
            });
            let landed = &listeners[cpu % 2];
            wait_readable(landed, crate::clock::mono_ns() + 5_000_000_000).unwrap();
            assert!(matches!(accept(landed), Accepted::Conn(_)), "nothing landed on the socket of CPU {cpu}");
            drop(made);
        }
    }

    #[test]
    fn no_group_and_no_sockets_are_refused() {
        let alone = listen(&"127.0.0.1:0".parse().unwrap(), &ListenOptions::default()).unwrap();
        assert!(attach_reuseport_by_cpu(&alone, 0).is_err());
    }
}
