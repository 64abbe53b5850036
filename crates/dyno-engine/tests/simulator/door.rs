//! The door of some simulations: addresses with limits, and proxies that say who is behind them, by a header of the PROXY
//! protocol in front of each connection, cut anywhere like all that follows it, or by a field of each request. Beside it a
//! plain model of whose a connection and a request is and when there are too many, from docs/manual/operations.md alone.
//!
//! The model knows no moment at which a request was looked at. So what it asserts of requests holds for a whole simulation:
//! an address never gets more answers than its burst and its rate allow for all of that time, and none is limited that has
//! not asked as often as its burst.

use crate::addresses::May;
use crate::clients::{AddressLimits, Clients, ToldBy};
use crate::gate::Gate;
use crate::meter::{Meter, Meters};
use crate::model::Request;
use dyno_measure::Prng;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroU32;

/// One simulation in so many has a door.
const ONE_IN: u64 = 3;

/// The proxy that is trusted, as everybody who comes over a socket's file.
const PROXY: &str = "10.0.0.9";
const TRUSTED: &str = "10.0.0.0/8";

/// Few enough that they meet, and that the table never lacks room. Two are in one /64, one is an address of IPv4.
const ADDRESSES: [&str; 6] = [
    "192.0.2.1",
    "192.0.2.2",
    "2001:db8:0:1::1",
    "2001:db8:0:1:ffff::2",
    "2001:db8:0:2::1",
    "::ffff:192.0.2.1",
];

/// Places of a table that others fill: its least.
const PLACES: usize = 8;

/// What is counted as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

/// A door and its chances.
pub(crate) struct Door {
    chance: Prng,
    told_by: ToldBy,
    /// Whose connections and requests meet oftenest.
    usual: &'static str,
    /// Connections that one address may have.
    pub(crate) connections_max: Option<u32>,
    /// Requests that one may send at once; one a second afterwards.
    burst: Option<u32>,
    /// The limits as they are told, where others have taken every place of the table: then nobody is limited.
    untold: Option<(Option<u32>, Option<u32>)>,
    /// When requests were let in, and how many.
    let_in: Vec<(u64, u64)>,
}

/// Who comes: as the kernel says, and what a proxy says in front.
pub(crate) struct Comer {
    pub(crate) peer: Option<IpAddr>,
    pub(crate) header: Vec<u8>,
    /// The header is none: nothing of the connection is answered.
    pub(crate) is_wrong: bool,
    /// Whose the connection is, once its header is read.
    pub(crate) named: Option<IpAddr>,
}

impl Comer {
    /// Where there is no door.
    pub(crate) fn unknown() -> Comer {
        Comer { peer: None, header: Vec::new(), is_wrong: false, named: None }
    }
}

impl Door {
    /// The door of this simulation, if it has one. Chances of its own, so that the same seed does all else as it does
    /// without.
    pub(crate) fn by_chance(seed: u64) -> Option<Door> {
        let mut chance = Prng::new(seed ^ 0x0064_6f6f_7221);
        if chance.below(ONE_IN) > 0 {
            return None;
        }
        let told_by = match chance.below(6) {
            0..3 => ToldBy::ProxyProtocol,
            3 => ToldBy::XForwardedFor,
            4 => ToldBy::Forwarded,
            _ => ToldBy::Nobody,
        };
        let connections_max = (chance.below(3) > 0).then(|| 1 + chance.below(2) as u32);
        let burst = chance.coin().then(|| 1 + chance.below(8) as u32);
        let usual = any_address(&mut chance);
        let is_full = chance.below(6) == 0;
        let untold = is_full.then_some((connections_max, burst));
        let (connections_max, burst) = if is_full { (None, None) } else { (connections_max, burst) };
        Some(Door { chance, told_by, usual, connections_max, burst, untold, let_in: Vec::new() })
    }

    pub(crate) fn gate(&self) -> Option<Gate> {
        let some = |number: Option<u32>| number.and_then(NonZeroU32::new);
        let (connections_max, burst) = self.untold.unwrap_or((self.connections_max, self.burst));
        let limits = AddressLimits {
            connections_max: some(connections_max),
            requests_per_second: some(burst.map(|_| 1)),
            burst: some(burst),
            addresses_max: if self.untold.is_some() { PLACES } else { 64 },
        };
        let trusted = vec![TRUSTED.parse().expect("it is a network")];
        let mut gate = Gate::new(&limits, &Clients { told_by: self.told_by, trusted, trusts_unix: true })?;
        if self.untold.is_some() {
            // As many others as there are places, who stay.
            for number in 0..PLACES {
                let other = format!("198.51.100.{number}").parse().ok();
                assert_eq!(gate.connect(other), May::Yes, "there is a place for each");
            }
        }
        Some(gate)
    }

