//! The lock on host settings: one run at a time may change them. Two would measure each other's, and put back each other's.
//!
//! A run that may change the host takes it before its keeper is forked; the keeper holds it until every setting is back,
//! also when the run is killed. Nothing is changed here.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dyno_sys::proc;

/// A process number and a newline are shorter; what is longer was not written here.
const PID_BYTES_MAX: u64 = 16;

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Its file cannot be opened.
    #[error("cannot lock host settings with {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its file belongs to another user, who could take it away.
    #[error("cannot lock host settings with {}", path.display())]
    OtherUsers {
        /// The file.
        path: PathBuf,
    },
    /// Another run has it.
    #[error("another run may change host settings")]
    Taken {
        /// Its process, where it says so.
        by: Option<u32>,
    },
}

/// A keeper whose run was killed puts settings back within moments.
const KEEPER: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// Takes the lock; it lasts as long as the file is open anywhere. Where the run that took it has been killed, its keeper is waited
/// for, which puts back what was changed.
///
/// # Errors
/// When another run has it, or its file is not this user's to lock.
pub fn take() -> Result<File, LockError> {
    take_after_keeper(&place(user_id()), |pid| proc::has_ended(pid.cast_signed()), KEEPER)
}

fn take_after_keeper(
    path: &Path,
    has_ended: impl Fn(u32) -> bool,
    patience: Duration,
) -> Result<File, LockError> {
    let begun = Instant::now();
    loop {
        match take_at(path) {
            Err(LockError::Taken { by: Some(pid) }) if has_ended(pid) && begun.elapsed() < patience => {
                std::thread::sleep(LOOK);
            }
            taken => return taken,
        }
    }
}

fn user_id() -> u32 {
    dyno_sys::user::current().0
}

/// Settings are root's; where an ordinary user may write one, runs of that user are told apart.
fn place(user: u32) -> PathBuf {
    match user == 0 && Path::new("/run").is_dir() {
        true => PathBuf::from("/run/dyno-host-changes.lock"),
        false => PathBuf::from(format!("/tmp/dyno-host-changes-{user}.lock")),
    }
}

fn take_at(path: &Path) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(dyno_sys::knob::NO_FOLLOW).open(path);
    let mut file = opened.map_err(|source| LockError::Open { path: path.to_owned(), source })?;
    let theirs = file.metadata().map_or(true, |file| file.uid() != user_id());
    if theirs {
        return Err(LockError::OtherUsers { path: path.to_owned() });
    }
    if file.try_lock().is_err() {
        return Err(LockError::Taken { by: holder(&mut file) });
    }
    let pid = format!("{}\n", std::process::id());
    assert!(pid.len() as u64 <= PID_BYTES_MAX, "{pid:?} would be read in part");
    // The number is a courtesy to the next one; the lock holds without it.
    let _ = file.set_len(0).and_then(|()| file.write_all(pid.as_bytes()));
    Ok(file)
}

/// The process that wrote itself down when it took the lock.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    let _ = file.take(PID_BYTES_MAX).read_to_string(&mut text);
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Planted faults: who is there is waited for; who has ended is not.
    #[test]
    fn the_keeper_of_a_run_that_was_killed_is_waited_for_and_a_run_that_goes_on_is_not() {
        let path = std::env::temp_dir().join(format!("dyno-lock-keeper-{}", std::process::id()));
        let keeper = take_at(&path).unwrap();
        let goes_on = take_after_keeper(&path, |_| false, KEEPER);
        assert!(matches!(goes_on, Err(LockError::Taken { .. })));
        assert!(matches!(take_after_keeper(&path, |_| true, LOOK), Err(LockError::Taken { .. })), "for ever");
        let waits = std::thread::scope(|scope| {
            let waits = scope.spawn(|| take_after_keeper(&path, |_| true, Duration::from_secs(60)));
            std::thread::sleep(2 * LOOK);
            drop(keeper);
            waits.join().unwrap()
        });
        std::fs::remove_file(&path).unwrap();
        waits.unwrap();
    }

    #[test]
    fn only_one_has_the_lock_and_the_other_is_told_who() {
        let path = std::env::temp_dir().join(format!("dyno-lock-{}", std::process::id()));
        let first = take_at(&path).unwrap();
        let refused = take_at(&path).unwrap_err();
        let me = std::process::id();
        assert!(matches!(refused, LockError::Taken { by: Some(pid) } if pid == me), "{refused:?}");
        drop(first);
        // A child of another test holds a copy from its fork until its exec.
        let begun = std::time::Instant::now();
        let again = loop {
            match take_at(&path) {
                Err(LockError::Taken { .. }) if begun.elapsed().as_secs() < 20 => std::thread::yield_now(),
                other => break other,
            }
        };
        std::fs::remove_file(&path).unwrap();
        again.unwrap();
    }

    #[test]
    fn a_link_is_no_lock() {
        let path = std::env::temp_dir().join(format!("dyno-lock-link-{}", std::process::id()));
        std::os::unix::fs::symlink("/nowhere/at/all", &path).unwrap();
        let refused = take_at(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(refused, Err(LockError::Open { .. })), "{refused:?}");
    }
}
