//! What a gate decides for the protocol: a proxy's header in front of a connection, and requests that are too many.
//!
//! Nothing of this is called where a worker has no gate.

use super::{Digest, End, Http1, Turn};
use crate::addresses::May;
use crate::conn::Client;
use crate::fault::{Fault, planted};
use crate::gate::Header;
use crate::seam::Net;
use dyno_proto::http1::request::Head;

impl Http1 {
    /// Whether the address that asks has asked too often.
    #[inline(always)] // Without a gate nothing is left of it.
    pub(super) fn is_too_many<N: Net>(&self, turn: &mut Turn<'_, N>, head: &Head<'_>) -> bool {
        let peer = turn.conn.peer;
        let is_it = turn.net.gate().is_some_and(|gate| gate.request(head, peer) == May::No);
        if is_it && let Some(meter) = turn.net.meter() {
            meter.figures.requests_limited += 1;
        }
        is_it
    }

    /// Reads a proxy's header: its bytes, or how the turn ends without any of a request.
    #[cold]
    pub(super) fn take_header<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        input: &[u8],
    ) -> Result<usize, Digest> {
        let broken = Digest { used: input.len(), end: End::Broken };
        let Some(gate) = turn.net.gate() else { return Ok(0) };
        match gate.header(input, self.http_limits.head_bytes_max) {
            Header::NeedMore => Err(Digest { used: 0, end: End::More }),
            Header::Wrong if planted(Fault::WrongHeaderPassed) => {
                turn.conn.client = Client::Known;
                Ok(0)
            }
            Header::Wrong => {
                self.scratch.counts().rejects += 1;
                Err(broken)
            }
            Header::Whole { client: None, used } => {
                // The proxy asks for itself, as for a health check.
                turn.conn.client = Client::Known;
                Ok(used)
            }
            Header::Whole { client, used } => {
                if gate.connect(client) == May::No {
                    // The peer stays the proxy, which nobody counts: this connection is not given back.
                    turn.conn.client = Client::TooMany;
                    if planted(Fault::PlaceGivenTwice) {
                        turn.conn.peer = client;
                    }
                    return Err(broken);
                }
                (turn.conn.peer, turn.conn.client) = (client, Client::Known);
                Ok(used)
            }
        }
    }
}
