//! Paths and fields whose values strangers choose: nothing panics, and what is understood keeps its promises.
#![no_main]

use dyno_proto::client::{self, Field, proxy};
use dyno_proto::date::{self, DATE_BYTES};
use dyno_proto::semantics::coding::{Accepted, Coding, quality};
use dyno_proto::semantics::condition::{Compare, Listed, if_range_holds, lists};
use dyno_proto::semantics::range::{self, Parts};
use dyno_proto::{file_path, percent};
use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr};

const NOW_S: u64 = 1_700_000_000;
const TAG: &[u8] = b"\"0123abcd\"";

// The first byte chooses whose field it is, the second one is a number that some of them want.
fuzz_target!(|data: &[u8]| {
    let [which, number, value @ ..] = data else { return };
    match which % 8 {
        0 => ranges(value, u64::from(*number) * 37),
        1 => codings(value),
        2 => conditions(value),
        3 => files(value),
        4 => escapes(value),
        5 => forwarding(value, *number),
        6 => proxied(value, *number),
        _ => dates(value),
    }
});

fn ranges(value: &[u8], length: u64) {
    let mut parts = Parts::default();
    let asked = range::asked(value, length, &mut parts);
    if asked == range::Asked::Parts {
        let parts = parts.as_slice();
        assert!(!parts.is_empty() && parts.iter().all(|part| part.from < part.to && part.to <= length));
        assert!(parts.iter().map(|part| part.bytes()).sum::<u64>() <= length);
    }
}

fn codings(value: &[u8]) {
    let mut accepted = Accepted::default();
    accepted.add(value);
    let offers = [Coding::Br, Coding::Gzip, Coding::Identity];
    assert!(accepted.choose(offers).is_none_or(|coding| offers.contains(&coding)));
    assert!(quality(value).is_none_or(|thousandths| thousandths <= 1000));
}

fn conditions(value: &[u8]) {
    let (strong, weak) = (lists(value, TAG, Compare::Strong), lists(value, TAG, Compare::Weak));
    assert!(strong == Listed::No || weak == Listed::Yes, "a strong comparison holds where a weak one does not");
    let is_exact = if_range_holds(value, TAG, NOW_S, NOW_S);
    assert!(!is_exact || strong == Listed::Yes || date::parse(value, NOW_S) == Some(NOW_S));
}

fn files(path: &[u8]) {
    let mut name = Vec::new();
    if file_path::decode(path, &mut name).is_err() {
        return;
    }
    assert!(!name.contains(&0) && name.split(|byte| *byte == b'/').all(|part| part != b".."));
    assert!(!name.starts_with(b"/") && !name.windows(2).any(|two| two == b"//"));
    let (mut encoded, mut again) = (Vec::new(), Vec::new());
    file_path::encode(&name, &mut encoded);
    assert_eq!(file_path::decode(&encoded, &mut again), Ok(()));
    assert_eq!(again, name, "a Location would lead elsewhere");
}

fn escapes(raw: &[u8]) {
    let (mut decoded, mut once, mut twice) = (Vec::new(), Vec::new(), Vec::new());
    let is_whole = percent::decode(raw, &mut decoded).is_ok();
    assert!(!is_whole || decoded.len() <= raw.len());
    assert_eq!(percent::normalize(raw, &mut once).is_ok(), is_whole);
    if is_whole {
        assert_eq!(percent::normalize(&once, &mut twice), Ok(()));
        assert_eq!(once, twice, "what is normal is changed");
        twice.clear();
        assert_eq!(percent::decode(&once, &mut twice), Ok(()));
        assert_eq!(twice, decoded, "it means something else than before");
    }
}

fn forwarding(value: &[u8], trusted: u8) {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let lines = || value.split(|byte| *byte == b'\n');
    for field in [Field::XForwardedFor, Field::Forwarded] {
        assert_eq!(client::client(peer, field, lines(), |_| false), peer, "a stranger is believed");
        let is_trusted = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.is_loopback() || v4.octets()[3] < trusted,
            IpAddr::V6(_) => trusted & 1 == 1,
        };
        let _ = client::client(peer, field, lines(), is_trusted);
    }
}

fn proxied(bytes: &[u8], at: u8) {
    let whole = format!("{:?}", proxy::parse(bytes));
    let cut = usize::from(at) * (bytes.len() + 1) / 256;
    let part = format!("{:?}", proxy::parse(&bytes[..cut]));
    assert!(part == "Ok(NeedMore)" || part == whole, "cut at {cut}: {part}, then {whole}");
}

fn dates(value: &[u8]) {
    let _ = date::parse(value, NOW_S);
    if let Some((bytes, _)) = value.split_first_chunk::<8>() {
        let seconds = u64::from_le_bytes(*bytes) % 253_402_300_800;
        let text: [u8; DATE_BYTES] = date::imf_fixdate(seconds);
        assert_eq!(date::parse(&text, NOW_S), Some(seconds), "{}", text.escape_ascii());
    }
}
