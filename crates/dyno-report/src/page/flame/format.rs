//! The formats that a profile is written in, and how a file's name tells them.

/// How a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page with the picture and tables, one file.
    Html,
    /// The picture alone.
    Svg,
    /// A line per stack, for scripts.
    Folded,
    /// For `go tool pprof`.
    Pprof,
    /// For the Firefox profiler.
    Firefox,
    /// For speedscope.
    Speedscope,
    /// Our own record.
    Json,
}

impl Format {
    /// All, in the order in which they are named.
    pub const ALL: [Format; 7] = [
        Format::Html,
        Format::Svg,
        Format::Folded,
        Format::Pprof,
        Format::Firefox,
        Format::Speedscope,
        Format::Json,
    ];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Firefox => "firefox",
            Format::Speedscope => "speedscope",
            plain => plain.ending(),
        }
    }

    /// The format that a word names.
    #[must_use]
    pub fn named(word: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.word() == word)
    }

    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Folded => "folded",
            Format::Pprof => "pb.gz",
            Format::Firefox => "firefox.json",
            Format::Speedscope => "speedscope.json",
            Format::Json => "json",
        }
    }

    /// The format that a file's name ends in.
    pub fn of_name(name: &str) -> Option<Format> {
        // The longest ending: all three kinds of JSON end in .json.
        let fits = |format: &Format| name.ends_with(&format!(".{}", format.ending()));
        Format::ALL.into_iter().filter(fits).max_by_key(|format| format.ending().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_the_end_of_a_name() {
        for (name, format) in [
            ("a.svg", Some(Format::Svg)),
            ("a.speedscope.json", Some(Format::Speedscope)),
            ("a.json", Some(Format::Json)),
            ("a.pb.gz", Some(Format::Pprof)),
            ("svg", None),
            ("a.txt", None),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
    }
}
