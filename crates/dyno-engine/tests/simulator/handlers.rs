//! The simulator's handlers: every kind of reply, chosen by the request itself, so that the model knows what must come.

use crate::answer::Answer;
use crate::file::FilePart;
use crate::later::Responder;
use crate::mailbox::Waker;
use crate::reply::Reply;
use crate::request::Request;
use crate::response::{Filled, Response};
use crate::route::Router;
use crate::shared::Shared;
use crate::simulator::content::HAS_CONTENT;
use crate::upload::{BodyError, Flow, Upload};
use dyno_proto::http1::Method;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Static,
    Shared,
    File,
    Stream,
    Sized,
    /// A stream that has more to give and never says so: only for clients that may get less than all.
    Silent,
    /// A reply of another's hand, after a while.
    Later,
    /// Nobody answers, and nobody says so.
    Never,
    /// Whoever should answer forgets it.
    Forgotten,
    Panic,
    /// The body was taken piece by piece.
    Upload,
}

/// What a handler was called with: method, target, body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Call {
    fn of(request: &Request<'_>) -> Call {
        let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", request.path()).into_bytes();
        Call { method: request.method().as_bytes().to_vec(), target, body: request.body().to_vec() }
    }

    fn sum(&self) -> u32 {
        let all = self.method.iter().chain(&self.target).chain(&self.body);
        all.fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }

    /// How this is answered in the simulation of this seed.
    pub(crate) fn kind(&self, salt: u32) -> Kind {
        if self.method == b"PUT" {
            return Kind::Upload;
        }
        match (self.sum() ^ salt).wrapping_mul(0x9e37_79b9) >> 24 {
            0..90 => Kind::Text,
            90..105 => Kind::Static,
            105..130 => Kind::Shared,
            130..150 => Kind::File,
            150..156 if salt & HAS_SILENT != 0 => Kind::Silent,
            150..180 => Kind::Stream,
            180..195 => Kind::Sized,
            195..235 => Kind::Later,
            235..240 => Kind::Never,
            240..246 => Kind::Forgotten,
            _ => Kind::Panic,
        }
    }

    /// The reply that must come.
    pub(crate) fn expected(&self, salt: u32) -> (u16, Vec<u8>) {
        let text = self.text();
        match self.kind(salt) {
            Kind::Text | Kind::Later | Kind::Upload | Kind::Silent => (200, text.into_bytes()),
            Kind::Static => (200, STATIC.to_vec()),
            Kind::Shared => (200, text.repeat(self.repeats()).into_bytes()),
            Kind::Stream | Kind::Sized => (200, text.repeat(self.repeats() / 8).into_bytes()),
            Kind::File => {
                let (from, to) = self.file_range();
                (200, file_bytes()[from..to].to_vec())
            }
            Kind::Never => (504, b"Gateway Timeout".to_vec()),
            Kind::Forgotten => (500, b"the request was not answered\n".to_vec()),
            Kind::Panic => (500, b"Internal Server Error".to_vec()),
        }
    }

    /// The lines that the handler adds.
    pub(crate) fn own_lines(&self, salt: u32) -> &'static [(&'static str, &'static str)] {
        if self.kind(salt) == Kind::Shared { &[OWN_LINE] } else { &[] }
    }

    fn text(&self) -> String {
        let (method, target) = (String::from_utf8_lossy(&self.method), String::from_utf8_lossy(&self.target));
        format!("{method} {target} {} {:08x};", self.body.len(), self.sum())
    }

    fn repeats(&self) -> usize {
        // Long enough to fill every buffer, not so long that a client that takes little at a time never has it.
        8 + ((self.sum() >> 8) as usize % 300).min(30_000 / self.text().len())
    }

    fn file_range(&self) -> (usize, usize) {
        let from = (self.sum() >> 4) as usize % FILE_BYTES;
        (from, from + (self.sum() >> 13) as usize % (FILE_BYTES - from))
    }
}

/// What a handler says beside its reply, where a host may say the same.
const OWN_LINE: (&str, &str) = ("X-Own", "handler");

/// The bit of a simulation's salt that says that some streams fall silent for ever.
pub(crate) const HAS_SILENT: u32 = 1 << 31;

const STATIC: &[u8] = &[b's'; 3_000];
const FILE_BYTES: usize = 40_000;

fn file_bytes() -> Vec<u8> {
    (0..FILE_BYTES).map(|at| b'a' + (at % 26) as u8).collect()
}

/// What handlers leave for the simulation to do.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) calls: Vec<Call>,
    pub(crate) later: Vec<(Responder, Answer)>,
    pub(crate) wakers: Vec<Waker>,
    /// Never answered, kept so that it is not forgotten.
    pub(crate) never: Vec<Responder>,
    pub(crate) failed: Vec<BodyError>,
}

pub(crate) type Shop = Arc<Mutex<Work>>;

