//! What a shell offers in the place of a value: processes, rungs, words of dials, ids of findings, specimens. Files, flags,
//! verbs and choices the command line knows itself.
//!
//! `dyno completions SHELL` prints a script; it asks this program with `DYNO_COMPLETE` set, and `answered` answers. Nothing
//! here changes anything, and what cannot be looked up is not offered.

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Shells, Zsh};
use dyno_climb::built_in::built_in;
use dyno_climb::rung::{HostHere, NetworkHere, Surroundings};
use dyno_engine::Dials;
use dyno_lab::specimens::catalogue;
use dyno_sys::{proc, trace};

use crate::cli::Cli;

/// Set by the shell's script, to the shell's name.
const ASKED_BY: &str = "DYNO_COMPLETE";

/// Nobody chooses from a longer list of processes by eye.
const PROCESSES_MAX: usize = 2_000;

/// What is offered.
type Values = fn() -> Vec<CompletionCandidate>;

/// Which values are offered where: the verb, the argument, what.
const PLACES: [(&[&str], &str, Values); 8] = [
    (&["climb"], "rung", rungs),
    (&["causal"], "progress", progress),
    (&["specimen", "explain"], "name", specimens),
    (&["specimen", "run"], "name", specimens),
    (&["tune", "plan"], "ids", findings),
    (&["tune", "apply"], "ids", findings),
    (&["tune", "apply"], "accept_risk", findings),
    (&["tune", "rollback"], "ids", findings),
];

/// Answers a shell that asks, and ends the process; returns where none asks.
pub(crate) fn answered() {
    CompleteEnv::with_factory(command).var(ASKED_BY).shells(Shells(&[&Bash, &Zsh, &Fish])).complete();
}

/// The script that a shell reads: it calls the program that is on the path then.
pub(crate) fn script(shell: &dyn EnvCompleter) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    shell.write_registration(ASKED_BY, "dyno", "dyno", "dyno", &mut text)?;
    if shell.is("zsh") {
        // Found in $fpath, the file is itself the function at its first call, and has only defined what answers.
        text.extend(b"[[ ${funcstack[1]} == _dyno ]] && _clap_dynamic_completer_dyno \"$@\"\n");
    }
    Ok(text)
}

/// The command line with what is offered for its values.
fn command() -> Command {
    let mut command = with_processes(<Cli as clap::CommandFactory>::command());
    for (verb, argument, values) in PLACES {
        command = at(command, verb, argument, values);
    }
    command.mut_subcommand("serve", |serve| serve.mut_args(with_words))
}

fn at(command: Command, verb: &[&str], argument: &str, values: Values) -> Command {
    match verb {
        [] => command.mut_arg(argument, |arg| arg.add(ArgValueCandidates::new(values))),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| at(inner, rest, argument, values)),
    }
}

/// Processes wherever one is named.
fn with_processes(command: Command) -> Command {
    let is_process = |arg: &Arg| arg.get_value_names().is_some_and(|names| names[0] == "PID");
    let offered = |arg: Arg| match is_process(&arg) {
        true => arg.add(ArgValueCandidates::new(processes)),
        false => arg,
    };
    command.mut_args(offered).mut_subcommands(with_processes)
}

/// The words of a dial, as the engine lists them.
fn with_words(arg: Arg) -> Arg {
    let Some(about) = Dials::ABOUT.iter().find(|about| about.name == arg.get_id().as_str()) else {
        return arg;
    };
    let words = about.choices.split(", ").flat_map(|part| part.split(" or "));
    let words: Vec<&str> = words.filter(|word| !word.contains(' ')).collect();
    arg.add(ArgValueCandidates::new(move || words.iter().map(CompletionCandidate::new).collect()))
}

fn said(value: impl Into<std::ffi::OsString>, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(StyledStr::from(dyno_report::number::visible(help))))
}

/// Those with a command line: the kernel's threads have none, and serve nothing.
fn processes() -> Vec<CompletionCandidate> {
    let names = proc::names("/proc", PROCESSES_MAX).unwrap_or_default();
    let mut pids: Vec<dyno_sys::Pid> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let told = |pid: dyno_sys::Pid| {
        let words = proc::command_line(pid).ok().filter(|words| !words.is_empty())?;
        Some(said(pid.to_string(), &words.join(" ")))
    };
    pids.into_iter().filter_map(told).collect()
}

/// Those of the built-in plan, the laboratory's too.
fn rungs() -> Vec<CompletionCandidate> {
    let plan = built_in(&Surroundings {
        program: "dyno".to_owned(),
        server_cpus: 2,
        congestion_controls: vec!["bbr".to_owned()],
        allocators: vec!["libmimalloc.so".to_owned()],
        network: Some(NetworkHere { server_mask: "1".to_owned(), host: HostHere::default() }),
    });
    plan.rungs.iter().map(|rung| said(&rung.id, &rung.claim)).collect()
}

fn progress() -> Vec<CompletionCandidate> {
    let forms = ["begin:", "tracepoint:"].map(CompletionCandidate::new);
    let calls = trace::call_names().map(|name| CompletionCandidate::new(format!("syscall:{name}")));
    calls.chain(forms).collect()
}

fn specimens() -> Vec<CompletionCandidate> {
    catalogue::all().iter().map(|specimen| said(&specimen.name, &specimen.title)).collect()
}

fn findings() -> Vec<CompletionCandidate> {
    dyno_diagnose::audit::catalogue().into_iter().map(|(id, about)| said(id, about)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap_complete::engine::complete;

    fn offered(line: &[&str]) -> Vec<String> {
        let words = line.iter().map(|word| (*word).into()).collect();
        let all = complete(&mut command(), words, line.len() - 1, None).unwrap();
        all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_place_is_one_of_the_command_line_and_has_something_to_offer() {
        for (verb, argument, values) in PLACES {
            let mut command = <Cli as clap::CommandFactory>::command();
            for name in verb {
                command = command.find_subcommand(name).unwrap().clone();
            }
            assert!(command.get_arguments().any(|arg| arg.get_id() == argument), "{verb:?} {argument}");
            assert!(!values().is_empty(), "{verb:?} {argument}");
        }
    }

    #[test]
    fn verbs_flags_choices_and_what_only_this_machine_knows_are_offered() {
        assert!(offered(&["dyno", "cl"]).contains(&"climb".to_owned()));
        assert!(offered(&["dyno", "climb", "--ru"]).contains(&"--rung".to_owned()));
        assert!(offered(&["dyno", "climb", "--color", "a"]).contains(&"auto".to_owned()));
        assert!(offered(&["dyno", "climb", "--rung", "one-"]).contains(&"one-send".to_owned()));
        assert_eq!(offered(&["dyno", "serve", "--log", "r"]), ["ring"]);
        assert!(offered(&["dyno", "specimen", "explain", "sync"]).contains(&"sync-log".to_owned()));
        let this = std::process::id().to_string();
        assert!(offered(&["dyno", "profile", ""]).contains(&this));
    }
}
