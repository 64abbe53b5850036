//! Why a request is refused: one list for heads and chunked bodies, because the engine answers both.

use std::fmt;

/// A request that is refused. The connection must be closed after the answer, and nothing that follows
/// on it may be read: where the next request starts is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// The request line starts with a byte that no method has, or the method is empty.
    Method,
    /// The method is longer than 32 bytes.
    MethodLong,
    /// The request line is longer than allowed.
    TargetLong,
    /// The target is of no form that the method allows (RFC 9112 §3.2).
    TargetForm,
    /// The target holds a byte that no target may have.
    TargetByte,
    /// A percent sign in the target is not followed by two hexadecimal digits.
    TargetEscape,
    /// The authority of the target is no host with an optional port.
    TargetAuthority,
    /// The request line has no version (HTTP/0.9) or something that is none.
    Version,
    /// The version is none of HTTP/1.
    VersionUnsupported,
    /// A carriage return without a line feed.
    BareReturn,
    /// A line feed without a carriage return.
    BareFeed,
    /// Something stands between the version and the end of the request line.
    LineRest,
    /// A field line starts with a blank: line folding, or a blank before the first field.
    Folded,
    /// A field name is empty or holds a byte that is no token byte.
    FieldName,
    /// A blank stands between a field name and its colon.
    BlankBeforeColon,
    /// A field value holds a control byte.
    FieldValue,
    /// The head has more bytes than allowed.
    HeadLong,
    /// The head has more field lines than allowed.
    FieldsMany,
    /// An HTTP/1.1 request without Host.
    HostMissing,
    /// More than one Host.
    HostTwice,
    /// Host is no host with an optional port.
    HostValue,
    /// Content-Length is no decimal number that fits 64 bits.
    ContentLength,
    /// More than one Content-Length.
    ContentLengthTwice,
    /// Content-Length together with Transfer-Encoding.
    LengthAndCoding,
    /// Transfer-Encoding is no list of codings that ends in one "chunked".
    Coding,
    /// A transfer coding other than chunked.
    CodingUnsupported,
    /// Transfer-Encoding in an HTTP/1.0 request.
    CodingInOldVersion,
    /// Connection is no list of tokens.
    Connection,
    /// Expect asks for something other than 100-continue.
    Expectation,
    /// A chunk size is empty, or holds something that is no hexadecimal digit.
    ChunkSize,
    /// A chunk size, or the sum of them, does not fit 64 bits.
    ChunkSizeLong,
    /// A chunk extension is malformed.
    ChunkExtension,
    /// A chunk extension is longer than allowed.
    ChunkExtensionLong,
    /// The data of a chunk is not followed by a line end.
    ChunkEnd,
    /// The trailer section has more bytes or more field lines than allowed.
    TrailersLong,
    /// The frames of the chunks outweigh the data in them.
    ChunkOverhead,
}

impl Reject {
    /// The status code to answer with.
    pub fn status(self) -> u16 {
        match self {
            Self::TargetLong => 414,
            Self::Expectation => 417,
            Self::HeadLong | Self::FieldsMany | Self::TrailersLong => 431,
            Self::MethodLong | Self::CodingUnsupported => 501,
            Self::VersionUnsupported => 505,
            _ => 400,
        }
    }

    /// The reason in words, for logs and error bodies: no byte of the request is in it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "the method is no token",
            Self::MethodLong => "the method is too long",
            Self::TargetLong => "the request line is too long",
            Self::TargetForm => "the target's form does not fit the method",
            Self::TargetByte => "the target holds a byte that must be escaped",
            Self::TargetEscape => "a percent sign in the target is not followed by two hexadecimal digits",
            Self::TargetAuthority => "the target's authority is no host and port",
            Self::Version => "the request line has no valid HTTP version",
            Self::VersionUnsupported => "the HTTP version is not supported",
            Self::BareReturn => "a carriage return stands without its line feed",
            Self::BareFeed => "a line feed stands without its carriage return",
            Self::LineRest => "something stands between the version and the end of the line",
            Self::Folded => "a field line starts with a blank",
            Self::FieldName => "a field name is no token",
            Self::BlankBeforeColon => "a blank stands before a field's colon",
            Self::FieldValue => "a field value holds a control byte",
            Self::HeadLong => "the head is too long",
            Self::FieldsMany => "the head has too many fields",
            Self::HostMissing => "Host is missing",
            Self::HostTwice => "Host is given more than once",
            Self::HostValue => "Host is no host and port",
            Self::ContentLength => "Content-Length is no decimal number of 64 bits",
            Self::ContentLengthTwice => "Content-Length is given more than once",
            Self::LengthAndCoding => "Content-Length and Transfer-Encoding are both given",
            Self::Coding => "Transfer-Encoding does not end in one \"chunked\"",
            Self::CodingUnsupported => "the transfer coding is not supported",
            Self::CodingInOldVersion => "Transfer-Encoding is not part of HTTP/1.0",
            Self::Connection => "Connection is no list of tokens",
            Self::Expectation => "the expectation is not 100-continue",
            Self::ChunkSize => "a chunk size is no hexadecimal number",
            Self::ChunkSizeLong => "a chunk size does not fit 64 bits",
            Self::ChunkExtension => "a chunk extension is malformed",
            Self::ChunkExtensionLong => "a chunk extension is too long",
            Self::ChunkEnd => "a chunk's data is not followed by a line end",
            Self::TrailersLong => "the trailer section is too long",
            Self::ChunkOverhead => "the chunks carry too little data",
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Reject {}

/// Why a reader stopped: it ran out of bytes, or out of patience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    NeedMore,
    Reject(Reject),
}

impl From<Reject> for Stop {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}
