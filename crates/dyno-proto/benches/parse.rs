//! Nanoseconds per call of what the engine does for each request, beside httparse.
//!
//! `cargo bench -p dyno-proto` runs each subject in short blocks, all of them in turn, so that a busy
//! neighbour meets all alike, and prints the median block and the fastest one.

#[path = "support/requests.rs"]
mod requests;

use dyno_proto::http1::request::{Limits, Parsed, Slots, parse};
use dyno_proto::http1::{chunk, encode, response};
use dyno_proto::json::Encode;
use dyno_proto::{date, json_object, percent};
use requests::{BROWSER, CURL, FRAMEWORKS, POST, WRK};
use std::hint::black_box;
use std::time::Instant;

const REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: dyno\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: \
application/json\r\nContent-Length: 27\r\n\r\n";

/// Blocks per subject, and calls per block: a block of 50 ns calls lasts 1 ms.
const BLOCKS: usize = 151;
const CALLS: usize = 20_000;
/// Different requests of the mix: more than a processor's branch history holds.
const MIX: usize = 2_048;

struct Message<'a> {
    message: &'a str,
}
json_object!(Message<'_> { "message": message });

struct Subject {
    name: &'static str,
    call: Box<dyn FnMut()>,
    blocks: Vec<f64>,
}

fn subject(name: &'static str, mut call: impl FnMut() + 'static) -> Subject {
    let block = move || (0..CALLS).for_each(|_| call());
    Subject { name, call: Box::new(block), blocks: Vec::with_capacity(BLOCKS) }
}

fn main() {
    let mut subjects = subjects();
    for _ in 0..BLOCKS {
        for subject in &mut subjects {
            let start = Instant::now();
            (subject.call)();
            subject.blocks.push(start.elapsed().as_nanos() as f64 / CALLS as f64);
        }
    }
    println!("{:<28} {:>8} {:>8}  ns per call, {BLOCKS} blocks of {CALLS}", "", "median", "fastest");
    for subject in &mut subjects {
        subject.blocks.sort_by(f64::total_cmp);
        println!("{:<28} {:>8.1} {:>8.1}", subject.name, subject.blocks[BLOCKS / 2], subject.blocks[0]);
    }
}

fn subjects() -> Vec<Subject> {
    vec![
        subject("request, wrk: dyno", ours(WRK)),
        subject("request, wrk: httparse", theirs(WRK)),
        subject("request, frameworks: dyno", ours(FRAMEWORKS)),
        subject("request, frameworks: httparse", theirs(FRAMEWORKS)),
        subject("request, curl: dyno", ours(CURL)),
        subject("request, POST: dyno", ours(POST)),
        subject("request, browser: dyno", ours(BROWSER)),
        subject("request, browser: httparse", theirs(BROWSER)),
        subject("request, mix: dyno", our_mix()),
        subject("request, mix: httparse", their_mix()),
        subject("reply head", || {
            let _ = black_box(response::parse(black_box(REPLY), response::Asked::Other));
        }),
        subject("json message", json()),
        subject("reply head written", head()),
        subject("chunk of 1 KiB", chunked()),
        subject("path normalized", normalized()),
        subject("date", || {
            black_box(date::imf_fixdate(black_box(1_700_000_000)));
        }),
    ]
}

fn ours(request: &'static [u8]) -> impl FnMut() {
    let limits = Limits::default();
    let mut slots = Slots::new(&limits);
    move || read(request, &limits, &mut slots)
}

/// Each call reads another request.
fn our_mix() -> impl FnMut() {
    let limits = Limits::default();
    let mut slots = Slots::new(&limits);
    let (requests, mut at) = (requests::mix(MIX), 0);
    move || {
        at = (at + 1) % MIX;
        read(&requests[at], &limits, &mut slots);
    }
}

#[inline(never)]
fn read(request: &[u8], limits: &Limits, slots: &mut Slots) {
    match &parse(black_box(request), limits, slots) {
        Ok(Parsed::Whole { head, used }) => {
            black_box((head.path(), head.keep_alive, head.body, *used));
        }
        _ => unreachable!("the request is whole"),
    }
}

fn theirs(request: &'static [u8]) -> impl FnMut() {
    move || read_by_httparse(request)
}

fn their_mix() -> impl FnMut() {
    let (requests, mut at) = (requests::mix(MIX), 0);
    move || {
        at = (at + 1) % MIX;
        read_by_httparse(&requests[at]);
    }
}

#[inline(never)]
fn read_by_httparse(request: &[u8]) {
    let mut headers = [const { std::mem::MaybeUninit::uninit() }; 100];
    let mut parsed = httparse::Request::new(&mut []);
    let status = parsed.parse_with_uninit_headers(black_box(request), &mut headers);
    black_box((status.is_ok(), parsed.path, parsed.headers.len()));
}

fn json() -> impl FnMut() {
    let mut out = Vec::with_capacity(4096);
    move || {
        out.clear();
        let message = Message { message: black_box("Hello, World!") };
        black_box(message.json_len());
        message.json_write(&mut out);
        black_box(&out);
    }
}

fn head() -> impl FnMut() {
    let mut out = Vec::with_capacity(4096);
    move || {
        out.clear();
        encode::reply_start(&mut out, black_box(200));
        out.extend_from_slice(b"Server: dyno\r\nContent-Type: application/json\r\n");
        encode::content_length(&mut out, black_box(27));
        encode::head_end(&mut out);
        black_box(&out);
    }
}

fn chunked() -> impl FnMut() {
    let mut body = Vec::new();
    encode::chunk(&mut body, &[b'x'; 1024]);
    encode::last_chunk(&mut body);
    move || {
        let (mut decoder, mut at) = (chunk::Decoder::new(), 0);
        while let Ok(chunk) = decoder.push(black_box(&body[at..])) {
            at += chunk.used;
            if chunk.done {
                break;
            }
        }
        black_box(at);
    }
}

fn normalized() -> impl FnMut() {
    let mut out = Vec::with_capacity(4096);
    move || {
        out.clear();
        let _ = black_box(percent::normalize(black_box(b"/hello/J%C3%BCrgen%20M"), &mut out));
    }
}
