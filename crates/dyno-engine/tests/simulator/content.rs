//! The simulator's folders: two versions of a few files, requests for them by the seed, and a plain model of what must come.
//!
//! The model is written from RFC 9110 and docs/manual/content.md alone. It knows only what `request` writes, and looks at
//! every byte of a file for each range. A reply must be right for one of the versions, as a whole. Folders have the same
//! names in them; no two have the same bytes.

use crate::file::FilePart;
use crate::model::{Reply, Request};
use crate::shared::Shared;
use crate::simulator::hosts::{self, Meaning, Place, Told as Host};
use crate::table::{Site, Stored, Table, Told, Variant, Varies};
use dyno_measure::Prng;
use dyno_proto::semantics::coding::Coding;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

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
/// What stands in an error's place.
const PAGE: &[(&str, usize)] = &[("gzip", 200), ("identity", 700)];
/// The same, but it comes with the second version.
const LATE: &[(&str, usize)] = &[("identity", 500)];
/// Of a folder in the folder.
const INDEX: &[(&str, usize)] = &[("br", 100), ("identity", 400)];

const FILES: [(&str, &[(&str, usize)]); 7] = [
    ("text", TEXT),
    ("small", SMALL),
    ("large", LARGE),
    ("cut", CUT),
    ("page", PAGE),
    ("late", LATE),
    ("sub/index.html", INDEX),
];

/// A path at which some hosts have another folder, below the first one.
pub(crate) const MORE: &str = "/c/more";

/// The folder there of a server without hosts. Folders from the least of those on are of this kind.
pub(crate) const MORE_OF_ALL: Folder = 8;
const MORE_MIN: Folder = 5;

/// A folder: which one it is. The first is served by a server without hosts, under a path of its own.
pub(crate) type Folder = u32;

/// What stands under a decoded path, without its first slash, of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    File(&'static str),
    /// A folder without its slash.
    Moved,
}

pub(crate) fn entry(path: &[u8], version: u64) -> Option<Entry> {
    let name = path.strip_prefix(&PREFIX.as_bytes()[1..])?;
    match name {
        b"sub" => return Some(Entry::Moved),
        b"sub/" => return Some(Entry::File("sub/index.html")),
        _ => {}
    }
    let (name, _) = FILES.iter().find(|(other, _)| other.as_bytes() == name)?;
    (*name != "late" || version > 0).then_some(Entry::File(name))
}

/// What follows a decoded path of `MORE`, without its slash: nothing for the folder without one.
pub(crate) fn below_more(path: &[u8]) -> Option<Option<&[u8]>> {
    match path.strip_prefix(&MORE.as_bytes()[1..])? {
        [] => Some(None),
        [b'/', below @ ..] => Some(Some(below)),
        _ => None,
    }
}

/// A file by its name in the folder there.
pub(crate) fn file(name: &[u8], version: u64) -> Option<Entry> {
    entry(&[&PREFIX.as_bytes()[1..], name].concat(), version)
}

fn codings(name: &str) -> &'static [(&'static str, usize)] {
    FILES.iter().find(|(other, _)| *other == name).expect("it is one of them").1
}

fn tag(folder: Folder, name: &str, coding: &str, version: u64) -> String {
    let name = name.split('/').next().unwrap_or_default();
    format!("{name}-{folder}-{coding}-{version}")
}

/// The bytes of a form: no two forms have the same anywhere near. Made once for all simulations of a thread.
fn bytes(folder: Folder, name: &str, coding: &str, version: u64, length: usize) -> Rc<[u8]> {
    thread_local! {
        static MADE: RefCell<HashMap<String, Rc<[u8]>>> = RefCell::default();
    }
    let tag = tag(folder, name, coding, version);
    let make = |tag: &str| {
        let seed = tag.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let mut prng = Prng::new(seed);
        (0..length).map(|_| b'a' + prng.below(26) as u8).collect()
    };
    MADE.with_borrow_mut(|made| {
        if let Some(bytes) = made.get(&tag) {
            return Rc::clone(bytes);
        }
        let bytes: Rc<[u8]> = make(&tag);
        made.insert(tag, Rc::clone(&bytes));
        bytes
    })
}

