//! `dyno netlab`: the laboratory held for people and tests, and a program under filters of system calls.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use dyno_host::lab::{CLIENT, Lab, SERVER};
use dyno_lab::Failure;
use dyno_lab::launch::laboratory::{self, entered};
use dyno_record::lab::planted;
use dyno_sys::affinity;
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::{child, seccomp, socket};

use super::exit;
use crate::cli::netlab::{Netlab, What};
use crate::out;

/// Runs the verb.
pub(crate) fn run(args: &Netlab) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Hold(hold) => held(hold.plant),
        What::Under(under) => Err(become_it(under.filters, &under.command)),
    }
}

/// Keeps a laboratory until somebody ends this process; nothing is left then.
fn held(at_once: bool) -> Result<ExitCode, Failure> {
    let signals = SignalFd::new(&[Signal::Int, Signal::Term, Signal::Hup, Signal::Usr1])
        .map_err(|error| Failure::error("cannot receive signals").because(&error))?;
    let mut lab = entered()?;
    if at_once {
        plant(&mut lab)?;
    }
    out::print(&how_to_enter(&lab))?;
    loop {
        while let Some(signal) = signals.next() {
            if signal != Signal::Usr1 {
                return Ok(exit::DONE);
            }
            plant(&mut lab)?;
            out::print("planted\n")?;
        }
        // Woken too early or not: the signals are looked at again.
        let _ = socket::wait_readable(&signals, u64::MAX);
    }
}

fn plant(lab: &mut Lab) -> Result<(), Failure> {
    // Where servers run unless told otherwise: all but the last half of the CPUs.
    let mask = laboratory::mask(affinity::allowed().iter().take(1));
    for (part, value) in planted(&mask) {
        lab.stand(part, &value).map_err(|error| laboratory::failure(&error))?;
    }
    Ok(())
}

fn how_to_enter(lab: &Lab) -> String {
    let (pid, client) = (child::this(), lab.client().as_fd().as_raw_fd());
    format!(
        "server    {SERVER}   nsenter -t {pid} -n -m COMMAND\n\
         load      {CLIENT}   nsenter --net=/proc/{pid}/fd/{client} COMMAND\n\
         plant     kill -USR1 {pid}\n\
         end       kill {pid}\n"
    )
}

/// Comes back only with the reason why not.
fn become_it(filters: u8, command: &[OsString]) -> Failure {
    let name = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let burdened = child::no_new_privs().and_then(|()| (0..filters).try_for_each(|_| seccomp::weigh_down()));
    if let Err(error) = burdened {
        return Failure::error("cannot filter system calls").because(&error);
    }
    let Some((program, words)) = command.split_first() else {
        return Failure::usage("no program is named");
    };
    let error = Command::new(program).args(words).exec();
    Failure::error(format!("cannot run {name}")).because(&error).try_this(format!("command -v {name}"))
}
