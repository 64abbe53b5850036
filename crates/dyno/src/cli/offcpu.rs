//! The flags of `dyno offcpu`, named as those of `dyno profile` where they mean the same.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use dyno_measure::units::parse_duration;
use dyno_profile::offcpu::{By, Calls, Options, Timeline};
use dyno_sys::Pid;

use dyno_report::page::flame::Format;

use super::flame::formats;
use super::words::{HELP, count, process, some_time};

/// `dyno offcpu`.
#[derive(Debug, Args)]
#[command(
    about = "Watches what waits, in any native program: for what, how long, and who ended the wait.",
    before_help = "Examples:
  dyno offcpu --for 5s 4242
  dyno offcpu --timeline --for 2s -o server.json -p 4242
  dyno offcpu -- tar cf /dev/null /usr/share/doc

Every switch of the scheduler is seen, none is sampled. A process is watched with its threads, its
children, and what they start. Without --for it ends with the target, or with Ctrl-C.",
    after_help = "It needs root, or CAP_BPF and CAP_PERFMON, and Linux 5.17 with BTF; where BPF is refused, perf's records of
switches stand in, and tell less. Exit status: 130 after Ctrl-C, with
the profile written.",
    help_template = HELP,
    group = ArgGroup::new("waiting").required(true).multiple(true).args(["pid_alone", "pid", "command"])
)]
pub(crate) struct OffCpu {
    /// The process, as -p
    #[arg(value_name = "PID", value_parser = process, id = "pid_alone", conflicts_with_all = ["pid", "command"])]
    pub(crate) pid_alone: Option<Pid>,

    /// The process, with its threads and children; several as 12,13
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = process, help_heading = "What")]
    pub(crate) pid: Vec<Pid>,
    /// A command, started now and ended with the profile; what it prints goes to standard error. Behind -p it says how long
    /// that is watched (-p 4242 -- sleep 10)
    #[arg(last = true, value_name = "CMD", help_heading = "What")]
    pub(crate) command: Vec<OsString>,

    /// How long, as 12s or 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time, help_heading = "How")]
    pub(crate) time: Option<Duration>,
    /// Shorter waits count in the sums of their threads only
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = any_time, help_heading = "How")]
    pub(crate) min: Duration,
    /// Keep what each thread did when, for the picture of it
    #[arg(long, help_heading = "How")]
    pub(crate) timeline: bool,
    /// Count and time all system calls of the target too: each call on this machine becomes dearer meanwhile
    #[arg(long, conflicts_with = "no_bpf", help_heading = "How")]
    pub(crate) syscalls: bool,
    /// Not by BPF: tells less, and needs no root for your own processes where kernel.perf_event_paranoid is 1
    #[arg(long, conflicts_with = "timeline", help_heading = "How")]
    pub(crate) no_bpf: bool,
    /// Requests that it answers meanwhile: figures are then told per request
    #[arg(long, value_name = "N", value_parser = count, help_heading = "How")]
    pub(crate) requests: Option<usize>,

    /// The record, or another format by its ending; a record's page lies beside it, with .html for its ending; - is standard output [default: offcpu.json]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// What is written: html, svg, folded, pprof, firefox, speedscope or json [default: by the file's ending]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true, help_heading = "Output")]
    pub(crate) format: Option<Format>,
}

impl OffCpu {
    /// How it is watched.
    pub(crate) fn options(&self) -> Options {
        Options {
            duration: self.time,
            min: self.min,
            timeline: if self.timeline { Timeline::Recorded } else { Timeline::None },
            by: if self.no_bpf { By::Perf } else { By::Any },
            calls: if self.syscalls { Calls::Counted } else { Calls::Passed },
        }
    }
}

/// Also nothing: then every wait is kept.
fn any_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn parsed(words: &[&str]) -> Result<Box<OffCpu>, clap::Error> {
        let cli = Cli::try_parse_from(["dyno", "offcpu"].iter().chain(words))?;
        let Some(Verb::OffCpu(offcpu)) = cli.verb else { panic!("offcpu was asked for") };
        Ok(offcpu)
    }

    #[test]
    fn a_target_is_named_once_in_one_of_three_ways() {
        assert_eq!(parsed(&["12"]).unwrap().pid_alone, Some(12));
        assert_eq!(parsed(&["-p", "12,13"]).unwrap().pid, [12, 13]);
        assert_eq!(parsed(&["--", "ls", "-l"]).unwrap().command, ["ls", "-l"]);
        let beside = parsed(&["-p", "12", "--", "sleep", "1"]).unwrap();
        assert_eq!((beside.pid, beside.command.len()), (vec![12], 2));
        for words in [&[][..], &["12", "-p", "13"], &["12", "--", "ls"]] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn every_wait_may_be_asked_for() {
        assert_eq!(parsed(&["1", "--min", "0us"]).unwrap().min, Duration::ZERO);
        assert_eq!(parsed(&["1"]).unwrap().min, dyno_profile::offcpu::MIN_DEFAULT);
    }
}
