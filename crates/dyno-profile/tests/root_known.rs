//! Programs whose shares are known by their construction, built here, watched, and compared with the profile.
//!
//! Shares are compared within two points or four standard errors of so many samples, whichever is more: a short run has
//! few. `DYNO_KNOWN=99x30` watches each at 99 Hz for 30 s of CPU instead, and prints what it finds with `--nocapture`.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::Running;
use dyno_profile::{CallGraph, Options, Target, record};
use dyno_record::profile::{Frame, Origin, Profile, Stack};
use dyno_sys::{clock, proc};

/// Samples per second of CPU, and seconds of CPU. A prime near 2,000, so that two seconds tell a share within four points.
fn length() -> (u64, u64) {
    let Ok(asked) = std::env::var("DYNO_KNOWN") else { return (1_999, 2) };
    let (hz, seconds) = asked.split_once('x').unwrap();
    (hz.parse().unwrap(), seconds.parse().unwrap())
}

/// How often the target's CPU time is looked at.
const LOOK_NS: u64 = 20_000_000;

/// Nothing here takes longer unless it is broken.
const DEADLINE: Duration = Duration::from_secs(60);

/// Points that a share may be off by, beside the error of counting.
const POINTS_MAX: f64 = 2.0;

/// Stacks that must reach main or a thread's start.
const WHOLE_MIN: f64 = 0.98;

/// Watches a program until it has burnt enough CPU, however much of it a loaded machine gives.
fn watched(running: &Running, call_graph: CallGraph) -> Profile {
    let (frequency_hz, seconds) = length();
    let options = Options { frequency_hz, duration: Some(DEADLINE), call_graph, ..Options::default() };
    let stop = AtomicBool::new(false);
    let burnt = || proc::run_ns(running.pid()).unwrap();
    let enough_ns = burnt() + seconds * 1_000_000_000;
    let profile = std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            while burnt() < enough_ns && begun.elapsed() < DEADLINE {
                clock::sleep_ns(LOOK_NS);
            }
            stop.store(true, Ordering::Relaxed);
        });
        record(&Target::Process(running.pid()), &options, &stop).unwrap()
    });
    assert!(
        profile.sampling.samples > frequency_hz * seconds / 4,
        "{:?} {:?}",
        profile.sampling,
        profile.warnings
    );
    profile
}

fn frames<'p>(profile: &'p Profile, stack: &Stack) -> impl DoubleEndedIterator<Item = &'p Frame> {
    stack.frames.clone().into_iter().map(|at| &profile.frames[at as usize])
}

/// The share of time, in percent, of stacks that `is` says yes to.
fn share(profile: &Profile, is: impl Fn(&[&Frame]) -> bool) -> f64 {
    let yes = |stack: &&Stack| is(&frames(profile, stack).collect::<Vec<_>>());
    let ns: u64 = profile.stacks.iter().filter(yes).map(|stack| stack.weight_ns).sum();
    100.0 * ns as f64 / profile.total_ns() as f64
}

/// The share of stacks with a function anywhere in them.
fn share_of(profile: &Profile, name: &str) -> f64 {
    share(profile, |frames| frames.iter().any(|frame| frame.name == name))
}

fn assert_share(profile: &Profile, what: &str, found: f64, expected: f64) {
    let part = expected / 100.0;
    let error = 100.0 * (part * (1.0 - part) / profile.sampling.samples as f64).sqrt();
    let points_max = POINTS_MAX.max(4.0 * error);
    println!("{what}: {found:.2} %, by construction {expected} % (±{points_max:.1})");
    assert!(
        (found - expected).abs() <= points_max,
        "{what}: {found:.2} % of {expected} %: {:#?}",
        top(profile)
    );
}

