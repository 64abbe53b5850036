//! The supervisor and its workers as processes: started, asked, killed, drained. Also the floor.
//!
//! The tests start this same program again as the server, because only a process of one thread may fork. So there is a
//! small runner at the end instead of the usual harness.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod content;
mod errors;
mod full;
mod idle;
mod kills;
mod log;
mod reload;
mod sandbox;
mod served;
mod stuck;
mod upgrade;

use crate::served::{Served, be_server, figure, is_alive, is_zombie, program, temporary, words};
use common::{Client, DEADLINE, wait_for};
use dyno_engine::{Addr, FilePart, floor};
use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const JSON: &str = "GET /json HTTP/1.1\r\nHost: a\r\n\r\n";

const TESTS: &[(&str, fn())] = &[
    ("a_term_signal_drains_and_ends_with_a_report", a_term_signal_drains_and_ends_with_a_report),
    ("a_busy_port_is_named", a_busy_port_is_named),
    ("no_request_is_lost_when_it_drains_under_load", no_request_is_lost_when_it_drains_under_load),
    (
        "a_worker_that_drains_late_answers_for_those_who_were_early",
        a_worker_that_drains_late_answers_for_those_who_were_early,
    ),
    ("a_second_signal_ends_at_once", a_second_signal_ends_at_once),
    ("a_drain_is_over_at_its_deadline", a_drain_is_over_at_its_deadline),
    ("a_killed_worker_is_replaced_and_leaves_no_zombie", a_killed_worker_is_replaced_and_leaves_no_zombie),
    (
        "a_worker_that_is_told_to_end_drains_and_is_replaced",
        a_worker_that_is_told_to_end_drains_and_is_replaced,
    ),
    ("workers_die_with_their_supervisor", workers_die_with_their_supervisor),
    (
        "no_child_has_a_socket_of_its_parents_but_the_one_it_listens_on",
        no_child_has_a_socket_of_its_parents_but_the_one_it_listens_on,
    ),
    ("workers_are_pinned_in_cpu_order", workers_are_pinned_in_cpu_order),
    ("a_line_in_the_ring_survives_its_worker", log::a_line_in_the_ring_survives_its_worker),
    ("no_line_is_lost_when_the_writer_is_killed", log::no_line_is_lost_when_the_writer_is_killed),
    ("no_line_is_lost_when_the_supervisor_is_killed", log::no_line_is_lost_when_the_supervisor_is_killed),
    ("lines_that_a_stalled_reader_leaves_are_counted", log::lines_that_a_stalled_reader_leaves_are_counted),
    (
        "lines_that_a_stalled_reader_leaves_are_counted_though_the_supervisor_was_killed",
        log::lines_that_a_stalled_reader_leaves_are_counted_though_the_supervisor_was_killed,
    ),
    (
        "a_writer_whose_supervisor_was_killed_waits_for_no_reader_for_ever",
        log::a_writer_whose_supervisor_was_killed_waits_for_no_reader_for_ever,
    ),
    ("a_file_size_limit_costs_lines_and_no_process", log::a_file_size_limit_costs_lines_and_no_process),
    (
        "a_signal_that_finds_nothing_to_do_is_told_and_changes_nothing",
        reload::a_signal_that_finds_nothing_to_do_is_told_and_changes_nothing,
    ),
    ("a_reload_takes_new_settings_and_loses_nothing", reload::a_reload_takes_new_settings_and_loses_nothing),
    (
        "what_is_wrong_with_new_settings_changes_nothing",
        reload::what_is_wrong_with_new_settings_changes_nothing,
    ),
    (
        "a_reload_that_fails_to_add_workers_takes_no_connection_from_those_that_serve",
        reload::a_reload_that_fails_to_add_workers_takes_no_connection_from_those_that_serve,
    ),
    ("addresses_come_and_go_with_a_reload", reload::addresses_come_and_go_with_a_reload),
    (
        "a_connection_that_idles_over_a_reload_is_answered_once_more",
        reload::a_connection_that_idles_over_a_reload_is_answered_once_more,
    ),
    ("a_retired_generation_is_cut_at_its_deadline", reload::a_retired_generation_is_cut_at_its_deadline),
    ("a_supervisor_that_dies_is_replaced", reload::a_supervisor_that_dies_is_replaced),
    (
        "who_asks_for_metrics_over_a_reload_is_answered",
        reload::who_asks_for_metrics_over_a_reload_is_answered,
    ),
    ("metrics_go_on_over_a_reload", reload::metrics_go_on_over_a_reload),
    ("no_request_is_lost_over_reloads_under_load", reload::no_request_is_lost_over_reloads_under_load),
    (
        "no_request_is_lost_when_a_new_program_takes_over_under_load",
        upgrade::no_request_is_lost_when_a_new_program_takes_over_under_load,
    ),
    (
        "a_program_that_cannot_take_over_changes_nothing",
        upgrade::a_program_that_cannot_take_over_changes_nothing,
    ),
    (
        "settings_are_read_again_when_a_program_cannot_take_over",
        upgrade::settings_are_read_again_when_a_program_cannot_take_over,
    ),
    (
        "a_program_that_said_in_time_that_it_serves_takes_over_however_late_that_is_heard",
        upgrade::a_program_that_said_in_time_that_it_serves_takes_over_however_late_that_is_heard,
    ),
    (
        "a_generation_that_starts_while_a_program_takes_over_retires_too",
        upgrade::a_generation_that_starts_while_a_program_takes_over_retires_too,
    ),
    (
        "a_new_program_gets_the_sockets_and_nothing_else",
        upgrade::a_new_program_gets_the_sockets_and_nothing_else,
    ),
    ("a_worker_can_open_start_and_connect_nothing", sandbox::a_worker_can_open_start_and_connect_nothing),
    (
        "a_worker_that_becomes_another_program_is_ended_and_replaced",
        sandbox::a_worker_that_becomes_another_program_is_ended_and_replaced,
    ),
    (
        "a_file_that_finds_no_room_in_memory_is_read_from_the_disk_inside_the_sandbox",
        sandbox::a_file_that_finds_no_room_in_memory_is_read_from_the_disk_inside_the_sandbox,
    ),
    (
        "a_folder_is_served_and_changes_inside_the_sandbox_and_nothing_beside_it",
        sandbox::a_folder_is_served_and_changes_inside_the_sandbox_and_nothing_beside_it,
    ),
    (
        "a_stalled_log_is_told_of_once_and_once_when_it_is_over_with_what_was_lost",
        log::a_stalled_log_is_told_of_once_and_once_when_it_is_over_with_what_was_lost,
    ),
    ("a_full_disk_is_served_on_over", log::a_full_disk_is_served_on_over),
    ("no_line_is_lost_or_torn_when_the_log_is_rotated", log::no_line_is_lost_or_torn_when_the_log_is_rotated),
    (
        "a_log_that_cannot_be_opened_anew_goes_on_being_written",
        log::a_log_that_cannot_be_opened_anew_goes_on_being_written,
    ),
    (
        "a_writer_without_a_descriptor_for_a_new_log_goes_on_and_takes_the_next_one",
        log::a_writer_without_a_descriptor_for_a_new_log_goes_on_and_takes_the_next_one,
    ),
    ("no_line_of_a_reply_is_lost_whoever_is_killed", log::no_line_of_a_reply_is_lost_whoever_is_killed),
    ("a_reply_waits_for_its_line", log::a_reply_waits_for_its_line),
    ("without_room_for_its_line_nobody_gets_a_reply", log::without_room_for_its_line_nobody_gets_a_reply),
    ("each_format_is_written_for_whatever_is_answered", log::each_format_is_written_for_whatever_is_answered),
    (
        "an_error_stands_in_its_log_before_the_reply_has_left",
        errors::an_error_stands_in_its_log_before_the_reply_has_left,
    ),
    ("no_error_is_lost_when_workers_are_killed", errors::no_error_is_lost_when_workers_are_killed),
    (
        "an_error_log_is_opened_anew_by_whoever_writes_it",
        errors::an_error_log_is_opened_anew_by_whoever_writes_it,
    ),
    (
        "an_error_log_that_is_moved_while_settings_are_read_again_is_held_by_nobody",
        errors::an_error_log_that_is_moved_while_settings_are_read_again_is_held_by_nobody,
    ),
    (
        "nobody_holds_an_error_log_that_was_opened_anew",
        errors::nobody_holds_an_error_log_that_was_opened_anew,
    ),
    ("a_successors_socket_file_stays", a_successors_socket_file_stays),
    (
        "a_socket_file_that_was_bound_while_another_server_drains_stays",
        a_socket_file_that_was_bound_while_another_server_drains_stays,
    ),
    ("a_socket_file_has_the_mode_that_was_asked_for", a_socket_file_has_the_mode_that_was_asked_for),
    ("orders_come_in_over_the_control_socket", orders_come_in_over_the_control_socket),
    (
        "at_its_descriptor_limit_a_server_waits_without_spinning",
        at_its_descriptor_limit_a_server_waits_without_spinning,
    ),
    (
        "three_hundred_clients_before_64_descriptors_cost_nothing_and_are_all_served",
        full::three_hundred_clients_before_64_descriptors_cost_nothing_and_are_all_served,
    ),
    (
        "workers_hold_as_many_as_they_say_beside_the_listeners_of_all",
        full::workers_hold_as_many_as_they_say_beside_the_listeners_of_all,
    ),
    (
        "workers_hold_as_many_as_they_say_beside_the_files_that_they_hold_open",
        full::workers_hold_as_many_as_they_say_beside_the_files_that_they_hold_open,
    ),
    (
        "an_idle_connection_takes_80_bytes_with_content_logs_limits_and_filters",
        idle::an_idle_connection_takes_80_bytes_with_content_logs_limits_and_filters,
    ),
    (
        "a_killed_worker_loses_its_own_requests_and_is_replaced_within_20_ms",
        kills::a_killed_worker_loses_its_own_requests_and_is_replaced_within_20_ms,
    ),
    (
        "a_worker_that_does_not_get_on_is_told_of_and_the_others_accept_in_its_place",
        stuck::a_worker_that_does_not_get_on_is_told_of_and_the_others_accept_in_its_place,
    ),
    ("workers_serve_a_folder_and_its_changes", content::workers_serve_a_folder_and_its_changes),
    ("a_new_worker_serves_what_the_folder_has_now", content::a_new_worker_serves_what_the_folder_has_now),
    (
        "a_killed_builder_is_replaced_and_changes_go_on",
        content::a_killed_builder_is_replaced_and_changes_go_on,
    ),
    ("a_folder_that_is_not_there_is_named", content::a_folder_that_is_not_there_is_named),
    ("no_request_is_lost_while_files_change", content::no_request_is_lost_while_files_change),
    ("the_floor_answers_what_it_was_given", the_floor_answers_what_it_was_given),
    (
        "the_floor_sends_what_a_socket_does_not_take_at_once",
        the_floor_sends_what_a_socket_does_not_take_at_once,
    ),
];

