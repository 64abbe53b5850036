//! The pool behind a real server: bounds, panics, states, clients that go, and the end.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, addr, one_worker, patient, wait_for};
use dyno_engine::{Answer, Drained, Method, Pool, PoolSize, Running, Server};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const GET: &str = " HTTP/1.1\r\nHost: a\r\n\r\n";

/// A door at which jobs wait until they are let through.
#[derive(Clone)]
struct Door {
    inside: Arc<AtomicU64>,
    let_through: SyncSender<()>,
    waits: Arc<Mutex<Receiver<()>>>,
}

impl Door {
    fn new() -> Door {
        let (let_through, waits) = sync_channel(1_000);
        Door { inside: Arc::default(), let_through, waits: Arc::new(Mutex::new(waits)) }
    }

    fn pass(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.waits.lock().unwrap().recv().unwrap();
    }

    fn open(&self, count: usize) {
        (0..count).for_each(|_| self.let_through.send(()).unwrap());
    }

    fn wait_for_inside(&self, count: u64) {
        wait_for("jobs at the door", || self.inside.load(Ordering::SeqCst) == count);
    }
}

fn server() -> Server {
    Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient()).drain_ns(5_000_000_000)
}

/// `/door` waits at the door, `/panic` panics, `/count` says how often the thread's state was used.
fn start(pool: &Pool<u64>, door: &Door) -> Running {
    let [at_door, panicking, counting, hasty] = [(); 4].map(|()| pool.clone());
    let door = door.clone();
    server()
        .route(Method::Get, "/door", move |_, reply| {
            let door = door.clone();
            at_door.answer(reply, move |_| {
                door.pass();
                Answer::text("through\n")
            })
        })
        .route(Method::Get, "/panic", move |_, reply| {
            panicking.answer(reply, |count| {
                *count += 1_000;
                panic!("a job that fails")
            })
        })
        .route(Method::Get, "/count", move |_, reply| {
            counting.answer(reply, |count| {
                *count += 1;
                Answer::text(count.to_string())
            })
        })
        .route(Method::Get, "/hasty", move |_, reply| {
            hasty.answer_within(reply, Duration::from_millis(20), |_| Answer::text("too late"))
        })
        .route(Method::Get, "/plain", |_, reply| reply.text("here"))
        .start()
        .unwrap()
}

fn pool(threads: usize, waiting_max: usize) -> Pool<u64> {
    Pool::with(PoolSize::new(threads, waiting_max), || 0).unwrap()
}

#[test]
fn the_worker_serves_on_while_jobs_take_long() {
    let (pool, door) = (pool(1, 4), Door::new());
    let running = start(&pool, &door);
    let mut slow = Client::connect(addr(&running));
    slow.send(format!("GET /door{GET}"));
    door.wait_for_inside(1);
    let mut quick = Client::connect(addr(&running));
    assert_eq!(quick.ask(format!("GET /plain{GET}")).text(), "here");
    door.open(1);
    assert_eq!(slow.reply().text(), "through\n");
}

#[test]
fn who_finds_the_pool_full_is_told_when_to_come_again() {
    let (pool, door) = (pool(1, 2), Door::new());
    let running = start(&pool, &door);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(addr(&running))).collect();
    clients[0].send(format!("GET /door{GET}"));
    door.wait_for_inside(1);
    for client in &mut clients[1..] {
        client.send(format!("GET /door{GET}"));
    }
    wait_for("two jobs to wait", || pool.counts().waiting == 2);
    let mut late = Client::connect(addr(&running));
    let told = late.ask(format!("GET /count{GET}"));
    assert_eq!((told.status, told.header("Retry-After")), (503, Some("1")));
    assert_eq!(late.ask(format!("GET /plain{GET}")).status, 200, "the connection goes on");
    door.open(3);
    for client in &mut clients {
        assert_eq!(client.reply().status, 200);
    }
    let counts = pool.counts();
    assert_eq!((counts.answered, counts.refused, counts.waiting), (3, 1, 0));
}

