//! Heads of requests: no outcome depends on where the bytes were cut, and what is accepted the oracle reads in the same way.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/dyno-proto/tests/http1/support.rs"]
mod support;

#[path = "../../crates/dyno-proto/tests/http1/oracle.rs"]
#[allow(unused_imports)]
mod oracle;

use dyno_proto::http1::request::Limits;
use libfuzzer_sys::fuzz_target;
use support::{Outcome, read_within};

// The first byte says where it is cut and which limits hold.
fuzz_target!(|data: &[u8]| {
    let Some((&way, bytes)) = data.split_first() else { return };
    let small = Limits { line_bytes_max: 60, head_bytes_max: 200, headers_max: 6 };
    let limits = if way & 1 == 0 { Limits::default() } else { small };
    let whole = read_within(bytes, &limits);
    let cut = usize::from(way >> 1) * (bytes.len() + 1) / 128;
    let part = read_within(&bytes[..cut], &limits);
    assert!(part == Outcome::NeedMore || part == whole, "cut at {cut}: {part:?}, then {whole:?}");
    if let Outcome::Whole(request) = &whole {
        if has_known_version(&bytes[..request.used]) {
            oracle::agree(bytes, request);
        }
        assert_eq!(read_within(&bytes[..request.used], &limits), whole, "what follows a head changes it");
    }
});

/// The oracle knows no minor version after 1.1; they are read as 1.1 (RFC 9110 §2.5).
fn has_known_version(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let line = lines.into_iter().find(|line| !line.is_empty());
    line.is_some_and(|line| line.ends_with(b" HTTP/1.0") || line.ends_with(b" HTTP/1.1"))
}
