//! The other workers' listeners, for the time in which their own worker can hold no more connections.
//!
//! With a listener for each worker the kernel goes on giving connections to one that is full, and they would wait there
//! though others have room. So every worker holds a copy of all listeners; one that is full says so in shared memory and
//! signals, and those with room accept in its place until it has room again.

use crate::stats::{Accepting, Counters};
use dyno_sys::epoll::{Epoll, Interest};
use dyno_sys::event::EventFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Another worker.
struct Neighbour {
    number: usize,
    listeners: Vec<OwnedFd>,
    is_helped: bool,
}

/// The other workers, and how all are told that one is full, or no longer.
pub(crate) struct Neighbours {
    own: usize,
    counters: Counters,
    others: Vec<Neighbour>,
    /// Shared by all workers; it is signalled and never cleared, and watched for edges, so that each sees each signal.
    signal: Arc<EventFd>,
}

impl Neighbours {
    /// `others`: the number and the listeners of every other worker; empty where listeners are shared anyway.
    pub(crate) fn new(
        own: usize,
        counters: Counters,
        others: Vec<(usize, Vec<OwnedFd>)>,
        signal: Arc<EventFd>,
    ) -> Neighbours {
        let neighbour = |(number, listeners)| Neighbour { number, listeners, is_helped: false };
        assert!(others.iter().all(|(number, _)| *number != own), "a worker is not its own neighbour");
        if counters.accepting(own) != Accepting::Open {
            // A predecessor has left, and others accept in its place.
            counters.set_accepting(own, Accepting::Open);
            signal.signal();
        }
        Neighbours { own, counters, others: others.into_iter().map(neighbour).collect(), signal }
    }

    /// How many listeners of others are held here.
    pub(crate) fn descriptors(&self) -> usize {
        self.others.iter().map(|other| other.listeners.len()).sum()
    }

    /// Watches for signals.
    pub(crate) fn watch(&self, epoll: &Epoll, token: u64) -> io::Result<()> {
        epoll.add(&*self.signal, token, Interest::READ.edge())
    }

    /// Whether this worker accepts: the others and the supervisor are signalled when that has changed. Who leaves does so
    /// for good, whatever an event that came together with the order to leave would say.
    pub(crate) fn tell(&self, state: Accepting) {
        let before = self.counters.accepting(self.own);
        if before != state && before != Accepting::Leaving {
            self.counters.set_accepting(self.own, state);
            self.signal.signal();
        }
    }

    /// Watches the listeners of those who are full, and no others. A worker without room of its own helps nobody.
    /// `token` names a listener by its number among all of this.
    pub(crate) fn look(&mut self, epoll: &Epoll, has_room: bool, token: impl Fn(usize) -> u64) {
        let is_open = |worker| self.counters.accepting(worker) == Accepting::Open;
        let own = self.counters.accepting(self.own);
        // One that was stuck and has just got on is not said to be well yet.
        let is_able = matches!(own, Accepting::Open | Accepting::Stuck);
        debug_assert!(self.others.is_empty() || !has_room || is_able, "who is full helps nobody");
        let mut first = 0;
        for other in &mut self.others {
            let should_help = has_room && !is_open(other.number);
            for (at, listener) in other.listeners.iter().enumerate() {
                match (should_help, other.is_helped) {
                    // What cannot be watched waits for its own worker.
                    (true, false) => drop(epoll.add(listener, token(first + at), Interest::READ.exclusive())),
                    (false, true) => drop(epoll.remove(listener)),
                    _ => {}
                }
            }
            other.is_helped = should_help;
            first += other.listeners.len();
        }
    }

    /// A listener by its number.
    pub(crate) fn get(&self, at: usize) -> Option<BorrowedFd<'_>> {
        self.others.iter().flat_map(|other| &other.listeners).nth(at).map(AsFd::as_fd)
    }

    /// How many listeners there are.
    pub(crate) fn count(&self) -> usize {
        self.others.iter().map(|other| other.listeners.len()).sum()
    }

    /// This worker accepts no more for good: those with room accept in its place.
    pub(crate) fn leave(&self) {
        self.tell(Accepting::Leaving);
    }

    /// Lets go of them all. Closing alone would leave them watched: other processes have them open too (epoll(7), question 6).
    pub(crate) fn close(&mut self, epoll: &Epoll) {
        self.look(epoll, false, |_| 0);
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::epoll::{Events, Timeout};

    #[test]
    fn a_change_is_signalled_and_who_leaves_stays_gone() {
        let counters = Counters::new(1, 0).unwrap();
        counters.set_accepting(0, Accepting::Leaving);
        let signal = Arc::new(EventFd::new().unwrap());
        let neighbours = Neighbours::new(0, counters, Vec::new(), signal);
        let (epoll, mut events) = (Epoll::new().unwrap(), Events::with_capacity(2));
        neighbours.watch(&epoll, 7).unwrap();
        let mut is_signalled = || !epoll.wait(&mut events, Timeout::Poll).unwrap().is_empty();
        assert_eq!(counters.accepting(0), Accepting::Open, "a successor opens again");
        assert!(is_signalled(), "and those who helped hear of it");
        for (told, now, is_news) in [
            (Accepting::Open, Accepting::Open, false),
            (Accepting::Full, Accepting::Full, true),
            (Accepting::Full, Accepting::Full, false),
            (Accepting::Open, Accepting::Open, true),
            (Accepting::Leaving, Accepting::Leaving, true),
            (Accepting::Full, Accepting::Leaving, false),
            (Accepting::Open, Accepting::Leaving, false),
        ] {
            neighbours.tell(told);
            assert_eq!((counters.accepting(0), is_signalled()), (now, is_news), "told {told:?}");
        }
    }

    /// Planted fault: listeners are closed without being taken out of the epoll instance. Then whoever drains turns round and round
    /// for a connection that is another's to accept.
    #[test]
    fn who_has_helped_and_leaves_hears_no_more_of_anothers_connections() {
        let counters = Counters::new(2, 0).unwrap();
        let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let copy = OwnedFd::from(theirs.try_clone().unwrap());
        let signal = Arc::new(EventFd::new().unwrap());
        let mut neighbours = Neighbours::new(0, counters, vec![(1, vec![copy])], signal);
        let (epoll, mut events) = (Epoll::new().unwrap(), Events::with_capacity(2));
        counters.set_accepting(1, Accepting::Full);
        neighbours.look(&epoll, true, |_| 7);
        let _client = std::net::TcpStream::connect(theirs.local_addr().unwrap()).unwrap();
        let heard = |events: &mut Events| epoll.wait(events, Timeout::Millis(1_000)).unwrap().len();
        assert_eq!(heard(&mut events), 1, "it helps");
        neighbours.leave();
        neighbours.close(&epoll);
        assert_eq!(epoll.wait(&mut events, Timeout::Poll).unwrap().len(), 0);
    }
}
