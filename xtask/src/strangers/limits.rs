//! How long whoever is asked may take: timeout(1) ends what hangs, also when we are not there any more. The strangers' task
//! asks by these.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::command::command;

/// A diagnosis takes some ten seconds and a causal profile a minute, with whatever there is to read of a program.
pub(crate) const ASKING_S_MAX: u32 = 300;
/// A count is read from a file, or asked of a server that works.
const COUNTING_S_MAX: u32 = 10;

/// What timeout(1) ends with where its limit was met, and where SIGTERM was not enough.
const LATE: [i32; 2] = [124, 137];
/// Where SIGTERM was not enough for a group, it is killed with that.
const SIGKILL: i32 = 9;

/// This `dyno`, whose words follow. In our process group, so that Ctrl-C at a terminal reaches it; it gets time to put
/// back what it has changed.
pub(crate) fn asking(dyno: &Path) -> Command {
    let mut within = command(["timeout", "--foreground", "--kill-after=10", &ASKING_S_MAX.to_string()]);
    within.arg(dyno);
    within
}

/// A shell that tells a count.
pub(crate) fn counting(words: &str) -> Command {
    shell_within(COUNTING_S_MAX, words)
}

/// In a group of its own, with which all that it started is ended: what is left of it would hold our pipe.
fn shell_within(s_max: u32, words: &str) -> Command {
    command(["timeout", "--kill-after=1", &s_max.to_string(), "sh", "-c", words])
}

/// Whether it had to be ended.
pub(crate) fn was_late(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| LATE.contains(&code)) || status.signal() == Some(SIGKILL)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_count_that_hangs_is_ended_with_what_it_started() {
        let hangs = shell_within(1, "(sleep 60; echo late) & echo early; wait").output().unwrap();
        assert_eq!((was_late(hangs.status), hangs.stdout.as_slice()), (true, &b"early\n"[..]));
        let stubborn = shell_within(1, "trap '' TERM; sleep 60; sleep 60").output().unwrap();
        assert!(was_late(stubborn.status), "{stubborn:?}");
        let counts = counting("echo 7").output().unwrap();
        assert_eq!((was_late(counts.status), counts.stdout.as_slice()), (false, &b"7\n"[..]));
    }

    #[test]
    fn who_is_asked_has_a_limit() {
        let run = asking(Path::new("/bin/echo")).args(["causal", "7"]).output().unwrap();
        assert_eq!((was_late(run.status), run.stdout.as_slice()), (false, &b"causal 7\n"[..]));
        assert_eq!(asking(Path::new("dyno")).get_program(), "timeout");
    }
}
