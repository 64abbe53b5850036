//! Records of a text, read field by field.
//!
//! defect:   every field becomes a string of its own, in a list of its own, for every record; all are given back at once.
//! repaired: fields are slices of the text.

mod harness;

use harness::{begin, is_over, Run, Side};
use std::hint::black_box;

const RECORDS: usize = 256;

fn text() -> String {
    let fields =
        ["id-77", "n", "19.50", "EUR", "paid", "2026-01-01", "x", "warehouse", "42", "ok", "-", "eu"];
    let record = fields.join(";");
    vec![record; RECORDS].join("\n")
}

#[inline(never)]
fn owned_fields(record: &str) -> Vec<String> {
    record.split(';').map(str::to_owned).collect()
}

#[inline(never)]
fn weigh_owned(record: &str) -> usize {
    let fields = owned_fields(record);
    fields.iter().map(|field| usize::from(field.as_bytes()[0])).sum()
}

#[inline(never)]
fn weigh_borrowed(record: &str) -> usize {
    record.split(';').map(|field| usize::from(field.as_bytes()[0])).sum()
}

fn main() {
    let side = begin();
    let text = text();
    let (mut done, mut weight) = (0_u64, 0_usize);
    let run = Run::start();
    while !is_over() {
        for record in black_box(text.as_str()).lines() {
            weight = weight.wrapping_add(match side {
                Side::Defect => weigh_owned(record),
                Side::Repaired => weigh_borrowed(record),
            });
        }
        done += RECORDS as u64;
    }
    black_box(weight);
    run.end(done);
}
