//! Takes the chunked transfer coding off a body (RFC 9112 §7.1): the engine for requests, the load
//! generator for replies.
//!
//! A [`Decoder`] remembers where in the frame it is, so the bytes may be cut anywhere. Extensions and
//! trailers are checked, bounded and dropped: nothing in them may change what was decided from the head.

use super::reject::Reject;
use crate::scan::{hex_value, is_blank, is_token_byte};
use std::ops::Range;

/// Digits of a chunk size: as many as 64 bits need. More of them, even zeros, are no honest size.
pub const SIZE_DIGITS_MAX: u8 = 16;
/// Bytes of one chunk's extensions. No common client sends any; Go's limit for the whole line is 4,096.
pub const EXTENSION_BYTES_MAX: u16 = 1_024;
/// Bytes of the trailer section: one gRPC-like set of fields is a few hundred.
pub const TRAILER_BYTES_MAX: u16 = 4_096;
/// Field lines of the trailer section.
pub const TRAILERS_MAX: u8 = 32;
/// How far the bytes of frames may get ahead of what the data pays for. Each chunk pays for
/// [`CHUNK_ALLOWANCE`] bytes of frame and twice its data: Go's remedy of CVE-2023-39326, same numbers.
pub const OVERHEAD_BYTES_MAX: u32 = 16 * 1024;
/// Bytes of frame that a chunk has for nothing.
pub const CHUNK_ALLOWANCE: u32 = 16;

/// What one call found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where in the input data stands: it belongs to the body as it is. May be empty.
    pub data: Range<usize>,
    /// Bytes of the input that are done with; call again with the rest.
    pub used: usize,
    /// Whether the body has ended. The next message starts after `used`.
    pub done: bool,
}

/// Decodes one body.
#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
    /// Bytes of the present chunk that have not come yet; while its size is read, the size so far.
    left: u64,
    /// The sum of all sizes read.
    announced: u64,
    /// Frame bytes not yet paid for.
    overhead: u32,
    /// Bytes of the present extensions, or of the trailer section.
    section_bytes: u16,
    /// Digits of the present size, or field lines of the trailer section.
    count: u8,
}

