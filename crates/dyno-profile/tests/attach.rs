//! Watching one's own processes: what they do meanwhile, and what cannot be watched. Also without root, where the kernel
//! lets a user watch his own processes (kernel.perf_event_paranoid 2).
#![allow(clippy::unwrap_used)]

#[path = "common/watching.rs"]
mod watching;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_profile::{Error, Options, Recorder, Target, record};
use dyno_record::profile::{Profile, Stack};
use dyno_sys::{child, proc};

/// A shell that does nothing but count.
const BUSY: &str = "while :; do :; done";

/// Nothing here takes longer unless it is broken.
const DEADLINE: Duration = Duration::from_secs(20);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(script: &str) -> Running {
    Running(Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap())
}

/// One that does so once it is told.
fn shell_when_told(script: &str) -> Running {
    let script = format!("read _; {script}");
    Running(Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap())
}

impl Running {
    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

fn options(time: Duration) -> Options {
    Options { duration: Some(time), ..Options::default() }
}

/// `None` where this user has no right to it. With the right an error is a failure. Fault: `Session::open` that answers
/// [`Error::Refused`]; each test that watches is red then.
fn watched(target: Target, time: Duration) -> Option<Profile> {
    watching::may_watch().then(|| record(&target, &options(time), &AtomicBool::new(false)).unwrap())
}

/// The same of all of these, which are told to begin when they are watched, however long that took.
fn watched_from_the_first(mut all: Vec<&mut Running>, time: Duration) -> Option<Profile> {
    if !watching::may_watch() {
        return None;
    }
    let target = Target::Processes(all.iter().map(|one| one.pid()).collect());
    let recorder = Recorder::open(&target, &options(time)).unwrap();
    all.iter_mut().for_each(|one| one.0.stdin.take().unwrap().write_all(b"\n").unwrap());
    Some(recorder.record(&AtomicBool::new(false)).unwrap())
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::yield_now();
    }
}

/// Samples that there are at least of a process that has run for so long in its life, most of it watched: a quarter of those at
/// 999 Hz.
fn samples_min(ran_ns: u64) -> u64 {
    10 + ran_ns * 999 / 1_000_000_000 / 4
}

#[test]
fn a_busy_process_is_seen_busy_and_the_watcher_says_what_it_cost() {
    let busy = shell(BUSY);
    let Some(profile) = watched(Target::Process(busy.pid()), Duration::from_millis(700)) else { return };
    let ran_ns = proc::run_ns(busy.pid()).unwrap().min((profile.duration_s * 1e9) as u64);
    assert!(profile.sampling.samples >= samples_min(ran_ns), "{:?} {ran_ns}", profile.sampling);
    assert_eq!(profile.target.pid, Some(busy.pid().cast_unsigned()));
    assert!(!profile.target.name.is_empty() && profile.target.argv[0] == "sh");
    assert!((0.5..5.0).contains(&profile.duration_s) && profile.cut_short.is_none());
    assert!(profile.overhead.profiler_percent > 0.0);
    // A thread cannot have run longer than it was watched; a fifth more is the clock's and the loop's last round.
    assert!(profile.total_ns() as f64 <= 1.2e9 * profile.duration_s, "{} ns", profile.total_ns());
}

#[test]
fn an_idle_process_has_no_samples_and_is_told_so() {
    let idle = Running(Command::new("sleep").arg("60").spawn().unwrap());
    until("it sleeps", || proc::all_sleeping(idle.pid()));
    let Some(profile) = watched(Target::Process(idle.pid()), Duration::from_millis(200)) else { return };
    assert_eq!((profile.sampling.samples, profile.stacks.len()), (0, 0));
    assert!(profile.warnings.iter().any(|warning| warning.contains("no samples")), "{:?}", profile.warnings);
}

#[test]
fn a_target_that_ends_ends_the_profile_and_what_was_sampled_is_in_it() {
    let mut short = shell_when_told("exec timeout 0.5 sh -c 'while :; do :; done'");
    let begun = Instant::now();
    let Some(profile) = watched_from_the_first(vec![&mut short], Duration::from_secs(60)) else { return };
    assert!(begun.elapsed() < DEADLINE, "it ended half a second after it began");
    assert!(profile.cut_short.as_ref().unwrap().contains("ended"), "{:?}", profile.cut_short);
    assert!(profile.sampling.samples > 0);
}

