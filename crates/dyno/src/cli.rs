//! The command line: every verb with its flags, in one place.
//!
//! `main` parses with this and hands each verb its struct. Nothing here reads a file or prints; of the machine it asks
//! only whether standard output is a terminal. A word that only the engine can judge (a dial's) stays a string here.

pub(crate) mod audit;
mod bytes;
mod causal;
mod clients;
mod compare;
mod content;
mod diagnose;
mod dials;
mod export;
mod flame;
mod hosts;
pub(crate) mod layout;
mod logs;
pub(crate) mod netlab;
mod offcpu;
mod pages;
mod profile;
mod sandbox;
pub(crate) mod specimen;
mod top;
pub(crate) mod tune;
mod words;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use dyno_sys::Pid;
use dyno_sys::affinity::CpuSet;
use dyno_sys::socket::Addr;

pub(crate) use audit::{Audit, Doctor};
pub(crate) use bytes::{BytesFlags, ON_SETTINGS};
pub(crate) use causal::Causal;
pub(crate) use clients::{ClientFlags, TrustedProxy};
pub(crate) use compare::Compare;
pub(crate) use content::ContentFlags;
pub(crate) use diagnose::{Diagnose, FailOn};
use dials::DialFlags;
pub(crate) use export::{Format, FormatFlag, Gate, Json};
pub(crate) use flame::{Answered, Counts, Flame};
pub(crate) use hosts::{ErrorPage, HeaderLine, HostFlags, SecurityWord};
pub(crate) use logs::LogFlags;
pub(crate) use offcpu::OffCpu;
pub(crate) use pages::{Completions, Man, Shell};
pub(crate) use profile::Profile;
use sandbox::SandboxWord;
pub(crate) use top::Top;
pub(crate) use tune::Tune;
use words::{ColorWhen, EXIT_STATUS, HELP, alpha, count, mode, percent, process, some, some_time};

/// `dyno` and its verb.
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version = crate::this_run::VERSION,
    about = "Serves HTTP, and measures what makes a server fast.",
    before_help = "Examples:
  dyno serve
  dyno load http://127.0.0.1:8080/json
  dyno climb",
    after_help = EXIT_STATUS,
    help_template = HELP
)]
pub(crate) struct Cli {
    /// What to do; without it the help is shown.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,

    /// Colour words: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_enum, hide_possible_values = true)]
    #[arg(value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
}

impl Cli {
    /// The command line, its help laid out for the terminal.
    pub(crate) fn laid_out() -> Command {
        layout::laid_out(Cli::command())
    }

    /// What this process was called with.
    pub(crate) fn from_command_line() -> Result<Cli, clap::Error> {
        let mut command = Cli::laid_out();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Serve(Box<Serve>),
    Top(Top),
    Floor(Floor),
    Load(Box<Load>),
    Judge(Judge),
    Compare(Compare),
    Climb(Box<Climb>),
    Report(Report),
    Profile(Box<Profile>),
    #[command(name = "offcpu")]
    OffCpu(Box<OffCpu>),
    Flame(Flame),
    Specimen(specimen::Specimen),
    Diagnose(Box<Diagnose>),
    Causal(Box<Causal>),
    Audit(Box<Audit>),
    Tune(Tune),
    Doctor(Doctor),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Netlab(netlab::Netlab),
}

/// `dyno serve`.
#[derive(Debug, Args)]
#[command(
    about = "Serves a folder, or the demonstration routes: /json, /plaintext, /echo and /hello/NAME.",
    before_help = "Examples:
  dyno serve public
  dyno serve --listen 127.0.0.1:8080 --listen unix:/tmp/dyno.sock --workers 1
  dyno serve dyno.toml --log off

Every setting is a flag, a variable of the environment and a key of the file: --idle-timeout,
DYNO_IDLE_TIMEOUT, and idle_timeout in the table [limits]. The flag wins over the variable, and that
over the file; --show-config tells who won. --naive turns every dial to what an ordinary first
version does, where the climb starts; a dial that is given wins over it.",
    after_help = "SIGTERM or Ctrl-C drains: nothing more is accepted, what was accepted is answered. A second one ends at once; the exit code is 0 either way. SIGHUP reads the settings and the content again, and SIGUSR2 has the program at the same path take over, both without a lost request. SIGUSR1 opens the logs anew, as after a rotation.",
    help_template = HELP
)]
pub(crate) struct Serve {
    /// A folder to serve, or a file with settings in TOML, - for standard input [default: the demonstration routes]
    #[arg(value_name = "DIR|FILE")]
    pub(crate) what: Option<PathBuf>,
    /// Say whether it would serve, and do not serve
    #[arg(long, help_heading = ON_SETTINGS)]
    pub(crate) check: bool,
    /// Print every setting and where it comes from, as a file for FILE, and do not serve
    #[arg(long, help_heading = ON_SETTINGS, conflicts_with = "check")]
    pub(crate) show_config: bool,
    #[command(flatten)]
    pub(crate) bytes: BytesFlags,

