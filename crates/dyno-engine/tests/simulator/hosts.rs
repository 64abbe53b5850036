//! The simulator's hosts: what an operator says of them, requests for them by the seed, and a plain model of whose a request
//! is and what its host says.
//!
//! What is said is one table. The engine is told it through its public types; the model reads the same words as
//! docs/manual/hosts.md has them, and shares nothing with how the engine reads them.

use crate::content::Mount;
use crate::host::{Host, Security, prepare};
use crate::hosts::{Hosts, Redirect};
use crate::model::{Reply, Request};
use crate::scratch::Scratch;
use crate::simulator::content::{self, Entry, Folder, HAS_CONTENT, one_of, path_of};
use dyno_measure::Prng;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The bit of a simulation's salt that says that it has hosts, where it has content.
const HAS_HOSTS: u32 = 1 << 29;

/// Where in the salt it stands what answers for names that are nobody's.
const OTHERS_SHIFT: u32 = 27;

/// What is said of one host, in the operator's words.
pub(crate) struct Told {
    names: &'static [&'static str],
    folder: Option<Folder>,
    /// What stands in the place of a folder in it.
    more: Option<Folder>,
    redirects: &'static [&'static str],
    lines: &'static [(&'static str, &'static str)],
    security: Security,
    pages: &'static [(u16, &'static str)],
}

/// `[content]` with a folder.
static CONTENT: Told = Told {
    names: &[],
    folder: Some(1),
    more: Some(7),
    redirects: &["301 /c/old /c/small", "302 /m/* /c/"],
    lines: &[("X-Own", "any")],
    security: Security::None,
    pages: &[(404, "c/page"), (400, "c/page"), (408, "c/page"), (413, "c/page")],
};

/// `[content]` that leads elsewhere.
static ELSEWHERE: Told = Told {
    names: &[],
    folder: None,
    more: None,
    redirects: &["308 /* https://a.example/*"],
    lines: &[("X-Own", "elsewhere")],
    security: Security::Preset,
    pages: &[],
};

static HOSTS: [Told; 4] = [
    Told {
        names: &["A.example", "*.a.example."],
        folder: Some(2),
        more: Some(5),
        redirects: &[
            "301 /c/old /c/small",
            "308 /m/* https://b.example/n/*",
            "302 /m/x/* /fixed?z=1",
            "307 /m/x/y /one#part",
            "303 /c/text/* /c/text",
        ],
        lines: &[("X-Own", "a"), ("Cache-Control", "no-cache")],
        security: Security::Preset,
        pages: &[
            (404, "/c/page"),
            (405, "c/late"),
            (408, "c/page"),
            (413, "c/page"),
            (416, "c/page"),
            (429, "c/page"),
            (500, "c/page"),
            (503, "c/page"),
            (504, "c/small"),
        ],
    },
    Told {
        names: &["b", "127.0.0.1", "[::1]", "x.a.example"],
        folder: Some(3),
        more: Some(6),
        redirects: &["308 /c/small /c/text"],
        lines: &[("x-frame-options", ""), ("Referrer-Policy", "no-referrer"), ("X-Own", "b")],
        security: Security::Preset,
        pages: &[(404, "c/late"), (400, "c/small"), (412, "c/page"), (501, "c/page")],
    },
    Told {
        names: &["www.a-long-name.example"],
        folder: None,
        more: None,
        redirects: &["308 /* https://a.example/*"],
        lines: &[("X-Robots-Tag", "noindex")],
        security: Security::None,
        pages: &[],
    },
    Told {
        names: &["*.deep.a.example"],
        folder: Some(4),
        more: None,
        redirects: &[],
        lines: &[],
        security: Security::None,
        pages: &[],
    },
];

/// What the preset is, by the manual.
const PRESET: [(&str, &str); 4] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("Content-Security-Policy", "frame-ancestors 'self'"),
    ("X-Frame-Options", "SAMEORIGIN"),
];

/// Lines of which it is known whether they must be there: those above, and what a handler says that does not get to its end.
const LINES: [&str; 8] = [
    "X-Own",
    "Cache-Control",
    "X-Robots-Tag",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Begun",
];

fn has_hosts(salt: u32) -> bool {
    let both = HAS_HOSTS | HAS_CONTENT;
    salt & both == both
}

