//! Code that is known, found by name in running programs that are built here.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use common::{Running, wait_for};
use dyno_profile::causal::{Choice, Place, Reach, Resolver, SiteError, Tried, WaitKind};
use dyno_record::profile::{Frame, Module, Profile, Stack};

/// A program of `known/folded.c`.
struct Known(Running);

impl Known {
    fn sites(&self) -> Resolver {
        Resolver::open(self.0.pid()).unwrap()
    }

    fn program(&self) -> PathBuf {
        self.0.folder.join("program")
    }
}

fn is_libc(map: &dyno_sys::proc::Mapping) -> bool {
    map.executable && map.path.contains("/libc.so")
}

/// Builds `folded.c` and starts it; `None` when there is no compiler.
fn started(flags: &[&str]) -> Option<Known> {
    started_of("folded.c", flags)
}

fn started_of(source: &str, flags: &[&str]) -> Option<Known> {
    let flags = [&["-O2", "-fno-unroll-loops"], flags].concat();
    let running = Running::start("gcc", &flags, source, &[])?;
    // A program that has only just become one has neither its libraries nor their names.
    let loaded = || dyno_sys::proc::mappings(running.pid()).is_ok_and(|maps| maps.iter().any(is_libc));
    wait_for("its libraries are there", loaded);
    wait_for("it can be looked into", || Resolver::open(running.pid()).is_ok());
    Some(Known(running))
}

fn ranges(tried: &Tried) -> &[Range<u64>] {
    match &tried.site.place {
        Place::Code { ranges, .. } => ranges,
        Place::Wait(_) => panic!("a wait has no code"),
    }
}

fn hold(tried: &Tried, inner: &Range<u64>) -> bool {
    ranges(tried).iter().any(|range| range.start <= inner.start && inner.end <= range.end)
}

#[test]
fn a_function_is_its_own_code_and_every_copy_in_its_callers() {
    for flags in [&["-g", "-pie", "-fPIE"][..], &["-g", "-no-pie", "-fno-pie"], &["-gdwarf-4", "-gz"]] {
        let Some(running) = started(flags) else { return };
        let sites = running.sites();
        let [first, second, folded] =
            ["first", "second", "folded"].map(|name| sites.named(name, Reach::Own).unwrap());
        assert!(!ranges(&folded).is_empty());
        for copy in ranges(&folded) {
            assert!(hold(&first, copy) || hold(&second, copy), "{flags:?}: {copy:x?} in neither");
        }
        assert!(ranges(&folded).iter().any(|copy| hold(&first, copy)));
        assert!(ranges(&folded).iter().any(|copy| hold(&second, copy)));
        let maps = dyno_sys::proc::mappings(running.0.pid()).unwrap();
        let code = maps.iter().find(|map| map.executable && map.path.ends_with("/program")).unwrap();
        let whole = code.start..code.end;
        assert!(ranges(&first).iter().all(|range| whole.contains(&range.start) && range.end <= whole.end));
        assert!(
            first.source.file.as_ref().unwrap().ends_with("folded.c") && first.source.line == Some(14),
            "{:?}",
            first.source
        );
    }
}

#[test]
fn a_probe_stands_on_an_instruction_that_the_kernel_emulates() {
    let Some(running) = started(&["-g"]) else { return };
    let probe = running.sites().probe("progress").unwrap();
    assert!(probe.emulated);
    let mut code = [0; 16];
    fs::File::open(&probe.entries[0].image)
        .unwrap()
        .read_exact_at(&mut code, probe.entries[0].offset)
        .unwrap();
    assert_eq!(code[0], 0x90, "the nop of progress: {code:x?}");
    let same = fs::read(running.program()).unwrap();
    assert_eq!(same[probe.entries[0].offset as usize..][..16], code, "the very file that runs");
    let beyond = running.sites().probe("progress+1").unwrap();
    assert!(beyond.entries[0].offset > 0 && !beyond.emulated && beyond.name == "progress+0x1");
    assert!(matches!(running.sites().probe("progress+0x9999"), Err(SiteError::Beyond { .. })));
    // Some of its first bytes lie within an instruction: a probe there would crash it.
    let refused = |offset| {
        matches!(running.sites().probe(&format!("second+{offset}")), Err(SiteError::NoInstruction { around, .. })
            if around[0] < offset && offset < around[1])
    };
    assert!((1..16).any(refused), "all instructions have one byte");
    assert!(matches!(running.sites().probe("folded"), Err(SiteError::Folded { .. })));
}

