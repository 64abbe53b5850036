//! The simulator's folder: two versions of a few files, requests for them by the seed, and a plain model of what must come.
//!
//! The model is written from RFC 9110 alone. It knows only what `request` writes, and looks at every byte of a file for
//! each range. A reply must be right for one of the versions, as a whole.

use crate::file::FilePart;
use crate::model::{Reply, Request};
use crate::shared::Shared;
use crate::table::{Site, Stored, Table, Told, Variant, Varies};
use dyno_measure::Prng;
use dyno_proto::semantics::coding::Coding;
use std::sync::Arc;

/// The bit of a simulation's salt that says that a folder is served.
pub(crate) const HAS_CONTENT: u32 = 1 << 30;

/// Where it is.
const PREFIX: &str = "/c/";

/// How many versions there are: the second one comes in the middle.
pub(crate) const VERSIONS: u64 = 2;

/// Dates by their order, the second and the fourth those of the versions.
const DATES: [(u64, &str); 5] = [
    (0, "Sun, 13 Sep 2020 12:00:00 GMT"),
    (1, "Sun, 13 Sep 2020 12:26:40 GMT"),
    (2, "Sun, 13 Sep 2020 12:30:00 GMT"),
    (3, "Sun, 13 Sep 2020 12:43:20 GMT"),
    (4, "Sun, 13 Sep 2020 13:00:00 GMT"),
];
const MODIFIED_S: [u64; VERSIONS as usize] = [1_600_000_000, 1_600_001_000];

/// The greatest lifetime.
const MAXAGE_MAX_S: u32 = 1_000;

/// A name, its codings by size, and what a coding's bytes are.
const TEXT: &[(&str, usize)] = &[("br", 900), ("gzip", 6_000), ("identity", 20_000)];
const SMALL: &[(&str, usize)] = &[("identity", 300)];
/// In a file, sent by `sendfile`.
const LARGE: &[(&str, usize)] = &[("identity", 30_000)];
/// The same, but the file has only the first half: it has shrunk.
const CUT: &[(&str, usize)] = &[("identity", 30_000)];
const CUT_BYTES: usize = 15_000;

fn codings(name: &str) -> Option<&'static [(&'static str, usize)]> {
    match name {
        "text" => Some(TEXT),
        "small" => Some(SMALL),
        "large" => Some(LARGE),
        "cut" => Some(CUT),
        _ => None,
    }
}

fn tag(name: &str, coding: &str, version: u64) -> String {
    format!("{name}-{coding}-{version}")
}

/// The bytes of a form: no two forms have the same anywhere near.
fn bytes(name: &str, coding: &str, version: u64, length: usize) -> Vec<u8> {
    let seed =
        tag(name, coding, version).bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut prng = Prng::new(seed);
    (0..length).map(|_| b'a' + prng.below(26) as u8).collect()
}

/// A file of these bytes, of which it is said that it is `length` long; made once for all simulations of a process.
fn file(name: &'static str, version: u64, there: usize, length: usize) -> FilePart {
    use std::collections::HashMap;
    use std::sync::Mutex;
    static FILES: Mutex<Option<HashMap<(&str, u64), FilePart>>> = Mutex::new(None);
    let mut files = FILES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let made = files.get_or_insert_default().entry((name, version)).or_insert_with(|| {
        let path =
            std::env::temp_dir().join(format!("dyno-simulator-{}-{name}-{version}", std::process::id()));
        std::fs::write(&path, &bytes(name, "identity", version, length)[..there])
            .expect("a file can be written");
        let file = std::fs::File::open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it was just written");
        FilePart { file: Arc::new(file), offset: 0, length: length as u64 }
    });
    made.clone()
}

