//! `dyno climb` with a server that the plan builds, a table in memory, a log on the disk: what is in force is proved, and what is
//! only written down is not.

#[path = "common/verdict.rs"]
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dyno_record::climb::{Attempt, Climb, RungVerdict, State};
use verdict::{interrupt, until_verdict};

const DYNO: &str = env!("CARGO_BIN_EXE_dyno");

/// Enough for two sides of one rung, built and trained, beside a neighbour that has half of the machine.
const TIME: &str = "24s";
/// The same where each answer waits for the disk.
const TIME_AT_DISK: &str = "20s";
/// The same where server and load, with all connections that there are, share two CPUs with the neighbour.
const TIME_SHARED: &str = "40s";

/// Climbs beside one another would have no time left for their rungs.
static MACHINE: Mutex<()> = Mutex::new(());

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A folder with an example plan, changed, and its source; and the climb there.
fn prepared(name: &str, example: &str, changes: &[(&str, &str)], arguments: &[&str]) -> (PathBuf, Command) {
    let folder = std::env::temp_dir().join(format!("dyno-built-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder for the test");
    let mut plan = fs::read_to_string(examples().join(example)).expect("an example");
    for (from, to) in changes {
        assert!(plan.contains(from), "{example} has no {from}");
        plan = plan.replace(from, to);
    }
    fs::write(folder.join("plan.toml"), plan).expect("a plan");
    fs::create_dir(folder.join("c")).expect("a folder for the source");
    fs::copy(examples().join("c/server.c"), folder.join("c/server.c")).expect("its source");
    let mut command = Command::new(DYNO);
    let time = match example {
        "log.toml" => TIME_AT_DISK,
        "order.toml" => TIME_SHARED,
        _ => TIME,
    };
    command.args(["climb", "plan.toml", "--time", time, "--instances", "2"]).args(arguments);
    command.current_dir(&folder).env("TMPDIR", &folder);
    (folder, command)
}

/// What became of one rung of an example plan with changes, climbed in a folder of its own.
fn attempt(name: &str, example: &str, changes: &[(&str, &str)], rung: &str) -> (Attempt, Option<State>) {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, command) = prepared(name, example, changes, &["--rung", rung]);
    let (_, talk) = until_verdict(command, rung);
    let json = fs::read_to_string(folder.join("climb.json")).unwrap_or_else(|_| panic!("no record: {talk}"));
    let _ = fs::remove_dir_all(&folder);
    let climb = Climb::from_json(&json).expect("a whole record");
    let found = climb.rungs.into_iter().find(|done| done.id == rung);
    let found = found.unwrap_or_else(|| panic!("no rung {rung}: {talk}"));
    (found.attempt, found.state)
}

fn assert_not_applied((attempt, state): (Attempt, Option<State>), wanted: &str) {
    assert_eq!(attempt.verdict, RungVerdict::NotApplied, "{}", attempt.why);
    assert_eq!(state, Some(State::NotInForce));
    assert!(attempt.why.contains(wanted), "{}", attempt.why);
}

#[test]
fn a_build_is_proved_on_every_server_of_both_sides() {
    let (attempt, _) = attempt("proved", "build.toml", &[], "optimised");
    let measured = !matches!(attempt.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured, "{}: {}", attempt.verdict.words(), attempt.why);
    let lines = &attempt.proof;
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line.read.starts_with("runs server, ")),
        "{lines:?}"
    );
    assert!(lines.iter().all(|line| line.holds == (line.side == "b")), "{lines:?}");
}

/// Planted fault: every build writes the same file, so that the last one built serves on both sides.
#[test]
fn a_build_that_writes_over_the_other_sides_is_not_applied() {
    let shared = [("\"{out}/server\"", "\"{scratch}/server\"")];
    // Nothing that is launched is of the build: that is found before anything is started.
    let (code, said) = dry_run(&shared);
    assert!(code == Some(2) && said.contains("names {out}"), "{said}");
    let named = [shared[0], ("[load]", "[launch.env]\nBUILT = \"{out}\"\n\n[load]")];
    assert_not_applied(
        attempt("same-file", "build.toml", &named, "optimised"),
        "the build left no file server",
    );
}