#[test]
fn a_line_is_its_code_wherever_it_was_folded() {
    let Some(running) = started(&["-g"]) else { return };
    let sites = running.sites();
    let line = sites.named("folded.c:10", Reach::Own).unwrap();
    let folded = sites.named("folded", Reach::Own).unwrap();
    assert_eq!(line.site.name, "folded.c:10");
    assert!(
        ranges(&line).len() >= 2 && ranges(&line).iter().all(|range| hold(&folded, range)),
        "{:x?}",
        ranges(&line)
    );
    // Once in each of the two that it was folded into.
    let probe = sites.probe("known/folded.c:10").unwrap();
    let callers = ["first", "second"].map(|name| sites.named(name, Reach::Own).unwrap());
    let whole = |caller: &Tried| {
        let entry = sites.probe(&caller.site.name).unwrap().entries[0].offset;
        entry..entry + 200
    };
    assert_eq!(probe.entries.len(), 2, "{:x?}", probe.entries);
    for caller in callers.iter().map(whole) {
        let within = probe.entries.iter().filter(|entry| caller.contains(&entry.offset));
        assert!(within.count() >= 1, "{:x?} of {caller:x?}", probe.entries);
    }
    match sites.named("folded.c:2", Reach::Own) {
        Err(SiteError::NoLine { nearest, .. }) => assert!(!nearest.is_empty()),
        other => panic!("{other:?}"),
    }
    assert!(matches!(sites.named("nowhere.c:10", Reach::Own), Err(SiteError::NoFile { .. })));
}

#[test]
fn what_is_not_there_is_said_with_what_comes_near() {
    let Some(running) = started(&["-g"]) else { return };
    let error = running.sites().named("secnod", Reach::Own).unwrap_err();
    assert!(error.to_string().contains("near it: second"), "{error}");
    let Some(stripped) = started(&["-s"]) else { return };
    let error = stripped.sites().named("folded.c:10", Reach::Own).unwrap_err();
    assert!(matches!(error, SiteError::NoDebug { .. }), "{error}");
    let error = stripped.sites().named("second", Reach::Own).unwrap_err();
    assert!(error.to_string().contains("second"), "{error}");
    assert!(Resolver::open(i32::MAX).is_err());
}

#[test]
fn without_debug_information_the_symbol_table_will_do() {
    let Some(running) = started(&[]) else { return };
    let sites = running.sites();
    let first = sites.named("first", Reach::Inclusive).unwrap();
    assert_eq!((ranges(&first).len(), first.source.file.is_none()), (1, true));
    assert!(sites.probe("progress").unwrap().emulated);
    assert!(sites.named("malloc", Reach::Own).is_ok(), "names of libraries");
}

#[test]
fn a_kind_of_wait_is_a_site_without_code() {
    let Some(running) = started(&[]) else { return };
    let of = |text: &str| running.sites().named(text, Reach::Own).unwrap().site.place;
    assert_eq!(of("wait:disk"), Place::Wait(WaitKind::Disk));
    assert_eq!(of("wait:/var/log/x"), Place::Wait(WaitKind::File("/var/log/x".to_owned())));
}