#[test]
fn children_that_are_forked_meanwhile_are_watched_too() {
    let parent = shell(&format!("sleep 0.2; ({BUSY}) & ({BUSY}) & wait"));
    let Some(profile) = watched(Target::Process(parent.pid()), Duration::from_millis(1_200)) else { return };
    let busy: HashSet<u32> =
        profile.stacks.iter().map(|stack| profile.threads[stack.thread as usize].pid).collect();
    let children: Vec<_> = proc::tree(parent.pid()).into_iter().skip(1).collect();
    let ran_ns: u64 = children.iter().map(|child| proc::run_ns(*child).unwrap()).sum();
    children.into_iter().for_each(|child| {
        dyno_sys::signal::kill(child, dyno_sys::signal::Signal::Kill).unwrap();
    });
    assert!(busy.len() >= 2, "both children ran: {:?}", profile.threads);
    assert!(profile.sampling.samples >= samples_min(ran_ns), "{:?} of {ran_ns} ns", profile.sampling);
}

/// The kernel's own count of the whole run is the truth, whoever else uses the CPUs. Fault: `Sampling::flags` without
/// `INHERIT_STAT`, or `Short::settle` that drops: 0.07 of the truth is told then.
#[test]
fn children_that_end_before_a_sample_count_with_all_their_time() {
    let mut parent = shell_when_told("i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done");
    let Some(profile) = watched_from_the_first(vec![&mut parent], Duration::from_secs(60)) else { return };
    // Nobody has waited for it, so that it can still be asked.
    let told = profile.total_ns() as f64 / cpu_ns_with_children(parent.pid()) as f64;
    // Without the right to see the kernel only a part of the time makes samples.
    let sees_kernel = !profile.sampling.event.ends_with(":u");
    // Perf's clock runs on while a hypervisor has the CPU, the kernel's does not.
    assert!(!sees_kernel || (0.5..1.5).contains(&told), "{told} of the truth: {:?}", profile.warnings);
    let is_said = profile.warnings.iter().any(|warning| warning.contains("ended before a sample"));
    assert!(!sees_kernel || is_said, "{:?}", profile.warnings);
}

/// CPU time of a process and of its children that have ended, in the kernel's ticks of a hundredth of a second.
fn cpu_ns_with_children(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(4);
    10_000_000 * fields.map(|field| field.parse::<u64>().unwrap()).sum::<u64>()
}

#[test]
fn a_program_that_execs_is_seen_under_its_new_name_with_its_new_code() {
    let before = shell("sleep 0.2; exec yes > /dev/null");
    let Some(profile) = watched(Target::Process(before.pid()), Duration::from_millis(1_200)) else { return };
    assert_eq!((profile.target.name.as_str(), profile.target.argv[0].as_str()), ("yes", "yes"));
    let home = |stack: &Stack| {
        stack
            .frames
            .iter()
            .filter_map(|at| profile.frames[*at as usize].module)
            .any(|at| profile.modules[at as usize].path.ends_with("/yes"))
    };
    let in_yes: u64 = profile.stacks.iter().filter(|stack| home(stack)).map(|stack| stack.samples).sum();
    assert!(in_yes * 10 >= profile.sampling.samples * 8, "{in_yes} of {:?}", profile.sampling);
}

#[test]
fn one_thread_is_watched_alone() {
    let stop = AtomicBool::new(false);
    let spin = || {
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(spin);
        let busy = shell(&format!("({BUSY}) & {BUSY}"));
        let profile = watched(Target::Thread(busy.pid()), Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
        proc::tree(busy.pid()).into_iter().skip(1).for_each(|child| {
            dyno_sys::signal::kill(child, dyno_sys::signal::Signal::Kill).unwrap();
        });
        let Some(profile) = profile else { return };
        let tids: Vec<u32> = profile.threads.iter().map(|thread| thread.tid).collect();
        assert_eq!(tids, [busy.pid().cast_unsigned()]);
        assert_eq!(profile.target.scope, "thread");
    });
}

#[test]
fn a_stop_ends_it_at_once_with_what_there_is() {
    if !watching::may_watch() {
        return;
    }
    let busy = shell(BUSY);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let profile = std::thread::scope(|scope| {
        scope.spawn(|| {
            until("it runs", || proc::run_ns(busy.pid()).is_ok_and(|ns| ns > 500_000_000));
            stop.store(true, Ordering::Relaxed);
        });
        record(&Target::Process(busy.pid()), &options(Duration::from_secs(60)), &stop)
    });
    let profile = profile.unwrap();
    assert!(begun.elapsed() < DEADLINE);
    assert_eq!(profile.cut_short.as_deref(), Some("interrupted"));
    assert!(profile.sampling.samples > 0);
}

#[test]
fn what_is_not_there_is_a_zombie_or_is_ourselves_is_refused_by_name() {
    let refused =
        |pid| record(&Target::Process(pid), &options(DEADLINE), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(refused(i32::MAX - 1), Error::NoProcess { .. }));
    assert!(matches!(refused(child::this()), Error::Own { .. }));
    let ended = Running(Command::new("true").spawn().unwrap());
    until("it ends", || proc::stat(ended.pid()).is_ok_and(|stat| stat.state == 'Z'));
    assert!(matches!(refused(ended.pid()), Error::Zombie { .. }));
}

