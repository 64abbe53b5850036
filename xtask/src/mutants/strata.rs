//! Which changes are tried: strata of the code, and their changes in an order that the seed decides.
//!
//! Every stratum gives the same number, so that a large one does not speak for a small one; a sample that is cut short is
//! still one, because the strata take turns.

use dyno_measure::prng::Prng;

/// A part of the code whose tests must see faults.
pub(super) struct Stratum {
    pub(super) name: &'static str,
    /// Files and folders, from the repository's root. The first stratum that has a file keeps it.
    places: &'static [&'static str],
}

/// What is sampled: where a fault is a wrong answer to a peer, or a wrong figure that looks right.
pub(super) const STRATA: [Stratum; 5] = [
    Stratum { name: "proto", places: &["crates/dyno-proto/src/"] },
    Stratum {
        name: "judge",
        places: &[
            "crates/dyno-measure/src/judge",
            "crates/dyno-measure/src/rounds",
            "crates/dyno-climb/src/climb/",
        ],
    },
    Stratum { name: "measure", places: &["crates/dyno-measure/src/"] },
    Stratum {
        name: "engine",
        places: &[
            "crates/dyno-engine/src/core",
            "crates/dyno-engine/src/http1",
            "crates/dyno-engine/src/conn",
            "crates/dyno-engine/src/outbox",
            "crates/dyno-engine/src/queue",
            "crates/dyno-engine/src/timer",
            "crates/dyno-engine/src/heads",
            "crates/dyno-engine/src/segment",
            "crates/dyno-engine/src/upload",
        ],
    },
    Stratum {
        name: "verdicts",
        places: &["crates/dyno-diagnose/src/", "crates/dyno-profile/src/causal/run"],
    },
];

impl Stratum {
    fn has(&self, file: &str) -> bool {
        self.places.iter().any(|place| file.starts_with(place))
    }
}

/// A change, by cargo-mutants' own name of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) file: String,
    /// From where to where, as (line, column) from 1, in letters; the end is behind it.
    pub(super) span: [(usize, usize); 2],
    /// What stands there instead.
    pub(super) replacement: String,
}

impl Mutant {
    /// The file's text with the change.
    pub(super) fn made_in(&self, text: &str) -> Option<String> {
        let [from, to] = self.span.map(|(line, column)| offset(text, line, column));
        let (from, to) = (from?, to?);
        let rest = text.get(to..)?;
        // A field, or an arm, that goes takes its comma with it.
        let rest = if self.replacement.is_empty() { rest.strip_prefix(',').unwrap_or(rest) } else { rest };
        Some(format!("{} {} {rest}", text.get(..from)?, self.replacement))
    }
}

/// Where a line's column begins in a text.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let within = text.get(before..)?.char_indices().nth(column.checked_sub(1)?);
    within.map(|(at, _)| before + at)
}

/// What may still be tried, one queue for each stratum.
pub(super) struct Queues {
    queues: Vec<(&'static str, usize, Vec<Mutant>)>,
    turn: usize,
}

impl Queues {
    /// In the seed's order, of the strata that are wanted.
    pub(super) fn new(listed: Vec<Mutant>, seed: u64, wanted: impl Fn(&str) -> bool) -> Queues {
        let mut of: Vec<Vec<Mutant>> = STRATA.iter().map(|_| vec![]).collect();
        for mutant in listed {
            if let Some(at) = STRATA.iter().position(|stratum| stratum.has(&mutant.file)) {
                of[at].push(mutant);
            }
        }
        let mut chance = Prng::new(seed);
        // All are shuffled, so that one stratum's sample does not depend on which others are wanted.
        of.iter_mut().for_each(|mutants| chance.shuffle(mutants));
        let named = STRATA.iter().zip(of).filter(|(stratum, _)| wanted(stratum.name));
        let queues = named.map(|(stratum, mutants)| (stratum.name, mutants.len(), mutants)).collect();
        Queues { queues, turn: 0 }
    }

    /// The strata, each with all that it has.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.queues.iter().map(|(name, size, _)| (*name, *size))
    }

