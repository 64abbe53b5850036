//! What a right answer is, and the checking of a body as it streams past.
//!
//! The reader of answers asks here; the sessions report what differed. Nothing here knows sockets or framing: it is
//! handed a status and the body's bytes in whatever pieces they came.

use dyno_proto::http1::response::Asked;
use sha2::{Digest, Sha256};

use crate::template::Template;

/// How much of a wrong answer is shown: the first lines of a head, not a page of HTML.
pub(crate) const SHOWN_BYTES_MAX: usize = 200;
/// A first body up to this size is kept and compared byte by byte; of a larger one its digest is kept. 4 MiB: comparing
/// is ten times cheaper than hashing, and one copy per session is affordable up to here.
const FIRST_BODY_BYTES_MAX: usize = 4 << 20;
/// How often the template may be replaced in a session's life. Servers change their heads now and then (a reload);
/// one whose head differs in every answer (a request id) must not cost a copy per answer for ever.
const TEMPLATES_MAX: u32 = 64;

/// What an answer must be to count as a reply. Whatever is expected, its framing must be right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// The exact status; with `None` any 2xx or 3xx is right, as wrk counts.
    pub status: Option<u16>,
    /// The exact body, after the transfer coding is taken off; with `None` any.
    pub body: Option<Body>,
}

/// A body to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Any bytes with this digest.
    Sha256([u8; 32]),
    /// The same bytes as in the first right answer of the session, or of the whole crew.
    Same,
}

impl Expect {
    /// Any 2xx or 3xx with any body.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Any 2xx or 3xx whose body is the first answer's.
    #[must_use]
    pub fn same_body() -> Self {
        Self { status: None, body: Some(Body::Same) }
    }

    /// Any 2xx or 3xx with exactly this body.
    #[must_use]
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self { status: None, body: Some(Body::Bytes(bytes.into())) }
    }
}

/// A wrong answer in words: what was expected, and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongAnswer {
    /// What would have been right.
    pub expected: String,
    /// What came: the first 200 bytes of the answer, or of its body when only that is wrong, escaped.
    pub got: String,
}

/// What was wrong with a whole answer, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    WrongStatus,
    /// The first byte that differs, counted from zero; for a digest unknown, thus none.
    WrongBody(Option<u64>),
}

/// What one session holds answers against; it learns from right ones.
#[derive(Debug)]
pub(crate) struct Rules {
    expect: Expect,
    asked: Asked,
    template: Option<Template>,
    templates_left: u32,
}

impl Rules {
    pub(crate) fn new(expect: Expect, asked: Asked) -> Self {
        Self { expect, asked, template: None, templates_left: TEMPLATES_MAX }
    }

    /// The expectation as it stands now: `Body::Same` is replaced once a first answer was learned.
    pub(crate) fn expect(&self) -> &Expect {
        &self.expect
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    /// The length of the answer at the start of `input`, when it is byte for byte one that was found right before.
    #[inline]
    pub(crate) fn recognise(&mut self, input: &[u8]) -> Option<usize> {
        self.template.as_mut()?.matches(input)
    }

    /// Remembers the bytes of a whole right answer that delimits itself and keeps the connection.
    pub(crate) fn remember(&mut self, answer: &[u8]) {
        if self.templates_left == 0 {
            return;
        }
        if let Some(template) = Template::new(answer) {
            self.templates_left -= 1;
            self.template = Some(template);
        }
    }

    pub(crate) fn status_is_right(&self, status: u16) -> bool {
        match self.expect.status {
            Some(wanted) => status == wanted,
            None => (200..400).contains(&status),
        }
    }

    /// What was expected, in words for a report.
    pub(crate) fn expected(&self, verdict: Verdict) -> String {
        match (verdict, &self.expect.body, self.expect.status) {
            (Verdict::WrongBody(at), Some(Body::Bytes(bytes)), _) => {
                let differs = at.map(|at| format!(", differing from byte {at}")).unwrap_or_default();
                format!("a body of {} bytes{differs}: {}", bytes.len(), shown(bytes))
            }
            (Verdict::WrongBody(_), Some(Body::Sha256(digest)), _) => {
                let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("a body with sha256 {hex}")
            }
            (_, _, Some(status)) => format!("status {status}"),
            (_, _, None) => "status 2xx or 3xx".to_owned(),
        }
    }

    #[cfg(test)]
    pub(crate) fn without_template(mut self) -> Self {
        self.templates_left = 0;
        self
    }

    #[cfg(test)]
    pub(crate) fn has_template(&self) -> bool {
        self.template.is_some()
    }
}

/// A body being compared while it arrives.
#[derive(Debug)]
pub(crate) enum BodyCheck {
    Any,
    Bytes { at: u64, differs: Option<u64> },
    Digest(Sha256),
    First { body: Vec<u8>, digest: Sha256 },
}

impl BodyCheck {
    /// A wrong status makes the body's content irrelevant: then only its framing is followed.
    pub(crate) fn new(rules: &Rules, status: u16) -> Self {
        match &rules.expect.body {
            Some(_) if !rules.status_is_right(status) => Self::Any,
            None => Self::Any,
            Some(Body::Bytes(_)) => Self::Bytes { at: 0, differs: None },
            Some(Body::Sha256(_)) => Self::Digest(Sha256::new()),
            Some(Body::Same) => Self::First { body: Vec::new(), digest: Sha256::new() },
        }
    }

