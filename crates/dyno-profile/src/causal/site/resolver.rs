//! Which code is meant: from names, source lines and profiles to addresses in a running process, and to places where a
//! probe may be set.
//!
//! A function's code is all of its copies: the one that is called, cold parts that were split off, and what was folded
//! into callers. Shares count the innermost user code of each sample, the kernel's work for it included, as the live
//! mechanism does.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use dyno_record::causal::{Source, SourceKind};
use dyno_sys::bpf::causal::RANGES_MAX;
use dyno_sys::{Pid, proc};

use super::debug::{self, Debug, Function, NoLine};
use super::entry;
use super::error::{self, SiteError};
use super::name::user_name;
use crate::causal::rig::site::{Entry, Place, Reach, Site, Tried, WaitKind};
use crate::image::elf::{self, Elf};
use crate::symbol::debug_file;

/// How the kernel marks the path of a file that was deleted.
const DELETED: &str = " (deleted)";

/// A place where a probe may be set, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What was asked for, as it was found.
    pub name: String,
    /// The place; of a function with several copies the place in each.
    pub entries: Vec<Entry>,
    /// Whether the kernel emulates the instructions there: else it is single-stepped, some 15 µs instead of one.
    pub emulated: bool,
}

/// Finds code in a running process.
pub struct Resolver {
    pub(super) images: Vec<Mapped>,
}

/// A file of code as the process maps it.
pub(super) struct Mapped {
    /// As the process sees it.
    pub(super) path: String,
    /// As this process can open it.
    open_as: PathBuf,
    /// What is added to the file's addresses.
    pub(super) bias: u64,
    pub(super) elf: Rc<Elf>,
    debug: std::cell::OnceCell<Debug>,
}

/// How closely a name fits, the closest first.
pub(super) const FITS: [fn(&Function, &str) -> bool; 3] = [is_name, is_plain_name, is_last_part];

impl Resolver {
    /// Reads what a process maps. Its symbols are read when the first name is looked for.
    ///
    /// # Errors
    /// When the process is gone or may not be read, or runs no file.
    pub fn open(pid: Pid) -> Result<Resolver, SiteError> {
        let mappings = proc::mappings(pid).map_err(|source| SiteError::Unreadable { pid, source })?;
        let exe = fs::read_link(format!("{}/exe", proc::folder(pid))).ok();
        let mut images: Vec<Mapped> = Vec::new();
        for mapping in mappings.iter().filter(|mapping| mapping.executable && mapping.path.starts_with('/')) {
            if images.iter().any(|image| image.path == mapping.path.trim_end_matches(DELETED)) {
                continue;
            }
            images.extend(Mapped::open(pid, mapping));
        }
        // The program itself comes first: its names are meant before those of libraries.
        let is_exe = |image: &Mapped| {
            exe.as_ref()
                .and_then(|exe| exe.to_str())
                .is_some_and(|exe| exe.trim_end_matches(DELETED) == image.path)
        };
        images.sort_by_key(|image| !is_exe(image));
        if images.is_empty() { Err(SiteError::NoCode { pid }) } else { Ok(Resolver { images }) }
    }

    /// A site that was named: `SYMBOL`, `FILE:SYMBOL`, `FILE:LINE`, `wait:disk`, `wait:lock`, `wait:network`, `wait:any`,
    /// `wait:PATH`.
    ///
    /// # Errors
    /// When nothing, or more than one thing, has that name; the error says what comes near.
    pub fn named(&self, text: &str, reach: Reach) -> Result<Tried, SiteError> {
        if let Some(kind) = text.strip_prefix("wait:") {
            return wait(text, kind);
        }
        match parted(text) {
            Asked::Line(file, line) => self.line(file, line, reach),
            Asked::Symbol { file, symbol, offset: 0 } => self.function(file, symbol, reach),
            Asked::Symbol { .. } => Err(SiteError::Offset { name: text.to_owned() }),
        }
    }

    /// A place to count visits at: `SYMBOL`, `SYMBOL+OFFSET`, `FILE:SYMBOL`, `FILE:LINE`.
    ///
    /// # Errors
    /// As [`Resolver::named`]; and when a function was folded into all its callers, so that it has no beginning.
    pub fn probe(&self, text: &str) -> Result<Probe, SiteError> {
        match parted(text) {
            Asked::Line(file, line) => {
                let (image, found) = self.find_line(file, line)?;
                let name = format!("{}:{line}", short(&found.file));
                self.images[image].probe_at(name, &found.starts)
            }
            Asked::Symbol { file, symbol, offset } => {
                let (image, functions) = self.find(file, symbol)?;
                let name = functions[0].name.clone();
                if offset > 0 {
                    return self.images[image].probe_behind(&name, &functions, offset);
                }
                self.images[image].probe(name, &functions)
            }
        }
    }

