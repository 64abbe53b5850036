//! Redirects: from a path, or from everything below one, to a place that the operator has named.
//!
//! No redirect is open: what comes of a request is appended behind a whole path of the operator's, so that it can choose
//! neither host nor scheme; it is escaped anew, so that it cannot end a line.

use super::error::HostError;
use crate::fault::{Fault, planted};
use crate::table::NameHasher;
use dyno_proto::file_path;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::str::FromStr;

/// What stands for the rest of a path.
const REST: &str = "/*";

/// Redirects of one host: a site that has moved has thousands of pages, not millions.
const REDIRECTS_MAX: usize = 100_000;

/// A place that is another now.
///
/// `/old` is that path alone; `/old/*` is everything below `/old/`, and the star at the end of where it leads to is what was
/// below. The client's query is kept where the place has none of its own. The status is 301 or 308 (for good), 302, 303 or
/// 307 (for now); 307 and 308 keep the method.
///
/// ```
/// use dyno_engine::Redirect;
///
/// Redirect::new("/old", "/new", 301)?;
/// Redirect::new("/blog/*", "https://blog.example.org/*", 308)?;
/// let same: Redirect = "308 /blog/* https://blog.example.org/*".parse()?;
/// // Not taken: whoever asks could choose the host, as example.org.evil.example.
/// assert!(Redirect::new("/*", "https://example.org*", 301).is_err());
/// # Ok::<(), dyno_engine::HostError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Decoded and without the first slash; of everything below a path with the slash at its end.
    from: Box<[u8]>,
    kind: Kind,
    location: Box<[u8]>,
    status: u16,
}

/// What is redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    /// Everything below, to one place.
    Below,
    /// Everything below, each to its own place.
    Each,
}

impl Redirect {
    /// From a path of this server to a path or an address that begins with `http://` or `https://`.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Redirect::new("/old", "/new", 301), "301 /old /new".parse());
    /// ```
    ///
    /// # Errors
    /// [`HostError::Redirect`] where it would be open, endless or not understood.
    pub fn new(from: &str, to: &str, status: u16) -> Result<Redirect, HostError> {
        let refused = |why| HostError::Redirect { from: from.to_owned(), to: to.to_owned(), why };
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err(refused("the status is 301, 302, 303, 307 or 308"));
        }
        let path = from.strip_suffix('*').unwrap_or(from);
        let is_below = path != from;
        if is_below && !from.ends_with(REST) {
            return Err(refused("a star stands for all that follows a slash, as in /old/*"));
        }
        if !path.starts_with('/') || path.contains(['?', '#', '*']) {
            return Err(refused("it begins with a slash, and has no query"));
        }
        let mut name = Vec::new();
        file_path::decode(path.as_bytes(), &mut name)
            .map_err(|_| refused("nobody can ask for such a path"))?;
        let to_each = to.strip_suffix('*');
        let kind = match (is_below, to_each) {
            (false, None) => Kind::One,
            (true, None) => Kind::Below,
            (true, Some(_)) => Kind::Each,
            (false, Some(_)) => {
                return Err(refused("a star at its end needs one in the path that is asked for"));
            }
        };
        let location = to_each.unwrap_or(to);
        place(location, kind).map_err(refused)?;
        if leads_to_itself(path, location, kind) {
            return Err(refused("it leads to itself"));
        }
        Ok(Redirect { from: name.into(), kind, location: location.as_bytes().into(), status })
    }

    /// Its status.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Appends the Location line for a decoded name and a query. The parser admits visible ASCII only to a query, and the
    /// name is escaped: neither can end the line.
    pub(crate) fn put_line(&self, name: &[u8], query: Option<&[u8]>, lines: &mut Vec<u8>) {
        debug_assert!(name.starts_with(&self.from), "what is redirected begins as the redirect says");
        lines.extend_from_slice(b"Location: ");
        // What follows the number sign ends an address (RFC 3986 §3.5): the query stands before it.
        let end = self.location.iter().position(|&byte| byte == b'#').unwrap_or(self.location.len());
        let (location, fragment) = self.location.split_at(end);
        lines.extend_from_slice(location);
        let rest = &name[self.from.len()..];
        match self.kind {
            Kind::Each if planted(Fault::RestUnescaped) => lines.extend_from_slice(rest),
            Kind::Each => file_path::encode_names(rest, lines),
            Kind::One | Kind::Below => {}
        }
        if let Some(query) = query.filter(|_| !planted(Fault::QueryLost))
            && !location.contains(&b'?')
        {
            lines.push(b'?');
            lines.extend_from_slice(query);
        }
        lines.extend_from_slice(fragment);
        lines.extend_from_slice(b"\r\n");
    }
}