    /// The next one, of a stratum that has not yet its share of `sample`; `counted` tells how many of it count so far.
    pub(super) fn next(&mut self, sample: usize, counted: impl Fn(&str) -> usize) -> Option<Mutant> {
        let strata = self.queues.len();
        for _ in 0..strata {
            let at = self.turn % strata;
            self.turn += 1;
            // What does not divide evenly goes to the first ones.
            let share = sample / strata + usize::from(at < sample % strata);
            let (name, _, queue) = &mut self.queues[at];
            if counted(name) < share && !queue.is_empty() {
                return queue.pop();
            }
        }
        None
    }
}

/// The stratum of a file.
pub(super) fn stratum_of(file: &str) -> Option<&'static str> {
    STRATA.iter().find(|stratum| stratum.has(file)).map(|stratum| stratum.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    fn listed() -> Vec<Mutant> {
        let files =
            ["crates/dyno-proto/src/json.rs", "crates/dyno-measure/src/judge.rs", "crates/dyno/src/main.rs"];
        let each = files.iter().flat_map(|file| (0..50).map(move |number| (file, number)));
        each.map(|(file, number)| Mutant {
            name: format!("{file}:{number}"),
            package: "p".to_owned(),
            file: (*file).to_owned(),
            span: [(1, 1); 2],
            replacement: String::new(),
        })
        .collect()
    }

    fn drawn(seed: u64, sample: usize) -> Vec<String> {
        let mut queues = Queues::new(listed(), seed, |_| true);
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names = vec![];
        while let Some(mutant) = queues.next(sample, |name| counted.get(name).copied().unwrap_or_default()) {
            *counted.entry(stratum_of(&mutant.file).unwrap_or_default()).or_default() += 1;
            names.push(mutant.name);
        }
        names
    }

    #[test]
    fn a_seed_repeats_its_sample_and_another_draws_another() {
        assert_eq!(drawn(7, 20), drawn(7, 20));
        assert_ne!(drawn(7, 20), drawn(8, 20));
    }

    #[test]
    fn strata_take_turns_and_each_gives_its_share() {
        // Two of five strata have anything here: each gives a fifth of the sample.
        let names = drawn(1, 20);
        assert_eq!(names.len(), 8, "{names:?}");
        assert!(names.chunks(2).all(|two| two[0].contains("proto") && two[1].contains("judge")), "{names:?}");
        assert_eq!(drawn(1, 1000).len(), 100);
        assert_eq!(drawn(1, 6).len(), 3);
    }

    #[test]
    fn what_does_not_count_is_replaced() {
        let mut queues = Queues::new(listed(), 1, |name| name == "proto");
        let mut drawn = 0;
        while queues.next(3, |_| drawn / 2).is_some() {
            drawn += 1;
        }
        assert_eq!(drawn, 6);
    }

    #[test]
    fn every_place_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for place in STRATA.iter().flat_map(|stratum| stratum.places) {
            let there = root.join(place).is_dir() || root.join(format!("{place}.rs")).is_file();
            assert!(there, "{place}");
        }
    }

    #[test]
    fn a_change_replaces_its_letters_and_nothing_else() {
        let change = |span, replacement: &str| {
            let replacement = replacement.to_owned();
            Mutant { span, replacement, ..listed().remove(0) }
        };
        let text = "é { a < b,\n c: 1, d: 2 }\n";
        let made = |span, replacement| change(span, replacement).made_in(text);
        assert_eq!(made([(1, 7), (1, 8)], ">").as_deref(), Some("é { a  >  b,\n c: 1, d: 2 }\n"));
        assert_eq!(made([(2, 2), (2, 6)], "").as_deref(), Some("é { a < b,\n    d: 2 }\n"));
        assert_eq!(made([(9, 1), (9, 2)], "x"), None);
        assert_eq!(made([(0, 1), (1, 2)], "x"), None);
    }

    #[test]
    fn the_judge_is_not_counted_among_the_measures() {
        assert_eq!(stratum_of("crates/dyno-measure/src/judge.rs"), Some("judge"));
        assert_eq!(stratum_of("crates/dyno-measure/src/hist.rs"), Some("measure"));
        assert_eq!(stratum_of("crates/dyno/src/main.rs"), None);
    }
}
