//! What all verbs' command lines are made of: the shape of help, numbers, times and processes, and when to colour.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::ValueEnum;
use dyno_measure::units::{parse_count, parse_duration};
use dyno_report::Color;
use dyno_sys::Pid;

/// A sentence, examples, the usage, then what can be said, in groups of a task.
pub(super) const HELP: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// What is written, and where to.
pub(super) const OUTPUT: &str = "Output";

pub(super) const EXIT_STATUS: &str =
    "Exit status: 0 done, 1 the answer is no, 2 error, 3 the host could not be put back, 130 Ctrl-C.";

/// When words are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Also into a file.
    Always,
    /// Nowhere.
    Never,
}

/// Where text goes, as far as colour depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// Somebody looks at it.
    Terminal,
    /// A file, a pipe, a terminal that cannot do it, or a reader who does not want it.
    Plain,
}

impl Screen {
    fn of_stdout() -> Screen {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        // An empty NO_COLOR is none (no-color.org).
        let plain = set("NO_COLOR") || dumb || !std::io::stdout().is_terminal();
        if plain { Screen::Plain } else { Screen::Terminal }
    }
}

impl ColorWhen {
    /// The choice for standard output as it is.
    pub(crate) fn on_stdout(self) -> Color {
        self.on(Screen::of_stdout())
    }

    fn on(self, screen: Screen) -> Color {
        match (self, screen) {
            (ColorWhen::Always, _) | (ColorWhen::Auto, Screen::Terminal) => Color::Ansi,
            (ColorWhen::Never, _) | (ColorWhen::Auto, Screen::Plain) => Color::Plain,
        }
    }
}

pub(super) const ZERO: &str = "it must be more than 0";
pub(super) const TOO_LARGE: &str = "it is more than this machine can count";

pub(super) fn count(text: &str) -> Result<usize, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    usize::try_from(count).map_err(|_| TOO_LARGE.to_owned())
}

pub(super) fn some(text: &str) -> Result<NonZeroUsize, String> {
    NonZeroUsize::new(count(text)?).ok_or_else(|| ZERO.to_owned())
}

pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match u64::try_from(time.as_nanos()) {
        Ok(0) => Err(ZERO.to_owned()),
        Ok(_) => Ok(time),
        Err(_) => Err(TOO_LARGE.to_owned()),
    }
}

pub(super) fn alpha(text: &str) -> Result<f64, String> {
    // The judge's quantiles hold up to 1 - 1e-12; nobody has data for a billionth.
    let share = text.parse().ok().filter(|share| (1e-9..1.0).contains(share));
    share.ok_or_else(|| "it must be more than 0 and less than 1, as 0.01".to_owned())
}

/// A share of a hundred, with or without its sign.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let value = number.parse().ok().filter(|value| (0.0..100.0).contains(value));
    value.ok_or_else(|| "it must be at least 0 and less than 100, as 1% or 0.5".to_owned())
}

/// Permissions as chmod takes them; what is beyond read, write and execute a socket's file does not know.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "permissions are octal digits from 0 to 0777".to_owned())
}

pub(super) fn process(text: &str) -> Result<Pid, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| "it is not a process number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_not_a_time_or_a_number_of_connections() {
        assert_eq!(some("0"), Err(ZERO.to_owned()));
        assert_eq!(some_time("0s"), Err(ZERO.to_owned()));
        assert_eq!(some_time("999999999h"), Err(TOO_LARGE.to_owned()));
        assert_eq!(count("0"), Ok(0));
        assert!(some("many").is_err_and(|error| error.contains("\"many\" is not a count")));
    }

    #[test]
    fn shares_processes_and_permissions_have_bounds() {
        assert_eq!((mode("0660"), mode("777")), (Ok(0o660), Ok(0o777)));
        assert!(mode("1777").is_err() && mode("8").is_err() && mode("rw").is_err());
        assert_eq!(alpha("0.05"), Ok(0.05));
        assert!(["0", "1", "-1", "nan", "x"].iter().all(|text| alpha(text).is_err()));
        assert_eq!(process("1"), Ok(1));
        assert!(["0", "-1", "x", "99999999999"].iter().all(|text| process(text).is_err()));
    }

    #[test]
    fn colour_needs_a_terminal_and_a_reader_who_wants_it() {
        assert_eq!(ColorWhen::Auto.on(Screen::Plain), Color::Plain);
        assert_eq!(ColorWhen::Auto.on(Screen::Terminal), Color::Ansi);
        assert_eq!(ColorWhen::Always.on(Screen::Plain), Color::Ansi);
        assert_eq!(ColorWhen::Never.on(Screen::Terminal), Color::Plain);
    }
}
