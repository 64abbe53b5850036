//! `dyno`: an HTTP engine and the dynamometer it is tuned on.
//!
//! The only place that parses arguments, prints and exits: everything else is a library or a verb in `cmd/`.

mod candidates;
mod cli;
mod cmd;
mod failed;
mod live;
mod out;
mod this_run;

use std::process::ExitCode;

use dyno_sys::alloc::CountingAlloc;

/// Counts allocations, so that `dyno serve` can tell how many a request costs.
#[global_allocator]
static ALLOCATIONS: CountingAlloc = CountingAlloc;

fn main() -> ExitCode {
    candidates::answered();
    let ended = match cli::Cli::from_command_line() {
        Ok(cli) => cmd::run(cli),
        Err(error) => cmd::unparsed(&error),
    };
    ended.unwrap_or_else(|failure| {
        failed::told(&failure);
        cmd::code(&failure)
    })
}
