//! Flags for programs that read what a verb says: the format, and the conditions of a gate.

use clap::{Args, ValueEnum};

use super::words::OUTPUT;

/// What figures must be.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Gate {
    /// Exit with 1 unless this holds: 'p99<=5ms, errors<=0' of a load, 'total>=1.5x' of a climb, 'rps>=-2%' of two loads; may be given again
    #[arg(long, value_name = "CONDITIONS", help_heading = OUTPUT)]
    pub(crate) fail_under: Vec<String>,
}

/// How a verb writes what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people at a terminal.
    Table,
    /// The record.
    Json,
    /// For a comment or a job's summary.
    Markdown,
    /// Every figure in a row.
    Csv,
    /// JUnit's XML.
    Junit,
    /// Workflow commands of GitHub's runners.
    Github,
}

/// The format, as a flag.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormatFlag {
    /// How: table, json, markdown, csv, junit, or github for its workflow commands
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true,
        default_value = "table",
        conflicts_with = "json"
    )]
    #[arg(help_heading = OUTPUT)]
    pub(crate) format: Format,
}

impl FormatFlag {
    /// What is written; `--json` is short for it.
    pub(crate) fn wanted(self, json: Json) -> Format {
        if json == Json::Asked { Format::Json } else { self.format }
    }
}

/// Whether `--json` was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Json {
    /// It was.
    Asked,
    /// It was not.
    No,
}

impl Json {
    /// From the flag.
    pub(crate) fn of(given: bool) -> Json {
        if given { Json::Asked } else { Json::No }
    }
}

impl Format {
    /// The exporter, where one writes it.
    pub(crate) fn exporter(self) -> Option<dyno_report::export::Format> {
        use dyno_report::export::Format as Export;
        match self {
            Format::Table | Format::Json => None,
            Format::Markdown => Some(Export::Markdown),
            Format::Csv => Some(Export::Csv),
            Format::Junit => Some(Export::Junit),
            Format::Github => Some(Export::Github),
        }
    }
}
