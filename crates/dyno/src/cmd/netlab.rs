//! `dyno netlab`: the laboratory held for people and tests, and a program under filters of system calls.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use dyno_host::lab::{CLIENT, Lab, SERVER};
use dyno_lab::Failure;
use dyno_lab::launch::laboratory::{self, entered};
use dyno_record::lab::planted;
use dyno_sys::affinity;
use dyno_sys::setting::scheduling;
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::{child, seccomp, socket};

use super::exit;
use crate::cli::netlab::{Netlab, Pages, Under, What};
use crate::out;

/// Runs the verb.
pub(crate) fn run(args: &Netlab) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Hold(hold) => held(hold.plant),
        What::Under(under) => Err(become_it(under)),
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
            // Not to standard output: whoever read how to enter may have gone.
            out::say("planted\n");
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
fn become_it(under: &Under) -> Failure {
    let Under { filters, class, timer_slack, pages, command } = under;
    let name = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(Err(error)) = class.as_ref().map(|class| scheduling::set_own(class)) {
        return Failure::error(format!("cannot be in class \"{}\"", class.as_deref().unwrap_or_default()))
            .because(&error)
            .likely("there is no such class, or fifo and rr need root")
            .try_this("--class \"batch nice 0\"");
    }
    if let Some(Err(error)) = timer_slack.map(child::timer_slack) {
        return Failure::error("cannot have another timer slack").because(&error);
    }
    if let Err(error) = small_pages(*pages) {
        return Failure::error("cannot do without huge pages").because(&error);
    }
    let burdened = child::no_new_privs().and_then(|()| (0..*filters).try_for_each(|_| seccomp::weigh_down()));
    if let Err(error) = burdened {
        return Failure::error("cannot filter system calls").because(&error);
    }
    let Some((program, words)) = command.split_first() else {
        return Failure::usage("no program is named");
    };
    let error = Command::new(program).args(words).exec();
    Failure::error(format!("cannot run {name}")).because(&error).try_this(format!("command -v {name}"))
}

fn small_pages(pages: Pages) -> std::io::Result<()> {
    if pages == Pages::Small { child::no_huge_pages() } else { Ok(()) }
}