/// Where in a frame the next byte stands. The names say what has been read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    BlankAfterSize,
    Semicolon,
    Name,
    BlankAfterName,
    Equals,
    Token,
    Quoted,
    QuotedBackslash,
    QuotedEnd,
    BlankAfterValue,
    SizeReturn,
    Data,
    DataEnd,
    DataReturn,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerReturn,
    LastReturn,
    Done,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder at the start of a body.
    pub fn new() -> Self {
        Self { state: State::Size, left: 0, announced: 0, overhead: 0, section_bytes: 0, count: 0 }
    }

    /// The sum of the chunk sizes seen so far: lets a body that is too large be refused before it comes.
    pub fn announced(&self) -> u64 {
        self.announced
    }

    /// Reads up to the end of the first piece of data in `input`, of the body, or of `input`.
    ///
    /// Uses at least one byte unless `input` is empty or the body has ended.
    ///
    /// # Errors
    /// A [`Reject`] at the first byte that no chunked body has there. The decoder must not be used again.
    pub fn push(&mut self, input: &[u8]) -> Result<Chunk, Reject> {
        let mut used = 0;
        while used < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let data = self.take_data(input, used);
                return Ok(Chunk { used: data.end, data, done: false });
            }
            self.state = self.step(input[used])?;
            used += 1;
        }
        Ok(Chunk { data: used..used, used, done: self.state == State::Done })
    }

    fn take_data(&mut self, input: &[u8], from: usize) -> Range<usize> {
        let there = input.len() - from;
        let taken = usize::try_from(self.left).map_or(there, |left| left.min(there));
        self.left -= taken as u64;
        if self.left == 0 {
            self.state = State::DataEnd;
        }
        from..from + taken
    }

    /// Takes one byte of a frame.
    fn step(&mut self, byte: u8) -> Result<State, Reject> {
        match self.state {
            State::Size => self.size(byte),
            State::DataEnd if byte == b'\r' => Ok(State::DataReturn),
            State::DataReturn if byte == b'\n' => Ok(State::Size),
            State::DataEnd | State::DataReturn => Err(Reject::ChunkEnd),
            State::SizeReturn if byte == b'\n' => self.size_done(),
            State::SizeReturn | State::TrailerReturn | State::LastReturn if byte != b'\n' => {
                Err(Reject::BareReturn)
            }
            State::TrailerStart | State::TrailerName | State::TrailerValue => self.trailer(byte),
            State::TrailerReturn => Ok(State::TrailerStart),
            State::LastReturn | State::Done => Ok(State::Done),
            _ => self.extension(byte),
        }
    }

    fn size(&mut self, byte: u8) -> Result<State, Reject> {
        if let Some(digit) = hex_value(byte) {
            if self.count == SIZE_DIGITS_MAX {
                return Err(Reject::ChunkSizeLong);
            }
            self.count += 1;
            self.left = self.left << 4 | u64::from(digit);
            return Ok(State::Size);
        }
        match byte {
            _ if self.count == 0 => Err(Reject::ChunkSize),
            b'\r' => Ok(State::SizeReturn),
            b'\n' => Err(Reject::BareFeed),
            b';' | b' ' | b'\t' => self.extension(byte),
            _ => Err(Reject::ChunkSize),
        }
    }

    /// The line of the size is whole.
    fn size_done(&mut self) -> Result<State, Reject> {
        self.announced = self.announced.checked_add(self.left).ok_or(Reject::ChunkSizeLong)?;
        // Digits, extensions (with which the carriage return was counted), and two line ends. The sums stay small:
        // each is checked at once.
        let extensions = self.section_bytes.saturating_sub(1);
        let frame = u32::from(self.count) + u32::from(extensions) + 4;
        let paid =
            u32::try_from(self.left.saturating_mul(2)).unwrap_or(u32::MAX).saturating_add(CHUNK_ALLOWANCE);
        self.overhead = (self.overhead + frame).saturating_sub(paid);
        if self.overhead > OVERHEAD_BYTES_MAX {
            return Err(Reject::ChunkOverhead);
        }
        (self.section_bytes, self.count) = (0, 0);
        Ok(if self.left == 0 { State::TrailerStart } else { State::Data })
    }

    /// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1). Blanks stand
    /// only where the grammar has them, so a blank that ends the line is refused.
    fn extension(&mut self, byte: u8) -> Result<State, Reject> {
        self.section_bytes += 1;
        if self.section_bytes > EXTENSION_BYTES_MAX {
            return Err(Reject::ChunkExtensionLong);
        }
        let next = match (self.state, byte) {
            (State::Quoted, b'"') => State::QuotedEnd,
            (State::Quoted, b'\\') => State::QuotedBackslash,
            (State::Quoted | State::QuotedBackslash, b'\t' | b' '..=b'~' | 0x80..) => State::Quoted,
            (State::Semicolon | State::Name, _) if is_token_byte(byte) => State::Name,
            (State::Equals | State::Token, _) if is_token_byte(byte) => State::Token,
            (State::Equals, b'"') => State::Quoted,
            (State::Name | State::BlankAfterName, b'=') => State::Equals,
            (State::Size | State::BlankAfterSize, b';') => State::Semicolon,
            (State::Name | State::BlankAfterName, b';') => State::Semicolon,
            (State::Token | State::QuotedEnd | State::BlankAfterValue, b';') => State::Semicolon,
            (State::Name | State::Token | State::QuotedEnd, b'\r') => State::SizeReturn,
            (_, b'\n') => return Err(Reject::BareFeed),
            (state, _) if is_blank(byte) => blank_after(state),
            (State::BlankAfterSize, _) => return Err(Reject::ChunkSize),
            _ => return Err(Reject::ChunkExtension),
        };
        Ok(next)
    }

    /// Field lines as in a head; what they say is dropped.
    fn trailer(&mut self, byte: u8) -> Result<State, Reject> {
        self.section_bytes += 1;
        if self.section_bytes > TRAILER_BYTES_MAX {
            return Err(Reject::TrailersLong);
        }
        match (self.state, byte) {
            (State::TrailerStart, b'\r') => Ok(State::LastReturn),
            (State::TrailerStart, _) if is_token_byte(byte) => self.trailer_line(),
            (State::TrailerStart, b' ' | b'\t') => Err(Reject::Folded),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerName, b' ' | b'\t') => Err(Reject::BlankBeforeColon),
            (State::TrailerName, _) if is_token_byte(byte) => Ok(State::TrailerName),
            (State::TrailerValue, b'\r') => Ok(State::TrailerReturn),
            (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Ok(State::TrailerValue),
            (State::TrailerValue | State::TrailerStart, b'\n') => Err(Reject::BareFeed),
            (State::TrailerValue, _) => Err(Reject::FieldValue),
            _ => Err(Reject::FieldName),
        }
    }

    fn trailer_line(&mut self) -> Result<State, Reject> {
        if self.count == TRAILERS_MAX {
            return Err(Reject::TrailersLong);
        }
        self.count += 1;
        Ok(State::TrailerName)
    }
}

/// Where a blank leads that an extension may have.
fn blank_after(state: State) -> State {
    match state {
        State::Size => State::BlankAfterSize,
        State::Name => State::BlankAfterName,
        State::Token | State::QuotedEnd => State::BlankAfterValue,
        same => same,
    }
}
