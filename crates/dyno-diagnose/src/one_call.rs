//! One call that is nearly all that a thread does: an interpreter's built-in function, or a function of a library, with what it
//! calls itself. The rule for hot spots asks.
//!
//! Every function near the root of a stack takes all of the time and says nothing. A call does where it leaves the program that
//! its user wrote: a script's statement ends in one function of the interpreter, a program's in one of a library. What calls the
//! program back, an event loop, is no such call.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::name;
use dyno_record::profile::{Frame, Origin, Profile, Stack};

use super::frames::leaf_first;
use super::names;

/// Of a thread's time, what the call must take.
const OF_THREAD_MIN: f64 = 0.90;
/// Functions of the program below its root from which on a library is called by it: `main` of a launcher calls the library in
/// which the whole program is.
const CALLERS_MIN: usize = 2;

/// The same where the C library is called: nobody's whole program is in it.
const CALLERS_OF_C_MIN: usize = 1;

/// Functions in which nine tenths of the call's time is spent, at most: a search does one small thing over and over (7 to 9 of them in a
/// list of Python's and in a table of SQLite's), while a program that does its work through a library is spread over it (60 to 98).
const LEAVES_MAX: usize = 16;
const LEAVES_TAKE: f64 = 0.90;

/// The innermost function that takes so much.
pub(super) struct Call {
    /// With the file that it is in; one without a name by the named one that calls it.
    pub(super) place: String,
    /// Of what its thread was sampled at.
    pub(super) share: f64,
    /// Where it has no name, and what has one below it says what it does: that, with its share of the thread.
    pub(super) by: Option<(String, f64)>,
    /// The file whose names are missing.
    pub(super) nameless: Option<String>,
}

/// Of a call without a name, what a function with one must take to say what it does.
const SAYS_MIN: f64 = 0.25;

/// How much lies below one function, and how far from it.
#[derive(Default)]
struct Below {
    ns: u64,
    /// Frames down to the leaf, times nanoseconds.
    depth_ns: u128,
    /// Time of the functions in which it is spent.
    leaves: BTreeMap<String, u64>,
}

impl Below {
    /// Whether a few functions take nearly all of it.
    fn is_one_thing(&self) -> bool {
        let mut leaves: Vec<u64> = self.leaves.values().copied().collect();
        leaves.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
        leaves.iter().take(LEAVES_MAX).sum::<u64>() as f64 >= LEAVES_TAKE * self.ns as f64
    }
}

pub(super) fn of_thread(profile: &Profile, tid: u32) -> Option<Call> {
    let is_its =
        |stack: &&Stack| profile.threads.get(stack.thread as usize).is_some_and(|one| one.tid == tid);
    let is_told: Vec<bool> = profile.frames.iter().map(is_told_otherwise).collect();
    let (mut all_ns, mut functions) = (0, BTreeMap::<(String, Option<u32>), Below>::new());
    for stack in profile.stacks.iter().filter(is_its) {
        all_ns += stack.weight_ns;
        let frames = leaf_first(profile, stack);
        let mut told = Vec::new();
        // What a function that other rules tell of calls is a part of it: a collector's, say.
        let outermost = stack.frames.iter().position(|at| is_told[*at as usize]);
        let first = outermost.map_or(0, |from_root| frames.len() - from_root);
        for depth in (first..frames.len()).filter(|depth| is_call(profile, &frames, *depth)) {
            let key = (frames[depth].name.clone(), frames[depth].module);
            // One that calls itself counts once.
            if told.contains(&key) {
                continue;
            }
            let below = functions.entry(key.clone()).or_default();
            below.ns += stack.weight_ns;
            below.depth_ns += u128::from(stack.weight_ns) * depth as u128;
            *below.leaves.entry(frames[0].name.clone()).or_default() += stack.weight_ns;
            told.push(key);
        }
    }
    let large = functions.into_iter().filter(|(_, below)| below.ns as f64 >= OF_THREAD_MIN * all_ns as f64);
    let ((function, module), below) = large
        .min_by(|(_, a), (_, b)| (a.depth_ns * u128::from(b.ns)).cmp(&(b.depth_ns * u128::from(a.ns))))?;
    let file = module.and_then(|at| profile.modules.get(at as usize));
    let file = file.and_then(|module| module.path.rsplit('/').next()).unwrap_or_default();
    if below.ns == 0 || !below.is_one_thing() {
        return None;
    }
    let share = below.ns as f64 / all_ns as f64;
    if !function.starts_with("0x") {
        let place = format!("{} ({file})", name::plain(&function));
        return Some(Call { place, share, by: None, nameless: None });
    }
    let around = Around::of(profile, tid, &(function.clone(), module));
    let by = most(around.callees).map(|(name, ns)| (name, ns as f64 / all_ns as f64));
    let caller = most(around.callers).map_or_else(String::new, |(name, _)| format!(", called by {name}"));
    Some(Call {
        place: format!("a function of {file} without a name ({function}{caller})"),
        share,
        by: by.filter(|(_, part)| *part >= SAYS_MIN * share),
        nameless: Some(file.to_owned()),
    })
}

