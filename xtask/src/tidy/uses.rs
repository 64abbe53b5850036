//! `use` lines of a file, each name by itself, and paths that are written out.

use std::ops::Range;

use super::source::whole_words;

/// One name that a file imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// As it is written, from its first word.
    pub(super) path: Vec<String>,
    /// What it is called in this file.
    pub(super) name: String,
    /// Whether everything below the path is meant.
    pub(super) whole: bool,
    /// Whether it is handed on to others.
    pub(super) exported: bool,
    /// Where the line begins.
    pub(super) at: usize,
    /// The whole line, from `use` to the semicolon.
    pub(super) statement: Range<usize>,
}

/// Every name that is imported.
pub(super) fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for at in whole_words(code, "use") {
        let text = &code[at + "use".len()..];
        let Some(length) = text.find(';').filter(|_| text.starts_with(char::is_whitespace)) else { continue };
        let before = code[..at].trim_end();
        let exported = before.ends_with("pub") || before.ends_with(')') && before.contains("pub(");
        let statement = at..at + "use".len() + length;
        for (path, name, whole) in names(&[], &text[..length]) {
            found.push(Import { path, name, whole, exported, at, statement: statement.clone() });
        }
    }
    found
}

/// The path that begins here: names joined by `::`.
pub(super) fn path_at(text: &str) -> Vec<String> {
    let mut path = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return path;
        }
        path.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(more) => rest = more,
            None => return path,
        }
    }
}

type Name = (Vec<String>, String, bool);

/// The names of a tree such as `a::{b, c::{self, d as e}, f::*}`.
fn names(prefix: &[String], tree: &str) -> Vec<Name> {
    let tree = tree.trim();
    let (head, list) = match tree.find('{') {
        Some(open) => (&tree[..open], tree.rfind('}').map(|close| &tree[open + 1..close])),
        None => (tree, None),
    };
    let (head, renamed) =
        head.split_once(" as ").map_or((head, None), |(head, name)| (head, Some(name.trim())));
    let words = head.split("::").map(str::trim).filter(|word| !word.is_empty());
    let mut path: Vec<String> = prefix.iter().cloned().chain(words.map(str::to_owned)).collect();
    if let Some(list) = list {
        return parts(list).into_iter().flat_map(|part| names(&path, part)).collect();
    }
    let whole = path.last().is_some_and(|last| last == "*");
    // `self` at the end of a list is the list's own path.
    if whole || path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = renamed.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
    if path.is_empty() { Vec::new() } else { vec![(path, name, whole)] }
}

/// The parts of a list, divided by the commas that stand in no braces.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&list[start..]);
    found.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_words(code: &str) -> Vec<String> {
        let one = |import: Import| {
            let (out, all) =
                (if import.exported { "pub " } else { "" }, if import.whole { "::*" } else { "" });
            format!("{out}{}{all} = {}", import.path.join("::"), import.name)
        };
        imports(code).into_iter().map(one).collect()
    }

    #[test]
    fn every_name_of_a_tree_is_found() {
        assert_eq!(
            in_words("use crate::a::{self, b::{C as D, e}, f::*};\npub(crate) use super::g;"),
            [
                "crate::a = a",
                "crate::a::b::C = D",
                "crate::a::b::e = e",
                "crate::a::f::* = f",
                "pub super::g = g"
            ]
        );
        assert_eq!(in_words("fn f() -> impl T + use<'a> {}"), Vec::<String>::new());
    }

    #[test]
    fn a_written_path_ends_where_its_names_end() {
        assert_eq!(path_at("crate::a::B::new(x)"), ["crate", "a", "B", "new"]);
        assert_eq!(path_at("super::f::<u8>()"), ["super", "f"]);
    }
}
