//! The table of programs and of what is wrong with each. The strangers' task reads it.

use std::path::Path;

use super::table;
use crate::trouble::Trouble;

/// One line of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) name: String,
    pub(crate) script: String,
    pub(crate) variant: String,
    /// Classes of which any may stand first; none where nothing is wrong.
    classes: Vec<String>,
    /// Where the program is from.
    pub(crate) from: String,
    /// What was changed to know it.
    pub(crate) known_by: String,
}

impl Truth {
    pub(crate) fn is_healthy(&self) -> bool {
        self.classes.is_empty()
    }

    pub(crate) fn is_right(&self, class: &str) -> bool {
        self.classes.iter().any(|expected| expected == class)
    }

    pub(crate) fn expected(&self) -> String {
        if self.is_healthy() { "healthy".to_owned() } else { self.classes.join(" or ") }
    }

    /// Whether one of these words, separated by commas, is in its name.
    pub(crate) fn is_named(&self, only: &str) -> bool {
        table::is_named(&self.name, only)
    }
}

/// Reads the table: six columns, lines that begin with # are comments.
///
/// # Errors
/// When it cannot be read, or a line has other columns.
pub(crate) fn read(path: &Path) -> Result<Vec<Truth>, Trouble> {
    table::read(path, parse)
}

/// One line.
pub(crate) fn parse(line: &str) -> Option<Truth> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, script, variant, classes, from, known_by] = columns.try_into().ok()?;
    let classes = classes.split(',').filter(|class| *class != "healthy").map(str::to_owned).collect();
    Some(Truth {
        name: name.to_owned(),
        script: script.to_owned(),
        variant: variant.to_owned(),
        classes,
        from: from.to_owned(),
        known_by: known_by.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    fn table() -> Vec<Truth> {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers/truths.tsv")).unwrap()
    }

    #[test]
    fn every_line_names_a_script_that_is_there_and_no_name_comes_twice() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers");
        let mut names = BTreeSet::new();
        for truth in table() {
            assert!(folder.join(&truth.script).is_file(), "{}", truth.script);
            assert!(names.insert(truth.name.clone()), "{} comes twice", truth.name);
            assert!(!truth.known_by.is_empty(), "{}: how is it known?", truth.name);
        }
    }

    #[test]
    fn there_are_thirty_with_something_wrong_and_twenty_without() {
        let (healthy, wrong): (Vec<Truth>, Vec<Truth>) = table().into_iter().partition(Truth::is_healthy);
        assert!(wrong.len() >= 30 && healthy.len() >= 20, "{} and {}", wrong.len(), healthy.len());
    }

    #[test]
    fn a_line_of_other_columns_is_refused() {
        assert_eq!(parse("x\ty"), None);
        let truth = parse("x\tx.sh\tv\tsync_io,lock_contention\tDebian\tset").unwrap();
        assert!(truth.is_right("lock_contention") && !truth.is_healthy() && truth.is_named("x,z"));
    }
}