    #[command(flatten)]
    pub(crate) content: ContentFlags,
    /// Where to listen: 127.0.0.1:8080, [::1]:8080 or unix:/path; may be given again
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        help_heading = dials::WORKERS
    )]
    pub(crate) listen: Vec<Addr>,
    /// Permissions of the files of Unix sockets, octal as in chmod: 0660 [default: as the umask has it]
    #[arg(long, value_name = "MODE", value_parser = mode, help_heading = dials::WORKERS)]
    pub(crate) socket_mode: Option<u32>,
    /// Start from what an ordinary first version does
    #[arg(long, help_heading = dials::REQUEST)]
    pub(crate) naive: bool,
    #[command(flatten)]
    pub(crate) dials: DialFlags,

    /// Who workers run as, as NAME or NAME:GROUP, when started as root [default: nobody]
    #[arg(long, value_name = "USER", help_heading = dials::WORKERS)]
    pub(crate) user: Option<String>,

    /// Whether workers and helpers may do only what they need: on or off
    #[arg(
        long,
        value_name = "WORD",
        value_enum,
        default_value = "on",
        hide_possible_values = true,
        help_heading = dials::WORKERS
    )]
    pub(crate) sandbox: SandboxWord,

    #[command(flatten)]
    pub(crate) logs: LogFlags,
    /// How long a drain may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time, help_heading = "Log and end")]
    pub(crate) drain_timeout: Duration,

    /// How long the workers of old settings may take to finish after a reload
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = some_time, help_heading = "Log and end")]
    pub(crate) retire_timeout: Duration,
    /// How long a new version may take on SIGUSR2 until it serves
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time, help_heading = "Log and end")]
    pub(crate) hand_over_timeout: Duration,

    /// Serve /metrics (Prometheus, OpenMetrics) and /healthz there, by a process of its own [default: nowhere]
    #[arg(long, value_name = "ADDRESS", help_heading = "Watching")]
    pub(crate) metrics: Option<Addr>,
    /// Let --metrics be an address that others than this machine reach
    #[arg(long, help_heading = "Watching")]
    pub(crate) metrics_public: bool,

    #[command(flatten)]
    pub(crate) clients: ClientFlags,

    /// Connections of one worker
    #[arg(long, value_name = "N", default_value = "1M", value_parser = some, help_heading = "Limits")]
    pub(crate) connections_max: NonZeroUsize,
    /// A head must be complete this long after its first byte
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time, help_heading = "Limits")]
    pub(crate) header_timeout: Duration,
    /// A connection without a request is closed after this
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time, help_heading = "Limits")]
    pub(crate) idle_timeout: Duration,
    /// Of a body 1,000 bytes, or its end, must come in each stretch this long; a slower one gets 408
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time, help_heading = "Limits")]
    pub(crate) body_timeout: Duration,
    /// Close a connection whose client reads nothing for this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time, help_heading = "Limits")]
    pub(crate) write_timeout: Duration,
    /// Bytes of a request's body; longer ones get 413
    #[arg(long, value_name = "BYTES", default_value = "1048576", value_parser = count, help_heading = "Limits")]
    pub(crate) body_bytes_max: usize,
    /// Bytes that all connections may hold in memory [default: 256 MiB or an eighth of the memory]
    #[arg(long, value_name = "BYTES", value_parser = count, help_heading = "Limits")]
    pub(crate) buffer_bytes_max: Option<usize>,
    /// Bytes of a request's head; longer ones get 431
    #[arg(long, value_name = "BYTES", default_value = "32768", value_parser = some, help_heading = "Limits")]
    pub(crate) head_bytes_max: NonZeroUsize,
    /// Bytes of a request line; longer ones get 414
    #[arg(long, value_name = "BYTES", default_value = "8000", value_parser = some, help_heading = "Limits")]
    pub(crate) line_bytes_max: NonZeroUsize,

    /// An inherited SOCK_SEQPACKET socket for orders while it runs
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) control_fd: Option<i32>,
}

