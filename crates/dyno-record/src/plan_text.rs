//! What the names of a plan stood for when it was climbed: `log=off` may be another text tomorrow.
//!
//! A climb's record holds them and comparisons ask here whether a name means the same in both. Nothing here knows a plan.

use serde::{Deserialize, Serialize};

/// A name of a plan and its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanText {
    /// `dial=value`, `file NAME` of the launch, or `load of RUNG`.
    pub name: String,
    /// The words, the variable, the text or the setting that it puts into force; the file's text before anything is filled in;
    /// what is asked, and the names of the request's bytes and of the right answer.
    pub text: String,
    /// Whether the dial stands there at the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub start: bool,
}

/// The name of a rung's own load.
#[must_use]
pub fn load_of(rung: &str) -> String {
    format!("load of {rung}")
}

/// A name that is another text in B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The name.
    pub name: String,
    /// How its text was in A, as far as it differs.
    pub a: String,
    /// How it is in B.
    pub b: String,
}

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not the same in both: {} / {}", self.name, self.a, self.b)
    }
}

/// Names of both that are not the same text. What only one has is no name of both: older records have none.
#[must_use]
pub fn changed(a: &[PlanText], b: &[PlanText]) -> Vec<Changed> {
    let of_b = |one: &PlanText| b.iter().find(|other| other.name == one.name && other.text != one.text);
    let pairs = a.iter().filter_map(|one| Some((one, of_b(one)?)));
    pairs
        .map(|(one, other)| {
            let [a, b] = apart(&one.text, &other.text);
            Changed { name: one.name.clone(), a, b }
        })
        .collect()
}

/// A text this long is shown whole.
const CHARS_MAX: usize = 48;
/// Of a longer one so much is shown before the first place that differs.
const BEFORE_MAX: usize = 12;

/// Both texts in one line each; of long ones the part that holds the first difference.
fn apart(a: &str, b: &str) -> [String; 2] {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (one, other) = (line(a), line(b));
    // Blanks alone may differ, and are then the difference.
    let both = if one == other {
        [a.escape_debug().to_string(), b.escape_debug().to_string()]
    } else {
        [one, other]
    };
    let alike = both[0].chars().zip(both[1].chars()).take_while(|(a, b)| a == b).count();
    let from = if both.iter().all(|text| text.chars().count() <= CHARS_MAX) {
        0
    } else {
        alike.saturating_sub(BEFORE_MAX)
    };
    both.map(|text| part(&text, from))
}

fn part(text: &str, from: usize) -> String {
    let shown: String = text.chars().skip(from).take(CHARS_MAX).collect();
    let before = if from > 0 { "…" } else { "" };
    let behind = if text.chars().count() > from + CHARS_MAX { "…" } else { "" };
    if text.is_empty() { "nothing".to_owned() } else { format!("{before}{shown}{behind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> Vec<PlanText> {
        let one = |(name, text): &(&str, &str)| PlanText {
            name: (*name).into(),
            text: (*text).into(),
            start: false,
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_name_of_both_with_another_text_is_told_with_both_texts() {
        let a = texts(&[("log=off", "access_log off;"), ("edge=on", "x"), ("old=1", "y")]);
        let b = texts(&[("log=off", "access_log /dev/null;"), ("edge=on", "x"), ("new=1", "y")]);
        let told: Vec<String> = changed(&a, &b).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["`log=off` is not the same in both: access_log off; / access_log /dev/null;"]);
        assert!(changed(&a, &[]).is_empty() && changed(&[], &b).is_empty(), "an older record says nothing");
    }

    #[test]
    fn of_long_texts_the_place_that_differs_is_shown() {
        let long = "worker_processes 1;\n".repeat(20);
        let (a, b) = (format!("{long}sendfile on; end"), format!("{long}sendfile off; end"));
        let one = &changed(&texts(&[("file x", &a)]), &texts(&[("file x", &b)]))[0];
        assert_eq!((one.a.as_str(), one.b.as_str()), ("…; sendfile on; end", "…; sendfile off; end"));
        let one = &changed(&texts(&[("x", "a b")]), &texts(&[("x", "a\tb")]))[0];
        assert_ne!(one.a, one.b, "blanks that differ are seen");
    }
}
