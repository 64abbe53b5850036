//! From a request to the reply that a table has for it: name, coding, conditions, ranges, lifetime.
//!
//! `http1` calls it for what no route takes, and frames what comes of it. Nothing is allocated, and nothing asked of the
//! kernel. What a request may say is read by `dyno_proto::semantics`; this puts it in the order of RFC 9110 §13.2.

use crate::fault::{Fault, planted};
use crate::response::{Body, Media, Portion, Response};
use crate::scratch::Scratch;
use crate::table::{Entry, Resource, Site, Variant};
use dyno_proto::http1::request::{Head, Method};
use dyno_proto::semantics::coding::{Accepted, Coding};
use dyno_proto::semantics::condition::{self, Compare, Listed, Outcome, Preconditions};
use dyno_proto::semantics::range::{self, Asked};
use dyno_proto::{date, file_path};

/// What a folder's files allow.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// What is to be answered.
pub(crate) enum Answered {
    /// What the table has.
    Prepared(Response),
    /// A reply of the engine's own; header lines that belong to it stand in the scratch.
    Short { status: u16, allow: Option<&'static str> },
}

const fn short(status: u16) -> Answered {
    Answered::Short { status, allow: None }
}

/// The answer to a request that no route takes; `name` is used for its decoded path.
pub(crate) fn answer(head: &Head<'_>, name: &mut Vec<u8>, scratch: &mut Scratch) -> Answered {
    name.clear();
    if let Err(no_file) = file_path::decode(head.path(), name) {
        return short(no_file.status());
    }
    if let Some(status) = redirected(head, name, scratch) {
        return short(status);
    }
    let Some(number) = scratch.site_of(name) else { return short(404) };
    let site = &scratch.sites[number];
    let found = match name.get(site.prefix.len()..) {
        Some(below) => site.table.find(below),
        None => Some(&site.home),
    };
    match (found, head.method) {
        (None, _) => short(404),
        (Some(_), Method::Options) => Answered::Short { status: 200, allow: Some(ALLOW) },
        (Some(Entry::Moved(location)), Method::Get | Method::Head) => {
            moved(&mut scratch.own_fields, location, head.query());
            short(301)
        }
        (Some(Entry::File(file)), Method::Get | Method::Head) => {
            let file = *file;
            answer_file(head, number, file, scratch)
        }
        (Some(_), _) => Answered::Short { status: 405, allow: Some(ALLOW) },
    }
}

/// The status of a redirect that the host has for this name, and its Location among the reply's own lines.
fn redirected(head: &Head<'_>, name: &[u8], scratch: &mut Scratch) -> Option<u16> {
    let hosts = scratch.hosts.as_deref()?;
    let is_file = |number: usize| scratch.sites[number].table.find(name).is_some();
    if planted(Fault::FilesBeforeRedirects) && scratch.site_of(name).is_some_and(is_file) {
        return None;
    }
    let redirect = hosts.own(scratch.asked.host).redirects.find(name)?;
    redirect.put_line(name, head.query(), &mut scratch.own_fields);
    Some(redirect.status())
}

/// The file of the host that is sent with a status, as it is and however it is asked for. `name` is used for its path.
pub(crate) fn error_page(status: u16, name: &mut Vec<u8>, scratch: &Scratch) -> Option<Response> {
    name.clear();
    let host = scratch.host()?;
    let other = scratch.hosts.as_ref().filter(|_| planted(Fault::PageOfAnotherHost));
    name.extend_from_slice(other.map_or(host, |hosts| hosts.own(0)).page(status)?);
    let number = scratch.site_of(name)?;
    let site = &scratch.sites[number];
    let Some(Entry::File(file)) = site.table.find(name.get(site.prefix.len()..)?) else { return None };
    let (variant, _) = site
        .table
        .variants(*file)
        .find(|(_, variant)| variant.coding == Coding::Identity || planted(Fault::PageEncoded))?;
    let body = Body::Prepared { site: number as u16, variant, portion: Portion::Page };
    Some(Response { status, media: Media::Absent, body })
}

/// The parser admits visible ASCII only to a query: it cannot end the line.
fn moved(lines: &mut Vec<u8>, location: &[u8], query: Option<&[u8]>) {
    lines.extend_from_slice(b"Location: ");
    lines.extend_from_slice(location);
    if let Some(query) = query {
        lines.push(b'?');
        lines.extend_from_slice(query);
    }
    lines.extend_from_slice(b"\r\n");
}

fn answer_file(head: &Head<'_>, number: usize, file: Resource, scratch: &mut Scratch) -> Answered {
    let site = &scratch.sites[number];
    let Ok(maxage) = maxage(head.query().unwrap_or_default(), site.maxage_max_s) else { return short(400) };
    let fields = Fields::of(head);
    let Some((variant_number, variant)) = choose(site, file, &fields.accepted) else { return short(406) };
    let now_s = scratch.heads.unix_s;
    let (tag, bytes) = (variant.tag(), variant.body.bytes());
    let portion = match fields.preconditions(head, tag, now_s).outcome(file.modified_s) {
        Outcome::Failed => return short(412),
        Outcome::NotModified => Portion::Unchanged,
        Outcome::Proceed => match fields.range(head.method, tag, file.modified_s, now_s) {
            None => Portion::Whole,
            Some(value) => match range::asked(value, bytes, &mut scratch.parts) {
                Asked::Whole => Portion::Whole,
                Asked::Parts => match scratch.parts.as_slice() {
                    [part] => Portion::Part(*part),
                    _ => Portion::Parts,
                },
                Asked::Nothing => {
                    range::content_range_of_nothing(&mut scratch.own_fields, bytes);
                    return short(416);
                }
            },
        },
    };
    if let Some(digits) = maxage {
        for piece in [b"Cache-Control: max-age=".as_slice(), digits, b"\r\n"] {
            scratch.own_fields.extend_from_slice(piece);
        }
    }
    let status = match portion {
        Portion::Whole | Portion::Page => 200,
        Portion::Part(_) | Portion::Parts => 206,
        Portion::Unchanged => 304,
    };
    let body = Body::Prepared { site: number as u16, variant: variant_number, portion };
    Answered::Prepared(Response { status, media: Media::Absent, body })
}

/// The variant that the client gets.
fn choose<'s>(site: &'s Site, file: Resource, accepted: &Accepted) -> Option<(u32, &'s Variant)> {
    let mut variants = site.table.variants(file);
    if let Some(forced) = site.forced {
        let is_plain = |variant: &Variant| variant.coding == Coding::Identity;
        let found = variants.clone().find(|(_, variant)| variant.coding == forced);
        return found.or_else(|| variants.find(|(_, variant)| is_plain(variant)));
    }
    let coding = accepted.choose(variants.clone().map(|(_, variant)| variant.coding))?;
    variants.find(|(_, variant)| variant.coding == coding)
}