/// Functions with names next to one without.
#[derive(Default)]
struct Around {
    /// The nearest ones that call it.
    callers: BTreeMap<String, u64>,
    /// All that it calls, with what they call.
    callees: BTreeMap<String, u64>,
}

impl Around {
    fn of(profile: &Profile, tid: u32, call: &(String, Option<u32>)) -> Around {
        let mut around = Around::default();
        let is_its =
            |stack: &&Stack| profile.threads.get(stack.thread as usize).is_some_and(|one| one.tid == tid);
        for stack in profile.stacks.iter().filter(is_its) {
            let frames = leaf_first(profile, stack);
            let is_it = |frame: &&Frame| (&frame.name, frame.module) == (&call.0, call.1);
            let Some(at) = frames.iter().rposition(is_it) else { continue };
            let has_name = |frame: &&&Frame| frame.origin == Origin::User && !frame.name.starts_with("0x");
            let below: BTreeSet<&str> =
                frames[..at].iter().filter(has_name).map(|frame| frame.name.as_str()).collect();
            below
                .into_iter()
                .for_each(|name| *around.callees.entry(name::plain(name)).or_default() += stack.weight_ns);
            if let Some(caller) = frames[at + 1..].iter().find(has_name) {
                *around.callers.entry(name::plain(&caller.name)).or_default() += stack.weight_ns;
            }
        }
        around
    }
}

fn most(sums: BTreeMap<String, u64>) -> Option<(String, u64)> {
    sums.into_iter().max_by_key(|(_, ns)| *ns)
}

/// Whether the frame is one of a call out of the program, all of whose time is spent in user code that does not come back to it.
fn is_call(profile: &Profile, frames: &[&Frame], depth: usize) -> bool {
    let frame = frames[depth];
    let below = &frames[..=depth];
    let above = || frames[depth + 1..].iter().filter(|one| one.origin == Origin::User);
    let is_of_interpreter = above().any(|one| is_interpreter(one));
    // A built-in function of a stripped interpreter is told by its address. Elsewhere one without a name may be any part of it all.
    let has_place = !frame.name.starts_with("0x") || is_of_interpreter && frame.module.is_some();
    let is_plain = frame.origin == Origin::User && !frame.inlined && has_place;
    if !is_plain || below.iter().any(|one| is_interpreter(one)) {
        return false;
    }
    let in_program = |one: &&&Frame| !is_in_library(profile, one);
    // The loader's way in is the program's as well: it calls the C library, which calls `main`.
    let mut outer = frames.iter().rev().filter(|one| one.origin == Origin::User);
    let begins = outer.next().is_some_and(|one| !is_in_library(profile, one))
        && outer.next().is_some_and(|one| is_in_library(profile, one));
    let callers = if is_in_c(profile, frame) { CALLERS_OF_C_MIN } else { CALLERS_MIN };
    below.iter().all(|one| one.origin == Origin::User)
        && (is_of_interpreter
            || below.iter().all(|one| is_in_library(profile, one))
                && above().filter(in_program).count() >= callers + usize::from(begins))
}

