//! The flags of `dyno serve` that are about a host: redirects, header lines, error pages, the lines for safety.
//!
//! In a file they stand in the table `[content]` for whoever asks by a name that is nobody's, and in each `[[host]]`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use dyno_engine::{Host, HostError, Redirect, Security};

/// The group of these flags in the help, with all that are about a folder.
pub(super) const CONTENT: &str = "Content";

/// A header line, `Name: value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderLine {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for HeaderLine {
    type Err = String;

    fn from_str(text: &str) -> Result<HeaderLine, String> {
        let Some((name, value)) = text.split_once(':') else {
            return Err("it takes a name, a colon and a value, as in \"X-Robots-Tag: noindex\"".to_owned());
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let _ = Host::any().header(&name, &value).map_err(|error| error.to_string())?;
        Ok(HeaderLine { name, value })
    }
}

/// A status and the file that is sent with it, `404 404.html`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorPage {
    pub(crate) status: u16,
    pub(crate) file: String,
}

impl FromStr for ErrorPage {
    type Err = String;

    fn from_str(text: &str) -> Result<ErrorPage, String> {
        let (status, file) = text.trim().split_once(' ').unwrap_or_default();
        let Ok(status) = status.parse() else {
            return Err("it takes a status and a file below the root, as in \"404 404.html\"".to_owned());
        };
        let file = file.trim().to_owned();
        let _ = Host::any().error_page(status, &file).map_err(|error: HostError| error.to_string())?;
        Ok(ErrorPage { status, file })
    }
}

/// Whether the lines for safety are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecurityWord {
    /// Only what `--header` says.
    None,
    /// nosniff, a referrer policy, no frames of other sites.
    Preset,
}

impl From<SecurityWord> for Security {
    fn from(word: SecurityWord) -> Security {
        match word {
            SecurityWord::None => Security::None,
            SecurityWord::Preset => Security::Preset,
        }
    }
}

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct HostFlags {
    /// Lead from a path to another place: '301 /old /new', '308 /blog/* https://blog.example.org/*'; may be given again
    #[arg(long, value_name = "'STATUS FROM TO'", help_heading = CONTENT)]
    pub(crate) redirect: Vec<Redirect>,
    /// Send this line with every reply, as 'Name: value'; an empty value takes one of the preset away; may be given again
    #[arg(long, value_name = "LINE", help_heading = CONTENT)]
    pub(crate) header: Vec<HeaderLine>,
    /// Send a file of the folder with replies of a status, as '404 404.html'; may be given again
    #[arg(long, value_name = "'STATUS FILE'", help_heading = CONTENT)]
    pub(crate) error_page: Vec<ErrorPage>,
    /// Header lines for safety: preset (nosniff, a referrer policy, no frames of other sites) or none
    #[arg(
        long,
        value_name = "WORD",
        value_enum,
        hide_possible_values = true,
        default_value = "none",
        help_heading = CONTENT
    )]
    pub(crate) security_headers: SecurityWord,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_what_cannot_be_sent_is_refused() {
        let line = |name: &str, value: &str| HeaderLine { name: name.to_owned(), value: value.to_owned() };
        assert_eq!("X-A:  b: c ".parse(), Ok(line("X-A", "b: c")));
        assert_eq!("X-A:".parse(), Ok(line("X-A", "")));
        assert!("X-A".parse::<HeaderLine>().is_err() && "X A: b".parse::<HeaderLine>().is_err());
        assert!("ETag: x".parse::<HeaderLine>().is_err() && "X: a\r\nY: b".parse::<HeaderLine>().is_err());
        assert_eq!("404 a b.html".parse(), Ok(ErrorPage { status: 404, file: "a b.html".to_owned() }));
        for text in ["", "404", "404.html", "200 a", "404 ../a", "404 .a"] {
            assert!(text.parse::<ErrorPage>().is_err(), "{text}");
        }
    }
}
