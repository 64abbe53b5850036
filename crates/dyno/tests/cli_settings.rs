//! `dyno serve` with settings from a file and the environment, from outside.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, Folder, Server, ask, dyno, run};
use std::process::Stdio;

const LONG: &[u8] = b"GET /a-path-of-more-than-thirty-two-bytes-in-all HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn a_server_serves_what_its_file_says() {
    let folder = Folder::new("settings");
    let file =
        folder.file("dyno.toml", "listen = [\"127.0.0.1:0\"]\nworkers = 1\n[limits]\nline_bytes_max = 32\n");
    let server = Server::start(&mut dyno(["serve", &file]));
    assert_eq!(ask(server.addr(), LONG, 12), b"HTTP/1.1 414");
    let server = Server::start(dyno(["serve", &file]).env("DYNO_LINE_BYTES_MAX", "100"));
    assert_eq!(ask(server.addr(), LONG, 12), b"HTTP/1.1 404");
    let server =
        Server::start(dyno(["serve", &file, "--line-bytes-max", "32"]).env("DYNO_LINE_BYTES_MAX", "100"));
    assert_eq!(ask(server.addr(), LONG, 12), b"HTTP/1.1 414");
}

#[test]
fn what_is_shown_can_be_read_again_and_is_the_same() {
    let folder = Folder::new("shown");
    let file = folder.file("dyno.toml", "listen = [\"127.0.0.1:1\", \"unix:/tmp/a \\\"b\\\".sock\"]\nlog_file = \"x.log\"\nsocket_mode = \"0660\"\n[dials]\nlog = \"ring\"\nnaive = true\n[limits]\nidle_timeout = \"5s\"\n");
    let shown = run(["serve", &file, "--show-config", "--spin", "7"]).done().to_owned();
    for says in [
        format!("# {file}:1"),
        format!("# {file}:8"),
        "socket_mode = \"0660\"".to_owned(),
        "spin = 7".to_owned(),
        "# flag".to_owned(),
        "[limits]".to_owned(),
        "header_timeout = \"10s\"".to_owned(),
        "# default: nobody".to_owned(),
    ] {
        assert!(shown.contains(&says), "{says} is not in\n{shown}");
    }
    let again = folder.file("again.toml", &shown);
    let settings = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(settings(run(["serve", &again, "--show-config"]).done()), settings(&shown));
}

#[test]
fn a_check_says_whether_it_would_serve() {
    let folder = Folder::new("check");
    let good = folder.file("good.toml", "listen = [\"127.0.0.1:0\"]\n");
    assert_eq!(run(["serve", "--check", &good]).done(), format!("{good} would serve\n"));
    for (text, what, likely) in [
        (
            "listen = [\"127.0.0.1:0\"]\n[limits]\nidel_timeout = \"5s\"\n",
            ":3: there is no setting \"limits.idel_timeout\"",
            "did you mean limits.idle_timeout?",
        ),
        ("workers = \"many\"\n", ":1: workers cannot be \"many\"", "it takes"),
        ("\nlisten = \n", ":2: ", "a mistake in TOML"),
        ("listen = [\"192.0.2.1:1\"]\n", "cannot listen on 192.0.2.1:1", "no such address"),
        ("user = \"no-such-user\"\n", "there is no user \"no-such-user\"", "a typing mistake"),
        ("metrics = \"0.0.0.0:0\"\n", "others than this machine could read the metrics", "it is no address"),
    ] {
        let bad = folder.file("bad.toml", text);
        let ended = run(["serve", "--check", &bad]);
        let lines = ended.failed();
        assert!(lines[0].contains(what) && lines[1].contains(likely), "{lines:#?}");
    }
    assert!(run(["serve", "--check", "/nowhere.toml"]).failed()[0].contains("cannot read /nowhere.toml"));
}

#[test]
fn a_check_beside_the_running_server_says_that_its_place_is_in_use() {
    let server = Server::serve(&[]);
    let ended = run(["serve", "--check", "--listen", &server.place]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "it would serve\n"));
    assert!(ended.err.contains("is in use now"), "{}", ended.err);
}

