//! A folder of a climb's own, and the folders of earlier climbs that were killed.
//!
//! `dyno climb` makes it before anything is started. Which settings a dead climb left open, and whether they are put back, is
//! `dyno_host::recovery`'s; here are the folders in which their journals lie, and what is said of them.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use dyno_host::changes::HostChanges;
use dyno_host::host::Kernel;
use dyno_host::recovery::{self, Left, Settled, Unsettled};
use dyno_record::commands::command;
use dyno_record::visible::visible;

use crate::failure::Failure;
use crate::user::{caller, user_id};

const PREFIX: &str = "dyno-climb-";

/// The folder, removed at the end unless it is to be kept.
pub struct Scratch {
    path: PathBuf,
    caller: Option<(u32, u32)>,
    kept: bool,
}

impl Scratch {
    /// Makes the folder; folders of climbs that are dead are cleared away first, and settings that they left are put back
    /// where that is allowed. Refused while one is not back: it would be this climb's start, and its old value is known
    /// to that folder's journal alone.
    pub fn new(host_changes: HostChanges, warn: &mut dyn FnMut(&str)) -> Result<Self, Failure> {
        // The keeper wants it absolute, whatever TMPDIR says.
        let parent = std::env::temp_dir();
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        clear_dead(&parent, host_changes, warn)?;
        let unpredictable = dyno_sys::clock::mono_ns() as u32;
        let path = parent.join(format!("{PREFIX}{}-{unpredictable:08x}", std::process::id()));
        // Servers may pass through to their folders whatever user they turn into (nginx's workers under root); they cannot
        // list it, and under sudo it stays root's: nobody else can move or link a name in it, and the journal is safe.
        let made = DirBuilder::new().mode(0o711).create(&path);
        made.map_err(|error| {
            Failure::error(format!("cannot make the folder {}", path.display())).because(&error)
        })?;
        let caller = caller();
        Ok(Self { path, caller, kept: false })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder where it is: its journal holds what a setting was that is not back.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// The user who called sudo: servers run as that user, files belong to that user.
    pub fn caller(&self) -> Option<(u32, u32)> {
        self.caller
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes folders of climbs whose process is gone, each after the settings that its journal says were left open.
fn clear_dead(parent: &Path, host_changes: HostChanges, warn: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_dead) {
        settle(&entry.path().join("journal.jsonl"), host_changes, warn)?;
        let _ = fs::remove_dir_all(entry.path());
    }
    Ok(())
}

/// A climb's folder of this user, where nobody else may put a journal, without its process.
fn is_dead(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy().into_owned();
    let pid = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next())
        .and_then(|pid| pid.parse::<u32>().ok());
    let is_ours =
        |folder: fs::Metadata| folder.is_dir() && folder.uid() == user_id() && folder.mode() & 0o022 == 0;
    let ours = fs::symlink_metadata(entry.path()).is_ok_and(is_ours);
    ours && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

/// Sees that every setting of a dead climb is back, and puts it back where that is allowed. What somebody else has changed
/// since is reported and left alone.
fn settle(journal: &Path, host_changes: HostChanges, warn: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let report = &mut |settled| warn(&in_words(&settled));
    recovery::settle(journal, host_changes, &mut Kernel, report).map_err(|error| failure(&error, journal))
}

fn in_words(settled: &Settled) -> String {
    match settled {
        Settled::PutBack(left, now) => format!("{}, and is so again", changed(left, now)),
        Settled::Foreign(left, now) => {
            let [knob, was, now] = [&left.what.to_string(), &left.old, now].map(|text| visible(text));
            format!(
                "a climb that was killed had changed {knob}, which was {was}; somebody has set it to {now} since, and it is left alone"
            )
        }
    }
}

fn changed(left: &Left, now: &str) -> String {
    let [knob, was, now] = [&left.what.to_string(), &left.old, now].map(visible);
    format!("a climb that was killed left {knob} at {now}; it was {was}")
}

fn failure(error: &Unsettled, journal: &Path) -> Failure {
    let by_hand = |left: &Left| {
        format!(
            "{}, or remove {} if it is to stay",
            visible(&command(&left.what, &left.old)),
            visible(&journal.display().to_string())
        )
    };
    match error {
        Unsettled::Journal(error) => {
            Failure::error("cannot read what a climb that was killed left open").because(error)
        }
        Unsettled::NotAllowed { left, now } => Failure::error(changed(left, now))
            .likely("the old value is known to that climb's journal alone")
            .try_this(format!("--allow-host-changes puts it back; or {}", by_hand(left))),
        Unsettled::NotRestored { left, now, source } => {
            Failure::not_restored(changed(left, now)).because(source).try_this(by_hand(left))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_host::journal::Journal;
    use dyno_record::change::{ChangeSpec, What};

    /// What a killed climb left: its folder, with a journal that says what `knob` was.
    fn left_behind(name: &str) -> (PathBuf, PathBuf, PathBuf) {
        let parent = std::env::temp_dir().join(format!("dyno-dead-{}-{name}", std::process::id()));
        // No process has this number: pid_max is at most 2^22 (kernel/pid.c).
        let dead = parent.join(format!("{PREFIX}4194305-0"));
        fs::create_dir_all(&dead).unwrap();
        let knob = parent.join("knob");
        fs::write(&knob, "advise").unwrap();
        let mut journal = Journal::open(&dead.join("journal.jsonl")).unwrap();
        let what = What::File(knob.display().to_string());
        let spec = ChangeSpec { what, wanted: "advise".into(), why: "dial thp".into() };
        let number = journal.change(&spec, "never").unwrap();
        // It was seen to stand: what reads otherwise afterwards is somebody else's.
        journal.held(number, "advise").unwrap();
        (parent, dead, knob)
    }

    #[test]
    fn what_a_killed_climb_left_is_put_back_where_that_is_allowed() {
        let (parent, dead, knob) = left_behind("allowed");
        clear_dead(&parent, HostChanges::Allowed, &mut |_| {}).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "never");
        assert!(!dead.exists());
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn what_somebody_else_has_set_since_is_left_alone_and_stops_nothing() {
        let (parent, dead, knob) = left_behind("foreign");
        fs::write(&knob, "always").unwrap();
        clear_dead(&parent, HostChanges::Allowed, &mut |_| {}).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "always");
        assert!(!dead.exists());
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn a_setting_that_is_not_back_stops_the_climb_and_its_journal_stays() {
        let (parent, dead, knob) = left_behind("refused");
        let lines = clear_dead(&parent, HostChanges::Refused, &mut |_| {}).unwrap_err().lines();
        assert!(lines.contains("it was never") && lines.contains("--allow-host-changes"), "{lines}");
        assert!(dead.join("journal.jsonl").exists());
        // As soon as it reads as it did, nothing stands in the way.
        fs::write(&knob, "never").unwrap();
        clear_dead(&parent, HostChanges::Refused, &mut |_| {}).unwrap();
        assert!(!dead.exists());
        fs::remove_dir_all(parent).unwrap();
    }
}
