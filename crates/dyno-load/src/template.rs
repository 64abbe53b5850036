//! The short way to "this answer is right": it is byte for byte one that was parsed and found right before.
//!
//! Equal bytes parse equally, so a match needs no parsing and decides nothing that the parser would decide otherwise.
//! Only the 29 bytes of a `Date` value may differ, and then only within printable characters, which no parser can take
//! for framing. Used by the rules of a session; never the only way: what does not match is parsed.

use std::ops::Range;

/// Longer answers are streamed. 64 KiB: half the receive buffer, so that several stand in it whole.
const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// The length of an IMF-fixdate (RFC 9110 §5.6.7).
const DATE_BYTES: usize = 29;

#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    date: Option<Range<usize>>,
}

impl Template {
    /// A template from the bytes of one whole answer; none when it is too long to be one.
    pub(crate) fn new(answer: &[u8]) -> Option<Self> {
        let fits = answer.len() <= TEMPLATE_BYTES_MAX;
        fits.then(|| Self { bytes: answer.to_vec(), date: date_value(answer) })
    }

    /// The answer's length when `input` starts with it. Within one second of the server's clock this is one
    /// comparison; a new date is taken over, so that the next second's answers are one comparison again.
    #[inline]
    pub(crate) fn matches(&mut self, input: &[u8]) -> Option<usize> {
        let head = input.get(..self.bytes.len())?;
        if head == self.bytes { Some(head.len()) } else { self.matches_but_for_its_date(head) }
    }

    #[cold]
    fn matches_but_for_its_date(&mut self, input: &[u8]) -> Option<usize> {
        let date = self.date.clone()?;
        let same =
            input[..date.start] == self.bytes[..date.start] && input[date.end..] == self.bytes[date.end..];
        let plain = input[date.clone()].iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic());
        if !(same && plain) {
            return None;
        }
        self.bytes[date.clone()].copy_from_slice(&input[date]);
        Some(input.len())
    }
}

/// Where the value of the first `Date` header stands, if it has the length of an IMF-fixdate.
fn date_value(answer: &[u8]) -> Option<Range<usize>> {
    let mut at = 0;
    for line in answer.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\r\n")?;
        if text.is_empty() {
            return None;
        }
        if text.len() >= 5 && text[..5].eq_ignore_ascii_case(b"date:") {
            let value = text[5..].trim_ascii();
            let start = at + 5 + (text.len() - 5 - text[5..].trim_ascii_start().len());
            return (value.len() == DATE_BYTES).then_some(start..start + DATE_BYTES);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:55 GMT\r\nContent-Length: 2\r\n\r\nhi";

    fn with_date(date: &str) -> Vec<u8> {
        assert_eq!(date.len(), DATE_BYTES);
        let text = String::from_utf8(ANSWER.to_vec()).unwrap();
        text.replace("Sat, 21 Nov 2026 01:37:55 GMT", date).into_bytes()
    }

    #[test]
    fn the_same_bytes_match_and_a_shorter_input_does_not() {
        let mut template = Template::new(ANSWER).unwrap();
        assert_eq!(template.matches(ANSWER), Some(ANSWER.len()));
        assert_eq!(template.matches(&[ANSWER, b"HTTP"].concat()), Some(ANSWER.len()));
        for cut in 0..ANSWER.len() {
            assert_eq!(template.matches(&ANSWER[..cut]), None);
        }
    }

    #[test]
    fn any_byte_outside_the_date_that_differs_is_no_match() {
        let date = date_value(ANSWER).unwrap();
        for at in (0..ANSWER.len()).filter(|at| !date.contains(at)) {
            let mut other = ANSWER.to_vec();
            other[at] ^= 1;
            assert_eq!(Template::new(ANSWER).unwrap().matches(&other), None, "byte {at}");
        }
    }

    #[test]
    fn another_date_matches_and_is_taken_over() {
        let mut template = Template::new(ANSWER).unwrap();
        let later = with_date("Sat, 21 Nov 2026 01:37:56 GMT");
        assert_eq!(template.matches(&later), Some(ANSWER.len()));
        assert_eq!(template.bytes, later);
        assert_eq!(template.matches(ANSWER), Some(ANSWER.len()));
    }

    #[test]
    fn a_date_that_hides_a_header_is_no_match() {
        let mut template = Template::new(ANSWER).unwrap();
        for date in [
            "x\r\nTransfer-Encoding: chunked",
            "Sat, 21 Nov 2026 01:37:55 GM\n",
            "\0at, 21 Nov 2026 01:37:55 GMT",
        ] {
            assert_eq!(template.matches(&with_date(date)), None, "{date:?}");
        }
    }

    #[test]
    fn the_date_is_found_whatever_its_case_and_only_in_the_head() {
        let find = |text: &str| date_value(text.as_bytes()).map(|range| text[range].to_owned());
        let date = "Sat, 21 Nov 2026 01:37:55 GMT";
        assert_eq!(find(&format!("HTTP/1.1 200 OK\r\ndATE:{date}\r\n\r\n")).as_deref(), Some(date));
        assert_eq!(
            find(&format!("HTTP/1.1 200 OK\r\nA: b\r\nDate: \t{date} \r\n\r\n")).as_deref(),
            Some(date)
        );
        assert_eq!(find(&format!("HTTP/1.1 200 OK\r\n\r\nDate: {date}\r\n")), None);
        assert_eq!(find("HTTP/1.1 200 OK\r\nDate: now\r\n\r\n"), None);
        assert_eq!(find(&format!("HTTP/1.1 200 OK\r\nUpdate: {date}\r\n\r\n")), None);
    }

    #[test]
    fn a_long_answer_makes_no_template() {
        assert!(Template::new(&vec![b'x'; TEMPLATE_BYTES_MAX + 1]).is_none());
    }
}