fn a_term_signal_drains_and_ends_with_a_report() {
    let mut served = Served::start(&[("workers", "2")]);
    assert_eq!(served.pids.len(), 2);
    let mut client = Client::connect(served.addr());
    assert_eq!(client.ask(JSON).status, 200);
    drop(client);
    let (status, report) = served.stop();
    assert!(status.success(), "{status}");
    assert!(report.starts_with("report Wholly deaths=0 requests=1 "), "{report}");
    for pid in &served.pids {
        assert!(!is_alive(*pid), "worker {pid} is gone");
    }
}

fn a_busy_port_is_named() {
    let served = Served::start(&[("reuseport", "hash"), ("workers", "2")]);
    let busy = served.addr().to_string();
    for reuseport in ["off", "hash"] {
        let arguments = words(&[("addr", &busy), ("reuseport", reuseport)]);
        let output = program().arg("serve").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with(&format!("error: cannot listen on {busy}: ")), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
}

fn no_request_is_lost_when_it_drains_under_load() {
    for reuseport in ["off", "hash"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        let (answered, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let begun = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut client = Client::connect(served.addr());
                    assert_eq!(client.ask(JSON).status, 200);
                    begun.fetch_add(1, Ordering::Relaxed);
                    // Every request that is sent gets its answer, up to the one that says that it was the last.
                    while client.ask(JSON).header("connection").is_none() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(stopped.load(Ordering::SeqCst), "closed before anybody asked for it");
                    client.assert_closed();
                });
            }
            let all_ask = || begun.load(Ordering::Relaxed) == 16;
            wait_for("some load", || all_ask() && answered.load(Ordering::Relaxed) > 2_000);
            stopped.store(true, Ordering::SeqCst);
            signal::kill(served.pid(), Signal::Term).unwrap();
        });
        let (status, report) = served.ended();
        assert!(status.success() && report.starts_with("report Wholly"), "{status}: {report}");
    }
}

