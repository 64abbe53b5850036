//! What each kind of process may still do once it has all that it needs: system calls by a filter (seccomp), files by Landlock.
//!
//! Children of the supervisor call it when they have opened, bound and mapped what they need, and before they read anything of
//! a stranger's. Each kind has a list of its own. The master and the supervisor stay outside: they bind, fork and start what
//! takes over, and read nothing of strangers.

use crate::content::{Mount, Watch};
use dyno_sys::landlock::{self, Access};
use dyno_sys::seccomp::{self, Purpose, rules};
use std::io;
use std::path::{Path, PathBuf};

/// Whether workers and helpers are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// They may do whatever their user may.
    Off,
    /// They may do what they need, and nothing else.
    On,
}

/// Who is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answers requests: no file but those of folders that are served.
    Worker,
    /// Reads and encodes folders, and keeps what it has encoded.
    Builder,
    /// Serves metrics: reads /proc.
    Metrics,
    /// Writes the log, which is open.
    LogWriter,
}

impl Sandbox {
    /// Confines this process for good, with all its threads and whatever it starts.
    ///
    /// # Errors
    /// When the kernel refuses a filter, or a folder is not there.
    pub(crate) fn enter(self, kind: Kind, mounts: &[Mount]) -> io::Result<()> {
        if self == Sandbox::Off {
            return Ok(());
        }
        let because = |error: io::Error| {
            let why = format!("cannot give up what is not needed (--sandbox off would not): {error}");
            io::Error::new(error.kind(), why)
        };
        landlock::confine(&folders(kind, mounts)).map_err(because)?;
        seccomp::confine(&rules(purposes(kind, mounts))).map_err(because)
    }
}

/// Whether the kernel can keep processes from files; without that filters alone confine them.
pub(crate) fn keeps_files() -> bool {
    landlock::version().is_some()
}

fn purposes(kind: Kind, mounts: &[Mount]) -> &'static [Purpose] {
    use Purpose::{Build, Connect, Log, Read, Run, Write};
    match kind {
        // Without a folder there is nothing to open.
        Kind::Worker if mounts.is_empty() => &[Run, Connect],
        Kind::Worker | Kind::Metrics => &[Run, Connect, Read],
        Kind::Builder => &[Run, Read, Write, Build],
        Kind::LogWriter => &[Run, Log],
    }
}

fn folders(kind: Kind, mounts: &[Mount]) -> Vec<(PathBuf, Access)> {
    let content = || mounts.iter().map(|mount| (reach(mount), Access::Read));
    match kind {
        Kind::Worker => content().collect(),
        Kind::Builder => {
            let caches = mounts.iter().filter_map(|mount| mount.content.cache.clone());
            content().chain(caches.map(|cache| (cache, Access::Write))).collect()
        }
        Kind::Metrics => vec![("/proc".into(), Access::Read)],
        Kind::LogWriter => Vec::new(),
    }
}

/// What must stay readable for a folder: of one that is watched the folder around it, because another one may be put in its
/// place, and the kernel knows folders, not names.
fn reach(mount: &Mount) -> PathBuf {
    let folder = &mount.content.folder;
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    match (mount.content.watch, real.parent()) {
        (Watch::Yes, Some(around)) if around != Path::new("/") => around.to_owned(),
        _ => real,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::content::Content;

    fn mount(watch: Watch) -> Mount {
        Mount::new("/", Content::new("/usr/lib").watch(watch).cache("/var/tmp/x")).unwrap()
    }

    #[test]
    fn each_kind_keeps_what_it_needs_of_files() {
        let (watched, still) = ([mount(Watch::Yes)], [mount(Watch::No)]);
        let lib: PathBuf = "/usr/lib".into();
        assert_eq!(folders(Kind::Worker, &still), [(lib.clone(), Access::Read)]);
        assert_eq!(folders(Kind::Worker, &watched), [("/usr".into(), Access::Read)]);
        assert_eq!(
            folders(Kind::Builder, &still),
            [(lib, Access::Read), ("/var/tmp/x".into(), Access::Write)]
        );
        assert!(folders(Kind::Worker, &[]).is_empty() && folders(Kind::LogWriter, &still).is_empty());
    }

    #[test]
    fn only_who_builds_writes_files_and_only_who_serves_connects() {
        for kind in [Kind::Worker, Kind::Builder, Kind::Metrics, Kind::LogWriter] {
            let purposes = purposes(kind, &[mount(Watch::Yes)]);
            assert_eq!(purposes.contains(&Purpose::Write), kind == Kind::Builder, "{kind:?}");
            let serves = matches!(kind, Kind::Worker | Kind::Metrics);
            assert_eq!(purposes.contains(&Purpose::Connect), serves, "{kind:?}");
        }
        assert!(!purposes(Kind::Worker, &[]).contains(&Purpose::Read), "nothing is to be opened");
    }
}
