//! Conditional requests: entity tags, and whether a GET or HEAD goes on, is answered with 304, or fails with 412
//! (RFC 9110 §13).
//!
//! The engine's content gathers the fields and asks. A date that is none, and a list from where it is malformed on, say
//! nothing.

use crate::date;
use crate::scan::is_blank;

/// How two entity tags are compared (RFC 9110 §8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// A weak one is equal to none.
    Strong,
    /// Whether either is weak is not looked at.
    Weak,
}

/// Whether a list of entity tags has the own one among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// It has, or is `*`.
    Yes,
    /// It has not.
    No,
}

/// The preconditions that a request has. A date that was there and is none stands as `None`: it is ignored
/// (RFC 9110 §13.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preconditions {
    /// If-Match, compared strongly.
    pub if_match: Option<Listed>,
    /// If-Unmodified-Since, in seconds since 1970.
    pub if_unmodified_since: Option<u64>,
    /// If-None-Match, compared weakly.
    pub if_none_match: Option<Listed>,
    /// If-Modified-Since, in seconds since 1970.
    pub if_modified_since: Option<u64>,
}

/// What becomes of a GET or HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is answered as if there were no condition.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

impl Preconditions {
    /// The outcome for what was modified then, in the order of RFC 9110 §13.2.2.
    pub fn outcome(&self, modified_s: u64) -> Outcome {
        let is_failed = match (self.if_match, self.if_unmodified_since) {
            (Some(listed), _) => listed == Listed::No,
            (None, Some(since)) => modified_s > since,
            (None, None) => false,
        };
        let is_known = match (self.if_none_match, self.if_modified_since) {
            (Some(listed), _) => listed == Listed::Yes,
            (None, Some(since)) => modified_s <= since,
            (None, None) => false,
        };
        match (is_failed, is_known) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::NotModified,
            (false, false) => Outcome::Proceed,
        }
    }
}

/// Whether the value of an If-Match or If-None-Match lists the own tag, which is strong and has its quotes.
pub fn lists(value: &[u8], own: &[u8], compare: Compare) -> Listed {
    debug_assert!(own.len() >= 2 && own.starts_with(b"\"") && own.ends_with(b"\""), "a strong tag in quotes");
    if value == b"*" {
        return Listed::Yes;
    }
    let mut rest = value;
    while let Some((tag, after)) = first_tag(rest) {
        if tag.is(own, compare) {
            return Listed::Yes;
        }
        rest = after;
    }
    Listed::No
}

/// Whether an If-Range lets its range stand: it holds exactly the own tag, or the exact date (RFC 9110 §13.1.5).
pub fn if_range_holds(value: &[u8], own: &[u8], modified_s: u64, now_s: u64) -> bool {
    match first_tag(value) {
        Some((tag, rest)) => rest.is_empty() && tag.is(own, Compare::Strong),
        None => date::parse(value, now_s) == Some(modified_s),
    }
}

struct Tag<'v> {
    is_weak: bool,
    /// With its quotes.
    opaque: &'v [u8],
}

impl Tag<'_> {
    fn is(&self, own: &[u8], compare: Compare) -> bool {
        self.opaque == own && (compare == Compare::Weak || !self.is_weak)
    }
}

/// The first tag of a list, and what follows behind its comma; empty members before it are passed over.
fn first_tag(mut list: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    while let [byte, rest @ ..] = list
        && (*byte == b',' || is_blank(*byte))
    {
        list = rest;
    }
    let (is_weak, quoted) = match list {
        [b'W', b'/', quoted @ ..] => (true, quoted),
        quoted => (false, quoted),
    };
    let inside = quoted.strip_prefix(b"\"")?;
    let bytes = inside.iter().position(|&byte| !is_tag_byte(byte))?;
    if inside[bytes] != b'"' {
        return None;
    }
    let (opaque, rest) = quoted.split_at(bytes + 2);
    let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
    match &rest[blanks..] {
        [] => Some((Tag { is_weak, opaque }, &[])),
        [b',', after @ ..] => Some((Tag { is_weak, opaque }, after)),
        _ => None,
    }
}

