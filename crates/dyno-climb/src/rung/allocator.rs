//! Another allocator, preloaded: serves foreign servers too.

use super::shape::{Rung, Step, Surroundings, rung};
use crate::dial::{Dial, How, Value};
use crate::proof::Proof;

fn dial(surroundings: &Surroundings) -> Dial {
    let library = surroundings.allocators.first().map_or("", String::as_str);
    let value = |name: &str, text: &str| Value { name: name.into(), words: Vec::new(), text: text.into() };
    let values = vec![value("system", ""), value("preloaded", library)];
    Dial { name: "allocator".into(), how: How::Env { variable: "LD_PRELOAD".into() }, values, start: 0 }
}

pub(super) fn step(surroundings: &Surroundings) -> Step {
    let library =
        surroundings.allocators.first().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let none = "no libmimalloc or libjemalloc found to preload".to_owned();
    let rung = Rung {
        claim: "thread caches instead of the system allocator's arenas".into(),
        source: "compute service, third round: 10k to 14k QPS; nothing where nothing allocates".into(),
        risk: "more memory held; another library in the process".into(),
        impossible: library.is_none().then_some(none),
        ..rung(
            "allocator",
            "allocator",
            "preloaded",
            vec![Proof::Maps { contains: library.unwrap_or_default() }],
        )
    };
    Step::first(dial(surroundings), rung)
}
