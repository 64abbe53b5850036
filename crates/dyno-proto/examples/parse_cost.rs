//! Reads one request again and again, for a count of instructions:
//!
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/parse_cost wrk 2000`, less the same
//! with 1000, is what 1,000 requests cost.

#[allow(dead_code)] // The bench reads the mix too.
#[path = "../benches/support/requests.rs"]
mod requests;

use dyno_proto::http1::request::{Limits, Parsed, Slots, parse};
use std::hint::black_box;
use std::process::ExitCode;

const REQUESTS: [(&str, &[u8]); 5] = [
    ("wrk", requests::WRK),
    ("frameworks", requests::FRAMEWORKS),
    ("browser", requests::BROWSER),
    ("curl", requests::CURL),
    ("post", requests::POST),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let request = arguments.next().and_then(|name| REQUESTS.iter().find(|(known, _)| *known == name));
    let count = arguments.next().and_then(|count| count.parse().ok());
    let (Some((_, request)), Some(count)) = (request, count) else {
        eprintln!("usage: parse_cost wrk|frameworks|browser|curl|post COUNT");
        return ExitCode::from(2);
    };
    let limits = Limits::default();
    let mut slots = Slots::new(&limits);
    let whole = (0..count).all(|_: u64| is_whole(black_box(request), &limits, &mut slots));
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[inline(never)]
fn is_whole(request: &[u8], limits: &Limits, slots: &mut Slots) -> bool {
    match &parse(request, limits, slots) {
        Ok(Parsed::Whole { head, used }) => {
            black_box((head.path(), head.keep_alive, head.body, *used));
            true
        }
        _ => false,
    }
}