impl FromStr for Redirect {
    type Err = HostError;

    /// Three words: status, from, to.
    fn from_str(text: &str) -> Result<Redirect, HostError> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let why = "it takes three words, as in \"301 /old /new\"";
        match words[..] {
            [status, from, to] => {
                let status = status.parse().map_err(|_| HostError::Redirect {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    why: "the status is 301, 302, 303, 307 or 308",
                })?;
                Redirect::new(from, to, status)
            }
            _ => Err(HostError::Redirect { from: text.to_owned(), to: String::new(), why }),
        }
    }
}

/// Whether a place can stand in a Location line, and what follows it can only be a path below.
fn place(location: &str, kind: Kind) -> Result<(), &'static str> {
    if !location.bytes().all(|byte| byte.is_ascii_graphic()) || location.contains(['\\', '"', '<', '>', '*'])
    {
        return Err("what is no visible ASCII is written with escapes, as %20");
    }
    let path = match location.strip_prefix("https://").or_else(|| location.strip_prefix("http://")) {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            if host.is_empty() || host.contains('@') {
                return Err("an address names a host, and nobody's password");
            }
            path
        }
        None if location.starts_with("//") => {
            return Err("two slashes would name a host: write https:// before it");
        }
        None if location.starts_with('/') => location,
        None => return Err("it leads to a path, or to an address with http:// or https://"),
    };
    if kind == Kind::Each && (!path.ends_with('/') || path.contains(['?', '#'])) {
        return Err("the star follows a slash of a path: else whoever asks could choose the host");
    }
    Ok(())
}

/// Whether it is asked for again what was asked for. Two that lead to each other are not seen.
fn leads_to_itself(from: &str, location: &str, kind: Kind) -> bool {
    let path = &location[..location.find(['?', '#']).unwrap_or(location.len())];
    match kind {
        Kind::One => path == from,
        Kind::Below | Kind::Each => path.starts_with(from),
    }
}

type Places = HashMap<Box<[u8]>, Redirect, BuildHasherDefault<NameHasher>>;

/// The redirects of a host.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    one: Places,
    below: Places,
}

impl Redirects {
    pub(crate) fn of(all: Vec<Redirect>) -> Result<Redirects, HostError> {
        let mut redirects = Redirects::default();
        let count = all.len();
        for redirect in all {
            let places = if redirect.kind == Kind::One { &mut redirects.one } else { &mut redirects.below };
            let refused = |why| HostError::Redirect {
                from: format!("/{}", String::from_utf8_lossy(&redirect.from)),
                to: String::from_utf8_lossy(&redirect.location).into_owned(),
                why,
            };
            if count > REDIRECTS_MAX {
                return Err(refused("a host has 100,000 redirects at most"));
            }
            match places.entry(redirect.from.clone()) {
                Entry::Occupied(_) => return Err(refused("it is redirected twice")),
                Entry::Vacant(free) => drop(free.insert(redirect)),
            }
        }
        Ok(redirects)
    }

