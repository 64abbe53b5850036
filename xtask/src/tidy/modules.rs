//! The modules of one crate as its files make them, and what each file uses of the others.
//!
//! A reader of paths, not of the language: `use` lines and written-out paths that begin with `crate`, `super`, `self`, the
//! name of a child, or the name of a module that was imported. A re-export is seen through: who uses a name uses the file
//! that has it. Tests are left out. What methods call is not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, whole_words};
use super::uses::{Import, imports, path_at};

/// The names from the crate's root to a module.
pub(super) type Path = Vec<String>;

/// One file.
pub(super) struct Module {
    /// Where it stands, from the repository's root.
    pub(super) file: String,
    /// Its code without tests, comments and strings, byte for byte as long as the file.
    code: String,
    imports: Vec<Import>,
}

/// A crate.
pub(super) struct Modules(BTreeMap<Path, Module>);

/// One file uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    /// Who.
    pub(super) from: Path,
    /// Whom.
    pub(super) to: Path,
    /// Where it says so, from 1.
    pub(super) line: usize,
}

impl Modules {
    /// Reads a crate: `files` are paths from the repository's root with their texts, all below `src`.
    pub(super) fn read(src: &str, files: &[(String, String)]) -> Modules {
        let mut modules = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for (file, text) in files {
            let Some(path) = file.strip_prefix(src).map(module_of) else { continue };
            let (code, of_tests) = without_tests(&Source::new(text));
            tests.extend(of_tests.into_iter().map(|name| child(&path, &name)));
            let imports = imports(&code);
            modules.insert(path, Module { file: file.clone(), code, imports });
        }
        modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Modules(modules)
    }

