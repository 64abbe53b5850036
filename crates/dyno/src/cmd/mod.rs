//! The verbs, and what they share: data on standard output, talk on standard error, how they end.
//!
//! `main` calls `run` once. A verb returns its exit code, or a failure that `main` prints in three lines. Nobody here
//! panics because somebody stopped reading.

pub(crate) mod causal;
pub(crate) mod climb;
mod diagnose;
mod exit;
mod flame;
mod floor;
mod judge;
mod load;
mod offcpu;
mod profile;
mod recording;
mod report;
mod serve;
pub(crate) mod specimen;
mod stop;
mod usage;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use dyno_host::machine::machine;

use crate::cli::{Cli, Verb};
use dyno_lab::Failure;

pub(crate) use dyno_lab::file::{can_be_written, write_file};
pub(crate) use exit::code;
pub(crate) use usage::unparsed;

/// What a terminal has had since the punched card, where nothing tells its width.
const WIDTH_DEFAULT: usize = 80;

/// Columns beyond which lines are hard to read; tables stop there.
const WIDTH_MAX: usize = 160;

/// Runs the verb.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.verb {
        None => {
            print(&Cli::command().render_help().to_string())?;
            Ok(exit::DONE)
        }
        Some(Verb::Serve(args)) => serve::run(&args),
        Some(Verb::Floor(args)) => floor::run(&args),
        Some(Verb::Load(args)) => load::run(&args),
        Some(Verb::Judge(args)) => judge::run(&args),
        Some(Verb::Climb(args)) => climb::run(&args),
        Some(Verb::Report(args)) => report::run(&args),
        Some(Verb::Profile(args)) => profile::run(&args),
        Some(Verb::OffCpu(args)) => offcpu::run(&args),
        Some(Verb::Flame(args)) => flame::run(&args),
        Some(Verb::Specimen(args)) => specimen::run(&args),
        Some(Verb::Diagnose(args)) => diagnose::run(&args),
        Some(Verb::Causal(args)) => causal::run(&args),
    }
}

/// This process's command line, for records; what is no text in it is replaced by U+FFFD.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Says something on standard error. When nobody can hear it there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes data to standard output, at once.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for data that is no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// What a write to standard output came to. A reader who has seen enough (`| head`) is no error.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(dyno_lab::file::refused("cannot write to standard output", &error))
        }
        _ => Ok(()),
    }
}

/// Columns for tables: what `COLUMNS` says, else the terminal itself, else the narrowest usual one.
pub(crate) fn terminal_width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || dyno_sys::tty::columns(io::stdout()).or_else(|| dyno_sys::tty::columns(io::stderr()));
    told.filter(|columns| *columns > 0).or_else(asked).unwrap_or(WIDTH_DEFAULT).min(WIDTH_MAX)
}

/// A seed that differs from run to run; it stands in the record.
pub(crate) fn seed_of_the_day() -> u64 {
    dyno_measure::Prng::new(dyno_sys::clock::mono_ns() ^ u64::from(std::process::id()) << 32).next_u64() >> 12
}
