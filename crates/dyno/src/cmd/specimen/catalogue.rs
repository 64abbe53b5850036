//! The catalogue: every specimen with its truth and its sources, carried in this program.
//!
//! A specimen is a folder under `specimens/` and a line in [`SHELF`]. What stands in `specimen.toml` is described in
//! docs/manual/specimens.md.

use dyno_record::finding::Class;
use serde::{Deserialize, Serialize};

/// A file as it stands in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its name without a folder: all files of a specimen are built in one.
    pub(crate) name: &'static str,
    /// The folder under `specimens/` that holds it.
    pub(crate) folder: &'static str,
    /// What stands in it.
    pub(crate) text: &'static str,
}

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
            text: include_str!(concat!("../../../../../specimens/", $folder, "/", $file)),
        }
    };
}

macro_rules! shelf {
    ($($name:literal: $main:literal $(& $own:literal)* $(+ $common:literal)+;)+) => {
        &[$(Shelved {
            name: $name,
            truth: include_str!(concat!("../../../../../specimens/", $name, "/specimen.toml")),
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

/// A specimen and its truth.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Specimen {
    /// Its name, which is its folder's.
    pub(crate) name: String,
    /// What it is, in a line.
    pub(crate) title: String,
    /// What it is written in.
    pub(crate) language: Language,
    /// What a diagnosis of the defect must name first; none where that is not what it is for.
    pub(crate) class: Option<Class>,
    /// What is counted, in the plural.
    pub(crate) unit: String,
    /// The command that builds it, run in the folder that holds its files.
    pub(crate) build: Vec<String>,
    /// What its build gets from elsewhere where it is not in a cache yet; none for nearly all.
    pub(crate) fetches: Option<String>,
    /// The command that runs it, before the side's name; `{dir}` is the folder that it was built in.
    pub(crate) run: Vec<String>,
    /// Names that would tell what it is: replaced in a neutral build.
    pub(crate) rename: Vec<String>,
    /// How a server is loaded; none when the program works by itself.
    pub(crate) load: Option<Load>,
    /// What its sides should come to.
    pub(crate) expect: Expected,
    /// Another way to run it that teaches something, and is no side.
    pub(crate) also: Option<Also>,
    /// What is planted.
    pub(crate) truth: Truth,
    /// What a causal profile is asked, and what is tried beside it.
    pub(crate) causal: Option<Causal>,
    /// Its files.
    #[serde(skip)]
    pub(crate) sources: Vec<Source>,
}

/// What a specimen is written in, and so what builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Language {
    /// C.
    C,
    /// C++.
    #[serde(rename = "C++")]
    Cpp,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Java.
    Java,
}

/// How a server is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    /// Connections, each with one request at a time.
    pub(crate) connections: usize,
}

/// What the sides should come to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// Units per second of the repaired side over those of the defect: the least and the most that is no surprise.
    pub(crate) ratio: [f64; 2],
}

/// What a causal profile of the defect is asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Causal {
    /// The function that is called once for each unit.
    pub(crate) progress: String,
    /// Who else takes part.
    #[serde(default)]
    pub(crate) participants: Participants,
    /// The repair changes nothing that is counted.
    #[serde(default)]
    pub(crate) null: bool,
    /// The parts whose worth is predicted.
    #[serde(rename = "site")]
    pub(crate) sites: Vec<Site>,
}

/// Processes that take part beside the program itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Participants {
    /// None, or the load that is known.
    #[default]
    None,
    /// Its children, such as a client that it starts for itself.
    Children,
}

/// A part whose worth is predicted, and how it is shortened for real.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Site {
    /// As `dyno causal --site` takes it.
    pub(crate) name: String,
    /// As the program's `--less` takes it; the same where it is not said.
    pub(crate) part: Option<String>,
    /// Where nothing can be shortened by shares: the other side is the real change.
    pub(crate) side: Option<super::record::Side>,
    /// Whether what it calls belongs to it.
    #[serde(default)]
    pub(crate) inclusive: bool,
}

impl Site {
    /// As the program's `--less` takes it; none where only a whole side is the real change.
    pub(crate) fn part(&self) -> Option<&str> {
        let own = self.part.as_deref().unwrap_or(&self.name);
        self.side.is_none().then_some(own)
    }
}

/// Another way to run it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Also {
    /// The word that stands where a side's name would.
    pub(crate) word: String,
    /// What it shows.
    pub(crate) what: String,
}

/// What is planted, where, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truth {
    /// What is planted.
    pub(crate) planted: String,
    /// Why it is slow.
    pub(crate) why: String,
    /// The repair.
    pub(crate) repair: String,
    /// Where the defect stands.
    pub(crate) defect: Place,
    /// Where the repair stands.
    pub(crate) repaired: Place,
    /// What is told of it elsewhere.
    pub(crate) story: Option<Story>,
}

/// A line of a source, found by what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// The file.
    pub(crate) file: String,
    /// The function.
    pub(crate) function: String,
    /// The line, without its indent; the first one after the function's head.
    pub(crate) line: String,
}

/// What is told of a defect like this.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Story {
    /// What was published.
    pub(crate) told: String,
    /// Where it is wrong, or what it leaves out.
    pub(crate) but: Option<String>,
}

impl Language {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
            Language::Go => "Go",
            Language::Java => "Java",
        }
    }

    /// How the programs that build and run it come onto a machine.
    pub(crate) fn install(self) -> &'static str {
        match self {
            Language::C => "sudo apt-get install gcc libc6-dev",
            Language::Cpp => "sudo apt-get install g++",
            Language::Rust => "install Rust: https://rustup.rs",
            Language::Go => "sudo apt-get install golang-go",
            Language::Java => "sudo apt-get install default-jdk-headless",
        }
    }
}

impl Specimen {
    /// The number of the line that a place means, from 1.
    pub(crate) fn line_of(&self, place: &Place) -> Option<usize> {
        let source = self.sources.iter().find(|source| source.name == place.file)?;
        let mut lines = source.text.lines().enumerate();
        lines.find(|(_, line)| is_head_of(line, &place.function))?;
        lines.find(|(_, line)| line.trim() == place.line).map(|(at, _)| at + 1)
    }

    /// Where a file of its stands in the repository.
    pub(crate) fn path_of(&self, file: &str) -> String {
        let source = self.sources.iter().find(|source| source.name == file);
        format!("specimens/{}/{file}", source.map_or("", |source| source.folder))
    }

    /// The class's name as findings write it; nothing where it is not for diagnosis.
    pub(crate) fn class_name(&self) -> String {
        let json = serde_json::to_value(self.class).unwrap_or_default();
        json.as_str().unwrap_or_default().to_owned()
    }
}

/// Whether a function of this name begins in this line: named before a parenthesis, and not called.
fn is_head_of(line: &str, function: &str) -> bool {
    let named = line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == function);
    named && line.contains('(') && line.trim_end().ends_with('{')
}

/// Every specimen.
pub(crate) fn all() -> Vec<Specimen> {
    SHELF.iter().map(read).collect()
}

/// The specimen of this name.
pub(crate) fn find(name: &str) -> Option<Specimen> {
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
    fn every_place_that_is_told_is_a_line_of_the_source() {
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
}
