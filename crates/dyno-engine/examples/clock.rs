//! Server-sent events: `cargo run --release -p dyno-engine --example clock`, then
//! `curl -N http://127.0.0.1:8080/clock`. One thread ticks; every open stream is woken by it.

use dyno_engine::{EngineError, Filled, Method, Server, Waker};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time, and who waits for it.
#[derive(Default)]
struct Clock {
    seconds: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

fn main() -> Result<(), EngineError> {
    server(Duration::from_secs(1)).listen("127.0.0.1:8080").run()
}

pub(crate) fn server(tick_every: Duration) -> Server {
    let clock = Arc::new(Clock::default());
    let ticking = Arc::clone(&clock);
    thread::spawn(move || tick(&ticking, tick_every));
    Server::new().route(Method::Get, "/clock", move |_request, reply| {
        let clock = Arc::clone(&clock);
        reply.header("Cache-Control", "no-store").stream("text/event-stream", |waker| events(clock, waker))
    })
}

/// A source: says each second once, and waits for the next.
fn events(clock: Arc<Clock>, waker: Waker) -> impl FnMut(&mut Vec<u8>) -> Filled + Send {
    let mut said = None;
    move |out: &mut Vec<u8>| {
        // First the waker, then the look: a tick in between wakes for nothing, one before is seen.
        clock.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker.clone());
        let now = clock.seconds.load(Ordering::SeqCst);
        if said != Some(now) {
            said = Some(now);
            out.extend_from_slice(format!("data: {now} s\n\n").as_bytes());
        }
        Filled::Wait
    }
}

fn tick(clock: &Clock, every: Duration) {
    loop {
        thread::sleep(every);
        clock.seconds.fetch_add(1, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *clock.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.iter().for_each(Waker::wake);
    }
}
