//! From a request to its response: a handler is called, an upload begun or ended, or the engine answers by itself. What a
//! handler's panic leaves is taken back here.
//!
//! Nothing here knows connections.

use crate::conn::Uploading;
use crate::content::{Answered, answer, error_page};
use crate::error_log::Level;
use crate::mailbox::Waker;
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use crate::route::{Action, Begin, Found, Handler};
use crate::scratch::Scratch;
use crate::upload::Upload;
use dyno_proto::http1::encode;
use dyno_proto::http1::request::Head;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The reply to a request that no handler answers: the engine's own, or an upload's that has nothing to wait for.
#[inline(never)]
pub(super) fn otherwise(found: Found<'_>, head: &Head<'_>, scratch: &mut Scratch) -> Response {
    match found {
        Found::Action { action: Action::Answer(handler), params } => {
            call(handler, &Request::new(head, &[], &params), scratch)
        }
        Found::Action { action: Action::Upload(begin), params } => {
            upload_of_nothing(begin, &Request::new(head, &[], &params), scratch)
        }
        Found::Options { allow } => short(scratch, 200, Some(allow)),
        Found::MethodMissing { allow } => short(scratch, 405, Some(allow)),
        Found::NotImplemented => short(scratch, 501, None),
        Found::BadPath => short(scratch, 400, None),
        Found::Nowhere if scratch.sites.is_empty() && scratch.hosts.is_none() => short(scratch, 404, None),
        Found::Nowhere => of_content(head, scratch),
    }
}

/// What the folders have that are served.
fn of_content(head: &Head<'_>, scratch: &mut Scratch) -> Response {
    let mut name = std::mem::take(&mut scratch.name);
    let answered = answer(head, &mut name, scratch);
    scratch.name = name;
    match answered {
        Answered::Prepared(response) => response,
        Answered::Short { status, allow } => short(scratch, status, allow),
    }
}

/// Calls a handler; one that panics costs its request a 500 and nothing else.
#[inline(always)] // Catching a panic costs nothing when there is no call around it.
pub(super) fn call(handler: &Handler, request: &Request<'_>, scratch: &mut Scratch) -> Response {
    match catch_unwind(AssertUnwindSafe(|| handler(request, Reply::new(scratch)))) {
        Ok(response) => response,
        Err(_) => panicked_at(request, scratch),
    }
}

#[cold]
fn panicked_at(request: &Request<'_>, scratch: &mut Scratch) -> Response {
    let (method, path) = (request.method().as_bytes().escape_ascii(), request.path());
    scratch
        .complain(Level::Error, format_args!("{method} {path} is answered with 500: its handler panicked"));
    panicked(scratch)
}

/// Whatever the handler had begun to say is taken back: one request, one whole reply.
#[cold]
pub(super) fn panicked(scratch: &mut Scratch) -> Response {
    scratch.take_back();
    scratch.tally.counts.panics += 1;
    short(scratch, 500, None)
}

/// A reply of the engine's own: the host's page for the status, or the status in words as text; nothing for 200.
#[cold]
pub(super) fn short(scratch: &mut Scratch, status: u16, allow: Option<&str>) -> Response {
    if let Some(page) = page(scratch, status, allow) {
        return page;
    }
    let reply = Reply::new(scratch).status(status);
    let reply = match allow {
        Some(allow) => reply.header("Allow", allow),
        None => reply,
    };
    if status == 200 { reply.empty() } else { reply.text(encode::reason(status)) }
}

/// The host's page for a status, if it has one.
fn page(scratch: &mut Scratch, status: u16, allow: Option<&str>) -> Option<Response> {
    scratch.hosts.as_ref()?;
    let mut name = std::mem::take(&mut scratch.name);
    let page = error_page(status, &mut name, scratch);
    scratch.name = name;
    if let (Some(_), Some(allow)) = (&page, allow) {
        for piece in ["Allow: ", allow, "\r\n"] {
            scratch.own_fields.extend_from_slice(piece.as_bytes());
        }
    }
    page
}

/// The reply to who asks too often. A second is the unit in which the limit is given.
#[cold]
pub(super) fn too_many(scratch: &mut Scratch) -> Response {
    scratch.own_fields.extend_from_slice(b"Retry-After: 1\r\n");
    short(scratch, 429, None)
}

/// An upload whose request has no body.
pub(super) fn upload_of_nothing(begin: &Begin, request: &Request<'_>, scratch: &mut Scratch) -> Response {
    let Some(address) = scratch.owing.reserve() else { return short(scratch, 503, None) };
    let waker = Waker::new(Arc::clone(&scratch.owing.mailbox), address);
    match begun(begin, request, waker, scratch) {
        Ok(upload) => {
            let mut uploading = Uploading { upload: Some(upload), address, is_paused: false };
            end_upload(&mut uploading, scratch)
        }
        Err(status) => short(scratch, status, None),
    }
}

pub(super) fn begun(
    begin: &Begin,
    request: &Request<'_>,
    waker: Waker,
    scratch: &mut Scratch,
) -> Result<Box<dyn Upload>, u16> {
    let begun = catch_unwind(AssertUnwindSafe(|| begin(request, waker))).unwrap_or_else(|_| {
        scratch.counts().panics += 1;
        Err(500)
    });
    begun.map_err(|status| if (200..=599).contains(&status) { status } else { 500 })
}

pub(super) fn end_upload(uploading: &mut Uploading, scratch: &mut Scratch) -> Response {
    let upload = uploading.upload.take().expect("an upload ends once");
    match catch_unwind(AssertUnwindSafe(|| upload.end(Reply::new(scratch)))) {
        Ok(response) => response,
        Err(_) => panicked(scratch),
    }
}
