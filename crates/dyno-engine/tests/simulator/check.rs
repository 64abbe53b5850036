//! What must have come out of a simulation, by the plain model of HTTP.

use crate::model::{Asked, Reply, Request, RequestKind, Step, read_replies_so_far, understand};
use crate::simulator::content::{self, HAS_CONTENT};
use crate::simulator::door::{Ledger, Outcome};
use crate::simulator::handlers::{Call, Kind};
use crate::simulator::hosts;
use crate::simulator::net::Link;
use crate::simulator::world::{Client, MODEL_LIMITS, Mode, World};

/// Compares what each client got with what the model says of what it sent.
pub(crate) fn check(world: &World) {
    let work = crate::simulator::handlers::lock(&world.shop);
    let mut calls: Vec<Call> = work.calls.clone();
    drop(work);
    // Requests whose answer did not arrive: a handler may have been called for each, once.
    let (mut unanswered, mut ledger) = (Vec::new(), Ledger::default());
    for id in 0..world.clients.len() {
        check_client(world, id, &mut calls, &mut unanswered);
        note_requests(world, id, &mut ledger);
    }
    ledger.check(world.door.as_ref(), world.lasted_ns());
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
        Step::Reject { kind, .. } | Step::Incomplete { kind, .. } => *kind,
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
    let is_told_whose = client.sent >= client.header;
    assert!(
        is_told_whose || link.received.is_empty(),
        "client {id}: an answer to who has not said who it is"
    );
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
                let call = call_of(request);
                let is_cut = !is_routed(world, &call) && content::is_for_cut(request);
                match reply {
                    Some(reply) if reply.status == 429 => check_limited(world, id, request, reply),
                    // Given up before it was whole: no handler was called.
                    Some(reply) if may_give_up(world, reply.status) => {
                        assert!(reply.closes, "client {id}");
                        check_words(world, id, Some(request), reply, MayBeEarly::Yes);
                    }
                    Some(reply) => {
                        let was_called = is_routed(world, &call) && take(calls, &call);
                        check_reply(world, id, number, (request, &call), was_called, reply);
                    }
                    None if is_over => {}
                    None => {
                        assert!(
                            !must_be_answered(world, id),
                            "client {id}: request {number} was not answered"
                        );
                        if is_cut && number == replies.len() {
                            content::check_cut(world.scenario.salt, request, &received[used..]);
                        }
                        unanswered.push(call);
                    }
                }
            }
            Step::Reject { statuses, head, .. } => match reply {
                Some(reply) => check_refused(world, id, statuses, head.as_deref(), reply),
                None => {
                    assert!(is_over || !must_be_answered(world, id), "client {id}: nobody refused {step:?}");
                }
            },
            Step::Incomplete { head, .. } => {
                reply.iter().for_each(|reply| check_half(world, id, head.as_deref(), reply));
            }
        }
        is_over |= reply.is_some_and(|reply| reply.closes);
    }
    // Whoever sends an empty line and no more has begun a request, of which the model knows nothing.
    let beyond = finals.next().is_none_or(|reply| may_be_late && [408, 503].contains(&reply.status));
    assert!(beyond, "client {id}: a reply that nobody asked for");
}

/// What no route takes, as `OPTIONS *`, is answered before its body comes, to who asked (RFC 9110 §10.1.1): whatever that body
/// would have been.
fn answered_at_its_head<'h>(world: &World, head: Option<&'h Request>, reply: &Reply) -> Option<&'h Request> {
    head.filter(|head| reply.closes && head.expect_continue && !is_routed(world, &call_of(head)))
}

/// A reply to what is to be refused.
fn check_refused(world: &World, id: usize, statuses: &[u16], head: Option<&Request>, reply: &Reply) {
    if reply.status == 429 && may_be_limited(head) {
        return head.iter().for_each(|head| check_limited(world, id, head, reply));
    }
    let is_given_up = may_give_up(world, reply.status);
    if is_given_up || statuses.contains(&reply.status) {
        assert!(reply.closes, "client {id}: it goes on behind what was refused: {reply:?}");
        let may_be_early = if is_given_up { MayBeEarly::Yes } else { MayBeEarly::No };
        return check_words(world, id, head, reply, may_be_early);
    }
    let head = answered_at_its_head(world, head, reply);
    let head = head.unwrap_or_else(|| panic!("client {id}: {statuses:?} is due, not {reply:?}"));
    check_unrouted(world, id, head, reply);
}

