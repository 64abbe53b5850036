//! BPF objects: loaded from bytes, attached, their maps read. What each object says to its reader stands in a module of
//! its own beside this one, with the layouts that both sides share.
//!
//! Called by the profilers through those modules. Everything hangs on descriptors of this process and nothing is ever
//! pinned: however it ends, `kill -9` included, the kernel takes the programs out.

pub mod causal;
mod loaded;
pub mod offcpu;
pub mod runs;
pub mod types;

use crate::Pid;
use crate::errno::checked;
use crate::perf::{self, SampleClock};
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray, RingBuf, StackTraceMap};
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::uprobe::{UProbeLink, UProbeScope};
use aya::programs::{BtfTracePoint, PerfEvent, Program, ProgramError, RawTracePoint, UProbe};
use aya::{Btf, Ebpf, EbpfLoader, Pod};
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

pub use loaded::{Loaded, ids, loaded};

/// Why a BPF object is not at work.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel does not publish its types.
    #[error("cannot read the kernel's types at /sys/kernel/btf/vmlinux")]
    Types(#[source] aya::BtfError),
    /// The object was refused as a whole: its maps could not be made, or it does not fit this kernel.
    #[error("cannot load the BPF object")]
    Load(#[source] Box<aya::EbpfError>),
    /// The object has no such program or map.
    #[error("the BPF object has no {what} called {name}")]
    Missing {
        /// `program` or `map`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The verifier or the kernel refused one program.
    #[error("cannot attach {program} to {to}")]
    Attach {
        /// The program.
        program: String,
        /// Where to.
        to: String,
        /// The kernel's word, with what the verifier said.
        source: Box<ProgramError>,
    },
    /// The kernel does not say how long a program ran.
    #[error("cannot ask the kernel about the BPF program {program}")]
    Info {
        /// The program.
        program: String,
        /// The kernel's word.
        source: Box<ProgramError>,
    },
    /// A map could not be read or written.
    #[error("cannot use the BPF map {map}")]
    Map {
        /// Its name.
        map: &'static str,
        /// The kernel's word.
        source: aya::maps::MapError,
    },
    /// A site lies in more pieces of code than can be compared with.
    #[error("the code lies in {count} pieces, more than {most}")]
    Pieces {
        /// How many.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A map could not be mapped into this process.
    #[error("cannot map the BPF map {map} into memory")]
    Mapping {
        /// Its name.
        map: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
    /// Processes have other numbers here than in the kernel.
    #[error("this is a PID namespace of its own: its processes have other numbers in the kernel")]
    Namespace,
    /// Something that stands beside the programs, such as a list of CPUs.
    #[error("cannot read {what}")]
    Read {
        /// What.
        what: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
}

/// Number of the first PID namespace (PROC_PID_INIT_INO of linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Programs in the kernel know processes by the numbers of the first namespace.
fn has_the_kernels_numbers() -> bool {
    std::fs::read_link("/proc/self/ns/pid").map_or(true, |link| link.as_os_str() == FIRST_PID_NAMESPACE)
}

impl BpfError {
    /// Whether rights are what is missing.
    pub fn is_permission(&self) -> bool {
        let mut layer: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = layer {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            // The loader prints the kernel's word where it does not hand it on as a source.
            if kind == Some(io::ErrorKind::PermissionDenied) || error.to_string().contains("os error 1)") {
                return true;
            }
            layer = error.source();
        }
        false
    }
}

/// A loaded object, its programs and the links that hold them in place.
#[derive(Debug)]
pub struct Object {
    loaded: Ebpf,
    types: Btf,
    kept: Vec<Attached>,
}

/// Where the programs of an object are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook<'n> {
    /// A tracepoint whose arguments the kernel's types describe (Linux 5.5).
    Typed(&'n str),
    /// The same tracepoint with raw arguments (Linux 4.17).
    Raw(&'n str),
    /// Samples of each CPU, by several clocks with which nothing keeps step.
    CpuClock {
        /// The mean time between two samples of a CPU.
        period_ns: u64,
    },
    /// An instruction in a file, wherever it is mapped.
    Instruction {
        /// The file.
        image: &'n Path,
        /// The instruction's offset in it.
        offset: u64,
        /// The process that is watched; none: everybody who runs the file.
        pid: Option<Pid>,
    },
}

/// A program in its place. Dropped, it is taken out again.
#[derive(Debug)]
pub struct Attached {
    links: Vec<Link>,
}

impl Attached {
    /// Clocks at which it runs, those of each CPU in a row.
    fn clocks(&self) -> impl Iterator<Item = &SampleClock> {
        self.links.iter().filter_map(|link| match link {
            Link::Clock(clock) => Some(clock),
            _ => None,
        })
    }

    /// Draws clock `number` of every CPU anew, from now on: once in each `period_ns` all of a CPU sample together, when all
    /// were drawn by the same `turn`, which lies between 0 and 1.
    fn draw_clock(&self, number: usize, period_ns: u64, turn: f64) -> io::Result<()> {
        let clocks: Vec<&SampleClock> = self.clocks().collect();
        for of_cpu in clocks.chunk_by(|one, next| one.cpu() == next.cpu()) {
            let Some(clock) = of_cpu.get(number) else { continue };
            clock.restart(perf::periods(period_ns, of_cpu.len(), turn)[number])?;
        }
        Ok(())
    }
}

/// Held to be dropped.
#[derive(Debug)]
enum Link {
    Typed(#[expect(dead_code, reason = "its drop detaches")] BtfTracePointLink),
    Raw(#[expect(dead_code, reason = "its drop detaches")] RawTracePointLink),
    Clock(SampleClock),
    Instruction(#[expect(dead_code, reason = "its drop detaches")] UProbeLink),
}

impl Object {
    /// Makes the object's maps and moves its programs to this kernel's layouts. `bytes` may have been patched by the
    /// caller; they need no alignment. Needs CAP_BPF and CAP_PERFMON, or root.
    pub fn load(bytes: &[u8]) -> Result<Object, BpfError> {
        Object::load_sized(bytes, None)
    }

    /// The same with another number of rows for the table of this name.
    pub(crate) fn load_sized(bytes: &[u8], sized: Option<(&str, u32)>) -> Result<Object, BpfError> {
        if !has_the_kernels_numbers() {
            return Err(BpfError::Namespace);
        }
        let types = Btf::from_sys_fs().map_err(BpfError::Types)?;
        // The ELF reader wants its tables where their words are aligned.
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        for (word, piece) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..piece.len()].copy_from_slice(piece);
            *word = u64::from_ne_bytes(whole);
        }
        let start = words.as_ptr().cast::<u8>();
        // SAFETY: `words` is at least as long as `bytes`, initialised, and lives through the call.
        let aligned = unsafe { std::slice::from_raw_parts(start, bytes.len()) };
        // By its own way it would read the kernel's types, some megabytes of them, once more.
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&types));
        if let Some((table, rows)) = sized {
            loader.map_max_entries(table, rows);
        }
        let loaded = loader.load(aligned);
        let loaded = loaded.map_err(|error| BpfError::Load(Box::new(error)))?;
        Ok(Object { loaded, types, kept: Vec::new() })
    }

    /// Puts one program where it belongs. It runs from now on, until the object is dropped.
    pub fn attach(&mut self, program: &str, hook: Hook<'_>) -> Result<(), BpfError> {
        let held = self.hold(program, hook)?;
        self.kept.push(held);
        Ok(())
    }

    /// Puts one program where it belongs for as long as the answer lives. It is verified at the first time only.
    pub fn hold(&mut self, program: &str, hook: Hook<'_>) -> Result<Attached, BpfError> {
        let to = match hook {
            Hook::Typed(name) | Hook::Raw(name) => name.to_owned(),
            Hook::CpuClock { .. } => "every CPU's clock".to_owned(),
            Hook::Instruction { image, offset, .. } => format!("{}+{offset:#x}", image.display()),
        };
        let missing = || BpfError::Missing { what: "program", name: program.to_owned() };
        let found = self.loaded.program_mut(program).ok_or_else(missing)?;
        let links = held(found, hook, &self.types);
        let links = links.map_err(|source| BpfError::Attach {
            program: program.to_owned(),
            to,
            source: Box::new(source),
        })?;
        Ok(Attached { links })
    }

    /// Whether this kernel has a tracepoint by that name.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        // Types are matched by name and kind; a tracepoint's is a typedef of its own.
        let bytes = self.types.to_bytes();
        let wanted = format!("\0btf_trace_{name}\0");
        bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    }

    fn map(&self, name: &'static str) -> Result<&Map, BpfError> {
        self.loaded.map(name).ok_or_else(|| missing_map(name))
    }

    fn map_mut(&mut self, name: &'static str) -> Result<&mut Map, BpfError> {
        self.loaded.map_mut(name).ok_or_else(|| missing_map(name))
    }

    pub(crate) fn hash<K: Pod, V: Pod>(
        &self,
        map: &'static str,
    ) -> Result<HashMap<&MapData, K, V>, BpfError> {
        HashMap::try_from(self.map(map)?).map_err(|source| BpfError::Map { map, source })
    }

    pub(crate) fn hash_mut<K: Pod, V: Pod>(
        &mut self,
        map: &'static str,
    ) -> Result<HashMap<&mut MapData, K, V>, BpfError> {
        HashMap::try_from(self.map_mut(map)?).map_err(|source| BpfError::Map { map, source })
    }

    pub(crate) fn array_mut<V: Pod>(
        &mut self,
        map: &'static str,
    ) -> Result<Array<&mut MapData, V>, BpfError> {
        Array::try_from(self.map_mut(map)?).map_err(|source| BpfError::Map { map, source })
    }

    pub(crate) fn per_cpu<V: Pod>(&self, map: &'static str) -> Result<PerCpuArray<&MapData, V>, BpfError> {
        PerCpuArray::try_from(self.map(map)?).map_err(|source| BpfError::Map { map, source })
    }

    pub(crate) fn stacks(&self, map: &'static str) -> Result<StackTraceMap<&MapData>, BpfError> {
        StackTraceMap::try_from(self.map(map)?).map_err(|source| BpfError::Map { map, source })
    }

    /// Takes a ring out of the object; it can be read once only.
    pub fn ring(&mut self, map: &'static str) -> Result<Ring, BpfError> {
        let taken = self.loaded.take_map(map).ok_or_else(|| missing_map(map))?;
        RingBuf::try_from(taken).map(Ring).map_err(|source| BpfError::Map { map, source })
    }

    /// Maps an array made with `BPF_F_MMAPABLE` into this process, as words that the programs see at once.
    pub fn words(&self, map: &'static str, count: usize) -> Result<Words, BpfError> {
        let Map::Array(data) = self.map(map)? else { return Err(missing_map(map)) };
        let info = data.info().map_err(|source| BpfError::Map { map, source })?;
        check_room(map, count, u64::from(info.value_size()) * u64::from(info.max_entries()));
        Words::new(data.fd().as_fd(), count).map_err(|source| BpfError::Mapping { map, source })
    }
}

/// Words beyond a map's end would read as zero, or end the process: object and layout are of different versions then.
fn check_room(map: &str, count: usize, bytes: u64) {
    assert!(count > 0, "no word of {map} is used");
    assert!(
        (count * size_of::<u64>()) as u64 <= bytes,
        "{count} words are used of {map}, which has {bytes} bytes"
    );
}

fn missing_map(name: &str) -> BpfError {
    BpfError::Missing { what: "map", name: name.to_owned() }
}

/// Several for each CPU.
fn clocks(program: BorrowedFd<'_>, period_ns: u64) -> io::Result<Vec<SampleClock>> {
    let cpus = crate::affinity::online();
    let periods = perf::periods(period_ns, perf::clocks_of_a_cpu(cpus.len()), 0.0);
    let of_cpu = |cpu: usize| periods.iter().map(move |one| SampleClock::start(program, cpu, *one));
    cpus.iter().flat_map(of_cpu).collect()
}

fn clock_refused(io_error: io::Error) -> ProgramError {
    ProgramError::SyscallError(aya::sys::SyscallError { call: "perf_event_open", io_error })
}

fn scope(pid: Option<Pid>) -> UProbeScope {
    // The address space is looked up through a thread that has one; every thread that runs in it meets the probe.
    let number = pid.and_then(|pid| NonZeroU32::new(crate::proc::standing_for(pid).cast_unsigned()));
    number.map_or(UProbeScope::AllProcesses, UProbeScope::OneProcess)
}

/// So often a program is handed to the kernel whose check of it a signal ended: libbpf does as much.
const CHECKS_MAX: usize = 5;

/// Loads a program. The kernel leaves off checking it when a signal comes in, and answers `EAGAIN`; a child that ends is one.
fn looked_through<E>(
    was_interrupted: fn(&E) -> bool,
    mut load: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for _ in 1..CHECKS_MAX {
        match load() {
            Err(error) if was_interrupted(&error) => {}
            loaded => return loaded,
        }
    }
    load()
}

fn was_interrupted(error: &ProgramError) -> bool {
    matches!(error, ProgramError::LoadError { io_error, .. } if io_error.kind() == io::ErrorKind::WouldBlock)
}

/// Attaches a program that may have been loaded before.
fn held(program: &mut Program, hook: Hook<'_>, types: &Btf) -> Result<Vec<Link>, ProgramError> {
    let is_loaded = program.fd().is_ok();
    match hook {
        Hook::Typed(name) => {
            let program = <&mut BtfTracePoint>::try_from(program)?;
            if !is_loaded {
                looked_through(was_interrupted, || program.load(name, types))?;
            }
            let link = program.attach()?;
            Ok(vec![Link::Typed(program.take_link(link)?)])
        }
        Hook::CpuClock { period_ns } => {
            let program = <&mut PerfEvent>::try_from(program)?;
            if !is_loaded {
                looked_through(was_interrupted, || program.load())?;
            }
            let clocks = clocks(program.fd()?.as_fd(), period_ns).map_err(clock_refused)?;
            Ok(clocks.into_iter().map(Link::Clock).collect())
        }
        Hook::Instruction { image, offset, pid } => {
            let program = <&mut UProbe>::try_from(program)?;
            if !is_loaded {
                looked_through(was_interrupted, || program.load())?;
            }
            let link = program.attach(offset, image, scope(pid))?;
            Ok(vec![Link::Instruction(program.take_link(link)?)])
        }
        Hook::Raw(name) => {
            let program = <&mut RawTracePoint>::try_from(program)?;
            if !is_loaded {
                looked_through(was_interrupted, || program.load())?;
            }
            let link = program.attach(name)?;
            Ok(vec![Link::Raw(program.take_link(link)?)])
        }
    }
}

/// A ring that programs put records into. Its descriptor is readable when one came.
pub struct Ring(RingBuf<MapData>);

impl std::fmt::Debug for Ring {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Ring({})", self.0.as_raw_fd())
    }
}

impl Ring {
    /// Hands every record that is there to `each`; how many there were.
    pub fn drain(&mut self, each: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while let Some(record) = self.0.next() {
            each(&record);
            count += 1;
        }
        count
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Words shared with running programs. Dropped, they are unmapped; the map itself belongs to the object.
#[derive(Debug)]
pub struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the words are atomics in a shared mapping that nobody else unmaps; any thread may use them.
unsafe impl Send for Words {}
// SAFETY: the same.
unsafe impl Sync for Words {}

impl Words {
    fn new(map: BorrowedFd<'_>, count: usize) -> io::Result<Words> {
        let (access, bytes) = (libc::PROT_READ | libc::PROT_WRITE, count * size_of::<u64>());
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<AtomicU64>());
        Ok(Words { start: start.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?, count })
    }

    /// All of them.
    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` aligned words, lives as long as `self`, and is only used as atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: start and length are those that mmap gave; no reference outlives `self`.
        let unmapped = unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * size_of::<u64>()) };
        debug_assert!(checked(unmapped).is_ok(), "a mapping of ours can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_that_are_no_object_are_refused() {
        if std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            assert!(matches!(Object::load(b"no ELF file").unwrap_err(), BpfError::Load(_)));
        }
    }

    #[test]
    fn missing_rights_are_known_through_all_layers() {
        let source = io::Error::from_raw_os_error(libc::EPERM);
        assert!(BpfError::Mapping { map: "ring", source }.is_permission());
        let source = io::Error::from_raw_os_error(libc::ENOMEM);
        assert!(!BpfError::Mapping { map: "ring", source }.is_permission());
    }

    #[test]
    #[should_panic(expected = "54 words are used of controls, which has 424 bytes")]
    fn no_word_beyond_the_end_of_a_map_is_used() {
        check_room("controls", 53, 424);
        check_room("controls", 54, 424);
    }

    /// Planted faults: the first refusal counts; any refusal is asked again.
    #[test]
    fn a_check_that_a_signal_ended_is_made_again() {
        let tries = |errno: i32, in_vain: usize| {
            let mut tries = 0;
            let is_again = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
            let loaded = looked_through(is_again, || {
                tries += 1;
                if tries > in_vain { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
            });
            (tries, loaded.is_ok())
        };
        assert_eq!([tries(libc::EAGAIN, 2), tries(libc::EAGAIN, 9)], [(3, true), (CHECKS_MAX, false)]);
        assert_eq!(tries(libc::EPERM, 2), (1, false));
    }
}