/// The digits of `maxage` in a query, if it is there. It must be a number, as it is written, up to `most`.
fn maxage(query: &[u8], most: u32) -> Result<Option<&[u8]>, ()> {
    let mut found = None;
    for pair in query.split(|&byte| byte == b'&') {
        let digits = match pair.strip_prefix(b"maxage") {
            Some([b'=', digits @ ..]) => digits,
            Some([]) => &[],
            _ => continue,
        };
        // Ten digits: no number of 32 bits has more, and none is written with zeros in front.
        let is_number = (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        if found.is_some() || !is_number || (digits[0] == b'0' && digits.len() > 1) {
            return Err(());
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        if value > u64::from(most) {
            return Err(());
        }
        found = Some(digits);
    }
    Ok(found)
}

/// A field that may stand in one line only.
#[derive(Clone, Copy, Default)]
enum Once<'h> {
    #[default]
    Absent,
    Is(&'h [u8]),
    /// Several lines: as good as malformed.
    Several,
}

impl<'h> Once<'h> {
    fn add(&mut self, value: &'h [u8]) {
        *self = if matches!(self, Once::Absent) { Once::Is(value) } else { Once::Several };
    }

    fn is_present(self) -> bool {
        !matches!(self, Once::Absent)
    }

    fn value(self) -> Option<&'h [u8]> {
        match self {
            Once::Is(value) => Some(value),
            _ => None,
        }
    }
}

/// The fields of a request that matter to content, in one pass over its lines.
#[derive(Default)]
struct Fields<'h> {
    accepted: Accepted,
    has_match: bool,
    has_none_match: bool,
    modified_since: Once<'h>,
    unmodified_since: Once<'h>,
    range: Once<'h>,
    if_range: Once<'h>,
}

