//! A step of a build, as a plan writes it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::dial::Setting;

/// One step of a build: a command that ends by itself, or a server that is loaded for a while and then ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildStep {
    /// Program and arguments of a command; no shell.
    #[serde(default)]
    pub run: Vec<String>,
    /// Program and arguments of a server that the plan's load trains: it leaves a profile when it ends.
    #[serde(default)]
    pub train: Vec<String>,
    /// How long it is loaded, ms.
    #[serde(default = "train_ms")]
    pub for_ms: u64,
    /// `dial=value` of a build dial: the step is left out where the dial stands elsewhere.
    #[serde(default)]
    pub when: Option<String>,
    /// Variables added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

fn train_ms() -> u64 {
    1_000
}

impl BuildStep {
    /// Its program and arguments.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        if self.run.is_empty() { &self.train } else { &self.run }
    }

    /// Every text of it.
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.run.iter().chain(&self.train).chain(self.env.values())
    }

    pub(super) fn names(&self, dial: &str) -> bool {
        let word = in_braces(dial);
        let of_when = |when: &String| when.split_once('=').is_some_and(|(name, _)| name == dial);
        self.texts().any(|text| text.contains(&word)) || self.when.as_ref().is_some_and(of_when)
    }

    pub(super) fn stands(&self, setting: &Setting) -> bool {
        let holds = |when: &String| when.split_once('=').is_some_and(|(name, to)| setting.get(name) == to);
        self.when.as_ref().is_none_or(holds)
    }
}

/// How a dial is named in a step.
pub(super) fn in_braces(name: &str) -> String {
    format!("{{{name}}}")
}
