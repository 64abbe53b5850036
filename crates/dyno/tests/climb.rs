//! `dyno climb` from the outside: real servers, short times, and every way to be stopped.

#[path = "common/schema.rs"]
mod schema;
#[path = "common/verdict.rs"]
mod verdict;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use dyno_measure::series::Side;
use dyno_record::climb::{Attempt, Climb, Effect, RungVerdict};
use dyno_record::trial::{Schedule, Stage};
use verdict::{interrupt, until_verdict};

const DYNO: &str = env!("CARGO_BIN_EXE_dyno");

/// Whoever judges what was measured has the machine to itself; the others share it.
static MACHINE: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

fn among_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of one test, removed when it passed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dyno-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a folder for the test");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file of the test");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A climb in a folder of its own, with scratch space in it, so that what it leaves can be told from others'.
fn climb(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(DYNO);
    command.arg("climb").args(arguments).current_dir(&folder.0).env("TMPDIR", &folder.0);
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    climb(folder, arguments).output().expect("dyno runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn record(folder: &Folder) -> Climb {
    let json = fs::read_to_string(folder.0.join("climb.json")).expect("the record was written");
    schema::holds("climb", &json);
    Climb::from_json(&json).expect("a whole record")
}

/// Waits for a condition, with a deadline.
fn wait_for(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes whose command line, folder or environment names this folder.
fn left_over(folder: &Folder) -> Vec<String> {
    let needle = folder.0.display().to_string();
    let of_process = |entry: fs::DirEntry| {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let cwd = fs::read_link(entry.path().join("cwd"))
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let whole = format!("{} {} {cwd}", text(&read("cmdline")), text(&read("environ")));
        whole.contains(&needle).then(|| text(&read("cmdline")).replace('\0', " "))
    };
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes.filter(|entry| entry.file_name().to_string_lossy() != own).filter_map(of_process).collect()
}

/// A plan for our own server with one dial, whose words are given.
fn plan(dial: &str, proof: &str) -> String {
    format!(
        r#"
name = "a test"
[launch]
argv = ["{DYNO}", "serve", "--listen", "127.0.0.1:{{port}}", "--workers", "1"]
[load]
path = "/json"
{dial}
[[rung]]
id = "change"
set = "choice=b"
claim = "a test"
proof = [{proof}]
"#
    )
}

const IDLE: &str = r#"[dial.choice]
how = "arg"
start = "a"
values = [{ name = "a", words = ["--idle-timeout", "60s"] }, { name = "b", words = ["--idle-timeout", "61s"] }]"#;
const IDLE_PROOF: &str =
    r#"{ kind = "command", argv = ["xargs", "-0n1", "-a", "/proc/{pid}/cmdline"], expect = "61s" }"#;

#[test]
fn a_short_climb_keeps_the_single_send_and_its_record_can_be_judged_and_drawn_again() {
    let _machine = alone();
    let folder = Folder::new("short");
    let output = run(&folder, &["--time", "45s", "--rung", "one-send", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let record = record(&folder);
    let talk = text(&output.stderr);
    let rung = &record.rungs[0];
    assert_eq!((rung.id.as_str(), rung.attempt.verdict), ("one-send", RungVerdict::Kept), "{talk}");
    // What it brings may be known to a fifth only, beside others; that it brings something is known.
    let brings = |gain: Effect| gain.interval_percent[0] < -10.0 && gain.interval_percent[1] < 0.0;
    assert!(rung.leave_one_out.is_some_and(brings), "{:?}", rung.leave_one_out);
    let proofs = &rung.attempt.proof;
    assert!(proofs.iter().all(|line| line.holds == (line.side == "b")), "{proofs:?}");
    let total = record.total.expect("there was time for a total");
    // The rung brings 10 % and more. On a quiet machine a total of these few pairs is known to 3 %: one of the same on both sides, or turned
    // round, is seen. Beside others it is known to a fifth, which its interval says; only one that is turned round (0.9) is seen then.
    let [low, high] = total.gain.interval;
    let least = if high - low < 0.1 { 1.1 } else { 1.0 };
    assert!(high > least, "{:?}", total.gain);
    assert!(record.floor.is_some_and(|floor| floor.ratio > 0.9), "{:?}", record.floor);
    assert!(text(&output.stdout).contains("one-send"), "{}", text(&output.stdout));
    let page = fs::read_to_string(folder.0.join("climb.html")).expect("the report");
    assert!(page.contains("Content-Security-Policy"));
    for verb in ["judge", "report"] {
        let again =
            Command::new(DYNO).args([verb, "climb.json"]).current_dir(&folder.0).output().expect("dyno runs");
        assert_eq!(again.status.code(), Some(0), "{verb}: {}", text(&again.stderr));
    }
    assert_eq!(left_over(&folder), Vec::<String>::new());
}

/// Beside its work this one burns 3 to 5 % of a CPU, by what the launch leaves running.
#[test]
fn a_server_that_burns_in_the_background_is_measured_one_instance_after_another() {
    let _machine = alone();
    const CHOICE: &str = r#"[dial.choice]
how = "arg"
start = "a"
values = [{ name = "a", words = ["--naive"] }, { name = "b", words = ["--idle-timeout", "61s"] }]"#;
    let folder = Folder::new("burning");
    let burning = r#""sh", "-c", "(while :; do sleep 0.02; done) & exec \"$@\"", "sh", "#;
    let plan = plan(CHOICE, IDLE_PROOF).replacen("argv = [", &format!("argv = [{burning}"), 1);
    folder.file("plan.toml", &plan);
    // Beside a busy neighbour it takes twice as long as without one.
    let (code, talk) =
        until_verdict(climb(&folder, &["plan.toml", "--time", "120s", "--seed", "5"]), "change");
    assert_eq!(code, Some(130), "{talk}");
    let record = record(&folder);
    let noise = |schedule: Schedule| {
        let mut of_noise = record.series.trials.iter().filter(|trial| trial.stage == Stage::Noise);
        let found = of_noise.find(|trial| trial.schedule == schedule);
        found.map(|trial| trial.trial.totals(Side::A).off_block_percent())
    };
    let (beside, in_turn) = (noise(Schedule::LivePairs), noise(Schedule::InTurn));
    assert!(beside.is_some_and(|percent| percent > 5.0), "{beside:?}: {talk}");
    assert!(in_turn.is_some_and(|percent| percent < 5.0), "{in_turn:?}: {talk}");
    let rung = &record.rungs[0].attempt;
    let trial = rung.trial.as_ref().and_then(|id| record.trial(id));
    assert_eq!(trial.map(|trial| trial.schedule), Some(Schedule::InTurn), "{talk}");
    assert!(rung.effect_percent.is_some_and(|percent| percent < -10.0), "{rung:?}");
    assert!(rung.proof.iter().all(|line| line.holds == (line.side == "b")), "{:?}", rung.proof);
    assert_eq!(left_over(&folder), Vec::<String>::new());
}

/// One climb with two faults beside a rung that changes nothing: a proof that cannot tell its sides apart, and a side that
/// dies. Neither is measured, so that the third has the time.
fn climb_with_faults() -> &'static (Climb, String) {
    static CLIMB: OnceLock<(Climb, String)> = OnceLock::new();
    CLIMB.get_or_init(|| {
        let _machine = alone();
        let folder = Folder::new("faults");
        let both = r#"{ kind = "command", argv = ["xargs", "-0n1", "-a", "/proc/{pid}/cmdline"], expect = "--idle-timeout" }"#;
        let rung = |id: &str, value: &str, proof: &str| {
            format!("\n[[rung]]\nid = \"{id}\"\nset = \"choice={value}\"\nclaim = \"a test\"\nproof = [{proof}]\n")
        };
        let never = r#", { name = "c", words = ["--idle-timeout", "never"] }]"#;
        let dial = IDLE.strip_suffix(']').expect("its values are a list").to_owned() + never;
        let faults = rung("both", "b", both) + &rung("dies", "c", IDLE_PROOF) + "[[rung]]";
        folder.file("plan.toml", &plan(&dial, IDLE_PROOF).replacen("[[rung]]", &faults, 1));
        let output = run(&folder, &["plan.toml", "--time", "24s", "--seed", "3"]);
        let talk = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{talk}");
        (record(&folder), talk)
    })
}

/// One of its rungs.
fn of_the_faults(rung: &str) -> &'static Attempt {
    let (record, talk) = climb_with_faults();
    let found = record.rungs.iter().find(|done| done.id == rung);
    &found.unwrap_or_else(|| panic!("no rung {rung}: {talk}")).attempt
}

#[test]
fn a_rung_that_changes_nothing_is_not_kept() {
    let attempt = of_the_faults("change");
    assert!(attempt.pairs > 0, "{}: {}", attempt.verdict.words(), attempt.why);
    assert_ne!(attempt.verdict, RungVerdict::Kept);
    assert_ne!(attempt.verdict, RungVerdict::NotApplied);
}

#[test]
fn a_proof_that_holds_on_both_sides_is_not_applied() {
    let attempt = of_the_faults("both");
    assert_eq!(attempt.verdict, RungVerdict::NotApplied);
    assert!(attempt.why.contains("cannot tell the sides apart"), "{}", attempt.why);
}

#[test]
fn a_side_that_dies_is_a_failed_rung_with_its_last_words() {
    let attempt = of_the_faults("dies");
    assert_eq!(attempt.verdict, RungVerdict::Failed);
    assert!(attempt.why.contains("exit status 2") && attempt.why.contains("never"), "{}", attempt.why);
}

#[test]
fn a_side_that_answers_another_body_is_a_failed_rung() {
    let _machine = among_others();
    let folder = Folder::new("wrong");
    let dial = r#"[dial.choice]
how = "template"
start = "a"
values = [{ name = "a", text = "Hello" }, { name = "b", text = "Hullo" }]"#;
    let own = format!(r#"argv = ["{DYNO}", "serve", "--listen", "127.0.0.1:{{port}}", "--workers", "1"]"#);
    let nginx = r#"argv = ["nginx", "-p", "{dir}", "-c", "{dir}/n.conf", "-e", "stderr"]
[launch.files]
"n.conf" = "daemon off; pid {dir}/pid; events {} http { access_log off; server { listen 127.0.0.1:{port}; location / { return 200 '{choice}'; } } }""#;
    let whole = plan(dial, r#"{ kind = "maps", contains = "libc" }"#)
        .replace("path = \"/json\"", "path = \"/index.html\"\nexpect_body = \"Hello\"")
        .replace(&own, nginx);
    folder.file("plan.toml", &whole);
    let (code, talk) = until_verdict(climb(&folder, &["plan.toml", "--time", "40s"]), "change");
    assert_eq!(code, Some(130), "{talk}");
    let attempt = &record(&folder).rungs[0].attempt;
    assert_eq!(attempt.verdict, RungVerdict::Failed, "{}", attempt.why);
    assert!(attempt.why.contains("Hullo"), "{}", attempt.why);
}

/// A plan for nginx, with its dial in the text of a server, and the load's path `/`.
fn nginx(server: &str, values: [&str; 2], proof: &str) -> String {
    let dial = format!(
        "[dial.choice]\nhow = \"template\"\nstart = \"a\"\nvalues = [{{ name = \"a\", text = \"{}\" }}, {{ name = \"b\", text = \"{}\" }}]",
        values[0], values[1]
    );
    let own = format!(r#"argv = ["{DYNO}", "serve", "--listen", "127.0.0.1:{{port}}", "--workers", "1"]"#);
    let launch = format!(
        r#"argv = ["nginx", "-p", "{{dir}}", "-c", "{{dir}}/n.conf", "-e", "stderr"]
[launch.files]
"n.conf" = "pid {{dir}}/pid; events {{}} http {{ access_log off; {server} }}""#
    );
    plan(&dial, proof).replace("path = \"/json\"", "path = \"/\"").replace(&own, &launch)
}

const ANY_PROOF: &str = r#"{ kind = "maps", contains = "libc" }"#;

/// Planted fault: each server is held against its own first answer, and one that answers nothing of what was asked is cheaper.
#[test]
fn a_side_that_answers_less_is_a_failed_rung_where_the_plan_says_nothing_of_the_body() {
    let _machine = among_others();
    let folder = Folder::new("less");
    let server = "server { listen 127.0.0.1:{port}; location / { return 200 '{choice}'; } }";
    let plan =
        nginx(server, [&"x".repeat(4_000), "{}"], ANY_PROOF).replace("pid {dir}", "daemon off; pid {dir}");
    folder.file("plan.toml", &plan);
    let (code, talk) = until_verdict(climb(&folder, &["plan.toml", "--time", "40s"]), "change");
    assert_eq!(code, Some(130), "{talk}");
    let attempt = &record(&folder).rungs[0].attempt;
    assert_eq!(attempt.verdict, RungVerdict::Failed, "{}", attempt.why);
    assert!(attempt.why.contains("wrong answer") && attempt.why.contains("{}"), "{}", attempt.why);
}

/// nginx goes into the background, and answers with the number of its process. Planted faults: what was launched has ended, so
/// the server has; and an answer that two servers of the start do not share is expected of all.
#[test]
fn a_daemon_whose_instances_answer_differently_is_measured_and_ended() {
    let _machine = among_others();
    let folder = Folder::new("daemon");
    let server =
        "keepalive_requests {choice}; server { listen 127.0.0.1:{port}; location / { return 200 $pid; } }";
    let proof = r#"{ kind = "command", argv = ["grep", "-o", "requests 900000", "{dir}/n.conf"], expect = "requests 900000" }"#;
    folder.file("plan.toml", &nginx(server, ["800000", "900000"], proof));
    let (code, talk) = until_verdict(climb(&folder, &["plan.toml", "--time", "40s"]), "change");
    assert_eq!(code, Some(130), "{talk}");
    let attempt = &record(&folder).rungs[0].attempt;
    assert!(attempt.pairs > 0, "{}: {}", attempt.verdict.words(), attempt.why);
    assert_eq!(left_over(&folder), Vec::<String>::new());
}

/// Planted fault: a page that is not there cannot be told from one that does not answer.
#[test]
fn a_page_that_only_the_change_has_proves_it() {
    let _machine = among_others();
    let folder = Folder::new("page");
    let server = "server { listen 127.0.0.1:{port}; location / { return 200 a; } {choice} }";
    let proof = r#"{ kind = "answer", path = "/new", contains = "here" }"#;
    let plan = nginx(server, ["location /old { return 404; }", "location /new { return 200 here; }"], proof)
        .replace("location / {", "location = / {")
        .replace("pid {dir}", "daemon off; pid {dir}");
    folder.file("plan.toml", &plan);
    let (code, talk) = until_verdict(climb(&folder, &["plan.toml", "--time", "40s"]), "change");
    assert_eq!(code, Some(130), "{talk}");
    let attempt = &record(&folder).rungs[0].attempt;
    assert!(attempt.pairs > 0, "{}: {}", attempt.verdict.words(), attempt.why);
    assert!(attempt.proof.iter().all(|line| line.holds == (line.side == "b")), "{:?}", attempt.proof);
}

/// Planted fault: the record of a climb that measured nothing is written over that of one that did.
#[test]
fn a_climb_that_never_began_leaves_the_last_record_as_it_was() {
    let _machine = among_others();
    let folder = Folder::new("never");
    let failing = plan(IDLE, IDLE_PROOF).replace("[load]", "prepare = [\"false\"]\n[load]");
    folder.file("plan.toml", &failing);
    let output = run(&folder, &["plan.toml", "--time", "5s"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let first = record(&folder);
    let why = first.cut_short.unwrap_or_default();
    assert!(why.contains("false") && first.plan == "a test", "{}: {why}", first.plan);
    for name in ["climb.json", "climb.html"] {
        folder.file(name, "the last good climb");
    }
    let output = run(&folder, &["plan.toml", "--time", "5s"]);
    assert_eq!(output.status.code(), Some(2));
    let talk = text(&output.stderr);
    assert!(talk.contains("nothing was measured; climb.json stays as it was"), "{talk}");
    for name in ["climb.json", "climb.html"] {
        assert_eq!(fs::read_to_string(folder.0.join(name)).expect("as before"), "the last good climb");
    }
}

#[test]
fn a_start_that_cannot_run_is_an_error_that_says_so() {
    let _machine = among_others();
    let folder = Folder::new("start");
    folder.file("plan.toml", &plan(IDLE, IDLE_PROOF).replace(DYNO, "/no/such/server"));
    let output = run(&folder, &["plan.toml", "--time", "5s"]);
    assert_eq!(output.status.code(), Some(2));
    let talk = text(&output.stderr);
    assert!(talk.contains("/no/such/server") && talk.contains("error:") && talk.contains("try:"), "{talk}");
}

#[test]
fn bad_input_is_named_before_anything_is_started() {
    let _machine = among_others();
    let folder = Folder::new("input");
    folder.file("typo.toml", &plan(IDLE, IDLE_PROOF).replace("claim =", "clame ="));
    for (arguments, wanted) in [
        (&["--rung", "warp"][..], "no rung \"warp\""),
        (&["--order", "sideways"], "--order cannot be \"sideways\""),
        (&["typo.toml"], "clame"),
        (&["missing.toml"], "missing.toml"),
        (&["-o", "no/such/folder/climb.json"], "no/such/folder/climb.json"),
        (&["--time", "soon"], "soon"),
        (&["--server-cpus", "1000"], "1000"),
    ] {
        let output = run(&folder, arguments);
        let talk = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {talk}");
        assert!(talk.contains(wanted), "{arguments:?}: {talk}");
    }
}

/// A plan that does everything a plan can do, and one rung more.
fn busy_plan() -> String {
    let launch = r#"prepare = ["make", "-C", "{plan}"]
env = { TUNED = "yes\u001b[2J" }
files = { "server.conf" = "workers 1\n  deep on" }
[load]"#;
    plan(IDLE, IDLE_PROOF).replacen("[load]", launch, 1)
        + r#"
[[rung]]
id = "other"
set = "choice=b"
claim = "another"
proof = [{ kind = "maps", contains = "x" }]
"#
}

#[test]
fn a_dry_run_shows_every_command_file_and_word_of_the_chosen_rungs() {
    let _machine = among_others();
    let folder = Folder::new("dry");
    folder.file("plan.toml", &busy_plan());
    let output = run(
        &folder,
        &["plan.toml", "--dry-run", "--rung", "change", "--server-cpus", "0", "--load-cpus", "0"],
    );
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for wanted in [
        "make -C {plan}",
        "TUNED=",
        "{dir}/server.conf",
        "|   deep on",
        "xargs -0n1 -a /proc/{pid}/cmdline",
        "--idle-timeout 61s",
        "--idle-timeout 60s",
        "load on 0, shared",
    ] {
        assert!(shown.contains(wanted), "{wanted} is missing: {shown}");
    }
    assert!(!shown.contains("other:") && !shown.contains('\u{1b}'), "{shown}");
    let list = text(&run(&folder, &["plan.toml", "--list", "--rung", "other"]).stdout);
    assert!(list.contains("another") && !list.contains("change"), "{list}");
}

#[test]
fn a_word_that_is_no_text_is_no_reason_to_panic() {
    let _machine = among_others();
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new("no-text");
    folder.file(
        "plan.toml",
        &plan(IDLE, IDLE_PROOF).replace("\"--workers\", \"1\"", "\"--workers\", \"none\""),
    );
    let mut command = climb(&folder, &["plan.toml", "--time", "5s", "-o"]);
    let output = command.arg(std::ffi::OsStr::from_bytes(b"bad\xff.json")).output().expect("dyno runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
}

#[test]
fn a_full_disk_takes_neither_the_table_nor_the_exit_code_of_an_interrupt() {
    let _machine = among_others();
    let folder = Folder::new("full");
    let mut command = climb(&folder, &["--time", "60s", "--rung", "one-send", "-o", "/dev/full"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("dyno runs");
    wait_for("servers", Duration::from_secs(20), || has_servers(&folder));
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (shown, talk) = (text(&output.stdout), text(&output.stderr));
    assert!(shown.contains("machine"), "the table is there: {shown}");
    assert!(talk.contains("the disk is full") && talk.contains("no record was written"), "{talk}");
    assert_eq!(output.status.code(), Some(130), "{talk}");
}

fn begun(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = climb(folder, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("dyno runs")
}

fn has_servers(folder: &Folder) -> bool {
    left_over(folder).iter().any(|process| process.contains(" serve "))
}

#[test]
fn an_interrupt_writes_what_was_measured_and_exits_130() {
    let _machine = among_others();
    let folder = Folder::new("interrupt");
    let mut child = begun(&folder, &["--time", "60s", "--rung", "one-send"]);
    wait_for("servers", Duration::from_secs(20), || has_servers(&folder));
    interrupt(&child);
    let mut talk = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut talk).expect("its talk");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{talk}");
    assert!(record(&folder).cut_short.is_some_and(|why| why.contains("interrupted")));
    assert!(fs::read_to_string(folder.0.join("climb.html")).expect("the report").contains("interrupted"));
    assert_eq!(left_over(&folder), Vec::<String>::new());
}

/// kill -9 at moments spread over the first seconds: start, noise, proofs, measuring.
fn killed_at_many_moments(name: &str, arguments: &[&str], server: &str) {
    let mut seen_alive = 0;
    for moment in 0..8_u32 {
        let folder = Folder::new(&format!("{name}-{moment}"));
        let mut child = begun(&folder, arguments);
        let lives = || left_over(&folder).iter().any(|process| process.contains(server));
        // Half of them from the first server on, however long a machine takes to come so far.
        if moment >= 4 {
            wait_for("a server", Duration::from_secs(20), lives);
        }
        let began = Instant::now();
        let due = Duration::from_millis(u64::from(moment) * 271);
        wait_for("the moment", Duration::from_secs(5), || began.elapsed() >= due);
        seen_alive += usize::from(lives());
        child.kill().expect("kill -9");
        child.wait().expect("it ends");
        let limit = Duration::from_secs(20);
        wait_for(&format!("nothing left after {due:?}"), limit, || left_over(&folder).is_empty());
    }
    assert!(seen_alive >= 4, "servers lived at {seen_alive} of 8 moments only: nothing was tested");
}

#[test]
fn a_killed_climb_leaves_no_process_behind() {
    let _machine = among_others();
    killed_at_many_moments("killed", &["--time", "60s", "--rung", "one-send"], " serve ");
}

#[test]
fn a_killed_climb_of_nginx_leaves_no_process_behind() {
    let _machine = among_others();
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.toml");
    killed_at_many_moments("killed-nginx", &[&plan.display().to_string(), "--time", "60s"], "nginx: master");
}

/// Planted fault: lines of any width, which a narrow terminal breaks where it likes.
#[test]
fn lists_and_dry_runs_fit_a_terminal_and_a_pipe_has_a_line_for_each() {
    let _machine = among_others();
    let folder = Folder::new("narrow");
    let lines = |words: &[&str], columns: Option<&str>| {
        let mut command = climb(&folder, words);
        command.env_remove("COLUMNS");
        columns.map(|columns| command.env("COLUMNS", columns));
        let output = command.output().expect("dyno runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for words in [&["--list"][..], &["-n", "--rung", "one-send"]] {
        for columns in ["40", "60", "80", "140"] {
            let wide: Vec<String> = lines(words, Some(columns))
                .into_iter()
                .filter(|line| line.chars().count() > columns.parse().expect("a number"))
                .collect();
            assert!(wide.is_empty(), "{words:?} at {columns}: {wide:#?}");
        }
    }
    // Fault: claims that begin wherever their rung's words end.
    let wide = lines(&["--list"], Some("140"));
    let at = |line: &String, word: &str| line.find(word).map(|byte| line[..byte].chars().count());
    let claims: Vec<_> = ["head and body in one send", "a log line is copied", "no line is formatted"]
        .iter()
        .map(|claim| wide.iter().find_map(|line| at(line, claim)))
        .collect();
    assert!(claims[0].is_some() && claims.windows(2).all(|two| two[0] == two[1]), "{claims:?}: {wide:#?}");
    let rungs = lines(&["--list"], None);
    assert!(rungs.iter().all(|line| line.contains('=')), "a rung is a line: {rungs:#?}");
}
