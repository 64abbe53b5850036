//! HTML as a tree of tags that cannot be unbalanced and whose texts cannot be markup.
//!
//! Every page is built from [`Tag`]s: a tag closes itself, a text is escaped on its way in, names of tags and attributes
//! are constants of this program. The two raw texts, style and script, are files of this program too; the page's policy
//! names them by digest, so that a browser runs nothing else even if one of the above were wrong.

use std::fmt::{self, Display, Write};

use sha2::{Digest, Sha256};

use crate::number::obeyed;

/// Tags without content (HTML Living Standard §13.1.2, those that are used here).
const VOID: [&str; 4] = ["meta", "br", "hr", "wbr"];

/// One element.
#[derive(Debug, Clone)]
pub(crate) struct Tag {
    name: &'static str,
    attributes: String,
    content: String,
}

/// An empty element.
pub(crate) fn tag(name: &'static str) -> Tag {
    Tag { name, attributes: String::new(), content: String::new() }
}

impl Tag {
    /// Sets an attribute; any value is safe.
    pub(crate) fn attr(mut self, name: &'static str, value: impl Display) -> Self {
        debug_assert!(!name.starts_with("on") && name != "style", "the page's policy blocks {name}");
        let _ = write!(self.attributes, " {name}=\"");
        let _ = write!(Escaping(&mut self.attributes), "{value}");
        self.attributes.push('"');
        self
    }

    /// Sets the class.
    pub(crate) fn class(self, names: &'static str) -> Self {
        self.attr("class", names)
    }

    /// Appends text, escaped.
    pub(crate) fn text(mut self, text: impl Display) -> Self {
        let _ = write!(Escaping(&mut self.content), "{text}");
        self
    }

    /// Appends an element.
    pub(crate) fn push(mut self, child: Tag) -> Self {
        let _ = write!(self.content, "{child}");
        self
    }

    /// Appends elements.
    pub(crate) fn push_all(self, children: impl IntoIterator<Item = Tag>) -> Self {
        children.into_iter().fold(self, Self::push)
    }

    /// Appends one of this program's own files as it is. `</` in it would end the element early.
    fn verbatim(mut self, file: &'static str) -> Self {
        debug_assert!(!file.contains("</"), "a raw text cannot hold an end tag");
        self.content.push_str(file);
        self
    }

    /// Appends data for the page's script. No name in it can end the element or begin another one: angles are
    /// written as escapes of JSON, which mean the same to its reader.
    pub(crate) fn json(mut self, json: &str) -> Self {
        self.content.push_str(&json.replace('<', "\\u003c").replace('>', "\\u003e"));
        self
    }

    /// Appends a style of this program's own, for a picture that stands alone.
    pub(crate) fn style(self, style: &'static str) -> Self {
        self.push(tag("style").verbatim(style))
    }

    /// Whether nothing was put into it.
    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty()
    }
}

impl Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        if VOID.contains(name) {
            return write!(f, "<{name}{attributes}>");
        }
        write!(f, "<{name}{attributes}>{content}</{name}>")
    }
}

/// Writes text so that it is text in content and in quoted attributes alike.
struct Escaping<'out>(&'out mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(c),
                // Names that turn the writing direction around could show one command and copy another.
                c if obeyed(c) => self.0.extend(c.escape_unicode()),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// A whole document with this title and body.
pub(crate) fn document(title: &str, body: Tag, style: &'static str, script: &'static str) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        source_hash(style),
        source_hash(script)
    );
    let head = tag("head")
        .push(tag("meta").attr("charset", "utf-8"))
        .push(tag("meta").attr("http-equiv", "Content-Security-Policy").attr("content", policy))
        .push(tag("meta").attr("name", "viewport").attr("content", "width=device-width, initial-scale=1"))
        .push(tag("meta").attr("name", "color-scheme").attr("content", "light dark"))
        .push(tag("meta").attr("name", "referrer").attr("content", "no-referrer"))
        .push(tag("title").text(title))
        .push(tag("style").verbatim(style));
    let body = body.push(tag("script").verbatim(script));
    format!("<!doctype html>\n{}\n", tag("html").attr("lang", "en").push(head).push(body))
}

/// The digest of a raw text as a policy names it (CSP Level 3 §2.3.1).
fn source_hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

/// RFC 4648 §4, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Start and end tags in order; a small reading of the syntax that this module writes.
    pub(crate) fn tags(page: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut rest = page;
        while let Some(at) = rest.find('<') {
            let end = at + rest[at..].find('>').expect("a tag ends");
            let (name, attributes) = rest[at + 1..end].split_once(' ').unwrap_or((&rest[at + 1..end], ""));
            found.push((name.to_owned(), attributes.to_owned()));
            rest = &rest[end + 1..];
            // Raw texts end at their own end tag and nowhere else.
            if name == "style" || name == "script" {
                rest = &rest[rest.find(&format!("</{name}>")).expect("a raw text ends")..];
            }
        }
        found
    }

    /// Panics where a tag is not closed by its own end tag.
    pub(crate) fn assert_balanced(page: &str) {
        let mut open = Vec::new();
        for (name, _) in tags(page) {
            match name.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed), "closed out of order"),
                None if VOID.contains(&name.as_str()) || name.starts_with('!') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn text_and_attributes_are_never_markup() {
        let tag = tag("p").attr("title", "\"><script>").text("<b>&'");
        assert_eq!(tag.to_string(), "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;&amp;&#39;</p>");
    }

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(tag("p").text("a\0\u{202e}b").to_string(), "<p>a\\u{0}\\u{202e}b</p>");
    }

    #[test]
    fn data_cannot_end_its_element() {
        let tag = tag("script").json(r#"["</script><script>alert(1)"]"#);
        assert_eq!(tag.to_string(), r#"<script>["\u003c/script\u003e\u003cscript\u003ealert(1)"]</script>"#);
    }

    #[test]
    fn base64_agrees_with_the_vectors_of_its_rfc() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn the_policy_allows_exactly_the_style_and_the_script_of_the_page() {
        let page = document("t", tag("body"), "p{margin:0}", "1+1;");
        for (name, content) in [("style", "p{margin:0}"), ("script", "1+1;")] {
            let digest = base64(&Sha256::digest(content.as_bytes()));
            assert!(page.contains(&format!("{name}-src &#39;sha256-{digest}&#39;")), "{page}");
            assert!(page.contains(&format!("<{name}>{content}</{name}>")), "{page}");
        }
        assert!(!page.contains("unsafe-inline"));
    }

    #[test]
    fn the_checker_of_these_tests_can_fail() {
        let unbalanced = ["<p><b></p></b>", "<p>", "</p>"];
        for page in unbalanced {
            assert!(std::panic::catch_unwind(|| assert_balanced(page)).is_err(), "{page}");
        }
        assert_balanced(&document("t", tag("body").push(tag("p").text("x")), "a>b{}", "1<2"));
    }
}
