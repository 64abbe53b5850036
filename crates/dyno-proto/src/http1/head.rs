//! What a request head says, once it has been read: borrowed from the caller's buffer and slots.

use super::Method;
use super::request::Limits;
use super::usual::Remembered;

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

/// Where the field lines of one head are noted: made once per worker, so that no request allocates. It also
/// remembers the Host that was seen last, which saves work and never changes an outcome.
#[derive(Debug, Clone)]
pub struct Slots {
    pub(crate) lines: Box<[Line]>,
    pub(crate) ending: Remembered,
}

impl Slots {
    /// Room for `limits.headers_max` field lines, 16 bytes each.
    pub fn new(limits: &Limits) -> Self {
        let lines = vec![Line::default(); limits.headers_max].into_boxed_slice();
        Self { lines, ending: Remembered::nothing() }
    }
}

/// Offsets into the buffer: of a name, and of a value without its blanks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line {
    name_at: u32,
    name_end: u32,
    value_at: u32,
    value_end: u32,
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
    /// Whether the connection may serve another request after this one (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body; only when there is one.
    pub expect_continue: bool,
    pub(crate) path_bytes: usize,
    pub(crate) host: Option<&'b [u8]>,
    pub(crate) buf: &'b [u8],
    pub(crate) lines: &'b [Line],
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
        let buf = self.buf;
        self.lines.iter().map(move |line| Header { name: line.name(buf), value: line.value(buf) })
    }

    /// The value of the first field of that name, in any case.
    pub fn header(&self, name: &[u8]) -> Option<&'b [u8]> {
        self.headers().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }
}

impl Line {
    /// The offsets fit: a head is never read further than 32 bits reach.
    #[inline]
    pub(crate) fn new(name_at: usize, name_end: usize, value_at: usize, value_end: usize) -> Self {
        let [name_at, name_end] = [name_at as u32, name_end as u32];
        Self { name_at, name_end, value_at: value_at as u32, value_end: value_end as u32 }
    }

    #[inline]
    pub(crate) fn name<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        &buf[self.name_at as usize..self.name_end as usize]
    }

    #[inline]
    pub(crate) fn value<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        &buf[self.value_at as usize..self.value_end as usize]
    }
}
