//! From a request and its answer to a line of the access log, in the format that was chosen.
//!
//! Called by workers for each request, into a buffer of theirs: nothing is allocated. Whatever a client sends, a line is
//! one line of visible ASCII (and what the format itself says), has [`RECORD_BYTES_MAX`] bytes at most, and a line of JSON
//! is a whole object. What was cut off is said.

use super::format::{CUT_MEMBER, Field, LogFormat, Piece, RECORD_BYTES_MAX, Style};
use crate::heads::LogDates;
use dyno_proto::http1::encode;
use dyno_proto::http1::request::{Head, Version};
use std::io::Write;
use std::net::IpAddr;

/// What stands at the end of a value in a text that was cut. No value has a backslash but in front of an `x`.
const CUT: &[u8] = b"\\...";

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// What a line tells.
pub(crate) struct Entry<'e> {
    /// Who asks, as far as it has an address.
    pub(crate) client: Option<IpAddr>,
    pub(crate) dates: &'e LogDates,
    pub(crate) request: Seen<'e>,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

/// A request, as far as it was understood.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'e> {
    Nothing,
    Head(&'e Head<'e>),
    Kept(&'e Kept),
}

/// What a line says of a request that is answered later.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) client: Option<IpAddr>,
    method: Box<[u8]>,
    target: Box<[u8]>,
    path_bytes: usize,
    version: &'static [u8],
    host: Option<Box<[u8]>>,
    /// In the order of [`LogFormat::headers`].
    headers: Box<[Option<Box<[u8]>>]>,
}

impl Kept {
    /// What this format tells of a request.
    pub(crate) fn new(format: &LogFormat, head: &Head<'_>, client: Option<IpAddr>) -> Kept {
        // No more than could stand in a line is kept for it.
        let kept = |bytes: &[u8]| bytes[..bytes.len().min(RECORD_BYTES_MAX)].into();
        let seen = Seen::Head(head);
        let header = |at| seen.header(format, at).map(kept);
        Kept {
            client,
            method: kept(head.method.as_bytes()),
            target: kept(head.target),
            path_bytes: seen.path().len().min(RECORD_BYTES_MAX),
            version: version_name(head.version),
            host: head.host().map(kept),
            headers: (0..format.headers.len()).map(header).collect(),
        }
    }
}

impl<'e> Seen<'e> {
    fn method(self) -> Option<&'e [u8]> {
        match self {
            Seen::Nothing => None,
            Seen::Head(head) => Some(head.method.as_bytes()),
            Seen::Kept(kept) => Some(&kept.method),
        }
    }

    fn target(self) -> Option<&'e [u8]> {
        match self {
            Seen::Nothing => None,
            Seen::Head(head) => Some(head.target),
            Seen::Kept(kept) => Some(&kept.target),
        }
    }

    /// The target without its query, as it was sent.
    fn path(self) -> &'e [u8] {
        match self {
            Seen::Nothing => &[],
            Seen::Head(head) => match head.query() {
                Some(query) => &head.target[..head.target.len() - query.len() - 1],
                None => head.target,
            },
            Seen::Kept(kept) => &kept.target[..kept.path_bytes],
        }
    }

    fn query(self) -> Option<&'e [u8]> {
        self.target().and_then(|target| target.get(self.path().len() + 1..)).filter(|query| !query.is_empty())
    }

    fn version(self) -> Option<&'static [u8]> {
        match self {
            Seen::Nothing => None,
            Seen::Head(head) => Some(version_name(head.version)),
            Seen::Kept(kept) => Some(kept.version),
        }
    }

    /// The host without its port.
    fn host(self) -> Option<&'e [u8]> {
        let host = match self {
            Seen::Nothing => None,
            Seen::Head(head) => head.host(),
            Seen::Kept(kept) => kept.host.as_deref(),
        }?;
        // An address of IPv6 has colons of its own, within brackets.
        let from = host.iter().rposition(|byte| *byte == b']').unwrap_or(0);
        let port = host[from..].iter().position(|byte| *byte == b':');
        Some(port.map_or(host, |port| &host[..from + port]))
    }

    fn header(self, format: &LogFormat, at: usize) -> Option<&'e [u8]> {
        match self {
            Seen::Nothing => None,
            Seen::Head(head) => head.header(&format.headers[at]),
            Seen::Kept(kept) => kept.headers.get(at)?.as_deref(),
        }
    }
}