/// `dyno floor`.
#[derive(Debug, Args)]
#[command(
    about = "Answers every request with the same bytes, in the smallest loop that can: the yardstick.",
    before_help = "Examples:
  printf 'HTTP/1.1 204 No Content\\r\\n\\r\\n' | dyno floor --answer -
  dyno floor --listen unix:/tmp/floor.sock --answer answer
  curl -si http://127.0.0.1:8080/json > answer; dyno floor --listen 127.0.0.1:8081 --answer answer

It answers whatever comes, also what is no request: never expose it.",
    help_template = HELP
)]
pub(crate) struct Floor {
    /// Where to listen: 127.0.0.1:8080, [::1]:8080 or unix:/path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: Addr,
    /// The whole answer, head and body, sent as it is; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: PathBuf,
    /// Send head and body from two places in memory, by one writev
    #[arg(long, conflicts_with = "sendfile")]
    pub(crate) gather: bool,
    /// A file to send behind each answer, by sendfile
    #[arg(long, value_name = "FILE")]
    pub(crate) sendfile: Option<PathBuf>,
    /// Bytes of one request [default: the length of the first one]
    #[arg(long, value_name = "N", value_parser = some)]
    pub(crate) request_bytes: Option<NonZeroUsize>,
}

/// `dyno load`.
#[derive(Debug, Args)]
#[command(
    about = "Loads a server over HTTP/1.1 and says how fast it answered, as wrk does.",
    before_help = "Examples:
  dyno load http://127.0.0.1:8080/json
  dyno load -t1 -c64 -d30s --latency http://127.0.0.1:8080/plaintext
  dyno load --expect status=200 --expect body='Hello, World!' http://127.0.0.1:8080/plaintext

A closed loop: every connection sends its next request when the last one was answered, so latencies
are those under saturation. Every answer is checked; a wrong one is an error and never throughput.",
    help_template = HELP
)]
pub(crate) struct Load {
    /// What to ask for: http://HOST[:PORT][/PATH]
    pub(crate) url: String,

    /// Connections kept open
    #[arg(short, long, value_name = "N", default_value = "10", value_parser = some, help_heading = "How much")]
    pub(crate) connections: NonZeroUsize,
    /// Threads [default: 2, or one for each CPU of --pin]
    #[arg(short, long, value_name = "N", value_parser = some, help_heading = "How much")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// How long, as 10s, 2m or 300ms
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = some_time, help_heading = "How much")]
    pub(crate) duration: Duration,
    /// Requests sent together on each connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = some, help_heading = "How much")]
    pub(crate) pipeline: NonZeroUsize,
    /// CPUs to bind the threads to, as 1 or 0-2,5 [default: threads run where the scheduler puts them]
    #[arg(long, value_name = "CPUS", help_heading = "How much")]
    pub(crate) pin: Option<CpuSet>,

    /// Connect to this socket file instead of the URL's host, whose name is still sent; as curl has it
    #[arg(long, value_name = "PATH", help_heading = "The request")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Method of the request
    #[arg(short, long, value_name = "METHOD", default_value = "GET", help_heading = "The request")]
    pub(crate) method: String,
    /// A header field, as 'Name: value'; may be given again
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = "The request")]
    pub(crate) headers: Vec<String>,
    /// The body: text, or @FILE
    #[arg(long, value_name = "TEXT", help_heading = "The request")]
    pub(crate) body: Option<String>,
    /// Send the requests in this file in turn, whole ones byte for byte; the URL says only where to; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "headers", "body"], help_heading = "The request")]
    pub(crate) requests: Option<PathBuf>,

    /// A right answer: status=200, body=TEXT, body=@FILE or body-sha256=HEX; may be given again
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The answer")]
    pub(crate) expect: Vec<String>,
    /// The age at which an unanswered request counts as timed out
    #[arg(short = 'T', long, value_name = "TIME", default_value = "2s", value_parser = some_time, help_heading = "The answer")]
    pub(crate) timeout: Duration,

    /// Print the latency distribution
    #[arg(short = 'L', long, help_heading = "Output")]
    pub(crate) latency: bool,
    /// The server's process: tells its CPU per request, with all its threads and children
    #[arg(short, long, value_name = "PID", value_parser = process, help_heading = "Output")]
    pub(crate) pid: Option<Pid>,
    /// Also write the record, for dyno report and dyno judge
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Print the record; short for --format json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatFlag,
    #[command(flatten)]
    pub(crate) gate: Gate,

    /// wrk's Lua script: not yet
    #[arg(short, long, value_name = "SCRIPT", hide = true)]
    pub(crate) script: Option<String>,
    /// wrk2's open loop: not yet
    #[arg(short = 'R', long, value_name = "RATE", hide = true)]
    pub(crate) rate: Option<String>,
}

