//! A specimen whose names say nothing, so that a diagnosis of it reads what it does and not what it is called.
//!
//! Files are called the same in every specimen; folders of neutral builds carry a number.

use dyno_record::specimen::Specimen;

/// Which names a build has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Those of the source.
    Own,
    /// Numbers for all names that would say what it is.
    Neutral,
}

/// The files of a build: names and texts.
pub fn files(specimen: &Specimen, naming: Naming) -> Vec<(String, String)> {
    let text = |text: &str| match naming {
        Naming::Own => text.to_owned(),
        Naming::Neutral => renamed(text, &specimen.rename),
    };
    specimen.sources.iter().map(|source| (source.name.to_owned(), text(source.text))).collect()
}

/// The text with each of `names` replaced where it stands as a whole word: the first by `n1`, the second by `n2` …
fn renamed(text: &str, names: &[String]) -> String {
    let mut text = text.to_owned();
    for (at, name) in names.iter().enumerate() {
        text = replaced(&text, name, &format!("n{}", at + 1));
    }
    text
}

fn replaced(text: &str, name: &str, with: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        out.push_str(before);
        let inside = ends_in_word(&out) || starts_in_word(after);
        out.push_str(if inside { name } else { with });
        rest = after;
    }
    out + rest
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_of_word)
}

fn starts_in_word(text: &str) -> bool {
    text.chars().next().is_some_and(is_of_word)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::all;
    use super::*;

    #[test]
    fn whole_words_are_replaced_and_parts_of_words_are_not() {
        let names = ["lock".to_owned(), "access.log".to_owned()];
        let text = "lock(a); unlock(lock); lock_all(\"access.log\", blocks)";
        assert_eq!(renamed(text, &names), "n1(a); unlock(n1); lock_all(\"n2\", blocks)");
    }

    #[test]
    fn every_name_that_is_replaced_stands_in_the_source_and_is_gone_afterwards() {
        for specimen in all() {
            let own = files(&specimen, Naming::Own);
            let neutral = files(&specimen, Naming::Neutral);
            for name in &specimen.rename {
                assert!(own.iter().any(|(_, text)| text.contains(name)), "{}: {name}", specimen.name);
                let left = neutral.iter().any(|(_, text)| replaced(text, name, "") != *text);
                assert!(!left, "{}: {name}", specimen.name);
            }
        }
    }

    #[test]
    fn the_functions_of_the_truth_are_not_named_by_a_neutral_build() {
        for specimen in all() {
            for place in [&specimen.truth.defect, &specimen.truth.repaired] {
                // `main` and `task` say nothing.
                let is_neutral = specimen.rename.contains(&place.function) || place.function.len() <= 4;
                assert!(is_neutral, "{}: {}", specimen.name, place.function);
            }
        }
    }
}