#[test]
fn every_mistake_of_a_file_is_told() {
    let folder = Folder::new("mistakes");
    let file =
        folder.file("dyno.toml", "wokers = 1\n[limits]\nidle_timeout = \"soon\"\nbody_bytes_max = true\n");
    let ended = run(["serve", &file]);
    assert_eq!(ended.code, Some(2));
    // The keys that are wrong come first; words are looked at when all keys are right.
    assert_eq!(ended.err.matches("error: ").count(), 2, "{}", ended.err);
    assert!(ended.err.contains(":1: ") && ended.err.contains(":4: "), "{}", ended.err);
}

#[test]
fn settings_may_come_on_standard_input() {
    let mut command = dyno(["serve", "-", "--check"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"listen = 5\n").unwrap();
    let ended = Ended::of(child);
    assert!(ended.failed()[0].contains("standard input:1: listen cannot be \"5\""), "{}", ended.err);
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    let ended = Ended::from(dyno(["serve"]).env("DYNO_DRAIN_TIMEOUT", "soon").output().unwrap());
    assert!(ended.failed()[0].contains("DYNO_DRAIN_TIMEOUT cannot be \"soon\""), "{}", ended.err);
}

/// The same slip in a file is an error too. Planted fault: only names of settings are looked at.
#[test]
fn a_variable_whose_name_has_a_slip_is_an_error_with_what_was_meant() {
    let check = |name: &str| {
        Ended::from(dyno(["serve", "--check", "--listen", "127.0.0.1:0"]).env(name, "5s").output().unwrap())
    };
    let slip = check("DYNO_IDEL_TIMEOUT");
    let lines = slip.failed();
    assert!(lines[0].contains("DYNO_IDEL_TIMEOUT") && lines[1].contains("did you mean DYNO_IDLE_TIMEOUT?"));
    assert_eq!(check("DYNO_PORT_80_TCP").done(), "it would serve\n", "somebody else's");
}

/// What a start warns of. Planted fault: the check does not say it.
#[test]
fn a_check_says_that_a_log_with_a_name_is_not_written() {
    let folder = Folder::new("check-log");
    for more in ["", "[dials]\nlog = \"off\"\n"] {
        let text = format!("listen = [\"127.0.0.1:0\"]\nlog_file = \"/nonexistent/x.log\"\n{more}");
        let ended = run(["serve", "--check", &folder.file("dyno.toml", &text)]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let says = "warning: nothing is written to /nonexistent/x.log: the access log is off (--log ring turns it on)\n";
        assert_eq!(ended.err, says);
    }
}

#[test]
fn the_manuals_example_is_a_file_that_is_read() {
    const MANUAL: &str = include_str!("../../../docs/manual/operations.md");
    let text = MANUAL.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = Folder::new("manual");
    let file = folder.file("dyno.toml", text);
    let ended = run(["serve", &file, "--show-config"]);
    assert!(ended.done().contains("body_bytes_max = \"4M\""), "{}", ended.out);
}

#[test]
fn a_log_format_that_cannot_be_is_told_with_its_place_wherever_it_stands() {
    let folder = Folder::new("log-format");
    let file = folder.file("dyno.toml", "\nlog_format = \"$status $upstream\"\n");
    for (args, what) in [
        (
            vec!["serve", "--log-format", "$status $upstream"],
            "error: invalid value '$status $upstream' for '--log-format <FORMAT>'",
        ),
        (vec!["serve", &file], &*format!("error: {file}:2: log_format cannot be \"$status $upstream\"")),
    ] {
        let ended = run(args);
        let lines = ended.failed();
        assert!(lines[0].starts_with(what), "{lines:?}");
        let says = "character 10: there is no field \"upstream\"; there are remote_addr, ";
        assert!(lines.iter().any(|line| line.contains(says)), "{lines:?}");
    }
    let ended = run(["serve", "--log", "ring", "--log-fsync"]);
    assert_eq!(ended.failed()[0], "error: --log-fsync is set and replies do not wait for the access log");
}

/// What the manual has of the fields is what the engine has.
#[test]
fn the_manual_tells_of_every_field_of_the_log() {
    let manual = include_str!("../../../docs/manual/logs.md");
    for field in dyno_engine::LogFormat::fields() {
        let is_told =
            manual.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{field}`")));
        assert!(is_told, "{field}");
    }
}