/// A version of the folder.
pub(crate) fn table(version: u64) -> Arc<Table> {
    let mut table = Table::default();
    for name in ["text", "small", "large", "cut"] {
        let forms = codings(name).expect("it is one of them");
        let varies = if forms.len() > 1 { Varies::Yes } else { Varies::No };
        let variant = |(coding, length): &(&str, usize)| {
            let body = match name {
                "large" => Stored::File(file("large", version, *length, *length)),
                "cut" => Stored::File(file("cut", version, CUT_BYTES, *length)),
                _ => Stored::Memory(Shared::from(bytes(name, coding, version, *length))),
            };
            let tag = tag(name, coding, version);
            let coding = Coding::of_name(coding.as_bytes()).expect("it is one of them");
            let told =
                Told { media: "a/b", coding, tag: &tag, modified_s: MODIFIED_S[version as usize], varies };
            Variant::new(&told, body)
        };
        table.add(name.as_bytes(), MODIFIED_S[version as usize], forms.iter().map(variant).collect());
    }
    Arc::new(table)
}

/// The folder as it is at first.
pub(crate) fn site() -> Site {
    Site { table: table(0), ..Site::new(b"c/", MAXAGE_MAX_S, None) }
}

/// A request for one of its files, or for none.
pub(crate) fn request(prng: &mut Prng, may_be_cut: bool) -> Vec<u8> {
    let names: &[&str] =
        if may_be_cut { &["text", "small", "large", "cut"] } else { &["text", "small", "large"] };
    let name = if prng.below(20) == 0 { "none" } else { one_of(prng, names) };
    let method = one_of(prng, &["GET", "GET", "GET", "HEAD"]);
    let query = one_of(prng, &["", "", "", "?maxage=60", "?v=1&maxage=1000", "?maxage=1001", "?maxage=x"]);
    let mut lines = vec!["Host: a".to_owned()];
    if prng.coin() {
        let accepted = [
            "gzip",
            "br",
            "gzip, br",
            "gzip;q=0.5, br;q=0.4",
            "identity",
            "*;q=0",
            "identity;q=0",
            "br;q=0, *",
            "gzip;q=0.5, identity;q=0.6",
            "",
        ];
        lines.push(format!("Accept-Encoding: {}", one_of(prng, &accepted)));
    }
    for field in ["If-Match", "If-None-Match"] {
        if prng.below(5) == 0 {
            let list: Vec<String> = (0..=prng.below(2)).map(|_| some_tag(prng, name)).collect();
            let value = if prng.below(6) == 0 { "*".to_owned() } else { list.join(", ") };
            lines.push(format!("{field}: {value}"));
        }
    }
    for field in ["If-Modified-Since", "If-Unmodified-Since"] {
        if prng.below(5) == 0 {
            lines.push(format!("{field}: {}", DATES[prng.below(5) as usize].1));
        }
    }
    if prng.coin() {
        let list: Vec<String> = (0..=prng.below(3)).map(|_| some_range(prng)).collect();
        lines.push(format!("Range: bytes={}", list.join(",")));
        if prng.below(3) == 0 {
            let date = DATES[prng.below(5) as usize].1.to_owned();
            let value = if prng.coin() { date } else { some_tag(prng, name) };
            lines.push(format!("If-Range: {value}"));
        }
    }
    prng.shuffle(&mut lines);
    format!("{method} {PREFIX}{name}{query} HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}

fn some_tag(prng: &mut Prng, name: &str) -> String {
    let coding = one_of(prng, &["identity", "identity", "gzip", "br"]);
    let weak = if prng.below(4) == 0 { "W/" } else { "" };
    format!("{weak}\"{}\"", tag(name, coding, prng.below(VERSIONS + 1)))
}

fn some_range(prng: &mut Prng) -> String {
    let most = [10, 400, 7_000, 40_000][prng.below(4) as usize];
    let (one, other) = (prng.below(most), prng.below(most));
    match prng.below(6) {
        0 => format!("{one}-"),
        1 => format!("-{one}"),
        2 => format!("{one}-{other}"),
        _ => format!("{}-{}", one.min(other), one.max(other)),
    }
}

fn one_of<'a>(prng: &mut Prng, choices: &[&'a str]) -> &'a str {
    choices[prng.below(choices.len() as u64) as usize]
}

/// Whether a request is for the folder.
pub(crate) fn is_for(request: &Request) -> bool {
    request.target.starts_with(PREFIX.as_bytes())
}

