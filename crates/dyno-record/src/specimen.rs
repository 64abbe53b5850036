//! What a specimen is: a small program with one planted, known defect and its repair, as its `specimen.toml` describes it.
//!
//! The catalogue reads it, the workshop builds it, pages explain it. What stands in the file is described in
//! docs/manual/specimens.md.

use serde::{Deserialize, Serialize};

use crate::finding::Class;

/// A file as it stands in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its name without a folder: all files of a specimen are built in one.
    pub name: &'static str,
    /// The folder under `specimens/` that holds it.
    pub folder: &'static str,
    /// What stands in it.
    pub text: &'static str,
}

/// Which program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// With the planted defect.
    Defect,
    /// Without it.
    Repaired,
}

/// A specimen and its truth.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Specimen {
    /// Its name, which is its folder's.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What it is written in.
    pub language: Language,
    /// What a diagnosis of the defect must name first; none where that is not what it is for.
    pub class: Option<Class>,
    /// What is counted, in the plural.
    pub unit: String,
    /// The command that builds it, run in the folder that holds its files.
    pub build: Vec<String>,
    /// What its build gets from elsewhere where it is not in a cache yet; none for nearly all.
    pub fetches: Option<String>,
    /// The command that runs it, before the side's name; `{dir}` is the folder that it was built in.
    pub run: Vec<String>,
    /// Names that would tell what it is: replaced in a neutral build.
    pub rename: Vec<String>,
    /// How a server is loaded; none when the program works by itself.
    pub load: Option<Load>,
    /// What its sides should come to.
    pub expect: Expected,
    /// Another way to run it that teaches something, and is no side.
    pub also: Option<Also>,
    /// What is planted.
    pub truth: Truth,
    /// What a causal profile is asked, and what is tried beside it.
    pub causal: Option<Causal>,
    /// Its files.
    #[serde(skip)]
    pub sources: Vec<Source>,
}

/// What a specimen is written in, and so what builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
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
pub struct Load {
    /// Connections, each with one request at a time.
    pub connections: usize,
}

/// What the sides should come to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Units per second of the repaired side over those of the defect: the least and the most that is no surprise.
    pub ratio: [f64; 2],
}

/// What a causal profile of the defect is asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Causal {
    /// The function that is called once for each unit.
    pub progress: String,
    /// Who else takes part.
    #[serde(default)]
    pub participants: Participants,
    /// The repair changes nothing that is counted.
    #[serde(default)]
    pub null: bool,
    /// The parts whose worth is predicted.
    #[serde(rename = "site")]
    pub sites: Vec<Site>,
}

/// Processes that take part beside the program itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Participants {
    /// None, or the load that is known.
    #[default]
    None,
    /// Its children, such as a client that it starts for itself.
    Children,
}

/// A part whose worth is predicted, and how it is shortened for real.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// As `dyno causal --site` takes it.
    pub name: String,
    /// As the program's `--less` takes it; the same where it is not said.
    pub part: Option<String>,
    /// Where nothing can be shortened by shares: the other side is the real change.
    pub side: Option<Side>,
    /// Whether what it calls belongs to it.
    #[serde(default)]
    pub inclusive: bool,
}

impl Site {
    /// As the program's `--less` takes it; none where only a whole side is the real change.
    pub fn part(&self) -> Option<&str> {
        let own = self.part.as_deref().unwrap_or(&self.name);
        self.side.is_none().then_some(own)
    }
}

/// Another way to run it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Also {
    /// The word that stands where a side's name would.
    pub word: String,
    /// What it shows.
    pub what: String,
}

/// What is planted, where, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// What is planted.
    pub planted: String,
    /// Why it is slow.
    pub why: String,
    /// The repair.
    pub repair: String,
    /// Where the defect stands.
    pub defect: Place,
    /// Where the repair stands.
    pub repaired: Place,
    /// What is told of it elsewhere.
    pub story: Option<Story>,
}

/// A line of a source, found by what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The function.
    pub function: String,
    /// The line, without its indent; the first one after the function's head.
    pub line: String,
}

/// What is told of a defect like this.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    /// What was published.
    pub told: String,
    /// Where it is wrong, or what it leaves out.
    pub but: Option<String>,
}

impl Side {
    /// The word that the programs know it by.
    pub fn word(self) -> &'static str {
        match self {
            Side::Defect => "defect",
            Side::Repaired => "repaired",
        }
    }
}

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
            Language::Go => "Go",
            Language::Java => "Java",
        }
    }

    /// How the programs that build and run it come onto a machine.
    pub fn install(self) -> &'static str {
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
    pub fn line_of(&self, place: &Place) -> Option<usize> {
        let source = self.sources.iter().find(|source| source.name == place.file)?;
        let mut lines = source.text.lines().enumerate();
        lines.find(|(_, line)| is_head_of(line, &place.function))?;
        lines.find(|(_, line)| line.trim() == place.line).map(|(at, _)| at + 1)
    }

    /// Where a file of its stands in the repository.
    pub fn path_of(&self, file: &str) -> String {
        let source = self.sources.iter().find(|source| source.name == file);
        format!("specimens/{}/{file}", source.map_or("", |source| source.folder))
    }

    /// The class's name as findings write it; nothing where it is not for diagnosis.
    pub fn class_name(&self) -> String {
        let json = serde_json::to_value(self.class).unwrap_or_default();
        json.as_str().unwrap_or_default().to_owned()
    }
}

/// Whether a function of this name begins in this line: named before a parenthesis, and not called.
fn is_head_of(line: &str, function: &str) -> bool {
    let named = line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == function);
    named && line.contains('(') && line.trim_end().ends_with('{')
}