/// A file's own bytes, of a version in which it is there: what an error page is.
pub(crate) fn plain(folder: Folder, path: &str, version: u64) -> Option<Rc<[u8]>> {
    let Some(Entry::File(name)) = entry(path.trim_start_matches('/').as_bytes(), version) else {
        return None;
    };
    let length = codings(name).iter().find(|(coding, _)| *coding == "identity")?.1;
    Some(bytes(folder, name, "identity", version, length))
}

/// A file of these bytes, of which it is said that it is `length` long; made once for all simulations of a process.
fn on_disk(folder: Folder, name: &'static str, version: u64, there: usize, length: usize) -> FilePart {
    static OPEN: Mutex<Option<HashMap<String, FilePart>>> = Mutex::new(None);
    let mut files = OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let tag = tag(folder, name, "identity", version);
    let made = files.get_or_insert_default().entry(tag).or_insert_with_key(|tag| {
        let path = std::env::temp_dir().join(format!("dyno-simulator-{}-{tag}", std::process::id()));
        std::fs::write(&path, &bytes(folder, name, "identity", version, length)[..there])
            .expect("a file can be written");
        let file = std::fs::File::open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it was just written");
        FilePart::sealed(Arc::new(file), length as u64)
    });
    made.clone()
}

/// A version of a folder; made once for all simulations of a thread.
pub(crate) fn table(folder: Folder, version: u64) -> Arc<Table> {
    thread_local! {
        static MADE: RefCell<HashMap<(Folder, u64), Arc<Table>>> = RefCell::default();
    }
    MADE.with_borrow_mut(|made| {
        Arc::clone(made.entry((folder, version)).or_insert_with(|| Arc::new(make_table(folder, version))))
    })
}

fn make_table(folder: Folder, version: u64) -> Table {
    let mut table = Table::default();
    // The folder of a server without hosts has its path in front of it, those of hosts in it.
    let (prefix, inside) = if has_path(folder) { (path(folder), "") } else { ("", &PREFIX[1..]) };
    let modified_s = MODIFIED_S[version as usize];
    for (name, forms) in FILES.iter().filter(|(name, _)| *name != "late" || version > 0) {
        let varies = if forms.len() > 1 { Varies::Yes } else { Varies::No };
        let variant = |(coding, length): &(&str, usize)| {
            let body = match *name {
                "large" => Stored::File(on_disk(folder, "large", version, *length, *length)),
                "cut" => Stored::File(on_disk(folder, "cut", version, CUT_BYTES, *length)),
                _ => Stored::Memory(Shared::from(bytes(folder, name, coding, version, *length).to_vec())),
            };
            let tag = tag(folder, name, coding, version);
            let coding = Coding::of_name(coding.as_bytes()).expect("it is one of them");
            Variant::new(&Told { media: "a/b", coding, tag: &tag, modified_s, varies }, body)
        };
        table.add(format!("{inside}{name}").as_bytes(), modified_s, forms.iter().map(variant).collect());
    }
    let index = format!("{inside}sub/index.html");
    table.add_name(format!("{inside}sub/").as_bytes(), index.as_bytes());
    table.add_moved(format!("{inside}sub").as_bytes(), prefix.as_bytes());
    table
}

/// Whether a folder has its path in front of it.
fn has_path(folder: Folder) -> bool {
    folder == 0 || folder >= MORE_MIN
}

fn path(folder: Folder) -> &'static str {
    if folder == 0 { &PREFIX[1..] } else { "c/more/" }
}

/// A folder as it is at first.
pub(crate) fn site(folder: Folder) -> Site {
    let prefix = if has_path(folder) { path(folder) } else { "" };
    Site { table: table(folder, 0), ..Site::new(prefix.as_bytes(), MAXAGE_MAX_S, None) }
}

