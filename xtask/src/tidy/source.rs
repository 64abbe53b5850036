//! A Rust source with its comments, strings and tests told apart, so that a rule about code sees code only.
//!
//! A scanner, not a parser: it knows just enough of the language to blank what is no code. Lengths and lines stay.

use std::ops::Range;

/// A source file, read for rules.
pub(crate) struct Source<'t> {
    /// As it stands in the file.
    pub(crate) text: &'t str,
    /// The same with comments, strings and characters blanked, byte for byte.
    pub(crate) code: String,
    /// Where `#[cfg(test)]` modules stand.
    tests: Vec<Range<usize>>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Source<'t> {
        let code = blanked(text);
        let tests = test_modules(&code);
        Source { text, code, tests }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Whether a byte stands in a test module.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Where a word stands in the code, whole: `print` does not stand in `println`.
    pub(crate) fn words<'s>(&'s self, word: &'s str) -> impl Iterator<Item = usize> {
        whole_words(&self.code, word)
    }
}

/// Where a word stands in a text, with nothing of a name before and after it.
pub(crate) fn whole_words<'s>(text: &'s str, word: &'s str) -> impl Iterator<Item = usize> {
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let bytes = text.as_bytes();
        !is_name(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_name(bytes.get(at + word.len()))
    })
}

fn blanked(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let hidden = hidden_bytes(rest, out.last().copied());
        if hidden > 0 {
            out.extend(rest.bytes().take(hidden).map(|byte| if byte == b'\n' { byte } else { b' ' }));
            rest = &rest[hidden..];
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            out.extend_from_slice(&rest.as_bytes()[..length]);
            rest = &rest[length..];
        }
    }
    String::from_utf8(out).expect("whole characters are copied, and what is blanked becomes ASCII")
}

/// How many bytes from here are comment, string or character; `before` is the byte before them.
fn hidden_bytes(rest: &str, before: Option<u8>) -> usize {
    let in_name = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match rest.as_bytes() {
        [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => 1 + string(&rest[1..]),
        [b'\'', ..] => character(rest),
        [b'r', ..] if !in_name => raw_string(rest, 1),
        [b'b', b'r', ..] if !in_name => raw_string(rest, 2),
        _ => 0,
    }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Up to and with the closing quote.
fn string(inside: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    inside.len()
}

/// `'x'`, `'\n'`; a lifetime has no closing quote and is code.
fn character(rest: &str) -> usize {
    let mut inside = rest[1..].chars();
    match inside.next() {
        Some('\\') => rest[3..].find('\'').map_or(rest.len(), |at| 3 + at + 1),
        Some(one) if inside.next() == Some('\'') => 1 + one.len_utf8() + 1,
        _ => 0,
    }
}

/// `r"…"`, `r#"…"#` after a prefix of `prefix` bytes; 0 when it is a name such as `r#type` or `rest`.
fn raw_string(rest: &str, prefix: usize) -> usize {
    let hashes = rest[prefix..].bytes().take_while(|byte| *byte == b'#').count();
    if rest.as_bytes().get(prefix + hashes) != Some(&b'"') {
        return 0;
    }
    let start = prefix + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
}

/// From each `#[cfg(test)]` that stands before a module to that module's closing brace.
fn test_modules(code: &str) -> Vec<Range<usize>> {
    let marks = code.match_indices("#[cfg(test)]").map(|(at, _)| at);
    marks.filter_map(|at| module_end(&code[at..]).map(|length| at..at + length)).collect()
}

fn module_end(code: &str) -> Option<usize> {
    let open = code.find(['{', ';']).filter(|at| code.as_bytes()[*at] == b'{')?;
    whole_words(&code[..open], "mod").next()?;
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    Some(code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_code_stays() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"x \\\" y\", 'z')", "f(        ,    )"),
            ("b\"x\" + 1", "b    + 1"),
            ("r#\"a \" b\"# c", "           c"),
            ("br\"a\\\" c", "       c"),
            ("let r#type = rest;", "let r#type = rest;"),
            ("&'a str, '\\'', '\"'", "&'a str,     ,    "),
            ("\"\n\" x", " \n  x"),
            ("\"unended", "        "),
        ] {
            assert_eq!(Source::new(text).code, code, "{text}");
        }
    }

    #[test]
    fn a_text_of_other_letters_keeps_its_length() {
        let text = "let x = \"−33 % ± 0.8\"; // naïve\nlet µ = 'ö';";
        assert_eq!(Source::new(text).code.len(), text.len());
    }

    #[test]
    fn a_test_module_ends_at_its_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { \"}\"; }\n}\nfn c() {}";
        let source = Source::new(text);
        let at = |name: &str| text.find(name).unwrap_or_default();
        assert!(!source.is_test(at("fn a")));
        assert!(source.is_test(at("fn b")));
        assert!(!source.is_test(at("fn c")));
        assert_eq!(source.line(at("fn c")), 6);
    }

    #[test]
    fn a_test_module_in_another_file_marks_nothing_here() {
        let source = Source::new("#[cfg(test)]\nmod tests;\nfn c() { }");
        assert!(!source.is_test(source.text.len() - 1));
    }

    #[test]
    fn words_are_whole() {
        let source = Source::new("print println print! my_print \"print\"");
        assert_eq!(source.words("print").collect::<Vec<_>>(), [0, 14]);
    }
}