#[test]
fn a_panic_costs_one_request_and_its_threads_state() {
    let (pool, door) = (pool(1, 64), Door::new());
    let running = start(&pool, &door);
    let mut client = Client::connect(addr(&running));
    let counts: Vec<String> = (0..3).map(|_| client.ask(format!("GET /count{GET}")).text()).collect();
    assert_eq!(counts, ["1", "2", "3"]);
    // Pipelined, with a good request behind it on the same connection.
    let bad = client.ask(format!("GET /panic{GET}GET /count{GET}"));
    assert_eq!((bad.status, client.reply().text()), (500, "1".to_owned()));
    assert_eq!((pool.counts().panics, pool.counts().answered), (1, 5));
}

#[test]
fn a_state_that_cannot_be_made_is_tried_again() {
    let tries = Arc::new(AtomicU64::new(0));
    let tried = Arc::clone(&tries);
    let make = move || match tried.fetch_add(1, Ordering::SeqCst) {
        0 => panic!("no database yet"),
        number => number,
    };
    let pool: Pool<u64> = Pool::with(PoolSize::new(1, 4), make).unwrap();
    let running = start(&pool, &Door::new());
    let mut client = Client::connect(addr(&running));
    assert_eq!(client.ask(format!("GET /count{GET}")).status, 500);
    assert_eq!(client.ask(format!("GET /count{GET}")).text(), "2");
}

#[test]
fn work_that_nobody_waits_for_is_not_begun() {
    let (pool, door) = (pool(1, 4), Door::new());
    let running = start(&pool, &door);
    let mut first = Client::connect(addr(&running));
    first.send(format!("GET /door{GET}"));
    door.wait_for_inside(1);
    let mut hasty = Client::connect(addr(&running));
    assert_eq!(hasty.ask(format!("GET /hasty{GET}")).status, 504);
    assert_eq!((pool.counts().waiting, pool.counts().skipped), (1, 0));
    door.open(1);
    assert_eq!(first.reply().status, 200);
    wait_for("the job to be passed over", || pool.counts().skipped == 1);
    assert_eq!(door.inside.load(Ordering::SeqCst), 1);
}

/// Such a client reads on: `nc -N` is one.
#[test]
fn who_has_closed_its_sending_side_is_answered() {
    let (pool, door) = (pool(1, 4), Door::new());
    let running = start(&pool, &door);
    let mut client = Client::connect(addr(&running));
    client.send(format!("GET /door{GET}GET /count{GET}")).shutdown_write();
    door.wait_for_inside(1);
    door.open(1);
    assert_eq!((client.reply().text(), client.reply().text()), ("through\n".to_owned(), "1".to_owned()));
    client.assert_closed();
}

#[test]
fn a_drain_waits_for_what_was_handed_over() {
    let (pool, door) = (pool(2, 16), Door::new());
    let running = start(&pool, &door);
    drop(pool);
    let mut clients: Vec<Client> = (0..6).map(|_| Client::connect(addr(&running))).collect();
    for client in &mut clients {
        client.send(format!("GET /door{GET}"));
    }
    wait_for("all requests to be taken", || running.counts().requests == 6);
    let stopping = std::thread::spawn(move || running.stop());
    door.open(6);
    for client in &mut clients {
        assert_eq!(client.reply().text(), "through\n");
        client.assert_closed();
    }
    assert_eq!(stopping.join().unwrap(), Drained::Wholly);
    wait_for("the pool's threads to end", || Arc::strong_count(&door.inside) == 1);
}

#[test]
fn jobs_from_many_connections_are_answered_each_to_its_own() {
    let pool = pool(4, 1_000);
    let of_route = pool.clone();
    let running = server()
        .route(Method::Get, "/n/{n}", move |request, reply| {
            let number = request.param("n").unwrap_or_default().to_owned();
            of_route.answer(reply, move |_| Answer::text(number))
        })
        .start()
        .unwrap();
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(addr(&running))).collect();
    for round in 0..50 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /n/{round}-{number}{GET}"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.reply().text(), format!("{round}-{number}"));
        }
    }
    assert_eq!((pool.counts().answered, pool.counts().waiting), (400, 0));
}
