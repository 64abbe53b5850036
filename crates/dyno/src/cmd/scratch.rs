//! A folder of a climb's own, and what an earlier climb that was killed left behind.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use dyno_tune::journal::{Entry, Journal};

use super::failure::Failure;

const PREFIX: &str = "dyno-climb-";

/// The folder, removed at the end.
pub(crate) struct Scratch {
    path: PathBuf,
    caller: Option<(u32, u32)>,
}

impl Scratch {
    /// Makes the folder; folders of climbs that are dead are cleared away first.
    pub(crate) fn new() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        clear_dead(&parent);
        let unpredictable = dyno_sys::clock::mono_ns() as u32;
        let path = parent.join(format!("{PREFIX}{}-{unpredictable:08x}", std::process::id()));
        // Servers may pass through to their folders whatever user they turn into (nginx's workers under root); they cannot
        // list it, and under sudo it stays root's: nobody else can move or link a name in it, and the journal is safe.
        let made = DirBuilder::new().mode(0o711).create(&path);
        made.map_err(|error| {
            Failure::error(format!("cannot make the folder {}", path.display())).because(&error)
        })?;
        let caller = caller();
        Ok(Self { path, caller })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The user who called sudo: servers run as that user, files belong to that user.
    pub(crate) fn caller(&self) -> Option<(u32, u32)> {
        self.caller
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Who called sudo, when this is root by sudo.
pub(crate) fn caller() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    match (super::is_root(), id("SUDO_UID"), id("SUDO_GID")) {
        (true, Some(uid), Some(gid)) if uid != 0 => Some((uid, gid)),
        _ => None,
    }
}

/// Removes folders of climbs whose process is gone; says so when one of them had left a setting open in its journal.
fn clear_dead(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        let ours =
            fs::symlink_metadata(entry.path()).is_ok_and(|m| m.is_dir() && m.uid() == super::user_id());
        if ours && !Path::new(&format!("/proc/{pid}")).exists() {
            warn_of_open_settings(&entry.path().join("journal.jsonl"));
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn warn_of_open_settings(journal: &Path) {
    if !journal.exists() {
        return;
    }
    let Ok((_, open)) = Journal::open(journal) else { return };
    for entry in open {
        let Entry::Change { knob, old, .. } = entry else { continue };
        let now = fs::read_to_string(&knob).unwrap_or_default();
        if now.trim() != old {
            let now = now.trim();
            super::say(&format!("warning: a climb that was killed left {knob} at {now}; it was {old}\n"));
        }
    }
}
