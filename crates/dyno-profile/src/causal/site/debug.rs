//! A file's functions with every copy of them, and the code of a source line: from its debug information, and from its
//! symbol table where that is all there is.
//!
//! Names in, addresses out: the other way round than `symbol`, which names samples. Read once per file when the first
//! name is looked for.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use gimli::Reader as _;
use gimli::{AttributeValue, DebugInfoOffset, DebuggingInformationEntry, UnitOffset, constants as dw};

use crate::image::elf::Elf;
use crate::symbol::{Metered, Table, demangled};

type Dwarf = gimli::Dwarf<Metered>;
type Unit = gimli::Unit<Metered>;
type Die = DebuggingInformationEntry<Metered>;

/// How far a name is looked for along references: a copy refers to its origin, that to its declaration.
const REFERENCES_MAX: usize = 8;

/// A function with all its code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Function {
    /// Its name, demangled.
    pub(super) name: String,
    /// Its name as the linker knows it.
    pub(super) linkage: String,
    /// Its code, copies in callers included, as the file counts addresses.
    pub(super) ranges: Vec<Range<u64>>,
    /// First addresses of the copies that are called; none where it was folded into every caller.
    pub(super) starts: Vec<u64>,
    /// Where it is written.
    pub(super) file: Option<String>,
    /// The line of its name.
    pub(super) line: Option<u32>,
}

/// A stretch of code of one source line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    file: u32,
    line: u32,
    range: Range<u64>,
    is_statement: bool,
}

/// A piece of one copy of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    copy: u32,
    range: Range<u64>,
}

/// What a source line came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The file as the compiler named it.
    pub(super) file: String,
    /// Its code.
    pub(super) ranges: Vec<Range<u64>>,
    /// In each copy of the code around it the first address at which a debugger would stop for it.
    pub(super) starts: Vec<u64>,
}

/// Why a line has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoLine {
    /// No file of that name was compiled in.
    File,
    /// Several were; their names.
    Ambiguous(Vec<String>),
    /// The line has no code; the nearest ones that have.
    Line(Vec<u32>),
}

/// A file's functions and lines.
#[derive(Debug, Default)]
pub(super) struct Debug {
    pub(super) functions: Vec<Function>,
    files: Vec<String>,
    rows: Vec<Row>,
    /// Pieces of code of each copy of a function, called or folded into another: what was folded in stands behind what
    /// holds it.
    pieces: Vec<Piece>,
    /// Whether there are lines at all.
    pub(super) has_lines: bool,
}

impl Debug {
    /// Reads all that `elf` and the file beside it know.
    pub(super) fn read(elf: &Elf, beside: Option<&Elf>, path: &str) -> Debug {
        let mut notes = Vec::new();
        let holder = beside.filter(|beside| beside.header(".debug_info").is_some()).unwrap_or(elf);
        let mut debug = Debug::default();
        if let Some(dwarf) = crate::symbol::dwarf(holder, path, &mut notes) {
            debug.read_units(&dwarf);
        }
        let table = Table::read(elf, beside, path, &mut notes);
        debug.add_symbols(&table);
        debug.functions.iter_mut().for_each(|function| merge(&mut function.ranges));
        debug.functions.retain(|function| !function.ranges.is_empty());
        debug
    }

