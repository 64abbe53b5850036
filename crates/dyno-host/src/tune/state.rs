//! The folder in which tune keeps its journal, private to its user; and the wait for a confirmation.
//!
//! The verb calls it. Nothing of the host is changed here.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::journal::{Journal, JournalError};

/// Where it is unless said otherwise.
pub const FOLDER: &str = "/var/lib/dyno";
/// Between looks at whether somebody confirmed.
const LOOK: Duration = Duration::from_millis(50);
/// The files of a wait are shorter.
const WAIT_BYTES_MAX: u64 = 256;

/// Why there is no such folder.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made or read.
    #[error("cannot use {}", path.display())]
    Unusable {
        /// The folder or a file in it.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may write there, or it is another user's.
    #[error("{} is not private to this user", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
    },
    /// The journal in it cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The folder.
#[derive(Debug, Clone)]
pub struct State(PathBuf);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Somebody confirmed.
    Confirmed,
    /// Nobody did.
    TimedOut,
    /// It was broken off.
    Interrupted,
}

impl State {
    /// Opens the folder, which is made where it is missing.
    ///
    /// # Errors
    /// When it cannot be made, or is not private.
    pub fn open(path: &Path) -> Result<State, StateError> {
        let unusable = |source| StateError::Unusable { path: path.to_owned(), source };
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
        let found = fs::symlink_metadata(path).map_err(unusable)?;
        let is_private =
            found.is_dir() && found.uid() == dyno_sys::user::current().0 && found.mode() & 0o077 == 0;
        match is_private {
            true => Ok(State(path.to_owned())),
            false => Err(StateError::NotPrivate { path: path.to_owned() }),
        }
    }

    /// The journal, which is made where it is missing.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn journal(&self) -> Result<Journal, StateError> {
        Ok(Journal::open(&self.journal_path())?)
    }

    /// Where the journal is.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.0.join("journal")
    }

    fn waiting(&self) -> PathBuf {
        self.0.join("waiting")
    }

    fn confirmed(&self) -> PathBuf {
        self.0.join("confirmed")
    }

    /// Waits until somebody confirms this plan.
    ///
    /// # Errors
    /// When the files for it cannot be written: nobody could confirm.
    pub fn wait(&self, hash: &str, within: Duration, over: &dyn Fn() -> bool) -> Result<Waited, StateError> {
        let unusable = |source| StateError::Unusable { path: self.waiting(), source };
        let _ = fs::remove_file(self.confirmed());
        write(&self.waiting(), &format!("{hash} {}", std::process::id())).map_err(unusable)?;
        let until = Instant::now() + within;
        let waited = loop {
            if read(&self.confirmed()).is_some_and(|said| said == hash) {
                break Waited::Confirmed;
            }
            if over() {
                break Waited::Interrupted;
            }
            if Instant::now() >= until {
                break Waited::TimedOut;
            }
            std::thread::sleep(LOOK);
        };
        // A confirmation was heard when its file goes while somebody waits. One that came too late is left to who wrote it.
        if waited == Waited::Confirmed {
            let _ = fs::remove_file(self.confirmed());
        }
        let _ = fs::remove_file(self.waiting());
        Ok(waited)
    }

    /// Removes what a wait left that was killed. Whoever calls it has the lock, so that nobody waits.
    pub fn forget_wait(&self) {
        let _ = fs::remove_file(self.waiting());
        let _ = fs::remove_file(self.confirmed());
    }

    /// The plan that waits for a confirmation, and the process that does.
    #[must_use]
    pub fn waits(&self) -> Option<(String, u32)> {
        let said = read(&self.waiting())?;
        let (hash, pid) = said.split_once(' ')?;
        let pid: u32 = pid.parse().ok()?;
        Path::new(&format!("/proc/{pid}")).exists().then(|| (hash.to_owned(), pid))
    }

    /// Confirms it, and waits until that was heard; whether it was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn confirm(&self, hash: &str, within: Duration) -> Result<bool, StateError> {
        let unusable = |source| StateError::Unusable { path: self.confirmed(), source };
        write(&self.confirmed(), hash).map_err(unusable)?;
        let until = Instant::now() + within;
        while self.confirmed().exists() {
            if Instant::now() >= until || self.waits().is_none() && self.confirmed().exists() {
                let _ = fs::remove_file(self.confirmed());
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
        Ok(true)
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(dyno_sys::knob::NO_FOLLOW);
    options.open(path)?.write_all(text.as_bytes())
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(WAIT_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("dyno-state-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let path = folder("open");
        let state = State::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(state.journal().unwrap());
        assert_eq!(fs::metadata(state.journal_path()).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(State::open(&path), Err(StateError::NotPrivate { .. })));
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink("/tmp", &path).unwrap();
        assert!(matches!(State::open(&path), Err(StateError::NotPrivate { .. })));
        fs::remove_file(&path).unwrap();
    }

    /// Planted fault: any confirmation counts; then a plan that nobody saw is kept.
    #[test]
    fn a_wait_ends_with_its_own_plans_confirmation_or_its_time() {
        let path = folder("wait");
        let state = State::open(&path).unwrap();
        let none = || false;
        assert_eq!(state.wait("aa", Duration::ZERO, &none).unwrap(), Waited::TimedOut);
        assert_eq!(state.wait("aa", Duration::from_secs(60), &|| true).unwrap(), Waited::Interrupted);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| state.wait("aa", Duration::from_secs(60), &none).unwrap());
            let until = Instant::now() + Duration::from_secs(10);
            while state.waits().is_none() {
                assert!(Instant::now() < until, "nobody waits");
                std::thread::yield_now();
            }
            assert_eq!(state.waits().unwrap().0, "aa");
            write(&state.confirmed(), "bb").unwrap();
            assert!(state.confirm("aa", Duration::from_secs(60)).unwrap());
            assert_eq!(waiter.join().unwrap(), Waited::Confirmed);
        });
        assert!(state.waits().is_none());
        fs::remove_dir_all(path).unwrap();
    }
}
