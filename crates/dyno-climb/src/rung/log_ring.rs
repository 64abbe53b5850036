//! Access-log lines into a shared ring, written by another process.

use super::shape::{Rung, Step, Surroundings, counter, flag, rung};
use crate::proof::{Bound, Proof};

pub(super) fn step(_: &Surroundings) -> Step {
    // The worker's own calls are counted by itself. Watched from outside, by ptrace, it is so slow that the writer finds a line
    // at a time and writes each alone, which is no answer to whether the worker does.
    let writes_no_line = counter("log_writes", Bound::Drops(0.9));
    let has_a_writer = Proof::Threads { count: Bound::Rises(1.0) };
    let proofs = vec![writes_no_line, has_a_writer];
    let rung = Rung {
        claim: "a log line is copied into a ring; a writer process writes many at once".into(),
        source: "compute service, first round: 3.5k to 7k QPS when the log stopped blocking".into(),
        risk: "lines still in the ring are lost when the machine dies; drops are counted when the disk is too slow".into(),
        ..rung("log-ring", "log", "ring", proofs)
    };
    let mut log = flag("log", &["sync", "ring", "off"]);
    // A log that is off has no file: whoever applies that setting would be warned of one.
    for value in log.values.iter_mut().filter(|value| value.name != "off") {
        value.words.extend(["--log-file", "{dir}/access.log"].map(str::to_owned));
    }
    Step::first(log, rung)
}