/// A reply to a request of which some is missing.
fn check_half(world: &World, id: usize, head: Option<&Request>, reply: &Reply) {
    if reply.status == 429 && may_be_limited(head) {
        return head.iter().for_each(|head| check_limited(world, id, head, reply));
    }
    if may_give_up(world, reply.status) || reply.status == 408 && world.scenario.mode == Mode::Slow {
        return check_words(world, id, head, reply, MayBeEarly::Yes);
    }
    let head = answered_at_its_head(world, head, reply);
    let head = head.unwrap_or_else(|| panic!("client {id}: an answer to half a request: {reply:?}"));
    check_unrouted(world, id, head, reply);
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
        _ if world.clients[id].may_be_refused => false,
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

/// Whether it is limited before its body is whole: an upload, and what no route takes.
fn may_be_limited(head: Option<&Request>) -> bool {
    head.is_some_and(|head| head.method == b"PUT" || head.expect_continue)
}

/// 429 says when to come again, and ends the connection only where a body that nobody reads would follow, or it ends anyhow.
/// Whether it is right that this address is limited is seen over the whole simulation.
fn check_limited(world: &World, id: usize, request: &Request, reply: &Reply) {
    assert!(world.door.is_some(), "client {id}: nobody is to be limited");
    assert_eq!(reply.header("Retry-After"), Some(&b"1"[..]), "client {id}: when to ask again");
    let ends = !request.keep_alive || may_be_limited(Some(request)) || world.scenario.mode == Mode::Draining;
    assert!(ends || !reply.closes, "client {id}: who asks too often keeps its connection");
    check_words(world, id, Some(request), reply, MayBeEarly::No);
}

/// Writes down whose requests were answered, and whose were too many.
fn note_requests(world: &World, id: usize, ledger: &mut Ledger) {
    let (client, link) = (&world.clients[id], &world.core.net.links[id]);
    let Some(door) = &world.door else { return };
    let sent = &client.script[client.header.min(client.sent)..client.sent];
    let steps = understand(sent, &MODEL_LIMITS);
    let kinds: Vec<RequestKind> = steps.iter().map(kind_of).collect();
    let replies = read_as(world, &link.received, kinds).map_or_else(|_| Vec::new(), |(replies, _)| replies);
    let mut finals = replies.iter().filter(|reply| !reply.is_interim());
    for step in &steps {
        let status = finals.next().map(|reply| reply.status);
        let (request, is_whole) = match step {
            Step::Request(request) => (request, true),
            Step::Reject { head: Some(head), .. } | Step::Incomplete { head: Some(head), .. } => {
                (&**head, false)
            }
            Step::Reject { .. } | Step::Incomplete { .. } => continue,
        };
        let outcome = match status {
            Some(429) => Outcome::Limited,
            Some(status) if is_whole && !may_give_up(world, status) => Outcome::Answered,
            _ => Outcome::Lost,
        };
        ledger.note(door, &client.comer, request, outcome);
    }
}

fn call_of(request: &Request) -> Call {
    Call { method: request.method.clone(), target: request.target.clone(), body: request.body.clone() }
}

/// Whether a reply may have been made before the head was whole, when nobody knew its host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayBeEarly {
    Yes,
    No,
}

/// What the engine says by itself is said as the host of the request says it; without a head, as for a name that is
/// nobody's.
fn check_words(world: &World, id: usize, head: Option<&Request>, reply: &Reply, may_be_early: MayBeEarly) {
    let salt = world.scenario.salt;
    let own = hosts::asked(salt, head.and_then(|head| head.host.as_deref()));
    let is_head = head.map_or(reply.body.is_empty(), |head| head.method == b"HEAD");
    let wrong = hosts::wrong_words(own, is_head, reply).filter(|_| {
        let anybodys = hosts::asked(salt, None);
        let is_early = || hosts::wrong_words(anybodys, reply.body.is_empty(), reply).is_none();
        may_be_early == MayBeEarly::No || !is_early()
    });
    assert_eq!(wrong, None, "client {id}: {} of the wrong host", reply.status);
}

/// No handler takes it: a folder, a redirect or nobody.
fn check_unrouted(world: &World, id: usize, request: &Request, reply: &Reply) {
    if world.scenario.salt & HAS_CONTENT != 0 && hosts::is_clear(request) {
        return content::check(world.scenario.salt, request, reply);
    }
    let by_router = [200, 400, 404, 405, 501].contains(&reply.status);
    assert!(by_router, "client {id}: a request got {} from nobody", reply.status);
    check_words(world, id, Some(request), reply, MayBeEarly::No);
}

fn check_reply(
    world: &World,
    id: usize,
    number: usize,
    (request, call): (&Request, &Call),
    was_called: bool,
    reply: &Reply,
) {
    if !is_routed(world, call) {
        return check_unrouted(world, id, request, reply);
    }
    assert!(
        was_called,
        "client {id}: request {number} was answered with {} and never dispatched",
        reply.status
    );
    let salt = world.scenario.salt;
    let (status, body) = call.expected(salt);
    let may_be_late = matches!(call.kind(salt), Kind::Later | Kind::Forgotten) && reply.status == 504;
    if may_be_late || matches!(call.kind(salt), Kind::Never | Kind::Panic) {
        assert!(may_be_late || reply.status == status, "client {id}: the status of request {number}");
        return check_words(world, id, Some(request), reply, MayBeEarly::No);
    }
    let host = hosts::asked(salt, request.host.as_deref());
    let wrong = hosts::wrong_line(host, call.own_lines(salt), reply);
    assert_eq!(wrong, None, "client {id}: the lines of request {number}");
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
