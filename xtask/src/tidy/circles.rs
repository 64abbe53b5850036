//! No two files and no two folders of a crate use each other: whoever reads one must not have to read both at once.
//!
//! Files that use each other, directly or by way of others, are one circle; so are folders (a module with what stands below
//! it) beside each other. A type that both need goes into a file below both.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::modules::{Modules, Path, Use};

/// The circles of one crate.
pub(super) fn findings(src: &str, files: &[(String, String)]) -> Vec<Finding> {
    let modules = Modules::read(src, files);
    let uses = modules.uses();
    let mut found = of_files(&modules, &uses);
    found.extend(of_folders(&modules, &uses));
    found
}

fn of_files(modules: &Modules, uses: &[Use]) -> Vec<Finding> {
    let edges = uses.iter().map(|one| (one.from.clone(), one.to.clone()));
    let circles = circles(&edges.collect());
    circles.into_iter().map(|circle| finding(modules, uses, "files", &circle, &Path::clone)).collect()
}

/// Folders beside each other, level by level. Those of single files are found as files already.
fn of_folders(modules: &Modules, uses: &[Use]) -> Vec<Finding> {
    let parents: BTreeSet<Path> =
        modules.iter().filter_map(|(path, _)| Some(path.split_last()?.1.to_vec())).collect();
    let mut found = Vec::new();
    for parent in parents {
        let depth = parent.len();
        let within = |path: &Path| path.len() > depth && path.starts_with(&parent);
        let node = |path: &Path| path[..path.len().min(depth + 1)].to_vec();
        let edges = uses.iter().filter(|one| within(&one.from) && within(&one.to));
        let edges = edges.map(|one| (node(&one.from), node(&one.to))).filter(|(from, to)| from != to);
        for circle in circles(&edges.collect()) {
            let has_folder =
                |path: &Path| modules.iter().filter(|(one, _)| one.starts_with(path)).count() > 1;
            if circle.iter().any(has_folder) {
                let of: Vec<Use> =
                    uses.iter().filter(|one| within(&one.from) && within(&one.to)).cloned().collect();
                found.push(finding(modules, &of, "folders", &circle, &node));
            }
        }
    }
    found
}

/// One finding for a circle: who is in it, and the lines that make it.
fn finding(
    modules: &Modules,
    uses: &[Use],
    what: &str,
    circle: &BTreeSet<Path>,
    node: &dyn Fn(&Path) -> Path,
) -> Finding {
    let inside = |one: &&Use| {
        let (from, to) = (node(&one.from), node(&one.to));
        from != to && circle.contains(&from) && circle.contains(&to)
    };
    let line = |one: &Use| format!("{}:{} uses {}", modules.file(&one.from), one.line, modules.file(&one.to));
    let lines: Vec<String> = uses.iter().filter(inside).map(line).collect();
    let first = uses.iter().find(inside);
    let names: Vec<String> = circle
        .iter()
        .map(|path| path.join("::"))
        .map(|name| if name.is_empty() { "the root".to_owned() } else { name })
        .collect();
    Finding {
        path: first.map_or_else(String::new, |one| modules.file(&one.from).to_owned()),
        line: first.map_or(1, |one| one.line),
        text: format!("{what} use each other: {}\n    {}", names.join(", "), lines.join("\n    ")),
    }
}

/// The sets of nodes that reach each other.
fn circles(edges: &BTreeSet<(Path, Path)>) -> Vec<BTreeSet<Path>> {
    let mut next: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        next.keys().map(|from| (*from, reach(from, &next))).collect();
    let mut found: Vec<BTreeSet<Path>> = Vec::new();
    for (from, to) in &reached {
        if !to.contains(from) || found.iter().any(|circle| circle.contains(*from)) {
            continue;
        }
        let back = |one: &&&Path| reached.get(**one).is_some_and(|of_it| of_it.contains(from));
        found.push(to.iter().filter(back).map(|path| (*path).clone()).collect());
    }
    found
}

fn reach<'p>(from: &Path, next: &BTreeMap<&Path, Vec<&'p Path>>) -> BTreeSet<&'p Path> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Path> = next.get(from).cloned().unwrap_or_default();
    while let Some(path) = open.pop() {
        if seen.insert(path) {
            open.extend(next.get(path).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, String)> =
            files.iter().map(|(name, text)| (format!("src/{name}"), (*text).to_owned())).collect();
        findings("src/", &files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_use_each_other_are_found_with_their_lines() {
        let found = texts(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "\nuse crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("src/a.rs:1: files use each other: a, b, c\n"), "{found:?}");
        assert!(found[0].contains("src/b.rs:2 uses src/c.rs"), "{found:?}");
    }

    #[test]
    fn folders_that_use_each_other_are_found_where_no_two_files_do() {
        let found = texts(&[
            ("lib.rs", "mod x;\nmod y;"),
            ("x.rs", "mod a;\nmod b;"),
            ("x/a.rs", "use crate::y::c::C;"),
            ("x/b.rs", ""),
            ("y.rs", "mod c;\nmod d;"),
            ("y/c.rs", ""),
            ("y/d.rs", "use crate::x::b::B;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("folders use each other: x, y"), "{found:?}");
    }

    #[test]
    fn one_way_is_no_circle() {
        let files = [("lib.rs", "mod a;\nmod b;\npub use a::A;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")];
        assert_eq!(texts(&files), Vec::<String>::new());
    }
}
