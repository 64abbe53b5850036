//! Builds of folders that are hard to finish: much to encode, files that cannot be read, memory that takes nothing.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::content::Content;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-build-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn builder(folder: impl AsRef<Path>) -> Builder {
    let content = Content::new(folder.as_ref()).memory_bytes_max(64 << 20);
    Builder::open(Mount::new("/", content).unwrap(), dyno_sys::user::current().0).unwrap()
}

/// A file of the folder as a look at it would see it, also where the look would see much else.
fn seen(folder: impl AsRef<Path>, name: &str) -> Seen {
    let facts = Facts::of(&fs::metadata(folder.as_ref().join(name)).unwrap());
    Seen { path: name.as_bytes().to_vec(), facts }
}

/// Steps that a folder takes until there is nothing left to do.
fn steps(builder: &mut Builder) -> usize {
    const STEPS_MAX: usize = 5;
    for step in 1..=STEPS_MAX {
        let scan = builder.scan().unwrap();
        builder.build(&scan, STEP_BYTES_MAX).unwrap();
        if builder.progress() == Progress::Whole {
            return step;
        }
    }
    panic!("it does not come to rest: {:?} after {STEPS_MAX} steps", builder.progress());
}

/// Red where each coding asks for its share of a step, and where a step has less than the largest file: neither of them
/// would ever have all of its codings, and each step begins anew.
#[test]
fn large_texts_come_to_rest() {
    let folder = folder("large-texts");
    let text = "a line of a text that repeats itself\n";
    for (name, bytes) in [("three.json", 3 << 20), ("nine.txt", 9 << 20)] {
        fs::write(folder.join(name), text.repeat(bytes / text.len())).unwrap();
    }
    let mut builder = builder(&folder);
    // Which of them has the first step depends on which thread comes first.
    assert!(steps(&mut builder) <= 2, "each step completes a file");
    for known in builder.known.values() {
        let made: Vec<&str> = known.record.coded.iter().map(|form| form.coding.as_str()).collect();
        assert!(["br", "gzip", "deflate"].iter().all(|coding| made.contains(coding)), "{made:?}");
    }
    let scan = builder.scan().unwrap();
    assert!(builder.build(&scan, STEP_BYTES_MAX).unwrap().is_none(), "nothing is made anew");
    fs::remove_dir_all(folder).unwrap();
}

/// Nothing is mapped at a process's first byte, so that its memory cannot be read from there (EIO). Red where that fails
/// the whole folder.
#[test]
fn a_small_file_that_its_disk_does_not_give_is_left_out_and_looked_at_again() {
    let mut builder = builder("/proc/self");
    let files = vec![seen("/proc/self", "mem")];
    let scan = Scan { files, ..Scan::default() };
    let built = builder.build(&scan, 0).unwrap().unwrap();
    assert_eq!((built.files, built.unread, builder.progress()), (0, 1, Progress::Unsettled));
}

/// Red where it is looked at again: each look makes an image.
#[test]
fn a_file_that_is_gone_is_not_looked_at_again() {
    let folder = folder("gone");
    for name in ["a.txt", "gone.txt"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let mut builder = builder(&folder);
    let scan = builder.scan().unwrap();
    fs::remove_file(folder.join("gone.txt")).unwrap();
    let built = builder.build(&scan, 0).unwrap().unwrap();
    assert_eq!((built.files, built.unread, builder.progress()), (1, 1, Progress::Whole));
    fs::remove_dir_all(folder).unwrap();
}

/// Red where it counts as a file that cannot be read: what follows would stand elsewhere than its records say.
#[test]
fn memory_that_takes_no_large_file_fails_the_build() {
    let folder = folder("no-memory");
    fs::write(folder.join("large.bin"), vec![7; 2 << 20]).unwrap();
    let mut builder = builder(&folder);
    let scan = builder.scan().unwrap();
    let making = Making { writer: Mutex::new(Writer::broken()), ..builder.making(&scan, 0).unwrap() };
    assert!(builder.large_file(&scan.files[0], &making).is_err());
    fs::remove_dir_all(folder).unwrap();
}

/// Files of sysfs say that they have a page, and have a line. Red where what is not taken counts as copied.
#[test]
fn a_large_file_that_could_not_be_copied_leaves_its_share_to_others() {
    let cpus = "/sys/devices/system/cpu";
    // While it is open its date stays; a file as new as this test counts as being written.
    let held = File::open(Path::new(cpus).join("online")).unwrap();
    let (facts, deadline) = (Facts::of(&held.metadata().unwrap()), Instant::now() + Duration::from_secs(5));
    while !is_settled(&facts, REST_NS) {
        assert!(Instant::now() < deadline, "it goes on changing");
        clock::sleep_ns(TICK_NS);
    }
    let builder = builder(cpus);
    let scan = Scan { files: vec![seen(cpus, "online")], ..Scan::default() };
    let making = builder.making(&scan, 0).unwrap();
    assert!(matches!(builder.taken(&scan.files[0], &making).unwrap(), Taken::Unread));
    assert_eq!(making.large_left.into_inner(), START_LARGE_BYTES_MAX);
}
