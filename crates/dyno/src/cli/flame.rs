//! The command line of `dyno flame`, and the formats in which a profile can be written.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use dyno_measure::units::parse_count;

use dyno_report::page::flame::{Format, Order};

use super::words::{HELP, ZERO};

/// The words for formats, as the flag takes them.
pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    let words = PossibleValuesParser::new(Format::ALL.map(Format::word));
    words.map(|word| Format::named(&word).expect("the parser lets through the words of formats only"))
}

/// Which functions stand first in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortWord {
    /// By time of their own.
    #[value(name = "self")]
    Own,
    /// By time in them and in what they call.
    Total,
}

impl SortWord {
    /// The same for the report.
    pub(crate) fn order(self) -> Order {
        match self {
            SortWord::Own => Order::Own,
            SortWord::Total => Order::Total,
        }
    }
}

/// What the numbers of folded stacks count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Counts {
    /// Samples.
    Samples,
    /// Time: each one stands for so many nanoseconds.
    Time(f64),
}

/// How many requests were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// As many for each profile.
    Once(u64),
    /// Before and after.
    Twice([u64; 2]),
}

/// `dyno flame`.
#[derive(Debug, Args)]
#[command(
    about = "Draws a profile, compares two, or turns one into the format of another tool.",
    before_help = "Examples:
  dyno flame profile.json
  dyno flame --diff before.json after.json -o change.html
  dyno flame perf.data --format pprof

Reads the records of dyno profile and dyno offcpu, folded stacks, the text of perf script, and perf.data.
A comparison is per request where both profiles know how many were answered (or --requests says it),
else per second watched.",
    help_template = HELP
)]
pub(crate) struct Flame {
    /// What to draw; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "diff", conflicts_with = "diff")]
    pub(crate) files: Vec<PathBuf>,
    /// Draw what changed between two profiles: red grew, blue shrank
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    pub(crate) diff: Option<Vec<PathBuf>>,

    /// Requests answered meanwhile, to divide by; for --diff two numbers, as 10000,12000
    #[arg(long, value_name = "N", value_parser = requests, help_heading = "What it counts")]
    pub(crate) requests: Option<Answered>,
    /// What the numbers of folded stacks count: samples, ns, us, ms, or samples at a rate, as 99Hz
    #[arg(long, value_name = "WORD", default_value = "samples", value_parser = counts)]
    #[arg(hide_default_value = true, help_heading = "What it counts")]
    pub(crate) counts: Counts,

    /// Only what fell between two moments, in seconds from the beginning: 2,3.5 or 2, or ,3.5
    #[arg(long, value_name = "FROM,TO", value_parser = times, help_heading = "What it counts")]
    pub(crate) time: Option<(f64, f64)>,

    /// Only this thread, by its name or number; may be given again
    #[arg(long, value_name = "THREAD", help_heading = "What it counts")]
    pub(crate) thread: Vec<String>,

    /// Root at the top
    #[arg(long, help_heading = "Picture")]
    pub(crate) icicle: bool,
    /// A tower for each thread's name
    #[arg(long, help_heading = "Picture")]
    pub(crate) per_thread: bool,
    /// What the page's table of functions is sorted by: self, or total (with what they call)
    #[arg(long, value_name = "BY", default_value = "self", value_enum, hide_possible_values = true)]
    #[arg(conflicts_with = "diff", help_heading = "Picture")]
    pub(crate) sort: SortWord,

    /// html, svg, folded, pprof, firefox, speedscope or json [default: what FILE ends in, else html]
    #[arg(long, value_parser = formats(), value_name = "FORMAT", hide_possible_values = true, help_heading = "Output")]
    pub(crate) format: Option<Format>,
    /// Where it goes; - is standard output [default: the input's name with the format's ending]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

/// Two moments, as perf takes them; the one that is left out is the beginning or the end.
fn times(text: &str) -> Result<(f64, f64), String> {
    let (from, to) = text.split_once(',').ok_or("two moments have a comma between them, as 2,3.5")?;
    let moment = |text: &str, missing: f64| match text.trim() {
        "" => Ok(missing),
        text => {
            let moment = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
            moment.map_err(|_| format!("\"{text}\" is no number of seconds"))
        }
    };
    let (from, to) = (moment(from, 0.0)?, moment(to, f64::INFINITY)?);
    let in_order = from.is_finite() && from >= 0.0 && to > from;
    in_order.then_some((from, to)).ok_or_else(|| format!("{from} s does not come before {to} s"))
}

/// One number for all, or one for before and one for after.
fn requests(text: &str) -> Result<Answered, String> {
    let one = |text: &str| match parse_count(text.trim()).map_err(|error| error.to_string())? {
        0 => Err(ZERO.to_owned()),
        count => Ok(count),
    };
    match text.split_once(',') {
        Some((before, after)) => Ok(Answered::Twice([one(before)?, one(after)?])),
        None => one(text).map(Answered::Once),
    }
}

fn counts(text: &str) -> Result<Counts, String> {
    const NS_PER_S: f64 = 1e9;
    match text {
        "samples" => Ok(Counts::Samples),
        "ns" => Ok(Counts::Time(1.0)),
        "us" => Ok(Counts::Time(1e3)),
        "ms" => Ok(Counts::Time(1e6)),
        rate => {
            let hertz = rate.strip_suffix("Hz").or_else(|| rate.strip_suffix("hz"));
            let hertz = hertz.and_then(|hertz| hertz.trim().parse::<f64>().ok());
            let hertz = hertz.filter(|hertz| (1e-3..1e9).contains(hertz));
            let wrong = "it is none of samples, ns, us, ms and a rate, as 99Hz";
            hertz.map(|hertz| Counts::Time(NS_PER_S / hertz)).ok_or_else(|| wrong.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_numbers_are_samples_or_time() {
        assert_eq!(counts("samples"), Ok(Counts::Samples));
        assert_eq!(counts("us"), Ok(Counts::Time(1e3)));
        assert_eq!(counts("100Hz"), Ok(Counts::Time(1e7)));
        assert!(["0Hz", "Hz", "-1Hz", "fast"].iter().all(|word| counts(word).is_err()));
    }

    #[test]
    fn two_moments_are_in_order_and_either_may_be_left_out() {
        assert_eq!(times("2,3.5"), Ok((2.0, 3.5)));
        assert_eq!(times(" 2s, "), Ok((2.0, f64::INFINITY)));
        assert_eq!(times(",0.5"), Ok((0.0, 0.5)));
        assert!(["2", "3,2", "2,2", "-1,2", "a,b", "NaN,1", "inf,"].iter().all(|text| times(text).is_err()));
    }

    #[test]
    fn requests_are_one_number_or_two() {
        assert_eq!(requests("5k"), Ok(Answered::Once(5_000)));
        assert_eq!(requests("1,2"), Ok(Answered::Twice([1, 2])));
        assert!(["0", "1,0", "x", ","].iter().all(|text| requests(text).is_err()));
    }
}
