//! Readings of stacks that facts and waits share: frames from the leaf, the program's own code, who crowds the CPUs.

use dyno_record::name;
use dyno_record::observation::Observation;
use dyno_record::profile::{Frame, Origin, Profile, Stack};

use super::names;

/// Others' share of the CPU time that the target and they used: so much of its waiting for a CPU is their doing.
pub(super) fn crowd(seen: &Observation) -> f64 {
    let others = seen.host.foreign_ns + seen.host.peers_ns;
    let used = others + seen.process.cpu_ns;
    if used == 0 { 0.0 } else { others as f64 / used as f64 }
}

/// A stack's frames from the leaf to the root.
pub(super) fn leaf_first<'p>(profile: &'p Profile, stack: &Stack) -> Vec<&'p Frame> {
    stack.frames.iter().rev().map(|at| &profile.frames[*at as usize]).collect()
}

/// The innermost place in the program's own code: not a library's, not a run-time's. One in a standard library, or that a compiler
/// made, only where nothing of the program's stands further out: nobody can change it.
pub(super) fn own_place(profile: &Profile, frames: &[&Frame]) -> Option<String> {
    own_frame(profile, frames).map(place)
}

/// The same as a frame.
pub(super) fn own_frame<'f>(profile: &Profile, frames: &[&'f Frame]) -> Option<&'f Frame> {
    let own = || frames.iter().filter(|frame| is_own(profile, frame));
    let user_wrote = |frame: &&&Frame| !names::is(&frame.name, names::STANDARD);
    own().find(user_wrote).or_else(|| own().next()).copied()
}

/// Whether a frame is the program's own code.
pub(super) fn is_own(profile: &Profile, frame: &Frame) -> bool {
    const RUN_TIME: &[&str] = &[
        "std::*",
        "core::*",
        "alloc::*",
        "runtime.*",
        "runtime/*",
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
        "__vdso_*",
        "clone3",
        "operator new*",
        "operator delete*",
        "__rust*",
        "[*",
        "java.*",
        "javax.*",
        "jdk.*",
        "sun.*",
        "com.sun.*",
        "Interpreter*",
        "StubRoutines*",
        "*adapters",
        "_PyEval_*",
        "_PyFunction_*",
        "PyObject_*",
        "PyEval_*",
        "_PyObject_*",
    ];
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    let is_in = |table: names::Table| module.is_some_and(|module| names::is(&module.path, table));
    let library = is_in(names::LIBRARIES) || is_in(names::MACHINES);
    let of_run_time = [
        names::VIRTUAL_MACHINE,
        names::SIGNAL,
        names::INTERPRETER_LOCK,
        names::RUNS_PROGRAMS,
        names::COLLECTORS,
        names::READS_CLOCK,
    ];
    frame.origin == Origin::User
        && !library
        && !name::of_toolchain(frame)
        && !names::is(&frame.name, RUN_TIME)
        && !names::TOLD_BY_OTHERS.iter().chain(&of_run_time).any(|table| names::is(&frame.name, table))
}

/// A function and its file and line, for people.
pub(super) fn place(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({}:{line})", name::plain(&frame.name), short(file)),
        _ => name::plain(&frame.name),
    }
}

/// The last two parts of a path: enough to find it.
fn short(path: &str) -> &str {
    let from = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    &path[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted faults: a path told whole, or by its name alone; a line without its file.
    #[test]
    fn a_place_has_the_last_two_parts_of_its_files_path() {
        let at = |file: Option<&str>, line| {
            let file = file.map(str::to_owned);
            place(&Frame { name: "serve".into(), file, line, ..Frame::default() })
        };
        assert_eq!(at(Some("/home/a/src/main.c"), Some(7)), "serve (src/main.c:7)");
        assert_eq!(at(Some("main.c"), Some(7)), "serve (main.c:7)");
        assert_eq!(at(Some("src/main.c"), Some(7)), "serve (src/main.c:7)");
        assert_eq!([at(Some("main.c"), None), at(None, Some(7))], ["serve", "serve"]);
    }

    /// Planted faults: whatever is not the C library's is the program's; a standard library's function where one of the program's stands
    /// outside of it.
    #[test]
    fn a_place_is_one_that_its_author_can_change() {
        let place = |stack: &str| {
            let frame =
                |name: &str| Frame { name: name.to_owned(), origin: Origin::User, ..Frame::default() };
            let frames: Vec<Frame> = stack.split(';').rev().map(frame).collect();
            own_place(&Profile::default(), &frames.iter().collect::<Vec<_>>())
        };
        assert_eq!(place("_start;Py_RunMain;_PyRun_SimpleFileObject;PyEval_EvalCode;0x5d6440"), None);
        let logged =
            "main.main;main.serve;log.(*Logger).output;os.(*File).Write;runtime/internal/syscall.Syscall6";
        assert_eq!(place(logged).as_deref(), Some("main.serve"));
        let served = "net/http.(*Server).Serve.gowrap3;net/http.(*conn).serve;runtime.mallocgc";
        assert_eq!(place(served).as_deref(), Some("net/http.(*conn).serve"));
        assert_eq!(place("main;work;write").as_deref(), Some("work"));
        assert_eq!(place("main;write").as_deref(), Some("main"));
    }

    /// Planted faults: who asks is no other; a machine on which nothing ran divides by nothing.
    #[test]
    fn a_crowd_is_others_part_of_what_was_used() {
        let of = |foreign_ns, peers_ns, cpu_ns| {
            let mut seen = Observation::default();
            (seen.host.foreign_ns, seen.host.peers_ns, seen.process.cpu_ns) = (foreign_ns, peers_ns, cpu_ns);
            crowd(&seen)
        };
        assert_eq!([of(1, 2, 1), of(3, 0, 1), of(0, 0, 4), of(0, 0, 0)], [0.75, 0.75, 0.0, 0.0]);
    }
}
