//! Running other programs: shown before they run, their exit turned into an outcome.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::trouble::{Outcome, Trouble};

/// The folder that stands before the PATH, once there is one.
static FIRST: OnceLock<PathBuf> = OnceLock::new();

/// From now on programs are looked for in this folder first, by us and by everything that we start. The first one stays.
pub(crate) fn find_first_in(folder: PathBuf) {
    let _ = FIRST.set(folder);
}

/// The folders of the PATH.
fn path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    FIRST.get().cloned().into_iter().chain(std::env::split_paths(&path)).collect()
}

fn with_path(mut command: Command) -> Command {
    if let (Some(_), Ok(path)) = (FIRST.get(), std::env::join_paths(path())) {
        command.env("PATH", path);
    }
    command
}

/// A command from its words.
pub(crate) fn command<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().as_ref().expect("a command has a first word").as_ref());
    command.args(words.map(|word| word.as_ref().to_owned()));
    with_path(command)
}

/// `cargo`, the one that runs us.
pub(crate) fn cargo<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    with_path(command)
}

/// Runs with our own output; a failure is the answer no.
pub(crate) fn run(command: &mut Command) -> Result<Outcome, Trouble> {
    eprintln!("$ {}", shown(command));
    let status = command.status().map_err(Trouble::cannot(format!("run {}", shown(command))))?;
    Ok(Outcome::done_if(|| status.success()))
}

/// Starts it with our own output, as lowly as programs can be, so that others hardly notice.
pub(crate) fn run_in_background(of: &mut Command) -> Result<Child, Trouble> {
    eprintln!("$ {} &", shown(of));
    lowly(of).stdin(Stdio::null()).spawn().map_err(Trouble::cannot(format!("run {}", shown(of))))
}

/// The same command in the kernel's class for what may wait: it yields at once to whoever wakes up (sched(7)). Where the
/// kernel shares the CPUs among sessions first (autogroup), that class says nothing outside of its session: so it has one of
/// its own, which gets a seventieth of what another one gets.
pub(crate) fn lowly(of: &Command) -> Command {
    const SCRIPT: &str = "echo 19 2> /dev/null > /proc/self/autogroup; exec chrt --idle 0 \"$@\"";
    in_own_session(&run_by(["sh", "-c", SCRIPT, LOWLY], of))
}

/// What the shells are called that wait for another session, and that step back.
const OWN_SESSION: &str = "own-session";
const LOWLY: &str = "lowly";

/// The same command in a session of its own: where the kernel shares the CPUs among sessions first, a program that goes
/// before others takes its whole session along (sched(7), autogroup), and it shall not take us and whatever runs beside us.
///
/// Ctrl-C at a terminal does not reach another session: the shell that waits for it, which is in ours, passes it on.
pub(crate) fn in_own_session(of: &Command) -> Command {
    // What a shell starts in the background hears no Ctrl-C otherwise.
    const SCRIPT: &str = "trap 'kill -KILL -$! $! 2> /dev/null; exit 130' INT TERM HUP; \
        setsid env --default-signal=INT,QUIT \"$@\" & wait $!";
    run_by(["sh", "-c", SCRIPT, OWN_SESSION], of)
}

/// The same command, with these words before it.
fn run_by<const N: usize>(by: [&str; N], of: &Command) -> Command {
    let words = of.get_args().map(|word| word.to_string_lossy().into_owned());
    let program = of.get_program().to_string_lossy().into_owned();
    let mut run = command(by.map(str::to_owned).into_iter().chain([program]).chain(words));
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    if let Some(folder) = of.get_current_dir() {
        run.current_dir(folder);
    }
    run
}

/// What it printed; a failure is trouble, with what it said.
pub(crate) fn output(command: &mut Command) -> Result<String, Trouble> {
    let run = command.stdin(Stdio::null()).output();
    let output = run.map_err(Trouble::cannot(format!("run {}", shown(command))))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let what = format!("{} ended with {}", shown(command), output.status);
        return Err(Trouble::new(what).likely(said.trim()));
    }
    String::from_utf8(output.stdout).map_err(Trouble::cannot(format!("read {}", shown(command))))
}

/// Its words, as one would type them.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let text = words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
    let behind = |text: String, shell: &str| match text.split_once(&format!(" {shell} ")) {
        Some((_, of)) => of.to_owned(),
        None => text,
    };
    let text = [OWN_SESSION, LOWLY].into_iter().fold(text, behind);
    // Cargo is started by its path; what one types is its name.
    match text.split_once(' ') {
        Some((program, rest)) if program.ends_with("/cargo") => format!("cargo {rest}"),
        _ => text,
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Where a program stands on the PATH, or in the folders of a system's own programs.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    // Debian keeps nginx in /usr/sbin, which is not on a plain user's PATH.
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    path().into_iter().chain(system).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        assert_eq!(shown(&command(["sh", "-c", "echo it's"])), "sh -c 'echo it'\\''s'");
        assert_eq!(shown(&command(["/usr/local/bin/cargo", "fmt"])), "cargo fmt");
        assert_eq!(shown(&lowly(&command(["/usr/local/bin/cargo", "build"]))), "cargo build");
    }

    /// Planted faults: the class without the session, and the session without the class.
    #[test]
    fn what_is_lowly_yields_inside_of_its_session_and_as_a_session() {
        let look = "chrt -p $$; cat /proc/$$/autogroup 2> /dev/null || true";
        let told = output(&mut lowly(&command(["sh", "-c", look]))).map_err(|error| error.to_string());
        let told = told.as_deref().unwrap_or_else(|error| panic!("{error}"));
        assert!(told.contains("SCHED_IDLE"), "{told}");
        assert!(!told.contains("autogroup") || told.contains("nice 19"), "{told}");
    }

    #[test]
    fn a_program_of_every_system_is_found_and_an_invented_one_is_not() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-here"), None);
    }

    #[test]
    fn a_failure_is_told_with_what_the_program_said() {
        let failed = output(&mut command(["sh", "-c", "echo broken >&2; exit 3"])).map_err(|e| e.to_string());
        assert!(failed.as_ref().is_err_and(|text| text.contains("broken")), "{failed:?}");
    }
}
