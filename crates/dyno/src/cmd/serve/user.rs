//! Who the workers of `dyno serve` are: started as root they become somebody who may do nothing.
//!
//! `dyno serve` asks before it starts; the engine does it in each child, after sockets and the log are open. What has no
//! rights cannot lose them to a peer who finds a way in.

use std::io;

use dyno_engine::Identity;
use dyno_sys::user;

use dyno_lab::Failure;

/// Who serves when root did not say: every host has it, and nothing belongs to it.
const DEFAULT: &str = "nobody";
/// Its number where the accounts do not know it (a container of one file): the kernel's own for nobody
/// (/proc/sys/kernel/overflowuid).
const NOBODY: u32 = 65_534;

/// A user to become, with the name to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) identity: Identity,
}

/// Who workers become; `None`: they stay who this process is.
///
/// # Errors
/// When the user or the group is not known, or another one is asked for by somebody who is not root.
pub(super) fn of_workers(word: Option<&str>) -> Result<Option<Chosen>, Failure> {
    match (word, user::current()) {
        (None, (0, _)) => default().map(Some),
        (None, _) => Ok(None),
        (Some(word), me) => chosen(word).and_then(|user| allowed(user, me)),
    }
}

/// Root may become anybody, and stay root; others may name themselves, with the group that they have.
fn allowed(user: Chosen, (uid, gid): (u32, u32)) -> Result<Option<Chosen>, Failure> {
    let has_group = user.identity.gid == gid || !user.name.contains(':');
    match (uid, user.identity.uid) {
        (0, 0) if user.identity.gid == 0 => Ok(None),
        (0, _) => Ok(Some(user)),
        (me, wanted) if me == wanted && has_group => Ok(None),
        _ => Err(Failure::usage(format!("cannot serve as {}", user.name))
            .likely("only root may become another user or group")
            .try_this("dyno serve, without --user")),
    }
}

fn default() -> Result<Chosen, Failure> {
    let ids = user::find(DEFAULT).map_err(|error| unreadable(&error))?;
    let (uid, gid) = ids.unwrap_or((NOBODY, NOBODY));
    Ok(Chosen { name: DEFAULT.to_owned(), identity: Identity::of_numbers(uid, gid) })
}

/// `NAME`, `NAME:GROUP`, or numbers in their places.
fn chosen(word: &str) -> Result<Chosen, Failure> {
    let (name, group) = match word.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (word, None),
    };
    let (uid, own_gid) = user_numbers(name, group)?;
    let gid = group.map_or(Ok(own_gid), group_number)?;
    let groups = user::groups_of(name, gid).map_err(|error| unreadable(&error))?;
    Ok(Chosen { name: word.to_owned(), identity: Identity { uid, gid, groups } })
}

fn user_numbers(name: &str, group: Option<&str>) -> Result<(u32, u32), Failure> {
    let found = user::find(name).map_err(|error| unreadable(&error))?;
    match (found, number(name), group) {
        (Some(ids), ..) => Ok(ids),
        // A number that no account has needs its group said: there is nowhere to look it up.
        (None, Some(uid), Some(_)) => Ok((uid, 0)),
        (None, Some(uid), None) => Err(Failure::usage(format!("user {uid} has no group that is known"))
            .likely("a user by number needs its group")
            .try_this(format!("dyno serve --user {uid}:{uid}"))),
        (None, None, _) => Err(Failure::usage(format!("there is no user \"{name}\""))
            .likely("a typing mistake, or the user was not made yet")
            .try_this("getent passwd")),
    }
}

fn group_number(group: &str) -> Result<u32, Failure> {
    let found = user::find_group(group).map_err(|error| unreadable(&error))?;
    found.or_else(|| number(group)).ok_or_else(|| {
        Failure::usage(format!("there is no group \"{group}\""))
            .likely("a typing mistake, or the group was not made yet")
            .try_this("getent group")
    })
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != user::UNCHANGED)
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::error("cannot look the user up").because(error).try_this("dyno serve --user 65534:65534")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn identity(word: &str) -> Identity {
        chosen(word).unwrap().identity
    }

    #[test]
    fn a_user_is_named_by_name_or_numbers_with_or_without_a_group() {
        assert_eq!(identity("root").uid, 0);
        let numbers = identity("12345:23456");
        assert_eq!((numbers.uid, numbers.gid, numbers.groups), (12_345, 23_456, vec![23_456]));
        let mixed = identity("12345:root");
        assert_eq!((mixed.uid, mixed.gid), (12_345, 0));
    }

    #[test]
    fn what_is_not_known_is_said() {
        for (word, says) in [
            ("no-such-user", "there is no user \"no-such-user\""),
            ("12345:no-such-group", "there is no group \"no-such-group\""),
            ("12345", "user 12345 has no group that is known"),
            ("", "there is no user \"\""),
            ("4294967296:1", "there is no user \"4294967296\""),
            ("4294967295:1", "there is no user \"4294967295\""),
            ("1:4294967295", "there is no group \"4294967295\""),
        ] {
            let lines = chosen(word).unwrap_err().lines();
            assert!(lines.starts_with(&format!("error: {says}\n")), "{word}: {lines}");
        }
    }

    #[test]
    fn root_may_become_anybody_and_others_only_stay_who_they_are() {
        let of = |uid| Chosen { name: "x".into(), identity: Identity::of_numbers(uid, uid) };
        assert_eq!(allowed(of(7), (0, 0)).unwrap(), Some(of(7)));
        assert_eq!(allowed(of(0), (0, 0)).unwrap(), None);
        assert_eq!(allowed(of(7), (7, 9)).unwrap(), None);
        assert!(allowed(of(8), (7, 7)).is_err() && allowed(of(0), (7, 7)).is_err());
        let with_group = Chosen { name: "x:y".into(), ..of(7) };
        assert_eq!(allowed(with_group.clone(), (7, 7)).unwrap(), None);
        assert!(allowed(with_group, (7, 9)).is_err(), "the group is another");
    }

    #[test]
    fn who_is_not_told_is_nobody() {
        let user = default().unwrap();
        assert_eq!(user.name, "nobody");
        assert!(user.identity.uid > 0 && user.identity.groups == [user.identity.gid]);
    }
}
