//! From the path of a request to the name of a file: decoded once, and refused where it could mean anything but a file
//! below the root.
//!
//! The engine's content calls it for every request. Names are bytes, as Linux has them. Whether there is such a file is
//! not asked here.

use crate::percent;
use std::fmt;

/// Where `.well-known` stands (RFC 8615): the one name with a leading dot that is asked for by others.
const WELL_KNOWN: &[u8] = b".well-known";

/// Why a path names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFile {
    /// A percent sign without two hexadecimal digits.
    Escape,
    /// A zero byte, or an encoded slash: no file has such a name.
    Byte,
    /// A step upwards.
    Upwards,
    /// A name that begins with a dot.
    Hidden,
    /// An empty name, as between two slashes.
    Empty,
}

impl NoFile {
    /// The status to answer with: what nobody asks for by mistake is 400, what might be there is 404.
    pub fn status(self) -> u16 {
        match self {
            NoFile::Escape | NoFile::Byte | NoFile::Upwards => 400,
            NoFile::Hidden | NoFile::Empty => 404,
        }
    }
}

impl fmt::Display for NoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoFile::Escape => "a percent sign is not followed by two hexadecimal digits",
            NoFile::Byte => "a name holds a zero byte or a slash",
            NoFile::Upwards => "a name is \"..\"",
            NoFile::Hidden => "a name begins with a dot",
            NoFile::Empty => "a name is empty",
        })
    }
}

impl std::error::Error for NoFile {}

/// Appends the decoded path without its first slash to `out`. A slash at the end stays: it asks for a folder.
///
/// # Errors
/// [`NoFile`]; `out` then holds some of it.
pub fn decode(path: &[u8], out: &mut Vec<u8>) -> Result<(), NoFile> {
    let names = path.strip_prefix(b"/").ok_or(NoFile::Empty)?;
    let mut rest = names;
    loop {
        let end = rest.iter().position(|&byte| byte == b'/');
        let name = &rest[..end.unwrap_or(rest.len())];
        let is_first = rest.len() == names.len();
        if !name.is_empty() {
            decode_name(name, is_first, out)?;
        } else if end.is_some() {
            return Err(NoFile::Empty);
        }
        let Some(end) = end else { return Ok(()) };
        out.push(b'/');
        rest = &rest[end + 1..];
    }
}

fn decode_name(name: &[u8], is_first: bool, out: &mut Vec<u8>) -> Result<(), NoFile> {
    let start = out.len();
    percent::decode(name, out).map_err(|_| NoFile::Escape)?;
    match &out[start..] {
        b".." => Err(NoFile::Upwards),
        [b'.', ..] if !(is_first && out[start..] == *WELL_KNOWN) => Err(NoFile::Hidden),
        decoded if decoded.iter().any(|&byte| byte == 0 || byte == b'/') => Err(NoFile::Byte),
        _ => Ok(()),
    }
}

/// Appends the path of a file, with its first slash, as it stands in a Location field: what could mean anything else is
/// escaped (RFC 3986 §3.3).
pub fn encode(path: &[u8], out: &mut Vec<u8>) {
    out.push(b'/');
    encode_names(path, out);
}

/// The same without the first slash: what follows a slash that is there already.
pub fn encode_names(path: &[u8], out: &mut Vec<u8>) {
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&percent::escape(byte));
        }
    }
}

