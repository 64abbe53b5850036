//! Generations are started, take over from the one before, and may end before they could.

use super::generation::{Generation, Next, TOKENS};
use super::setup::Setup;
use super::sockets::Dealt;
use super::{Master, Stopping, successor};
use crate::config::Config;
use crate::error::{EngineError, chain, refused};
use crate::orders::{Order, Report};
use crate::route::Router;
use crate::stats::Counters;
use crate::supervisor::{self, Event, FAILED, Given, Life};
use dyno_sys::child::{self, Exit};
use dyno_sys::epoll::Interest;
use dyno_sys::{clock, socket};
use std::os::fd::OwnedFd;

impl Master<'_> {
    /// Forks a generation, of new settings or of those that are in force. It takes over when it says that it is ready.
    pub(super) fn start(
        &mut self,
        mut setup: Option<Setup>,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), EngineError> {
        assert!(self.next.is_none(), "one generation starts at a time");
        self.generations += 1;
        let number = self.generations;
        let counters = self.counters(setup.as_ref())?;
        let (ours, theirs) = socket::pair().map_err(refused("open a channel"))?;
        let mut ours = Some(ours);
        let pid = child::fork(|| {
            drop(ours.take());
            let setup = setup.as_mut().unwrap_or(&mut self.setup);
            let config = std::mem::take(&mut setup.config);
            let routes = std::mem::replace(&mut setup.routes, Box::new(Router::new));
            self.live((config, counters), &*routes, theirs, on_event)
        });
        let pid = pid.map_err(refused("fork a supervisor"))?;
        let channel = ours.expect("only the child has taken it");
        if let Some(ears) = &self.ears {
            // With edges: all that it says is read each time, and its end is told once, though it is reaped later.
            let watched = ears.epoll.add(&channel, TOKENS + number, Interest::READ.edge());
            watched.map_err(refused("watch a channel"))?;
        }
        let generation = Generation { number, pid, channel, counters };
        self.next = Some(Next { generation, setup, why: None });
        Ok(())
    }

    /// What the workers of these settings count in: what another generation has left, where it is as large.
    fn counters(&mut self, setup: Option<&Setup>) -> Result<Counters, EngineError> {
        let dials = &setup.unwrap_or(&self.setup).config.dials;
        let (workers, spin_us) = (dials.workers.get(), dials.spin.us());
        if let Some(at) = self.spare.iter().position(|counters| counters.rows() == workers) {
            let counters = self.spare.swap_remove(at);
            counters.reset(spin_us);
            return Ok(counters);
        }
        Counters::new(workers, spin_us).map_err(refused("share memory for counters"))
    }

    /// What the child does: it lets go of everything that is the master's, and supervises.
    fn live(
        &mut self,
        (mut config, counters): (Config, Counters),
        routes: &dyn Fn() -> Router,
        master: OwnedFd,
        on_event: &mut dyn FnMut(Event),
    ) -> i32 {
        self.ears = None;
        // With new settings: nobody opens anew here what was the old ones' error log.
        if let Some(errors) = self.setup.config.error_log.take() {
            errors.leave();
        }
        (self.current, self.next, self.successor, self.predecessor) = (None, None, None, None);
        self.old.clear();
        config.control = self.control.take();
        let ledger = self.ledger;
        match std::mem::take(&mut self.sockets).deal(&mut config) {
            Ok(Dealt { addrs, by_worker, metrics, steered }) => {
                let given = Given { config, addrs, by_worker, metrics, steered, master, ledger, counters };
                supervisor::live(given, routes, on_event)
            }
            Err(error) => {
                Report::Failed(chain(&error)).send(&master);
                on_event(Event::NotStarted { error });
                FAILED
            }
        }
    }

    /// The next generation serves: it is the current one from now on, and the one before retires.
    pub(super) fn take_over(&mut self, workers: usize, on_event: &mut dyn FnMut(Event)) {
        let Some(Next { generation, setup, .. }) = self.next.take() else { return };
        let (number, pid) = (generation.number, generation.pid);
        let before = self.current.replace(generation);
        let old = setup.map(|setup| std::mem::replace(&mut self.setup, setup));
        self.sockets.keep(&self.setup.config);
        self.place.life = Life::Running { pid, since_ns: clock::mono_ns(), orders: None };
        if let Some(old) = old {
            self.ledger.count_reload();
            on_event(Event::Reloaded {
                generation: number,
                workers,
                kept: kept(&old.config, &self.setup.config),
            });
        } else {
            on_event(Event::Ready { workers });
        }
        if let Some(before) = before {
            before.order(Order::Retire);
            self.old.push(before);
        }
        if let Some(predecessor) = self.predecessor.take() {
            // Nobody reads it when the predecessor has died: then there is nothing to hand over any more.
            let _ = socket::write(&predecessor, successor::READY);
        }
        self.do_asked(on_event);
    }

    /// A generation has ended before it was ready.
    pub(super) fn next_ended(
        &mut self,
        next: Next,
        exit: Exit,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), EngineError> {
        self.close_books(&next.generation, exit);
        let why = next.why.unwrap_or_else(|| format!("the supervisor ended: {exit}"));
        let is_first = self.current.is_none() && matches!(self.place.life, Life::Vacant);
        match next.setup {
            // It may have served already, and not been heard.
            _ if self.stopping != Stopping::No => self.cut_by(exit),
            Some(_) => self.refuse(why, on_event),
            None if is_first => return Err(EngineError::NotStarted { why }),
            None => self.put_off(),
        }
        self.do_asked(on_event);
        Ok(())
    }
}

/// What of new settings is not in force though they are: sockets that stay are as they were bound.
fn kept(old: &Config, new: &Config) -> Vec<&'static str> {
    let stays = new.listen.iter().any(|addr| old.listen.contains(addr));
    let differs = [
        ("reuseport", old.dials.reuseport != new.dials.reuseport && old.dials.workers == new.dials.workers),
        ("congestion", old.dials.congestion != new.dials.congestion),
        ("socket_mode", old.socket_mode != new.socket_mode),
    ];
    differs.into_iter().filter(|(_, differs)| stays && *differs).map(|(name, _)| name).collect()
}
