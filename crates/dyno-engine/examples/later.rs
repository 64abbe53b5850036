//! Answers that come from a pool: `cargo run --release -p dyno-engine --example later`, then
//! `curl http://127.0.0.1:8080/primes/1000000`. The worker serves on while a thread of the pool counts.

use dyno_engine::{Answer, EngineError, Method, Pool, PoolSize, Server};

fn main() -> Result<(), EngineError> {
    server()?.listen("127.0.0.1:8080").run()
}

pub(crate) fn server() -> Result<Server, EngineError> {
    // Two threads count, and 64 requests may wait for them: more are told 503 at once.
    let pool = Pool::new(PoolSize::new(2, 64))?;
    Ok(Server::new().route(Method::Get, "/primes/{below}", move |request, reply| {
        let Some(below) = request.param("below").and_then(|text| text.parse().ok()) else {
            return reply.status(400).text("primes below what?\n");
        };
        pool.answer(reply, move |()| Answer::text(format!("{}\n", primes_below(below))))
    }))
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
