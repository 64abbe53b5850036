//! Names of functions from the files and the kernel of this machine, where they are still the ones that were recorded.
//!
//! A file is the recorded one by its inode or its build-id; the kernel by where its symbols lie, which changes with every
//! boot. What is another one by now names nothing: a wrong name is worse than an address.

use std::collections::HashMap;

use dyno_sys::Pid;
use dyno_sys::perf::Mmap;

use super::place::{KERNEL, Place};
use crate::image::spaces::AddressSpaces;
use crate::symbol::Symbols;

/// Each file is looked at as if a process had mapped it here; no process of Linux has a number this high.
const PROCESS_MAX: Pid = Pid::MAX;
/// Where it lies in that process.
const BASE: u64 = 0x10_0000_0000;

/// What is known of this machine's files.
#[derive(Default)]
pub struct OnDisk {
    spaces: AddressSpaces,
    symbols: Symbols,
    /// The process that stands for a mapping of a file; none for a file that is not the recorded one.
    files: HashMap<(String, u64), Option<Pid>>,
    /// Whether the kernel lies where it lay.
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
        let same = *self.same_kernel.get_or_insert_with(|| symbols.kernel_has(symbol, address));
        let name = same.then(|| self.symbols.kernel(place.offset).0.name)?;
        (!name.starts_with("0x")).then_some(name)
    }

    fn file(&mut self, place: Place<'_>) -> Option<Pid> {
        let key = (place.module.to_owned(), place.map.0);
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
        let inode = std::fs::metadata(place.module).ok()?.ino();
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

    /// Whether the file has the build-id that was recorded, if one was. A short one is filled up with zeros.
    fn is_recorded(&mut self, pid: Pid, place: Place<'_>) -> bool {
        let found = self.spaces.locate(pid, BASE);
        let found = found.and_then(|found| self.spaces.images().get(found.image).build_id());
        match (place.build_id, found) {
            (None, _) => true,
            (Some(recorded), Some(found)) => recorded.trim_end_matches('0') == found.trim_end_matches('0'),
            (Some(_), None) => false,
        }
    }
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
        };
        let name = OnDisk::default().name(place).unwrap();
        assert!(name.ends_with("here"), "{name}");
        let other = Place { inode: inode + 1, ..place };
        assert_eq!(OnDisk::default().name(other), None, "another file has that name now");
        let rebuilt = Place { inode: 0, build_id: Some("00ff"), ..place };
        assert_eq!(OnDisk::default().name(rebuilt), None, "it was built anew");
    }
}
