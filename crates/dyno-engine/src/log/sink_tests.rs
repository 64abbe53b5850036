//! A ring's lines reach a file whole and once, whatever happens to the disk and to the writer.
#![allow(clippy::unwrap_used)]

use super::*;
use dyno_measure::Prng;
use dyno_sys::shm::Pushed;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-sink-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn open(path: &Path) -> OwnedFd {
    super::super::open(Some(path)).unwrap()
}

fn ring_of(lines: std::ops::Range<usize>) -> Ring {
    let ring = Ring::new(1 << 16).unwrap();
    lines.for_each(|number| push(&ring, number));
    ring
}

fn push(ring: &Ring, number: usize) {
    assert_eq!(ring.push(format!("line {number:05}\n").as_bytes()), Pushed::Whole);
}

fn text_of(lines: std::ops::Range<usize>) -> String {
    lines.map(|number| format!("line {number:05}\n")).collect()
}

/// Writes until nothing is left.
fn write_all(sink: &mut Sink, ring: &Ring) {
    loop {
        let (peeked, took) = sink.take(0, ring);
        match took {
            None => return,
            Some(Took::Whole) => {
                ring.release(peeked);
                sink.released(0);
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

/// A writer is killed in the middle of a write: so many bytes of it are there, and it is not released.
fn killed_after(path: &Path, ring: &Ring, ledger: Ledger, bytes: usize) {
    let mut dying = Sink::new(open(path), ledger, 1);
    let (peeked, took) = dying.take(0, ring);
    assert_eq!(took, Some(Took::Whole));
    assert!(peeked.records > 0);
    let begun = ledger.begun(0).unwrap();
    dying.log.set_len(begun.start + bytes as u64).unwrap();
}

#[test]
fn a_writer_that_is_killed_anywhere_is_gone_on_with_at_that_byte() {
    let path = temporary("killed");
    let length = text_of(0..7).len();
    for killed_at in 0..=length {
        std::fs::write(&path, "before\n").unwrap();
        let (ring, ledger) = (ring_of(0..7), Ledger::new(1).unwrap());
        killed_after(&path, &ring, ledger, killed_at);
        push(&ring, 7);
        write_all(&mut Sink::new(open(&path), ledger, 1), &ring);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("before\n{}", text_of(0..8)),
            "{killed_at}"
        );
        assert_eq!((ring.records(), ledger.begun(0)), (0, None));
    }
    // A successor that did not look would tear a line or write it twice: what this test is there to see.
    std::fs::write(&path, "").unwrap();
    let (ring, ledger) = (ring_of(0..7), Ledger::new(1).unwrap());
    killed_after(&path, &ring, ledger, 20);
    ledger.end(0);
    write_all(&mut Sink::new(open(&path), ledger, 1), &ring);
    assert_ne!(std::fs::read_to_string(&path).unwrap(), text_of(0..7));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_somebody_has_cut_or_written_to_gets_whole_lines_only() {
    let path = temporary("cut");
    for (left, then) in
        [("", ""), ("line 0", ""), ("line 00000\nother\n", "line 00000\nother\n"), ("oth", "oth\n")]
    {
        std::fs::write(&path, "").unwrap();
        let (ring, ledger) = (ring_of(0..3), Ledger::new(1).unwrap());
        killed_after(&path, &ring, ledger, 20);
        std::fs::write(&path, left).unwrap();
        write_all(&mut Sink::new(open(&path), ledger, 1), &ring);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{then}{}", text_of(0..3)), "{left}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_line_that_a_crash_has_torn_is_ended_before_the_next_one() {
    let path = temporary("torn");
    std::fs::write(&path, "half a li").unwrap();
    let ring = ring_of(0..2);
    write_all(&mut Sink::new(open(&path), Ledger::new(1).unwrap(), 1), &ring);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("half a li\n{}", text_of(0..2)));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_a_full_disk_does_not_take_stays_in_its_ring() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (ring, ledger) = (ring_of(0..3), Ledger::new(1).unwrap());
    let mut sink = Sink::new(full.into(), ledger, 1);
    for _ in 0..3 {
        let (_peeked, took) = sink.take(0, &ring);
        assert_eq!(took, Some(Took::Refused));
    }
    assert_eq!(ledger.trouble(0), Some(super::super::Trouble::Refused(28)), "ENOSPC");
    assert!(sink.give_back(0, &ring).is_none());
    let path = temporary("after-full");
    sink.change(File::from(open(&path)));
    write_all(&mut sink, &ring);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text_of(0..3));
    assert_eq!(ledger.trouble(u64::MAX), None);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_log_that_is_changed_in_the_middle_of_a_write_keeps_its_whole_lines_and_gives_back_the_rest() {
    let (old, new) = (temporary("old"), temporary("new"));
    for written in 0..text_of(0..7).len() {
        std::fs::write(&old, "").unwrap();
        std::fs::write(&new, "").unwrap();
        let (ring, ledger) = (ring_of(0..7), Ledger::new(1).unwrap());
        let mut sink = Sink::new(open(&old), ledger, 1);
        let (_peeked, took) = sink.take(0, &ring);
        assert_eq!(took, Some(Took::Whole));
        // As a disk leaves it that was full after so many bytes.
        sink.log.set_len(written as u64).unwrap();
        sink.progress[0] = Some(written);
        if let Some(peeked) = sink.give_back(0, &ring) {
            ring.release(peeked);
            sink.released(0);
        }
        sink.change(File::from(open(&new)));
        write_all(&mut sink, &ring);
        let texts = [&old, &new].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(texts[0].is_empty() || texts[0].ends_with('\n'), "{written}: {}", texts[0]);
        assert_eq!(texts.concat(), text_of(0..7), "{written}");
    }
    [old, new].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_pipe_that_nobody_reads_is_not_waited_for() {
    let (reader, log) = std::io::pipe().unwrap();
    let (ring, ledger) = (Ring::new(1 << 18).unwrap(), Ledger::new(1).unwrap());
    (0..6_000).for_each(|number| push(&ring, number));
    let mut sink = Sink::new(log.into(), ledger, 1);
    let took = std::iter::from_fn(|| {
        let (peeked, took) = sink.take(0, &ring);
        if took == Some(Took::Whole) {
            ring.release(peeked);
            sink.released(0);
        }
        took
    });
    assert_eq!(took.take(100).find(|took| *took != Took::Whole), Some(Took::Later));
    assert!(ledger.trouble(u64::MAX).is_some(), "it waits");
    drop(reader);
    let (_peeked, took) = sink.take(0, &ring);
    assert_eq!(took, Some(Took::Refused), "EPIPE");
}

#[test]
fn lines_come_out_as_they_went_in_whatever_fails_in_between() {
    let seed = 0x51_4b;
    let mut chance = Prng::new(seed);
    let path = temporary("random");
    for _ in 0..60 {
        std::fs::write(&path, "").unwrap();
        let (ring, ledger) = (Ring::new(1 << 16).unwrap(), Ledger::new(1).unwrap());
        let (mut sink, mut pushed) = (Sink::new(open(&path), ledger, 1), 0);
        for _ in 0..60 {
            for _ in 0..chance.below(40) {
                push(&ring, pushed);
                pushed += 1;
            }
            let (peeked, took) = sink.take(0, &ring);
            let Some(took) = took else { continue };
            assert_eq!(took, Took::Whole);
            match chance.below(4) {
                0 => {
                    // Killed on the way.
                    let begun = ledger.begun(0).unwrap();
                    sink.log.set_len(begun.start + chance.below(begun.length + 1)).unwrap();
                    sink = Sink::new(open(&path), ledger, 1);
                }
                1 => {
                    // Killed between the write and the release.
                    sink = Sink::new(open(&path), ledger, 1);
                }
                _ => {
                    ring.release(peeked);
                    sink.released(0);
                }
            }
        }
        write_all(&mut sink, &ring);
        assert!(
            std::fs::read_to_string(&path).unwrap() == text_of(0..pushed),
            "a line is lost, torn or doubled: seed {seed:#x}"
        );
    }
    std::fs::remove_file(&path).unwrap();
}
