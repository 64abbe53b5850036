//! The flags of `dyno causal`, named as those of `dyno profile` and `dyno load` where they mean the same.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use dyno_sys::Pid;

use super::words::{ColorWhen, HELP, process, some_time};

/// `dyno causal`.
#[derive(Debug, Args)]
#[command(
    about = "Says what it would bring if this function, line or wait were faster, by experiment.",
    before_help = "Examples:
  dyno causal 4242 --progress syscall:write
  dyno causal 4242 --load 'http://127.0.0.1:8080/json -c 64' --for 2m
  dyno causal --progress finish_item --site parse --site main.c:88 -- ./worker --all

It needs no rebuild, no agent and no change of the program. While a site runs all other threads are
paused for a while, so that the site is faster than they are; what that does to the progress point
is what making it faster would bring. Without --progress or --load it finds what to count.",
    after_help = "It needs root, or CAP_BPF and CAP_PERFMON, and Linux 5.17 with BTF. Exit status: 130 after Ctrl-C, with what
was measured written.",
    help_template = HELP,
    group = ArgGroup::new("tried").required(true).args(["pid_alone", "pid", "command"])
)]
pub(crate) struct Causal {
    /// The process, as -p
    #[arg(value_name = "PID", value_parser = process, id = "pid_alone")]
    pub(crate) pid_alone: Option<Pid>,

    /// The process, with all its threads
    #[arg(short, long, value_name = "PID", value_parser = process, help_heading = "What")]
    pub(crate) pid: Option<Pid>,
    /// A command, started now and ended with the experiments; what it prints goes to standard error
    #[arg(last = true, value_name = "CMD", help_heading = "What")]
    pub(crate) command: Vec<OsString>,
    /// Its children too, those that it has and those that it will have: a server's workers
    #[arg(long, help_heading = "What")]
    pub(crate) children: bool,
    /// Another process that takes part, such as a client on this machine; may be given again
    #[arg(long, value_name = "PID", value_parser = process, help_heading = "What")]
    pub(crate) participant: Vec<Pid>,

    /// What is counted: SYMBOL, SYMBOL+OFFSET, FILE:LINE, begin:SYMBOL,end:SYMBOL, tracepoint:NAME or syscall:NAME
    #[arg(long, value_name = "POINT", help_heading = "What is progress")]
    pub(crate) progress: Option<String>,
    /// Load it meanwhile, and count the answers unless --progress is given: what stands after 'dyno load', as 'URL -c 64'
    #[arg(long, value_name = "LOAD", help_heading = "What is progress")]
    pub(crate) load: Option<String>,

    /// What is made faster: SYMBOL, FILE:LINE, wait:disk, wait:lock, wait:network, wait:any or wait:FILE; may be given
    /// again [default: the functions with most samples]
    #[arg(long, value_name = "SITE", help_heading = "What is tried")]
    pub(crate) site: Vec<String>,
    /// What a function calls belongs to it (needs frame pointers)
    #[arg(long, help_heading = "What is tried")]
    pub(crate) inclusive: bool,
    /// How much faster, in percent
    #[arg(long, value_name = "LIST", default_value = "10,25,50", value_parser = levels, help_heading = "What is tried")]
    pub(crate) levels: Levels,
    /// Time for all of it
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = some_time, help_heading = "What is tried")]
    pub(crate) time: Duration,
    /// Seed of every coin [default: another one each time; the record keeps it]
    #[arg(long, value_name = "N", help_heading = "What is tried")]
    pub(crate) seed: Option<u64>,

    /// The record; the page lies beside it, with .html for its ending [default: causal.json]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Also a profile that Coz's viewer reads
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) coz: Option<PathBuf>,
    /// Print the record instead of the table; files only with -o
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

/// Virtual speed-ups in percent, each once, in rising order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels(pub(crate) Vec<u32>);

/// Each level takes its part of the budget; more than these leave none a narrow interval.
const LEVELS_MAX: usize = 10;

fn levels(text: &str) -> Result<Levels, String> {
    let percent = |word: &str| {
        let level = word.trim().trim_end_matches('%').trim().parse().ok();
        let level = level.filter(|level| (1..=100).contains(level));
        level.ok_or_else(|| format!("{word:?} is not a percentage from 1 to 100"))
    };
    let mut levels = text.split(',').map(percent).collect::<Result<Vec<u32>, String>>()?;
    levels.sort_unstable();
    levels.dedup();
    if levels.len() > LEVELS_MAX {
        return Err(format!("more than {LEVELS_MAX} levels leave none of them time"));
    }
    Ok(Levels(levels))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn parsed(words: &[&str]) -> Result<Box<Causal>, clap::Error> {
        let cli = Cli::try_parse_from(["dyno", "causal"].iter().chain(words))?;
        let Some(Verb::Causal(causal)) = cli.verb else { panic!("causal was asked for") };
        Ok(causal)
    }

    #[test]
    fn a_target_is_named_once_in_one_of_three_ways() {
        assert_eq!(parsed(&["12"]).unwrap().pid_alone, Some(12));
        assert_eq!(parsed(&["-p", "12"]).unwrap().pid, Some(12));
        assert_eq!(parsed(&["--", "ls", "-l"]).unwrap().command, ["ls", "-l"]);
        for words in [&[][..], &["12", "-p", "13"], &["12", "--", "ls"]] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn levels_are_percentages_in_rising_order() {
        assert_eq!(levels("50,10%, 25,10"), Ok(Levels(vec![10, 25, 50])));
        assert_eq!(parsed(&["12"]).unwrap().levels, Levels(vec![10, 25, 50]));
        assert!(
            ["", "0", "101", "-5", "ten", "1,2,3,4,5,6,7,8,9,10,11"].iter().all(|text| levels(text).is_err())
        );
    }

    #[test]
    fn sites_may_be_given_again_and_a_load_may_drive_what_another_point_counts() {
        assert_eq!(parsed(&["12", "--site", "f", "--site", "wait:disk"]).unwrap().site, ["f", "wait:disk"]);
        let both = parsed(&["12", "--progress", "f", "--load", "http://h/ -c 8"]).unwrap();
        assert!(both.progress.is_some() && both.load.is_some());
    }
}
