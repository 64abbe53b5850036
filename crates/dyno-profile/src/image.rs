//! The files whose code was seen, each once, however many processes map it.
//!
//! A file is opened when it is first needed, at a moment when the process that maps it most likely still lives: through
//! the process's own root (containers), or through the kernel's link to the very mapping (files that were deleted or
//! replaced since).

pub(crate) mod elf;
pub(crate) mod spaces;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;

use dyno_sys::{Pid, child, proc};

use elf::{Elf, Source};

/// Mappings through which a file is looked for; the last ones, since their processes live most likely.
const PLACES_MAX: usize = 4;

/// Bytes of a vDSO; it has a few pages.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// How the kernel marks the path of a file that was deleted.
const DELETED: &str = " (deleted)";

/// A file, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(u32);

/// What code lies in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    File,
    /// The piece of the kernel that is mapped into every process.
    Vdso,
    /// Memory that a process filled with code itself.
    Jit(Pid),
}

/// How stacks are unwound through code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwoundBy {
    /// By the tables that the compiler wrote.
    Dwarf,
    /// By frame pointers.
    FramePointers,
}

/// A mapping through which the file can be found.
#[derive(Debug, Clone, Copy)]
struct Place {
    pid: Pid,
    start: u64,
    end: u64,
}

/// A file with code.
#[derive(Debug)]
pub struct Image {
    path: String,
    inode: u64,
    kind: Kind,
    places: Vec<Place>,
    elf: OnceCell<Option<Rc<Elf>>>,
    unwound_by: OnceCell<UnwoundBy>,
    /// Where its functions begin, in order.
    functions: OnceCell<Vec<u64>>,
}

/// All files that were seen.
#[derive(Debug, Default)]
pub struct Images {
    images: Vec<Image>,
    known: HashMap<(Kind, u64, String), ImageId>,
}

impl Images {
    /// The image of a mapping.
    pub(crate) fn intern(&mut self, pid: Pid, mapping: &proc::Mapping) -> ImageId {
        let kind = kind(pid, &mapping.path);
        let (inode, path) = match &kind {
            Kind::File => (mapping.inode, mapping.path.trim_end_matches(DELETED).to_owned()),
            Kind::Vdso => (0, "[vdso]".to_owned()),
            Kind::Jit(_) => (0, "[jit]".to_owned()),
        };
        let id = self.of(kind, inode, path);
        let places = &mut self.images[id.0 as usize].places;
        places.insert(0, Place { pid, start: mapping.start, end: mapping.end });
        places.truncate(PLACES_MAX);
        id
    }

    fn of(&mut self, kind: Kind, inode: u64, path: String) -> ImageId {
        let next = ImageId(self.images.len() as u32);
        let id = *self.known.entry((kind.clone(), inode, path.clone())).or_insert(next);
        if id == next {
            let (elf, unwound_by, functions) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
            self.images.push(Image { path, inode, kind, places: Vec::new(), elf, unwound_by, functions });
        }
        id
    }

    /// An image that was seen.
    pub fn get(&self, id: ImageId) -> &Image {
        &self.images[id.0 as usize]
    }
}

impl Image {
    /// Its path as the process sees it; `[vdso]`, `[jit]` for what is no file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its build-id in hex.
    pub fn build_id(&self) -> Option<String> {
        Some(hex(self.elf()?.build_id()?))
    }

    /// How stacks are unwound through it: by tables where there are any; Go keeps frame pointers, and so must code
    /// without tables if it is to be unwound at all.
    pub fn unwound_by(&self) -> UnwoundBy {
        let tables = |elf: &Rc<Elf>| !elf.is_go() && elf.header(".eh_frame").is_some();
        let chosen =
            || if self.elf().is_some_and(tables) { UnwoundBy::Dwarf } else { UnwoundBy::FramePointers };
        *self.unwound_by.get_or_init(chosen)
    }

    /// Where the function that holds an address begins, by its unwind tables; the address where they do not say.
    pub(crate) fn function(&self, address: u64) -> u64 {
        let read = || {
            let index = self.elf().and_then(|elf| elf.unwind_tables().eh_frame_hdr.as_ref());
            let mut functions = index.map_or_else(Vec::new, elf::starts);
            functions.sort_unstable();
            functions
        };
        let functions = self.functions.get_or_init(read);
        let after = functions.partition_point(|start| *start <= address);
        after.checked_sub(1).map_or(address, |at| functions[at])
    }

