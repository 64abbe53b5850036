//! The flags of `dyno profile`, named as in `perf record` and samply where they mean the same.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use dyno_profile::{CallGraph, Event, Options};
use dyno_sys::Pid;
use dyno_sys::affinity::CpuSet;
use dyno_sys::perf::STACK_BYTES_MAX;

use dyno_report::page::flame::Format;

use super::flame::{SortWord, formats};
use super::words::{HELP, count, process, some_time};

/// `dyno profile`.
#[derive(Debug, Args)]
#[command(
    about = "Samples what runs, in any native program, and says where the CPU time goes.",
    before_help = "Examples:
  dyno profile --for 5s 4242
  dyno profile -F 99 --for 30s -o server.json -p 4242
  dyno profile -- sha256sum /usr/bin/git

It needs no rebuild, no agent and no frame pointers. A process is watched with its threads, its
children, and what they start. Without --for it ends with the target, or with Ctrl-C.",
    after_help = "Your own processes can be watched without root where kernel.perf_event_paranoid is 2; time in the kernel
is then not seen. Exit status: 130 after Ctrl-C, with the profile written.",
    help_template = HELP,
    group = ArgGroup::new("target").required(true).multiple(true).args(["pid_alone", "pid", "tid", "all", "command"])
)]
pub(crate) struct Profile {
    /// The process, as -p
    #[arg(value_name = "PID", value_parser = process, id = "pid_alone", conflicts_with_all = ["pid", "tid", "all", "command"])]
    pub(crate) pid_alone: Option<Pid>,

    /// The process, with its threads and children; several as 12,13
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = process, conflicts_with_all = ["tid", "all"], help_heading = "What")]
    pub(crate) pid: Vec<Pid>,
    /// One thread
    #[arg(short, long, value_name = "TID", value_parser = process, conflicts_with = "all", help_heading = "What")]
    pub(crate) tid: Option<Pid>,
    /// Everything that runs on this machine
    #[arg(short, long = "all", visible_alias = "all-cpus", help_heading = "What")]
    pub(crate) all: bool,
    /// With -a: only what runs on these CPUs, as 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", requires = "all", conflicts_with_all = ["pid_alone", "pid", "tid"], help_heading = "What")]
    pub(crate) cpus: Option<CpuSet>,
    /// A command, started now and ended with the profile; what it prints goes to standard error. Behind -p, -t or -a it
    /// says how long they are watched, as perf record has it (-p 4242 -- sleep 10)
    #[arg(last = true, value_name = "CMD", help_heading = "What")]
    pub(crate) command: Vec<OsString>,

    /// How long, as 12s or 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time, help_heading = "How")]
    pub(crate) time: Option<Duration>,
    /// Samples per second of CPU time
    #[arg(short = 'F', long = "freq", value_name = "HZ", default_value = "999", value_parser = frequency, help_heading = "How")]
    pub(crate) frequency: u64,
    /// What makes a sample: cpu-clock, or cycles where the machine counts them
    #[arg(
        short,
        long,
        value_name = "EVENT",
        default_value = "cpu-clock",
        value_enum,
        hide_possible_values = true,
        help_heading = "How"
    )]
    pub(crate) event: EventWord,
    /// How stacks are read: auto (by module), dwarf[,BYTES] or fp
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = stacks, help_heading = "How")]
    pub(crate) call_graph: Stacks,
    /// Stacks too, as with perf record; they always are
    #[arg(short = 'g', help_heading = "How")]
    pub(crate) graph: bool,
    /// Requests that it answers meanwhile: times are then told per request
    #[arg(long, value_name = "N", value_parser = count, help_heading = "How")]
    pub(crate) requests: Option<usize>,

    /// What the table of functions is sorted by: self, or total (with what they call)
    #[arg(
        long,
        value_name = "BY",
        default_value = "self",
        value_enum,
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) sort: SortWord,
    /// The record, or another format by its ending; a record's page lies beside it, with .html for its ending; - is standard output [default: profile.json]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// What is written: html, svg, folded, pprof, firefox, speedscope or json [default: by the file's ending]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true, help_heading = "Output")]
    pub(crate) format: Option<Format>,
}

/// What makes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventWord {
    /// The kernel's timer.
    CpuClock,
    /// The processor's counter.
    Cycles,
}

/// `--call-graph`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stacks {
    how: CallGraph,
    bytes: u32,
}