fn version_name(version: Version) -> &'static [u8] {
    if version == Version::Http10 { b"HTTP/1.0" } else { b"HTTP/1.1" }
}

/// Puts the line of an entry into `line`, with its end. `pid`: who writes it.
pub(super) fn put(line: &mut Vec<u8>, format: &LogFormat, entry: &Entry<'_>, pid: u32) {
    line.clear();
    let mut writing = Writing { line, style: format.style, end: 0, is_cut: false };
    for piece in &format.pieces {
        writing.line.extend_from_slice(&piece.before);
        writing.end = RECORD_BYTES_MAX - piece.reserve;
        writing.field(format, piece, entry, pid);
        debug_assert!(writing.line.len() <= writing.end, "a value keeps to its room: {:?}", piece.field);
    }
    if writing.is_cut && format.style == Style::Json {
        // Before the brace that is the end of every object.
        let (brace, members) = format.after.split_last().unwrap_or((&b'}', &[]));
        line.extend_from_slice(members);
        line.extend_from_slice(CUT_MEMBER);
        line.push(*brace);
    } else {
        line.extend_from_slice(&format.after);
    }
    line.push(b'\n');
    check(line);
}

/// One request is one line, whatever it asked for.
fn check(line: &[u8]) {
    let breaks = line.iter().filter(|byte| byte.is_ascii_control() && **byte != b'\t').count();
    debug_assert!(
        breaks == 1 && line.ends_with(b"\n") && line.len() <= RECORD_BYTES_MAX,
        "a line of the log is one line: {}",
        line.escape_ascii()
    );
}

/// A line in the making.
struct Writing<'l> {
    line: &'l mut Vec<u8>,
    style: Style,
    /// Where the field that is written must end at most.
    end: usize,
    /// Whether a value was cut.
    is_cut: bool,
}

impl Writing<'_> {
    #[inline]
    fn field(&mut self, format: &LogFormat, piece: &Piece, entry: &Entry<'_>, pid: u32) {
        let request = entry.request;
        match piece.field {
            Field::RemoteAddr => self.address(entry.client),
            Field::RemoteUser => self.absent(),
            Field::TimeLocal => self.plain(&entry.dates.local),
            Field::TimeIso8601 => self.plain(&entry.dates.iso8601),
            Field::Request => self.request(request),
            Field::RequestMethod => self.value(request.method()),
            Field::RequestUri => self.value(request.target()),
            // An absolute target may have no path: then it is the root's (RFC 9112 §3.2.1).
            Field::Uri => self.value(
                request
                    .target()
                    .map(|_| request.path())
                    .map(|path| if path.is_empty() { b"/" } else { path }),
            ),
            Field::Args => self.value(request.query()),
            Field::ServerProtocol => self.value(request.version()),
            Field::Scheme => self.plain(b"http"),
            Field::Host => self.value(request.host()),
            Field::Status => encode::decimal(self.line, u64::from(entry.status)),
            Field::BodyBytesSent => encode::decimal(self.line, entry.body_bytes),
            Field::Pid => encode::decimal(self.line, u64::from(pid)),
            Field::Header(at) => self.value(request.header(format, at)),
        }
    }

    fn quote(&mut self) {
        if self.style == Style::Json {
            self.line.push(b'"');
        }
    }

    /// A text of our own.
    fn plain(&mut self, text: &[u8]) {
        self.quote();
        self.line.extend_from_slice(text);
        self.quote();
    }

    fn absent(&mut self) {
        self.line.extend_from_slice(if self.style == Style::Json { b"null" } else { b"-" });
    }

    fn address(&mut self, client: Option<IpAddr>) {
        let Some(client) = client else { return self.absent() };
        self.quote();
        match client {
            IpAddr::V4(address) => push_v4(self.line, address.octets()),
            // Longer addresses are rare enough for the formatting machinery; writing into a Vec cannot fail.
            IpAddr::V6(address) => write!(self.line, "{address}").unwrap_or_default(),
        }
        self.quote();
    }

    /// What a client has sent.
    fn value(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return self.absent() };
        self.quote();
        self.escaped(bytes, usize::from(self.style == Style::Json));
        self.quote();
    }

    fn request(&mut self, request: Seen<'_>) {
        let (Some(method), Some(target), Some(version)) =
            (request.method(), request.target(), request.version())
        else {
            return self.absent();
        };
        let behind = 1 + version.len() + usize::from(self.style == Style::Json);
        self.quote();
        self.escaped(method, 1 + behind);
        self.line.push(b' ');
        self.escaped(target, behind);
        self.line.push(b' ');
        self.line.extend_from_slice(version);
        self.quote();
    }

    /// Escapes bytes; `behind` of the field's room are kept.
    fn escaped(&mut self, bytes: &[u8], behind: usize) {
        let end = self.end - behind;
        let escape = if self.style == Style::Json { json_escape } else { text_escape };
        let mut rest = bytes;
        while !rest.is_empty() {
            let plain = rest.iter().position(|byte| !IS_PLAIN[usize::from(*byte)]).unwrap_or(rest.len());
            if plain > end - self.line.len() {
                let room = end - self.line.len();
                self.line.extend_from_slice(&rest[..room]);
                return self.cut(end);
            }
            self.line.extend_from_slice(&rest[..plain]);
            rest = &rest[plain..];
            if rest.is_empty() {
                return;
            }
            let (used, escaped) = escape(rest);
            if escaped.length > end - self.line.len() {
                return self.cut(end);
            }
            self.line.extend_from_slice(&escaped.bytes[..escaped.length]);
            rest = &rest[used..];
        }
    }

    /// Says that a value goes on.
    #[cold]
    fn cut(&mut self, end: usize) {
        self.is_cut = true;
        if self.style == Style::Text {
            // An escape that the mark would tear leaves whole.
            let mut kept = self.line.len().min(end - CUT.len());
            let from = kept.saturating_sub(3);
            if let Some(at) = self.line[from..kept].iter().rposition(|byte| *byte == b'\\') {
                kept = from + at;
            }
            self.line.truncate(kept);
            self.line.extend_from_slice(CUT);
        }
    }
}