fn a_worker_that_drains_late_answers_for_those_who_were_early() {
    for reuseport in ["off", "hash"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        signal::kill(served.pids[1], Signal::Stop).unwrap();
        signal::kill(served.pid(), Signal::Term).unwrap();
        wait_for("the first worker to end", || !is_alive(served.pids[0]));
        let mut clients: Vec<Client> = (0..40).map(|_| Client::connect(served.addr())).collect();
        for client in &mut clients {
            client.send(JSON);
        }
        signal::kill(served.pids[1], Signal::Cont).unwrap();
        for client in &mut clients {
            assert_eq!(client.reply().status, 200, "{reuseport}");
        }
        let (status, report) = served.ended();
        assert!(status.success() && report.starts_with("report Wholly"), "{status}: {report}");
    }
}

fn a_second_signal_ends_at_once() {
    let mut served = Served::start(&[]);
    let mut half = Client::connect(served.addr());
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    signal::kill(served.pid(), Signal::Int).unwrap();
    assert_eq!(served.line(), "draining");
    let start = Instant::now();
    signal::kill(served.pid(), Signal::Term).unwrap();
    let (_, report) = served.ended();
    assert!(report.starts_with("report Cut"), "{report}");
    assert!(start.elapsed() < DEADLINE / 4, "the drain's ten seconds were not waited for");
}