/// `etagc`: visible but the quote, or obs-text.
fn is_tag_byte(byte: u8) -> bool {
    byte == b'!' || (b'#'..=b'~').contains(&byte) || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[u8] = b"\"abc\"";
    const MODIFIED_S: u64 = 784_111_777;
    const NOW_S: u64 = 1_795_000_000;

    #[test]
    fn tags_are_compared_as_rfc_9110_8_8_3_2_says() {
        let (yes, no) = (Listed::Yes, Listed::No);
        for (value, strong, weak) in [
            ("\"abc\"", yes, yes),
            ("W/\"abc\"", no, yes),
            ("\"abd\"", no, no),
            ("W/\"abd\"", no, no),
            ("*", yes, yes),
            ("\"*\"", no, no),
            ("\"x\", \"abc\"", yes, yes),
            ("\"x\",W/\"abc\"", no, yes),
            ("\"x\" ,\t\"y\" , \"abc\" ", yes, yes),
            (", ,\"abc\",,", yes, yes),
            ("\"x,\", \"a,b\", \"abc\"", yes, yes),
            ("\"\u{e9}\", \"abc\"", yes, yes),
            ("\"\", \"abc\"", yes, yes),
            // Malformed: what stands before counts, what stands behind does not.
            ("\"abc\", x", yes, yes),
            ("x, \"abc\"", no, no),
            ("abc", no, no),
            ("\"abc", no, no),
            ("\"a\"\"abc\"", no, no),
            ("\"abc\"x", no, no),
            ("w/\"abc\"", no, no),
            ("W/ \"abc\"", no, no),
            ("\"a bc\", \"abc\"", no, no),
            ("*, \"x\"", no, no),
            ("", no, no),
        ] {
            assert_eq!(lists(value.as_bytes(), OWN, Compare::Strong), strong, "{value}, strongly");
            assert_eq!(lists(value.as_bytes(), OWN, Compare::Weak), weak, "{value}, weakly");
        }
    }

    /// Every combination of the four fields, each absent, true or false, against the order of §13.2.2 written as it stands.
    #[test]
    fn the_order_of_rfc_9110_13_2_2_holds_for_every_combination() {
        let lists = [None, Some(Listed::Yes), Some(Listed::No)];
        let dates = [None, Some(MODIFIED_S - 1), Some(MODIFIED_S), Some(MODIFIED_S + 1)];
        for if_match in lists {
            for if_unmodified_since in dates {
                for if_none_match in lists {
                    for if_modified_since in dates {
                        let all =
                            Preconditions { if_match, if_unmodified_since, if_none_match, if_modified_since };
                        assert_eq!(all.outcome(MODIFIED_S), by_the_book(&all), "{all:?}");
                    }
                }
            }
        }
    }

    fn by_the_book(all: &Preconditions) -> Outcome {
        // Step 1.
        if all.if_match == Some(Listed::No) {
            return Outcome::Failed;
        }
        // Step 2: only without If-Match.
        if all.if_match.is_none() && all.if_unmodified_since.is_some_and(|since| since < MODIFIED_S) {
            return Outcome::Failed;
        }
        // Step 3.
        if all.if_none_match == Some(Listed::Yes) {
            return Outcome::NotModified;
        }
        // Step 4: only without If-None-Match.
        if all.if_none_match.is_none() && all.if_modified_since.is_some_and(|since| since >= MODIFIED_S) {
            return Outcome::NotModified;
        }
        Outcome::Proceed
    }

    #[test]
    fn a_range_stands_only_by_the_very_tag_or_date() {
        for (value, expected) in [
            ("\"abc\"", true),
            ("W/\"abc\"", false),
            ("\"abd\"", false),
            ("\"abc\", \"abd\"", false),
            ("*", false),
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("Sunday, 06-Nov-94 08:49:37 GMT", true),
            ("Sun, 06 Nov 1994 08:49:38 GMT", false),
            ("Sun, 06 Nov 1994 08:49:36 GMT", false),
            ("", false),
        ] {
            assert_eq!(if_range_holds(value.as_bytes(), OWN, MODIFIED_S, NOW_S), expected, "{value}");
        }
    }
}
