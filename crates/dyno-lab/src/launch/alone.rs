//! One climb at a time may change host settings: two would measure each other's, and put back each other's.
//!
//! `dyno climb --allow-host-changes` takes the lock before its keeper is forked; the keeper holds it until every setting
//! is back, also when the climb is killed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::file::refused;
use crate::user::{is_root, user_id};

/// A process number and a newline are shorter; what is longer was not written here.
const PID_BYTES_MAX: u64 = 16;

/// Takes the lock; it lasts as long as the file is open anywhere.
pub fn lock() -> Result<File, Failure> {
    lock_at(&place())
}

/// Settings are root's; where an ordinary user may write one, only climbs of that user exclude each other.
fn place() -> PathBuf {
    match is_root() && Path::new("/run").is_dir() {
        true => PathBuf::from("/run/dyno-host-changes.lock"),
        false => PathBuf::from(format!("/tmp/dyno-host-changes-{}.lock", user_id())),
    }
}

fn lock_at(path: &Path) -> Result<File, Failure> {
    let what = format!("cannot lock host settings with {}", path.display());
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(dyno_sys::knob::NO_FOLLOW).open(path);
    let mut file = opened.map_err(|error| refused(&what, &error))?;
    let theirs = file.metadata().map_or(true, |file| file.uid() != user_id());
    if theirs {
        return Err(Failure::error(what).likely("it belongs to another user"));
    }
    if file.try_lock().is_err() {
        return Err(taken(&mut file));
    }
    let pid = format!("{}\n", std::process::id());
    // The number is a courtesy to the next one; the lock holds without it.
    let _ = file.set_len(0).and_then(|()| file.write_all(pid.as_bytes()));
    Ok(file)
}

fn taken(file: &mut File) -> Failure {
    let mut text = String::new();
    let _ = file.take(PID_BYTES_MAX).read_to_string(&mut text);
    let who = text
        .trim()
        .parse::<u32>()
        .map_or_else(|_| "another climb".to_owned(), |pid| format!("process {pid}"));
    Failure::error(format!("{who} is climbing with --allow-host-changes: only one may at a time"))
        .likely("two climbs would measure each other's settings")
        .try_this("wait for its end, or climb without --allow-host-changes")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_one_has_the_lock_and_the_other_learns_who_has_it() {
        let path = std::env::temp_dir().join(format!("dyno-alone-{}", std::process::id()));
        let first = lock_at(&path).unwrap();
        let refused = lock_at(&path).unwrap_err().lines();
        assert!(refused.contains(&format!("process {} is climbing", std::process::id())), "{refused}");
        drop(first);
        let again = lock_at(&path);
        std::fs::remove_file(&path).unwrap();
        again.unwrap();
    }
}