    /// Whether an address lies in the linker's own code, through which functions of other files are called.
    pub(crate) fn is_linkage(&self, address: u64) -> bool {
        let sections = [".plt", ".plt.sec", ".plt.got", ".iplt"];
        let addresses = |name| self.elf()?.header(name)?.addresses();
        sections.into_iter().filter_map(addresses).any(|section| section.contains(&address))
    }

    /// Its file; `None` when it is none, or nowhere to be found any more.
    pub(crate) fn elf(&self) -> Option<&Rc<Elf>> {
        self.elf.get_or_init(|| self.open().map(Rc::new)).as_ref()
    }

    fn open(&self) -> Option<Elf> {
        match self.kind {
            Kind::File => self.places.iter().find_map(|place| Elf::open(self.file(*place)?)),
            Kind::Vdso => Elf::open(Source::Memory(own_vdso()?)),
            Kind::Jit(_) => None,
        }
    }

    /// The very file that is mapped: another one at its path (an upgrade) would give wrong names without a word.
    fn file(&self, place: Place) -> Option<Source> {
        let Place { pid, start, end } = place;
        let same =
            |path: &String| fs::metadata(path).is_ok_and(|file| file.ino() == self.inode && file.is_file());
        let folder = proc::folder(pid);
        let exe = format!("{folder}/exe");
        let is_exe = fs::read_link(&exe)
            .is_ok_and(|path| path.to_str().map(|path| path.trim_end_matches(DELETED)) == Some(&self.path));
        let seen = [format!("{folder}/root{}", self.path), self.path.clone()];
        let link = format!("{folder}/map_files/{start:x}-{end:x}");
        let by_path = seen.into_iter().find(same).and_then(|path| Source::open(path.as_ref()));
        let by_link = || Source::open(link.as_ref());
        by_path.or_else(by_link).or_else(|| is_exe.then(|| Source::open(exe.as_ref()))?)
    }
}

/// Bytes as lower-case digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind(pid: Pid, path: &str) -> Kind {
    // A runtime that maps its code twice, writable and executable, does so through a file without a name.
    let unnamed = ["/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"];
    match path {
        "[vdso]" => Kind::Vdso,
        path if !path.starts_with('/') || path.starts_with("//") => Kind::Jit(pid),
        path if unnamed.iter().any(|prefix| path.starts_with(prefix)) => Kind::Jit(pid),
        _ => Kind::File,
    }
}

/// The kernel maps the same bytes into every process of 64 bits, ours included.
fn own_vdso() -> Option<Vec<u8>> {
    let mapping = proc::mappings(child::this()).ok()?.into_iter().find(|mapping| mapping.path == "[vdso]")?;
    let size = (mapping.end - mapping.start).min(VDSO_BYTES_MAX);
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, mapping.start).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_mapping_of_this_process_has_its_image_once() {
        let (mut images, me) = (Images::default(), child::this());
        let code: Vec<_> = proc::mappings(me).unwrap().into_iter().filter(|map| map.executable).collect();
        let ids: Vec<ImageId> = code.iter().map(|mapping| images.intern(me, mapping)).collect();
        assert_eq!(ids, code.iter().map(|mapping| images.intern(me, mapping)).collect::<Vec<_>>());
        let vdso = ids.iter().map(|id| images.get(*id)).find(|image| *image.kind() == Kind::Vdso).unwrap();
        assert!(vdso.elf().unwrap().header(".dynsym").is_some(), "the vDSO is a library of its own");
        let libc = ids.iter().map(|id| images.get(*id)).find(|image| image.path().contains("libc")).unwrap();
        assert_eq!(libc.unwound_by(), UnwoundBy::Dwarf);
        assert_eq!(libc.build_id().unwrap().len(), 40);
    }

    #[test]
    fn what_has_no_name_is_code_that_the_process_made() {
        assert_eq!(
            ["", "//anon", "/memfd:jit", "[heap]"].map(|path| kind(7, path)),
            [(); 4].map(|()| Kind::Jit(7))
        );
        assert_eq!(kind(7, "/usr/bin/x"), Kind::File);
    }
}
