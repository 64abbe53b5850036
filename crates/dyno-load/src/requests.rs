//! The requests of a target, one or several sent in turn, and the batches that a session makes of them.
//!
//! A target is built with them, a session sends them; both call here before a run, so that sending is a slice of bytes
//! that are ready. Nothing is sent here, and no byte of a request is changed.

use std::ops::Range;

use dyno_proto::http1::request::{self, BodyLength, Head, Limits, Method, Parsed, Slots};
use dyno_proto::http1::response::Asked;

/// What a head may be at most. These are the user's own bytes: a server's limits are there to be tried.
const LIMITS: Limits = Limits { line_bytes_max: 1 << 20, head_bytes_max: 1 << 20, headers_max: 10_000 };

/// Requests, one behind the other; at least one.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
    asked: Asked,
}

/// What is wrong with a list of requests: with which of them, counted from 1, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) number: usize,
    pub(crate) why: &'static str,
}

impl Requests {
    /// One request that is known to be right.
    pub(crate) fn one(bytes: Vec<u8>, asked: Asked) -> Self {
        Self { ends: vec![bytes.len()], bytes, asked }
    }

    /// Splits these bytes into requests. Empty lines at the end are left out.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        let mut bytes = bytes.to_vec();
        let (mut ends, mut asked, mut at) = (Vec::new(), None, 0);
        while !bytes[at..].iter().all(|byte| b"\r\n".contains(byte)) {
            let number = ends.len() + 1;
            let unusable = |why| Unusable { number, why };
            let (used, this) = first(&bytes[at..]).map_err(unusable)?;
            if *asked.get_or_insert(this) != this {
                return Err(unusable(
                    "HEAD and other methods do not go together: their answers end differently",
                ));
            }
            at += used;
            ends.push(at);
        }
        bytes.truncate(at);
        let asked = asked.ok_or(Unusable { number: 1, why: "there is none" })?;
        Ok(Self { bytes, ends, asked })
    }

    /// The bytes of all.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the first one.
    pub(crate) fn first(&self) -> &[u8] {
        &self.bytes[..self.ends[0]]
    }

    /// What the framing of every answer has to know.
    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of so many of them, sent in turn.
    pub(crate) fn bytes_of(&self, requests: u64) -> u64 {
        let all = u128::from(requests) * self.bytes.len() as u128 / self.len() as u128;
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// How often the list has to stand in a row, that a batch may begin with any request of it.
    fn copies(&self, pipeline: usize) -> usize {
        (self.len() - 1).saturating_add(pipeline).div_ceil(self.len())
    }

    /// What [`Batches`] of so many requests take.
    pub(crate) fn batch_bytes(&self, pipeline: usize) -> usize {
        self.copies(pipeline).saturating_mul(self.bytes.len())
    }

    /// Where the request of that number ends, when the list stands in a row for ever.
    fn end_of(&self, number: usize) -> usize {
        number / self.len() * self.bytes.len() + self.ends[number % self.len()]
    }
}

/// The length of the request at the start of `bytes`, and what its answer has to know.
fn first(bytes: &[u8]) -> Result<(usize, Asked), &'static str> {
    let mut slots = Slots::new(&LIMITS);
    let (head, used) = match request::parse(bytes, &LIMITS, &mut slots) {
        Ok(Parsed::Whole { head, used }) => (head, used),
        Ok(Parsed::NeedMore) => return Err("its head is not whole: an empty line ends it"),
        Err(reject) => return Err(reject.as_str()),
    };
    let body = body_bytes(&head)?;
    match usize::try_from(body).ok().and_then(|body| used.checked_add(body)) {
        Some(whole) if whole <= bytes.len() => Ok((whole, asked(&head)?)),
        _ => Err("its body is shorter than Content-Length says"),
    }
}

