//! Methods of requests (RFC 9110 §9.3, RFC 5789), used by the request reader and by every router.

use std::fmt;

/// The longest method that is looked at; a longer one gets 501 (RFC 9112 §3). The longest one that is
/// registered with IANA, UPDATEREDIRECTREF, has 17 bytes.
pub const METHOD_BYTES_MAX: usize = 32;

/// What a client asks to be done. Methods are case-sensitive: `get` is [`Method::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method<'b> {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// PATCH
    Patch,
    /// TRACE
    Trace,
    /// CONNECT
    Connect,
    /// Any other token of at most [`METHOD_BYTES_MAX`] bytes.
    Other(&'b [u8]),
}

impl<'b> Method<'b> {
    /// The method of that name; the caller has checked that it is a token. Most are GET.
    #[inline(always)]
    pub(crate) fn from_token(token: &'b [u8]) -> Self {
        if token == b"GET" { Self::Get } else { Self::from_other_token(token) }
    }

    #[inline(never)]
    fn from_other_token(token: &'b [u8]) -> Self {
        match token {
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"PATCH" => Self::Patch,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            other => Self::Other(other),
        }
    }

    /// The name as it stands in a request line.
    pub fn as_bytes(&self) -> &'b [u8] {
        match *self {
            Self::Get => b"GET",
            Self::Head => b"HEAD",
            Self::Post => b"POST",
            Self::Put => b"PUT",
            Self::Delete => b"DELETE",
            Self::Options => b"OPTIONS",
            Self::Patch => b"PATCH",
            Self::Trace => b"TRACE",
            Self::Connect => b"CONNECT",
            Self::Other(token) => token,
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &'b str {
        // Tokens are ASCII, so the empty answer is never given for a method that was read.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_says_its_own_name() {
        for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"] {
            let method = Method::from_token(name.as_bytes());
            assert_eq!(method.as_str(), name);
            assert_eq!(matches!(method, Method::Other(_)), name == "BREW");
        }
    }

    #[test]
    fn methods_are_case_sensitive() {
        assert_eq!(Method::from_token(b"get"), Method::Other(b"get"));
    }
}
