//! `dyno top`: what a running server does, again and again.
//!
//! It reads the server's `/metrics` and nothing else; the server is asked no more often than the user says. Ctrl-C is how
//! it ends.

mod rates;
mod scrape;
mod screen;

use std::ffi::CStr;
use std::io::IsTerminal;
use std::process::ExitCode;

use dyno_lab::Failure;
use dyno_sys::clock::mono_ns;
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket::{self, Addr, Ready};
use dyno_sys::{Pid, proc};

use super::exit;
use crate::cli;
use crate::out;
use screen::Screen;

/// What the process for metrics is called.
const METRICS: &CStr = dyno_engine::supervisor::METRICS_NAME;

/// Runs the verb.
pub(crate) fn run(args: &cli::Top) -> Result<ExitCode, Failure> {
    let place = place(args)?;
    let cannot = |error| Failure::error("cannot receive signals").because(&error);
    let ends = SignalFd::new(&[Signal::Int, Signal::Term, Signal::Hup]).map_err(cannot)?;
    let mut before = scrape::look(&place)?;
    let is_terminal = std::io::stdout().is_terminal();
    let screen = is_terminal.then(Screen::begin).transpose()?;
    let title = place.to_string();
    if let Some(screen) = &screen {
        screen.show(&screen::lines(&title, &before, &rates::by_worker(&before, &before)))?;
    }
    let interval_ns = u64::try_from(args.interval.as_nanos()).unwrap_or(u64::MAX);
    let mut due_ns = mono_ns();
    let mut left = args.count.map(std::num::NonZeroUsize::get);
    while left != Some(0) {
        due_ns = due_ns.saturating_add(interval_ns).max(mono_ns());
        if socket::wait_readable(&ends, due_ns).map_err(cannot)? == Ready::Yes {
            break;
        }
        let now = scrape::look(&place)?;
        let workers = rates::by_worker(&before, &now);
        match &screen {
            Some(screen) => screen.show(&screen::lines(&title, &now, &workers))?,
            None => out::print(&screen::line(&workers))?,
        }
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(exit::DONE)
}

/// Where the metrics are.
fn place(args: &cli::Top) -> Result<Addr, Failure> {
    match (args.pid_alone.or(args.pid), &args.metrics) {
        (Some(pid), _) => of_process(pid),
        (None, Some(addr)) => Ok(addr.clone()),
        (None, None) => Err(Failure::usage("neither a process nor an address is named")),
    }
}

/// Where the process for metrics among a server's listens.
fn of_process(pid: Pid) -> Result<Addr, Failure> {
    let tree = proc::tree(pid);
    if tree.is_empty() {
        return Err(Failure::error(format!("there is no process {pid}"))
            .likely("it has ended")
            .try_this("pgrep -a dyno"));
    }
    let is_it = |pid: &Pid| proc::name(*pid).is_ok_and(|name| name.as_bytes() == METRICS.to_bytes());
    let Some(found) = tree.into_iter().find(is_it) else {
        return Err(Failure::error(format!("process {pid} serves no metrics"))
            .likely("it is no dyno serve, or was started without --metrics")
            .try_this("dyno serve --metrics 127.0.0.1:9100"));
    };
    proc::listens_on(found).into_iter().next().ok_or_else(|| {
        Failure::error(format!("cannot see where process {found} listens"))
            .likely("it belongs to another user")
            .try_this(format!("sudo dyno top {pid}, or dyno top --metrics ADDRESS"))
    })
}