fn a_drain_is_over_at_its_deadline() {
    let mut served = Served::start(&[("drain_ms", "300")]);
    let mut half = Client::connect(served.addr());
    assert_eq!(half.ask(JSON).status, 200);
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    let (_, report) = served.stop();
    assert!(report.starts_with("report Cut"), "{report}");
}

fn a_killed_worker_is_replaced_and_leaves_no_zombie() {
    for reuseport in ["off", "hash", "cpu"] {
        let mut served = Served::start(&[("workers", "2"), ("reuseport", reuseport)]);
        let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(served.addr())).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.ask(JSON).status, 200));
        let victim = served.pids[0];
        signal::kill(victim, Signal::Kill).unwrap();
        assert_eq!(served.line(), format!("died {victim} killed by SIGKILL after_ns 0"));
        let replaced = served.line();
        let new: Pid = replaced.strip_prefix(&format!("replaced {victim} ")).unwrap().parse().unwrap();
        assert!(is_alive(new) && !is_alive(victim) && !is_zombie(victim), "{reuseport}");
        // New connections reach both workers, and none is refused.
        for _ in 0..16 {
            assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
        }
        drop(clients);
        let (status, report) = served.stop();
        assert!(status.success() && report.starts_with("report Wholly deaths=1 "), "{report}");
        let requests: u64 = figure(&report, "requests");
        assert!((16..=24).contains(&requests), "the dead worker's row was not lost: {report}");
    }
}

fn a_worker_that_is_told_to_end_drains_and_is_replaced() {
    let mut served = Served::start(&[]);
    let mut client = Client::connect(served.addr());
    assert_eq!(client.ask(JSON).status, 200);
    signal::kill(served.pids[0], Signal::Term).unwrap();
    wait_for("the worker to say that it drains", || client.ask(JSON).header("connection") == Some("close"));
    drop(client);
    assert_eq!(served.line(), format!("drained {}", served.pids[0]));
    assert!(served.line().starts_with("replaced "));
    assert_eq!(Client::connect(served.addr()).ask(JSON).status, 200);
    let (_, report) = served.stop();
    assert!(report.starts_with("report Wholly deaths=0 "), "it did not die: {report}");
}

fn workers_die_with_their_supervisor() {
    let served = Served::start(&[("workers", "2"), ("log", "ring")]);
    let family = dyno_sys::proc::tree(served.pid());
    assert_eq!(family.len(), 5, "the master, its supervisor, two workers, the log writer");
    signal::kill(served.pid(), Signal::Kill).unwrap();
    for pid in family.into_iter().filter(|pid| *pid != served.pid()) {
        wait_for("the orphan to end", || !is_alive(pid) || is_zombie(pid));
    }
}

/// Planted fault: the supervisor keeps its channel to the master where no child lets go of it. Then each of them could report in its
/// name.
fn no_child_has_a_socket_of_its_parents_but_the_one_it_listens_on() {
    let served = Served::start(&[("workers", "2"), ("log", "ring"), ("metrics", "127.0.0.1:0")]);
    served.order("counters");
    let parents = [served.pid(), served.supervisor()];
    let family = dyno_sys::proc::tree(served.pid());
    assert_eq!(family.len(), 6, "the two, two workers, the log's writer and the metrics'");
    for child in family.into_iter().filter(|pid| !parents.contains(pid)) {
        for parent in parents {
            let both = || sockets(child).intersection(&sockets(parent)).count();
            // Nobody waits for the process for metrics to have let go.
            wait_for("a child to let go of what is its parents'", || both() <= 1);
        }
    }
}

