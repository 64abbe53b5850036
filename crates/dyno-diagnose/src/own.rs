//! The program's own code in a stack: which frames are its own, and what people call such a place.
//!
//! What the CPU was spent on and what was waited for (`facts`, `waits`) are both told by it.

use dyno_record::profile::{Frame, Origin, Profile, Stack};

use super::names;

/// A stack's frames from the leaf to the root.
pub(super) fn leaf_first<'p>(profile: &'p Profile, stack: &Stack) -> Vec<&'p Frame> {
    stack.frames.iter().rev().map(|at| &profile.frames[*at as usize]).collect()
}

/// The innermost place in the program's own code: not a library's, not a run-time's.
pub(super) fn own_place(profile: &Profile, frames: &[&Frame]) -> Option<String> {
    frames.iter().find(|frame| is_own(profile, frame)).map(|frame| place(frame))
}

/// Whether a frame is the program's own code.
pub(super) fn is_own(profile: &Profile, frame: &Frame) -> bool {
    const RUN_TIME: &[&str] = &[
        "std::*",
        "core::*",
        "alloc::*",
        "runtime.*",
        "syscall.*",
        "internal/*",
        "__libc_start*",
        "_start",
        "<*",
        "0x*",
        "sync.*",
        "time.*",
        "start_thread",
        "__clone*",
        "clone3",
        "operator new*",
        "operator delete*",
        "__rust*",
        "[*",
    ];
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    let library = module.is_some_and(|module| names::is(&module.path, names::LIBRARIES));
    let tables = [
        names::ALLOCATOR,
        names::COPY,
        names::FORMAT,
        names::ACQUIRE,
        names::RELEASE,
        names::AWAIT,
        names::WRAPPERS,
    ];
    frame.origin == Origin::User
        && !library
        && !names::is(&frame.name, RUN_TIME)
        && !tables.iter().any(|table| names::is(&frame.name, table))
}

/// A function and its file and line, for people.
pub(super) fn place(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({}:{line})", frame.name, short(file)),
        _ => frame.name.clone(),
    }
}

/// The last two parts of a path: enough to find it.
fn short(path: &str) -> &str {
    let from = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    &path[from..]
}
