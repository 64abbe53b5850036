//! Runs a program for so long at most: what hangs is killed with everything that it started, and said.
//!
//! The tests' binaries are run by it, in sessions of their own (`command::in_own_session`), and what is built beside them. It
//! makes no process group itself, so that Ctrl-C at a terminal reaches what it starts as it reaches us; what belongs to a run
//! is known by its parents and by a mark in its environment.

use std::collections::BTreeSet;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command::{command as command_of, shown};
use crate::trouble::Trouble;

/// Between two looks whether it has ended: a run of a second is not noticeably longer for it.
const LOOK: Duration = Duration::from_millis(10);

/// Whoever forks until it stops may leave a child that was not seen: so often it is looked again.
const ROUNDS_MAX: usize = 20;

/// What was killed is gone when it next gets a CPU; what hangs in the kernel longer than this is left to it.
const GONE_MAX: Duration = Duration::from_secs(5);

/// USER_HZ, in which the kernel tells times: 100 on every machine that we know.
const TICKS_PER_S: u64 = 100;

/// What a process of a run has in its environment, before the run's own name.
const MARK: &str = "DYNO_TEST_RUN";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with success.
    Well,
    /// By itself, or by a signal that was not ours.
    Badly(ExitStatus),
    /// It was killed, so many processes of it.
    TooLate(usize),
}

/// How long a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) elapsed: Duration,
    /// Time on a CPU, of it and of all that was waited for by whoever started it.
    pub(crate) cpu: Duration,
}

/// Runs it with our own output.
///
/// # Errors
/// When it cannot be started or looked at.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<Ended, Trouble> {
    run_timed(command, limit).map(|(ended, _)| ended)
}

/// The same, and how long it took.
///
/// # Errors
/// When it cannot be started or looked at.
fn run_timed(command: &mut Command, limit: Duration) -> Result<(Ended, Took), Trouble> {
    let mut run = Run::start(command, limit)?;
    loop {
        if let Some(ended) = run.look()? {
            return Ok((ended, run.took()));
        }
        sleep(LOOK);
    }
}

/// A program that runs. Dropped before its end, it is killed with all that it started.
pub(crate) struct Run {
    what: String,
    mark: String,
    /// Until its end.
    child: Option<Child>,
    begun: Instant,
    limit: Duration,
    took: Took,
}

impl Run {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(command: &mut Command, limit: Duration) -> Result<Run, Trouble> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let what = shown(command);
        let begun = Instant::now();
        let child = command.env(MARK, &mark).spawn().map_err(Trouble::cannot(format!("run {what}")))?;
        Ok(Run { what, mark, child: Some(child), begun, limit, took: Took::default() })
    }

    /// How it ended, if it has: told once. Beyond its limit it is killed.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn look(&mut self) -> Result<Option<Ended>, Trouble> {
        let Some(child) = &mut self.child else { return Ok(None) };
        // Its times are to be read between its end and our waiting for it.
        let (may_have_ended, cpu) = ended_with(child.id());
        let status = match may_have_ended {
            true => child.try_wait().map_err(Trouble::cannot(format!("wait for {}", self.what)))?,
            false => None,
        };
        self.took = Took { elapsed: self.begun.elapsed(), cpu };
        if let Some(status) = status {
            self.child = None;
            return Ok(Some(if status.success() { Ended::Well } else { Ended::Badly(status) }));
        }
        match self.child.take_if(|_| self.took.elapsed >= self.limit) {
            Some(child) => killed(child, &self.mark).map(|count| Some(Ended::TooLate(count))),
            None => Ok(None),
        }
    }

    /// So far, or until its end.
    pub(crate) fn took(&self) -> Took {
        self.took
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            // Nobody is left who could be told.
            let _ = killed(child, &self.mark);
        }
    }
}

/// Whether a child of ours may have ended, and its time on a CPU until now with that of the children that it waited for.
fn ended_with(pid: u32) -> (bool, Duration) {
    let Some(fields) = stat_of(&pid.to_string()) else { return (true, Duration::ZERO) };
    let ended = fields.first().is_none_or(|state| state == "Z" || state == "X");
    (ended, ticks(&fields, 11..15))
}

/// Time on a CPU of all that we have waited for, and of what that has waited for.
pub(crate) fn children_cpu() -> Duration {
    stat_of("self").map_or(Duration::ZERO, |fields| ticks(&fields, 13..15))
}

/// The fields of /proc/PID/stat behind the name, which may hold anything: the third is the first here.
fn stat_of(pid: &str) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Of utime, stime, cutime and cstime, which are fields 14 to 17 (proc_pid_stat(5)): 11 to 14 here.
fn ticks(fields: &[String], which: std::ops::Range<usize>) -> Duration {
    let ticks = fields.get(which).unwrap_or_default().iter().filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 1_000 / TICKS_PER_S)
}

