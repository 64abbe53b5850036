//! What a wrong name was perhaps meant to be: the one place that says "did you mean".
//!
//! Called wherever a name is looked up in a list and is not there: rungs, dials and keys of plans, settings, system calls,
//! ids of findings, specimens. Verbs and flags have the command line's own. Nothing here knows what the names are of.

/// Names that are less alike are no help.
const ALIKE_MIN: f64 = 0.6;

/// Letters that must be there before the beginning of a name stands for the name.
const BEGINNING_MIN: usize = 3;

/// How alike a name is that begins with what was given: more than one with a few wrong letters, less than one with one.
const BEGINS: f64 = 0.8;

/// The known name that is most like this one; `None` where none is like it. Of two that are, the first.
pub fn meant<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let rated = known.into_iter().map(|name| (likeness(wrong, name), name));
    let better = |best: Option<(f64, &'k str)>, next: (f64, &'k str)| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    };
    rated.filter(|(likeness, _)| *likeness >= ALIKE_MIN).fold(None, better).map(|(_, name)| name)
}

/// The question for it.
pub fn did_you_mean<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    meant(wrong, known).map(question)
}

/// "did you mean NAME?", for who found the name otherwise.
pub fn question(name: &str) -> String {
    format!("did you mean {name}?")
}

/// From 0, nothing in common, to 1, the same but for capitals and the kind of dash.
pub fn likeness(wrong: &str, known: &str) -> f64 {
    let [wrong, known] = [wrong, known].map(|name| name.to_lowercase().replace('_', "-"));
    let begins = wrong.chars().count() >= BEGINNING_MIN && known.starts_with(&wrong);
    let alike = strsim::normalized_damerau_levenshtein(&wrong, &known);
    if begins { alike.max(BEGINS) } else { alike }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNGS: [&str; 4] = ["one-send", "log-ring", "log-off", "recv-send"];

    #[test]
    fn a_letter_too_many_too_few_or_swapped_is_seen_through() {
        for wrong in ["one-sendd", "onesend", "one-sned", "ONE_SEND", "one-s"] {
            assert_eq!(meant(wrong, RUNGS), Some("one-send"), "{wrong}");
        }
        assert_eq!(did_you_mean("log-rign", RUNGS).as_deref(), Some("did you mean log-ring?"));
    }

    #[test]
    fn what_is_like_nothing_is_left_alone() {
        for wrong in ["", "x", "lo", "threads-per-core", "\u{1b}[2J"] {
            assert_eq!(meant(wrong, RUNGS), None, "{wrong}");
        }
        assert_eq!(meant("one-send", []), None);
    }

    #[test]
    fn of_two_that_are_as_like_the_first_is_meant() {
        assert_eq!(meant("log", RUNGS), Some("log-ring"));
        assert_eq!(meant("log-o", RUNGS), Some("log-off"));
    }
}
