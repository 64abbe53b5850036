//! How much of a client is listened to before its head is whole: the server sets it, the request reader keeps it.

/// How much of a client is listened to before its head is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the request line without its line end; a longer one gets 414.
    pub line_bytes_max: usize,
    /// Bytes of the whole head, with the empty lines around it; a longer one gets 431.
    pub head_bytes_max: usize,
    /// Field lines; more get 431.
    pub headers_max: usize,
}

impl Default for Limits {
    /// 8,000 bytes is the least a server should take as a request line (RFC 9112 §3); 32 KiB and 100
    /// fields are what common servers take as a head.
    fn default() -> Self {
        Self { line_bytes_max: 8_000, head_bytes_max: 32 * 1024, headers_max: 100 }
    }
}
