//! The sockets of a server, for as long as it lives: generations of settings come and go, sockets stay.
//!
//! An address that new settings name again keeps its sockets, with whoever waits in their queues. One that is new is bound
//! before anything else is tried, one that is named no more is closed once nobody needs it. Nothing here accepts.

use super::handed::{Handed, Role};
use crate::config::Config;
use crate::dials::Reuseport;
use crate::error::{EngineError, refused};
use crate::listen::{self, SocketFile};
use dyno_sys::socket::{self, Addr};
use std::os::fd::OwnedFd;

/// The sockets of one address.
struct Listening {
    role: Role,
    /// As the settings have it, and with the port that the kernel chose.
    asked: Addr,
    addr: Addr,
    /// One for each worker, or one for all.
    sockets: Vec<OwnedFd>,
    /// How many of them are served: behind them stand those that were bound for a generation that starts.
    served: usize,
    file: Option<SocketFile>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Sockets {
    all: Vec<Listening>,
}

/// What a generation gets.
pub(super) struct Dealt {
    pub(super) addrs: Vec<Addr>,
    pub(super) by_worker: Vec<Vec<OwnedFd>>,
    pub(super) metrics: Option<(Addr, OwnedFd)>,
    /// Which of the first worker's listeners are of a group that is steered by CPU.
    pub(super) steered: Vec<usize>,
}

impl Sockets {
    /// Those that were there before this process: a service manager's, and a predecessor's.
    pub(super) fn new(managers: Vec<OwnedFd>, handed: Vec<Handed>) -> Result<Sockets, EngineError> {
        let mut sockets = Sockets::default();
        for (number, socket) in managers.into_iter().enumerate() {
            let addr = adopt(number, &socket)?;
            let (role, asked) = (Role::Manager, addr.clone());
            sockets.all.push(Listening { role, asked, addr, sockets: vec![socket], served: 1, file: None });
        }
        for (number, handed) in handed.into_iter().enumerate() {
            let addrs = handed.sockets.iter().map(|socket| adopt(number, socket));
            let addr = addrs.collect::<Result<Vec<_>, _>>()?.into_iter().next();
            let addr = addr.ok_or_else(|| EngineError::Inherited { number, why: "it is none".into() })?;
            let Handed { role, asked, sockets: own } = handed;
            let file = if role == Role::Manager { None } else { SocketFile::of(&asked) };
            let served = own.len();
            sockets.all.push(Listening { role, asked, addr, sockets: own, served, file });
        }
        Ok(sockets)
    }

    /// Binds what these settings name and nobody has bound yet. What was bound for nothing is closed by [`Self::take_back`].
    pub(super) fn prepare(&mut self, config: &Config) -> Result<(), EngineError> {
        if config.listen.is_empty() && !self.has_managers() {
            return Err(EngineError::NoAddress);
        }
        for (role, asked) in self.missing(config) {
            let dials = match role {
                Role::Metrics => &crate::dials::Dials::for_workers(std::num::NonZeroU32::MIN),
                _ => &config.dials,
            };
            let sockets = listen::open(&asked, dials, config.socket_mode)?;
            let addr = socket::local_addr(&sockets[0]).map_err(refused("read where the server listens"))?;
            let file = SocketFile::of(&asked);
            let served = sockets.len();
            self.all.push(Listening { role, asked, addr, sockets, served, file });
        }
        for at in self.wanted(config) {
            let Listening { role: Role::Serve, addr: addr @ Addr::Tcp(_), sockets, .. } = &mut self.all[at]
            else {
                continue;
            };
            if sockets.len() > 1 {
                listen::join(sockets, addr, &config.dials)?;
            }
        }
        Ok(())
    }

    /// Closes what was bound for settings that are refused; these stay in force.
    pub(super) fn take_back(&mut self, config: &Config) {
        self.all.iter_mut().for_each(|listening| listening.sockets.truncate(listening.served));
        self.keep(config);
    }

    /// Closes what these settings, which are served now, do not name.
    pub(super) fn keep(&mut self, config: &Config) {
        let wanted = self.wanted(config);
        let mut at = 0;
        self.all.retain(|listening| {
            at += 1;
            let is_kept = wanted.contains(&(at - 1)) || listening.role == Role::Manager;
            if let (false, Some(file)) = (is_kept, &listening.file) {
                file.remove();
            }
            is_kept
        });
        self.all.iter_mut().for_each(|listening| listening.served = listening.sockets.len());
    }