    fn function(&self, file: Option<&str>, symbol: &str, reach: Reach) -> Result<Tried, SiteError> {
        let (image, functions) = self.find(file, symbol)?;
        Ok(self.images[image].of_functions(&functions, reach))
    }

    pub(super) fn line(&self, file: &str, line: u32, reach: Reach) -> Result<Tried, SiteError> {
        let (image, found) = self.find_line(file, line)?;
        let image = &self.images[image];
        let source = Source {
            kind: SourceKind::Line,
            inclusive: reach == Reach::Inclusive,
            module: Some(image.path.clone()),
            ranges: found.ranges.len(),
            line: Some(line),
            ..Source::default()
        };
        let name = format!("{}:{line}", short(&found.file));
        let source = Source { file: Some(found.file), ..source };
        Ok(image.tried(name, &found.ranges, Vec::new(), reach, source))
    }

    /// The functions of that name, all of one file of code.
    fn find(&self, file: Option<&str>, symbol: &str) -> Result<(usize, Vec<&Function>), SiteError> {
        for fits in FITS {
            for (at, image) in self.images.iter().enumerate() {
                let in_file = |function: &&Function| file.is_none_or(|file| is_in(function, file));
                let all = image.debug().functions.iter().filter(|function| fits(function, symbol));
                let found: Vec<&Function> = all.filter(in_file).collect();
                if !found.is_empty() {
                    return only_one(symbol, found).map(|found| (at, found));
                }
            }
        }
        Err(self.unknown(symbol))
    }

    fn unknown(&self, symbol: &str) -> SiteError {
        let program = &self.images[0];
        if program.debug().functions.is_empty() {
            return SiteError::Stripped { name: symbol.to_owned(), path: program.path.clone() };
        }
        let names = self
            .images
            .iter()
            .flat_map(|image| &image.debug().functions)
            .map(|function| function.name.as_str());
        SiteError::Unknown { name: symbol.to_owned(), near: error::near(symbol, names) }
    }

    fn find_line(&self, file: &str, line: u32) -> Result<(usize, debug::Line), SiteError> {
        let mut nearest = None;
        for (at, image) in self.images.iter().enumerate() {
            match image.debug().line(file, line) {
                Ok(found) => return Ok((at, found)),
                Err(NoLine::Ambiguous(found)) => {
                    return Err(SiteError::Ambiguous { name: format!("{file}:{line}"), found });
                }
                Err(NoLine::Line(lines)) => nearest = nearest.or(Some(lines)),
                Err(NoLine::File) => {}
            }
        }
        let name = format!("{file}:{line}");
        match nearest {
            Some(lines) => Err(SiteError::NoLine { name, nearest: lines }),
            // Libraries may have lines of their own; the program's are meant.
            None if !self.images[0].debug().has_lines => {
                Err(SiteError::NoDebug { name, path: self.images[0].path.clone() })
            }
            None => Err(SiteError::NoFile { name }),
        }
    }
}

impl Mapped {
    fn open(pid: Pid, mapping: &proc::Mapping) -> Option<Mapped> {
        let path = mapping.path.trim_end_matches(DELETED).to_owned();
        let same =
            |candidate: &PathBuf| fs::metadata(candidate).is_ok_and(|file| file.ino() == mapping.inode);
        let folder = proc::folder(pid);
        let seen = PathBuf::from(format!("{folder}/root{path}"));
        let link = PathBuf::from(format!("{folder}/map_files/{:x}-{:x}", mapping.start, mapping.end));
        let open_as = if same(&seen) { seen } else { link };
        let elf = Rc::new(Elf::open(elf::Source::open(&open_as)?)?);
        let bias = elf.bias(mapping.start, mapping.offset)?;
        Some(Mapped { path, open_as, bias, elf, debug: std::cell::OnceCell::new() })
    }

    pub(super) fn debug(&self) -> &Debug {
        self.debug.get_or_init(|| {
            let beside = debug_file(&self.elf, self.path.as_ref());
            Debug::read(&self.elf, beside.as_ref(), &self.path)
        })
    }