/// Stacks that reach one of `roots`.
fn assert_whole(profile: &Profile, roots: &[&str]) {
    let reaches = |frames: &[&Frame]| frames.iter().any(|frame| roots.contains(&frame.name.as_str()));
    let whole = share(profile, reaches) / 100.0;
    println!(
        "whole stacks: {:.2} %, {} of {} marked as cut",
        100.0 * whole,
        profile.sampling.truncated,
        profile.sampling.samples
    );
    assert!(whole >= WHOLE_MIN, "only {whole} of the stacks are whole: {:#?}", top(profile));
    assert!((profile.sampling.truncated as f64) <= 0.02 * profile.sampling.samples as f64);
}

/// The heaviest stacks, for the message of a failure.
fn top(profile: &Profile) -> Vec<(u64, Vec<&str>)> {
    let names = |stack: &Stack| frames(profile, stack).map(|frame| frame.name.as_str()).collect();
    profile.stacks.iter().take(8).map(|stack| (stack.samples, names(stack))).collect()
}

fn assert_parts(profile: &Profile, names: [&str; 3], roots: &[&str]) {
    for (name, expected) in names.into_iter().zip([60.0, 30.0, 10.0]) {
        assert_share(profile, name, share_of(profile, name), expected);
    }
    assert_whole(profile, roots);
}