/// What answers for names that are nobody's, where it is no host of the list.
fn nameless(salt: u32) -> Option<&'static Told> {
    match salt >> OTHERS_SHIFT & 3 {
        0 | 3 => Some(&CONTENT),
        1 => Some(&ELSEWHERE),
        _ => None,
    }
}

/// Which folders the sites are, and the hosts.
type Installed = (Rc<[Folder]>, Arc<Hosts>);

/// Tells the engine of the hosts of a simulation; which folders its sites are.
pub(crate) fn install(scratch: &mut Scratch, salt: u32) -> Rc<[Folder]> {
    thread_local! {
        static MADE: RefCell<HashMap<u32, Installed>> = RefCell::default();
    }
    let folders = if has_hosts(salt) {
        let (folders, hosts) = MADE.with_borrow_mut(|made| {
            made.entry(salt >> OTHERS_SHIFT & 3).or_insert_with(|| make(nameless(salt))).clone()
        });
        scratch.hosts = Some(hosts);
        folders
    } else if salt & HAS_CONTENT != 0 {
        Rc::from([content::MORE_OF_ALL, 0])
    } else {
        Rc::default()
    };
    scratch.sites.extend(folders.iter().map(|folder| content::site(*folder)));
    folders
}

fn make(nameless: Option<&Told>) -> Installed {
    let mount = |(path, folder): (&str, Folder)| Mount::new(path, folder.to_string()).expect("it is a path");
    let whatever = nameless.into_iter().flat_map(folders).map(mount).collect();
    let hosts = nameless.into_iter().chain(&HOSTS).map(made).collect();
    let (mounts, hosts) = prepare(whatever, hosts).expect("the hosts do not contradict each other");
    let folder =
        |mount: &Mount| mount.folder().to_str().and_then(|name| name.parse().ok()).expect("it is a number");
    (mounts.iter().map(folder).collect(), hosts.expect("there are some"))
}

/// Where its folders are.
fn folders(told: &Told) -> impl Iterator<Item = (&'static str, Folder)> {
    let more = told.more.map(|folder| (content::MORE, folder));
    told.folder.map(|folder| ("/", folder)).into_iter().chain(more)
}

/// The folder that stands in the place of one in this one.
pub(crate) fn more_of(folder: Folder) -> Option<Folder> {
    let all = HOSTS.iter().chain([&CONTENT]);
    let own = all.filter(|told| told.folder == Some(folder)).find_map(|told| told.more);
    own.or((folder == 0).then_some(content::MORE_OF_ALL))
}

fn made(told: &Told) -> Host {
    let host = match told.names {
        [] => Host::any(),
        names => Host::new(names.iter().copied()).expect("they are names"),
    };
    let own = folders(told).filter(|_| !told.names.is_empty());
    let host =
        own.fold(host, |host, (path, folder)| host.content(path, folder.to_string()).expect("it is a path"));
    let redirects = told.redirects.iter().map(|text| text.parse::<Redirect>().expect("it is one"));
    let host = redirects.fold(host, Host::redirect).security(told.security);
    let lines = told.lines.iter();
    let host = lines.fold(host, |host, (name, value)| host.header(name, value).expect("it is a line"));
    let pages = told.pages.iter();
    pages.fold(host, |host, (status, file)| host.error_page(*status, file).expect("it is a page"))
}

/// Whose a request is. `None` where there are no hosts.
pub(crate) fn asked(salt: u32, authority: Option<&[u8]>) -> Option<&'static Told> {
    if !has_hosts(salt) {
        return None;
    }
    let name = name_of(authority.unwrap_or_default());
    let plain = |name: &str| name.to_ascii_lowercase().trim_end_matches('.').to_owned();
    let exact = HOSTS.iter().find(|told| told.names.iter().any(|own| plain(own) == name));
    let below = |told: &'static Told| {
        let stars = told.names.iter().filter_map(|own| plain(own).strip_prefix('*').map(str::to_owned));
        let fitting = stars.filter(|rest| name.len() > rest.len() && name.ends_with(rest.as_str()));
        fitting.map(|rest| rest.len()).max().map(|bytes| (bytes, told))
    };
    let star = || HOSTS.iter().filter_map(below).max_by_key(|(bytes, _)| *bytes).map(|(_, told)| told);
    exact.or_else(star).or(nameless(salt)).or(HOSTS.first())
}