/// Fault: `Target::processes` that keeps the first alone; the second has no sample then.
#[test]
fn each_of_several_processes_is_watched_and_stands_in_the_record() {
    let (one, other) = (shell(BUSY), shell(BUSY));
    let pids = vec![one.pid(), other.pid()];
    let Some(profile) = watched(Target::Processes(pids), Duration::from_secs(1)) else { return };
    for pid in [&one, &other].map(|running| running.0.id()) {
        let of_it = |stack: &&Stack| profile.threads[stack.thread as usize].pid == pid;
        let samples: u64 = profile.stacks.iter().filter(of_it).map(|stack| stack.samples).sum();
        let ran_ns = proc::run_ns(pid.cast_signed()).unwrap().min((profile.duration_s * 1e9) as u64);
        assert!(samples >= samples_min(ran_ns), "{pid}: {samples} samples of {ran_ns} ns");
    }
    let also: Vec<u32> = profile.target.also.iter().map(|process| process.pid).collect();
    assert_eq!((profile.target.pid, also), (Some(one.0.id()), vec![other.0.id()]));
    assert_eq!(profile.target.also[0].name, "sh");
}

/// Fault: `is_gone` that asks for the first process alone; it ends after a fifth of a second then.
#[test]
fn several_are_watched_until_the_last_of_them_has_ended() {
    let mut first = shell_when_told("exec timeout 0.2 sh -c 'while :; do :; done'");
    let mut last = shell_when_told("exec sleep 0.7");
    let Some(profile) = watched_from_the_first(vec![&mut first, &mut last], DEADLINE) else { return };
    assert!((0.65..10.0).contains(&profile.duration_s), "{} s", profile.duration_s);
}

#[test]
fn a_wrong_one_of_several_is_named() {
    let busy = shell(BUSY);
    let pids = vec![busy.pid(), i32::MAX - 1];
    let refused = record(&Target::Processes(pids), &options(DEADLINE), &AtomicBool::new(false));
    assert!(matches!(refused, Err(Error::NoProcess { pid }) if pid == i32::MAX - 1), "{refused:?}");
}

#[test]
fn nothing_is_left_open_when_it_is_over() {
    let open = || {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .flatten()
            .filter(|fd| {
                std::fs::read_link(fd.path()).is_ok_and(|link| link.to_string_lossy().contains("perf_event"))
            })
            .count()
    };
    let busy = shell(BUSY);
    drop(watched(Target::Process(busy.pid()), Duration::from_millis(50)));
    // Other tests of this process may hold events of their own for a while.
    until("events are closed", || open() == 0);
}

/// Calls itself, so that no compiler folds all of it into `main`.
const JAVA: &str = "public class Main {
    static long fold(long value, int depth) {
        for (int i = 0; i < 200; i++)
            value = value * 31 + i;
        return depth == 0 ? value : fold(value, depth - 1) ^ depth;
    }
    public static void main(String[] words) {
        long sum = 0;
        for (long begun = System.nanoTime(), told = 0; ; ) {
            sum += fold(sum, 20);
            if (told == 0 && System.nanoTime() - begun > 1_000_000_000L) {
                System.out.println(\"ready\");
                told = 1;
            }
        }
    }
}";

/// Planted faults: frames are a word larger than they are (`frame_bytes + 8`), and no stack has its root; the class of a method is
/// looked for where its name is.
#[test]
fn a_java_programs_methods_have_names_and_callers_without_an_option() {
    let folder = std::env::temp_dir().join(format!("dyno-java-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("Main.java"), JAVA).unwrap();
    let compiled = Command::new("javac").arg("Main.java").current_dir(&folder).status().unwrap();
    assert!(compiled.success());
    let mut java = Running(
        Command::new("java").arg("Main").current_dir(&folder).stdout(Stdio::piped()).spawn().unwrap(),
    );
    let mut ready = [0; 5];
    java.0.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    let profile = watched(Target::Process(java.pid()), Duration::from_millis(700));
    std::fs::remove_dir_all(&folder).unwrap();
    let Some(profile) = profile else { return };
    let with = |name: &str| {
        let has = |stack: &&Stack| stack.frames.iter().any(|at| profile.frames[*at as usize].name == name);
        profile.stacks.iter().filter(has).map(|stack| stack.weight_ns).sum::<u64>() as f64
    };
    let shares = ["Main.fold", "Main.main", "JavaMain"].map(|name| with(name) / profile.total_ns() as f64);
    assert!(shares.iter().all(|share| *share > 0.8), "{shares:?} {:?}", profile.sampling);
}