/// A request for one of the files, or for none, of whatever host.
pub(crate) fn request(prng: &mut Prng, salt: u32, may_be_cut: bool) -> Vec<u8> {
    let names: &[&str] =
        if may_be_cut { &["text", "small", "large", "cut"] } else { &["text", "small", "large"] };
    let name = match prng.below(20) {
        0 => "none",
        1 => one_of(prng, &["late", "page", "sub", "sub/"]),
        _ => one_of(prng, names),
    };
    // Now and then in the other folder, where nothing is cut.
    let (name, between) = match prng.below(5) {
        0 if name == "none" => ("", "more"),
        0 => (if name == "cut" { "large" } else { name }, "more/"),
        _ => (name, ""),
    };
    let method = one_of(prng, &["GET", "GET", "GET", "HEAD"]);
    let query = one_of(prng, &["", "", "", "?maxage=60", "?v=1&maxage=1000", "?maxage=1001", "?maxage=x"]);
    let asked = hosts::Asked::by_chance(prng, salt);
    let own =
        if between.is_empty() { asked.folder } else { hosts::more_of(asked.folder).unwrap_or(asked.folder) };
    let mut lines = asked.lines;
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
            let folder = hosts::some_folder(prng, salt, own);
            let list: Vec<String> = (0..=prng.below(2)).map(|_| some_tag(prng, folder, name)).collect();
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
            let value = if prng.coin() { date } else { some_tag(prng, own, name) };
            lines.push(format!("If-Range: {value}"));
        }
    }
    prng.shuffle(&mut lines);
    hosts::written(method, &asked.before, &format!("{PREFIX}{between}{name}{query}"), &lines)
}

fn some_tag(prng: &mut Prng, folder: Folder, name: &str) -> String {
    let coding = one_of(prng, &["identity", "identity", "gzip", "br"]);
    let weak = if prng.below(4) == 0 { "W/" } else { "" };
    format!("{weak}\"{}\"", tag(folder, name, coding, prng.below(VERSIONS + 1)))
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

pub(crate) fn one_of<'a>(prng: &mut Prng, choices: &[&'a str]) -> &'a str {
    choices[prng.below(choices.len() as u64) as usize]
}

/// Asserts that the reply, which no handler has made, is right for one of the versions.
pub(crate) fn check(salt: u32, request: &Request, reply: &Reply) {
    let host = hosts::asked(salt, request.host.as_deref());
    let wrong = |version| {
        let expected = expected(host, request, version);
        differs(host, request, &expected, reply).map(|what| format!("version {version}: {what}"))
    };
    let wrongs: Vec<String> = (0..VERSIONS).filter_map(wrong).collect();
    let target = String::from_utf8_lossy(&request.target);
    assert!(wrongs.len() < VERSIONS as usize, "{target} is right for no version: {wrongs:?}");
}

/// Asserts that what came of a reply that was cut off is the beginning of a version, with nothing in the place of what
/// is missing.
pub(crate) fn check_cut(salt: u32, request: &Request, received: &[u8]) {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { return };
    let (head, body) = received.split_at(end + 4);
    // Parts have heads of their own: only whole bodies are looked at.
    if !head.starts_with(b"HTTP/1.1 200") {
        return;
    }
    let Some(folder) = hosts::folder(hosts::asked(salt, request.host.as_deref())) else { return };
    let is_start = |version| bytes(folder, "cut", "identity", version, CUT[0].1).starts_with(body);
    assert!(body.len() <= CUT_BYTES && (0..VERSIONS).any(is_start), "a file that has shrunk was padded");
}

/// Whether the request is for the file that has shrunk.
pub(crate) fn is_for_cut(request: &Request) -> bool {
    path_of(request) == format!("{PREFIX}cut").as_bytes()
}

