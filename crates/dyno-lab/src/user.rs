//! Who runs this, who called sudo, and where that user keeps what can be made again.

use std::path::PathBuf;

/// The effective user of this process.
#[must_use]
pub fn user_id() -> u32 {
    dyno_sys::user::current().0
}

/// Whether this process may do what only root may.
#[must_use]
pub fn is_root() -> bool {
    user_id() == 0
}

/// The folder of this user's caches, as the XDG base directory specification says; `None` when the environment names none.
#[must_use]
pub fn caches() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}

/// Who called sudo, when this is root by sudo: files belong to that user, and servers run as that user.
#[must_use]
pub fn caller() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    match (is_root(), id("SUDO_UID"), id("SUDO_GID")) {
        (true, Some(uid), Some(gid)) if uid != 0 => Some((uid, gid)),
        _ => None,
    }
}