    pub(crate) fn push(&mut self, data: &[u8], rules: &Rules) {
        match self {
            Self::Any => {}
            Self::Bytes { at, differs } => {
                if differs.is_none() {
                    *differs = first_difference(data, *at, rules.expect.body.as_ref());
                }
                *at += data.len() as u64;
            }
            Self::Digest(digest) => digest.update(data),
            Self::First { body, digest } => {
                let room = (FIRST_BODY_BYTES_MAX + 1).saturating_sub(body.len());
                body.extend_from_slice(&data[..data.len().min(room)]);
                digest.update(data);
            }
        }
    }

    /// The verdict on the whole body; a first one becomes what later ones are compared with.
    pub(crate) fn finish(self, status: u16, rules: &mut Rules) -> Verdict {
        if !rules.status_is_right(status) {
            return Verdict::WrongStatus;
        }
        match (self, &rules.expect.body) {
            (Self::Bytes { differs: Some(at), .. }, _) => Verdict::WrongBody(Some(at)),
            (Self::Bytes { at, .. }, Some(Body::Bytes(wanted))) if at != wanted.len() as u64 => {
                Verdict::WrongBody(Some(at))
            }
            (Self::Digest(digest), Some(Body::Sha256(wanted))) => {
                let same = digest.finalize()[..] == wanted[..];
                if same { Verdict::Right } else { Verdict::WrongBody(None) }
            }
            (Self::First { body, digest }, _) => {
                rules.expect.body = Some(learned(body, digest));
                Verdict::Right
            }
            _ => Verdict::Right,
        }
    }
}

fn learned(body: Vec<u8>, digest: Sha256) -> Body {
    if body.len() <= FIRST_BODY_BYTES_MAX {
        Body::Bytes(body)
    } else {
        Body::Sha256(digest.finalize().into())
    }
}

/// Where in the body `data`, which starts at `at`, departs from the wanted bytes; a surplus departs at their end.
fn first_difference(data: &[u8], at: u64, wanted: Option<&Body>) -> Option<u64> {
    let Some(Body::Bytes(wanted)) = wanted else { return None };
    let rest = usize::try_from(at).ok().and_then(|at| wanted.get(at..)).unwrap_or_default();
    if rest.get(..data.len()) == Some(data) {
        return None;
    }
    let same = data.iter().zip(rest).take_while(|(got, want)| got == want).count();
    Some(at + same as u64)
}

/// The first bytes of something, quoted and escaped for a terminal, with the rest counted.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let more = bytes.len() - head.len();
    let tail = if more > 0 { format!(" and {more} bytes more") } else { String::new() };
    format!("\"{}\"{tail}", head.escape_ascii())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn verdict_on(expect: Expect, status: u16, pieces: &[&[u8]]) -> Verdict {
        let mut rules = Rules::new(expect, Asked::Other);
        judge(&mut rules, status, pieces)
    }

    fn judge(rules: &mut Rules, status: u16, pieces: &[&[u8]]) -> Verdict {
        let mut check = BodyCheck::new(rules, status);
        pieces.iter().for_each(|piece| check.push(piece, rules));
        check.finish(status, rules)
    }

