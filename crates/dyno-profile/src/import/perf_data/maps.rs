//! Which file lay where in which process, as the records say.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A file in an address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map<'f> {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    /// Zero where it was not recorded.
    pub(super) inode: u64,
    pub(super) build_id: Option<String>,
    pub(super) path: &'f str,
}

/// A file that was mapped: another one of the same path, from before or after an upgrade, is another file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MappedFile {
    pub(super) path: String,
    pub(super) inode: u64,
    /// As its mapping says it.
    pub(super) build_id: Option<String>,
}

/// A file, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(u32);

/// A piece of a mapping that nothing newer lies on.
#[derive(Debug, Clone, Copy)]
struct Piece {
    end: u64,
    /// Where the whole mapping began.
    start: u64,
    /// Where in the file it began, and its bytes.
    map: (u64, u64),
    file: FileId,
}

/// What was found at an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) file: FileId,
    /// Bytes from the file's beginning.
    pub(super) offset: u64,
    /// The mapping: where in the file it begins, and its bytes.
    pub(super) map: (u64, u64),
}

/// Pieces by their starts; they never overlap.
type Pieces = BTreeMap<u64, Piece>;

/// Maps that are copied for children at most: a thousand children of a thousand maps each, some 50 MB. A file of a megabyte
/// could ask for gigabytes.
const COPIED_MAX: usize = 1_000_000;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    maps: HashMap<u32, Rc<Pieces>>,
    files: Vec<MappedFile>,
    known: HashMap<MappedFile, FileId>,
    /// Maps that were copied because a child went on by itself.
    copied: usize,
    /// Whether some were not, because there were too many.
    incomplete: bool,
}

impl Spaces {
    /// A file was mapped; what lay there is gone.
    pub(super) fn map(&mut self, pid: u32, map: &Map<'_>) {
        let end = map.start.saturating_add(map.bytes);
        let file = self.file_of(map);
        let pieces = self.own(pid);
        cut(pieces, map.start, end);
        if map.start < end {
            let (start, map) = (map.start, (map.offset, map.bytes));
            pieces.insert(start, Piece { end, start, map, file });
        }
    }

    fn file_of(&mut self, map: &Map<'_>) -> FileId {
        let build_id = map.build_id.clone();
        let file = MappedFile { path: map.path.to_owned(), inode: map.inode, build_id };
        if let Some(&known) = self.known.get(&file) {
            return known;
        }
        let id = FileId(self.files.len() as u32);
        self.files.push(file.clone());
        self.known.insert(file, id);
        id
    }

    /// A file that was found.
    pub(super) fn file(&self, id: FileId) -> &MappedFile {
        &self.files[id.0 as usize]
    }

    /// The maps of a process, its own from now on.
    fn own(&mut self, pid: u32) -> &mut Pieces {
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

    /// A child begins with its parent's files, whoever had its number before; a thread shares them.
    pub(super) fn fork(&mut self, pid: u32, parent: u32) {
        if pid == parent {
            return;
        }
        match self.maps.get(&parent).cloned() {
            Some(maps) => drop(self.maps.insert(pid, maps)),
            None => self.clear(pid),
        }
    }

    /// A new program takes the place of the old.
    pub(super) fn clear(&mut self, pid: u32) {
        self.maps.remove(&pid);
    }

    /// What lies at an address.
    pub(super) fn find(&self, pid: u32, address: u64) -> Option<Found> {
        let (_, piece) = self.maps.get(&pid)?.range(..=address).next_back()?;
        let offset = (address - piece.start).wrapping_add(piece.map.0);
        (address < piece.end).then_some(Found { file: piece.file, offset, map: piece.map })
    }
}

/// Forgets what lies in a range; a piece that reaches beyond it keeps the rest.
fn cut(pieces: &mut Pieces, start: u64, end: u64) {
    let under = pieces.range(..end).rev().take_while(|(_, piece)| piece.end > start);
    let under: Vec<(u64, Piece)> = under.map(|(from, piece)| (*from, *piece)).collect();
    for (from, piece) in under {
        pieces.remove(&from);
        if from < start {
            pieces.insert(from, Piece { end: start, ..piece });
        }
        if piece.end > end {
            pieces.insert(end, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn map(start: u64, bytes: u64, path: &str) -> Map<'_> {
        Map { start, bytes, offset: 0x100, inode: 0, build_id: None, path }
    }

    /// Fault: `cut` that forgets a piece where only its middle is covered.
    #[test]
    fn a_newer_map_hides_what_it_covers_and_nothing_else() {
        let mut spaces = Spaces::default();
        spaces.map(7, &map(0x1000, 0x3000, "/a"));
        spaces.map(7, &map(0x2000, 0x1000, "/b"));
        spaces.map(7, &map(0x2800, 0, "/nothing"));
        let found = |at| {
            let found = spaces.find(7, at)?;
            Some((spaces.file(found.file).path.as_str(), found.offset, found.map))
        };
        let whole = (0x100, 0x3000);
        assert_eq!(found(0x1fff), Some(("/a", 0x10ff, whole)));
        assert_eq!(found(0x2800), Some(("/b", 0x900, (0x100, 0x1000))));
        assert_eq!(found(0x3000), Some(("/a", 0x2100, whole)), "counted from where the whole one began");
        assert_eq!((found(0xfff), found(0x4000)), (None, None));
    }

    /// Fault: `cut` that looks at every map below. Half a million maps of one process then take hours.
    #[test]
    fn a_process_of_half_a_million_maps_is_read_in_a_moment() {
        let mut spaces = Spaces::default();
        for at in 0..500_000 {
            spaces.map(7, &map(at * 0x1000, 0x1000, "/a"));
        }
        assert!((0..500_000).step_by(1_000).all(|at| spaces.find(7, at * 0x1000).is_some()));
    }
}
