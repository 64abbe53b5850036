//! Orders that are priced and booked by several threads.
//!
//! defect:   the price is worked out while the book is locked, so that all threads work one at a time.
//! repaired: the price needs nothing of the book: it is worked out before, and the lock is held for the addition.

mod harness;

use harness::{begin, is_over, Run, Side};
use std::sync::Mutex;

/// A price of some 40 microseconds: far longer than taking the lock.
const PRICE_ROUNDS: u32 = 20_000;
/// More than most machines have CPUs, and enough that somebody always waits.
const THREADS: u64 = 8;
const ACCOUNTS: usize = 64;

struct Book {
    totals: [u64; ACCOUNTS],
}

#[inline(never)]
fn price_of(order: u64) -> u64 {
    (0..PRICE_ROUNDS).fold(order | 1, |price, round| {
        (price ^ u64::from(round)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    })
}

#[inline(never)]
fn price_under_lock(book: &Mutex<Book>, order: u64) {
    let mut book = book.lock().expect("no thread panics");
    let price = price_of(order);
    let account = &mut book.totals[order as usize % ACCOUNTS];
    *account = account.wrapping_add(price);
}

#[inline(never)]
fn price_before_lock(book: &Mutex<Book>, order: u64) {
    let price = price_of(order);
    let mut book = book.lock().expect("no thread panics");
    let account = &mut book.totals[order as usize % ACCOUNTS];
    *account = account.wrapping_add(price);
}

fn orders(book: &Mutex<Book>, side: Side, thread: u64) -> u64 {
    let mut done = 0;
    while !is_over() {
        let order = done * THREADS + thread;
        match side {
            Side::Defect => price_under_lock(book, order),
            Side::Repaired => price_before_lock(book, order),
        }
        done += 1;
    }
    done
}

fn main() {
    let side = begin();
    let book = Mutex::new(Book { totals: [0; ACCOUNTS] });
    let run = Run::start();
    let done: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                scope.spawn({
                    let book = &book;
                    move || orders(book, side, n)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    run.end(done);
}