    /// A function's site; several are instances of one.
    pub(super) fn of_functions(&self, functions: &[&Function], reach: Reach) -> Tried {
        let mut ranges: Vec<Range<u64>> =
            functions.iter().flat_map(|function| function.ranges.clone()).collect();
        debug::merge(&mut ranges);
        let entries =
            self.cheapest("", functions).into_iter().filter_map(|found| Some(found.ok()?.0)).collect();
        let source = Source {
            kind: SourceKind::Function,
            inclusive: reach == Reach::Inclusive,
            module: Some(self.path.clone()),
            file: functions[0].file.clone(),
            line: functions[0].line,
            ranges: ranges.len(),
            ..Source::default()
        };
        self.tried(user_name(&functions[0].name).to_owned(), &ranges, entries, reach, source)
    }

    fn tried(
        &self,
        name: String,
        ranges: &[Range<u64>],
        entries: Vec<Entry>,
        reach: Reach,
        source: Source,
    ) -> Tried {
        let mut ranges = ranges.to_vec();
        if ranges.len() > RANGES_MAX {
            ranges.sort_by_key(|range| std::cmp::Reverse(range.end - range.start));
            ranges.truncate(RANGES_MAX);
            ranges.sort_by_key(|range| range.start);
        }
        let shifted =
            |range: &Range<u64>| range.start.wrapping_add(self.bias)..range.end.wrapping_add(self.bias);
        let ranges = ranges.iter().map(shifted).collect();
        let site = Site { name, place: Place::Code { ranges, entries }, reach };
        Tried { site, source, share_percent: None, is_spinning: false }
    }

    /// A probe in each copy of a function.
    pub(super) fn probe(&self, name: String, functions: &[&Function]) -> Result<Probe, SiteError> {
        let found = self.cheapest(&name, functions).into_iter().collect::<Result<Vec<_>, _>>()?;
        if found.is_empty() {
            return Err(SiteError::Folded { name });
        }
        let emulated = found.iter().all(|(_, emulated)| *emulated);
        Ok(Probe { name, entries: found.into_iter().map(|(entry, _)| entry).collect(), emulated })
    }

    /// In each copy of a function the place that each call passes once and that costs least, and whether the kernel
    /// emulates the instruction there.
    fn cheapest(&self, name: &str, functions: &[&Function]) -> Vec<Result<(Entry, bool), SiteError>> {
        let starts: BTreeSet<u64> = functions.iter().flat_map(|function| &function.starts).copied().collect();
        let at = |start: u64| {
            let end = end_of(functions, start);
            let code = self.elf.bytes_at(start, (end - start).min(entry::CODE_BYTES_MAX)).unwrap_or_default();
            let place = entry::cheapest(&code);
            Ok((self.entry(name, start + place.offset)?, place.emulated))
        };
        starts.into_iter().map(at).collect()
    }

    /// Probes exactly there, where instructions begin.
    fn probe_at(&self, name: String, addresses: &[u64]) -> Result<Probe, SiteError> {
        let is_emulated = |address: &u64| {
            let code = self.elf.bytes_at(*address, entry::INSTRUCTION_BYTES_MAX).unwrap_or_default();
            entry::at(&code, 0).is_ok_and(|place| place.emulated)
        };
        let emulated = addresses.iter().all(is_emulated);
        let entries =
            addresses.iter().map(|address| self.entry(&name, *address)).collect::<Result<_, _>>()?;
        Ok(Probe { entries, name, emulated })
    }

    /// A probe so many bytes behind a function's beginning. That means an instruction of one copy: another's may lie
    /// elsewhere.
    fn probe_behind(&self, name: &str, functions: &[&Function], offset: u64) -> Result<Probe, SiteError> {
        let start = functions.iter().flat_map(|function| &function.starts).min().copied();
        let start = start.ok_or_else(|| SiteError::Folded { name: name.to_owned() })?;
        let (name, bytes) = (format!("{name}+{offset:#x}"), end_of(functions, start) - start);
        if offset >= bytes {
            return Err(SiteError::Beyond { name, bytes });
        }
        let read = bytes.min(offset + entry::INSTRUCTION_BYTES_MAX);
        let code = self.elf.bytes_at(start, read).unwrap_or_default();
        match entry::at(&code, offset) {
            Ok(place) => Ok(Probe {
                entries: vec![self.entry(&name, start + offset)?],
                name,
                emulated: place.emulated,
            }),
            Err(around) => Err(SiteError::NoInstruction { name, around }),
        }
    }

    fn entry(&self, name: &str, address: u64) -> Result<Entry, SiteError> {
        let outside = || SiteError::NotInFile { name: name.to_owned() };
        let offset = self.elf.file_offset(address).ok_or_else(outside)?;
        Ok(Entry { image: self.open_as.clone(), offset })
    }
}