    /// Distributes, in a child, what these settings name over its workers, and lets go of all else. Where workers share a
    /// socket of TCP they share all, whatever there could have been.
    pub(super) fn deal(self, config: &mut Config) -> Result<Dealt, EngineError> {
        let workers = config.dials.workers.get();
        let wanted = self.wanted(config);
        let steers = config.dials.reuseport == Reuseport::Cpu;
        let by_worker = (0..workers).map(|_| Vec::new()).collect();
        let mut dealt = Dealt { addrs: Vec::new(), by_worker, metrics: None, steered: Vec::new() };
        for (_, mut listening) in self.all.into_iter().enumerate().filter(|(at, _)| wanted.contains(at)) {
            if listening.role == Role::Metrics {
                dealt.metrics = Some((listening.addr, listening.sockets.remove(0)));
                continue;
            }
            if listening.sockets.len() == 1 {
                if matches!(listening.addr, Addr::Tcp(_)) || listening.role == Role::Manager {
                    config.dials.reuseport = Reuseport::Off;
                }
                for own in dealt.by_worker.iter_mut().skip(1) {
                    let copy = listening.sockets[0].try_clone();
                    own.push(copy.map_err(refused("copy a listener for each worker"))?);
                }
            } else if steers {
                dealt.steered.push(dealt.by_worker[0].len());
            }
            // With fewer workers than before some get two: none may be without anybody who accepts from it.
            for (at, socket) in listening.sockets.into_iter().enumerate() {
                dealt.by_worker[at % workers].push(socket);
            }
            dealt.addrs.push(listening.addr);
        }
        Ok(dealt)
    }

    /// Closes all, and leaves files where they are.
    pub(super) fn close(&mut self) {
        self.all.iter_mut().for_each(|listening| listening.sockets.clear());
    }

    /// Takes away the files of Unix sockets: the server ends.
    pub(super) fn remove_files(&self) {
        self.all.iter().filter_map(|listening| listening.file.as_ref()).for_each(SocketFile::remove);
    }

    /// What a successor gets: every socket, with what it is for.
    pub(super) fn each(&self) -> impl Iterator<Item = (Role, &Addr, &[OwnedFd])> {
        self.all.iter().map(|listening| (listening.role, &listening.asked, &listening.sockets[..]))
    }

    fn has_managers(&self) -> bool {
        self.all.iter().any(|listening| listening.role == Role::Manager)
    }

    /// What settings name, in their order.
    fn named(&self, config: &Config) -> Vec<(Role, Addr)> {
        let served = config.listen.iter().filter(|_| !self.has_managers());
        let served = served.map(|addr| (Role::Serve, addr.clone()));
        served.chain(config.metrics.iter().map(|addr| (Role::Metrics, addr.clone()))).collect()
    }

    /// Where what settings name stands; an address that is named twice stands here once.
    fn wanted(&self, config: &Config) -> Vec<usize> {
        let place = |(role, asked): &(Role, Addr)| {
            self.all.iter().position(|listening| listening.role == *role && listening.asked == *asked)
        };
        let managers = self.all.iter().enumerate().filter(|(_, listening)| listening.role == Role::Manager);
        let mut wanted: Vec<usize> = managers.map(|(at, _)| at).collect();
        wanted.extend(self.named(config).iter().filter_map(place));
        wanted
    }

