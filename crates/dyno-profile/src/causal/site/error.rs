//! Names that mean nothing, or too much, and what comes near them.

use std::io;

use dyno_sys::Pid;

/// Names that are offered in place of an unknown one.
const NEAR_MAX: usize = 5;

/// A place in code that was not found.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The process is gone, or another user's.
    #[error("cannot read what process {pid} maps")]
    Unreadable {
        /// Its number.
        pid: Pid,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A kernel thread, or one whose files cannot be opened.
    #[error("process {pid} maps no file with code that can be opened")]
    NoCode {
        /// Its number.
        pid: Pid,
    },
    /// No function has that name.
    #[error("no function is called \"{name}\"{}", or_near(.near))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What comes near.
        near: Vec<String>,
    },
    /// The program has no names.
    #[error("no function is called \"{name}\": {path} was stripped of its symbols")]
    Stripped {
        /// What was asked for.
        name: String,
        /// The program.
        path: String,
    },
    /// More than one has that name.
    #[error("\"{name}\" is the name of several: {}", .found.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it could be.
        found: Vec<String>,
    },
    /// It has no beginning of its own.
    #[error("\"{name}\" was folded into all its callers: it has no beginning where a probe could be set")]
    Folded {
        /// Its name.
        name: String,
    },
    /// A line without code.
    #[error("{name} has no code{}", nearest_in_words(.nearest))]
    NoLine {
        /// What was asked for.
        name: String,
        /// The nearest lines of that file that have.
        nearest: Vec<u32>,
    },
    /// A file that nothing was compiled from.
    #[error("no file of that name was compiled into the program: {name}")]
    NoFile {
        /// What was asked for.
        name: String,
    },
    /// The program has no lines.
    #[error("{path} has no debug information: {name} cannot be found in it")]
    NoDebug {
        /// What was asked for.
        name: String,
        /// The program.
        path: String,
    },
    /// A site is a function or a line, not an instruction.
    #[error("\"{name}\" is one instruction: a site is a function or a line")]
    Offset {
        /// What was asked for.
        name: String,
    },
    /// A wait of no known kind, and no file.
    #[error("\"{name}\" is no kind of wait: disk, lock, network, any, or the absolute path of a file")]
    NoWait {
        /// What was asked for.
        name: String,
    },
    /// An offset that leads into an instruction.
    #[error("\"{name}\" lies within an instruction: one begins at +{:#x}, the next at +{:#x}", .around[0], .around[1])]
    NoInstruction {
        /// What was asked for.
        name: String,
        /// Where the instruction around it begins, and the next one, from the function's beginning.
        around: [u64; 2],
    },
    /// An offset that leads out of the function.
    #[error("\"{name}\" lies behind the function's end: it has {bytes:#x} bytes")]
    Beyond {
        /// What was asked for.
        name: String,
        /// How long the function is.
        bytes: u64,
    },
    /// The place lies outside of what the file holds.
    #[error("\"{name}\" lies outside of its file")]
    NotInFile {
        /// Its name.
        name: String,
    },
}

fn or_near(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) }
}

fn nearest_in_words(nearest: &[u32]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!("; line {one} has"),
        several => {
            format!("; lines {} have", several.iter().map(u32::to_string).collect::<Vec<_>>().join(" and "))
        }
    }
}

/// The names that are fewest changes away, or hold the wanted one.
pub(super) fn near<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let far_max = wanted.chars().count() / 3 + 1;
    let scored = |name: &'n str| {
        let last = name.rsplit([':', '.']).find(|part| !part.is_empty()).unwrap_or(name);
        let last = last.split('(').next().unwrap_or(last);
        let far = distance(wanted, last).min(distance(wanted, name));
        let far = if wanted.len() > 2 && name.contains(wanted) { far.min(far_max) } else { far };
        (far <= far_max).then_some((far, name))
    };
    let mut found: Vec<(usize, &str)> = names.filter_map(scored).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// Insertions, deletions and changes from one to the other (Levenshtein). Long ones are only far apart.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > a.len() / 3 + 1 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_offered_the_right_name() {
        let names = ["app::parse_head", "parse_body", "serve", "main"];
        assert_eq!(near("parse_haed", names.into_iter()), ["app::parse_head", "parse_body"]);
        assert_eq!(near("zzzzzzzz", names.into_iter()), [""; 0]);
        assert_eq!((distance("", "ab"), distance("kitten", "sitting")), (usize::MAX, 3));
    }
}
