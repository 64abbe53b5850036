//! What the master orders a supervisor to do, and what it hears of it: a packet each, over the channel between them.

use dyno_sys::socket::{self, Io};
use std::os::fd::OwnedFd;

/// Bytes of a packet: a reason is cut at this.
const PACKET_BYTES_MAX: usize = 4_096;

/// What a report of a failure begins with.
const FAILED: &str = "failed ";

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Another generation serves: answer what was accepted, in as much time as it takes.
    Retire,
    /// The server ends: answer what was accepted, before the deadline.
    Drain,
    /// End at once.
    End,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// So many workers accept connections.
    Ready {
        /// How many.
        workers: usize,
    },
    /// It could not start, for this reason.
    Failed(String),
    /// It is alive.
    Alive,
}

impl Order {
    const ALL: [(Order, &[u8]); 3] =
        [(Order::Retire, b"retire"), (Order::Drain, b"drain"), (Order::End, b"end")];

    /// Gives the order. Who cannot be told is gone, which is found elsewhere.
    pub(crate) fn send(self, to: &OwnedFd) {
        let word = Order::ALL.iter().find(|(order, _)| *order == self).map(|(_, word)| *word);
        let _ = socket::send(to, word.expect("every order has its word"));
    }

    /// The next order; `None` when there is none. The end of the channel is an order to end.
    pub(crate) fn receive(from: &OwnedFd) -> Option<Order> {
        let mut bytes = [0; 16];
        match socket::recv(from, &mut bytes) {
            Io::Done(length) => {
                let found = Order::ALL.iter().find(|(_, word)| *word == &bytes[..length]);
                Some(found.map_or(Order::End, |(order, _)| *order))
            }
            Io::WouldBlock => None,
            Io::Closed | Io::Failed(_) => Some(Order::End),
        }
    }
}

impl Report {
    /// Sends it. A master that takes nothing any more is gone, and its end ends this process.
    pub(crate) fn send(&self, to: &OwnedFd) {
        let mut text = match self {
            Report::Ready { workers } => format!("ready {workers}"),
            Report::Failed(why) => format!("{FAILED}{why}"),
            Report::Alive => "alive".to_owned(),
        };
        text.truncate(text.floor_char_boundary(PACKET_BYTES_MAX));
        let _ = socket::send(to, text.as_bytes());
    }

    /// The next report; `None` when there is none. The end of the channel is told by the process's death.
    pub(crate) fn receive(from: &OwnedFd) -> Option<Report> {
        let mut bytes = [0; PACKET_BYTES_MAX];
        let Io::Done(length) = socket::recv(from, &mut bytes) else { return None };
        let text = String::from_utf8_lossy(&bytes[..length]);
        match text.strip_prefix("ready ").and_then(|number| number.parse().ok()) {
            Some(workers) => Some(Report::Ready { workers }),
            None => Some(match text.strip_prefix(FAILED) {
                Some(why) => Report::Failed(why.to_owned()),
                None => Report::Alive,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn orders_and_reports_arrive_as_they_were_sent() {
        let (ours, theirs) = socket::pair().unwrap();
        for (order, _) in Order::ALL {
            order.send(&ours);
            assert_eq!(Order::receive(&theirs), Some(order));
        }
        assert_eq!(Order::receive(&theirs), None);
        let why = "cannot listen on 127.0.0.1:80: in use".to_owned();
        for report in [Report::Ready { workers: 12 }, Report::Failed(why), Report::Alive] {
            report.send(&theirs);
            assert_eq!(Report::receive(&ours), Some(report));
        }
        assert_eq!(Report::receive(&ours), None);
        Report::Failed("ü".repeat(PACKET_BYTES_MAX)).send(&theirs);
        assert!(matches!(Report::receive(&ours), Some(Report::Failed(why)) if why.ends_with('ü')));
    }

    #[test]
    fn a_master_that_is_gone_and_a_word_that_is_none_are_an_order_to_end() {
        let (ours, theirs) = socket::pair().unwrap();
        assert_eq!(socket::send(&ours, b"dance"), Io::Done(5));
        assert_eq!(Order::receive(&theirs), Some(Order::End));
        drop(ours);
        assert_eq!(Order::receive(&theirs), Some(Order::End));
    }
}