    /// What settings name and nobody has bound.
    fn missing(&self, config: &Config) -> Vec<(Role, Addr)> {
        let mut found = self.wanted(config);
        found.sort_unstable();
        found.dedup();
        let mut is_there = |(role, asked): &(Role, Addr)| {
            let place = found.iter().position(|at| {
                let Listening { role: is_for, asked: is_at, .. } = &self.all[*at];
                is_for == role && is_at == asked
            });
            // Once: who names an address twice is told by the kernel that it is in use.
            place.map(|at| found.swap_remove(at)).is_some()
        };
        let mut named = self.named(config);
        named.retain(|named| !is_there(named));
        named
    }
}

fn adopt(number: usize, socket: &OwnedFd) -> Result<Addr, EngineError> {
    listen::adopt(socket).map_err(|why| EngineError::Inherited { number, why })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::dials::Dials;
    use dyno_sys::socket::SockOpt;
    use std::num::NonZeroU32;
    use std::os::fd::AsRawFd;

    fn config(listen: &[&str], workers: u32) -> Config {
        Config {
            listen: listen.iter().map(|addr| addr.parse().unwrap()).collect(),
            dials: Dials::for_workers(NonZeroU32::new(workers).unwrap()),
            ..Config::default()
        }
    }

    fn numbers(sockets: &Sockets) -> Vec<Vec<i32>> {
        let own = |(_, _, own): (Role, &Addr, &[OwnedFd])| own.iter().map(AsRawFd::as_raw_fd).collect();
        sockets.each().map(own).collect()
    }

    /// A port that was free a moment ago.
    fn free() -> String {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
    }

    #[test]
    fn an_address_that_is_named_again_keeps_its_sockets_and_others_come_and_go() {
        let path = std::env::temp_dir().join(format!("dyno-sockets-{}", std::process::id()));
        let file = format!("unix:{}", path.display());
        let (one, other) = (free(), free());
        let mut sockets = Sockets::default();
        let (old, new) = (config(&[&one, &file], 2), config(&[&other, &one], 2));
        sockets.prepare(&old).unwrap();
        let before = numbers(&sockets);
        assert_eq!((before[0].len(), before[1].len()), (2, 1), "of TCP each worker has its own");
        sockets.prepare(&new).unwrap();
        assert_eq!(numbers(&sockets)[..2], before);
        sockets.keep(&new);
        assert!(!path.exists());
        assert_eq!((numbers(&sockets).len(), &numbers(&sockets)[0]), (2, &before[0]));
        // What was refused leaves what there was before.
        assert!(sockets.prepare(&config(&[&one, "192.0.2.1:80"], 2)).is_err());
        sockets.take_back(&new);
        assert_eq!(numbers(&sockets).len(), 2);
        assert!(sockets.prepare(&config(&[&one, &one], 2)).is_err(), "named twice");
    }

    #[test]
    fn more_workers_get_more_sockets_and_fewer_accept_from_all() {
        let one = free();
        let dealt = |from: u32, to: u32| {
            let mut sockets = Sockets::default();
            sockets.prepare(&config(&[&one], from)).unwrap();
            let mut new = config(&[&one], to);
            sockets.prepare(&new).unwrap();
            let dealt = sockets.deal(&mut new).unwrap();
            let counts: Vec<usize> = dealt.by_worker.iter().map(Vec::len).collect();
            (counts, new.dials.reuseport)
        };
        assert_eq!(dealt(2, 3), (vec![1, 1, 1], Reuseport::Hash));
        assert_eq!(dealt(3, 2), (vec![2, 1], Reuseport::Hash));
        assert_eq!(dealt(3, 1), (vec![3], Reuseport::Off));
        // One socket is shared from then on.
        assert_eq!(dealt(1, 2), (vec![1, 1], Reuseport::Off));
    }

    /// Planted fault: `join` listens, so that sockets of a generation that has nobody yet are given connections.
    #[test]
    fn sockets_for_more_workers_listen_when_these_begin_and_go_when_they_are_refused() {
        let one = free();
        let mut sockets = Sockets::default();
        sockets.prepare(&config(&[&one], 2)).unwrap();
        let listening = |sockets: &Sockets| -> Vec<i32> {
            let (_, _, own) = sockets.each().next().unwrap();
            own.iter().map(|own| socket::int_option(own, SockOpt::AcceptConn).unwrap()).collect()
        };
        sockets.prepare(&config(&[&one], 4)).unwrap();
        assert_eq!(listening(&sockets), [1, 1, 0, 0]);
        sockets.take_back(&config(&[&one], 2));
        assert_eq!(listening(&sockets), [1, 1]);
        let mut new = config(&[&one], 4);
        sockets.prepare(&new).unwrap();
        let copies = sockets.all[0].sockets.iter().map(|own| own.try_clone().unwrap()).collect();
        sockets.keep(&new);
        listen::begin(&[copies]).unwrap();
        assert_eq!(listening(&sockets), [1, 1, 1, 1]);
        new.dials.reuseport = Reuseport::Cpu;
        assert_eq!(sockets.deal(&mut new).unwrap().steered, [0]);
    }

    #[test]
    fn metrics_have_a_socket_of_their_own() {
        let mut sockets = Sockets::default();
        let mut config = Config { metrics: Some(free().parse().unwrap()), ..config(&[&free()], 1) };
        sockets.prepare(&config).unwrap();
        let dealt = sockets.deal(&mut config).unwrap();
        assert_eq!((dealt.addrs.len(), dealt.by_worker[0].len()), (1, 1));
        assert_eq!(dealt.metrics.map(|(addr, _)| addr), config.metrics);
    }
}