/// Kills all of a run; how many they were. All are stopped before the first is killed: a child that is born meanwhile is
/// found below its parent as long as that lives, whatever its environment.
fn killed(mut child: Child, mark: &str) -> Result<usize, Trouble> {
    let mut all = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let new: BTreeSet<u32> = of_run(child.id(), mark).difference(&all).copied().collect();
        if new.is_empty() {
            break;
        }
        send("STOP", &new);
        all.extend(new);
    }
    send("KILL", &all);
    // Stopped ones do not fork; what is left was born of the last that were not seen.
    for _ in 0..ROUNDS_MAX {
        let left = of_run(child.id(), mark);
        if left.is_empty() {
            break;
        }
        send("KILL", &left);
        all.extend(left);
    }
    // A signal is sent before it is obeyed: on a busy machine somebody whose parent is gone already may still be there.
    let begun = Instant::now();
    while all.iter().any(|pid| parent_of(*pid).is_some()) && begun.elapsed() < GONE_MAX {
        sleep(LOOK);
    }
    // Last of all: until then its number is nobody else's.
    child.wait().map_err(Trouble::cannot("wait for what was killed"))?;
    Ok(all.len())
}

fn send(signal: &str, pids: &BTreeSet<u32>) {
    let words = ["sh", "-c", &format!("kill -{signal} \"$@\" 2> /dev/null"), "sh"].map(str::to_owned);
    // One that has ended meanwhile is no trouble.
    let _ = command_of(words.into_iter().chain(pids.iter().map(u32::to_string))).status();
}

/// The processes of a run that live: the first one, its descendants, and those that have its mark.
fn of_run(first: u32, mark: &str) -> BTreeSet<u32> {
    let line = format!("{MARK}={mark}");
    let processes = processes();
    let mut found: BTreeSet<u32> =
        processes.iter().map(|(pid, _)| *pid).filter(|pid| has(*pid, &line)).collect();
    found.extend(processes.iter().map(|(pid, _)| *pid).filter(|pid| *pid == first));
    // A child may have a lower number than its parent, hence again until nothing is added.
    loop {
        let children =
            processes.iter().filter(|(pid, parent)| found.contains(parent) && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            return found;
        }
        found.extend(children);
    }
}

/// All processes that have not ended, with their parents.
fn processes() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

/// `None` for one that has ended.
fn parent_of(pid: u32) -> Option<u32> {
    let fields = stat_of(&pid.to_string())?;
    let state = fields.first()?;
    fields.get(1)?.parse().ok().filter(|_| state != "Z" && state != "X")
}

