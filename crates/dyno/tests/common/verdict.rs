//! Climbs that end with the verdict of a rung: confirmation and total behind it take all the time that is left, and most
//! tests ask nothing of them. Those that do let their climb run to its end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill -INT");
}

/// Climbs until `rung` has its verdict, and interrupts it there; its exit code, and what it said. The record is written.
pub(crate) fn until_verdict(mut climb: Command, rung: &str) -> (Option<i32>, String) {
    let mut child = climb.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dyno runs");
    let mut talk = BufReader::new(child.stderr.take().expect("piped"));
    let (mut said, line) = (String::new(), format!("{rung}: "));
    while !said.lines().last().is_some_and(|last| last.starts_with(&line)) {
        assert!(talk.read_line(&mut said).expect("its talk") > 0, "{rung} has no verdict: {said}");
    }
    interrupt(&child);
    talk.read_to_string(&mut said).expect("its talk");
    (child.wait().expect("it ends").code(), said)
}