const PARTS: [&str; 3] = ["work_sixty", "work_thirty", "work_ten"];

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn three_functions_have_their_shares_with_lines_and_callers() {
    let Some(running) = Running::start("cc", &["-O2", "-g", "-fomit-frame-pointer"], "parts.c", &[]) else {
        return;
    };
    let profile = watched(&running, CallGraph::Auto);
    assert_parts(&profile, PARTS, &["main"]);
    let called = share(&profile, |frames| {
        frames.windows(2).any(|pair| pair[0].name == "turn" && pair[1].name == "work_sixty")
    });
    assert_share(&profile, "work_sixty called by turn", called, 60.0);
    let lined = profile.frames.iter().find(|frame| frame.name == "turn").unwrap();
    assert!(lined.file.as_ref().unwrap().ends_with("parts.c") && lined.line.is_some(), "{lined:?}");
    let program = profile.modules.iter().find(|module| module.path.ends_with("/program")).unwrap();
    assert!(program.symbols && program.unwound_by == "dwarf", "{program:?}");
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn a_program_with_frame_pointers_can_be_walked_by_them() {
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer"];
    let Some(running) = Running::start("cc", &flags, "parts.c", &[]) else { return };
    assert_parts(&watched(&running, CallGraph::FramePointers), PARTS, &["main"]);
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn a_static_program_has_its_shares_too() {
    let Some(running) = Running::start("cc", &["-O2", "-static", "-fomit-frame-pointer"], "parts.c", &[])
    else {
        return;
    };
    assert_parts(&watched(&running, CallGraph::Auto), PARTS, &["main"]);
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn a_stripped_program_has_three_nameless_functions_with_their_shares() {
    let flags = ["-O2", "-s", "-fomit-frame-pointer"];
    let Some(running) = Running::start("cc", &flags, "parts.c", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let mut leaves: Vec<f64> = Vec::new();
    let names: HashSet<&str> = profile.frames.iter().map(|frame| frame.name.as_str()).collect();
    for name in names.into_iter().filter(|name| name.starts_with("0x")) {
        leaves.push(share(&profile, |frames| {
            frames.iter().rfind(|frame| frame.origin == Origin::User).is_some_and(|frame| frame.name == name)
        }));
    }
    leaves.sort_by(|a, b| b.total_cmp(a));
    for (found, expected) in leaves.iter().zip([60.0, 30.0, 10.0]) {
        assert_share(&profile, "a nameless function", *found, expected);
    }
    let program = profile.modules.iter().find(|module| module.path.ends_with("/program")).unwrap();
    assert!(program.unwound_by == "dwarf", "{program:?}");
    // libc keeps its exported names: a stack is whole when it comes from what calls main.
    assert_whole(
        &profile,
        &["__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "_start"],
    );
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn kernel_and_user_are_told_apart() {
    let Some(running) = Running::start("cc", &["-O2", "-g"], "halves.c", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let kernel = share(&profile, |frames| frames.last().is_some_and(|frame| frame.origin == Origin::Kernel));
    assert_share(&profile, "in the kernel", kernel, 50.0);
    assert_share(&profile, "below in_the_kernel", share_of(&profile, "in_the_kernel"), 50.0);
    assert_whole(&profile, &["main"]);
}

/// Both halves last ten milliseconds, a slice is four at most: two in five hold a change, half of one in each of those, and no
/// other holds both.
/// Fault: samples that are counted at the moment when they are read, or all in the first slice.
#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn samples_stand_in_the_slice_they_fell_in() {
    let Some(running) = Running::start("cc", &["-O2", "-g"], "halves.c", &[]) else { return };
    let duration = Some(Duration::from_millis(1_500));
    let options = Options { frequency_hz: 1_999, duration, ..Options::default() };
    let profile = record(&Target::Process(running.pid()), &options, &AtomicBool::new(false)).unwrap();
    // At most 1,024 slices, and as short as that allows: of a second and a half two milliseconds each, unless a busy machine
    // ends late.
    let last = profile.stacks.iter().flat_map(|stack| &stack.slices).map(|(slice, _)| *slice).max().unwrap();
    let slice_ns = profile.slice_ns.unwrap();
    assert!(last < 1_024 && (slice_ns == 1_000_000 || last >= 512), "{last} slices of {slice_ns} ns");
    assert!([1_000_000, 2_000_000, 4_000_000].contains(&slice_ns), "{slice_ns} ns");
    let mut halves = std::collections::BTreeMap::<u32, [u32; 2]>::new();
    for stack in &profile.stacks {
        let is_kernel = frames(&profile, stack).any(|frame| frame.name == "in_the_kernel");
        for (slice, samples) in &stack.slices {
            halves.entry(*slice).or_default()[usize::from(is_kernel)] += samples;
        }
    }
    let all: u32 = halves.values().flatten().sum();
    assert_eq!(u64::from(all), profile.sampling.samples, "each sample has its slice");
    let mixed: u32 = halves.values().map(|[outside, inside]| outside.min(inside)).sum();
    assert!(mixed * 5 < all, "{mixed} of {all} stand beside samples of the other half");
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn folded_and_recursive_functions_keep_their_places() {
    let Some(running) = Running::start("cc", &["-O2", "-g"], "shapes.c", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let folded = share(&profile, |frames| {
        frames.windows(2).any(|pair| pair[0].name == "around" && pair[1].name == "folded" && pair[1].inlined)
    });
    assert_share(&profile, "folded into around", folded, 70.0);
    let deep = share(&profile, |frames| frames.iter().filter(|frame| frame.name == "deep").count() >= 40);
    assert_share(&profile, "forty times deep", deep, 30.0);
    assert_whole(&profile, &["main"]);
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn go_is_walked_by_frame_pointers_with_the_callers_of_its_leaves() {
    let Some(running) = Running::start("go", &["build"], "parts.go", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    assert_parts(
        &profile,
        ["main.workSixty", "main.workThirty", "main.workTen"],
        &["runtime.goexit.abi0", "runtime.mcall", "runtime.mstart.abi0", "runtime.goexit"],
    );
    let called = share(&profile, |frames| {
        frames.windows(2).any(|pair| pair[0].name == "main.turn" && pair[1].name == "main.workSixty")
    });
    assert_share(&profile, "main.workSixty called by main.turn", called, 60.0);
    assert!(profile.modules.iter().any(|module| module.unwound_by == "fp"), "{:?}", profile.modules);
}

/// Go's own SHA-256 for processors with AVX2 keeps data in the frame pointer's register. How much else its run-time does (it hands the only
/// goroutine from thread to thread, more often where others want the CPUs: 0.5 to 2.5 %) is not by construction.
#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn assembly_of_go_has_its_callers_whatever_it_keeps_in_the_frame_pointer() {
    let Some(running) = Running::start("go", &["build"], "assembly.go", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let block = |frames: &[&Frame]| frames.iter().any(|frame| frame.name.contains("sha256.block"));
    let of_digest = |frames: &[&Frame]| frames.iter().any(|frame| frame.name == "main.digest");
    let assembly = share(&profile, block);
    assert!(assembly > 80.0, "{assembly} %: {:#?}", top(&profile));
    let called = share(&profile, |frames| block(frames) && of_digest(frames));
    assert_share(&profile, "of the assembly, below main.digest", 100.0 * called / assembly, 100.0);
    assert_whole(
        &profile,
        &["runtime.goexit.abi0", "runtime.mcall", "runtime.mstart.abi0", "runtime.goexit"],
    );
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn cpp_is_walked_through_exceptions_and_has_its_own_names() {
    let Some(running) = Running::start("c++", &["-O2", "-g"], "throws.cpp", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let sixty = "unsigned long shop::spin<(unsigned long)1442695040888963407>(unsigned long)";
    let forty = "unsigned long shop::spin<(unsigned long)3037000493>(unsigned long)";
    let (sixty, forty) = (share_of(&profile, sixty), share_of(&profile, forty));
    assert!(sixty + forty > 80.0, "{:#?}", top(&profile));
    assert_share(&profile, "of both, sixty", 100.0 * sixty / (sixty + forty), 60.0);
    assert_whole(&profile, &["main"]);
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn threads_of_rust_have_names_and_equal_shares() {
    let Some(running) = Running::start("rustc", &["--edition", "2024", "-O", "-g"], "threads.rs", &[]) else {
        return;
    };
    let profile = watched(&running, CallGraph::Auto);
    for name in ["north", "east", "south", "west"] {
        let at = profile.threads.iter().position(|thread| thread.name == name).unwrap() as u32;
        let own = profile.stacks.iter().filter(|stack| stack.thread == at);
        let inside =
            |stack: &&Stack| frames(&profile, stack).any(|frame| frame.name.contains(&format!("::{name}")));
        let samples =
            |stacks: &mut dyn Iterator<Item = &Stack>| stacks.map(|stack| stack.samples).sum::<u64>();
        let (inside, all) = (samples(&mut own.clone().filter(inside)), samples(&mut own.clone()));
        assert!(inside * 10 >= all * 9, "{name} runs {name} in {inside} of {all}: {:#?}", top(&profile));
    }
    assert_whole(&profile, &["start_thread", "clone3", "__clone3", "clone"]);
}

/// Fault: `Checks::passed` that returns what it was given. A third of the stacks then have callers called `0x70a7fe5a4`.
#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn what_is_no_code_is_never_a_caller_and_why_a_stack_was_cut_is_said() {
    let flags = ["-O1", "-g", "-fomit-frame-pointer"];
    let Some(running) = Running::start("cc", &flags, "reused.c", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    assert_share(&profile, "work", share_of(&profile, "work"), 50.0);
    let invented = |frame: &Frame| frame.origin == Origin::User && frame.module.is_none();
    let invented = share(&profile, |frames| frames.iter().any(|frame| invented(frame)));
    assert!(
        invented == 0.0,
        "{invented} % of the stacks have a caller that is no code: {:#?}",
        top(&profile)
    );
    let (sampling, callers) = (&profile.sampling, ["one", "other", "[stack ends here]"]);
    let believed = share(&profile, |frames| {
        let mut pairs = frames.windows(2).filter(|pair| pair[1].name == "work");
        pairs.all(|pair| callers.contains(&pair[0].name.as_str()))
    });
    assert!(believed == 100.0, "work is called by one and other: {:#?}", top(&profile));
    assert!(sampling.truncated > 0, "the frame is larger than the copied piece: {sampling:?}");
    assert_eq!(sampling.truncated_by.values().sum::<u64>(), sampling.truncated, "{sampling:?}");
    let is_said = |warning: &String| warning.contains("had changed when it was read");
    assert!(profile.warnings.iter().any(is_said), "{:?}", profile.warnings);
}

/// Fault: `Made::step` that answers `None`. Every stack then ends at the first piece.
#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn code_made_at_run_time_without_frame_pointers_is_walked_through_and_named() {
    let flags = ["-O1", "-g", "-fomit-frame-pointer"];
    let Some(running) = Running::start("cc", &flags, "trampoline.c", &[]) else { return };
    let profile = watched(&running, CallGraph::Auto);
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", running.pid()));
    assert_whole(&profile, &["main"]);
    let calls = ["main", "made_outer", "middle", "made_middle", "inner", "made_inner", "work"];
    let all = share(&profile, |frames| {
        let named: Vec<&str> = frames.iter().map(|frame| frame.name.as_str()).collect();
        named.windows(calls.len()).any(|part| part == calls)
    });
    assert!(all >= 100.0 * WHOLE_MIN, "{all} % of the stacks have all calls: {:#?}", top(&profile));
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn a_program_that_was_deleted_is_read_all_the_same() {
    let Some(running) = Running::start("cc", &["-O2", "-g", "-fomit-frame-pointer"], "parts.c", &[]) else {
        return;
    };
    fs::remove_file(running.folder.join("program")).unwrap();
    // Another one at the same place must not lend it its names.
    fs::copy("/bin/true", running.folder.join("program")).unwrap();
    assert_parts(&watched(&running, CallGraph::Auto), PARTS, &["main"]);
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn ten_gigabytes_of_debug_information_are_left_out_with_a_warning() {
    let Some((profile, path)) = watched_with_a_huge(".debug_info") else { return };
    assert_parts(&profile, PARTS, &["main"]);
    let is_said = profile
        .warnings
        .iter()
        .any(|text| text.contains(&path) && text.contains("10.0 GB of debug information"));
    assert!(is_said, "{:?}", profile.warnings);
    assert!(profile.frames.iter().filter(|frame| frame.name == "turn").all(|frame| frame.line.is_none()));
}

#[test]
#[ignore = "these need CAP_PERFMON: they sample the kernel too"]
fn ten_gigabytes_of_symbols_are_left_out_with_a_warning() {
    let Some((profile, path)) = watched_with_a_huge(".symtab") else { return };
    let is_said =
        profile.warnings.iter().any(|text| text.contains(&path) && text.contains("10.0 GB of symbols"));
    assert!(is_said, "{:?}", profile.warnings);
    assert!(profile.sampling.truncated * 50 <= profile.sampling.samples, "{:?}", profile.sampling);
}

/// A program with a section that claims ten gigabytes, and a (sparse) file that has them.
fn watched_with_a_huge(section: &str) -> Option<(Profile, String)> {
    let mut running = Running::start("cc", &["-O2", "-g", "-fomit-frame-pointer"], "parts.c", &[])?;
    let path = running.folder.join("huge");
    let mut bytes = fs::read(running.folder.join("program")).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let half = |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()));
    let header = |bytes: &[u8], number: usize| word(bytes, 40) + number * half(bytes, 58);
    let names = word(&bytes, header(&bytes, half(&bytes, 62)) + 24);
    let name = |bytes: &[u8], at: usize| names + (word(bytes, at) & 0xffff_ffff);
    let wanted = [section.as_bytes(), b"\0"].concat();
    let mut all = (0..half(&bytes, 60)).map(|number| header(&bytes, number));
    let at = all.find(|at| bytes[name(&bytes, *at)..].starts_with(&wanted)).unwrap();
    bytes[at + 32..at + 40].copy_from_slice(&10_000_000_008_u64.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(20_000_000_000).unwrap();
    fs::set_permissions(&path, fs::metadata(running.folder.join("program")).unwrap().permissions()).unwrap();
    let mut ended = std::mem::replace(&mut running.child, Command::new(&path).spawn().unwrap());
    ended.kill().unwrap();
    ended.wait().unwrap();
    Some((watched(&running, CallGraph::Auto), path.to_str().unwrap().to_owned()))
}
