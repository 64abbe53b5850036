//! What a request head says, once it has been read: borrowed from the caller's buffer and slots.
//!
//! Field lines are known by where they start. They have been read once and are whole and sane; name and value
//! are separated again only for those that are asked for, which most requests have none of.

use super::limits::Limits;
use super::method::Method;
use crate::scan::trim_blanks;

/// The versions that are told apart. HTTP/1.2 and later are read as HTTP/1.1 (RFC 9110 §6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// How the end of a request's body is found (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyLength {
    /// Neither Content-Length nor Transfer-Encoding: there is no body.
    None,
    /// As many bytes as Content-Length says; 0 is possible.
    Length(u64),
    /// Chunked: [`Decoder`](super::chunk::Decoder) finds the end.
    Chunked,
}

/// One field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'b> {
    /// The name as it was written; names are compared without regard to case.
    pub name: &'b [u8],
    /// The value without blanks at its ends; never holds a control other than the tab.
    pub value: &'b [u8],
}

/// Where the field lines of one head start: made once per worker, so that no request allocates.
#[derive(Debug, Clone)]
pub struct Slots {
    /// One more than field lines: the empty line after them ends the last one.
    pub(crate) places: Box<[u32]>,
}

impl Slots {
    /// Room for `limits.headers_max` field lines, four bytes each.
    pub fn new(limits: &Limits) -> Self {
        Self { places: vec![0; limits.headers_max.saturating_add(1)].into_boxed_slice() }
    }

    /// Room for so many field lines, if there is as much, and for the empty line.
    #[inline(always)]
    pub(crate) fn room(&mut self, headers_max: usize) -> &mut [u32] {
        debug_assert!(!self.places.is_empty(), "the empty line has its place");
        let count = self.places.len().min(headers_max.saturating_add(1));
        &mut self.places[..count]
    }
}

/// A request head, read and found sane.
#[derive(Debug, Clone, Copy)]
pub struct Head<'b> {
    /// The method.
    pub method: Method<'b>,
    /// Path and query as they were written, percent-escapes checked but not decoded. The scheme and
    /// authority of an absolute target are cut off; what is left starts with `/`, or with `?` when the
    /// target had a query and no path. `*` for `OPTIONS *`; host and port for CONNECT.
    pub target: &'b [u8],
    /// The version.
    pub version: Version,
    /// How the body's end is found.
    pub body: BodyLength,
    /// Whether the connection may serve another request after this one (RFC 9112 §9.3); never after a CONNECT, behind
    /// which its client may already send what is meant for the tunnel.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body; only when there is one.
    pub expect_continue: bool,
    pub(crate) path_bytes: usize,
    pub(crate) host: Option<&'b [u8]>,
    pub(crate) buf: &'b [u8],
    /// How much of `buf` is left from each field line on, and from the empty line after them.
    pub(crate) places: &'b [u32],
}

impl<'b> Head<'b> {
    /// The target without its query; `/` when the target had no path.
    #[inline]
    pub fn path(&self) -> &'b [u8] {
        match &self.target[..self.path_bytes] {
            [] => b"/",
            path => path,
        }
    }

    /// What follows the first `?` of the target.
    #[inline]
    pub fn query(&self) -> Option<&'b [u8]> {
        self.target.get(self.path_bytes + 1..)
    }

    /// Host and port: those of an absolute target if it has any, else those of the Host field (RFC 9112
    /// §3.2.2). Empty if Host was; `None` only in HTTP/1.0.
    #[inline]
    pub fn host(&self) -> Option<&'b [u8]> {
        self.host
    }

    /// All field lines, in their order.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = Header<'b>> + use<'b> {
        self.lines().map(Header::of_line)
    }

    /// The value of the first field of that name, in any case. Only lines with a colon where such a name ends are looked
    /// at any closer.
    pub fn header(&self, name: &[u8]) -> Option<&'b [u8]> {
        let may_be = |line: &&[u8]| line.get(name.len()) == Some(&b':');
        let mut headers = self.lines().filter(may_be).map(Header::of_line);
        headers.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    /// All field lines as they were sent, with their line ends.
    fn lines(&self) -> impl ExactSizeIterator<Item = &'b [u8]> + use<'b> {
        debug_assert!(self.places.is_sorted_by(|one, next| one > next), "less is left from each line on");
        let buf = self.buf;
        let at = move |place: u32| buf.len() - place as usize;
        self.places.windows(2).map(move |line| &buf[at(line[0])..at(line[1])])
    }
}

impl<'b> Header<'b> {
    /// Of a line with its line end, which has been read.
    #[inline]
    fn of_line(line: &'b [u8]) -> Self {
        let name_bytes = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        debug_assert!(name_bytes > 0 && line.ends_with(b"\r\n"), "a field line that has been read");
        let value = &line[(name_bytes + 1).min(line.len())..];
        Self { name: &line[..name_bytes], value: trim_blanks(value.strip_suffix(b"\r\n").unwrap_or(value)) }
    }
}
