//! Limits of one address: its connections, and its requests per second, in one worker.
//!
//! A table of fixed size, made at the start, without lock or allocation afterwards. IPv4 counts by address, IPv6 by its
//! /64, which is what one customer gets (RFC 6177). Requests are paced by the generic cell rate algorithm: one moment is
//! kept per address, no counter that must be aged. Where all places that an address could have are taken by others with
//! open connections, it is let in uncounted, and that is counted: a full table must not lock honest clients out.
//!
//! Invariants: *a place is one address's*; *connections are given back once*.

use crate::clients::AddressLimits;
use crate::fault::{Fault, planted};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

const SECOND_NS: u64 = 1_000_000_000;

/// Places that an address can have: four cache lines of a table, so that a lookup is bounded however full it is.
const WAYS: usize = 8;

/// The upper half of a key of IPv4: within ff00::/8, multicast, from which nothing is sent.
const V4: u64 = 0xffff_ffff_0000_0000;

/// What an address is known by; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key(u64);

impl Key {
    fn of(address: IpAddr) -> Key {
        let bits = match address.to_canonical() {
            IpAddr::V4(four) => V4 | u64::from(four.to_bits()),
            // The upper half: the /64.
            IpAddr::V6(six) if planted(Fault::WholeAddressCounted) => six.to_bits() as u64,
            IpAddr::V6(six) => (six.to_bits() >> 64) as u64,
        };
        // ::1 is in ::/64, whose bits are 0; the highest number is no sender's.
        Key(bits.wrapping_add(1))
    }
}

/// One address.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// 0: nobody's.
    key: u64,
    /// When its next request is in time.
    next_ns: u64,
    connections: u32,
}

/// Whether something may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    Yes,
    No,
}

/// The addresses of a worker.
pub(crate) struct Addresses {
    places: Box<[Place]>,
    hasher: RandomState,
    connections_max: u32,
    /// Nanoseconds between two requests; 0 without a limit.
    interval_ns: u64,
    /// How much earlier than paced a request may be.
    burst_ns: u64,
    /// Times that an address found no place.
    pub(crate) uncounted: u64,
}

impl Addresses {
    pub(crate) fn new(limits: &AddressLimits) -> Addresses {
        let sets = limits.addresses_max.div_ceil(WAYS).next_power_of_two();
        let interval_ns = limits.requests_per_second.map_or(0, |rate| SECOND_NS / u64::from(rate.get()));
        let burst = limits.burst.or(limits.requests_per_second);
        let burst = burst.map_or(1, |burst| u64::from(burst.get()));
        Addresses {
            places: vec![Place::default(); sets * WAYS].into_boxed_slice(),
            hasher: RandomState::new(),
            connections_max: limits.connections_max.map_or(u32::MAX, std::num::NonZeroU32::get),
            interval_ns,
            burst_ns: (burst - 1).saturating_mul(interval_ns),
            uncounted: 0,
        }
    }

    /// A connection of this address was accepted.
    pub(crate) fn connect(&mut self, address: IpAddr, now_ns: u64) -> May {
        let max = self.connections_max;
        let Some(place) = self.place(address, now_ns) else { return unplaced() };
        if place.connections >= max {
            return May::No;
        }
        place.connections += 1;
        May::Yes
    }

    /// One that was let in has ended.
    pub(crate) fn disconnect(&mut self, address: IpAddr) {
        let key = Key::of(address);
        if let Some(place) = self.set(key).iter_mut().find(|place| place.key == key.0) {
            // It may have been let in uncounted.
            place.connections = place.connections.saturating_sub(1);
        }
    }

    /// A request of this address has come.
    pub(crate) fn request(&mut self, address: IpAddr, now_ns: u64) -> May {
        let (interval_ns, burst_ns) = (self.interval_ns, self.burst_ns);
        let burst_ns = if planted(Fault::OneTooMany) { burst_ns + interval_ns } else { burst_ns };
        if interval_ns == 0 {
            return May::Yes;
        }
        let Some(place) = self.place(address, now_ns) else { return unplaced() };
        if place.next_ns > now_ns.saturating_add(burst_ns) {
            return May::No;
        }
        let has_rested = place.next_ns < now_ns;
        place.next_ns = place.next_ns.max(now_ns) + interval_ns;
        if planted(Fault::NotRefilled) && has_rested {
            place.next_ns += burst_ns;
        }
        May::Yes
    }

    /// The place of an address, given to it where it has none: an empty one, else that of the address which may ask again
    /// soonest among those without connections.
    fn place(&mut self, address: IpAddr, now_ns: u64) -> Option<&mut Place> {
        let key = Key::of(address);
        let set = self.set(key);
        debug_assert!(
            set.iter().filter(|place| place.key == key.0).count() <= 1,
            "a place is one address's, and an address has one"
        );
        let own = set.iter().position(|place| place.key == key.0);
        let found = own.or_else(|| {
            let free = (0..WAYS).filter(|at| set[*at].connections == 0 || planted(Fault::PlaceTaken));
            let at = free.min_by_key(|at| if set[*at].key == 0 { 0 } else { set[*at].next_ns.max(1) })?;
            set[at] = Place { key: key.0, next_ns: now_ns, connections: 0 };
            Some(at)
        });
        match found {
            // The set is asked for anew, because the borrow above must end.
            Some(at) => self.set(key).get_mut(at),
            None => {
                self.uncounted += 1;
                None
            }
        }
    }