    /// Every module with its file.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Module)> {
        self.0.iter()
    }

    /// The file of a module.
    pub(super) fn file(&self, path: &Path) -> &str {
        self.0.get(path).map_or("", |module| module.file.as_str())
    }

    /// Every use of one file by another, once for each pair, at its first line.
    pub(super) fn uses(&self) -> Vec<Use> {
        let mut first: BTreeMap<(Path, Path), usize> = BTreeMap::new();
        for (path, module) in &self.0 {
            for (to, at) in self.uses_of(path, module) {
                let line = 1 + module.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
                let known = first.entry((path.clone(), to)).or_insert(line);
                *known = line.min(*known);
            }
        }
        first.into_iter().map(|((from, to), line)| Use { from, to, line }).collect()
    }

    fn uses_of(&self, path: &Path, module: &Module) -> Vec<(Path, usize)> {
        let mut found = Vec::new();
        let mut known = self.children(path);
        for import in &module.imports {
            let Some(target) = self.absolute(path, module, &import.path, import.at) else { continue };
            let is_own_child = target.len() > path.len() && target.starts_with(path);
            // A name that is only handed on is nobody's use; one that the file itself works with is.
            if import.exported && is_own_child && !module.works_with(&import.name) {
                continue;
            }
            match self.0.contains_key(&target) && !import.whole {
                // A module's name alone: who uses what is in it is seen where it is used.
                true => known.push((import.name.clone(), target)),
                false => found.push((self.owner(&target), import.at)),
            }
        }
        found.extend(self.written_out(path, module, &known));
        found.retain(|(to, _)| to != path);
        found
    }

    /// Paths in the code itself.
    fn written_out(&self, path: &Path, module: &Module, known: &[(String, Path)]) -> Vec<(Path, usize)> {
        let code = &module.code;
        let roots = ["crate", "super", "self"].map(|root| (root.to_owned(), None));
        let known = known.iter().map(|(name, target)| (name.clone(), Some(target)));
        let mut found = Vec::new();
        for (word, target) in roots.into_iter().chain(known) {
            for at in whole_words(code, &word) {
                let begins =
                    !code[..at].trim_end().ends_with("::") && !code[..at].ends_with(['$', '.', '\'']);
                if !begins || !code[at + word.len()..].starts_with("::") || module.is_import(at) {
                    continue;
                }
                let written = path_at(&code[at..]);
                let whole = match target {
                    Some(target) => {
                        Some(target.iter().cloned().chain(written[1..].iter().cloned()).collect())
                    }
                    None => self.absolute(path, module, &written, at),
                };
                found.extend(whole.map(|whole: Path| (self.owner(&whole), at)));
            }
        }
        found
    }

    fn children(&self, path: &Path) -> Vec<(String, Path)> {
        let is_child = |other: &&Path| other.len() == path.len() + 1 && other.starts_with(path);
        let children = self.0.keys().filter(is_child);
        children.map(|child| (child[path.len()].clone(), child.clone())).collect()
    }

    /// A path from the crate's root; none where it leads out of the crate.
    fn absolute(&self, path: &Path, module: &Module, written: &[String], at: usize) -> Option<Path> {
        let mut inside = module.inline_depth(at);
        let mut base = path.clone();
        let mut rest = written;
        match written.first()?.as_str() {
            "crate" => (base, rest) = (Path::new(), &written[1..]),
            "self" => rest = &written[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    // Within a module that is written into the file, the first one leads to the file.
                    match inside {
                        0 => drop(base.pop()),
                        _ => inside -= 1,
                    }
                    rest = &rest[1..];
                }
            }
            name => {
                self.0.get(&child(path, name))?;
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The module whose file has what a path names, through re-exports.
    fn owner(&self, path: &Path) -> Path {
        let mut at = Path::new();
        for (depth, name) in path.iter().enumerate() {
            let next = child(&at, name);
            if self.0.contains_key(&next) {
                at = next;
                continue;
            }
            let exported = self.0.get(&at).and_then(|module| {
                let export = module.imports.iter().find(|one| one.exported && one.name == *name)?;
                self.absolute(&at, module, &export.path, export.at)
            });
            return match exported {
                Some(elsewhere) if elsewhere != path[..=depth] => {
                    self.owner(&elsewhere.into_iter().chain(path[depth + 1..].iter().cloned()).collect())
                }
                _ => at,
            };
        }
        at
    }
}

impl Module {
    fn is_import(&self, at: usize) -> bool {
        self.imports.iter().any(|import| import.statement.contains(&at))
    }

    /// Whether a name stands in the code itself.
    fn works_with(&self, name: &str) -> bool {
        let declares = |at: usize| self.code[..at].trim_end().ends_with("mod");
        whole_words(&self.code, name).any(|at| !self.is_import(at) && !declares(at))
    }

    /// Modules written into the file that a byte stands in.
    fn inline_depth(&self, at: usize) -> usize {
        let opens = whole_words(&self.code, "mod").filter(|open| *open < at);
        opens
            .filter(|open| item_end(&self.code, *open).is_some_and(|(end, has_body)| has_body && at < end))
            .count()
    }
}

fn child(path: &Path, name: &str) -> Path {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module_of(below_src: &str) -> Path {
    let name = below_src.trim_start_matches('/').trim_end_matches(".rs");
    let mut path: Path = name.split('/').map(str::to_owned).collect();
    let is_parent = path.last().is_some_and(|last| last == "mod");
    let is_root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    if is_parent || is_root {
        path.pop();
    }
    path
}

/// The code with every item under `#[cfg(test)]` blanked, and the names of modules of tests that have files.
fn without_tests(source: &Source<'_>) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut code = source.code.clone().into_bytes();
    let mut names = Vec::new();
    for (at, _) in source.code.match_indices(MARK) {
        let Some((end, has_body)) = item_end(&source.code, at + MARK.len()) else { continue };
        let item = &source.code[at..end];
        if let Some(mark) = whole_words(item, "mod").next().filter(|_| !has_body) {
            names.push(item[mark + "mod".len()..].trim_matches([' ', ';', '\n']).to_owned());
        }
        code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    (String::from_utf8(code).unwrap_or_default(), names)
}

/// Where the item that begins here ends, and whether it has a body in braces.
fn item_end(code: &str, from: usize) -> Option<(usize, bool)> {
    let (mut braces, mut others) = (0_usize, 0_i32);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others -= 1,
            b'{' => braces += 1,
            b'}' if braces <= 1 => return Some((at + 1, braces == 1)),
            b'}' => braces -= 1,
            b';' if braces == 0 && others == 0 => return Some((at + 1, false)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, String)> =
            files.iter().map(|(name, text)| (format!("src/{name}"), (*text).to_owned())).collect();
        let in_words = |one: Use| format!("{} -> {}:{}", one.from.join("::"), one.to.join("::"), one.line);
        Modules::read("src/", &files).uses().into_iter().map(in_words).collect()
    }

    #[test]
    fn imports_and_written_paths_are_uses_and_mod_lines_are_not() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use a::A;");
        let a = ("a.rs", "use crate::b::{self, B};\nfn f() { b::g(); super::b::g(); }");
        assert_eq!(uses(&[lib, a, ("b.rs", "pub struct B;")]), ["a -> b:1"]);
    }

    #[test]
    fn who_uses_a_re_exported_name_uses_its_file() {
        let files = [
            ("lib.rs", "mod x;\nmod y;"),
            ("x/mod.rs", "mod one;\npub(crate) use one::One;"),
            ("x/one.rs", "use crate::y::Y;\npub struct One;"),
            ("y.rs", "use crate::x::One;"),
        ];
        assert_eq!(uses(&files), ["x::one -> y:1", "y -> x::one:1"]);
    }

    #[test]
    fn a_parent_that_works_with_what_it_hands_on_uses_it() {
        let child = ("p/c.rs", "pub struct C;");
        let uses_of = |parent: &str| uses(&[("lib.rs", "mod p;"), ("p.rs", parent), child]);
        assert_eq!(uses_of("mod c;\npub(crate) use c::C;"), Vec::<String>::new());
        assert_eq!(uses_of("mod c;\npub(crate) use c::C;\nfn f(_: C) {}"), ["p -> p::c:2"]);
    }

    #[test]
    fn a_parent_uses_its_child_by_name_and_tests_use_nothing() {
        let files = [
            ("main.rs", "mod p;\n#[cfg(test)]\nmod t;"),
            (
                "p.rs",
                "mod c;\nfn f() { c::g() }\n#[cfg(test)]\nmod tests { use super::c; fn g() { c::h() } }",
            ),
            ("p/c.rs", "use super::P;\n#[cfg(test)]\nuse crate::q::Q;"),
            ("q.rs", "mod inner { use super::x; }"),
            ("t.rs", "use crate::q;"),
        ];
        assert_eq!(uses(&files), ["p -> p::c:2", "p::c -> p:1"]);
    }
}