/// The sockets that a process has open, by what the kernel calls them. What it was started with is not asked for.
fn sockets(pid: Pid) -> BTreeSet<String> {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|fd| fd.unwrap());
    let own = fds.filter(|fd| !["0", "1", "2"].contains(&fd.file_name().to_str().unwrap()));
    let links = own.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    links.map(|link| link.display().to_string()).filter(|link| link.starts_with("socket:")).collect()
}

fn workers_are_pinned_in_cpu_order() {
    let served = Served::start(&[("workers", "2"), ("pin", "cpu")]);
    let allowed: Vec<usize> = dyno_sys::affinity::allowed().iter().collect();
    for (number, pid) in served.pids.iter().enumerate() {
        let cpus: Vec<usize> = dyno_sys::proc::cpus_allowed(*pid).unwrap().iter().collect();
        assert_eq!(cpus, [allowed[number % allowed.len()]]);
    }
}

fn a_successors_socket_file_stays() {
    let path = temporary("successor.sock");
    let word = format!("unix:{}", path.display());
    let mut first = Served::start(&[("addr", &word)]);
    // A restart script that removes the file does this: the second server makes one of its own under the same name.
    std::fs::remove_file(&path).unwrap();
    let mut second = Served::start(&[("addr", &word)]);
    assert!(first.stop().0.success());
    assert!(UnixStream::connect(&path).is_ok(), "the second server's file is there");
    assert!(second.stop().0.success());
    assert!(!path.exists(), "its own it takes away");
}

/// Planted fault: the file is known by its number alone. Whoever drains has closed its listeners, so that a file system may give
/// the number of the file that the second server has removed to the one that it makes (ext4 does; tmpfs would not).
fn a_socket_file_that_was_bound_while_another_server_drains_stays() {
    let path = temporary("draining.sock");
    let word = format!("unix:{}", path.display());
    let mut first = Served::start(&[("addr", &format!("127.0.0.1:0 {word}"))]);
    let mut half = Client::connect(first.addr());
    assert_eq!(half.ask(JSON).status, 200);
    half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    signal::kill(first.pid(), Signal::Term).unwrap();
    wait_for("its listeners to be closed", || UnixStream::connect(&path).is_err());
    let mut second = Served::start(&[("addr", &word)]);
    assert_eq!(half.ask("lf").text(), "half");
    drop(half);
    assert!(first.ended().0.success());
    assert!(UnixStream::connect(&path).is_ok(), "the second server's file is there");
    assert!(second.stop().0.success());
    assert!(!path.exists(), "its own it takes away");
}

fn a_socket_file_has_the_mode_that_was_asked_for() {
    let path = temporary("mode.sock");
    let word = format!("unix:{}", path.display());
    for mode in ["660", "666", "600"] {
        let mut served = Served::start(&[("addr", &word), ("socket_mode", mode)]);
        assert_eq!(format!("{:o}", std::fs::metadata(&path).unwrap().mode() & 0o777), mode);
        assert!(served.stop().0.success());
    }
}

fn orders_come_in_over_the_control_socket() {
    let served = Served::start(&[("workers", "2")]);
    assert_eq!(served.order("set spin 300"), "ok");
    assert!(served.order("set pin cpu").starts_with("error: "));
    let mut client = Client::connect(served.addr());
    assert_eq!(client.ask(JSON).status, 200);
    wait_for("spins", || {
        assert_eq!(client.ask(JSON).status, 200);
        figure(&served.order("counters"), "spins") > 0
    });
    assert_eq!(served.order("set spin 0"), "ok");
}

