//! What must have come out of a simulation, by the plain model of HTTP.

use crate::model::{Asked, Reply, RequestKind, Step, read_replies_so_far, understand};
use crate::simulator::content::{self, HAS_CONTENT};
use crate::simulator::handlers::{Call, Kind};
use crate::simulator::net::Link;
use crate::simulator::world::{Client, MODEL_LIMITS, Mode, World};

/// Compares what each client got with what the model says of what it sent.
pub(crate) fn check(world: &World) {
    let work = crate::simulator::handlers::lock(&world.shop);
    let mut calls: Vec<Call> = work.calls.clone();
    drop(work);
    // Requests whose answer did not arrive: a handler may have been called for each, once.
    let mut unanswered = Vec::new();
    for id in 0..world.clients.len() {
        check_client(world, id, &mut calls, &mut unanswered);
    }
    calls.retain(|call| !take(&mut unanswered, call));
    assert!(calls.is_empty(), "handlers were called for what nobody asked: {:?}", calls.first());
}

/// How many whole replies all clients have, or could have of what was sent.
pub(crate) fn whole_replies(world: &World) -> u64 {
    let of = |(client, link): (&Client, &Link)| {
        let sent = &client.script[client.header.min(client.sent)..client.sent];
        let kinds: Vec<RequestKind> = understand(sent, &MODEL_LIMITS).iter().map(kind_of).collect();
        let given: Vec<u8> = link.received.iter().chain(&link.held).copied().collect();
        // Whose conversation cannot be told apart yet counts for nothing here; the end looks at it again.
        let replies = read_replies_so_far(&given, &kinds).map_or_else(|_| Vec::new(), |(replies, _)| replies);
        replies.iter().filter(|reply| !reply.is_interim() && is_whole(reply)).count() as u64
    };
    world.clients.iter().zip(&world.core.net.links).map(of).sum()
}

/// Whether its client sees by itself that it has all of it. A body that ends with the connection has its line later.
fn is_whole(reply: &Reply) -> bool {
    let has_length = reply.header("Content-Length").is_some() || reply.header("Transfer-Encoding").is_some();
    has_length || reply.status == 204 || reply.status == 304
}

pub(crate) fn kind_of(step: &Step) -> RequestKind {
    match step {
        Step::Request(request) => request.kind(),
        Step::Reject { kind, .. } | Step::Incomplete { kind } => *kind,
    }
}

/// Whether a handler is called for it; the router answers the others by itself, or the folder.
fn is_routed(world: &World, call: &Call) -> bool {
    let methods: [&[u8]; 7] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS"];
    let path = call.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let is_one_name = path.iter().filter(|byte| **byte == b'/').count() == 1;
    let has_route = is_one_name || world.scenario.salt & HAS_CONTENT == 0;
    methods.contains(&call.method.as_slice())
        && path.starts_with(b"/")
        && has_route
        && is_text_when_decoded(path)
}

fn is_text_when_decoded(path: &[u8]) -> bool {
    let mut decoded = Vec::new();
    // The model has seen to it that escapes are whole.
    dyno_proto::percent::decode(path, &mut decoded).is_ok()
        && !decoded.contains(&0)
        && String::from_utf8(decoded).is_ok()
}

