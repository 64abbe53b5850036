//! The server as work that is in no hurry: woken later, and left alone for longer.

use dyno_measure::series::Metric;

use crate::dial::{Dial, How, Value};
use crate::proof::Proof;
use crate::rung::shape::{NetworkHere, Rung, Step, rung};

fn dial() -> Dial {
    let value = |name: &str, text: &str| Value { name: name.into(), words: Vec::new(), text: text.into() };
    let values = vec![
        value("other", "other nice 0"),
        value("batch", "batch nice 0"),
        value("fifo", "fifo priority 1"),
    ];
    Dial { name: "class".into(), how: How::Template, values, start: 0 }
}

pub(super) fn step(_: &NetworkHere) -> Step {
    let rung = Rung {
        claim: "who is woken and does not push others aside is switched to less often".into(),
        source: "linux: sched(7), SCHED_BATCH".into(),
        risk: "answers come later where others want the CPU".into(),
        metric: Metric::SecondsPerRequest,
        ..rung("class-batch", "class", "batch", vec![Proof::Scheduled { class: "batch".into(), nice: None }])
    };
    Step::first(dial(), rung)
}
