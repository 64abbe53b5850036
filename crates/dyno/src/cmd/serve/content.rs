//! `dyno serve DIR`: from flags to a folder as the engine has it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use dyno_engine::{Compress, Content, Mount, Watch};
use dyno_lab::{Failure, user};

use crate::cli::ContentFlags;

/// What is served of folders whatever host is asked: one, under `/`, or none. `roots` is how many folders there are in all.
///
/// # Errors
/// When there is no such folder, or no such coding.
pub(super) fn mounts(flags: &ContentFlags, roots: usize) -> Result<Vec<Mount>, Failure> {
    let Some(folder) = &flags.content_root else {
        return if roots == 0 { without_folder(flags) } else { Ok(Vec::new()) };
    };
    let mount = Mount::new("/", of_folder(flags, folder, roots)?);
    Ok(vec![mount.map_err(|error| Failure::error(error.to_string()))?])
}

/// A folder as the flags have it served; the memory for bodies is divided among all `roots` of them.
///
/// # Errors
/// As [`mounts`].
pub(super) fn of_folder(flags: &ContentFlags, folder: &Path, roots: usize) -> Result<Content, Failure> {
    if !folder.is_dir() {
        return Err(no_folder(folder));
    }
    let mut content = Content::new(folder)
        .maxage_max_s(flags.maxage_max)
        .compress(if flags.no_compress { Compress::No } else { Compress::Yes })
        .watch(if flags.no_watch { Watch::No } else { Watch::Yes })
        .sendfile_bytes(flags.sendfile_bytes as u64);
    if let Some(bytes) = flags.content_bytes_max {
        content = content.memory_bytes_max(bytes as u64);
    }
    content = content.memory_divided_by(roots);
    if let Some(coding) = &flags.force_encoding {
        content = content.force_encoding(coding).ok_or_else(|| no_coding(coding))?;
    }
    if let Some(cache) = cache(flags) {
        content = content.cache(cache);
    }
    Ok(content)
}

/// Nothing, unless something was said of how the folder is served.
fn without_folder(flags: &ContentFlags) -> Result<Vec<Mount>, Failure> {
    let said = [
        ("--no-compress", flags.no_compress),
        ("--force-encoding", flags.force_encoding.is_some()),
        ("--content-bytes-max", flags.content_bytes_max.is_some()),
        ("--cache", flags.cache.is_some()),
        ("--no-cache", flags.no_cache),
        ("--no-watch", flags.no_watch),
    ];
    match said.iter().find(|(_, is_said)| *is_said) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag} means nothing without a folder"))
            .try_this(format!("dyno serve DIR {flag}, or root in the table [content] of the file"))),
        None => Ok(Vec::new()),
    }
}

fn no_folder(folder: &Path) -> Failure {
    let what = format!("cannot serve {}", folder.display());
    match folder.try_exists() {
        Ok(true) => Failure::error(what).likely("it is no folder").try_this("dyno serve ."),
        _ => Failure::error(what).likely("there is no such folder").try_this("dyno serve ."),
    }
}

fn no_coding(word: &str) -> Failure {
    Failure::usage(format!("no file is encoded as \"{word}\""))
        .likely("it takes gzip, deflate or br, and zstd where dyno was built with it")
        .try_this("--force-encoding deflate")
}

/// Where encoded files are kept. Started as root, files are read by a user without a folder of its own: only one that was
/// named is used.
fn cache(flags: &ContentFlags) -> Option<PathBuf> {
    if flags.no_cache {
        return None;
    }
    flags.cache.clone().or_else(|| if user::is_root() { None } else { own_cache() })
}

/// The user's own, where one can be made: who has no home, as in a container, serves without.
fn own_cache() -> Option<PathBuf> {
    let folder = user::caches()?.join("dyno/content");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.is_ok().then_some(folder)
}
