//! Dials and settings: what can be turned, and where everything stands.
//!
//! A *dial* is a named choice with ordered values; a *setting* is a value for every dial. A dial also knows how its value
//! reaches the server, and from that follows how a change reverts: nobody writes that by hand.

use std::collections::BTreeMap;

use dyno_record::lab::Part;

/// How a dial's value reaches the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Words on the command line; a change restarts the server.
    Arg,
    /// An environment variable; a change restarts the server.
    Env {
        /// Its name.
        variable: String,
    },
    /// Text put in place of `{dial}` in the plan's files and command line; a change renders them and restarts.
    Template,
    /// Command-line words at the start, a message over the control socket while it runs: one instance is toggled in place.
    Live,
    /// A host setting, written through the journal and put back afterwards.
    Knob {
        /// The file under `/proc/sys` or `/sys`.
        path: String,
    },
    /// A part of the laboratory's network (`dyno climb --netns`), which ends with the climb.
    Lab {
        /// The part.
        part: Part,
    },
    /// Words of the steps that build the server; a change builds another and starts that.
    Build,
    /// Nothing that a climb turns: what a rung that is told and not tried would change.
    Told,
}

impl How {
    /// How a change of such a dial goes back, in words.
    #[must_use]
    pub fn reverts(&self) -> String {
        match self {
            Self::Arg => "restart without the flag".into(),
            Self::Env { variable } => format!("restart without {variable}"),
            Self::Template => "render the files with the value before, restart".into(),
            Self::Live => "set back over the control socket, at once".into(),
            Self::Knob { path } => format!("the journal holds the old value of {path}; it is written back"),
            Self::Lab { part } => {
                format!("{} is set back in the laboratory, which ends with the climb", part.name())
            }
            Self::Build => "start the server that was built without it".into(),
            Self::Told => "nothing is changed".into(),
        }
    }
}

/// One value of a dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its name in settings and reports.
    pub name: String,
    /// Words for the command line (`Arg`, `Live`) or the build (`Build`).
    pub words: Vec<String>,
    /// Text for the template, the variable, the control message or the knob.
    pub text: String,
}

impl Value {
    /// What it puts into force where the dial's values reach the server so.
    #[must_use]
    pub fn stands_for(&self, how: &How) -> String {
        let words = self.words.join(" ");
        match how {
            How::Arg | How::Live => [words, self.text.clone()].join(" ").trim().to_owned(),
            How::Env { variable } => format!("{variable}={}", self.text),
            How::Template => self.text.clone(),
            How::Knob { path } => format!("{path}: {}", self.text),
            How::Lab { part } => format!("{}: {}", part.name(), self.text),
            How::Build => words,
            How::Told => String::new(),
        }
    }
}

/// A named choice with ordered values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// Its name.
    pub name: String,
    /// How its value reaches the server.
    pub how: How,
    /// Its values, in order.
    pub values: Vec<Value>,
    /// Where it stands at the start: an index into `values`.
    pub start: usize,
}

impl Dial {
    /// The index of the value with this name.
    #[must_use]
    pub fn position(&self, value: &str) -> Option<usize> {
        self.values.iter().position(|v| v.name == value)
    }
}

/// A value for every dial, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Setting(BTreeMap<String, String>);

impl Setting {
    /// Where all dials stand at the start.
    #[must_use]
    pub fn start(dials: &[Dial]) -> Self {
        Self(dials.iter().map(|dial| (dial.name.clone(), dial.values[dial.start].name.clone())).collect())
    }

    /// Where a dial stands; empty for a dial that the plan does not have.
    #[must_use]
    pub fn get(&self, dial: &str) -> &str {
        self.0.get(dial).map_or("", String::as_str)
    }

    /// This setting with one dial turned.
    #[must_use]
    pub fn with(&self, dial: &str, value: &str) -> Self {
        let mut turned = self.clone();
        turned.0.insert(dial.to_owned(), value.to_owned());
        turned
    }

    /// `dial=value` for each dial, in order of names.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(|(dial, value)| format!("{dial}={value}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_a_dial_leaves_the_setting_before_as_it_was() {
        let value = |name: &str| Value { name: name.into(), words: vec![], text: String::new() };
        let dial =
            Dial { name: "log".into(), how: How::Arg, values: vec![value("sync"), value("off")], start: 0 };
        let start = Setting::start(&[dial]);
        let turned = start.with("log", "off");
        assert_eq!((start.get("log"), turned.get("log"), turned.get("nothing")), ("sync", "off", ""));
        assert_eq!(turned.words(), ["log=off"]);
    }
}
