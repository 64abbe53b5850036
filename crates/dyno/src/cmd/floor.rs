//! `dyno floor`: the smallest loop that answers with given bytes, as a process of its own.

use crate::out;
use std::path::Path;
use std::process::ExitCode;

use dyno_engine::FilePart;
use dyno_engine::floor::{self, Floor, Leaves};

use super::exit;
use super::serve;
use crate::cli;
use dyno_lab::Failure;
use dyno_lab::file;

/// Runs the verb.
pub(crate) fn run(args: &cli::Floor) -> Result<ExitCode, Failure> {
    let answer = file::read(&args.answer)?;
    if answer.is_empty() {
        let what = format!("{} is empty: there is nothing to answer with", file::name(&args.answer));
        return Err(Failure::error(what)
            .likely("it must hold a whole answer, head and body")
            .try_this("curl -si http://127.0.0.1:8080/json > answer"));
    }
    let request_bytes = args.request_bytes.map(std::num::NonZeroUsize::get);
    let file = args.sendfile.as_deref().map(opened).transpose()?;
    let leaves = if args.gather { Leaves::Gathered } else { Leaves::Joined };
    let floor = Floor { addr: args.listen.clone(), answer, leaves, file, request_bytes, cpu: None };
    // Every connection is a descriptor; where it cannot be raised the loop fits itself.
    let _ = dyno_sys::proc::raise_nofile_to_hard();
    floor::run(&floor, &mut |addr| out::say(&format!("listening on {}\n", serve::url(addr))))
        .map_err(|error| serve::engine_failure(&error))?;
    Ok(exit::DONE)
}

fn opened(path: &Path) -> Result<FilePart, Failure> {
    let cannot = |error: std::io::Error| Failure::error(format!("cannot send {}: {error}", file::name(path)));
    std::fs::File::open(path).and_then(FilePart::whole).map_err(cannot)
}