    /// The one for a decoded name: of that path, or else of the longest that it is below.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Redirect> {
        if let Some(redirect) = self.one.get(name) {
            return Some(redirect);
        }
        if self.below.is_empty() {
            return None;
        }
        let slashes = (0..name.len()).rev().filter(|at| name[*at] == b'/').map(|at| at + 1);
        let mut fitting = slashes.chain([0]).filter_map(|end| self.below.get(&name[..end]));
        if planted(Fault::ShortestRedirect) { fitting.next_back() } else { fitting.next() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(redirects: &Redirects, path: &str, query: Option<&str>) -> Option<String> {
        let mut name = Vec::new();
        file_path::decode(path.as_bytes(), &mut name).ok()?;
        let mut out = Vec::new();
        redirects.find(&name)?.put_line(&name, query.map(str::as_bytes), &mut out);
        Some(String::from_utf8(out).unwrap())
    }

    fn some() -> Redirects {
        let all = [
            "301 /old /new",
            "302 /q /new?x=1",
            "308 /blog/* https://blog.example.org/*",
            "301 /blog/deep/* /d/*",
            "307 /gone/* /sorry",
            "301 /caf%C3%A9 /coffee#menu",
            "301 /up/* /*",
        ];
        Redirects::of(all.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
    }

    #[test]
    fn paths_lead_where_they_should() {
        let redirects = some();
        for (path, query, location) in [
            ("/old", None, Some("/new")),
            ("/old", Some("a=b"), Some("/new?a=b")),
            ("/%6fld", None, Some("/new")),
            ("/old/", None, None),
            ("/older", None, None),
            ("/q", Some("a=b"), Some("/new?x=1")),
            ("/blog/", None, Some("https://blog.example.org/")),
            ("/blog/a/b", Some("p"), Some("https://blog.example.org/a/b?p")),
            ("/blog/deep/x", None, Some("/d/x")),
            ("/blog", None, None),
            ("/gone/a/b", None, Some("/sorry")),
            ("/caf%c3%a9", None, Some("/coffee#menu")),
            ("/caf%c3%a9", Some("a=b"), Some("/coffee?a=b#menu")),
            ("/blog/a%20b%0d%0aSet-Cookie:x", None, Some("https://blog.example.org/a%20b%0D%0ASet-Cookie:x")),
        ] {
            let expected = location.map(|location| format!("Location: {location}\r\n"));
            assert_eq!(line(&redirects, path, query), expected, "{path}");
        }
    }

    /// A browser reads `//host`, `/\host` and `https:host` as another host's.
    #[test]
    fn nobody_who_asks_chooses_the_host() {
        let redirects = some();
        let odd = [
            "/",
            "//",
            "\\",
            "%5c",
            "%2f",
            "@",
            ":",
            "https:",
            "evil.example",
            ".",
            "..",
            "%09",
            "%00",
            "?",
            "%2e",
        ];
        for first in odd {
            for second in odd {
                for prefix in ["/up/", "/blog/", "/up", "/blog"] {
                    let path = format!("{prefix}{first}{second}evil.example");
                    let Some(line) = line(&redirects, &path, None) else { continue };
                    let place = line.strip_prefix("Location: ").unwrap().strip_suffix("\r\n").unwrap();
                    let below =
                        place.strip_prefix("https://blog.example.org/").or_else(|| place.strip_prefix('/'));
                    let below = below.unwrap_or_else(|| panic!("{path} leads to {place}"));
                    assert!(!below.starts_with(['/', '\\']), "{path} leads to {place}");
                    assert!(place.bytes().all(|byte| byte.is_ascii_graphic()), "{path} leads to {place}");
                }
            }
        }
    }

    #[test]
    fn what_would_be_open_endless_or_unclear_is_refused() {
        for (from, to, status) in [
            ("/a", "/b", 200),
            ("/a", "/b", 300),
            ("a", "/b", 301),
            ("/a", "b", 301),
            ("/a", "//b", 301),
            ("/a", "ftp://b/", 301),
            ("/a", "javascript:alert(1)", 301),
            ("/a", "https://", 301),
            ("/a", "https:///x", 301),
            ("/a", "https://u:p@b/", 301),
            ("/a", "/b\r\nX: y", 301),
            ("/a", "/b c", 301),
            ("/a", "/\\b", 301),
            ("/a", "/é", 301),
            ("/a", "/a", 301),
            ("/a", "/a?again", 301),
            ("/a/*", "/a/b/*", 301),
            ("/a/*", "/a/b", 301),
            ("/*", "/b", 301),
            ("/a", "/b/*", 301),
            ("/a*", "/b/*", 301),
            ("/a/*", "/b*", 301),
            ("/a/*", "https://b*", 301),
            ("/a/*", "https://b.example/?x=/*", 301),
            ("/a/*/b", "/c", 301),
            ("/a?b", "/c", 301),
            ("/a//b", "/c", 301),
            ("/../b", "/c", 301),
        ] {
            assert!(Redirect::new(from, to, status).is_err(), "{status} {from} {to}");
        }
        assert!("301 /a".parse::<Redirect>().is_err() && "x /a /b".parse::<Redirect>().is_err());
        assert!(Redirect::new("/a", "https://b.example", 301).is_ok());
        assert!(Redirect::new("/*", "https://b.example/*", 308).is_ok());
    }
}
