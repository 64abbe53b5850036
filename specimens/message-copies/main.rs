//! A message of 256 KiB that goes through eight stages, each of which looks at its head.
//!
//! defect:   each stage gets a copy of the whole message.
//! repaired: each stage gets a reference to the same bytes.

mod harness;

use harness::{begin, is_over, Run, Side};
use std::hint::black_box;

const MESSAGE_BYTES: usize = 256 * 1024;
const HEAD_BYTES: usize = 4 * 1024;
const STAGES: usize = 8;

/// What a stage does with a message: it reads the head.
#[inline(never)]
fn look_at_head(message: &[u8]) -> u64 {
    message[..HEAD_BYTES].iter().fold(0, |sum: u64, byte| sum.rotate_left(5) ^ u64::from(*byte))
}

#[inline(never)]
fn pass_copies(message: &[u8], stages: &mut [Vec<u8>]) -> u64 {
    let mut sum = look_at_head(message);
    for at in 0..stages.len() {
        let (before, rest) = stages.split_at_mut(at);
        let from = before.last().map_or(message, |stage| stage.as_slice());
        rest[0].copy_from_slice(from);
        sum ^= look_at_head(&rest[0]);
    }
    sum
}

#[inline(never)]
fn pass_references(message: &[u8]) -> u64 {
    (0..=STAGES).fold(0, |sum, _stage| sum ^ look_at_head(black_box(message)))
}

fn main() {
    let side = begin();
    let mut message: Vec<u8> = (0..MESSAGE_BYTES).map(|at| (at * 31) as u8).collect();
    // Made once: taking memory is not what is shown here.
    let mut stages = vec![vec![0_u8; MESSAGE_BYTES]; STAGES];
    let (mut done, mut sum) = (0_u64, 0);
    let run = Run::start();
    while !is_over() {
        message[done as usize % HEAD_BYTES] ^= 1;
        sum ^= match side {
            Side::Defect => pass_copies(&message, &mut stages),
            Side::Repaired => pass_references(&message),
        };
        done += 1;
    }
    black_box(sum);
    run.end(done);
}
