//! Ends a program with its load when we cannot: a shell in a process group of its own waits at a pipe that only we hold, and
//! the kernel closes it however we end. Each program of the strangers' task has one.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::command::command;
use crate::trouble::Trouble;

/// How long a script may take to end what it started.
pub(crate) const END_MAX: Duration = Duration::from_secs(10);

/// What dropping a program does: who was paused hears nothing; the script first, for it knows the order; then all that is
/// left of its group (dash knows `--` behind `-s` alone). The words are the group, which is the script's number too, and
/// fifths of a second.
const SCRIPT: &str = "read -r _
kill -s CONT -- \"-$1\"; kill -s TERM \"$1\"
left=$2
while [ \"$left\" -gt 0 ] && kill -0 \"$1\"; do sleep 0.2; left=$((left - 1)); done
kill -s KILL -- \"-$1\"";

/// A guard; dropping it ends it, and leaves the program alone.
pub(crate) struct Guard(Child);

impl Guard {
    /// Of this group.
    pub(crate) fn of(group: u32) -> Result<Guard, Trouble> {
        let looks = END_MAX.as_secs() * 5;
        let mut shell = command(["sh", "-c", SCRIPT, "guard", &group.to_string(), &looks.to_string()]);
        // Neither Ctrl-C at a terminal nor the end of our group ends it, and nobody waits for what it could say.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        shell.spawn().map(Guard).map_err(Trouble::cannot("run the guard of a program"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Killed before its pipe is closed by waiting.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Instant;

    use super::super::program::{Program, Start};
    use super::*;

    /// In the environment of the process that is to be killed: where its scripts are.
    const KILLED: &str = "DYNO_TEST_STRANGERS";
    const NAME: &str = "what_a_killed_task_has_started_is_ended_though_it_is_stopped_and_hears_no_signal";
    const WAIT_MAX: Duration = Duration::from_secs(60);

    /// Planted faults: no guard, a guard in our own group, one that sends no SIGTERM.
    #[test]
    fn what_a_killed_task_has_started_is_ended_though_it_is_stopped_and_hears_no_signal() {
        if let Some(folder) = std::env::var_os(KILLED) {
            be_killed(&PathBuf::from(folder));
        }
        let folder = std::env::temp_dir().join(format!("xtask-guard-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // The script ends as it should; its load does not, and the shell does not end it.
        let load = "(trap '' TERM HUP; while :; do sleep 1; done) &";
        let script = format!(
            "trap 'echo ended >{}; exit' TERM; trap '' HUP\n{load}\necho pid $!\nwait",
            folder.join("ended").display()
        );
        std::fs::write(folder.join("script.sh"), script).unwrap();
        let mut task = Command::new(std::env::current_exe().unwrap());
        let name = format!("{}::{NAME}", module_path!().split_once("::").unwrap().1);
        task.args(["--exact", &name, "--nocapture"]).env(KILLED, &folder).process_group(0);
        let mut task = task.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let told = || std::fs::read_to_string(folder.join("group")).unwrap_or_default();
        assert!(comes_true(|| told().ends_with('\n')), "it did not start");
        let group = told().trim().to_owned();
        assert!(!members(&group).is_empty());
        // As a terminal's or a limit's kill would: the whole group of the task.
        let whole = format!("-{}", task.id());
        assert!(command(["kill", "-KILL", "--", &whole]).status().unwrap().success());
        task.wait().unwrap();
        let gone = comes_true(|| members(&group).is_empty());
        let _ = command(["kill", "-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status();
        let ended = folder.join("ended").is_file();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(gone, "its load is left");
        assert!(ended, "the script was not asked to end");
    }

    /// Starts a program, stops it, tells its group, and waits to be killed.
    fn be_killed(folder: &Path) -> ! {
        let start = Start { name: "killed", script: "script.sh", variant: "-" };
        let program = Program::start(folder, folder, &start).unwrap_or_else(|trouble| panic!("{trouble}"));
        program.pause();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.pid())).unwrap();
        let group = fields(&stat)[2].to_owned();
        std::fs::write(folder.join("group"), format!("{group}\n")).unwrap();
        std::thread::sleep(WAIT_MAX);
        std::process::exit(1)
    }

    fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < WAIT_MAX {
            if holds() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Of /proc/PID/stat, those behind the name: state, parent, group.
    fn fields(stat: &str) -> Vec<&str> {
        stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect())
    }

    /// Who is in this group and has not ended.
    fn members(group: &str) -> Vec<String> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats
            .filter(|stat| matches!(fields(stat)[..], [state, _, of, ..] if of == group && state != "Z"))
            .collect()
    }
}
