//! `dyno flame`: a profile drawn, compared, or written in another format; nothing is measured.

use crate::out;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dyno_profile::import::{self, ImportError};
use dyno_profile::tree::Threads;
use dyno_record::profile::{Profile, ProfileError, Requests, Unit};

use super::exit;
use crate::cli::{Answered, Counts, Flame};
use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::page::flame::Format;
use dyno_report::page::flame::{Look, Orientation, write, write_diff};

/// Runs the verb.
pub(crate) fn run(args: &Flame) -> Result<ExitCode, Failure> {
    match args.diff.as_deref() {
        Some([before, after]) => compare(args, before, after)?,
        _ => draw(args)?,
    }
    Ok(exit::DONE)
}

fn draw(args: &Flame) -> Result<(), Failure> {
    if let (Some(path), true) = (&args.output, args.files.len() > 1) {
        let what = format!("{} files cannot all become {}", args.files.len(), path.display());
        return Err(Failure::usage(what).likely("-o names one file").try_this("dyno flame FILE… without -o"));
    }
    if let Some(Answered::Twice(_)) = args.requests {
        let failure = Failure::usage("--requests holds two numbers, and nothing is compared");
        let failure = failure.likely("--diff is missing, or one number was meant");
        return Err(failure.try_this("dyno flame FILE --requests 12000"));
    }
    let format = format(args);
    // Before anything is written: two inputs may have one name but for their endings.
    let mut places = Vec::new();
    for path in &args.files {
        let place = place(args, path, format.ending(), &args.files)?;
        if let Some(twice) = place.as_ref().filter(|_| places.contains(&place)) {
            let what = format!("two of the files would become {}", twice.display());
            return Err(Failure::usage(what)
                .likely("their names differ in their endings only")
                .try_this("dyno flame FILE -o OTHER, a file at a time"));
        }
        places.push(place);
    }
    for (path, place) in args.files.iter().zip(places) {
        let profile = profile(args, path, 0)?;
        put(place, &write(&profile, format, look(args)))?;
    }
    Ok(())
}

fn compare(args: &Flame, before: &Path, after: &Path) -> Result<(), Failure> {
    let format = format(args);
    if !matches!(format, Format::Html | Format::Svg | Format::Folded) {
        let what = format!("a comparison cannot be written as {}", format.ending());
        let failure = Failure::usage(what).likely("that format has no place for two weights of a stack");
        return Err(failure.try_this("dyno flame --diff BEFORE AFTER --format html, svg or folded"));
    }
    let inputs = [before.to_owned(), after.to_owned()];
    let place = place(args, after, &format!("diff.{}", format.ending()), &inputs)?;
    let sides = (profile(args, before, 0)?, profile(args, after, 1)?);
    let bytes = write_diff(&sides.0, &sides.1, format, look(args)).map_err(|error| {
        let what = format!("cannot compare {} with {}", file::name(before), file::name(after));
        let try_this = "dyno flame --diff BEFORE AFTER --requests 10000,12000";
        Failure::error(what)
            .because(&error)
            .likely("they are of two kinds, or are texts that tell no time")
            .try_this(try_this)
    })?;
    put(place, &bytes)
}

fn look(args: &Flame) -> Look {
    Look {
        orientation: if args.icicle { Orientation::Icicle } else { Orientation::Flame },
        order: args.sort.order(),
        threads: if args.per_thread { Threads::Apart } else { Threads::Merged },
    }
}

fn format(args: &Flame) -> Format {
    let named = || args.output.as_ref().and_then(|path| Format::of_name(path.to_str()?));
    args.format.or_else(named).unwrap_or(Format::Html)
}

