//! The files whose code was seen, each once, however many processes map it.
//!
//! A file is opened when it is first needed, at a moment when the process that maps it most likely still lives: through
//! the process's own root (containers), or through the kernel's link to the very mapping (files that were deleted or
//! replaced since).

pub(crate) mod elf;
pub(crate) mod spaces;

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;

use dyno_sys::{Pid, child, proc};

use elf::{Elf, Source};

/// Mappings through which a file is looked for; the last ones, since their processes live most likely.
const PLACES_MAX: usize = 4;

/// How often a file is looked for that was nowhere: each time a process maps it that was not asked yet. Where the first
/// ones could not be read (containers that are gone, no right to look) the next ones mostly cannot either.
const TRIES_MAX: u32 = 16;

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

/// What the file of code is called that was made at run time.
pub(crate) const JIT: &str = "[jit]";

/// A file with code.
#[derive(Debug)]
pub struct Image {
    path: String,
    inode: u64,
    kind: Kind,
    places: Vec<Place>,
    /// The file, once it was found.
    elf: OnceCell<Rc<Elf>>,
    unwound_by: OnceCell<UnwoundBy>,
    /// Whether there is a place that was not tried, and how many tries are left.
    untried: Cell<bool>,
    tries_left: Cell<u32>,
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
            Kind::Jit(_) => (0, JIT.to_owned()),
        };
        let id = self.of(kind, inode, path);
        let image = &mut self.images[id.0 as usize];
        image.places.insert(0, Place { pid, start: mapping.start, end: mapping.end });
        image.places.truncate(PLACES_MAX);
        image.untried.set(true);
        id
    }

    fn of(&mut self, kind: Kind, inode: u64, path: String) -> ImageId {
        let next = ImageId(self.images.len() as u32);
        let id = *self.known.entry((kind.clone(), inode, path.clone())).or_insert(next);
        if id == next {
            self.images.push(Image {
                path,
                inode,
                kind,
                places: Vec::new(),
                elf: OnceCell::new(),
                unwound_by: OnceCell::new(),
                untried: Cell::new(true),
                tries_left: Cell::new(TRIES_MAX),
                functions: OnceCell::new(),
            });
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
        let Some(elf) = self.elf() else { return UnwoundBy::FramePointers };
        let tables = || !elf.is_go() && elf.header(".eh_frame").is_some();
        let chosen = || if tables() { UnwoundBy::Dwarf } else { UnwoundBy::FramePointers };
        *self.unwound_by.get_or_init(chosen)
    }

    /// Where the function that holds an address begins, by its unwind tables; the address where they do not say.
    pub(crate) fn function(&self, address: u64) -> u64 {
        let Some(elf) = self.elf() else { return address };
        let read = || {
            let mut functions = elf.unwind_tables().eh_frame_hdr.as_ref().map_or_else(Vec::new, elf::starts);
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

    /// Its file; `None` when it is none, or nowhere to be found by now: a process that maps it later may lead to it.
    pub(crate) fn elf(&self) -> Option<&Rc<Elf>> {
        if self.elf.get().is_none() && self.untried.replace(false) {
            let left = self.tries_left.get().checked_sub(1)?;
            self.tries_left.set(left);
            let elf = Rc::new(self.open()?);
            return Some(self.elf.get_or_init(|| elf));
        }
        self.elf.get()
    }

    /// The address of a byte of the file, where that can be read by now.
    pub(crate) fn placed(&self, offset: u64) -> Option<u64> {
        self.elf()?.bias(offset, offset).map(|bias| offset.wrapping_sub(bias))
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

    /// A page of a file's code.
    fn code_of(path: &str, inode: u64) -> proc::Mapping {
        let (start, end, path) = (0x1000, 0x2000, path.to_owned());
        proc::Mapping { start, end, executable: true, shared: false, offset: 0, inode, path }
    }

    /// Fault: an image that keeps that its file was nowhere.
    #[test]
    fn a_file_that_was_nowhere_is_found_through_a_process_that_maps_it_later() {
        let folder = std::env::temp_dir().join(format!("dyno-image-{}", child::this()));
        fs::create_dir_all(&folder).unwrap();
        let (hidden, path) = (folder.join("hidden"), folder.join("library"));
        fs::copy("/bin/true", &hidden).unwrap();
        let (mut images, inode) = (Images::default(), fs::metadata(&hidden).unwrap().ino());
        let mapping = code_of(path.to_str().unwrap(), inode);
        let gone = Pid::MAX - 1;
        let id = images.intern(gone, &mapping);
        assert!(images.get(id).elf().is_none());
        fs::rename(&hidden, &path).unwrap();
        assert!(images.get(id).elf().is_none(), "nobody maps it that was not asked");
        images.intern(gone - 1, &mapping);
        assert!(images.get(id).elf().is_some() && images.get(id).build_id().is_some());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_nobody_leads_to_is_not_looked_for_for_ever() {
        let mut images = Images::default();
        let mapping = code_of("/no/such/library.so", 1);
        let tried = |images: &mut Images, pid| {
            let id = images.intern(pid, &mapping);
            let before = images.get(id).tries_left.get();
            assert!(images.get(id).elf().is_none());
            before != images.get(id).tries_left.get()
        };
        let tries = (0..100).filter(|pid| tried(&mut images, Pid::MAX - pid)).count();
        assert_eq!(tries, TRIES_MAX as usize);
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