/// Without its port, without a dot at its end, in small letters.
fn name_of(authority: &[u8]) -> String {
    let text = String::from_utf8_lossy(authority).to_ascii_lowercase();
    let end = match text.strip_prefix('[') {
        Some(rest) => rest.find(']').map(|at| at + 2),
        None => text.find(':'),
    };
    let name = &text[..end.unwrap_or(text.len())];
    name.strip_suffix('.').unwrap_or(name).to_owned()
}

/// Whose files it has, if it has any.
pub(crate) fn folder(told: Option<&Told>) -> Option<Folder> {
    told.map_or(Some(0), |told| told.folder)
}

/// What a request that no handler takes comes to.
pub(crate) enum Meaning {
    File(Folder, &'static str),
    /// The engine's own words, or the host's page.
    Status(u16),
    Elsewhere(u16, Place),
    /// The same with the methods that there are.
    Methods(u16),
}

/// Where a redirect leads to.
#[derive(Debug)]
pub(crate) struct Place {
    /// The operator's words, up to a star.
    start: String,
    /// What stands for the star, decoded.
    rest: Vec<u8>,
    query: String,
    fragment: String,
}

impl Place {
    fn of(to: &str, rest: &[u8], query: &str) -> Place {
        let (to, fragment) = to.split_once('#').unwrap_or((to, ""));
        let (start, own) = to.split_once('?').unwrap_or((to, query));
        let (start, rest) = start.strip_suffix('*').map_or((start, &[][..]), |start| (start, rest));
        Place {
            start: start.to_owned(),
            rest: rest.to_vec(),
            query: own.to_owned(),
            fragment: fragment.to_owned(),
        }
    }

    /// Whether this Location leads there: what was asked for may be escaped in another way, but it ends neither the path
    /// nor the line.
    pub(crate) fn is(&self, location: &str) -> bool {
        let (location, fragment) = location.split_once('#').unwrap_or((location, ""));
        let (path, query) = location.split_once('?').unwrap_or((location, ""));
        let Some(rest) = path.strip_prefix(&self.start) else { return false };
        let is_harmless = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte));
        is_harmless
            && decoded(rest.as_bytes()) == self.rest
            && query == self.query
            && fragment == self.fragment
    }
}

/// Whether it is said in the manuals what comes of this request, which no handler takes.
pub(crate) fn is_clear(request: &Request) -> bool {
    let methods: [&[u8]; 7] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS"];
    let path = path_of(request);
    let names = path.iter().filter(|byte| **byte == b'/').count();
    methods.contains(&request.method.as_slice()) && path.starts_with(b"/") && names > 1
}

/// What a clear request comes to, in a version of the folder.
pub(crate) fn meaning(told: Option<&Told>, request: &Request, version: u64) -> Meaning {
    let path = match names_of(path_of(request)) {
        Ok(path) => path,
        Err(status) => return Meaning::Status(status),
    };
    let target = String::from_utf8_lossy(&request.target);
    let query = target.split_once('?').map_or("", |(_, query)| query);
    if let Some((status, place)) = told.and_then(|told| redirect(told, &path, query)) {
        return Meaning::Elsewhere(status, place);
    }
    let folder = folder(told);
    let (folder, entry) = match content::below_more(&path).zip(folder.and_then(more_of)) {
        Some((below, more)) => {
            (Some(more), below.map_or(Some(Entry::Moved), |name| content::file(name, version)))
        }
        None => (folder, content::entry(&path, version)),
    };
    match (folder, entry, request.method.as_slice()) {
        (None, _, _) | (_, None, _) => Meaning::Status(404),
        (_, _, b"OPTIONS") => Meaning::Methods(200),
        (Some(folder), Some(Entry::File(name)), b"GET" | b"HEAD") => Meaning::File(folder, name),
        (_, Some(Entry::Moved), b"GET" | b"HEAD") => {
            let place = Place::of("/*", &[&path, &b"/"[..]].concat(), query);
            Meaning::Elsewhere(301, place)
        }
        _ => Meaning::Methods(405),
    }
}