/// `dyno judge`.
#[derive(Debug, Args)]
#[command(
    about = "Says whether B is better than A, worse, or neither, with an interval.",
    before_help = "Examples:
  shuf -i 101-140 > before; shuf -i 81-120 > after; dyno judge before after
  go test -bench . -count 20 > new; dyno judge --unpaired --name BenchmarkServe old new
  dyno judge before.json after.json --fail-under 'total>=-2%'

A file holds numbers, one per line, or a JSON array of them, or what hyperfine --export-json or
go test -bench wrote; - is standard input. Lower is better unless --higher is given. Starts of a
program are told by lines '# start': then they are judged, not single numbers. Two records of dyno
climb, load, profile or diagnose are held against each other, figure by figure, with what else
changed and what that forbids to conclude. A climb's record alone is judged again: every verdict in
it must follow from its measurements.",
    after_help = "Exit status: 1 when B is worse, when a record's verdicts are not reached again, or when a condition is not met; 2 for an error.",
    help_template = HELP
)]
pub(crate) struct Judge {
    /// Numbers, or a record, of the side before; alone: a climb's record
    pub(crate) a: PathBuf,
    /// Numbers, or a record, of the side with the change
    pub(crate) b: Option<PathBuf>,
    /// The numbers have no common order: compare the two lists as wholes
    #[arg(long)]
    pub(crate) unpaired: bool,
    /// Chance of a difference where there is none
    #[arg(long, value_name = "SHARE", default_value = "0.01", value_parser = alpha)]
    pub(crate) alpha: f64,
    /// Higher is better
    #[arg(long)]
    pub(crate) higher: bool,
    /// Which benchmark of a file with several; given twice: A's, then B's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,

    /// Also write a page of two records; - prints it and nothing else
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Print one JSON object; short for --format json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatFlag,
    #[command(flatten)]
    pub(crate) gate: Gate,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

/// `dyno climb`.
#[derive(Debug, Args)]
#[command(
    about = "Turns one dial after another, measures each, keeps what is better, and says why.",
    before_help = "Examples:
  dyno climb
  dyno climb --time 60s --rung one-send --rung log-ring
  dyno climb --list

Without a plan it climbs dyno serve from its naive start. A plan in TOML climbs any server; it runs
commands: trust it like a Makefile.",
    after_help = EXIT_STATUS,
    help_template = HELP
)]
pub(crate) struct Climb {
    /// The plan of another server, in TOML [default: the built-in plan for dyno serve]
    pub(crate) plan: Option<PathBuf>,

