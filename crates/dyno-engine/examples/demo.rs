//! What `dyno serve --workers 1 --log off --sandbox off` answers where nothing else is to be served, without the rest of
//! `dyno`: `cargo run --release -p dyno-engine --example demo 127.0.0.1:8080`, then `curl http://127.0.0.1:8080/json`.
//!
//! `cargo xtask budget` counts what a request costs on it: the lab, which answers none, is most of a release's building.

use std::num::NonZeroU32;
use std::process::ExitCode;

use dyno_engine::master::{self, Own, Setup};
use dyno_engine::{Config, Dials, handler};
use dyno_sys::alloc::CountingAlloc;

/// As in `dyno`: counting has its price, too.
#[global_allocator]
static ALLOCATIONS: CountingAlloc = CountingAlloc;

fn main() -> ExitCode {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    match serve(&listen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(listen: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut dials = Dials::for_workers(NonZeroU32::MIN);
    dials.set("workers", "1")?;
    dials.set("log", "off")?;
    let config = Config { listen: vec![listen.parse()?], dials: dials.clone(), ..Config::default() };
    let routes =
        move || handler::demo(&dials).expect("the routes are fixed, and a test of the engine adds them all");
    let setup = Setup { config, routes: Box::new(routes) };
    let mut again = || Err("it has no settings to read again".to_owned());
    master::run(setup, Own::default(), &mut again, &mut |_| ())?;
    Ok(())
}