impl<'h> Fields<'h> {
    fn of(head: &Head<'h>) -> Fields<'h> {
        let mut fields = Fields::default();
        for line in head.headers() {
            let is = |name: &str| line.name.eq_ignore_ascii_case(name.as_bytes());
            match line.name.len() {
                5 if is("Range") => fields.range.add(line.value),
                8 if is("If-Match") => fields.has_match = true,
                8 if is("If-Range") => fields.if_range.add(line.value),
                13 if is("If-None-Match") => fields.has_none_match = true,
                15 if is("Accept-Encoding") => fields.accepted.add(line.value),
                17 if is("If-Modified-Since") => fields.modified_since.add(line.value),
                19 if is("If-Unmodified-Since") => fields.unmodified_since.add(line.value),
                _ => {}
            }
        }
        fields
    }

    fn preconditions(&self, head: &Head<'_>, tag: &[u8], now_s: u64) -> Preconditions {
        let time = |once: Once<'_>| date::parse(once.value()?, now_s);
        let listed = |name: &str, compare| listed(head, name, tag, compare);
        Preconditions {
            if_match: self.has_match.then(|| listed("If-Match", Compare::Strong)),
            if_none_match: self.has_none_match.then(|| listed("If-None-Match", Compare::Weak)),
            if_modified_since: time(self.modified_since),
            if_unmodified_since: time(self.unmodified_since),
        }
    }

    /// The range that is to be looked at. Ranges are for GET alone (RFC 9110 §14.2).
    fn range(&self, method: Method<'_>, tag: &[u8], modified_s: u64, now_s: u64) -> Option<&'h [u8]> {
        let (Method::Get, Some(value)) = (method, self.range.value()) else { return None };
        let holds = |if_range| condition::if_range_holds(if_range, tag, modified_s, now_s);
        let stands = !self.if_range.is_present() || self.if_range.value().is_some_and(holds);
        let stands = stands || planted(Fault::IfRangeIgnored);
        stands.then_some(value)
    }
}

/// Whether any line of this name lists the tag.
fn listed(head: &Head<'_>, name: &str, tag: &[u8], compare: Compare) -> Listed {
    let mut lines = head.headers().filter(|line| line.name.eq_ignore_ascii_case(name.as_bytes()));
    let is_listed = lines.any(|line| condition::lists(line.value, tag, compare) == Listed::Yes);
    if is_listed { Listed::Yes } else { Listed::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_plain_number_within_its_bound() {
        for (query, expected) in [
            ("", Ok(None)),
            ("v=1", Ok(None)),
            ("maxages=1", Ok(None)),
            ("xmaxage=1", Ok(None)),
            ("maxage=0", Ok(Some("0"))),
            ("maxage=3600", Ok(Some("3600"))),
            ("v=1&maxage=1000&w", Ok(Some("1000"))),
            ("maxage=86400", Ok(Some("86400"))),
            ("maxage=86401", Err(())),
            ("maxage=4294967296", Err(())),
            ("maxage=99999999999999999999", Err(())),
            ("maxage=", Err(())),
            ("maxage", Err(())),
            ("maxage=-1", Err(())),
            ("maxage=+1", Err(())),
            ("maxage=1.5", Err(())),
            ("maxage=007", Err(())),
            ("maxage=1;x", Err(())),
            ("maxage=%31", Err(())),
            ("maxage=1&maxage=1", Err(())),
            ("maxage=1&maxage=2", Err(())),
        ] {
            assert_eq!(
                maxage(query.as_bytes(), 86_400),
                expected.map(|found| found.map(str::as_bytes)),
                "{query}"
            );
        }
    }
}