/// The loop of an interpreter of programs. SQLite's runs a statement, which is what is called.
fn is_interpreter(frame: &Frame) -> bool {
    names::is(&frame.name, names::INTERPRETER) && !frame.name.starts_with("sqlite3")
}

/// What other rules tell of.
fn is_told_otherwise(frame: &Frame) -> bool {
    let tables = || names::TOLD_BY_OTHERS.iter();
    frame.origin == Origin::User && tables().any(|table| names::is(&frame.name, table))
}

/// Whether it lies in the C library.
fn is_in_c(profile: &Profile, frame: &Frame) -> bool {
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    let file = module.and_then(|module| module.path.rsplit('/').next()).unwrap_or_default();
    file.starts_with("libc.so") || file.starts_with("libc-") || file.starts_with("ld-musl")
}

/// Whether it lies in a shared library; code that is made at run time lies in no file.
fn is_in_library(profile: &Profile, frame: &Frame) -> bool {
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    module.is_some_and(|module| module.path.contains(".so"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::{Frame, Module, Origin, Stack};

    use crate::scene::{S, Scene};

    /// A thread that runs for so long, with stacks from the root; `lib:` marks what lies in a library, `c:` in C's, the weights are percents.
    fn calls(run_s: f64, stacks: &[(&str, u64)]) -> Scene {
        let mut scene = Scene::new(&[run_s]);
        let profile = scene.seen.on_cpu.as_mut().unwrap();
        profile.modules.push(Module { path: "/usr/lib/libx.so.3".to_owned(), ..Module::default() });
        let other = profile.modules.len() as u32 - 1;
        for (folded, weight) in stacks {
            let mut frames = Vec::new();
            for name in folded.split(';') {
                let parts = name.split_once(':').unwrap_or(("", name));
                let module = match parts {
                    (_, jit) if jit.starts_with("jit") => None,
                    ("c", _) => Some(1),
                    ("lib", _) => Some(other),
                    _ => Some(0),
                };
                let name = parts.1.to_owned();
                profile.frames.push(Frame { name, module, origin: Origin::User, ..Frame::default() });
                frames.push(profile.frames.len() as u32 - 1);
            }
            let (samples, weight_ns) = (*weight, weight * S / 10);
            profile.stacks.push(Stack { frames, samples, weight_ns, ..Stack::default() });
        }
        scene
    }

    fn told(run_s: f64, stacks: &[(&str, u64)]) -> Option<String> {
        let said = calls(run_s, stacks).diagnosed();
        let spot = said.findings.iter().find(|finding| finding.class == Class::UserHotSpot);
        spot.map(|finding| finding.summary.clone())
    }

    /// `words.count(word)`, and a statement of SQLite's from Perl without names below it. Planted fault: only the leaf is looked at.
    #[test]
    fn a_call_that_is_nearly_all_of_a_thread_is_told_with_what_it_calls() {
        let contains = [
            ("main;_PyEval_EvalFrameDefault;list_count;PyObject_RichCompare;long_richcompare", 50),
            ("main;_PyEval_EvalFrameDefault;list_count;PyObject_RichCompare", 30),
            ("main;_PyEval_EvalFrameDefault;list_count", 17),
            ("main;_PyEval_EvalFrameDefault", 3),
        ];
        let said = told(9.9, &contains).unwrap();
        assert!(said.starts_with("list_count (x) with what it calls is 97 %"), "{said}");
        let scan = [
            ("main;0x10;lib:sqlite3_step;lib:sqlite3VdbeExec;lib:0x20", 60),
            ("main;0x10;lib:sqlite3_step;lib:0x30", 39),
            ("main;0x10", 1),
        ];
        assert!(told(9.9, &scan).unwrap().starts_with("sqlite3_step (libx.so.3)"));
        assert_eq!(told(5.0, &scan), None, "it waits for something as well");
    }

    /// Planted faults: a function without a name is none; who calls it, and what it calls that has a name, is not told.
    #[test]
    fn a_call_of_a_stripped_interpreter_is_told_by_its_address() {
        let contains = [
            ("main;0x10;_PyEval_EvalFrameDefault;0x568bf0", 58),
            ("main;0x10;_PyEval_EvalFrameDefault;0x568bf0;PyObject_RichCompare;0x569fc0", 41),
            ("main;0x10;_PyEval_EvalFrameDefault", 1),
        ];
        let said = told(9.9, &contains).unwrap();
        let place = "a function of x without a name (0x568bf0, called by _PyEval_EvalFrameDefault)";
        assert!(said.starts_with(&format!("{place} with what it calls is 99 %")), "{said}");
        let facts = calls(9.9, &contains).diagnosed().findings.remove(0).evidence;
        assert!(facts.iter().any(|fact| fact.text == "41 % is in PyObject_RichCompare, which it calls"));
        assert_eq!(told(9.9, &[("main;0x10;0x20", 60), ("main;0x10;0x30", 40)]), None, "no interpreter");
    }

    /// Planted faults: none of the two lines (what calls back; `CALLERS_MIN`); an interpreter below a call.
    #[test]
    fn what_runs_the_program_itself_is_no_call_out_of_it() {
        let parts = |root: &str, leaf: &str| {
            let stack = |part: &str| format!("{root};lib:0x{part};{leaf}_{part}");
            let (one, other) = (stack("20"), stack("30"));
            told(9.9, &[(&one, 50), (&other, 50)])
        };
        assert_eq!(parts("main;serve;lib:event_base_loop", "handle"), None, "an event loop calls back");
        assert_eq!(parts("main;serve;lib:JavaMain", "jit"), None, "code without a file");
        assert_eq!(parts("main;lib:ruby_run_node", "lib:0x40"), None, "a launcher");
        assert_eq!(
            parts("_start;lib:__libc_start_main;main;lib:ruby_run_node", "lib:0x40"),
            None,
            "its start"
        );
        assert_eq!(parts("main;_PyEval_EvalFrameDefault;map_next", "_PyEval_EvalFrameDefault"), None);
        assert!(parts("main;serve;lib:strcoll", "lib:0x40").is_some());
        // `main`, into which all else was folded, calls `getenv`. Planted fault: C's library may hold a program as any other may.
        let searches = "_start;c:__libc_start_main;main;c:getenv";
        let [search, plt] = [format!("{searches};c:strncmp"), format!("{searches};c:0x26000")];
        let both = [(search.as_str(), 74), (searches, 14), (plt.as_str(), 12)];
        assert!(told(9.9, &both).is_some());
    }

    /// `executemany` with a thousand rows. Planted fault: however many functions it is spread over (`LEAVES_MAX` of 1,000).
    #[test]
    fn a_library_through_which_the_work_is_done_is_no_search() {
        let spread = |many: usize| {
            let stacks: Vec<String> = (0..many)
                .map(|at| format!("main;_PyEval_EvalFrameDefault;execute;sqlite3_step;part_{at}"))
                .collect();
            let stacks: Vec<(&str, u64)> = stacks.iter().map(|stack| (stack.as_str(), 10)).collect();
            told(9.9, &stacks)
        };
        assert!(spread(10).is_some());
        assert_eq!(spread(40), None);
    }

    #[test]
    fn several_calls_are_none_that_is_all() {
        let both = [
            ("main;_PyEval_EvalFrameDefault;list_count;compare", 50),
            ("main;_PyEval_EvalFrameDefault;dict_update;insert", 50),
        ];
        assert_eq!(told(9.9, &both), None);
    }
}