    fn read_units(&mut self, dwarf: &Dwarf) {
        let mut headers = dwarf.units();
        let mut units = Vec::new();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = dwarf.unit(header) {
                units.push(unit);
            }
        }
        let mut reading = Reading {
            dwarf,
            units: &units,
            known: HashMap::new(),
            functions: Vec::new(),
            pieces: Vec::new(),
        };
        for (at, unit) in units.iter().enumerate() {
            // What of a unit cannot be read is left out; that of others stays.
            let _ = reading.unit(at);
            let _ = self.read_lines(dwarf, unit);
        }
        (self.functions, self.pieces) = (reading.functions, reading.pieces);
        self.has_lines = !self.rows.is_empty();
    }

    fn read_lines(&mut self, dwarf: &Dwarf, unit: &Unit) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut rows = program.rows();
        let mut files: HashMap<u64, u32> = HashMap::new();
        let mut open: Option<Row> = None;
        while let Some((header, row)) = rows.next_row()? {
            if let Some(mut last) = open.take().filter(|last| last.range.start < row.address()) {
                last.range.end = row.address();
                self.rows.push(last);
            }
            let Some(line) = row.line().filter(|_| !row.end_sequence()) else { continue };
            let number = row.file_index();
            let file = *files.entry(number).or_insert_with(|| {
                self.files.push(file_name(dwarf, unit, header, number).unwrap_or_default());
                self.files.len() as u32 - 1
            });
            let line = u32::try_from(line.get()).unwrap_or(u32::MAX);
            let range = row.address()..row.address();
            // Linkers leave rows of code that they took out; they begin at nought.
            open = (row.address() > 0).then_some(Row { file, line, range, is_statement: row.is_stmt() });
        }
        Ok(())
    }

    /// Functions, and other names of functions, that only the symbol table knows.
    fn add_symbols(&mut self, table: &Table) {
        let starts = |function: &Function| {
            let names = [function.name.clone(), function.linkage.clone()];
            function
                .starts
                .iter()
                .flat_map(move |start| names.clone().map(|name| (*start, name)))
                .collect::<Vec<_>>()
        };
        let known: HashSet<(u64, String)> = self.functions.iter().flat_map(starts).collect();
        for (address, end, linkage) in table.functions() {
            if end <= address || known.contains(&(address, linkage.clone())) {
                continue;
            }
            self.functions.push(Function {
                name: demangled(&linkage),
                linkage,
                ranges: std::iter::once(address..end).collect(),
                starts: vec![address],
                ..Function::default()
            });
        }
    }

    /// The code of a source line. `file` is a path's end.
    pub(super) fn line(&self, file: &str, line: u32) -> Result<Line, NoLine> {
        let is_meant = |path: &str| {
            path == file || path.ends_with(file) && path[..path.len() - file.len()].ends_with('/')
        };
        let mut meant: Vec<&str> =
            self.files.iter().map(String::as_str).filter(|path| is_meant(path)).collect();
        meant.sort_unstable();
        meant.dedup();
        let with_line: Vec<&str> =
            meant.iter().copied().filter(|path| self.rows_of(path).any(|row| row.line == line)).collect();
        match (meant.as_slice(), with_line.as_slice()) {
            ([], _) => Err(NoLine::File),
            (_, [path]) => {
                let rows: Vec<&Row> = self.rows_of(path).filter(|row| row.line == line).collect();
                let mut ranges = rows.iter().map(|row| row.range.clone()).collect();
                merge(&mut ranges);
                Ok(Line { file: (*path).to_owned(), ranges, starts: self.starts(rows) })
            }
            (_, []) => {
                let all = meant.iter().flat_map(|path| self.rows_of(path)).map(|row| row.line);
                Err(NoLine::Line(nearest(all, line)))
            }
            (_, several) => Err(NoLine::Ambiguous(several.iter().map(|path| (*path).to_owned()).collect())),
        }
    }

    /// Where a thread comes to a line in each copy of the code around it: at the first statement there, if it has any. One
    /// copy may hold the line in many stretches, the head of a loop among them; it is passed once at the first.
    fn starts(&self, mut rows: Vec<&Row>) -> Vec<u64> {
        rows.sort_by_key(|row| row.range.start);
        let mut copies: Vec<Option<u32>> = vec![None; rows.len()];
        for piece in &self.pieces {
            let [from, to] = [piece.range.start, piece.range.end]
                .map(|at| rows.partition_point(|row| row.range.start < at));
            // What was folded in comes later, and takes its rows from what holds it.
            copies[from..to].fill(Some(piece.copy));
        }
        let mut firsts: HashMap<Option<u32>, &Row> = HashMap::new();
        for (row, copy) in rows.iter().zip(copies) {
            let first = firsts.entry(copy).or_insert(row);
            if row.is_statement && !first.is_statement {
                *first = row;
            }
        }
        let mut starts: Vec<u64> = firsts.values().map(|row| row.range.start).collect();
        starts.sort_unstable();
        starts
    }

    fn rows_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| self.files[row.file as usize] == path)
    }
}

/// The nearest numbers before and behind.
fn nearest(lines: impl Iterator<Item = u32>, line: u32) -> Vec<u32> {
    let mut all: Vec<u32> = lines.collect();
    all.sort_unstable();
    all.dedup();
    let after = all.partition_point(|other| *other < line);
    let before = after.checked_sub(1).map(|at| all[at]);
    before.into_iter().chain(all.get(after).copied()).collect()
}

fn file_name(
    dwarf: &Dwarf,
    unit: &Unit,
    header: &gimli::LineProgramHeader<Metered>,
    number: u64,
) -> Option<String> {
    let text = |value| Some(lossy(&dwarf.attr_string(unit, value).ok()?));
    let file = header.file(number)?;
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    let whole = if name.starts_with('/') || folder.is_empty() { name } else { format!("{folder}/{name}") };
    let root = unit.comp_dir.as_ref().map(lossy).unwrap_or_default();
    Some(if whole.starts_with('/') || root.is_empty() { whole } else { format!("{root}/{whole}") })
}

/// Counted as read, since it is copied: a unit's folder is copied for each of its files.
fn lossy(text: &Metered) -> String {
    text.to_string_lossy().map(Cow::into_owned).unwrap_or_default()
}

/// Sorts ranges and joins those that touch.
pub(super) fn merge(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}