impl Profile {
    /// How it is watched.
    pub(crate) fn options(&self) -> Options {
        Options {
            event: match self.event {
                EventWord::CpuClock => Event::CpuClock,
                EventWord::Cycles => Event::Cycles,
            },
            frequency_hz: self.frequency,
            call_graph: self.call_graph.how,
            stack_bytes: self.call_graph.bytes,
            duration: self.time,
            ..Options::default()
        }
    }
}

/// The kernel takes no more by default (kernel.perf_event_max_sample_rate), and would spend the CPU on sampling alone.
const FREQUENCY_MAX: u64 = 50_000;

fn frequency(text: &str) -> Result<u64, String> {
    let frequency = text.parse().ok().filter(|frequency| (1..=FREQUENCY_MAX).contains(frequency));
    frequency.ok_or_else(|| format!("it must be a number from 1 to {FREQUENCY_MAX}"))
}

fn stacks(text: &str) -> Result<Stacks, String> {
    let (word, bytes) = text.split_once(',').map_or((text, None), |(word, bytes)| (word, Some(bytes)));
    let how = match word {
        "auto" => CallGraph::Auto,
        "dwarf" => CallGraph::Dwarf,
        "fp" if bytes.is_none() => CallGraph::FramePointers,
        _ => return Err("it is auto, dwarf, dwarf,BYTES or fp".to_owned()),
    };
    let bytes = bytes.map_or(Ok(Options::STACK_BYTES), |bytes| bytes.parse().map_err(|_| ()));
    let bytes = bytes.ok().filter(|bytes| (1_024..=STACK_BYTES_MAX).contains(bytes));
    let bytes = bytes.ok_or_else(|| format!("a stack is copied with 1024 to {STACK_BYTES_MAX} bytes"))?;
    Ok(Stacks { how, bytes })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn parsed(words: &[&str]) -> Result<Box<Profile>, clap::Error> {
        let cli = Cli::try_parse_from(["dyno", "profile"].iter().chain(words))?;
        let Some(Verb::Profile(profile)) = cli.verb else { panic!("profile was asked for") };
        Ok(profile)
    }

    #[test]
    fn a_target_is_named_once_in_one_of_five_ways() {
        assert_eq!(parsed(&["12"]).unwrap().pid_alone, Some(12));
        assert_eq!(parsed(&["-p", "12"]).unwrap().pid, [12]);
        assert_eq!(parsed(&["-t", "12"]).unwrap().tid, Some(12));
        assert!(parsed(&["-a"]).unwrap().all);
        assert_eq!(parsed(&["--", "ls", "-l"]).unwrap().command, ["ls", "-l"]);
        let beside = parsed(&["-p", "12", "--", "sleep", "1"]).unwrap();
        assert_eq!((beside.pid, beside.command.len()), (vec![12], 2));
        assert_eq!(parsed(&["-p", "12,13"]).unwrap().pid, [12, 13]);
        assert!(parsed(&["-p", "12,x"]).unwrap_err().to_string().contains("'x'"));
        let cpus = parsed(&["-a", "-C", "0,2-3"]).unwrap().cpus.unwrap();
        assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 2, 3]);
        assert!(parsed(&["-a", "-C", "3-2"]).is_err() && parsed(&["-C", "0", "--", "ls"]).is_err());
        for words in [
            &[][..],
            &["12", "-C", "0"],
            &["-p", "12", "-C", "0"],
            &["12", "-p", "13"],
            &["-a", "12"],
            &["12", "--", "ls"],
            &["-p", "1", "-t", "2"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn perfs_words_for_stacks_are_understood() {
        let stacks = |text: &str| stacks(text).map(|stacks| (stacks.how, stacks.bytes));
        assert_eq!(stacks("dwarf,32768"), Ok((CallGraph::Dwarf, 32_768)));
        assert_eq!(stacks("fp"), Ok((CallGraph::FramePointers, Options::STACK_BYTES)));
        assert!(
            ["lbr", "fp,1", "dwarf,1", "dwarf,99999", "dwarf,x"]
                .iter()
                .all(|text| super::stacks(text).is_err())
        );
    }

    #[test]
    fn a_frequency_has_bounds() {
        assert_eq!((frequency("99"), frequency("50000")), (Ok(99), Ok(50_000)));
        assert!(["0", "50001", "x", "-1"].iter().all(|text| frequency(text).is_err()));
    }
}