    fn set(&mut self, key: Key) -> &mut [Place] {
        // The hash is keyed anew at each start: who chooses addresses cannot choose their places.
        let sets = self.places.len() / WAYS;
        let set = self.hasher.hash_one(key.0) as usize & (sets - 1);
        &mut self.places[set * WAYS..(set + 1) * WAYS]
    }
}

/// What comes of an address that has found no place.
fn unplaced() -> May {
    if planted(Fault::FullTableRefuses) { May::No } else { May::Yes }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::num::NonZeroU32;

    fn some(number: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(number)
    }

    fn addresses(connections: u32, rate: u32, burst: u32, max: usize) -> Addresses {
        Addresses::new(&AddressLimits {
            connections_max: some(connections),
            requests_per_second: some(rate),
            burst: some(burst),
            addresses_max: max,
        })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_so_many_connections_and_no_more() {
        let mut table = addresses(2, 0, 0, 100);
        let (one, other) = (ip("127.0.0.1"), ip("127.0.0.2"));
        assert_eq!([0; 3].map(|_| table.connect(one, 0)), [May::Yes, May::Yes, May::No]);
        assert_eq!(table.connect(other, 0), May::Yes);
        table.disconnect(one);
        assert_eq!((table.connect(one, 0), table.connect(one, 0)), (May::Yes, May::No));
    }

    #[test]
    fn six_is_counted_by_its_64_and_four_in_six_is_four() {
        let mut table = addresses(1, 0, 0, 100);
        assert_eq!(table.connect(ip("2001:db8::1"), 0), May::Yes);
        assert_eq!(table.connect(ip("2001:db8::ffff:2"), 0), May::No);
        assert_eq!(table.connect(ip("2001:db8:0:1::1"), 0), May::Yes);
        assert_eq!(table.connect(ip("192.0.2.1"), 0), May::Yes);
        assert_eq!(table.connect(ip("::ffff:192.0.2.1"), 0), May::No);
        assert_eq!((table.connect(ip("::1"), 0), table.connect(ip("::1"), 0)), (May::Yes, May::No));
    }

    #[test]
    fn requests_are_paced_after_a_burst() {
        let mut table = addresses(0, 10, 3, 100);
        let mut at_ms = |ms: u64| table.request(ip("192.0.2.1"), SECOND_NS + ms * 1_000_000);
        assert_eq!([0, 0, 0, 0].map(&mut at_ms), [May::Yes, May::Yes, May::Yes, May::No]);
        assert_eq!([99, 100, 150, 200].map(&mut at_ms), [May::No, May::Yes, May::No, May::Yes]);
        assert_eq!([9_000; 4].map(&mut at_ms), [May::Yes, May::Yes, May::Yes, May::No]);
    }

    #[test]
    fn without_a_rate_nothing_is_paced() {
        let mut table = addresses(1, 0, 0, 100);
        assert!((0..1_000).all(|_| table.request(ip("192.0.2.1"), 0) == May::Yes));
    }

    #[test]
    fn a_table_that_is_full_lets_in_uncounted_and_forgets_who_is_gone() {
        let mut table = addresses(1, 1, 1, WAYS);
        let nth = |number: u32| IpAddr::from(number.to_be_bytes());
        let in_all = 10 * WAYS as u32;
        assert!((1..=in_all).all(|number| table.connect(nth(number), 0) == May::Yes));
        assert_eq!(table.uncounted, u64::from(in_all) - WAYS as u64);
        (1..=in_all).for_each(|number| table.disconnect(nth(number)));
        assert!(table.places.iter().all(|place| place.connections == 0));
        assert_eq!((table.connect(nth(999), 0), table.connect(nth(999), 0)), (May::Yes, May::No));
    }

    #[test]
    fn connections_and_disconnections_in_any_order_match_a_plain_map() {
        use std::collections::BTreeMap;
        let mut rng = dyno_measure::prng::Prng::new(7);
        let (mut table, mut model) = (addresses(3, 0, 0, 4_096), BTreeMap::<u32, u32>::new());
        for _ in 0..20_000 {
            let number = 1 + rng.below(50) as u32;
            let held = model.entry(number).or_default();
            if rng.coin() {
                let may = table.connect(IpAddr::from(number.to_be_bytes()), 0);
                assert_eq!(may == May::Yes, *held < 3, "{number}");
                *held += u32::from(may == May::Yes);
            } else if *held > 0 {
                table.disconnect(IpAddr::from(number.to_be_bytes()));
                *held -= 1;
            }
        }
        assert_eq!(table.uncounted, 0);
    }
}
