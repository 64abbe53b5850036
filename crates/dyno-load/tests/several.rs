//! Several given requests: each is sent in its turn, whole, whatever the batch, and each has its answer checked.
#![allow(clippy::unwrap_used)]

mod scripted;

use dyno_load::{BlockReport, Errors, Session, SessionPlan, Target};
use scripted::{HELLO, Peer, Server, short, within_deadline};

/// Requests of different lengths that say their number in the target.
fn several(count: usize) -> Vec<String> {
    let request = |number: usize| {
        format!("GET /{number} HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", "c".repeat(1 + number * 7 % 5))
    };
    (0..count).map(request).collect()
}

/// Answers, and marks every request that is none of these or does not follow the one before in its turn. The first of
/// a connection asks alone, and each session begins its turns with the first.
fn in_turn(requests: &[String]) -> Server {
    let requests = requests.to_vec();
    Server::start(move |peer| {
        let mut turn = requests.iter().take(1).chain(requests.iter().cycle());
        while let Some(head) = peer.head() {
            if Some(&head) != turn.next() {
                peer.mark();
            }
            peer.answer(HELLO);
        }
    })
}

fn plan(server: &Server, requests: &[u8], pipeline: usize, connections: usize) -> SessionPlan {
    let url = format!("http://{}/", server.addr());
    let target = Target::builder(&url).requests(requests.to_vec()).build().unwrap();
    SessionPlan { target, pipeline, ..server.plan(connections) }
}

fn block(plan: SessionPlan) -> BlockReport {
    within_deadline(move || Session::open(&plan).unwrap().block(&short(), &mut |_| {}))
}

#[test]
fn a_list_is_sent_in_turn_and_each_request_has_its_answer() {
    for (count, pipeline) in [(1, 3), (3, 1), (3, 2), (3, 7), (16, 16), (5, 16)] {
        let requests = several(count);
        let server = in_turn(&requests);
        let report = block(plan(&server, requests.concat().as_bytes(), pipeline, 1));
        let case = format!("{count} requests in batches of {pipeline}");
        assert_eq!((report.errors, server.marks()), (Errors::default(), 0), "{case}");
        // One more was answered when the session was opened.
        assert_eq!(report.replies + 1, server.answers(), "{case}");
    }
}

#[test]
fn connections_share_the_turns_of_a_list() {
    let requests = several(4);
    let counted = requests.clone();
    let server = Server::start(move |peer| {
        while let Some(head) = peer.head() {
            // Two at a time: a batch is the first two or the last two.
            let number = counted.iter().position(|request| *request == head).unwrap();
            if number < 2 {
                peer.mark();
            }
            peer.answer(HELLO);
        }
    });
    let report = block(plan(&server, requests.concat().as_bytes(), 2, 3));
    assert_eq!(report.errors, Errors::default());
    let (opening, all) = (3, server.answers());
    let half = (all - opening) / 2;
    // All batches took their turns; the last one may be of either kind.
    assert!((server.marks() - opening).abs_diff(half) <= 2, "{} of {all}", server.marks());
}

#[test]
fn a_batch_that_the_socket_takes_in_pieces_goes_on_where_it_stopped() {
    const SIZES: [usize; 3] = [700_000, 1_300_001, 5];
    let bodies = SIZES.map(|size| (0..size).map(|index| (index % 251) as u8).collect::<Vec<u8>>());
    let request = |body: &Vec<u8>| {
        [format!("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body]
            .concat()
    };
    let requests = bodies.iter().map(request).collect::<Vec<_>>().concat();
    // An answer to the first of a batch comes while the last is still being sent.
    let server = Server::start(move |peer: &mut Peer| {
        let mut turn = bodies.iter().take(1).chain(bodies.iter().cycle());
        while peer.request() {
            let body = turn.next().unwrap();
            let Some(got) = peer.body_bytes(body.len()) else { return };
            if got != *body {
                peer.mark();
            }
            peer.answer(HELLO);
        }
    });
    for pipeline in [1, 2, 5] {
        let plan = plan(&server, &requests, pipeline, 1);
        let report = block(SessionPlan { timeout_ns: 20_000_000_000, ..plan });
        assert_eq!((report.errors, server.marks(), report.reconnects), (Errors::default(), 0, 0));
        assert!(report.replies >= SIZES.len() as u64, "{} in batches of {pipeline}", report.replies);
    }
}

#[test]
fn a_wrong_answer_to_one_of_them_is_counted() {
    let requests = several(4);
    let server = Server::start(|peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /2 ") {
                peer.mark();
                peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            } else {
                peer.answer(HELLO);
            }
        }
    });
    let report = block(plan(&server, requests.concat().as_bytes(), 4, 2));
    assert_eq!(report.errors, Errors { status: server.marks(), ..Errors::default() });
    assert!(server.marks() > 0);
}
