//! Chunked bodies: what comes out does not depend on how the bytes were cut.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/dyno-proto/tests/http1/support.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::{Body, decode};

fuzz_target!(|data: &[u8]| {
    let Some((&at, bytes)) = data.split_first() else { return };
    let whole = decode([bytes]);
    let cut = usize::from(at) * (bytes.len() + 1) / 256;
    assert_eq!(decode([&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    assert_eq!(decode(bytes.chunks(1)), whole, "byte by byte");
    if let Body::Whole { used, data } = whole {
        assert!(used <= bytes.len() && data.len() < used);
    }
});
