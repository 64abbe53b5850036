//! Steering of a reuseport group: the connection goes to the worker whose CPU took the packet. Called once per group by
//! the engine. The program cannot be read back from the kernel: proofs look at where connections land.

use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Attaches a classic BPF program to the reuseport group of `fd` (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5). The index counts
/// sockets in the order in which they started to listen: that of the first whose worker's CPU is this one, as `homes` has them
/// in the same order; where no worker is at home, the CPU's number mod `sockets`.
///
/// `EINVAL` when `sockets` is 0 or the socket has no `SO_REUSEPORT`.
pub fn attach_reuseport_by_cpu(fd: impl AsFd, sockets: u32, homes: &[usize]) -> io::Result<()> {
    if sockets == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut program = by_cpu(sockets, homes);
    let attached = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (fd, len) = (fd.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    let (number, place) = (libc::SO_ATTACH_REUSEPORT_CBPF, (&raw const attached).cast());
    // SAFETY: `attached` and the program it points to live through the call; the kernel copies both.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, number, place, len) })?;
    Ok(())
}

fn by_cpu(sockets: u32, homes: &[usize]) -> Vec<libc::sock_filter> {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    // A = the CPU that runs this; a negative offset is the kernel's way to ask (net/core/filter.c).
    let ask = (libc::SKF_AD_OFF + libc::SKF_AD_CPU).cast_unsigned();
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, ask)];
    for (index, cpu) in (0..sockets).zip(homes.iter().map(|cpu| *cpu as u32)) {
        // Most servers may use the first CPUs: then the rest says it all.
        let is_first = !homes[..index as usize].contains(&(cpu as usize));
        if is_first && cpu % sockets != index {
            program.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, cpu));
            program.push(step(libc::BPF_RET | libc::BPF_K, 0, index));
        }
    }
    program.push(step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, sockets));
    program.push(step(libc::BPF_RET | libc::BPF_A, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{
        Accepted, ListenOptions, Reuseport, accept, connect, listen, local_addr, wait_readable,
    };
    use super::*;
    use crate::affinity::{CpuSet, allowed, set_current};

    /// What the program answers on a CPU.
    fn index_on(cpu: u32, sockets: u32, homes: &[usize]) -> u32 {
        let (mut a, mut at, program) = (0, 0, by_cpu(sockets, homes));
        loop {
            let step = program[at];
            at += 1;
            match u32::from(step.code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => a = cpu,
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += usize::from(if a == step.k { step.jt } else { step.jf });
                }
                code if code == libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K => a %= step.k,
                code if code == libc::BPF_RET | libc::BPF_K => return step.k,
                _ => return a,
            }
        }
    }

    /// Planted fault: the CPU's number mod the sockets alone; then with CPUs 1 and 2 each worker has the other's connections, and
    /// with 0 and 2 the first has all.
    #[test]
    fn each_cpu_has_the_socket_of_the_worker_that_is_bound_to_it_whichever_cpus_there_are() {
        for homes in [&[0, 1][..], &[1, 2], &[0, 2], &[3, 5, 8, 9], &[2, 3, 4]] {
            for (index, cpu) in homes.iter().enumerate() {
                assert_eq!(index_on(*cpu as u32, homes.len() as u32, homes), index as u32, "{homes:?}");
            }
        }
        // More workers than CPUs: the first of each.
        assert_eq!([1, 2].map(|cpu| index_on(cpu, 4, &[1, 2, 1, 2])), [0, 1]);
        // Nobody is at home there.
        assert_eq!((index_on(7, 2, &[0, 1]), index_on(5, 3, &[])), (1, 2));
    }

    #[test]
    fn a_connection_lands_on_the_socket_of_the_cpu_it_was_made_on() {
        lands(&[], |cpu| cpu % 2);
    }

    #[test]
    fn a_connection_lands_on_the_socket_whose_worker_is_bound_to_the_cpu_it_was_made_on() {
        lands(&[1, 0], |cpu| (cpu + 1) % 2);
    }

    /// Makes a connection on each CPU, and looks for it on the socket with the number that is expected.
    fn lands(homes: &[usize], expected: fn(usize) -> usize) {
        let options = ListenOptions { reuseport: Reuseport::On, ..ListenOptions::default() };
        let first = listen(&"127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let addr = local_addr(&first).unwrap();
        let second = listen(&addr, &options).unwrap();
        attach_reuseport_by_cpu(&second, 2, homes).unwrap();
        let listeners = [first, second];
        for cpu in allowed().iter().take(4) {
            // On loopback the softirq runs on the CPU of the sender.
            let made = std::thread::scope(|scope| {
                let pinned = || {
                    set_current(&CpuSet::single(cpu)).and_then(|()| connect(&addr).map_err(io::Error::other))
                };
                scope.spawn(pinned).join().unwrap().unwrap()
            });
            let landed = &listeners[expected(cpu)];
            wait_readable(landed, crate::clock::mono_ns() + 5_000_000_000).unwrap();
            assert!(matches!(accept(landed), Accepted::Conn(_)), "nothing landed on the socket of CPU {cpu}");
            drop(made);
        }
    }

    #[test]
    fn no_group_and_no_sockets_are_refused() {
        let alone = listen(&"127.0.0.1:0".parse().unwrap(), &ListenOptions::default()).unwrap();
        assert!(attach_reuseport_by_cpu(&alone, 0, &[]).is_err());
    }
}