fn check_client(world: &World, id: usize, calls: &mut Vec<Call>, unanswered: &mut Vec<Call>) {
    let client = &world.clients[id];
    // The model knows no proxy: what it says in front is not part of the conversation.
    let sent = &client.script[client.header.min(client.sent)..client.sent];
    let steps = understand(sent, &MODEL_LIMITS);
    let may_be_late = may_give_up(world, 408) || world.scenario.mode == Mode::Slow;
    let unknown = may_be_late.then(RequestKind::default);
    let kinds: Vec<RequestKind> = steps.iter().map(kind_of).chain(unknown).collect();
    let received = &world.core.net.links[id].received;
    let (replies, used) = match read_as(world, received, kinds) {
        Ok(read) => read,
        Err(error) => panic!("client {id}: {error}"),
    };
    let is_patient = matches!(world.scenario.mode, Mode::Patient | Mode::Draining | Mode::Slow);
    let link = &world.core.net.links[id];
    assert!(
        !is_patient || used == received.len(),
        "client {id}: its last reply is cut off at {used} of {}: {} bytes unread, {} held: {}",
        received.len(),
        link.arrived.len(),
        link.held.len(),
        received[used..].escape_ascii().to_string().chars().take(400).collect::<String>()
    );
    let mut finals = replies.iter().filter(|reply| !reply.is_interim());
    let mut is_over = false;
    for (number, step) in steps.iter().enumerate() {
        let reply = finals.next();
        match step {
            Step::Request(request) => {
                let call = Call {
                    method: request.method.clone(),
                    target: request.target.clone(),
                    body: request.body.clone(),
                };
                let is_content = world.scenario.salt & HAS_CONTENT != 0 && content::is_for(request);
                match reply {
                    // Given up before it was whole: no handler was called.
                    Some(reply) if may_give_up(world, reply.status) => assert!(reply.closes, "client {id}"),
                    Some(reply) if is_content => content::check(request, reply),
                    Some(reply) => {
                        let was_called = is_routed(world, &call) && take(calls, &call);
                        check_reply(world, id, number, &call, was_called, reply);
                    }
                    None if is_over => {}
                    None => {
                        assert!(
                            !must_be_answered(world, id),
                            "client {id}: request {number} was not answered"
                        );
                        if is_content && content::is_for_cut(request) && number == replies.len() {
                            content::check_cut(&received[used..]);
                        }
                        unanswered.push(call);
                    }
                }
            }
            Step::Reject { statuses, .. } => match reply {
                Some(reply) => {
                    let is_known = statuses.contains(&reply.status) || may_give_up(world, reply.status);
                    assert!(is_known && reply.closes, "client {id}: {} for {step:?}", reply.status);
                }
                None => {
                    assert!(is_over || !must_be_answered(world, id), "client {id}: nobody refused {step:?}");
                }
            },
            Step::Incomplete { kind } => {
                // What no route takes is refused before its body comes, to who asked (RFC 9110 §10.1.1).
                let is_refused = |reply: &Reply| {
                    let by_nobody = [400, 404, 405].contains(&reply.status) && reply.closes;
                    by_nobody && kind.expect_continue && world.scenario.salt & HAS_CONTENT != 0
                };
                let is_late = |reply: &Reply| reply.status == 408 && world.scenario.mode == Mode::Slow;
                let is_right = reply.is_none_or(|reply| {
                    may_give_up(world, reply.status) || is_late(reply) || is_refused(reply)
                });
                assert!(is_right, "client {id}: an answer to half a request: {reply:?}");
            }
        }
        is_over |= reply.is_some_and(|reply| reply.closes);
    }
    // Whoever sends an empty line and no more has begun a request, of which the model knows nothing.
    let beyond = finals.next().is_none_or(|reply| may_be_late && [408, 503].contains(&reply.status));
    assert!(beyond, "client {id}: a reply that nobody asked for");
}

/// The replies. Who was so slow that only a letter of HEAD had come when it was told 408 was not known to ask for a head.
fn read_as(world: &World, received: &[u8], kinds: Vec<RequestKind>) -> Result<(Vec<Reply>, usize), String> {
    let read = read_replies_so_far(received, &kinds);
    if read.is_ok() || world.scenario.mode == Mode::Patient {
        return read;
    }
    let heads = (0..kinds.len()).filter(|&at| kinds[at].asked == Asked::Head);
    let mut without = heads.map(|at| {
        let mut kinds = kinds.clone();
        kinds[at].asked = Asked::Other;
        read_replies_so_far(received, &kinds)
    });
    without.find(Result::is_ok).unwrap_or(read)
}

/// Whether this client did everything that it should, so that every request must have its answer.
fn must_be_answered(world: &World, id: usize) -> bool {
    match world.scenario.mode {
        Mode::Patient | Mode::Slow => true,
        // A reload loses nothing: whoever was connected is answered up to the reply that says that it is the last.
        Mode::Draining => world.is_replaced && world.clients[id].was_admitted,
        Mode::Rude | Mode::Tight => false,
    }
}

/// Statuses with which the server may give up a request of somebody who is slow, or when memory is short.
fn may_give_up(world: &World, status: u16) -> bool {
    match world.scenario.mode {
        Mode::Patient | Mode::Draining | Mode::Slow => false,
        Mode::Rude => status == 408,
        Mode::Tight => status == 408 || status == 503,
    }
}

fn check_reply(world: &World, id: usize, number: usize, call: &Call, was_called: bool, reply: &Reply) {
    if !is_routed(world, call) {
        let by_router = [200, 400, 404, 405, 501].contains(&reply.status);
        assert!(by_router, "client {id}: request {number} got {} from nobody", reply.status);
        return;
    }
    assert!(
        was_called,
        "client {id}: request {number} was answered with {} and never dispatched",
        reply.status
    );
    let (status, body) = call.expected(world.scenario.salt);
    let may_be_late =
        matches!(call.kind(world.scenario.salt), Kind::Later | Kind::Forgotten) && reply.status == 504;
    if may_be_late {
        return;
    }
    assert_eq!(reply.status, status, "client {id}: the status of request {number}");
    // A body that ends with the connection may be cut by a client that does not take it.
    let ends_by_close = reply.header("Content-Length").is_none()
        && reply.header("Transfer-Encoding").is_none()
        && reply.closes;
    let is_rude = matches!(world.scenario.mode, Mode::Rude | Mode::Tight);
    if is_rude && ends_by_close && body.starts_with(&reply.body) {
        return;
    }
    if call.method != b"HEAD" {
        assert!(
            reply.body == body,
            "client {id}: the body of request {number}, {:?}, has {} bytes, not {}",
            call.kind(world.scenario.salt),
            reply.body.len(),
            body.len()
        );
    }
}

/// Takes one such call off the list.
fn take(calls: &mut Vec<Call>, call: &Call) -> bool {
    let found = calls.iter().position(|made| made == call);
    found.map(|at| calls.remove(at)).is_some()
}
