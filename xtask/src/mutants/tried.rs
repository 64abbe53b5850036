//! The list of what was tried, which a later run goes on from: a line for each change, with the commit that it was tried
//! at.

use std::path::Path;

use super::tool::Fate;
use crate::command::{command, output};
use crate::repo::Repo;
use crate::trouble::Trouble;

/// A change that was tried, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tried {
    /// cargo-mutants' own name of it; it begins with the file.
    pub(super) name: String,
    pub(super) fate: Fate,
    /// What was tested, in git's short words.
    pub(super) commit: String,
}

impl Tried {
    /// The file that was changed.
    pub(super) fn file(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }

    fn line(&self) -> String {
        format!("{}\t{}\t{}\n", self.commit, self.fate.word(), self.name)
    }

    fn parse(line: &str) -> Option<Tried> {
        let [commit, fate, name] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        Some(Tried { name: name.to_owned(), fate: Fate::of_word(fate)?, commit: commit.to_owned() })
    }
}

/// What the list holds; nothing where there is none yet.
pub(super) fn read(list: &Path) -> Result<Vec<Tried>, Trouble> {
    if !list.exists() {
        return Ok(vec![]);
    }
    let text = std::fs::read_to_string(list).map_err(Trouble::cannot(format!("read {}", list.display())))?;
    let odd = |line: &str| Trouble::new(format!("{}: not understood: {line}", list.display()));
    text.lines().map(|line| Tried::parse(line).ok_or_else(|| odd(line))).collect()
}

/// Writes the list anew.
pub(super) fn write(list: &Path, tried: &[Tried]) -> Result<(), Trouble> {
    let text: String = tried.iter().map(Tried::line).collect();
    std::fs::write(list, text).map_err(Trouble::cannot(format!("write {}", list.display())))
}

/// What is tested now.
pub(super) fn commit(repo: &Repo) -> Result<String, Trouble> {
    let mut asked = command(["git", "describe", "--always", "--dirty", "--exclude", "*"]);
    Ok(output(asked.current_dir(repo.root()))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_an_odd_line_is_named() {
        let list = std::env::temp_dir().join(format!("dyno-tried-{}.tsv", std::process::id()));
        assert_eq!(read(&list).unwrap(), []);
        let tried = |name: &str, fate| Tried { name: name.to_owned(), fate, commit: "abc".to_owned() };
        let both = [tried("a.rs:1:2: replace f -> () with ()", Fate::Missed), tried("b", Fate::TimedOut)];
        write(&list, &both).unwrap();
        assert_eq!(read(&list).unwrap(), both);
        assert_eq!((both[0].file(), both[1].file()), ("a.rs", "b"));
        std::fs::write(&list, "abc\tlost\tb\n").unwrap();
        assert!(read(&list).unwrap_err().to_string().contains("lost"));
        std::fs::remove_file(list).unwrap();
    }
}
