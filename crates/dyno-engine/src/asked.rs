//! What a request asks of the framing of its reply. Kept with a request until it is answered.

/// How a reply is framed on its connection, kept for those that are finished later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) connection: Connection,
    pub(crate) content: Content,
    /// Whether the client knows the chunked coding, which HTTP/1.0 does not.
    pub(crate) chunks: Chunks,
    /// The host that is asked; 0 where there is but one.
    pub(crate) host: u16,
}

/// What the Connection header of a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Nothing: HTTP/1.1 keeps the connection.
    Kept,
    /// `keep-alive`, which an HTTP/1.0 client must be told.
    KeptAloud,
    /// `close`: this reply is the last one.
    Closed,
}

/// Whether the body's bytes follow the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Head and body.
    Sent,
    /// The head only, as an answer to HEAD (RFC 9110 §9.3.2).
    Omitted,
}

/// Whether a client understands the chunked coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    Known,
    Unknown,
}

impl Asked {
    /// Whether a body's bytes follow the head of a reply with this status. RFC 9110 §15.3.5 and §15.4.5: 204 and 304 have
    /// none.
    pub(crate) fn is_sent(self, status: u16) -> bool {
        self.content == Content::Sent && has_content(status)
    }

    /// What a refusal is framed for: the last reply of its connection.
    pub(crate) const LAST: Asked =
        Asked { connection: Connection::Closed, content: Content::Sent, chunks: Chunks::Known, host: 0 };
}

/// Whether a reply with this status has content at all.
pub(crate) fn has_content(status: u16) -> bool {
    status != 204 && status != 304
}

impl Connection {
    /// The value of the Connection header, if one is needed.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            Connection::Kept => None,
            Connection::KeptAloud => Some("keep-alive"),
            Connection::Closed => Some("close"),
        }
    }
}