/// The file that replies are parts of; one for all simulations of a process.
pub(crate) fn file() -> FilePart {
    static FILE: Mutex<Option<FilePart>> = Mutex::new(None);
    let mut kept = FILE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    kept.get_or_insert_with(|| {
        let path = std::env::temp_dir().join(format!("dyno-simulator-{}", std::process::id()));
        File::create(&path)
            .and_then(|mut file| file.write_all(&file_bytes()))
            .expect("a file can be written");
        let part = FilePart::whole(File::open(&path).expect("it was just written")).expect("it is regular");
        std::fs::remove_file(&path).expect("it was just written");
        part
    })
    .clone()
}

/// Every method and every path; where a folder is served, every path of one name.
pub(crate) fn router(shop: &Shop, salt: u32) -> Router {
    let mut router = Router::new();
    let rest = if salt & HAS_CONTENT == 0 { "/{*rest}" } else { "/{name}" };
    for pattern in ["/", rest] {
        for method in [Method::Get, Method::Post, Method::Delete, Method::Patch, Method::Options] {
            let shop = Arc::clone(shop);
            let handler = move |request: &Request<'_>, reply: Reply<'_>| handle(&shop, salt, request, reply);
            router.route(method, pattern, handler).expect("the routes are fixed");
        }
        let shop = Arc::clone(shop);
        let begin = move |request: &Request<'_>, waker: Waker| {
            let (call, shop) = (Call::of(request), Arc::clone(&shop));
            Ok(Box::new(Taking { call, shop, waker, salt }) as Box<dyn Upload>)
        };
        router.upload(Method::Put, pattern, begin).expect("the routes are fixed");
    }
    router
}

pub(crate) fn lock(shop: &Shop) -> std::sync::MutexGuard<'_, Work> {
    shop.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn handle(shop: &Shop, salt: u32, request: &Request<'_>, reply: Reply<'_>) -> Response {
    let call = Call::of(request);
    lock(shop).calls.push(call.clone());
    let text = call.text();
    match call.kind(salt) {
        Kind::Text | Kind::Upload => reply.text(&text),
        Kind::Static => reply.fixed("a/static", STATIC),
        Kind::Shared => reply
            .header(OWN_LINE.0, OWN_LINE.1)
            .shared("a/shared", Shared::from(text.repeat(call.repeats()).into_bytes())),
        Kind::File => {
            let (from, to) = call.file_range();
            reply.file("a/file", file().part(from as u64..to as u64).expect("a part of the file"))
        }
        Kind::Stream => reply.stream("a/stream", |waker| pieces(shop, &call, waker)),
        Kind::Sized => {
            let length = (text.len() * (call.repeats() / 8)) as u64;
            reply.stream_sized("a/stream", length, |waker| pieces(shop, &call, waker))
        }
        Kind::Silent => {
            let mut text = Some(text);
            reply.stream("a/stream", move |_waker| {
                move |out: &mut Vec<u8>| {
                    out.extend(text.take().unwrap_or_default().into_bytes());
                    Filled::Wait
                }
            })
        }
        Kind::Later => {
            let answer = Answer::text(text);
            reply.later(|responder| lock(shop).later.push((responder, answer)))
        }
        Kind::Never => reply.later(|responder| lock(shop).never.push(responder)),
        Kind::Forgotten => reply.later(drop),
        Kind::Panic => {
            let _begun = reply.header("X-Begun", "yes").text("this must not be seen");
            std::panic::resume_unwind(Box::new("a handler panics on purpose"))
        }
    }
}

/// A source that gives its text again and again, and waits now and then.
fn pieces(shop: &Shop, call: &Call, waker: Waker) -> impl FnMut(&mut Vec<u8>) -> Filled + Send + use<> {
    let (shop, text, mut left) = (Arc::clone(shop), call.text(), call.repeats() / 8);
    let mut asked = call.sum();
    move |out: &mut Vec<u8>| {
        asked = asked.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if left == 0 {
            return Filled::End;
        }
        if asked >> 30 == 0 {
            lock(&shop).wakers.push(waker.clone());
            return Filled::Wait;
        }
        left -= 1;
        out.extend_from_slice(text.as_bytes());
        if left == 0 && asked >> 29 == 7 { Filled::End } else { Filled::More }
    }
}

struct Taking {
    call: Call,
    shop: Shop,
    waker: Waker,
    salt: u32,
}

impl Upload for Taking {
    fn data(&mut self, bytes: &[u8]) -> Flow {
        assert!(!bytes.is_empty(), "an upload is called with something");
        self.call.body.extend_from_slice(bytes);
        if (self.call.sum() ^ self.salt).is_multiple_of(5) {
            lock(&self.shop).wakers.push(self.waker.clone());
            return Flow::Pause;
        }
        Flow::More
    }

    fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
        let text = self.call.text();
        lock(&self.shop).calls.push(self.call);
        reply.text(&text)
    }

    fn failed(self: Box<Self>, why: BodyError) {
        lock(&self.shop).failed.push(why);
    }
}