/// The path decoded and without its first slash, or the status of one that names no file.
fn names_of(path: &[u8]) -> Result<Vec<u8>, u16> {
    let names: Vec<&[u8]> = path[1..].split(|byte| *byte == b'/').collect();
    let mut whole = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let decoded = decoded(name);
        let is_last = at + 1 == names.len();
        if decoded == b".." {
            return Err(400);
        }
        let is_hidden = decoded.starts_with(b".") && (at > 0 || decoded != b".well-known");
        if is_hidden || decoded.is_empty() && !is_last {
            return Err(404);
        }
        if decoded.iter().any(|byte| [0, b'/'].contains(byte)) {
            return Err(400);
        }
        whole.push(decoded);
    }
    Ok(whole.join(&b'/'))
}

/// The longest FROM, one path before a star.
fn redirect(told: &Told, path: &[u8], query: &str) -> Option<(u16, Place)> {
    let words = told.redirects.iter().map(|text| text.split(' ').collect::<Vec<_>>());
    let fitting = words.filter_map(|words| {
        let from = words[1].strip_prefix('/')?;
        let (is_one, rest) = match from.strip_suffix('*') {
            Some(start) => (false, path.strip_prefix(start.as_bytes())?),
            None => (true, path.strip_prefix(from.as_bytes()).filter(|rest| rest.is_empty())?),
        };
        let place = Place::of(words[2], rest, query);
        Some(((is_one, from.len()), (words[0].parse().ok()?, place)))
    });
    fitting.max_by_key(|(rank, _)| *rank).map(|(_, found)| found)
}

/// RFC 3986 §2.1; the model of HTTP has seen to it that escapes are whole.
fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, used) = escaped.filter(|_| text[at] == b'%').map_or((text[at], 1), |byte| (byte, 3));
        decoded.push(byte);
        at += used;
    }
    decoded
}

/// What is said with a status where no handler answers: the host's page, if it is there in this version, or the words.
pub(crate) fn words(told: Option<&Told>, status: u16, version: u64) -> Vec<u8> {
    let page = told.and_then(|told| {
        let (_, path) = told.pages.iter().find(|(of, _)| *of == status)?;
        content::plain(told.folder?, path, version)
    });
    page.map_or_else(|| reason(status).as_bytes().to_vec(), |page| page.to_vec())
}