/// Asserts that the reply is right for one of the versions.
pub(crate) fn check(request: &Request, reply: &Reply) {
    let wrongs: Vec<String> = (0..VERSIONS).filter_map(|version| differs(request, version, reply)).collect();
    let target = String::from_utf8_lossy(&request.target);
    assert!(wrongs.len() < VERSIONS as usize, "{target} is right for no version: {wrongs:?}");
}

/// Asserts that what came of a reply that was cut off is the beginning of a version, with nothing in the place of what
/// is missing.
pub(crate) fn check_cut(received: &[u8]) {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { return };
    let (head, body) = received.split_at(end + 4);
    // Parts have heads of their own: only whole bodies are looked at.
    if !head.starts_with(b"HTTP/1.1 200") {
        return;
    }
    let is_start = |version| bytes("cut", "identity", version, CUT[0].1).starts_with(body);
    assert!(body.len() <= CUT_BYTES && (0..VERSIONS).any(is_start), "a file that has shrunk was padded");
}

/// Whether the request is for the file that has shrunk.
pub(crate) fn is_for_cut(request: &Request) -> bool {
    path_of(request) == format!("{PREFIX}cut")
}

fn path_of(request: &Request) -> String {
    let target = String::from_utf8_lossy(&request.target).into_owned();
    target.split('?').next().unwrap_or_default().to_owned()
}

/// The first thing that is not as the version has it.
fn differs(request: &Request, version: u64, reply: &Reply) -> Option<String> {
    let expected = expected(request, version);
    let told = |name: &str| reply.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    if reply.status != expected.status {
        return Some(format!("version {version}: {}, not {}", reply.status, expected.status));
    }
    let lines = [
        ("ETag", &expected.tag),
        ("Content-Encoding", &expected.coding),
        ("Content-Range", &expected.range),
        ("Cache-Control", &expected.control),
    ];
    for (name, value) in lines {
        if told(name) != *value {
            return Some(format!("version {version}: {name} is {:?}, not {value:?}", told(name)));
        }
    }
    let body = if request.method == b"HEAD" { Vec::new() } else { expected.body(told("Content-Type")) };
    (reply.body != body).then(|| format!("version {version}: {} bytes, not {}", reply.body.len(), body.len()))
}

#[derive(Default)]
struct Expected {
    status: u16,
    tag: Option<String>,
    coding: Option<String>,
    range: Option<String>,
    control: Option<String>,
    whole: Vec<u8>,
    /// From and up to, of a reply with several parts.
    parts: Vec<(usize, usize)>,
}

impl Expected {
    fn body(&self, media: Option<String>) -> Vec<u8> {
        if self.parts.is_empty() {
            return self.whole.clone();
        }
        let media = media.unwrap_or_default();
        let boundary = media.strip_prefix("multipart/byteranges; boundary=").unwrap_or_default();
        let mut body = Vec::new();
        for (from, to) in &self.parts {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: a/b\r\nContent-Range: bytes {from}-{}/{}\r\n\r\n",
                to - 1,
                self.whole.len()
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(&self.whole[*from..*to]);
        }
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        body
    }
}

fn short(status: u16) -> Expected {
    let words = match status {
        400 => "Bad Request",
        404 => "Not Found",
        406 => "Not Acceptable",
        412 => "Precondition Failed",
        _ => "Range Not Satisfiable",
    };
    Expected { status, whole: words.as_bytes().to_vec(), ..Expected::default() }
}

fn field<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let (_, value) = request.headers.iter().find(|(other, _)| other == name.as_bytes())?;
    str::from_utf8(value).ok()
}