    /// Whether every place is taken of a table in which there would be something to count.
    pub(crate) fn is_full(&self) -> bool {
        self.untold.is_some_and(|(connections_max, burst)| connections_max.or(burst).is_some())
    }

    /// A turn has asked the gate so often, and so many requests were too many. Whoever is limited has, since it last had all
    /// of its burst, asked for all of it and for what was refilled: here of all addresses together, so that it holds for
    /// whichever it was.
    pub(crate) fn note_turn(&mut self, now_ns: u64, asked: u64, limited: u64) {
        self.let_in.push((now_ns, asked - limited));
        let Some(burst) = self.burst.filter(|_| limited > 0) else { return };
        let mut asked = 0;
        let has_asked = self.let_in.iter().rev().any(|(then_ns, count)| {
            asked += count;
            asked as f64 - (now_ns - then_ns) as f64 / 1e9 > f64::from(burst) - 1.001
        });
        assert!(has_asked, "somebody is limited whose burst of {burst} was refilled");
    }

    /// What counts beside it. Rows are mapped for the life of the process, and this one is never written.
    pub(crate) fn meter() -> Meter {
        thread_local! {
            static METERS: Meters = Meters::new(1).expect("a row can be mapped");
        }
        METERS.with(|meters| Meter::new(*meters, 0))
    }

    /// Another one who comes.
    pub(crate) fn comer(&mut self) -> Comer {
        let peer = match self.chance.below(4) {
            0 => None,
            1 => Some(PROXY),
            _ if self.told_by == ToldBy::ProxyProtocol && self.chance.coin() => Some(PROXY),
            _ => Some(self.address()),
        };
        let peer = peer.map(ip);
        if self.told_by != ToldBy::ProxyProtocol || !is_trusted(peer) {
            return Comer { peer, named: peer, ..Comer::unknown() };
        }
        if self.chance.below(12) == 0 {
            return Comer { peer, header: self.wrong_header(), is_wrong: true, named: None };
        }
        let source = match self.chance.below(8) {
            0 => None,
            1 => Some(PROXY),
            _ => Some(self.address()),
        };
        let named = source.map(ip);
        Comer { peer, header: self.header(named), is_wrong: false, named: named.or(peer) }
    }

    fn address(&mut self) -> &'static str {
        if self.chance.coin() { self.usual } else { any_address(&mut self.chance) }
    }

    /// What a proxy says in front of a connection.
    fn header(&mut self, source: Option<IpAddr>) -> Vec<u8> {
        const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
        let is_block = self.chance.coin();
        let Some(source) = source else {
            return if is_block {
                [SIGNATURE, b"\x20\x00\x00\x00"].concat()
            } else {
                b"PROXY UNKNOWN\r\n".to_vec()
            };
        };
        let port = self.chance.below(65_536) as u16;
        if !is_block {
            return match source {
                IpAddr::V4(four) => format!("PROXY TCP4 {four} 192.0.2.1 {port} 80\r\n"),
                IpAddr::V6(six) => format!("PROXY TCP6 {six} 2001:db8::1 {port} 80\r\n"),
            }
            .into_bytes();
        }
        let (family, mut addresses) = match source {
            IpAddr::V4(four) => (b"\x21\x11", [four.octets(), [192, 0, 2, 1]].concat()),
            IpAddr::V6(six) => (b"\x21\x21", [six.octets(), [1; 16]].concat()),
        };
        addresses.extend([port.to_be_bytes(), [0, 80]].concat());
        // A piece that a vendor adds, with bytes that look like anything.
        let more = self.chance.below(300) as u16;
        let added = [&[0xe0][..], &more.to_be_bytes(), &vec![port as u8; usize::from(more)]].concat();
        let length = (addresses.len() + added.len()) as u16;
        [SIGNATURE, family, &length.to_be_bytes(), &addresses, &added].concat()
    }

    fn wrong_header(&mut self) -> Vec<u8> {
        let wrong: [&[u8]; 8] = [
            b"",
            b"proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
            b"PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            b"PROXY TCP9 192.0.2.1 192.0.2.2 1 2\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x01\x00\x02",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x04\xc0\x00\x02\x01",
        ];
        wrong[self.chance.below(wrong.len() as u64) as usize].to_vec()
    }

    /// Puts what proxies say of their clients into requests, where they say it so; others write such fields too.
    pub(crate) fn name_clients(seed: u64, scripts: &mut [Vec<Vec<u8>>]) {
        let Some(mut door) = Door::by_chance(seed) else { return };
        for piece in scripts.iter_mut().flatten() {
            let Some(end) = piece.windows(2).position(|two| two == b"\r\n").filter(|end| *end > 0) else {
                continue;
            };
            let field = match door.told_by {
                ToldBy::XForwardedFor => "X-Forwarded-For",
                ToldBy::Forwarded => "Forwarded",
                ToldBy::Nobody | ToldBy::ProxyProtocol => return,
            };
            for _ in 0..door.chance.below(3) {
                let parts: Vec<String> = (0..=door.chance.below(2)).map(|_| door.part()).collect();
                let line = format!("\r\n{field}: {}", parts.join(", "));
                piece.splice(end..end, line.into_bytes());
            }
        }
    }

    fn part(&mut self) -> String {
        let name = match self.chance.below(6) {
            0 => "unknown",
            1 | 2 => PROXY,
            _ => self.address(),
        };
        match self.told_by {
            ToldBy::Forwarded if name.contains(':') => format!("for=\"[{name}]\""),
            ToldBy::Forwarded => format!("for={name}"),
            _ => name.to_owned(),
        }
    }

    /// Who asks, on a connection that is `named`'s. `None`: a proxy has said what the model does not know.
    fn client_of(&self, comer: &Comer, request: &Request) -> Option<Option<IpAddr>> {
        let field = match self.told_by {
            ToldBy::XForwardedFor => "X-Forwarded-For",
            ToldBy::Forwarded => "Forwarded",
            ToldBy::Nobody | ToldBy::ProxyProtocol => return Some(comer.named),
        };
        let mut client = comer.peer;
        let lines = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(field.as_bytes()));
        let lines: Vec<&[u8]> = lines.map(|(_, value)| value.as_slice()).collect();
        let text = String::from_utf8(lines.join(&b", "[..])).unwrap_or_default();
        if lines.is_empty() || !is_trusted(client) {
            return Some(client);
        }
        let bare = |part: &str| {
            let part = part.strip_prefix("for=").unwrap_or(part);
            part.trim_matches(['"', '[', ']']).to_owned()
        };
        let parts: Vec<String> = text.split(", ").map(bare).collect();
        let is_ours =
            |part: &String| ["unknown", PROXY].contains(&part.as_str()) || ADDRESSES.contains(&part.as_str());
        if !parts.iter().all(is_ours) {
            return None;
        }
        for part in parts.iter().rev().take_while(|part| *part != "unknown") {
            if is_trusted(client) {
                client = Some(ip(part));
            }
        }
        Some(client)
    }
}