/// RFC 9110 §15, and RFC 6585.
fn reason(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// The first line that a reply of this host should have and has not, or the other way round. `own`: what it says itself,
/// which goes before.
pub(crate) fn wrong_line(told: Option<&Told>, own: &[(&str, &str)], reply: &Reply) -> Option<String> {
    LINES.iter().find_map(|name| {
        let of = |lines: &[(&str, &'static str)]| {
            lines.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        };
        let preset = told.filter(|told| told.security == Security::Preset).and_then(|_| of(&PRESET));
        let said = told.and_then(|told| of(told.lines)).or(preset).filter(|value| !value.is_empty());
        let own = own.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        let wanted: Vec<&str> = own.or(said).into_iter().collect();
        let is_it = |(other, _): &&(Vec<u8>, Vec<u8>)| other.eq_ignore_ascii_case(name.as_bytes());
        let found: Vec<_> =
            reply.headers.iter().filter(is_it).map(|(_, value)| String::from_utf8_lossy(value)).collect();
        (found != wanted).then(|| format!("{name} is {found:?}, not {wanted:?}"))
    })
}

/// What is wrong with a reply in the engine's own words, of which the status is judged elsewhere.
pub(crate) fn wrong_words(told: Option<&Told>, is_head: bool, reply: &Reply) -> Option<String> {
    let is_said = |version| words(told, reply.status, version) == reply.body;
    let is_right = is_head || reply.status < 300 || (0..content::VERSIONS).any(is_said);
    let body = || reply.body.escape_ascii().to_string().chars().take(40).collect::<String>();
    wrong_line(told, &[], reply)
        .or_else(|| (!is_right).then(|| format!("{} is said as {:?}", reply.status, body())))
}

/// Who is asked, and how: what stands before a path, and the fields that are needed.
pub(crate) struct Asked {
    pub(crate) before: String,
    pub(crate) lines: Vec<String>,
    /// Whose files are asked for.
    pub(crate) folder: Folder,
}

impl Asked {
    pub(crate) fn by_chance(chance: &mut Prng, salt: u32) -> Asked {
        if !has_hosts(salt) {
            return Asked { before: String::new(), lines: vec!["Host: a".to_owned()], folder: 0 };
        }
        let (name, other) = (authority(chance), authority(chance));
        let mine = |name: &str| folder(asked(salt, Some(name.as_bytes()))).unwrap_or(1);
        match chance.below(8) {
            0 if !name.is_empty() => {
                let scheme = one_of(chance, &["http", "HTTP", "https"]);
                let lines = vec![format!("Host: {other}")];
                Asked { before: format!("{scheme}://{name}"), lines, folder: mine(name) }
            }
            _ => Asked { before: String::new(), lines: vec![format!("Host: {name}")], folder: mine(name) },
        }
    }
}

fn authority(chance: &mut Prng) -> &'static str {
    let names = [
        "a.example",
        "A.Example:8080",
        "a.example.",
        "a.example:",
        "y.a.example",
        "Z.Y.a.example.:80",
        "x.a.example",
        "y.x.a.example",
        "deep.a.example",
        "x.deep.a.example",
        "y.X.DEEP.a.example:81",
        "b",
        "B:80",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:8080",
        "www.a-long-name.example",
        "unknown.example",
        "a",
        "",
        "xa.example",
        ".a.example",
        "a.example..",
        "a.example.evil.example",
        "127.0.0.10",
        "[::2]",
        "%61.example",
    ];
    one_of(chance, &names)
}

/// The folder whose tags a client may have: its own as a rule.
pub(crate) fn some_folder(chance: &mut Prng, salt: u32, own: Folder) -> Folder {
    if has_hosts(salt) && chance.below(8) == 0 { 1 + chance.below(4) as Folder } else { own }
}

/// A request for a file or for none, a redirect, or what a host is no less asked for.
pub(crate) fn request(chance: &mut Prng, salt: u32, may_be_cut: bool) -> Vec<u8> {
    if !has_hosts(salt) || chance.coin() {
        return content::request(chance, salt, may_be_cut);
    }
    let Asked { before, mut lines, .. } = Asked::by_chance(chance, salt);
    let methods = ["GET", "GET", "GET", "HEAD", "HEAD", "POST", "OPTIONS", "DELETE", "PROPFIND"];
    let (method, path) = (one_of(chance, &methods), path(chance));
    match chance.below(24) {
        0 => {
            lines.push(format!("Content-Length: {}", one_of(chance, &["20001", "99999999"])));
            written("POST", &before, path, &lines)
        }
        1 => {
            lines.push("Transfer-Encoding: chunked".to_owned());
            [written("POST", &before, path, &lines), b"5\r\nhello\r\nzz\r\n".to_vec()].concat()
        }
        2 => {
            let wrong = ["a.example/", "a b", "a.example:x", "u@a.example", "[::1", "a\r\nHost: b"];
            written(method, "", path, &[format!("Host: {}", one_of(chance, &wrong))])
        }
        3 if before.is_empty() => {
            // Nobody has to name a host in HTTP/1.0.
            format!("{method} {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").into_bytes()
        }
        _ => written(method, &before, path, &lines),
    }
}

fn path(chance: &mut Prng) -> &'static str {
    let paths = [
        "/c/old",
        "/c/%6fld?q=1",
        "/c/old/",
        "/m/a",
        "/m/a/b?q=1",
        "/m/",
        "/m/x/z?q=1",
        "/m/x/y?q=1",
        "/m/x/y",
        "/m/x/y/",
        "/m/%20a%3Fb%23c%22",
        "/m/%0d%0aX-Own:%20c",
        "/m//evil.example",
        "/m/../c/text",
        "/c/text/below?q=1",
        "/c/text",
        "/c/small",
        "/c/sub",
        "/c/sub?q=1",
        "/c/sub/",
        "/c/late",
        "/c/none?q=1",
        "/c/.hidden",
        "/c//text",
        "/c/%2e%2e/",
        "/c/a%2fb",
        "/c/%00",
        "/.well-known/x",
        "/%63/text",
        "/n/%e9",
        "/json/",
        "/json",
    ];
    one_of(chance, &paths)
}

/// A request without a body.
pub(crate) fn written(method: &str, before: &str, path: &str, lines: &[String]) -> Vec<u8> {
    format!("{method} {before}{path} HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}