fn has(pid: u32, line: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == line.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::in_own_session;
    use std::os::unix::process::CommandExt;

    fn shell(script: &str, limit: Duration) -> Ended {
        run_within(&mut command_of(["sh", "-c", script]), limit).unwrap()
    }

    /// Far more than any of these programs takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_ends_in_time_ends_as_it_does() {
        assert_eq!(shell("exit 0", LONG), Ended::Well);
        assert!(matches!(shell("exit 3", LONG), Ended::Badly(status) if status.code() == Some(3)));
        assert!(matches!(shell("kill -TERM $$", LONG), Ended::Badly(status) if status.code().is_none()));
    }

    /// One child in the group, one in a session of its own whose parent is gone, one with nothing of the environment. Planted
    /// faults: who has no mark is not found by its parent; who has no parent is not found by its mark.
    #[test]
    fn what_hangs_is_killed_with_all_that_it_started_and_nothing_is_left() {
        let mark = std::env::temp_dir().join(format!("dyno-hangs-{}", std::process::id()));
        std::fs::create_dir_all(&mark).unwrap();
        let script = format!(
            "cd {} && echo $$ > a; (setsid sh -c 'echo $$ > b; exec sleep 600' &); \
             env -i sh -c 'echo $$ > c; exec sleep 600' & exec sleep 600",
            mark.display()
        );
        let mut run = Run::start(&mut command_of(["sh", "-c", &script]), LONG).unwrap();
        let begun = Instant::now();
        let pids = loop {
            let told = |name: &str| std::fs::read_to_string(mark.join(name)).ok()?.trim().parse().ok();
            let pids: Vec<u32> = ["a", "b", "c"].into_iter().filter_map(told).collect();
            if pids.len() == 3 {
                break pids;
            }
            assert!(begun.elapsed() < LONG, "only {} of 3 processes have begun", pids.len());
            assert_eq!(run.look().unwrap(), None);
            sleep(LOOK);
        };
        // All three have begun: now it is too late.
        run.limit = Duration::ZERO;
        let ended = run.look().unwrap();
        assert!(matches!(ended, Some(Ended::TooLate(3..))), "{ended:?}");
        let left: Vec<&u32> = pids.iter().filter(|pid| parent_of(**pid).is_some()).collect();
        assert!(left.is_empty(), "{left:?} of {pids:?} live");
        std::fs::remove_dir_all(mark).unwrap();
    }

    /// Fault: the words without `setsid`; then the whole session of the tests is where the killed one put it. Without root's
    /// rights nobody puts it before others.
    #[test]
    fn who_goes_before_others_does_not_take_us_along() {
        let place = || std::fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        let before = place();
        let words = ["sh", "-c", "echo 5 > /proc/$$/autogroup; exit 7"];
        let ended = run_within(&mut in_own_session(&command_of(words)), LONG).unwrap();
        assert!(matches!(ended, Ended::Badly(status) if status.code() == Some(7)), "{ended:?}");
        assert_eq!(place(), before);
    }

    /// Faults: no trap, where the other session lives on; no `--default-signal`, where what is started hears no Ctrl-C.
    #[test]
    fn ctrl_c_reaches_what_runs_in_a_session_of_its_own() {
        let own = |script: &str| in_own_session(&command_of(["sh", "-c", script]));
        let ended = run_within(&mut own("kill -INT $$; exit 5"), LONG).unwrap();
        assert!(matches!(ended, Ended::Badly(status) if status.code() == Some(130)), "{ended:?}");
        let file = std::env::temp_dir().join(format!("dyno-own-session-{}", std::process::id()));
        let mut command = own(&format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display()));
        // A terminal sends it to a group.
        let mut shell = command.process_group(0).spawn().unwrap();
        let begun = Instant::now();
        while !file.exists() {
            assert!(begun.elapsed() < LONG, "it has not begun");
            std::thread::yield_now();
        }
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let sent = command_of(["kill", "-INT", "--", &format!("-{}", shell.id())]).status().unwrap();
        assert!(sent.success() && shell.wait().unwrap().code() == Some(130));
        let lives = || parent_of(pid).is_some();
        while lives() && begun.elapsed() < GONE_MAX {
            sleep(LOOK);
        }
        let is_left = lives();
        send("KILL", &BTreeSet::from([pid]));
        assert!(!is_left, "{pid} lives");
        std::fs::remove_file(file).unwrap();
    }

    /// A shell that begins a child without the mark every millisecond. Fault: killing round by round what is seen; the last
    /// child is found by nothing then.
    #[test]
    fn what_goes_on_forking_leaves_nobody() {
        let word = format!("dyno-forks-{}", std::process::id());
        for _ in 0..6 {
            let script = format!(
                "i=0; while [ $i -lt 300 ]; do env -i sh -c 'sleep 600; : {word}' & i=$((i+1)); done; sleep 600"
            );
            assert!(matches!(shell(&script, Duration::from_millis(60)), Ended::TooLate(1..)));
            let named = |pid: &u32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains(&word)
            };
            let left: Vec<u32> = processes().into_iter().map(|(pid, _)| pid).filter(named).collect();
            send("KILL", &left.iter().copied().collect());
            assert!(left.is_empty(), "{left:?} live");
        }
    }

    /// Fault: `Run` without its `drop`; the second process lives then.
    #[test]
    fn what_is_dropped_before_its_end_is_killed_with_all_that_it_started() {
        let word = format!("dyno-dropped-{}", std::process::id());
        let script = format!("sh -c 'sleep 600; : {word}' & wait");
        let run = Run::start(&mut command_of(["sh", "-c", &script]), LONG).unwrap();
        let second = || {
            let named = |pid: &u32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).into_owned();
                line.contains(&word) && !line.contains("wait")
            };
            processes().into_iter().map(|(pid, _)| pid).find(named)
        };
        let begun = Instant::now();
        while second().is_none() {
            assert!(begun.elapsed() < LONG, "it has not begun");
            std::thread::yield_now();
        }
        drop(run);
        assert_eq!(second(), None);
    }

    /// Fault: utime and stime alone (`11..13`), where the time of what it waited for is lost.
    #[test]
    fn the_time_on_a_cpu_of_what_was_started_and_waited_for_is_told() {
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let (ended, took) =
            run_timed(&mut command_of(["sh", "-c", &format!("sh -c '{spin}'; exit 0")]), LONG).unwrap();
        assert_eq!(ended, Ended::Well);
        assert!(took.cpu >= Duration::from_millis(20), "{took:?}");
        // Two clocks: one counts ticks.
        assert!(took.cpu <= took.elapsed + Duration::from_millis(50), "{took:?}");
    }

    #[test]
    fn what_cannot_be_started_is_told() {
        let told = run_within(&mut command_of(["/no/such/program"]), LONG).unwrap_err().to_string();
        assert!(told.contains("/no/such/program"), "{told}");
    }
}