pub(crate) fn path_of(request: &Request) -> &[u8] {
    request.target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// The first thing that is not as it must be.
fn differs(host: Option<&Host>, request: &Request, expected: &Expected, reply: &Reply) -> Option<String> {
    let told = |name: &str| reply.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    if reply.status != expected.status {
        return Some(format!("{}, not {}", reply.status, expected.status));
    }
    let lines =
        [("ETag", &expected.tag), ("Content-Encoding", &expected.coding), ("Content-Range", &expected.range)];
    for (name, value) in lines {
        if told(name) != *value {
            return Some(format!("{name} is {:?}, not {value:?}", told(name)));
        }
    }
    let is_placed = match (told("Location"), &expected.place) {
        (Some(location), Some(place)) => place.is(&location),
        (location, place) => location.is_none() && place.is_none(),
    };
    if !is_placed {
        return Some(format!("Location is {:?}, not {:?}", told("Location"), expected.place));
    }
    if expected.allow.is_some() && told("Allow").as_deref() != expected.allow {
        return Some(format!("Allow is {:?}", told("Allow")));
    }
    let own: Vec<(&str, &str)> =
        expected.control.iter().map(|control| ("Cache-Control", control.as_str())).collect();
    if let Some(line) = hosts::wrong_line(host, &own, reply) {
        return Some(line);
    }
    if expected.tag.is_none()
        && let Some(name) = OF_FILES.iter().find(|name| told(name).is_some())
    {
        return Some(format!("{name} is said of what is no file"));
    }
    let body = expected.body(told("Content-Type"));
    let length = Some(body.len().to_string());
    if reply.status != 304 && told("Content-Length") != length {
        return Some(format!("its length is told as {:?}, not {length:?}", told("Content-Length")));
    }
    let body = if request.method == b"HEAD" { Vec::new() } else { body };
    (reply.body != body).then(|| format!("{} bytes, not {}", reply.body.len(), body.len()))
}

/// What is said of files alone.
const OF_FILES: [&str; 4] = ["ETag", "Last-Modified", "Accept-Ranges", "Content-Encoding"];

#[derive(Default)]
struct Expected {
    status: u16,
    tag: Option<String>,
    coding: Option<String>,
    range: Option<String>,
    control: Option<String>,
    place: Option<Place>,
    allow: Option<&'static str>,
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

/// What the engine says by itself.
fn short(host: Option<&Host>, status: u16, version: u64) -> Expected {
    let whole = if status == 200 { Vec::new() } else { hosts::words(host, status, version) };
    Expected { status, whole, ..Expected::default() }
}

fn field<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let (_, value) = request.headers.iter().find(|(other, _)| other == name.as_bytes())?;
    str::from_utf8(value).ok()
}

/// What a version answers.
fn expected(host: Option<&Host>, request: &Request, version: u64) -> Expected {
    let short = |status| short(host, status, version);
    match hosts::meaning(host, request, version) {
        Meaning::File(folder, name) => expected_of_file(host, request, version, (folder, name)),
        Meaning::Status(status) => short(status),
        Meaning::Elsewhere(status, place) => Expected { place: Some(place), ..short(status) },
        Meaning::Methods(status) => Expected { allow: Some("GET, HEAD, OPTIONS"), ..short(status) },
    }
}

fn expected_of_file(
    host: Option<&Host>,
    request: &Request,
    version: u64,
    (folder, name): (Folder, &str),
) -> Expected {
    let (forms, short) = (codings(name), |status| short(host, status, version));
    let target = String::from_utf8_lossy(&request.target).into_owned();
    let lifetime = target.split(['?', '&']).find_map(|pair| pair.strip_prefix("maxage="));
    if lifetime.is_some_and(|word| word.parse::<u32>().map_or(true, |number| number > MAXAGE_MAX_S)) {
        return short(400);
    }
    let Some((coding, length)) = preferred(field(request, "Accept-Encoding"), forms) else {
        return short(406);
    };
    let whole = bytes(folder, name, coding, version, length).to_vec();
    let own = format!("\"{}\"", tag(folder, name, coding, version));
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
