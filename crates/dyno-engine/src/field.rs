//! Which header lines a handler may add to a reply. Replies and answers ask here; nothing is written.

/// Bytes that one reply's own header lines may take together: the head that we would accept ourselves.
pub(crate) const OWN_BYTES_MAX: usize = 32 << 10;

/// Headers that frame the reply or that the engine writes itself; a handler cannot set them.
const ENGINE_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "upgrade",
];

/// Whether a handler may set a header of this name: a token, and none of the engine's own.
pub(crate) fn is_settable(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(token)
        && !ENGINE_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Field values are visible, spaces or tabs (RFC 9110 §5.5); blanks at the ends would not survive a parser.
pub(crate) fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) && value.trim_ascii() == value
}
