//! A server that has no descriptor left: who is in is served, who is not waits in the kernel's queue and costs nothing.

use crate::common::{Client, wait_for};
use crate::content::Folder;
use crate::served::{Served, figure};
use dyno_sys::proc::run_ns;
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";
const CLIENTS: usize = 300;
/// As long as a client waits for an answer that must not come.
const STARVED: Duration = Duration::from_secs(1);

fn accepted(served: &Served) -> usize {
    figure(&served.order("counters"), "accepts") as usize
}

/// 300 clients before 64 descriptors. Red with a listener that stays watched when nothing can be accepted (without
/// `listeners.pause` in `Worker::pause`): the loop spins, and the worker takes a whole CPU.
pub(crate) fn three_hundred_clients_before_64_descriptors_cost_nothing_and_are_all_served() {
    let mut served = Served::start(&[("nofile", "64")]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(served.addr())).collect();
    for client in &mut clients {
        client.send(JSON);
    }
    wait_for("the server to be full", || figure(&served.order("counters"), "accept_pauses") > 0);
    // Planted fault: `tell_full` says nothing.
    assert_eq!(served.line(), "full 1");
    let room = accepted(&served);
    assert!((20..60).contains(&room), "{room} connections under a limit of 64");
    for client in &mut clients[..room] {
        assert_eq!(client.reply().status, 200, "who is in is served");
    }
    // The first that is not in waits, and so do all behind it: nothing happens that the server could work on.
    let (start, before_ns) = (Instant::now(), run_ns(served.pids[0]).unwrap());
    clients[room].stream.set_read_timeout(Some(STARVED)).unwrap();
    let starved = clients[room].stream.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(starved.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{starved}");
    let cpu = (run_ns(served.pids[0]).unwrap() - before_ns) as f64 / start.elapsed().as_nanos() as f64;
    println!(
        "{room} of {CLIENTS} are in; while the others wait the worker takes {:.2} % of a CPU",
        cpu * 100.0
    );
    assert!(cpu <= 0.02, "{:.1} % of a CPU for nothing", cpu * 100.0);
    for client in &mut clients[..room] {
        assert_eq!(client.ask(JSON).status, 200, "who is in goes on being served");
    }
    clients[room].stream.set_read_timeout(Some(crate::common::DEADLINE)).unwrap();
    let released = Instant::now();
    for mut client in clients.drain(..).skip(room) {
        assert_eq!(client.reply().status, 200, "each is served as others leave");
        assert_eq!(client.ask(JSON).status, 200);
    }
    println!("all others were served {} ms after the release", released.elapsed().as_millis());
    let mut again: Vec<Client> = (0..room / 2).map(|_| Client::connect(served.addr())).collect();
    for client in &mut again {
        assert_eq!(client.ask(JSON).status, 200, "full service again");
    }
    assert!(served.stop().0.success());
}

/// Each worker holds the listeners of all, so that it can help whoever is full. Red where these are not counted: then workers
/// say that they can hold twice as many, and find no descriptor long before.
pub(crate) fn workers_hold_as_many_as_they_say_beside_the_listeners_of_all() {
    let workers = 24;
    let mut served = Served::start(&[("nofile", "80"), ("workers", &workers.to_string())]);
    let most = workers * served.fits.expect("80 descriptors are fewer than may be held");
    let clients: Vec<Client> = (0..2 * most).map(|_| Client::connect(served.addr())).collect();
    wait_for("all workers to be full", || accepted(&served) == most);
    drop(clients);
    assert!(served.stop().0.success());
}

/// Files that find no room in memory are held open. Planted fault: the supervisor reckons without them what workers can hold,
/// which do count them.
pub(crate) fn workers_hold_as_many_as_they_say_beside_the_files_that_they_hold_open() {
    let folder = Folder::new("held-open");
    for number in 0..20 {
        folder.put(&format!("site/{number}.bin"), vec![b'x'; 5_000]);
    }
    let site = folder.path("site");
    let mut served = Served::start(&[("nofile", "80"), ("content_in_files", site.to_str().unwrap())]);
    let most = served.fits.expect("80 descriptors are fewer than may be held");
    let clients: Vec<Client> = (0..2 * most).map(|_| Client::connect(served.addr())).collect();
    wait_for("the worker to be full", || figure(&served.order("counters"), "accept_pauses") > 0);
    assert_eq!(accepted(&served), most);
    drop(clients);
    assert!(served.stop().0.success());
}
