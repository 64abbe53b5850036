//! What the pages of `docs/` must be for a book: each named in SUMMARY.md, each link to something that is there.
//!
//! `tidy` and `book` ask. Links to other sites are not followed; the places within a page are looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::repo::Repo;
use crate::trouble::Trouble;

use super::finding::Finding;

const FOLDER: &str = "docs/";

const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages outside the book whose links are looked at all the same.
const BESIDE: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Everything that is wrong with the pages.
pub(crate) fn findings(repo: &Repo) -> Result<Vec<Finding>, Trouble> {
    let pages: Vec<String> =
        repo.files(&[".md"])?.into_iter().filter(|path| path.starts_with(FOLDER)).collect();
    let mut texts = BTreeMap::new();
    for path in pages.iter().map(String::as_str).chain(BESIDE) {
        texts.insert(path.to_owned(), repo.read(path)?);
    }
    let mut found = unnamed(&texts);
    for (path, text) in &texts {
        found.extend(broken(path, text, &texts, &|file| repo.path(file).exists()));
    }
    Ok(found)
}

/// Pages that SUMMARY.md does not name: nobody would find them.
fn unnamed(texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let summary = texts.get(SUMMARY).map_or("", String::as_str);
    let named: BTreeSet<String> = links(summary).map(|(_, to)| resolved(SUMMARY, to)).collect();
    let pages = texts.keys().filter(|path| path.starts_with(FOLDER) && *path != SUMMARY);
    let finding = |path: &String| Finding {
        path: path.clone(),
        line: 1,
        text: format!("{SUMMARY} does not name this page: the book has it not"),
    };
    pages.filter(|path| !named.contains(*path)).map(finding).collect()
}

fn broken(
    path: &str,
    text: &str,
    texts: &BTreeMap<String, String>,
    exists: &dyn Fn(&str) -> bool,
) -> Vec<Finding> {
    let elsewhere = |to: &str| to.contains("://") || to.starts_with("mailto:");
    let mut found = Vec::new();
    for (line, to) in links(text).filter(|(_, to)| !elsewhere(to)) {
        let (file, place) = to.split_once('#').unwrap_or((to, ""));
        let target = if file.is_empty() { path.to_owned() } else { resolved(path, file) };
        let why = match texts.get(&target) {
            _ if path.starts_with(FOLDER) && !target.starts_with(FOLDER) => {
                format!("links to {to}, which the book has not: write its path instead")
            }
            None if !exists(&target) => format!("links to {to}, which is not there"),
            Some(page) if !place.is_empty() && !places(page).contains(place) => {
                format!("links to {to}: that page has no such heading")
            }
            _ => continue,
        };
        found.push(Finding { path: path.to_owned(), line, text: why });
    }
    found
}

/// Line and target of each link, but those in code.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.flat_map(|(at, line)| {
        let targets =
            line.match_indices("](").filter(|(from, _)| line[..*from].matches('`').count() % 2 == 0);
        let inside = targets.filter_map(|(from, _)| line[from + 2..].split([')', ' ']).next());
        inside.map(move |to| (at + 1, to)).collect::<Vec<_>>()
    })
}

/// A link's target as a path from the root, seen from the page that has it.
fn resolved(page: &str, to: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(to).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// The headings of a page as links name them: small letters, dashes for blanks, nothing else but letters and digits.
fn places(page: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = page.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let kept = |c: char| c.is_alphanumeric() || "-_ ".contains(c);
    let place = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        text.chars().filter(|c| kept(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pages: &[(&str, &str)]) -> BTreeMap<String, String> {
        pages.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_page_that_the_summary_does_not_name_is_found() {
        let all = texts(&[(SUMMARY, "- [A](manual/a.md)"), ("docs/manual/a.md", ""), ("docs/b.md", "")]);
        let found = unnamed(&all);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "docs/b.md");
    }

    #[test]
    fn a_link_to_nothing_and_to_no_heading_is_found_with_its_line() {
        let text = "# A\n[ok](b.md#two-words) [gone](c.md)\n```\n[code](x.md)\n```\n`[code](x.md)`\n[no](b.md#three)\n[web](https://x/y)\n[here](#a)\n[up](../README.md)";
        let all = texts(&[("docs/a.md", text), ("docs/b.md", "## Two, words!\n")]);
        let found = broken("docs/a.md", text, &all, &|path| path == "README.md");
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 7, 10], "{found:?}");
    }
}
