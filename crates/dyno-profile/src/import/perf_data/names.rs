//! Names of functions from the files and the kernel of this machine, where they are still the ones that were recorded.
//!
//! A file is the recorded one by its inode or its build-id. The kernel is it by its build-id, or its release, and by where
//! its symbols lie, which changes with every boot on most machines. What is another one by now names nothing: a wrong name
//! is worse than an address.

use std::collections::HashMap;
use std::fs;

use dyno_sys::Pid;
use dyno_sys::perf::Mmap;

use super::place::{KERNEL, Place};
use crate::image::elf::build_id_in;
use crate::image::hex;
use crate::image::spaces::AddressSpaces;
use crate::symbol::Symbols;

/// Each file is looked at as if a process had mapped it here; no process of Linux has a number this high.
const PROCESS_MAX: Pid = Pid::MAX;
/// Notes of the kernel stand on words of four bytes.
const NOTES_ALIGN: u64 = 4;
/// Where it lies in that process.
const BASE: u64 = 0x10_0000_0000;

/// A mapping of a file: path, inode and build-id, and where in the file it begins, with its bytes.
type FileKey = (String, u64, Option<String>, (u64, u64));

/// What is known of this machine's files.
#[derive(Default)]
pub struct OnDisk {
    spaces: AddressSpaces,
    symbols: Symbols,
    /// The process that stands for a mapping of a file; none for a file that is not the recorded one.
    files: HashMap<FileKey, Option<Pid>>,
    /// Whether the kernel is the recorded one, and lies where it lay.
    same_kernel: Option<bool>,
}

impl OnDisk {
    /// The function at a place, without those that were folded into it.
    pub fn name(&mut self, place: Place<'_>) -> Option<String> {
        if place.module == KERNEL {
            return self.kernel(place);
        }
        let pid = self.file(place)?;
        let address = BASE + place.offset.checked_sub(place.map.0)?;
        let functions = self.symbols.symbolize(&mut self.spaces, pid, address);
        functions.into_iter().next_back().map(|function| function.name).filter(|name| !name.starts_with("0x"))
    }

    fn kernel(&mut self, place: Place<'_>) -> Option<String> {
        let (symbol, address) = place.anchor?;
        let symbols = &mut self.symbols;
        let is_it = || is_running(place) && symbols.kernel_has(symbol, address);
        let same = *self.same_kernel.get_or_insert_with(is_it);
        let name = same.then(|| self.symbols.kernel(place.offset).0.name)?;
        (!name.starts_with("0x")).then_some(name)
    }

    fn file(&mut self, place: Place<'_>) -> Option<Pid> {
        let build_id = place.build_id.map(str::to_owned);
        let key = (place.module.to_owned(), place.inode, build_id, place.map);
        if let Some(&known) = self.files.get(&key) {
            return known;
        }
        let pid = self.mapped(place);
        self.files.insert(key, pid);
        pid
    }

    fn mapped(&mut self, place: Place<'_>) -> Option<Pid> {
        use std::os::unix::fs::MetadataExt;
        let number = Pid::try_from(self.files.len()).ok()?;
        let pid = PROCESS_MAX - number;
        // Where only the build-id was recorded the file's own inode stands in, and the build-id decides.
        let inode = fs::metadata(place.module).ok()?.ino();
        if place.inode != 0 && place.inode != inode || place.inode == 0 && place.build_id.is_none() {
            return None;
        }
        self.spaces.exec(pid);
        self.spaces.mmap(&Mmap {
            pid,
            time_ns: 0,
            start: BASE,
            length: place.map.1,
            offset: place.map.0,
            inode,
            path: place.module.as_bytes(),
        });
        self.is_recorded(pid, place).then_some(pid)
    }

    /// Whether the file has the build-id that was recorded, if one was.
    fn is_recorded(&mut self, pid: Pid, place: Place<'_>) -> bool {
        let found = self.spaces.locate(pid, BASE);
        let found = found.and_then(|found| self.spaces.images().get(found.image).build_id());
        match (place.build_id, found) {
            (None, _) => true,
            (Some(recorded), Some(found)) => is_same(recorded, &found),
            (Some(_), None) => false,
        }
    }
}

/// A short build-id is recorded with zeros up to its usual length.
fn is_same(recorded: &str, found: &str) -> bool {
    recorded.trim_end_matches('0') == found.trim_end_matches('0')
}

/// Whether the kernel that runs here was recorded. Where addresses are not drawn at boot, others lie in the same place.
fn is_running(place: Place<'_>) -> bool {
    let notes = fs::read("/sys/kernel/notes").unwrap_or_default();
    match (place.build_id, build_id_in(&notes, NOTES_ALIGN)) {
        (Some(recorded), Some(own)) => is_same(recorded, &hex(&own)),
        _ => !place.release.is_empty() && release().is_some_and(|own| own == place.release),
    }
}

fn release() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|release| release.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// This very test's mapping, as a recording would have it.
    fn here() -> (String, u64, dyno_sys::proc::Mapping) {
        let address = here as *const () as usize as u64;
        let maps = dyno_sys::proc::mappings(dyno_sys::child::this()).unwrap();
        let map = maps.into_iter().find(|map| (map.start..map.end).contains(&address)).unwrap();
        (map.path.clone(), address - map.start + map.offset, map)
    }

    #[test]
    fn a_file_that_is_still_the_recorded_one_names_its_functions() {
        let (path, offset, map) = here();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let place = Place {
            module: &path,
            build_id: None,
            inode,
            offset,
            map: (map.offset, map.end - map.start),
            anchor: None,
            release: "",
        };
        let name = OnDisk::default().name(place).unwrap();
        assert!(name.ends_with("here"), "{name}");
        let other = Place { inode: inode + 1, ..place };
        assert_eq!(OnDisk::default().name(other), None, "another file has that name now");
        let mut disk = OnDisk::default();
        assert_eq!((disk.name(other), disk.name(place).is_some()), (None, true), "one path, two files");
        let rebuilt = Place { inode: 0, build_id: Some("00ff"), ..place };
        assert_eq!(OnDisk::default().name(rebuilt), None, "it was built anew");
    }
    /// Fault: a kernel that is known by where it lies alone; without KASLR all of them lie there.
    #[test]
    fn a_kernel_that_lies_in_the_same_place_is_no_other_one() {
        let own = release().unwrap();
        let place = |build_id, release| Place {
            module: KERNEL,
            build_id,
            inode: 0,
            offset: 0,
            map: (0, 0),
            anchor: None,
            release,
        };
        assert!(is_running(place(None, &own)));
        assert!(!is_running(place(None, "2.6.32")) && !is_running(place(None, "")));
        let notes = fs::read("/sys/kernel/notes").unwrap_or_default();
        if let Some(id) = build_id_in(&notes, NOTES_ALIGN).map(|id| hex(&id)) {
            assert!(is_running(place(Some(&id), "2.6.32")), "a build-id tells more than a release");
            assert!(!is_running(place(Some("00ff"), &own)));
        }
    }
}