/// Where in a stretch of code a `pause` stands.
fn pause(running: &Known, range: &Range<u64>) -> Option<u64> {
    let memory = fs::File::open(format!("/proc/{}/mem", running.0.pid())).ok()?;
    let mut code = vec![0; (range.end - range.start) as usize];
    memory.read_exact_at(&mut code, range.start).ok()?;
    code.windows(2).position(|two| two == [0xf3, 0x90]).map(|at| range.start + at as u64)
}

/// A profile with these shares, at the first addresses of the functions.
fn profile(running: &Known, shares: &[(&str, u64)]) -> Profile {
    let maps = dyno_sys::proc::mappings(running.0.pid()).unwrap();
    let mine = |map: &&dyno_sys::proc::Mapping| map.path.ends_with("/program");
    let base = maps.iter().filter(mine).map(|map| map.start).min().unwrap();
    let sites = running.sites();
    let frames = shares.iter().map(|(name, _)| {
        let site = sites.named(name, Reach::Own).unwrap();
        Frame {
            name: (*name).to_owned(),
            module: Some(0),
            file: site.source.file.clone(),
            line: site.source.line,
            // Within the loop, where there is one that waits.
            address: pause(running, &ranges(&site)[0]).unwrap_or(ranges(&site)[0].start) - base,
            ..Frame::default()
        }
    });
    let path = running.program().canonicalize().unwrap().to_str().unwrap().to_owned();
    let stack = |(at, (_, samples)): (usize, &(&str, u64))| Stack {
        frames: vec![at as u32],
        samples: *samples,
        ..Stack::default()
    };
    Profile {
        frames: frames.collect(),
        modules: vec![Module { path, ..Module::default() }],
        stacks: shares.iter().enumerate().map(stack).collect(),
        ..Profile::default()
    }
}

#[test]
fn functions_are_chosen_by_their_samples_and_small_ones_are_not() {
    let Some(running) = started(&["-g", "-pie", "-fPIE"]) else { return };
    let profile = profile(&running, &[("second", 300), ("first", 600), ("waits", 90), ("progress", 10)]);
    let (chosen, missing) = running.sites().chosen(&profile, &Choice::new(Reach::Own));
    let named: Vec<(&str, f64, bool)> = chosen
        .iter()
        .map(|one| (one.site.name.as_str(), one.share_percent.unwrap().round(), one.is_spinning))
        .collect();
    assert_eq!(named, [("first", 60.0, false), ("second", 30.0, false), ("waits", 9.0, true)], "{missing:?}");
    assert_eq!(chosen[0].source.hot_lines.len(), 1);
    // Planted fault: loops are not handed on (`loops` that stays empty): who waits in them would pay for it.
    let spinning = running.sites().spinning(&profile);
    assert_eq!(spinning.percent.round(), 9.0);
    assert!(
        !spinning.loops.is_empty() && spinning.loops.iter().all(|one| hold(&chosen[2], one)),
        "{spinning:x?}"
    );
    let few = Choice { sites_max: 1, ..Choice::new(Reach::Own) };
    let (one, missing) = running.sites().chosen(&profile, &few);
    assert_eq!((one.len(), missing[0].what.as_str()), (1, "second, waits"));
}

/// Planted fault: all functions of the name are one site.
#[test]
fn of_two_functions_of_one_name_the_one_that_was_sampled_is_tried() {
    let Some(running) = started_of("twins.c", &["-g"]) else { return };
    let sites = running.sites();
    assert!(matches!(sites.probe("work"), Err(SiteError::Ambiguous { .. })));
    let [met, other] = ["work.0", "work.1"].map(|name| sites.named(name, Reach::Own).unwrap());
    let mut profile = profile(&running, &[("work.0", 100)]);
    profile.frames[0].name = "work".to_owned();
    let (chosen, missing) = sites.chosen(&profile, &Choice::new(Reach::Own));
    assert!(chosen[0].site.name == "work" && missing.is_empty(), "{missing:?}");
    assert!(hold(&chosen[0], &ranges(&met)[0]) && !hold(&chosen[0], &ranges(&other)[0]));
}