fn dry_run(changes: &[(&str, &str)]) -> (Option<i32>, String) {
    let text = fs::read_to_string(examples().join("build.toml")).expect("an example");
    let text = changes.iter().fold(text, |text, (from, to)| text.replace(from, to));
    static PLANS: AtomicU32 = AtomicU32::new(0);
    let number = PLANS.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("dyno-plan-{}-{number}.toml", std::process::id()));
    fs::write(&path, text).expect("a plan");
    let output = Command::new(DYNO).args(["climb", "--dry-run"]).arg(&path).output().expect("dyno runs");
    let _ = fs::remove_file(&path);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_dry_run_shows_every_step_of_a_build() {
    let (code, said) = dry_run(&[]);
    assert_eq!(code, Some(0), "{said}");
    for wanted in [
        "train     {out}/counting {address}:{port}, under load for 1000 ms, when profile=trained",
        "build     gcc {opt} {cpu} {link} {profile} {plan}/c/server.c -o {out}/server",
        r#"{opt} is ["-O2"] where the server is built"#,
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

/// Planted fault: the dial's word changes nothing in the code, and the files differ in a time stamp alone.
#[test]
fn two_builds_with_the_same_code_are_not_told_apart() {
    let idle = [
        ("words = [\"-O2\"]", "words = [\"-O0\", \"-DUNUSED=1\"]"),
        ("\"{link}\", \"{profile}\", ", "\"{link}\", \"{profile}\", \"-Wl,--build-id=uuid\", "),
    ];
    assert_not_applied(attempt("same-code", "build.toml", &idle, "optimised"), "cannot tell the sides apart");
}

/// Planted fault: the server that was built is there, and another one is started.
#[test]
fn a_build_that_is_not_what_runs_is_not_applied() {
    let other = [(
        "argv = [\"{out}/server\", ",
        "prepare = [\"gcc\", \"{plan}/c/server.c\", \"-o\", \"{scratch}/server\"]\nenv = { BUILT = \"{out}\" }\nargv = [\"{scratch}/server\", ",
    )];
    assert_not_applied(attempt("other", "build.toml", &other, "optimised"), "not the server that was built");
}

#[test]
fn a_build_that_fails_is_a_failed_rung_in_the_compilers_words() {
    let broken = [("words = [\"-O2\"]", "words = [\"-O2\", \"-DSIDE=*\"]")];
    let (attempt, _) = attempt("broken", "build.toml", &broken, "optimised");
    assert_eq!(attempt.verdict, RungVerdict::Failed, "{}", attempt.why);
    for wanted in ["the server cannot be built: gcc -O2 -DSIDE=*", "exit status 1", "error:"] {
        assert!(attempt.why.contains(wanted), "{wanted}: {}", attempt.why);
    }
}

#[test]
fn a_build_that_does_not_end_is_ended() {
    let slow = [
        ("argv = [\"{out}/server\", ", "build_ms = 3000\nargv = [\"{out}/server\", "),
        ("[load]", "[[launch.build]]\nwhen = \"opt=O2\"\nrun = [\"sleep\", \"60\"]\n\n[load]"),
    ];
    let (attempt, _) = attempt("endless", "build.toml", &slow, "optimised");
    assert_eq!(attempt.verdict, RungVerdict::Failed, "{}", attempt.why);
    assert!(attempt.why.contains("did not end within 3 s"), "{}", attempt.why);
}

/// Planted fault: a step is over when its first process is; then what it started runs beside the servers that are measured.
#[test]
fn what_a_step_leaves_in_the_background_has_ended_before_the_next() {
    let steps = r#"[[launch.build]]
run = ["sh", "-c", "sleep 600 & echo $! > {out}/left"]

[[launch.build]]
run = ["sh", "-c", "if kill -0 $(cat {out}/left); then echo it runs on; exit 1; fi"]

[load]"#;
    let (attempt, _) = attempt("left", "build.toml", &[("[load]", steps)], "optimised");
    let measured = !matches!(attempt.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured, "{}: {}", attempt.verdict.words(), attempt.why);
}

/// Whether a process runs a file of this name below the folder.
fn runs(folder: &Path, name: &str) -> bool {
    let exe = |process: fs::DirEntry| fs::read_link(process.path().join("exe")).ok();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(exe);
    all.into_iter().any(|exe| exe.starts_with(folder) && exe.ends_with(name))
}

/// Waits for what must come within half a minute.
fn awaited<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < until, "{what}: it did not come within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Planted fault: a training is one block; then Ctrl-C is heard when it is over.
#[test]
fn ctrl_c_is_heard_while_a_server_is_trained() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let long = [("for_ms = 1000", "for_ms = 120000")];
    let (folder, mut command) = prepared("interrupted", "build.toml", &long, &["--rung", "trained"]);
    let mut climb = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("dyno runs");
    awaited("the server that is trained", || runs(&folder, "counting").then_some(()));
    interrupt(&climb);
    let ended = awaited("its end", || climb.try_wait().expect("it was started here"));
    assert_eq!(ended.code(), Some(130));
    fs::remove_dir_all(folder).expect("its folder");
}

#[test]
fn a_training_guides_the_build_and_one_that_leaves_nothing_fails() {
    let (trained, _) = attempt("trained", "build.toml", &[], "trained");
    let measured = !matches!(trained.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured, "{}: {}", trained.verdict.words(), trained.why);
    // Planted fault: a server that counts nothing leaves no profile, and the last step would build without one.
    let (empty, _) = attempt("untrained", "build.toml", &[("\"-fprofile-generate\", ", "")], "trained");
    assert_eq!(empty.verdict, RungVerdict::Failed, "{}", empty.why);
    assert!(empty.why.contains("left no file in {out}"), "{}", empty.why);
}

/// A smaller table, so that many servers fit.
const SMALL: [(&str, &str); 2] = [("\"256\"", "\"64\""), ("rises = 200.0", "rises = 50.0")];

fn pages_are_asked_for() -> bool {
    let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    mode.contains("[madvise]")
}

#[test]
fn huge_pages_that_malloc_asks_for_are_proved_where_they_stand() {
    // After many builds memory is in pieces, and the kernel may have no huge page to give: it is put together, where this
    // user may ask for that.
    let _ = fs::write("/proc/sys/vm/compact_memory", "1");
    let (attempt, state) = attempt("huge", "table.toml", &SMALL, "huge-pages");
    if !pages_are_asked_for() {
        // "always" gives them to both sides, "never" to none: what malloc asks for changes nothing.
        return assert_not_applied((attempt, state), "not in force");
    }
    let measured = !matches!(attempt.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured, "{}: {}", attempt.verdict.words(), attempt.why);
}

/// Planted faults: the variable is set, and the process may have no huge pages; or the table is not malloc's.
#[test]
fn huge_pages_that_are_asked_for_and_not_given_are_not_applied() {
    let under = format!(
        "argv = [\"{DYNO}\", \"netlab\", \"under\", \"--pages\", \"small\", \"--\", \"{{out}}/server\""
    );
    let small = [SMALL[0], SMALL[1], ("argv = [\"{out}/server\"", under.as_str())];
    assert_not_applied(attempt("small", "table.toml", &small, "huge-pages"), "not in force");
    let mapped = [SMALL[0], SMALL[1], ("\"--table\", ", "\"--map\", \"--table\", ")];
    assert_not_applied(attempt("mapped", "table.toml", &mapped, "huge-pages"), "not in force");
}

/// Planted fault: the plan says that the log is written, and its words still have it synced.
#[test]
fn a_log_that_is_still_synced_is_not_applied() {
    let synced = [("{ name = \"written\", words = [", "{ name = \"written\", words = [\"--sync\", ")];
    assert_not_applied(attempt("synced", "log.toml", &synced, "log-written"), "not in force");
}

/// Server and load on the same two CPUs, so that each receives connections; nothing where there is one CPU.
fn ordered(name: &str, changes: &[(&str, &str)]) -> Option<(Attempt, Option<State>)> {
    let cpus: Vec<usize> = dyno_sys::affinity::allowed().iter().take(2).collect();
    let [first, second] = cpus[..] else {
        assert!(std::env::var_os("CI").is_none(), "CI has two CPUs, or this says nothing");
        eprintln!("not tested: there is one CPU");
        return None;
    };
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let both = format!("{first},{second}");
    let words = ["--rung", "listeners-ordered", "--server-cpus", &both, "--load-cpus", &both];
    let (folder, command) = prepared(name, "order.toml", changes, &words);
    let (_, talk) = until_verdict(command, "listeners-ordered");
    let json = fs::read_to_string(folder.join("climb.json")).unwrap_or_else(|_| panic!("no record: {talk}"));
    let _ = fs::remove_dir_all(&folder);
    let rung = Climb::from_json(&json).expect("a whole record").rungs.remove(0);
    Some((rung.attempt, rung.state))
}

/// Planted fault: connections are read at rest, when each tells of an acknowledgement; then those of both sides look local.
#[test]
fn listeners_in_the_right_order_are_proved_by_where_requests_come_in() {
    let Some((attempt, _)) = ordered("ordered", &[]) else { return };
    let measured = !matches!(attempt.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured, "{}: {}", attempt.verdict.words(), attempt.why);
    let read = |side: &str| -> Vec<&str> {
        attempt.proof.iter().filter(|line| line.side == side).map(|line| line.read.as_str()).collect()
    };
    assert!(!read("a").is_empty() && read("a").iter().all(|read| *read == "0"), "{:?}", attempt.proof);
    assert!(read("b").iter().all(|read| *read == "100"), "{:?}", attempt.proof);
}

/// Planted faults: the setting says that they are ordered, and the server lets the kernel spread connections, or still has them
/// the other way round.
#[test]
fn listeners_that_are_ordered_in_words_alone_are_not_applied() {
    for (name, other) in [("by-hash", "hash"), ("still-reversed", "reversed")] {
        let changed = format!("{{ name = \"ordered\", words = [\"--listeners\", \"{other}\"] }}");
        let words = [("{ name = \"ordered\", words = [\"--listeners\", \"ordered\"] }", changed.as_str())];
        let Some(found) = ordered(name, &words) else { return };
        assert_not_applied(found, "not in force: connections on their worker's CPU");
    }
}
