//! Answers that come from a pool: `cargo run --release -p dyno-engine --example later`, then
//! `curl http://127.0.0.1:8080/primes/1000000`. The worker serves on while a thread of the pool counts.

use dyno_engine::{Answer, EngineError, Method, Responder, Server};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Threads that count, and requests that may wait for them: more are told 503 at once.
const THREADS: usize = 2;
const WAITING_MAX: usize = 64;

type Job = (u64, Responder);

fn main() -> Result<(), EngineError> {
    let jobs = pool();
    Server::new()
        .listen("127.0.0.1:8080")
        .route(Method::Get, "/primes/{below}", move |request, reply| {
            let Some(below) = request.param("below").and_then(|text| text.parse().ok()) else {
                return reply.status(400).text("primes below what?\n");
            };
            let jobs = jobs.clone();
            reply.later(move |responder| hand_over(&jobs, (below, responder)))
        })
        .run()
}

fn hand_over(jobs: &SyncSender<Job>, job: Job) {
    if let Err(TrySendError::Full((_, responder)) | TrySendError::Disconnected((_, responder))) =
        jobs.try_send(job)
    {
        responder.answer(Answer::text("too busy\n").status(503).header("Retry-After", "1"));
    }
}

fn pool() -> SyncSender<Job> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..THREADS {
        let receiver = Arc::clone(&receiver);
        thread::spawn(move || work(&receiver));
    }
    sender
}

fn work(receiver: &Mutex<Receiver<Job>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((below, responder)) = job else { return };
        // Nobody waits any more: the work may as well not be done.
        if !responder.is_gone() {
            responder.answer(Answer::text(format!("{}\n", primes_below(below))));
        }
    }
}

fn primes_below(below: u64) -> usize {
    let mut is_prime = vec![true; usize::try_from(below.min(100_000_000)).unwrap_or(0)];
    let mut count = 0;
    for number in 2..is_prime.len() {
        if is_prime[number] {
            count += 1;
            (number * number..is_prime.len()).step_by(number).for_each(|multiple| is_prime[multiple] = false);
        }
    }
    count
}