/// The functions of all units while they are read.
struct Reading<'a> {
    dwarf: &'a Dwarf,
    units: &'a [Unit],
    /// Rows of `functions` by where their origin stands.
    known: HashMap<DebugInfoOffset, usize>,
    functions: Vec<Function>,
    pieces: Vec<Piece>,
}

/// What a function is called, along its references.
#[derive(Default)]
struct Named {
    name: Option<String>,
    linkage: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

impl Reading<'_> {
    fn unit(&mut self, at: usize) -> gimli::Result<()> {
        let unit = &self.units[at];
        let mut entries = unit.entries();
        // Copies of this unit follow those of the units before it.
        let mut copy = self.pieces.last().map_or(0, |last| last.copy + 1);
        while let Some(entry) = entries.next_dfs()? {
            let inlined = match entry.tag() {
                dw::DW_TAG_subprogram => false,
                dw::DW_TAG_inlined_subroutine => true,
                _ => continue,
            };
            let mut ranges = Vec::new();
            let mut found = self.dwarf.die_ranges(unit, entry)?;
            while let Some(range) = found.next()? {
                if range.begin > 0 && range.end > range.begin {
                    ranges.push(range.begin..range.end);
                }
            }
            if ranges.is_empty() {
                continue;
            }
            self.pieces.extend(ranges.iter().map(|range| Piece { copy, range: range.clone() }));
            copy += 1;
            // Hot and cold parts of one copy: it is called where it says, or where its first part begins.
            let start = entry.attr_value(dw::DW_AT_low_pc).or_else(|| entry.attr_value(dw::DW_AT_entry_pc));
            let start = start.and_then(|value| self.dwarf.attr_address(unit, value).ok().flatten());
            let start = start.unwrap_or(ranges[0].start);
            let Some(row) = self.row(at, entry) else { continue };
            let function = &mut self.functions[row];
            function.ranges.extend(ranges);
            if !inlined {
                function.starts.push(start);
            }
        }
        Ok(())
    }

    /// The row of the function that an entry is a copy of.
    fn row(&mut self, unit: usize, entry: &Die) -> Option<usize> {
        let (named, root) = self.named(unit, entry);
        if let Some(row) = self.known.get(&root) {
            return Some(*row);
        }
        let linkage = named.linkage.clone().or_else(|| named.name.clone())?;
        let name = named.linkage.map(|name| demangled(&name)).or(named.name)?;
        self.known.insert(root, self.functions.len());
        self.functions.push(Function {
            name,
            linkage,
            file: named.file,
            line: named.line,
            ..Function::default()
        });
        Some(self.functions.len() - 1)
    }

    /// Follows references to the first mention, taking what each says.
    fn named(&self, unit: usize, entry: &Die) -> (Named, DebugInfoOffset) {
        let mut named = Named::default();
        let (mut unit, mut entry) = (unit, entry.clone());
        for _ in 0..REFERENCES_MAX {
            self.take(&mut named, unit, &entry);
            let next = entry
                .attr_value(dw::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(dw::DW_AT_specification));
            let Some((at, offset)) = next.and_then(|value| self.place(unit, value)) else { break };
            let Ok(origin) = self.units[at].entry(offset) else { break };
            (unit, entry) = (at, origin);
        }
        let root = entry.offset().to_debug_info_offset(&self.units[unit].header);
        (named, root.unwrap_or(DebugInfoOffset(usize::MAX)))
    }

    fn take(&self, named: &mut Named, unit: usize, entry: &Die) {
        let of = &self.units[unit];
        let text = |at| {
            let value = entry.attr_value(at)?;
            Some(lossy(&self.dwarf.attr_string(of, value).ok()?))
        };
        named.name = named.name.take().or_else(|| text(dw::DW_AT_name));
        let linkage = || text(dw::DW_AT_linkage_name).or_else(|| text(dw::DW_AT_MIPS_linkage_name));
        named.linkage = named.linkage.take().or_else(linkage);
        let number = |at| entry.attr_value(at).and_then(|value| value.udata_value());
        named.line =
            named.line.or_else(|| number(dw::DW_AT_decl_line).and_then(|line| u32::try_from(line).ok()));
        if named.file.is_none()
            && let (Some(program), Some(AttributeValue::FileIndex(file))) =
                (&of.line_program, entry.attr_value(dw::DW_AT_decl_file))
        {
            named.file = file_name(self.dwarf, of, program.header(), file);
        }
    }

    /// The entry that a reference means.
    fn place(&self, unit: usize, value: AttributeValue<Metered>) -> Option<(usize, UnitOffset)> {
        match value {
            AttributeValue::UnitRef(offset) => Some((unit, offset)),
            AttributeValue::DebugInfoRef(offset) => {
                let begins =
                    |unit: &Unit| unit.header.debug_info_offset().is_some_and(|begin| begin.0 <= offset.0);
                let at = self.units.partition_point(begins).checked_sub(1)?;
                Some((at, offset.to_unit_offset(&self.units[at].header)?))
            }
            _ => None,
        }
    }
}