/// Bytes that stand for themselves in both styles: visible ASCII and the blank, but the quote and the backslash.
static IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b' ';
    while byte <= b'~' {
        plain[byte as usize] = byte != b'"' && byte != b'\\';
        byte += 1;
    }
    plain
};

/// What stands for a byte or a character.
struct Escaped {
    bytes: [u8; 12],
    length: usize,
}

impl Escaped {
    fn of(text: &[u8]) -> Escaped {
        let mut bytes = [0; 12];
        bytes[..text.len()].copy_from_slice(text);
        Escaped { bytes, length: text.len() }
    }
}

/// `\xHH`, as nginx and Apache write it.
fn text_escape(rest: &[u8]) -> (usize, Escaped) {
    let byte = rest[0];
    (1, Escaped::of(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]))
}

/// The escapes of RFC 8259 §7. Characters outside ASCII are escaped too, so that a line is visible ASCII: there are line
/// ends and marks of direction among them. What is not UTF-8 becomes U+FFFD.
fn json_escape(rest: &[u8]) -> (usize, Escaped) {
    if let byte @ (b'"' | b'\\') = rest[0] {
        return (1, Escaped::of(&[b'\\', byte]));
    }
    let first = rest[..rest.len().min(4)].utf8_chunks().next();
    let character = first.as_ref().and_then(|chunk| chunk.valid().chars().next());
    let used = match (character, first) {
        (Some(character), _) => character.len_utf8(),
        (None, chunk) => chunk.map_or(1, |chunk| chunk.invalid().len()).max(1),
    };
    let mut units = [0; 2];
    let mut escaped = Escaped { bytes: [0; 12], length: 0 };
    for unit in character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf16(&mut units) {
        let digit = |shift: u32| HEX[usize::from(*unit >> shift & 15)].to_ascii_lowercase();
        let text = [b'\\', b'u', digit(12), digit(8), digit(4), digit(0)];
        escaped.bytes[escaped.length..escaped.length + 6].copy_from_slice(&text);
        escaped.length += 6;
    }
    (used, escaped)
}

fn push_v4(line: &mut Vec<u8>, octets: [u8; 4]) {
    for (at, octet) in octets.into_iter().enumerate() {
        if at > 0 {
            line.push(b'.');
        }
        encode::decimal(line, u64::from(octet));
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
