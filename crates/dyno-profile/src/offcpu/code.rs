//! What the recording needs of user code: where it lies, how a copied stack unwinds, what an address is called.
//!
//! The recording calls it through one trait, so that the unwinder and the symbols stay out of it. `Addresses` is the
//! least that can be had without either: the walk by frame pointers, and files with offsets for names.

use std::collections::HashMap;

use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::Shape;

/// A frame of user code, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct UserFrame {
    /// The function, or the address where none is known.
    pub name: String,
    /// The file it lies in.
    pub module: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Whether the compiler folded it into its caller.
    pub inlined: bool,
    /// Address within the module.
    pub address: u64,
}

/// A stack that was unwound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unwound {
    /// Addresses from the leaf up: the leaf's own, then return addresses.
    pub addresses: Vec<u64>,
    /// Whether it got to where threads begin.
    pub reached: Reached,
}

/// How far an unwinding came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reached {
    /// To main, or the thread's start.
    Root,
    /// It ended before.
    #[default]
    Short,
}

/// User code of the processes that are watched.
pub trait UserCode {
    /// Reads where the code of `pid` lies now, and tells its ranges; what was known of it before is forgotten.
    fn read(&mut self, pid: Pid) -> Vec<(u64, u64)>;
    /// `child` was forked from `parent` and has its code.
    fn inherit(&mut self, child: Pid, parent: Pid);
    /// Unwinds a copied stack.
    fn unwind(&mut self, shape: &Shape<'_>) -> Unwound;
    /// The frames at an address, the innermost first: several where functions were folded into each other. `at_return`
    /// says that it is a return address, which belongs to the call before it.
    fn frames(&mut self, pid: Pid, address: u64, kind: AddressKind) -> Vec<UserFrame>;
    /// How stacks are read, for the record.
    fn method(&self) -> &'static str;
}

/// What an address on a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressKind {
    /// The instruction that comes next.
    Leaf,
    /// Where a call returns to.
    Return,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// Code without unwinder or symbols.
#[derive(Debug, Default)]
pub struct Addresses {
    spaces: HashMap<Pid, Vec<Mapping>>,
}

impl Addresses {
    /// Nothing is known yet.
    pub fn new() -> Addresses {
        Addresses::default()
    }
}

impl UserCode for Addresses {
    fn read(&mut self, pid: Pid) -> Vec<(u64, u64)> {
        let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mappings = parse_maps(&String::from_utf8_lossy(&text));
        if mappings.is_empty() {
            return Vec::new();
        }
        let ranges = mappings.iter().map(|mapping| (mapping.start, mapping.end)).collect();
        self.spaces.insert(pid, mappings);
        ranges
    }

    fn inherit(&mut self, child: Pid, parent: Pid) {
        if let Some(space) = self.spaces.get(&parent).cloned() {
            self.spaces.entry(child).or_insert(space);
        }
    }

    fn unwind(&mut self, shape: &Shape<'_>) -> Unwound {
        let walked = &shape.by_frame_pointers;
        let addresses = if walked.is_empty() { vec![shape.ip] } else { walked.clone() };
        Unwound { addresses, reached: Reached::Short }
    }

    fn frames(&mut self, pid: Pid, address: u64, _kind: AddressKind) -> Vec<UserFrame> {
        let inside = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let mapping = self.spaces.get(&pid).and_then(|space| space.iter().find(inside));
        let within = mapping.map_or(address, |mapping| address - mapping.start + mapping.offset);
        let module = mapping.map(|mapping| mapping.path.clone()).filter(|path| !path.is_empty());
        vec![UserFrame { name: format!("{within:#x}"), module, address: within, ..UserFrame::default() }]
    }

    fn method(&self) -> &'static str {
        "fp"
    }
}

/// The executable mappings of /proc/PID/maps.
fn parse_maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let path = line.find(['/', '[']).map_or_else(String::new, |at| line[at..].to_owned());
    let mapping = Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, path };
    rights.contains('x').then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
5500-5600 r--p 00000000 fe:00 1 /bin/a b\n5600-5700 r-xp 00000100 fe:00 1 /bin/a b\n\
7000-7100 rwxp 00000000 00:00 0 \n7f00-7f10 r-xp 00000000 00:00 0 [vdso]\n";

    #[test]
    fn code_is_what_may_be_executed() {
        let paths: Vec<String> = parse_maps(MAPS).into_iter().map(|mapping| mapping.path).collect();
        assert_eq!(paths, ["/bin/a b", "", "[vdso]"]);
    }

    #[test]
    fn an_address_without_symbols_is_told_by_file_and_offset() {
        let mut code = Addresses { spaces: HashMap::from([(1, parse_maps(MAPS))]) };
        code.inherit(2, 1);
        let frames = code.frames(2, 0x5610, AddressKind::Leaf);
        assert_eq!((frames[0].name.as_str(), frames[0].module.as_deref()), ("0x110", Some("/bin/a b")));
        assert_eq!(code.frames(2, 0x99, AddressKind::Leaf)[0].module, None);
    }
}