/// Reads a profile, with what the command line knows better.
fn profile(args: &Flame, path: &Path, side: usize) -> Result<Profile, Failure> {
    let name = file::name(path);
    let bytes = file::read(path)?;
    let mut profile = import::read_here(&bytes).map_err(|error| unread(&name, &error))?;
    if let (Unit::Samples, Counts::Time(ns)) = (profile.unit, args.counts) {
        profile = import::folded::as_time(profile, ns);
    }
    if let Some((from, to)) = args.time {
        profile = profile.between(from, to).map_err(|error| not_a_part(&name, &error))?;
    }
    if !args.thread.is_empty() {
        profile = profile.of_threads(&args.thread).map_err(|error| {
            let failure = Failure::error(format!("cannot cut threads out of {name}")).because(&error);
            match error {
                ProfileError::NoThreads => failure
                    .likely("folded stacks hold functions and counts alone")
                    .try_this("perf script -i perf.data | dyno flame - --thread NAME, or dyno profile PID"),
                _ => failure.try_this("dyno flame FILE --per-thread, which shows all of them"),
            }
        })?;
    }
    if let Some(answered) = args.requests {
        let count = match answered {
            Answered::Once(count) => count,
            Answered::Twice(counts) => counts[side],
        };
        profile.requests = Some(Requests { count, source: "the command line".to_owned() });
    }
    if profile.target.name.is_empty() {
        profile.target.name = path.file_name().map_or(name, |name| name.to_string_lossy().into_owned());
    }
    Ok(profile)
}

fn not_a_part(name: &str, error: &ProfileError) -> Failure {
    let failure = Failure::error(format!("cannot cut a part by time out of {name}")).because(error);
    match error {
        ProfileError::Nothing { .. } => failure
            .likely("the moments count from the beginning of the profile, in seconds, or nothing ran between them")
            .try_this("dyno flame FILE, which shows when each thread ran"),
        _ => failure
            .likely("only dyno profile, perf script and perf.data tell when samples fell")
            .try_this("dyno profile -p PID --for 10s -o profile.json"),
    }
}

fn unread(name: &str, error: &ImportError) -> Failure {
    let failure = Failure::error(format!("cannot read {name} as a profile: {error}")).because(error);
    match error {
        ImportError::Record(ProfileError::Impossible(_)) => {
            failure.likely(super::report::BY_HAND).try_this("dyno profile PID -o profile.json")
        }
        ImportError::Record(ProfileError::Schema { found }) => match super::report::verb_of(found) {
            Some((what, verb)) if !found.starts_with("dyno.profile/") => {
                failure.likely(format!("it is {what}")).try_this(verb.replace("FILE", name))
            }
            _ => failure
                .likely("another version of dyno wrote it")
                .try_this("the dyno that wrote it, or a newer one"),
        },
        ImportError::Record(_) => failure
            .likely("it is cut or damaged, or another program wrote it")
            .try_this("dyno profile PID -o profile.json"),
        ImportError::Unsupported { instead, .. } => {
            failure.likely("perf itself reads such a file").try_this(*instead)
        }
        ImportError::Comparison => failure
            .likely("dyno flame --diff wrote it, for scripts that draw such a text")
            .try_this("dyno flame --diff BEFORE AFTER"),
        ImportError::Damaged { .. } => failure
            .likely("the recording was cut off, or the file was copied in part")
            .try_this("perf record -g -o perf.data -- COMMAND"),
        ImportError::Empty => {
            failure.likely("nothing ran while it was recorded").try_this("dyno profile PID --for 10s")
        }
        _ => failure
            .likely("it is damaged, or was written by something else than a profiler")
            .try_this("perf script -i perf.data | dyno flame - -o flame.html"),
    }
}

/// Where the output goes; `None` is standard output.
fn place(args: &Flame, input: &Path, ending: &str, inputs: &[PathBuf]) -> Result<Option<PathBuf>, Failure> {
    let path = match &args.output {
        Some(path) if path.as_os_str() == "-" => return Ok(None),
        Some(path) => path.clone(),
        None if input.as_os_str() == "-" => return Ok(None),
        None => beside(input, ending),
    };
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    file::not_over(&inputs, &path).map_err(|failure| {
        let failure = failure.likely("the input has that ending already, or -o names it");
        failure.try_this("dyno flame FILE -o OTHER")
    })?;
    file::can_be_written(&path)?;
    Ok(Some(path))
}

/// The input's name with another ending.
fn beside(input: &Path, ending: &str) -> PathBuf {
    let mut name = input.file_stem().map_or_else(|| OsString::from("profile"), OsString::from);
    name.push(".");
    name.push(ending);
    input.with_file_name(name)
}

fn put(place: Option<PathBuf>, bytes: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    match place {
        None => {
            let mut out = std::io::stdout().lock();
            out::written(out.write_all(bytes).and_then(|()| out.flush()))
        }
        Some(path) => {
            file::write_file(&path, bytes, dyno_lab::user::caller())?;
            out::say(&format!("written   {}\n", path.display()));
            Ok(())
        }
    }
}
