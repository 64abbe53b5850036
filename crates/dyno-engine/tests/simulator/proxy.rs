//! A proxy in front of some simulations: each connection begins with a header of the PROXY protocol, which is cut anywhere
//! like all that follows it, and which the model knows nothing of.

use crate::clients::{AddressLimits, Clients, ToldBy};
use crate::gate::Gate;
use dyno_measure::Prng;

/// One simulation in so many has a proxy.
const ONE_IN: u64 = 4;

/// A proxy and its chances.
pub(crate) struct Proxy {
    chance: Prng,
}

impl Proxy {
    /// The proxy of this simulation, if it has one.
    pub(crate) fn by_chance(seed: u64) -> Option<Proxy> {
        let mut chance = Prng::new(seed ^ 0x0070_726f_7879);
        (chance.below(ONE_IN) == 0).then_some(Proxy { chance })
    }

    /// The server's gate: peers without an address, which all are here, are its proxy.
    pub(crate) fn gate() -> Option<Gate> {
        let clients = Clients { told_by: ToldBy::ProxyProtocol, trusted: Vec::new(), trusts_unix: true };
        Gate::new(&AddressLimits::default(), &clients)
    }

    /// What it says in front of a connection.
    pub(crate) fn header(&mut self) -> Vec<u8> {
        const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
        let [a, b, c, d] = [(); 4].map(|()| self.chance.below(256) as u8);
        match self.chance.below(4) {
            0 => format!("PROXY TCP4 {a}.{b}.{c}.{d} 192.0.2.1 {} 80\r\n", self.chance.below(65_536))
                .into_bytes(),
            1 => b"PROXY UNKNOWN\r\n".to_vec(),
            2 => [SIGNATURE, b"\x20\x00\x00\x00"].concat(),
            _ => {
                let more = self.chance.below(300) as usize;
                let length = (12 + 3 + more) as u16;
                let addresses = [a, b, c, d, 192, 0, 2, 1, 0, 99, 0, 80];
                // A piece that a vendor adds, with bytes that look like anything.
                let added = [&[0xe0][..], &(more as u16).to_be_bytes(), &vec![d; more]].concat();
                [SIGNATURE, b"\x21\x11", &length.to_be_bytes(), &addresses, &added].concat()
            }
        }
    }
}
