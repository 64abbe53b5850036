//! `dyno serve DIR`: what is said of a folder, on the command line or in the file's table `[content]`.

use std::path::PathBuf;

use clap::Args;

use super::hosts::{CONTENT, HostFlags};
use super::words::count;

/// A folder and how it is served. Without a folder its flags mean nothing.
#[derive(Debug, Args)]
pub(crate) struct ContentFlags {
    /// A folder whose files are served, as DIR [default: none, but the demonstration routes]
    #[arg(long, value_name = "DIR", help_heading = CONTENT)]
    pub(crate) content_root: Option<PathBuf>,
    /// The greatest N of ?maxage=N, in seconds; a greater one gets 400
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "31536000",
        help_heading = CONTENT
    )]
    pub(crate) maxage_max: u32,
    /// Encode nothing: only .gz, .br and .zst files that are there are used
    #[arg(long, help_heading = CONTENT)]
    pub(crate) no_compress: bool,
    /// Send every file that is encoded in this coding, whatever a client accepts: gzip, deflate, br [zstd]
    #[arg(long, value_name = "CODING", help_heading = CONTENT)]
    pub(crate) force_encoding: Option<String>,
    /// Bodies above this leave by sendfile
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "100000",
        value_parser = count,
        help_heading = CONTENT
    )]
    pub(crate) sendfile_bytes: usize,
    /// Bytes of all bodies in memory; what does not fit stays in its file [default: 256 MiB or an eighth of the memory]
    #[arg(long, value_name = "BYTES", value_parser = count, help_heading = CONTENT)]
    pub(crate) content_bytes_max: Option<usize>,
    /// Where encoded files are kept from start to start [default: ~/.cache/dyno/content; nowhere as root]
    #[arg(long, value_name = "DIR", help_heading = CONTENT)]
    pub(crate) cache: Option<PathBuf>,
    /// Keep encoded files nowhere, whatever --cache says
    #[arg(long, help_heading = CONTENT)]
    pub(crate) no_cache: bool,
    /// Serve what was there at the start, whatever changes
    #[arg(long, help_heading = CONTENT)]
    pub(crate) no_watch: bool,

    #[command(flatten)]
    pub(crate) host: HostFlags,
}
