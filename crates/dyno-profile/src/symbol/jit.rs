//! Names of code that a program made while it ran, as it wrote them down itself: `/tmp/perf-PID.map`, one line per
//! function (`START SIZE name`, hexadecimal); or, of Java, as its virtual machine keeps them in its memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use dyno_sys::{Pid, proc};

use crate::hotspot::{Function, HotSpot};
use crate::image::elf::Source;

/// A map beyond this would take longer to read than the profile took; the largest Java servers write some 30 MB.
const MAP_BYTES_MAX: u64 = 512 << 20;

/// By so much the wall clock may have been set since a map was written.
const CLOCK_SET_MAX: Duration = Duration::from_secs(60);

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct JitSymbols {
    names: Vec<String>,
    /// Pieces of code by their starts: where each ends, and whose it is. They never overlap.
    pieces: BTreeMap<u64, (u64, usize)>,
}

impl JitSymbols {
    /// Reads the map of a process, also of one in a container; empty when it wrote none.
    ///
    /// Like perf, a map is believed only if the process's own user or root wrote it: /tmp is everybody's. One that was written before
    /// the process began is another's of the same number, as the first of every container has.
    ///
    /// `compiled` is what a Java virtual machine had compiled when it was seen; it is asked here where nobody has seen it.
    pub(crate) fn read(pid: Pid, compiled: Option<Vec<Function>>) -> JitSymbols {
        let inner = proc::innermost_pid(pid).unwrap_or(pid);
        let places =
            [format!("{}/root/tmp/perf-{inner}.map", proc::folder(pid)), format!("/tmp/perf-{pid}.map")];
        let owner = fs::metadata(format!("/proc/{pid}")).map(|folder| folder.uid()).ok();
        let begun = proc::begun(pid);
        let raw = places.iter().find_map(|path| believed(path, owner, begun)).unwrap_or_default();
        let mut symbols = JitSymbols::parse(&String::from_utf8_lossy(&raw));
        // A Java virtual machine writes none by itself, and its memory knows better than one that it wrote once.
        let compiled = compiled.or_else(|| Some(HotSpot::of(pid)?.functions())).unwrap_or_default();
        compiled.into_iter().for_each(|(start, size, name)| symbols.add(start, size, name));
        symbols
    }

    fn parse(text: &str) -> JitSymbols {
        let mut symbols = JitSymbols::default();
        text.lines().filter_map(function).for_each(|(start, size, name)| symbols.add(start, size, name));
        symbols
    }

    /// A function that was written down later lies where others lay before: they keep what it leaves of them.
    fn add(&mut self, start: u64, size: u64, name: String) {
        let end = start.saturating_add(size);
        let under = self.pieces.range(..end).rev().take_while(|(_, (until, _))| *until > start);
        let under: Vec<(u64, (u64, usize))> = under.map(|(from, piece)| (*from, *piece)).collect();
        for (from, (until, whose)) in under {
            self.pieces.remove(&from);
            if from < start {
                self.pieces.insert(from, (start, whose));
            }
            if until > end {
                self.pieces.insert(end, (until, whose));
            }
        }
        if start < end {
            self.pieces.insert(start, (end, self.names.len()));
            self.names.push(name);
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, whose)) = self.pieces.range(..=address).next_back()?;
        (address < *end).then(|| self.names[*whose].as_str())
    }
}

/// A map's text, if it is one that is believed.
fn believed(path: &str, owner: Option<u32>, begun: Option<SystemTime>) -> Option<Vec<u8>> {
    let Source::File(file) = Source::open(path.as_ref())? else { return None };
    let map = file.metadata().ok()?;
    let is_owned = map.uid() == 0 || owner.is_none_or(|owner| owner == map.uid());
    let is_earlier =
        begun.zip(map.modified().ok()).is_some_and(|(begun, written)| written + CLOCK_SET_MAX < begun);
    if map.len() > MAP_BYTES_MAX || !is_owned || is_earlier {
        return None;
    }
    let mut text = Vec::new();
    // It may grow while it is read.
    file.take(MAP_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

fn function(line: &str) -> Option<(u64, u64, String)> {
    let mut words = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    Some((start, size, words.next()?.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_its_size_and_its_latest_name() {
        let map = JitSymbols::parse("7f10 20 old\n7f10 20 LazyCompile:~f a.js:1\n0x8000 10 g\nnonsense\n");
        assert_eq!(map.find(0x7f10), Some("LazyCompile:~f a.js:1"));
        assert_eq!(map.find(0x7f2f), Some("LazyCompile:~f a.js:1"));
        assert_eq!([map.find(0x7f30), map.find(0x8010), map.find(1)], [None; 3]);
        assert_eq!(map.find(0x8000), Some("g"));
    }

    /// Fault: entries in the order of their addresses, whichever was written first.
    #[test]
    fn newer_code_has_its_name_where_older_code_lay() {
        let map = JitSymbols::parse("1000 100 old\n1080 8 stub\n1040 60 new\n2000 0 nothing\n");
        let names =
            [0x1000, 0x103f, 0x1040, 0x1084, 0x109f, 0x10a0, 0x10ff, 0x1100, 0x2000].map(|at| map.find(at));
        let (old, new) = (Some("old"), Some("new"));
        assert_eq!(names, [old, old, new, new, new, old, old, None, None]);
    }

    /// Fault: whoever wrote it, and whenever.
    #[test]
    fn a_map_that_was_written_before_the_process_began_is_anothers() {
        let path = std::env::temp_dir().join(format!("perf-of-{}.map", std::process::id()));
        fs::write(&path, "1000 10 f\n").expect("it can be written");
        let written = fs::metadata(&path).and_then(|file| file.modified()).expect("it has a time");
        let read = |begun| believed(path.to_str().expect("a plain name"), None, Some(begun)).is_some();
        let after = |seconds| written + Duration::from_secs(seconds);
        assert_eq!([read(written), read(after(59)), read(after(61))], [true, true, false]);
        let began = proc::begun(dyno_sys::child::this()).expect("it runs");
        assert!(began <= written, "this process began before it wrote");
        fs::remove_file(&path).expect("it is there");
    }
}
