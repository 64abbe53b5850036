//! Which file lay where in which process, as the records say.

use std::collections::HashMap;
use std::rc::Rc;

/// A file in an address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map<'f> {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    /// Zero where it was not recorded.
    pub(super) inode: u64,
    pub(super) path: &'f str,
}

/// A file that was found at an address.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    start: u64,
    end: u64,
    /// Where in the file the mapping begins.
    pub(super) offset: u64,
    pub(super) inode: u64,
    pub(super) path: Rc<str>,
}

impl Mapped {
    pub(super) fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// Maps that are copied for children at most: a thousand children of a thousand maps each, some 50 MB. A file of a megabyte
/// could ask for gigabytes.
const COPIED_MAX: usize = 1_000_000;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    maps: HashMap<u32, Rc<Vec<Mapped>>>,
    /// Maps that were copied because a child went on by itself.
    copied: usize,
    /// Whether some were not, because there were too many.
    incomplete: bool,
}

impl Spaces {
    pub(super) fn map(&mut self, pid: u32, map: &Map<'_>) {
        let end = map.start.saturating_add(map.bytes);
        let (start, offset, inode) = (map.start, map.offset, map.inode);
        let mapped = Mapped { start, end, offset, inode, path: Rc::from(map.path) };
        let maps = self.own(pid);
        // What lies wholly under the new one can never be found again.
        maps.retain(|old| old.start < map.start || old.end > end);
        maps.push(mapped);
    }

    /// The maps of a process, its own from now on.
    fn own(&mut self, pid: u32) -> &mut Vec<Mapped> {
        let maps = self.maps.entry(pid).or_default();
        if Rc::strong_count(maps) > 1 {
            self.copied += maps.len();
            if self.copied > COPIED_MAX {
                (*maps, self.incomplete) = (Rc::default(), true);
            }
        }
        Rc::make_mut(maps)
    }

    /// Whether maps are missing.
    pub(super) fn incomplete(&self) -> bool {
        self.incomplete
    }

    /// A child begins with its parent's files; a thread shares them.
    pub(super) fn fork(&mut self, pid: u32, parent: u32) {
        if pid != parent
            && let Some(maps) = self.maps.get(&parent).cloned()
        {
            self.maps.entry(pid).or_insert(maps);
        }
    }

    /// A new program takes the place of the old.
    pub(super) fn clear(&mut self, pid: u32) {
        self.maps.remove(&pid);
    }

    /// The mapping at an address, and the bytes from its file's beginning; the newest wins.
    pub(super) fn find(&self, pid: u32, address: u64) -> Option<(Mapped, u64)> {
        let maps = self.maps.get(&pid)?;
        let map = maps.iter().rev().find(|map| (map.start..map.end).contains(&address))?;
        Some((map.clone(), (address - map.start).wrapping_add(map.offset)))
    }
}
