//! The catalogue: every specimen with its truth and its sources, carried in this program.
//!
//! A specimen is a folder under `specimens/` and a line in [`SHELF`]. What stands in `specimen.toml` is described in
//! docs/manual/specimens.md.

use dyno_record::specimen::{Source, Specimen};

/// A specimen before its truth is read.
struct Shelved {
    name: &'static str,
    truth: &'static str,
    sources: &'static [Source],
}

macro_rules! source {
    ($folder:literal, $file:literal) => {
        Source {
            name: $file,
            folder: $folder,
            text: include_str!(concat!("../../../../specimens/", $folder, "/", $file)),
        }
    };
}

macro_rules! shelf {
    ($($name:literal: $main:literal $(& $own:literal)* $(+ $common:literal)+;)+) => {
        &[$(Shelved {
            name: $name,
            truth: include_str!(concat!("../../../../specimens/", $name, "/specimen.toml")),
            sources: &[
                source!($name, $main) $(, source!($name, $own))* $(, source!("common", $common))+
            ],
        }),+]
    };
}

/// In the order in which they are listed: waiting first, then what burns the CPU, then what is there for causal profiles:
/// programs whose parts can really be shortened.
const SHELF: &[Shelved] = shelf! {
    "sync-log": "main.c" + "harness.h" + "http.h";
    "o-sync-writes": "main.c" + "harness.h";
    "global-lock": "main.rs" + "harness.rs";
    "hot-lock": "main.c" + "harness.h";
    "wait-notify": "Main.java" + "Harness.java";
    "allocator-contention": "main.c" + "harness.h";
    "pool-of-100": "main.go" + "harness.go";
    "single-loop": "main.c" + "harness.h" + "http.h";
    "spin-barrier": "main.c" + "harness.h";
    "false-sharing": "main.c" + "harness.h";
    "tree-index": "main.cpp" + "harness.h";
    "allocation-churn": "main.rs" + "harness.rs";
    "stack-growth": "main.go" + "harness.go";
    "message-copies": "main.rs" + "harness.rs";
    "formatting": "main.cpp" + "harness.h";
    "pattern-per-line": "main.c" + "harness.h";
    "byte-per-call": "main.c" + "harness.h";
    "buffer-per-request": "main.c" + "harness.h";
    "page-walk": "main.c" + "harness.h";
    "column-order": "main.c" + "harness.h";
    "three-parts": "main.c" + "harness.h";
    "joined-threads": "main.c" + "harness.h" + "rounds.h";
    "slow-stage": "main.c" + "harness.h" + "queue.h";
    "producer-consumer": "main.c" + "harness.h" + "queue.h";
    "thread-split": "main.c" + "harness.h" + "queue.h";
    "hash-chains": "main.c" + "harness.h";
    "long-section": "main.c" + "harness.h";
    "eager-poller": "main.c" + "harness.h";
    "compute-critical": "main.c" + "harness.h" + "rounds.h" + "same-code.h";
    "io-critical": "main.c" + "harness.h" + "rounds.h" + "same-code.h";
    "closed-loop": "main.c" + "harness.h" + "http.h";
    "busy-stranger": "main.c" + "harness.h";
    "go-pipeline": "main.go" + "harness.go";
    "http2-writer": "main.go" & "build.go" & "go.mod" & "go.sum" + "harness.go";
};

/// Every specimen.
pub fn all() -> Vec<Specimen> {
    SHELF.iter().map(read).collect()
}

/// The specimen of this name.
pub fn find(name: &str) -> Option<Specimen> {
    SHELF.iter().find(|shelved| shelved.name == name).map(read)
}

