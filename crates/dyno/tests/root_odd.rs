//! What is watched under odd conditions: by somebody without rights, on a kernel without its types, and by a profiler that
//! is killed.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Background, Ended, Folder, dyno, run};
use dyno_record::profile::Profile;
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::bpf;
use dyno_sys::signal::{Signal, kill};

/// Programs of BPF are counted on the whole machine: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// `dyno` with these words, run by another program; a copy that everybody may run, with lines wide enough to be searched.
fn under(words: &[&str], dyno_words: &[&str]) -> Ended {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let folder = Folder::new(&format!("odd-copy-{}", COPIES.fetch_add(1, Ordering::Relaxed)));
    let copy = folder.path("dyno");
    common::copy(env!("CARGO_BIN_EXE_dyno"), &copy);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(&copy).args(dyno_words).env("COLUMNS", "160");
    Ended::of(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
#[ignore = "needs root: CAP_SETUID"]
fn anothers_process_is_refused_to_nobody_in_three_lines() {
    let sleeper = Background::sleeper();
    for verb in ["profile", "offcpu"] {
        let said = under(&NOBODY, &[verb, "--for", "1s", "-o", "/dev/null", &sleeper.pid()]);
        let lines = said.failed();
        assert!(lines[2].contains("sudo dyno"), "{lines:?}");
    }
    let said = under(&NOBODY, &["diagnose", "--for", "400ms", &sleeper.pid()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("it needs root, or CAP_BPF and CAP_PERFMON"), "{}", said.out);
    assert!(said.out.contains("no rule had anything to look at"), "{}", said.out);
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, for a mount namespace"]
fn without_the_kernels_types_perf_stands_in_and_says_so() {
    let (folder, sleeper) = (Folder::new("odd-types"), Background::sleeper());
    let place = folder.path("off.json");
    // The types are hidden in a mount namespace of its own; nothing of this machine changes.
    let hidden = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" \"$@\""];
    let said = under(&hidden, &["offcpu", "--for", "300ms", "-o", place.to_str().unwrap(), &sleeper.pid()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("BPF is not to be had here"), "{}", said.out);
    let said = under(&hidden, &["diagnose", "--for", "400ms", &sleeper.pid()]);
    assert!(said.out.contains("BPF is not to be had here"), "{}", said.out);
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_watcher_that_is_killed_leaves_nothing_in_the_kernel() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (folder, sleeper) = (Folder::new("odd-killed"), Background::sleeper());
    let place = folder.path("off.json");
    let before = bpf::ids().unwrap();
    let words = ["offcpu", "--syscalls", "--for", "1h", "-o", place.to_str().unwrap(), &sleeper.pid()];
    let mut watcher = dyno(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let new = || {
        let (programs, links) = bpf::ids().unwrap();
        let count = |now: &[u32], before: &[u32]| now.iter().filter(|id| !before.contains(id)).count();
        (count(&programs, &before.0), count(&links, &before.1))
    };
    common::wait_for("its programs are in place", || new().1 >= 7);
    kill(watcher.id().cast_signed(), Signal::Kill).unwrap();
    watcher.wait().unwrap();
    // The kernel frees programs a grace period later.
    common::wait_for("the kernel is as before", || new() == (0, 0));
    assert!(!place.exists());
    let state = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.pid())).unwrap();
    assert!(state.contains(") S "), "the target sleeps on: {state}");
}

#[test]
#[ignore = "needs root: CAP_PERFMON"]
fn a_thread_of_the_kernel_has_no_place_in_user_mode() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = Folder::new("odd-kernel");
    let place = folder.path("off.json");
    let said = run(["offcpu", "--for", "300ms", "-o", place.to_str().unwrap(), "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("0x0"), "{}", said.out);
}

/// Fault: `while_command` that keeps "stopped by the user"; or a profile that goes on for its twenty seconds.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON"]
fn waits_are_watched_for_as_long_as_a_command_runs() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (folder, sleepers) = (Folder::new("odd-while"), [Background::sleeper(), Background::sleeper()]);
    let place = folder.path("off.json");
    let pids = sleepers.each_ref().map(Background::pid).join(",");
    for by in [&[][..], &["--no-bpf"]] {
        let words = ["offcpu", "--for", "20s", "-o", place.to_str().unwrap(), "-p", &pids];
        let said = run(words.iter().chain(by).chain(&["--", "sleep", "2"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let profile = Profile::from_json(&std::fs::read_to_string(&place).unwrap()).unwrap();
        assert!((1.0..10.0).contains(&profile.duration_s), "{} s", profile.duration_s);
        assert_eq!(profile.cut_short, None, "the command's end is the one that was asked for");
        let target = &profile.target;
        let all: Vec<String> =
            target.pid.iter().chain(target.also.iter().map(|other| &other.pid)).map(u32::to_string).collect();
        assert_eq!(all.join(","), pids);
    }
}

/// Fault: `Session::open_all` that opens all CPUs whatever was asked for; the busy one of the other CPU has samples then.
#[test]
#[ignore = "needs root: CAP_PERFMON"]
fn only_what_runs_on_the_cpus_that_were_asked_for_is_sampled() {
    let (folder, cpus) = (Folder::new("odd-cpus"), affinity::allowed().iter().take(2).collect::<Vec<_>>());
    let place = folder.path("p.json");
    let busy: Vec<Background> = cpus.iter().map(|cpu| busy_on(*cpu)).collect();
    let asked = cpus[0].to_string();
    let said = run(["profile", "--for", "700ms", "-o", place.to_str().unwrap(), "-a", "-C", &asked]);
    let pids: Vec<u32> = busy.iter().map(|one| one.0.id()).collect();
    drop(busy);
    assert_eq!(said.code, Some(0), "{said:?}");
    let profile = Profile::from_json(&std::fs::read_to_string(&place).unwrap()).unwrap();
    let samples = |pid: u32| {
        let of_it = profile.stacks.iter().filter(|stack| profile.threads[stack.thread as usize].pid == pid);
        of_it.map(|stack| stack.samples).sum::<u64>()
    };
    assert!(samples(pids[0]) > 20, "{:?}", profile.sampling);
    assert!(pids[1..].iter().all(|pid| samples(*pid) == 0), "{:?}", profile.threads);
    assert_eq!((profile.target.scope.as_str(), profile.target.name), ("machine", format!("CPU {asked}")));
}

/// A shell that does nothing but count, on one CPU.
fn busy_on(cpu: usize) -> Background {
    let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    affinity::set_process(child.id().cast_signed(), &CpuSet::single(cpu)).unwrap();
    Background(child)
}

/// Its first thread is a zombie for as long as the other lives.
const LEADERLESS: &str = r#"
#include <pthread.h>
#include <unistd.h>
static volatile unsigned long sum, done;
__attribute__((noinline)) static void part(void) { for (int i = 0; i < 2000000; i++) sum += i; }
__attribute__((noinline)) static void finish(void) { done++; }
static void *work(void *unused) { for (;;) { part(); finish(); usleep(500); } return unused; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0); pthread_exit(0); }
"#;

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn a_process_whose_first_thread_has_ended_is_watched_by_its_others() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = Folder::new("odd-leaderless");
    let (source, program) = (folder.file("leaderless.c", LEADERLESS), folder.path("leaderless"));
    let built = Command::new("cc").args(["-g", "-pthread", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    let running = Background(Command::new(&program).spawn().unwrap());
    let pid = running.0.id().cast_signed();
    common::wait_for("its first thread ends", || dyno_sys::proc::state(pid).is_ok_and(|state| state == 'Z'));
    let (place, pid) = (folder.path("record.json"), pid.to_string());
    let written = ["-o", place.to_str().unwrap(), pid.as_str()];
    let ended = [
        run([["offcpu", "--for", "400ms"].as_slice(), &written].concat()),
        run(["diagnose", "--for", "400ms", &pid]),
        run([["profile", "--for", "400ms"].as_slice(), &written].concat()),
        run([["causal", "--progress", "finish", "--site", "part", "--for", "1s"].as_slice(), &written]
            .concat()),
    ];
    drop(running);
    for ended in &ended {
        // A diagnosis may find what others on this machine do.
        assert!(matches!(ended.code, Some(0 | 1)) && ended.out.contains("leaderless"), "{ended:?}");
    }
    for named in &ended[2..] {
        assert!(named.out.contains("part"), "{named:?}");
    }
}
