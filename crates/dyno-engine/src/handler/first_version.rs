//! What a first version of a server does in its handlers, kept as the starting point of a climb: it copies every header
//! into a map, serialises by machinery that fits any type, puts heads together from strings, and asks for the date for
//! every reply. The dials `headers`, `body` and `date` turn each of these off by itself.
//!
//! Nothing outside this file and the generic forms of the demonstration handlers knows of it.

use crate::dials::{Body, Date, Dials, Headers};
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use dyno_proto::http1::encode;
use dyno_sys::clock;
use std::collections::HashMap;
use std::hint::black_box;

/// Which of a first version's habits are on.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstVersion {
    headers: Headers,
    body: Body,
    date: Date,
}

/// An ordinary handler.
pub(super) type Plain = for<'r, 'w> fn(&Request<'r>, Reply<'w>) -> Response;

/// The same with its body and media type as strings of their own.
pub(super) type Generic = for<'r> fn(&Request<'r>) -> (String, Vec<u8>);

impl FirstVersion {
    /// `None` when the dials ask for none of them.
    pub(super) fn of(dials: &Dials) -> Option<FirstVersion> {
        let Dials { headers, body, date, .. } = *dials;
        let is_plain = (headers, body, date) == (Headers::Borrowed, Body::Outbox, Date::Second);
        (!is_plain).then_some(FirstVersion { headers, body, date })
    }
}

/// A handler that does what these habits ask for, and then answers in the form that the body dial names.
pub(super) fn with(
    first: FirstVersion,
    plain: Plain,
    generic: Generic,
) -> impl for<'r, 'w> Fn(&Request<'r>, Reply<'w>) -> Response + Send + Sync + 'static {
    move |request: &Request<'_>, mut reply: Reply<'_>| {
        if first.headers == Headers::Owned {
            reply.scratch().counts().owned_heads += 1;
            black_box(owned_headers(request));
        }
        if first.date == Date::Reply {
            reply.scratch().stamp(clock::real_coarse_s());
        }
        match first.body {
            Body::Outbox => plain(request, reply),
            Body::Generic => {
                let (media, body) = generic(request);
                whole_reply(reply, &media, &body)
            }
        }
    }
}

fn owned_headers(request: &Request<'_>) -> HashMap<String, String> {
    let mut owned = HashMap::new();
    for (name, value) in request.headers() {
        if let Ok(value) = str::from_utf8(value) {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            owned.entry(name).or_insert_with(|| value.to_owned());
        }
    }
    owned
}

/// Every piece is a string of its own: the status line, each header, the head, and head and body together.
fn whole_reply(mut reply: Reply<'_>, media: &str, body: &[u8]) -> Response {
    reply.scratch().counts().generic_bodies += 1;
    let date = String::from_utf8_lossy(&reply.scratch().heads.date).into_owned();
    let mut headers = vec![
        ("Server".to_string(), "dyno".to_string()),
        ("Date".to_string(), date),
        ("Content-Type".to_string(), media.to_string()),
        ("Content-Length".to_string(), body.len().to_string()),
    ];
    headers.extend(reply.connection_header().map(|option| ("Connection".to_string(), option.to_string())));
    let mut head = format!("HTTP/1.1 {} {}\r\n", 200, encode::reason(200));
    for (name, value) in headers {
        head = head + &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let whole = [head.as_bytes(), body].concat();
    let (head, body) = whole.split_at(head.len());
    reply.whole(head, body)
}