fn at_its_descriptor_limit_a_server_waits_without_spinning() {
    let mut served = Served::start(&[("nofile", "64")]);
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(served.addr())).collect();
    clients.iter_mut().for_each(|client| {
        client.send(JSON);
    });
    wait_for("the server to be full", || figure(&served.order("counters"), "accept_pauses") > 0);
    let accepted = figure(&served.order("counters"), "accepts") as usize;
    assert!((20..60).contains(&accepted), "{accepted} connections were accepted under a limit of 64");
    // The kernel hands connections out in their order: the first ones are served, and keep being so.
    assert_eq!(clients[0].reply().status, 200);
    let (start, before) = (Instant::now(), figure(&served.order("counters"), "turns"));
    for _ in 0..50 {
        assert_eq!(clients[0].ask(JSON).status, 200);
    }
    let turns = figure(&served.order("counters"), "turns") - before;
    let looks = 4 + start.elapsed().as_millis() as u64 / 100;
    assert!(turns <= 50 + looks, "{turns} turns for 50 requests");
    for mut client in clients.into_iter().skip(1) {
        assert_eq!(client.reply().status, 200, "each is served as others leave");
    }
    assert!(served.stop().0.success());
}

/// A floor as a process, and where it listens.
fn start_floor(leaves: &str, bytes: usize) -> (Child, SocketAddr) {
    let mut child =
        program().args(["floor", leaves, &bytes.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

fn the_floor_answers_what_it_was_given() {
    let (mut child, addr) = start_floor("joined", 0);
    let mut client = Client::connect(addr);
    for count in [1, 3, 100] {
        client.send(JSON.repeat(count));
        for _ in 0..count {
            assert_eq!(client.reply().text(), "floor");
        }
    }
    signal::kill(child.id().cast_signed(), Signal::Term).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Answers that go on with a file, or have a body apart, more of them than both sockets hold: they come whole and in order,
/// and the next request is answered as well.
fn the_floor_sends_what_a_socket_does_not_take_at_once() {
    let bytes = 5_000_000;
    for leaves in ["file", "gathered"] {
        let (mut child, addr) = start_floor(leaves, bytes);
        let mut client = Client::connect(addr);
        for count in [1, 6, 1] {
            client.send(JSON.repeat(count));
            for _ in 0..count {
                let body = client.reply().body;
                assert!(body == [b"floor".to_vec(), pattern(bytes)].concat(), "{leaves}: {}", body.len());
            }
        }
        signal::kill(child.id().cast_signed(), Signal::Term).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

/// Bytes of which no two stretches next to each other are equal.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
}

fn be_floor(leaves: &str, bytes: usize) -> ExitCode {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nfloor", 5 + bytes).into_bytes();
    let addr: Addr = "127.0.0.1:0".parse().unwrap();
    let (request_bytes, cpu) = (None, None);
    let floor = if leaves == "gathered" {
        let answer = [head, pattern(bytes)].concat();
        floor::Floor { addr, answer, leaves: floor::Leaves::Gathered, file: None, request_bytes, cpu }
    } else {
        let path = temporary("floor");
        std::fs::write(&path, pattern(bytes)).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let file = (bytes > 0).then(|| FilePart::whole(file).unwrap());
        floor::Floor { addr, answer: head, leaves: floor::Leaves::Joined, file, request_bytes, cpu }
    };
    floor::run(&floor, &mut |addr| println!("{addr}")).unwrap();
    ExitCode::SUCCESS
}

/// What the usual harness takes on its command line, as far as it decides which tests run.
struct Selection {
    filters: Vec<String>,
    skipped: Vec<String>,
}

impl Selection {
    fn from(mut arguments: impl Iterator<Item = String>) -> Selection {
        let mut selection = Selection { filters: Vec::new(), skipped: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--skip" => selection.skipped.extend(arguments.next()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                // None of these tests is an ignored one.
                "--ignored" => selection.skipped.push(String::new()),
                flag if flag.starts_with('-') => {}
                _ => selection.filters.push(argument),
            }
        }
        selection
    }

    fn takes(&self, name: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|part| name.contains(part.as_str()));
        (self.filters.is_empty() || among(&self.filters)) && !among(&self.skipped)
    }
}

/// The runner. With `serve` or `floor` as its first argument the program is what the tests test.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve") => return be_server(&arguments[1..]),
        Some("floor") if arguments.len() == 3 => {
            return be_floor(&arguments[1], arguments[2].parse().unwrap());
        }
        _ => {}
    }
    let lists = arguments.iter().any(|argument| argument == "--list");
    let selection = Selection::from(arguments.into_iter());
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| selection.takes(name)) {
        if lists {
            println!("{name}: test");
            continue;
        }
        let outcome = catch_unwind(AssertUnwindSafe(test));
        failed += u32::from(outcome.is_err());
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