/// What a version answers.
fn expected(request: &Request, version: u64) -> Expected {
    let name = path_of(request)[PREFIX.len()..].to_owned();
    let Some(forms) = codings(&name) else { return short(404) };
    let target = String::from_utf8_lossy(&request.target).into_owned();
    let lifetime = target.split(['?', '&']).find_map(|pair| pair.strip_prefix("maxage="));
    if lifetime.is_some_and(|word| word.parse::<u32>().map_or(true, |number| number > MAXAGE_MAX_S)) {
        return short(400);
    }
    let Some((coding, length)) = preferred(field(request, "Accept-Encoding"), forms) else {
        return short(406);
    };
    let whole = bytes(&name, coding, version, length);
    let own = format!("\"{}\"", tag(&name, coding, version));
    let modified = 2 * version + 1;
    let date = |name| field(request, name).map(|date| order_of(date).expect("it is one of ours"));
    let lists = |name, is_weak| field(request, name).map(|list| lists(list, &own, is_weak));
    // RFC 9110 §13.2.2, as it stands.
    let failed = match lists("If-Match", false) {
        Some(listed) => !listed,
        None => date("If-Unmodified-Since").is_some_and(|since| modified > since),
    };
    if failed {
        return short(412);
    }
    let known = match lists("If-None-Match", true) {
        Some(listed) => listed,
        None => date("If-Modified-Since").is_some_and(|since| modified <= since),
    };
    let control = lifetime.map(|number| format!("max-age={number}"));
    let coded = (coding != "identity").then(|| coding.to_owned());
    let plain = Expected { status: 200, tag: Some(own.clone()), control, ..Expected::default() };
    if known {
        return Expected { status: 304, ..plain };
    }
    let plain = Expected { coding: coded, ..plain };
    let range = field(request, "Range").filter(|_| request.method == b"GET");
    let stands = field(request, "If-Range")
        .is_none_or(|value| value == own || order_of(value).is_some_and(|order| order == modified));
    let Some(parts) = range.filter(|_| stands).and_then(|range| parts(range, length)) else {
        return Expected { whole, ..plain };
    };
    match &parts[..] {
        [] => Expected { range: Some(format!("bytes */{length}")), ..short(416) },
        [(from, to)] => Expected {
            status: 206,
            range: Some(format!("bytes {from}-{}/{length}", to - 1)),
            whole: whole[*from..*to].to_vec(),
            ..plain
        },
        _ => Expected { status: 206, whole, parts, ..plain },
    }
}

fn order_of(date: &str) -> Option<u64> {
    DATES.iter().find(|(_, text)| *text == date).map(|(order, _)| *order)
}

fn lists(list: &str, own: &str, is_weak: bool) -> bool {
    let is_own = |tag: &str| tag == own || (is_weak && tag.strip_prefix("W/") == Some(own));
    list == "*" || list.split(", ").any(is_own)
}

/// The form with the greatest weight; of equals the smallest, which comes first.
fn preferred<'f>(accepted: Option<&str>, forms: &'f [(&'f str, usize)]) -> Option<(&'f str, usize)> {
    let weight = |coding: &str| {
        let members: Vec<(&str, f64)> = accepted.unwrap_or_default().split(", ").map(weighted).collect();
        let named = |name: &str| members.iter().find(|(other, _)| *other == name).map(|(_, weight)| *weight);
        named(coding).or(named("*")).unwrap_or(if coding == "identity" { 0.000_1 } else { 0.0 })
    };
    let mut best: Option<(&str, usize)> = None;
    for form in forms {
        let least = best.map_or(0.0, |(coding, _)| weight(coding));
        if weight(form.0) > least {
            best = Some(*form);
        }
    }
    best
}

fn weighted(member: &str) -> (&str, f64) {
    match member.split_once(";q=") {
        Some((name, weight)) => (name, weight.parse().expect("it is one of ours")),
        None => (member, 1.0),
    }
}

/// The parts that there are; `None` when the whole is to be sent.
fn parts(range: &str, length: usize) -> Option<Vec<(usize, usize)>> {
    let mut parts = Vec::new();
    for member in range.strip_prefix("bytes=").expect("it is one of ours").split(',') {
        let (first, last) = member.split_once('-').expect("it is one of ours");
        let number = |text: &str| text.parse::<usize>().ok();
        let is_in = |at: usize| match (number(first), number(last)) {
            (Some(first), Some(last)) => (first..=last).contains(&at),
            (Some(first), None) => at >= first,
            (None, last) => at + last.unwrap_or(0) >= length,
        };
        if let (Some(first), Some(last)) = (number(first), number(last))
            && first > last
        {
            return None;
        }
        let bytes: Vec<usize> = (0..length).filter(|at| is_in(*at)).collect();
        parts.extend(bytes.first().map(|first| (*first, first + bytes.len())));
    }
    (parts.iter().map(|(from, to)| to - from).sum::<usize>() <= length).then_some(parts)
}