    /// Time for all of it
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = some_time, help_heading = "What and how long")]
    pub(crate) time: Duration,
    /// Only this rung; may be given again
    #[arg(long, value_name = "NAME", help_heading = "What and how long")]
    pub(crate) rung: Vec<String>,
    /// Order of the rungs: default, given, reverse or shuffle:SEED
    #[arg(long, value_name = "ORDER", default_value = "default", help_heading = "What and how long")]
    pub(crate) order: String,
    /// What a gain must be worth for its risk: smaller ones are told and not kept [default: 1 %, or what is visible, the larger]
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "What and how long")]
    pub(crate) worthwhile: Option<f64>,
    /// Seed of every coin [default: another one each time; the record keeps it]
    #[arg(long, value_name = "N", help_heading = "What and how long")]
    pub(crate) seed: Option<u64>,
    /// Show the plan's rungs and measure nothing
    #[arg(long, help_heading = "What and how long")]
    pub(crate) list: bool,

    /// Show what would be started and which host settings written, and measure nothing
    #[arg(short = 'n', long, help_heading = "What and how long")]
    pub(crate) dry_run: bool,

    /// CPUs of the servers, as 0-2,5 [default: those that the generator leaves]
    #[arg(long, value_name = "CPUS", help_heading = "Where")]
    pub(crate) server_cpus: Option<CpuSet>,
    /// CPUs of the load generator [default: the last half of the cores]
    #[arg(long, value_name = "CPUS", help_heading = "Where")]
    pub(crate) load_cpus: Option<CpuSet>,
    /// Live servers per side, 2 to 8: fewer where memory is short, more where processes differ much
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(2..=8), help_heading = "Where")]
    pub(crate) instances: u8,
    /// Agree that a plan turns settings of this machine; they are put back at the end
    #[arg(long, help_heading = "Where")]
    pub(crate) allow_host_changes: bool,
    /// Put servers and load into two network namespaces joined by a virtual cable, and climb the network's rungs too; as root
    #[arg(long, help_heading = "Where")]
    pub(crate) netns: bool,

    /// Profile both sides of every measured rung too, a second each: flame graphs in the page
    #[arg(long, help_heading = "Output")]
    pub(crate) profile: bool,
    /// The record; the page lies beside it, with .html for its ending [default: climb.json]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Print the record; short for --format json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatFlag,
    #[command(flatten)]
    pub(crate) gate: Gate,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

/// `dyno report`.
#[derive(Debug, Args)]
#[command(
    about = "Draws a record again: the page into a file, the table onto the terminal.",
    before_help = "Examples:
  dyno report climb.json
  dyno report causal.json -o /tmp/causal.html
  dyno report climb.json -o - > page.html",
    help_template = HELP
)]
pub(crate) struct Report {
    /// The record of a climb, a causal profile, a load, a diagnosis, an audit or a comparison
    pub(crate) record: PathBuf,
    /// Where the page goes; - is standard output [default: RECORD with .html for its ending]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the record as it was read; short for --format json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) format: FormatFlag,
    #[command(flatten)]
    pub(crate) gate: Gate,
    /// The global choice.
    #[arg(from_global)]
    pub(crate) color: ColorWhen,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_example_of_the_help_is_a_line_that_parses() {
        let command = Cli::command();
        let helps = std::iter::once(&command).chain(command.get_subcommands());
        let texts = helps.filter_map(|help| help.get_before_help()).map(ToString::to_string);
        let lines: Vec<String> =
            texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let examples = lines.iter().filter(|line| line.starts_with("  "));
        let dynos: Vec<&str> = examples.map(|line| &line[line.rfind("dyno ").unwrap()..]).collect();
        let helps = 1 + command.get_subcommands().count();
        assert_eq!(dynos.len(), 3 * helps, "{dynos:#?}");
        for line in dynos {
            let line = line.split(" > ").next().unwrap();
            Cli::try_parse_from(words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    /// The words of a line as a shell sees them, as far as single quotes go.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn wrks_letters_stand_with_and_without_blanks() {
        let line = ["dyno", "load", "-t4", "-c", "5k", "-d30s", "-T", "1s", "-L", "http://h/", "-HX: y"];
        let Some(Verb::Load(load)) = Cli::try_parse_from(line).unwrap().verb else {
            panic!("load was asked for")
        };
        assert_eq!((load.threads.unwrap().get(), load.connections.get()), (4, 5_000));
        assert_eq!((load.duration.as_secs(), load.timeout.as_secs(), load.latency), (30, 1, true));
        assert_eq!(load.headers, ["X: y"]);
    }

    #[test]
    fn colour_is_chosen_before_or_after_the_verb() {
        for line in [["dyno", "--color", "never", "climb"], ["dyno", "climb", "--color", "never"]] {
            let Some(Verb::Climb(climb)) = Cli::try_parse_from(line).unwrap().verb else {
                panic!("climb was asked for")
            };
            assert_eq!(climb.color, ColorWhen::Never);
        }
    }
}
