//! What a launched child does to itself between fork and exec, and the exec. Runs in the child, called by its warden.
//!
//! The warden learns by a pipe: one ready note when the child is whole and blocked, then either end of file (exec has
//! closed the pipe) or a failure note. Nothing here returns into the warden's code but the exit code.

use super::step::Step;
use super::wire::Order;
use crate::errno::{self, checked};
use crate::{affinity, child, signal, socket, user};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Descriptors can be handed to a program as 3 to 63; above that the child keeps its own while it is set up.
pub(super) const TARGET_MAX: i32 = 63;
/// A failed exec's exit status, as in a shell.
const NOT_RUN: i32 = 127;
/// One step number and one errno.
pub(super) const NOTE_BYTES: usize = 8;

/// What the child is given by its warden.
pub(super) struct Given {
    pub(super) output: OwnedFd,
    pub(super) inherit: Vec<OwnedFd>,
    /// A byte here lets it go; end of file ends it.
    pub(super) go: OwnedFd,
    /// Where notes go.
    pub(super) notes: OwnedFd,
}

/// The child's whole life up to exec; the exit code when that fails.
pub(super) fn live(order: &Order, given: &Given) -> i32 {
    // The pipes change places with the descriptors: from here on `given` is not open any more.
    let (go, notes) = match begin(order, given) {
        Ok(pipes) => pipes,
        Err((step, errno)) => return tell(&given.notes, step, errno),
    };
    let program = match prepare(order) {
        Ok(program) => program,
        Err((step, errno)) => return tell(&notes, step, errno),
    };
    tell(&notes, Step::Ready, 0);
    if await_go(&go) {
        let errno = program.run();
        tell(&notes, Step::Run, errno);
    }
    NOT_RUN
}

type Failed = (Step, i32);

fn at(step: Step) -> impl Fn(std::io::Error) -> Failed {
    move |error| (step, error.raw_os_error().unwrap_or(libc::EIO))
}

fn begin(order: &Order, given: &Given) -> Result<(OwnedFd, OwnedFd), Failed> {
    child::set_session().map_err(at(Step::Session))?;
    signal::unblock_all_in_child();
    arrange(given, &order.targets).map_err(at(Step::Descriptors))
}

fn prepare(order: &Order) -> Result<Program, Failed> {
    if let Some(cpus) = &order.cpus {
        affinity::set_current(cpus).map_err(at(Step::Cpus))?;
    }
    if let Some((uid, gid)) = order.user {
        become_user(uid, gid).map_err(at(Step::User))?;
    }
    // After the change of user, which clears it.
    child::die_with_parent().map_err(at(Step::Parent))?;
    child::no_new_privs().map_err(at(Step::Privileges))?;
    // After the change of user, whose rights count here.
    if let Some(folder) = &order.cwd {
        std::env::set_current_dir(std::ffi::OsStr::from_bytes(folder)).map_err(at(Step::Folder))?;
    }
    Program::new(order).ok_or((Step::Words, libc::EINVAL))
}

/// Leaves open: 0 from /dev/null unless it is a target, 1 and 2 to the output, the targets, and the two pipes out of the targets' way.
fn arrange(given: &Given, targets: &[i32]) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (go, notes) = (move_up(&given.go)?, move_up(&given.notes)?);
    let output = move_up(&given.output)?;
    // Every source is moved up first: a target's number may be another source's.
    let inherit = given.inherit.iter().map(move_up).collect::<std::io::Result<Vec<_>>>()?;
    let null = std::fs::OpenOptions::new().read(true).open("/dev/null")?;
    copy_to(null.as_raw_fd(), 0)?;
    copy_to(output.as_raw_fd(), 1)?;
    copy_to(output.as_raw_fd(), 2)?;
    for (from, &target) in inherit.iter().zip(targets) {
        copy_to(from.as_raw_fd(), target)?;
    }
    let kept: Vec<RawFd> = targets.iter().copied().chain([go.as_raw_fd(), notes.as_raw_fd()]).collect();
    // What they own is closed by number next; dropping them would close numbers that may be targets by now.
    std::mem::forget((output, inherit, null));
    keep_only(kept);
    Ok((go, notes))
}

fn move_up(fd: &OwnedFd) -> std::io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes an integer.
    let moved = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, TARGET_MAX + 1) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// `from` is never `to` here, so the copy loses close-on-exec, as it must.
