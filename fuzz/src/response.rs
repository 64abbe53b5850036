//! Heads of responses, as the load generator reads them: no outcome depends on where the bytes were cut.
#![no_main]

use dyno_proto::http1::response::{Asked, Parsed, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&way, bytes)) = data.split_first() else { return };
    let asked = if way & 1 == 0 { Asked::Other } else { Asked::Head };
    let whole = parse(bytes, asked);
    let cut = usize::from(way >> 1) * (bytes.len() + 1) / 128;
    let part = parse(&bytes[..cut], asked);
    let undecided = matches!(part, Ok(Parsed::NeedMore));
    assert!(undecided || format!("{part:?}") == format!("{whole:?}"), "cut at {cut}: {part:?}, then {whole:?}");
});
