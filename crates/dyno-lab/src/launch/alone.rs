//! A run that may change the host is the only one: the host's lock, or who has it and what to do about that.
//!
//! `dyno climb --allow-host-changes` takes it before its keeper is forked. The lock itself is `dyno_host::lock`'s.

use std::fs::File;

use dyno_host::lock::{self, LockError};

use crate::failure::Failure;
use crate::file::refused;

/// Takes the lock; it lasts as long as the file is open anywhere.
pub fn lock() -> Result<File, Failure> {
    lock::take().map_err(|error| failure(&error))
}

fn failure(error: &LockError) -> Failure {
    let what = error.to_string();
    match error {
        LockError::Open { source, .. } => refused(&what, source),
        LockError::OtherUsers { .. } => Failure::error(what).likely("it belongs to another user"),
        LockError::Taken { by } => {
            let who = by.map_or_else(|| "another climb".to_owned(), |pid| format!("process {pid}"));
            Failure::error(format!("{who} is climbing with --allow-host-changes: only one may at a time"))
                .likely("two climbs would measure each other's settings")
                .try_this("wait for its end, or climb without --allow-host-changes")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_climbs_already_is_named() {
        let lines = failure(&LockError::Taken { by: Some(7) }).lines();
        assert!(lines.contains("process 7 is climbing") && lines.contains("wait for its end"), "{lines}");
        assert!(failure(&LockError::Taken { by: None }).lines().contains("another climb is climbing"));
    }
}