fn any_address(chance: &mut Prng) -> &'static str {
    ADDRESSES[chance.below(ADDRESSES.len() as u64) as usize]
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("it is an address")
}

/// Whether it is never limited: a proxy, or one without an address.
fn is_trusted(address: Option<IpAddr>) -> bool {
    address.is_none_or(|address| address.to_string().starts_with("10."))
}

/// What is counted of an address, if anything is: an address of IPv4, or a /64.
pub(crate) fn key(address: Option<IpAddr>) -> Option<Key> {
    let address = address.filter(|_| !is_trusted(address))?;
    Some(Key(match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => four.to_string(),
            None => format!("{:x?}", &six.segments()[..4]),
        },
    }))
}

/// How often each address has asked in a simulation.
#[derive(Default)]
pub(crate) struct Ledger {
    answered: HashMap<Key, u32>,
    /// Those too that may have been looked at.
    asked: HashMap<Key, u32>,
    limited: HashSet<Key>,
    /// Requests of which it is not known whose they are.
    anybodys: u32,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    /// It was told 429.
    Limited,
    /// Nobody knows whether it was looked at.
    Lost,
}

impl Ledger {
    /// One more request.
    pub(crate) fn note(&mut self, door: &Door, comer: &Comer, request: &Request, outcome: Outcome) {
        let Some(client) = door.client_of(comer, request) else {
            self.anybodys += 1;
            return;
        };
        let Some(key) = key(client) else {
            return assert_ne!(outcome, Outcome::Limited, "{client:?} is not to be limited");
        };
        match outcome {
            Outcome::Limited => {
                self.limited.insert(key);
                return;
            }
            Outcome::Answered => *self.answered.entry(key.clone()).or_default() += 1,
            Outcome::Lost => {}
        }
        *self.asked.entry(key).or_default() += 1;
    }

    /// At the end of a simulation that lasted so long.
    pub(crate) fn check(&self, door: Option<&Door>, lasted_ns: u64) {
        let Some(burst) = door.and_then(|door| door.burst) else {
            return assert!(self.limited.is_empty(), "nobody is to be limited: {:?}", self.limited);
        };
        for key in &self.limited {
            let asked = self.asked.get(key).copied().unwrap_or(0) + self.anybodys;
            assert!(asked >= burst, "{key:?} was limited after {asked} requests, not {burst}");
        }
        for (key, answered) in &self.answered {
            let most = u64::from(burst) + lasted_ns / 1_000_000_000;
            assert!(
                u64::from(*answered) <= most,
                "{key:?} got {answered} answers of {most} in {lasted_ns} ns"
            );
        }
    }
}