fn copy_to(from: RawFd, to: RawFd) -> std::io::Result<()> {
    // SAFETY: dup2 takes two integers; whatever `to` was in this child is not used any more.
    checked(unsafe { libc::dup2(from, to) })?;
    Ok(())
}

/// Closes every descriptor of this process but 0 to 2 and those in `kept`. Only in a forked process that never returns
/// to the code which owned the others.
pub(super) fn keep_only(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept.into_iter().filter(|&fd| fd > 2) {
        close_range(first, fd.cast_unsigned().saturating_sub(1));
        first = fd.cast_unsigned() + 1;
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    if first > last {
        return;
    }
    // SAFETY: close_range takes integers; the descriptors belong to code that this process will not run again.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed == 0 {
        return;
    }
    // Before Linux 5.9 each number is tried; the limit bounds what can be open.
    let end = u64::from(last).min(crate::proc::nofile().1);
    for fd in u64::from(first)..=end {
        // SAFETY: as above.
        unsafe { libc::close(fd as RawFd) };
    }
}

fn become_user(uid: u32, gid: u32) -> std::io::Result<()> {
    if user::current() == (uid, gid) {
        return Ok(());
    }
    user::become_identity(&user::Identity::of_numbers(uid, gid))
}

fn tell(notes: &OwnedFd, step: Step, errno: i32) -> i32 {
    let mut note = [0; NOTE_BYTES];
    note[..4].copy_from_slice(&(step as u32).to_ne_bytes());
    note[4..].copy_from_slice(&errno.to_ne_bytes());
    // A warden that is gone reads nothing; the next read ends this child.
    let _ = socket::write(notes, &note);
    NOT_RUN
}

/// Reads a note as the child wrote it.
pub(super) fn read_note(note: &[u8]) -> Option<Failed> {
    let (step, errno) = note.split_first_chunk::<4>()?;
    let errno = i32::from_ne_bytes(errno.try_into().ok()?);
    Some((Step::from_number(u64::from(u32::from_ne_bytes(*step)))?, errno))
}

fn await_go(go: &OwnedFd) -> bool {
    matches!(socket::read(go, &mut [0]), socket::Io::Done(1))
}

/// A program with its words in the shape that exec wants.
struct Program {
    argv: Vec<CString>,
    env: Vec<CString>,
}

impl Program {
    fn new(order: &Order) -> Option<Program> {
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let os = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        env.extend(order.env.iter().map(|(name, value)| (os(name), os(value))));
        let joined = |(name, value): (OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let argv = order.argv.iter().map(|word| CString::new(word.clone()));
        Some(Program {
            argv: argv.collect::<Result<_, _>>().ok()?,
            env: env.into_iter().map(joined).collect::<Result<_, _>>().ok()?,
        })
    }

    /// Becomes the program; comes back only with the errno of a failure. A name without a slash is looked up in PATH.
    fn run(&self) -> i32 {
        let Some(name) = self.argv.first() else { return libc::ENOENT };
        let (argv, env) = (pointers(&self.argv), pointers(&self.env));
        // SAFETY: both arrays end with null and point to C strings owned by `self`.
        unsafe { libc::execvpe(name.as_ptr(), argv.as_ptr(), env.as_ptr()) };
        errno::last()
    }
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let (reader, writer) = socket::pipe().unwrap();
        for step in Step::ALL {
            tell(&writer, step, libc::ENOENT);
            let mut note = [0; NOTE_BYTES];
            assert_eq!(socket::read(&reader, &mut note), socket::Io::Done(NOTE_BYTES));
            assert_eq!(read_note(&note), Some((step, libc::ENOENT)));
            assert!(!step.words().is_empty());
        }
        assert_eq!((read_note(&[0; 3]), read_note(&[255; 8])), (None, None));
    }

    #[test]
    fn added_variables_replace_those_of_the_same_name() {
        let order = Order {
            argv: vec![b"x".to_vec()],
            env: vec![(b"PATH".to_vec(), b"/nowhere".to_vec()), (b"DYNO_NEW".to_vec(), b"1".to_vec())],
            cwd: None,
            cpus: None,
            user: None,
            targets: vec![],
        };
        let env = Program::new(&order).unwrap().env;
        let paths: Vec<&CString> = env.iter().filter(|word| word.as_bytes().starts_with(b"PATH=")).collect();
        assert_eq!(paths, [&CString::new("PATH=/nowhere").unwrap()]);
        assert!(env.contains(&CString::new("DYNO_NEW=1").unwrap()));
    }
}