/// Where the stretch of code ends that begins there.
fn end_of(functions: &[&Function], start: u64) -> u64 {
    let mut all = functions.iter().flat_map(|function| &function.ranges);
    all.find(|range| range.contains(&start)).map_or(start + 1, |range| range.end)
}

/// A name, taken apart.
enum Asked<'a> {
    Line(&'a str, u32),
    Symbol { file: Option<&'a str>, symbol: &'a str, offset: u64 },
}

fn parted(text: &str) -> Asked<'_> {
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse()
    {
        return Asked::Line(file, line);
    }
    // `a::b` is a path of names, `a.c:b` a name within a file.
    let colon = text.find(':').filter(|at| !text[*at..].starts_with("::") && text[..*at].contains('.'));
    let (file, rest) = colon.map_or((None, text), |at| (Some(&text[..at]), &text[at + 1..]));
    let (symbol, offset) = rest
        .rsplit_once('+')
        .and_then(|(symbol, offset)| Some((symbol, number(offset)?)))
        .unwrap_or((rest, 0));
    Asked::Symbol { file, symbol, offset }
}

fn number(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

fn wait(text: &str, kind: &str) -> Result<Tried, SiteError> {
    let kind = match kind {
        "disk" => WaitKind::Disk,
        "lock" => WaitKind::Lock,
        "network" => WaitKind::Network,
        "any" => WaitKind::Any,
        path if path.starts_with('/') => WaitKind::File(path.to_owned()),
        _ => return Err(SiteError::NoWait { name: text.to_owned() }),
    };
    Ok(Tried {
        site: Site { name: text.to_owned(), place: Place::Wait(kind), reach: Reach::Own },
        source: Source { kind: SourceKind::Wait, ..Source::default() },
        share_percent: None,
        is_spinning: false,
    })
}

pub(super) fn is_name(function: &Function, wanted: &str) -> bool {
    function.name == wanted || function.linkage == wanted
}

/// Without parameters, and without what compilers append to parts and copies: `f(int)`, `f.part.0`, `f.constprop.0`.
fn is_plain_name(function: &Function, wanted: &str) -> bool {
    plain(&function.name) == plain(wanted)
}

fn plain(name: &str) -> &str {
    let marks = [".part.", ".constprop.", ".isra.", ".cold", ".llvm.", ".lto_priv."];
    let end = marks.iter().filter_map(|mark| name.find(mark)).min().unwrap_or(name.len());
    let name = &name[..end];
    // A leading parenthesis is Go's receiver or a type, not parameters.
    match name.rfind('(') {
        Some(at) if at > 0 && name.ends_with(')') && !name[..at].ends_with(['.', ':']) => &name[..at],
        _ => name,
    }
}

/// `worker` for `app::worker`, `main.worker`, and `(*T).f` for `main.(*T).f`.
fn is_last_part(function: &Function, wanted: &str) -> bool {
    let name = plain(&function.name);
    name.strip_suffix(wanted).is_some_and(|before| before.ends_with("::") || before.ends_with('.'))
}

fn is_in(function: &Function, file: &str) -> bool {
    function.file.as_ref().is_some_and(|path| path == file || path.ends_with(&format!("/{file}")))
}

/// Whether two are instances of one function. Parts and copies that only the symbol table knows have no file: their name
/// decides.
pub(super) fn are_one(a: &Function, b: &Function) -> bool {
    let has_no_file = a.file.is_none() || b.file.is_none();
    plain(&a.name) == plain(&b.name) && (has_no_file || (&a.file, a.line) == (&b.file, b.line))
}

/// All instances of one function, or that they are not one.
pub(super) fn only_one<'f>(wanted: &str, found: Vec<&'f Function>) -> Result<Vec<&'f Function>, SiteError> {
    if found.iter().all(|function| are_one(function, found[0])) {
        return Ok(found);
    }
    let mut places: Vec<String> = found.iter().map(|function| in_words(function)).collect();
    places.sort();
    places.dedup();
    Err(SiteError::Ambiguous { name: wanted.to_owned(), found: places })
}

fn in_words(function: &Function) -> String {
    match (&function.file, function.line) {
        (Some(file), Some(line)) => format!("{} ({}:{line})", function.name, short(file)),
        _ => function.name.clone(),
    }
}

/// The last part of a path.
fn short(path: &str) -> &str {
    dyno_record::name::file_name(path)
}