/// Whether a file of this name is ever served: no name below a root that is empty, or begins with a dot where none may.
pub fn is_served(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/').enumerate();
    names.all(|(at, name)| match name {
        [] => false,
        [b'.', ..] => at == 0 && name == WELL_KNOWN,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decoded(path: &[u8]) -> Result<Vec<u8>, NoFile> {
        let mut out = Vec::new();
        decode(path, &mut out).map(|()| out)
    }

    #[test]
    fn paths_become_names() {
        for (path, name) in [
            ("/", ""),
            ("/a", "a"),
            ("/a/b.html", "a/b.html"),
            ("/a/", "a/"),
            ("/a%20b", "a b"),
            ("/%C3%A9/%e4%b8%96", "é/世"),
            ("/%61/b%2e", "a/b."),
            ("/a..b/c...", "a..b/c..."),
            ("/%2561", "%61"),
            ("/a+b", "a+b"),
            ("/a%5Cb", "a\\b"),
            ("/.well-known/x", ".well-known/x"),
            ("/%2Ewell-known/x", ".well-known/x"),
        ] {
            assert_eq!(decoded(path.as_bytes()).unwrap(), name.as_bytes(), "{path}");
        }
        assert_eq!(decoded(b"/%ff%FE").unwrap(), b"\xff\xfe");
    }

    #[test]
    fn what_could_leave_the_root_or_is_hidden_is_refused() {
        use NoFile::{Byte, Empty, Escape, Hidden, Upwards};
        for (path, why) in [
            ("/..", Upwards),
            ("/../etc/passwd", Upwards),
            ("/a/../b", Upwards),
            ("/a/..", Upwards),
            ("/%2e%2e/x", Upwards),
            ("/.%2E/x", Upwards),
            ("/%2E./x", Upwards),
            ("/a%2fb", Byte),
            ("/a%2F..%2Fb", Byte),
            ("/..%2f..%2fetc", Hidden),
            ("/a%00", Byte),
            ("/%00", Byte),
            ("/.", Hidden),
            ("/./a", Hidden),
            ("/a/.", Hidden),
            ("/.git/config", Hidden),
            ("/%2egit", Hidden),
            ("/a/.htaccess", Hidden),
            ("/...", Hidden),
            ("/a/.well-known/x", Hidden),
            ("/.well-knownx", Hidden),
            ("//", Empty),
            ("//a", Empty),
            ("/a//b", Empty),
            ("/a//", Empty),
            ("", Empty),
            ("*", Empty),
            ("a", Empty),
            ("/%", Escape),
            ("/%4", Escape),
            ("/%zz", Escape),
            ("/a/%%30", Escape),
        ] {
            assert_eq!(decoded(path.as_bytes()), Err(why), "{path}");
        }
    }

    /// Whatever comes out names a file below the root: no step upwards, no zero, nothing hidden, nothing absolute.
    #[test]
    fn any_bytes_give_a_served_name_or_none() {
        let mut state = 0x5eed_f11e_u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let pieces: [&[u8]; 16] = [
            b"/",
            b"/",
            b"..",
            b".",
            b"a",
            b"%2e",
            b"%2F",
            b"%00",
            b"%",
            b"%5c",
            b"\\",
            b"%c3%a9",
            b"b",
            b"~",
            b"%252e",
            b".well-known",
        ];
        let (mut served, mut refused) = (0, 0);
        for _ in 0..50_000 {
            let mut path = b"/".to_vec();
            (0..below(8)).for_each(|_| path.extend_from_slice(pieces[below(pieces.len())]));
            match decoded(&path) {
                Err(_) => refused += 1,
                Ok(name) => {
                    served += 1;
                    let file = name.strip_suffix(b"/").unwrap_or(&name);
                    assert!(file.is_empty() || is_served(file), "{}", path.escape_ascii());
                    assert!(!name.contains(&0) && !name.starts_with(b"/"), "{}", path.escape_ascii());
                    let mut again = Vec::new();
                    encode(&name, &mut again);
                    assert_eq!(decoded(&again).unwrap(), name, "{}", path.escape_ascii());
                }
            }
        }
        assert!(
            served > 1_000 && refused > 1_000,
            "{served} served, {refused} refused: the test is too weak"
        );
    }

    #[test]
    fn a_location_holds_nothing_that_a_header_or_a_browser_could_read_otherwise() {
        for byte in 0..=255_u8 {
            let mut out = Vec::new();
            encode(&[b'a', byte, b'/'], &mut out);
            assert!(out.iter().all(u8::is_ascii_graphic) && !out.contains(&b'"') && !out.contains(&b'?'));
            assert!(out.starts_with(b"/a"));
        }
    }
}
