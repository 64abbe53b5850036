//! Users and groups by name (`getpwnam_r(3)`, `getgrnam_r(3)`, `getgrouplist(3)`), and giving up root's identity for good.
//!
//! Names are asked of the C library, so that every source that the host is set up for is heard. Nothing here chooses a user.

use crate::errno::checked;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Supplementary groups of a process at most (NGROUPS_MAX, include/uapi/linux/limits.h).
const GROUPS_MAX: usize = 65_536;
/// Bytes of an account's texts at first, and at most: an entry of a group names all its members.
const TEXT_BYTES: usize = 1_024;
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Who a process is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Supplementary groups; others are given up.
    pub groups: Vec<u32>,
}

impl Identity {
    /// By numbers, in that group alone.
    #[must_use]
    pub fn of_numbers(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: vec![gid] }
    }
}

/// The user's own number and the number of its group; `None` when nobody has that name.
///
/// # Errors
/// When the accounts cannot be read.
pub fn find(name: &str) -> io::Result<Option<(u32, u32)>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    with_text(|text| {
        let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::uninit(), ptr::null_mut());
        let (name, entry) = (name.as_ptr(), entry.as_mut_ptr());
        // SAFETY: all five point to live memory of this call, and `text` is as long as said.
        let errno = unsafe { libc::getpwnam_r(name, entry, text.as_mut_ptr(), text.len(), &raw mut found) };
        // SAFETY: where one was found the C library has set `found` to the entry that it has filled, which is still alive.
        (errno, unsafe { found.as_ref() }.map(|entry| (entry.pw_uid, entry.pw_gid)))
    })
}

/// The number of a group; `None` when none has that name.
///
/// # Errors
/// When the groups cannot be read.
pub fn find_group(name: &str) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    with_text(|text| {
        let (mut entry, mut found) = (MaybeUninit::<libc::group>::uninit(), ptr::null_mut());
        let (name, entry) = (name.as_ptr(), entry.as_mut_ptr());
        // SAFETY: all five point to live memory of this call, and `text` is as long as said.
        let errno = unsafe { libc::getgrnam_r(name, entry, text.as_mut_ptr(), text.len(), &raw mut found) };
        // SAFETY: where one was found the C library has set `found` to the entry that it has filled, which is still alive.
        (errno, unsafe { found.as_ref() }.map(|entry| entry.gr_gid))
    })
}

/// Asks with ever more room for the entry's texts.
fn with_text<T>(mut ask: impl FnMut(&mut [libc::c_char]) -> (i32, Option<T>)) -> io::Result<Option<T>> {
    let mut bytes = TEXT_BYTES;
    loop {
        let mut text = vec![0; bytes];
        match ask(&mut text) {
            (_, Some(found)) => return Ok(Some(found)),
            (libc::ERANGE, None) if bytes < TEXT_BYTES_MAX => bytes *= 2,
            // "Not found" has many numbers (getpwnam(3)).
            (0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM, None) => return Ok(None),
            (errno, None) => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// The groups that the accounts give to a user, with `gid` among them.
///
/// # Errors
/// When there are more than a process can have.
pub fn groups_of(name: &str, gid: u32) -> io::Result<Vec<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(vec![gid]) };
    let mut groups = vec![0; 64];
    while groups.len() <= GROUPS_MAX {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends in a zero byte, and `groups` has room for as many as `count` says.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if fits >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups);
        }
        groups.resize(groups.len() * 2, 0);
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// The effective user and group of this process.
#[must_use]
pub fn current() -> (u32, u32) {
    // SAFETY: geteuid takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    // SAFETY: getegid takes nothing and cannot fail.
    (uid, unsafe { libc::getegid() })
}

/// The number that is no user and no group: the kernel takes it for "leave it as it is" (`setresuid(2)`).
pub const UNCHANGED: u32 = u32::MAX;

/// Becomes somebody else for good: real, effective and saved numbers. Of a process that was root no capability is left
/// (`capabilities(7)`). Only while it has one thread, whose numbers these are to the kernel.
///
/// # Errors
/// `EPERM` without root's rights; `EINVAL` where a number means nobody in this user namespace, or is [`UNCHANGED`].
pub fn become_identity(who: &Identity) -> io::Result<()> {
    if who.uid == UNCHANGED || who.gid == UNCHANGED || who.groups.contains(&UNCHANGED) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // The groups first: after the user has changed nothing else may.
    // SAFETY: as many numbers are read from live memory as it has.
    checked(unsafe { libc::setgroups(who.groups.len(), who.groups.as_ptr()) })?;
    // SAFETY: setresgid takes integers.
    checked(unsafe { libc::setresgid(who.gid, who.gid, who.gid) })?;
    // SAFETY: setresuid takes integers.
    checked(unsafe { libc::setresuid(who.uid, who.uid, who.uid) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn root_is_found_by_name_and_nobody_of_a_silly_name() {
        assert_eq!(find("root").unwrap(), Some((0, 0)));
        assert_eq!(find_group("root").unwrap(), Some(0));
        for name in ["no-such-user-here", "", "a:b", "zero\0byte"] {
            assert_eq!(find(name).unwrap(), None, "{name:?}");
            assert_eq!(find_group(name).unwrap(), None, "{name:?}");
        }
    }

    #[test]
    fn nobody_stays_root_by_the_number_that_changes_nothing() {
        let known = Identity { uid: 1, gid: 1, groups: vec![1] };
        for who in [
            Identity { uid: UNCHANGED, ..known.clone() },
            Identity { gid: UNCHANGED, ..known.clone() },
            Identity { groups: vec![1, UNCHANGED], ..known },
        ] {
            let error = become_identity(&who).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{who:?}");
        }
    }

    #[test]
    fn the_own_group_is_among_the_groups() {
        for gid in [0, 12_345] {
            assert!(groups_of("root", gid).unwrap().contains(&gid), "{gid}");
        }
        assert_eq!(groups_of("no-such-user-here", 7).unwrap(), [7]);
    }
}
