//! Orders to a running server: one text packet each, one answered packet each, over an inherited SOCK_SEQPACKET socket.
//!
//! `counters` tells the figures of all workers; `set spin 200` turns the one dial that can be turned live. The
//! supervisor calls this when the socket is readable.

use crate::dials::Spin;
use crate::stats::Counters;
use dyno_sys::socket::{self, Io};
use std::os::fd::OwnedFd;

/// Bytes of an order: the longest is a few words.
const ORDER_BYTES_MAX: usize = 256;

/// Orders taken in one go, so that a flood of them does not keep the supervisor from its workers.
const ORDERS_MAX: usize = 64;

/// Whether the other end is still there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    There,
    Gone,
}

/// Answers the orders that have come.
pub(crate) fn serve(socket: &OwnedFd, counters: &Counters) -> Peer {
    let mut order = [0; ORDER_BYTES_MAX];
    for _ in 0..ORDERS_MAX {
        match socket::recv(socket, &mut order) {
            Io::Done(length) => {
                let text = answer(&String::from_utf8_lossy(&order[..length]), counters);
                // A full socket means that nobody reads answers: the order was carried out all the same.
                let _ = socket::send(socket, text.as_bytes());
            }
            Io::WouldBlock => return Peer::There,
            Io::Closed | Io::Failed(_) => return Peer::Gone,
        }
    }
    Peer::There
}

/// Carries an order out and says what came of it: `ok`, the figures, or `error: …`.
fn answer(order: &str, counters: &Counters) -> String {
    let words: Vec<&str> = order.split_ascii_whitespace().collect();
    match words[..] {
        ["counters"] => counters.total().to_string(),
        ["set", "spin", word] => match word.parse::<Spin>() {
            Ok(spin) => {
                counters.set_spin(spin.us());
                "ok".to_owned()
            }
            Err(error) => format!("error: {error}"),
        },
        ["set", dial, _] => format!("error: dial {dial} cannot be turned while the server runs; spin can"),
        _ => "error: the orders are \"counters\" and \"set spin MICROSECONDS\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn each_order_gets_its_answer_and_the_end_is_noticed() {
        let counters = Counters::new(1, 0).unwrap();
        let (ours, theirs) = socket::pair().unwrap();
        for (order, expected) in [
            ("set spin 200", "ok"),
            ("counters\n", "requests=0 "),
            ("set spin x", "error: dial spin cannot be \"x\""),
            ("set log off", "error: dial log cannot be turned while"),
            ("dance", "error: the orders are"),
        ] {
            assert_eq!(socket::send(&theirs, order.as_bytes()), Io::Done(order.len()));
            assert_eq!(serve(&ours, &counters), Peer::There);
            let mut text = [0; 512];
            let Io::Done(length) = socket::recv(&theirs, &mut text) else { panic!("no answer to {order}") };
            let text = String::from_utf8_lossy(&text[..length]);
            assert!(text.starts_with(expected), "{order}: {text}");
        }
        assert_eq!(counters.spin().load(Ordering::Relaxed), 200);
        drop(theirs);
        assert_eq!(serve(&ours, &counters), Peer::Gone);
    }
}