fn body_bytes(head: &Head<'_>) -> Result<u64, &'static str> {
    if head.expect_continue || head.header(b"upgrade").is_some() {
        return Err("the whole request is sent at once and stays with HTTP/1.1: no Expect, no Upgrade");
    }
    match head.body {
        BodyLength::None => Ok(0),
        BodyLength::Length(bytes) => Ok(bytes),
        BodyLength::Chunked => Err("its body is chunked: give it a Content-Length"),
    }
}

fn asked(head: &Head<'_>) -> Result<Asked, &'static str> {
    match head.method {
        Method::Connect => Err("a tunnel has no answers to count"),
        Method::Head => Ok(Asked::Head),
        _ => Ok(Asked::Other),
    }
}

/// Batches of requests in turn, ready to be sent: the next one begins where the last one ended.
#[derive(Debug)]
pub(crate) struct Batches {
    bytes: Vec<u8>,
    /// Where each request of the list ends.
    ends: Vec<usize>,
    /// For each request of the list, the batch that begins with it.
    batches: Vec<Range<usize>>,
    /// How many requests a batch is.
    pipeline: usize,
    /// The request that the next batch begins with.
    next: usize,
}

impl Batches {
    pub(crate) fn new(requests: &Requests, pipeline: usize) -> Self {
        assert!(pipeline > 0, "a batch is at least one request");
        let start = |number: usize| if number == 0 { 0 } else { requests.end_of(number - 1) };
        let batch = |number: usize| start(number)..requests.end_of(number + pipeline - 1);
        Self {
            bytes: requests.bytes.repeat(requests.copies(pipeline)),
            ends: requests.ends.clone(),
            batches: (0..requests.len()).map(batch).collect(),
            pipeline,
            next: 0,
        }
    }

    pub(crate) fn pipeline(&self) -> usize {
        self.pipeline
    }

    /// Where the next batch stands.
    #[inline]
    pub(crate) fn take(&mut self) -> Range<usize> {
        let batch = self.batches[self.next].clone();
        if self.batches.len() > 1 {
            self.next = (self.next + self.pipeline) % self.batches.len();
        }
        batch
    }

    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Where the request ends that has so many behind it in a batch that ends at `batch_end`.
    #[cold]
    pub(crate) fn end_of(&self, batch_end: usize, behind: usize) -> usize {
        let (list, list_bytes) = (self.ends.len(), self.ends[self.ends.len() - 1]);
        let (lists, rest) = ((batch_end - 1) / list_bytes, (batch_end - 1) % list_bytes + 1);
        let last = self.ends.binary_search(&rest).expect("a batch ends where a request does");
        let number = lists * list + last - behind;
        number / list * list_bytes + self.ends[number % list]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Three of different lengths, one with a body.
    const THREE: [&str; 3] = [
        "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
        "GET /ccc?d HTTP/1.1\r\nHost: x\r\nCookie: e=f\r\n\r\n",
    ];

    fn three() -> Requests {
        Requests::read(THREE.concat().as_bytes()).unwrap()
    }

    #[test]
    fn a_list_is_split_into_its_requests_and_empty_lines_at_the_end_are_left_out() {
        let requests = Requests::read((THREE.concat() + "\r\n\n").as_bytes()).unwrap();
        assert_eq!((requests.len(), requests.first()), (3, THREE[0].as_bytes()));
        assert_eq!(requests.bytes, THREE.concat().as_bytes());
        assert_eq!(requests.asked(), Asked::Other);
    }

    #[test]
    fn batches_go_through_the_list_in_turn_whatever_their_length() {
        for pipeline in 1..=8 {
            let mut batches = Batches::new(&three(), pipeline);
            let sent: Vec<u8> = (0..6)
                .flat_map(|_| {
                    let batch = batches.take();
                    batches.bytes(batch).to_vec()
                })
                .collect();
            let wanted: String = (0..6 * pipeline).map(|number| THREE[number % 3]).collect();
            assert_eq!(String::from_utf8(sent).unwrap(), wanted, "batches of {pipeline}");
            assert_eq!(batches.bytes.len(), three().batch_bytes(pipeline));
        }
    }

    /// Planted fault: all of them are as long as the first.
    #[test]
    fn the_bytes_of_many_requests_are_those_of_all_of_the_list() {
        let round: u64 = THREE.iter().map(|request| request.len() as u64).sum();
        assert_eq!((three().bytes_of(3_000), three().bytes_of(0)), (1_000 * round, 0));
    }

    /// Planted fault: the ends of another batch, or of another request of it.
    #[test]
    fn each_request_of_a_batch_ends_where_the_next_begins() {
        for pipeline in 1..=8 {
            let mut batches = Batches::new(&three(), pipeline);
            for turn in 0..3 {
                let batch = batches.take();
                let mut end = batch.start;
                for place in 0..pipeline {
                    end += THREE[(turn * pipeline + place) % 3].len();
                    let behind = pipeline - 1 - place;
                    assert_eq!(
                        batches.end_of(batch.end, behind),
                        end,
                        "{place} of {pipeline} in turn {turn}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_request_is_repeated_without_a_byte_to_spare() {
        let requests = Requests::one(THREE[0].into(), Asked::Other);
        assert_eq!(requests.batch_bytes(16), 16 * THREE[0].len());
        assert_eq!(Batches::new(&requests, 16).take(), 0..16 * THREE[0].len());
        assert_eq!(requests.batch_bytes(usize::MAX), usize::MAX, "too many are too long, not few");
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_number() {
        let refused = |text: &str| Requests::read(text.as_bytes()).unwrap_err();
        assert_eq!(refused("\r\n"), Unusable { number: 1, why: "there is none" });
        for (second, word) in [
            ("GET /", "not whole"),
            ("GET / HTTP/1.1\r\n\r\n", "Host"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfour", "shorter"),
            ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked"),
            ("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n", "Upgrade"),
            ("CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", "tunnel"),
            ("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD"),
        ] {
            let unusable = refused(&format!("{}{second}", THREE[0]));
            assert_eq!(unusable.number, 2, "{second}");
            assert!(unusable.why.contains(word), "{second:?}: {}", unusable.why);
        }
    }

    #[test]
    fn requests_cut_anywhere_are_fewer_or_refused_and_never_others() {
        let text = THREE.concat();
        for cut in 1..text.len() {
            if let Ok(requests) = Requests::read(&text.as_bytes()[..cut]) {
                assert!(requests.ends.iter().all(|end| three().ends.contains(end)), "cut at {cut}");
            }
        }
    }
}