    #[test]
    fn without_an_expectation_2xx_and_3xx_are_right() {
        for (status, right) in
            [(200, true), (204, true), (304, true), (399, true), (400, false), (500, false)]
        {
            assert_eq!(verdict_on(Expect::any(), status, &[b"x"]) == Verdict::Right, right, "{status}");
        }
    }

    #[test]
    fn an_expected_status_takes_the_place_of_the_default() {
        let expect = Expect { status: Some(404), body: None };
        assert_eq!(verdict_on(expect.clone(), 404, &[]), Verdict::Right);
        assert_eq!(verdict_on(expect, 200, &[]), Verdict::WrongStatus);
    }

    #[test]
    fn a_body_cut_anywhere_is_compared_the_same() {
        let right = b"hello, world";
        for cut in 0..=right.len() {
            let (left, rest) = right.split_at(cut);
            assert_eq!(verdict_on(Expect::body(*right), 200, &[left, rest]), Verdict::Right);
            let mut wrong = *right;
            wrong[7] ^= 1;
            let (left, rest) = wrong.split_at(cut);
            assert_eq!(verdict_on(Expect::body(*right), 200, &[left, rest]), Verdict::WrongBody(Some(7)));
        }
    }

    #[test]
    fn a_body_too_short_or_too_long_differs_at_its_end() {
        assert_eq!(verdict_on(Expect::body("abc"), 200, &[b"ab"]), Verdict::WrongBody(Some(2)));
        assert_eq!(verdict_on(Expect::body("abc"), 200, &[b"abc", b"d"]), Verdict::WrongBody(Some(3)));
        assert_eq!(verdict_on(Expect::body("abc"), 200, &[b"abcd", b"e"]), Verdict::WrongBody(Some(3)));
        assert_eq!(verdict_on(Expect::body(""), 200, &[b"a"]), Verdict::WrongBody(Some(0)));
        assert_eq!(verdict_on(Expect::body(""), 200, &[]), Verdict::Right);
    }

    #[test]
    fn a_digest_is_that_of_fips_180() {
        // FIPS 180-2, appendix B.1: SHA-256 of "abc".
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let bytes: Vec<u8> =
            (0..64).step_by(2).map(|i| u8::from_str_radix(&digest[i..i + 2], 16).unwrap()).collect();
        let expect = Expect { status: None, body: Some(Body::Sha256(bytes.try_into().unwrap())) };
        assert_eq!(verdict_on(expect.clone(), 200, &[b"a", b"bc"]), Verdict::Right);
        assert_eq!(verdict_on(expect.clone(), 200, &[b"abd"]), Verdict::WrongBody(None));
        let mut rules = Rules::new(expect, Asked::Other);
        let verdict = judge(&mut rules, 200, &[b"abd"]);
        assert!(rules.expected(verdict).contains(digest));
    }

    #[test]
    fn the_first_right_body_becomes_the_expected_one() {
        let mut rules = Rules::new(Expect::same_body(), Asked::Other);
        assert_eq!(judge(&mut rules, 500, &[b"oops"]), Verdict::WrongStatus);
        assert_eq!(rules.expect(), &Expect::same_body());
        assert_eq!(judge(&mut rules, 200, &[b"on", b"e"]), Verdict::Right);
        assert_eq!(rules.expect(), &Expect::body("one"));
        assert_eq!(judge(&mut rules, 200, &[b"two"]), Verdict::WrongBody(Some(0)));
        assert_eq!(judge(&mut rules, 200, &[b"one"]), Verdict::Right);
    }

    #[test]
    fn a_huge_first_body_is_kept_as_its_digest() {
        let mut rules = Rules::new(Expect::same_body(), Asked::Other);
        let huge = vec![b'x'; FIRST_BODY_BYTES_MAX + 1];
        assert_eq!(judge(&mut rules, 200, &[&huge]), Verdict::Right);
        assert!(matches!(rules.expect().body, Some(Body::Sha256(_))));
        assert_eq!(judge(&mut rules, 200, &[&huge[..9], &huge[9..]]), Verdict::Right);
        assert_eq!(judge(&mut rules, 200, &[&huge[1..]]), Verdict::WrongBody(None));
    }

    #[test]
    fn what_is_shown_is_escaped_and_bounded() {
        assert_eq!(shown(b"a\r\n\x1b[31m\"\xff"), "\"a\\r\\n\\x1b[31m\\\"\\xff\"");
        assert!(shown(&[b'x'; 300]).ends_with("\" and 100 bytes more"));
    }
}
