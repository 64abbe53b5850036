//! `dyno profile`, end to end.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::watching::may_watch;
use common::{Ended, Folder, dyno, run, run_with_input};
use dyno_record::profile::Profile;
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that does nothing but count.
const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy() -> Running {
    Running(Command::new(BUSY[0]).args(&BUSY[1..]).spawn().unwrap())
}

fn read(folder: &Folder, name: &str) -> Profile {
    let text = std::fs::read_to_string(folder.path(name)).unwrap();
    schema::holds("profile", &text);
    Profile::from_json(&text).unwrap()
}

#[test]
fn a_process_is_watched_and_its_record_written() {
    if !may_watch() {
        return;
    }
    let (folder, busy) = (Folder::new("profile-record"), busy());
    let (place, pid) = (folder.path("p.json"), busy.0.id().to_string());
    let ended =
        run(["profile", "--for", "1s", "--requests", "100", "-o", place.to_str().unwrap(), "-p", &pid]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("µs per request") && ended.out.contains("own cost"), "{}", ended.out);
    // Planted fault: a record that is named has no page.
    assert!(ended.out.contains("p.json      ") && folder.path("p.html").exists(), "{}", ended.out);
    let profile = read(&folder, "p.json");
    assert!(profile.sampling.samples > 50 && profile.requests.unwrap().count == 100);
    assert_eq!(profile.command[1], "profile");
}

/// Planted fault: a command reads /dev/null.
#[test]
fn a_command_reads_what_comes_in() {
    if !may_watch() {
        return;
    }
    let folder = Folder::new("profile-input");
    let [record, copy] = ["p.folded", "copy"].map(|name| folder.path(name).to_str().unwrap().to_owned());
    let command = format!("cat > {copy}; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 3");
    let words = ["profile", "--format", "folded", "-o", &record, "--", "sh", "-c", &command];
    let ended = run_with_input(words, "what is worked on\n");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(copy).unwrap(), "what is worked on\n");
    assert!(ended.err.contains("the command ended with exit status 3"), "{}", ended.err);
}

/// As htop tells threads. Planted fault: the number is taken for a process's.
#[test]
fn a_threads_number_stands_for_its_process() {
    if !may_watch() {
        return;
    }
    let folder = Folder::new("profile-thread");
    let place = folder.path("p.json");
    // A thread of this very process, which ends with it.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        std::thread::sleep(common::DEADLINE);
    });
    let tid = told.recv().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let ended = run(["profile", "--for", "300ms", "-o", place.to_str().unwrap(), "-p", &tid]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let of = format!("{tid} is a thread of process {}", std::process::id());
    assert!(ended.err.contains(&of), "{}", ended.err);
    assert!(ended.out.contains(&format!("({})", std::process::id())), "{}", ended.out);
}

#[test]
fn a_command_is_watched_from_its_start_and_ends_with_the_profile() {
    if !may_watch() {
        return;
    }
    let folder = Folder::new("profile-command");
    let place = folder.path("p.folded");
    let words = ["profile", "--for", "400ms", "--format", "folded", "-o", place.to_str().unwrap(), "--"];
    let ended = run(words.into_iter().chain(BUSY));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("watched   sh ("), "{}", ended.out);
    let pid = ended.out.split(['(', ')']).nth(1).unwrap().parse().unwrap();
    assert!(proc::stat(pid).is_err(), "the command ended with the profile");
    assert!(std::fs::read_to_string(place).unwrap().lines().count() > 0);
}

/// Fault: `while_command` that never sets `over`; the profile then ends after twenty seconds.
#[test]
fn a_process_is_watched_for_as_long_as_a_command_runs() {
    if !may_watch() {
        return;
    }
    let (folder, busy) = (Folder::new("profile-while"), busy());
    let (place, pid) = (folder.path("p.json"), busy.0.id().to_string());
    let place = place.to_str().unwrap();
    let ended = run(["profile", "--for", "20s", "-o", place, "-p", &pid, "--", "sleep", "2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let profile = read(&folder, "p.json");
    assert!((1.0..10.0).contains(&profile.duration_s), "{} s", profile.duration_s);
    assert_eq!((profile.target.pid, profile.cut_short), (Some(busy.0.id()), None));
    assert!(profile.sampling.samples > 20, "{:?}", profile.sampling);
}

/// A profile of that process that has seen some of it.
fn watching(place: &Path, pid: &str) -> Child {
    let words = ["profile", "-o", place.to_str().unwrap(), pid];
    let child = dyno(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its second thread hears signals; it is there when everything is set up.
    common::wait_for("it watches", || proc::tasks(child.id().cast_signed()).len() > 1);
    let target = pid.parse().unwrap();
    let before = proc::run_ns(target).unwrap();
    common::wait_for("the target runs", || proc::run_ns(target).unwrap() > before + 300_000_000);
    child
}

#[test]
fn ctrl_c_writes_what_there_is() {
    if !may_watch() {
        return;
    }
    let (folder, busy) = (Folder::new("profile-ctrl-c"), busy());
    let (place, pid) = (folder.path("p.json"), busy.0.id().to_string());
    let child = watching(&place, &pid);
    signal::kill(child.id().cast_signed(), Signal::Int).unwrap();
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert_eq!(read(&folder, "p.json").cut_short.as_deref(), Some("interrupted"));
}

#[test]
fn a_second_ctrl_c_says_that_it_is_ending_and_loses_nothing() {
    if !may_watch() {
        return;
    }
    let (folder, busy) = (Folder::new("profile-ctrl-c-twice"), busy());
    let (place, pid) = (folder.path("p.json"), busy.0.id().to_string());
    let child = watching(&place, &pid);
    let send = |signal| signal::kill(child.id().cast_signed(), signal).unwrap();
    // Both at once, before it can have ended. Of two alike the kernel keeps one: the second is another signal that means the
    // same.
    [Signal::Stop, Signal::Int, Signal::Term, Signal::Cont].into_iter().for_each(send);
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(ended.err.contains("once more gives it up"), "{}", ended.err);
    assert_eq!(read(&folder, "p.json").cut_short.as_deref(), Some("interrupted"));
}

#[test]
fn mistakes_have_three_lines() {
    let folder = Folder::new("profile-mistakes");
    let place = folder.path("p.json");
    let place = place.to_str().unwrap();
    let nobody = (i32::MAX - 1).to_string();
    let lines = |words: &[&str]| run(["profile", "-o", place].iter().chain(words)).failed().join("\n");
    assert!(lines(&["-p", &nobody]).contains("does not exist"));
    let (busy, pid) = (busy(), |running: &Running| running.0.id().to_string());
    assert!(
        lines(&["-p", &format!("{},{nobody}", pid(&busy))]).contains(&format!("{nobody} does not exist"))
    );
    assert!(lines(&["-a", "-C", "0,8191"]).contains("CPU 8191 is not there: this machine has CPU 0"));
    assert!(lines(&["-a", "-C", "3-2"]).contains("runs backwards"));
    assert!(lines(&["--", "no-such-program-here"]).contains("command -v no-such-program-here"));
    assert!(lines(&["-F", "0", "-p", "1"]).contains("from 1 to"));
    assert!(lines(&[]).contains("error: "));
    let own = Command::new("sh")
        .args(["-c", "exec \"$0\" profile -o /dev/null $$", env!("CARGO_BIN_EXE_dyno")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(Ended::of(own).failed()[0].contains("this profiler itself"));
    assert!(!std::path::Path::new(place).exists(), "nothing is written when nothing was recorded");
}