fn read(shelved: &Shelved) -> Specimen {
    let read: Specimen = toml::from_str(shelved.truth).expect("a test reads every specimen of the shelf");
    Specimen { sources: shelved.sources.to_vec(), ..read }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::finding::Class;
    use dyno_record::specimen::{Place, Site};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_specimen_is_read_and_has_the_name_of_its_folder() {
        for shelved in SHELF {
            let specimen: Specimen = toml::from_str(shelved.truth)
                .unwrap_or_else(|error| panic!("specimens/{}/specimen.toml: {error}", shelved.name));
            assert_eq!(specimen.name, shelved.name);
            assert!(specimen.title.len() <= 70, "{}: the title is no line", specimen.name);
            let [low, high] = specimen.expect.ratio;
            let least = if specimen.causal.is_some_and(|causal| causal.null) { 0.5 } else { 1.0 };
            assert!(low >= least && high > low, "{}: {low} … {high}", specimen.name);
        }
    }

    #[test]
    fn every_folder_of_the_repository_is_on_the_shelf() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specimens");
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let folders: BTreeSet<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        let shelf = SHELF.iter().map(|shelved| shelved.name).chain(["common"]).map(str::to_owned);
        assert_eq!(folders, shelf.collect());
    }

    #[test]
    fn every_place_that_is_named_is_a_line_of_the_source() {
        for specimen in all() {
            for place in [&specimen.truth.defect, &specimen.truth.repaired] {
                assert!(specimen.line_of(place).is_some(), "{}: {place:?}", specimen.name);
            }
            assert_ne!(specimen.truth.defect, specimen.truth.repaired, "{}", specimen.name);
        }
    }

    #[test]
    fn the_causes_that_a_program_can_have_are_all_shown() {
        let shown: BTreeSet<Class> = all().iter().filter_map(|specimen| specimen.class).collect();
        // The others are of the host and of the load, and stand in no program.
        for class in [
            Class::SyncIo,
            Class::LockContention,
            Class::AllocatorContention,
            Class::UserHotSpot,
            Class::AllocationChurn,
            Class::Copying,
            Class::Formatting,
            Class::RepeatedSetup,
            Class::SyscallHeavy,
            Class::PageFaults,
            Class::TlbReach,
            Class::CacheMissesSuspected,
            Class::FalseSharingSuspected,
            Class::Spinning,
            Class::SingleThreadLimit,
            Class::PoolLimit,
        ] {
            assert!(shown.contains(&class), "{class:?}");
        }
    }

    #[test]
    fn every_part_that_is_predicted_can_be_shortened_in_its_source() {
        for specimen in all() {
            let Some(causal) = &specimen.causal else { continue };
            let holds = |text: &str| specimen.sources.iter().any(|source| source.text.contains(text));
            for part in causal.sites.iter().filter_map(Site::part) {
                let less = [format!("run_less(\"{part}\""), format!("less(\"{part}\"")];
                assert!(less.iter().any(|call| holds(call)), "{}: {part}", specimen.name);
            }
            assert!(holds("progress()") && !causal.sites.is_empty(), "{}", specimen.name);
        }
    }

    #[test]
    fn a_place_is_found_inside_its_function_only() {
        let text = "int one(void) {\n    same();\n}\nint two(void) {\n    same();\n}\n";
        let sources = vec![Source { name: "main.c", folder: "x", text: Box::leak(text.into()) }];
        let specimen = Specimen { sources, ..find("sync-log").unwrap() };
        let place = |function: &str, line: &str| Place {
            file: "main.c".to_owned(),
            function: function.to_owned(),
            line: line.to_owned(),
        };
        assert_eq!(specimen.line_of(&place("one", "same();")), Some(2));
        assert_eq!(specimen.line_of(&place("two", "same();")), Some(5));
        assert_eq!(specimen.line_of(&place("three", "same();")), None);
        assert_eq!(specimen.line_of(&place("one", "other();")), None);
    }

    #[test]
    fn an_unknown_key_in_a_truth_is_refused() {
        let text = format!("speed = 9\n{}", SHELF[0].truth);
        assert!(toml::from_str::<Specimen>(&text).is_err());
    }

    #[test]
    fn every_specimen_with_parts_has_a_row_for_each() {
        for causal in all().into_iter().filter_map(|specimen| specimen.causal) {
            let variants = dyno_record::truth::variants(&causal.sites, &[10, 25, 50]);
            for site in &causal.sites {
                assert!(variants.iter().any(|variant| variant.tries(site)), "{}", site.name);
            }
        }
    }
}
