//! The Firefox profiler's processed-profile JSON, as its front end opens from a file.
//!
//! The format has a time axis. Where our record does not know when its samples fell, each thread's stacks are laid one
//! after the other, as wide as their time, and the product's name says so. Its reader upgrades old versions, so one version is written for
//! good.

use std::collections::HashMap;

use dyno_record::profile::{Frame, Kind, Origin, Profile, Stack, Unit};
use serde_json::{Value, json};

use super::{Stretch, by_thread, has_moments, stretches, title, wait_mark};
use dyno_record::name;

/// The version of the shape written here; every thread has tables of its own in it.
const VERSION: u32 = 55;
const NS_PER_MS: f64 = 1e6;

/// Categories, by their place in the list of the head.
const OTHER: usize = 0;
const USER: usize = 1;
const KERNEL: usize = 2;
const WAITING: usize = 3;

/// The file.
pub fn bytes(profile: &Profile) -> Vec<u8> {
    let by_thread = by_thread(profile);
    let threads: Vec<Value> =
        by_thread.iter().map(|(thread, stacks)| thread_json(profile, *thread, stacks)).collect();
    let moments = by_thread.iter().all(|(_, stacks)| has_moments(profile, stacks));
    let file = json!({
        "meta": meta(profile, if moments { "" } else { SIDE_BY_SIDE }),
        "libs": profile.modules.iter().map(|module| lib(&module.path, module.build_id.as_deref())).collect::<Vec<_>>(),
        "threads": threads,
        "pages": [],
        "profilerOverhead": [],
        "counters": [],
    });
    file.to_string().into_bytes()
}

/// What the axis is where it is no time.
const SIDE_BY_SIDE: &str = " (stacks side by side: the time axis is not when they ran)";

fn meta(profile: &Profile, axis: &str) -> Value {
    let category =
        |name: &str, color: &str| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    let frequency = profile.sampling.frequency_hz.filter(|hz| *hz > 0.0);
    json!({
        "preprocessedProfileVersion": VERSION,
        "version": 24,
        "product": format!("{}{axis}", title(profile)),
        "startTime": profile.started_unix_s as f64 * 1e3,
        "interval": frequency.map_or(1.0, |hz| 1e3 / hz),
        "processType": 0,
        "stackwalk": 1,
        "debug": false,
        "oscpu": format!("Linux {}", profile.machine.kernel),
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "pausedRanges": [],
        "markerSchema": [],
        "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
        "categories": [
            category("Other", "grey"), category("User", "blue"), category("Kernel", "orange"),
            category("Waiting", "yellow"),
        ],
    })
}

fn lib(path: &str, build_id: Option<&str>) -> Value {
    let file = name::file_name(path);
    let id = build_id.unwrap_or_default();
    json!({
        "name": file, "path": path, "debugName": file, "debugPath": path, "arch": null,
        "breakpadId": breakpad_id(id), "codeId": build_id,
    })
}

/// A build-id in the form symbol servers use: a GUID from its first sixteen bytes, little-endian parts, and an age.
fn breakpad_id(build_id: &str) -> String {
    let digits: String =
        build_id.chars().filter(char::is_ascii_hexdigit).chain("0".repeat(32).chars()).take(32).collect();
    let swapped = |part: &str| {
        let pairs: Vec<String> =
            part.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned()).collect();
        pairs.into_iter().rev().collect::<String>()
    };
    let parts =
        [swapped(&digits[..8]), swapped(&digits[8..12]), swapped(&digits[12..16]), digits[16..].to_owned()];
    format!("{}0", parts.concat().to_uppercase())
}

/// The columns of one thread's tables, in the making.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_at: HashMap<String, usize>,
    resources: Vec<(usize, usize)>,
    resource_of: HashMap<u32, usize>,
    /// Name, resource, file.
    functions: Vec<(usize, Option<usize>, Option<usize>)>,
    function_at: HashMap<(usize, Option<usize>, Option<usize>), usize>,
    /// Function, category, address, line, inline depth.
    frames: Vec<(usize, usize, i64, Option<u32>, u32)>,
    frame_at: HashMap<(Option<u32>, usize), usize>,
    /// The stack under it and its frame.
    stacks: Vec<(Option<usize>, usize)>,
    stack_at: HashMap<(Option<usize>, usize), usize>,
}

impl Tables {
    fn string(&mut self, text: &str) -> usize {
        if let Some(&at) = self.string_at.get(text) {
            return at;
        }
        self.strings.push(text.to_owned());
        self.string_at.insert(text.to_owned(), self.strings.len() - 1);
        self.strings.len() - 1
    }

    fn function(&mut self, name: &str, module: Option<(u32, &str)>, file: Option<&str>) -> usize {
        let name = self.string(name);
        let resource = module.map(|(lib, path)| self.resource(lib, path));
        let file = file.map(|file| self.string(file));
        let row = (name, resource, file);
        let next = self.functions.len();
        let functions = &mut self.functions;
        *self.function_at.entry(row).or_insert_with(|| {
            functions.push(row);
            next
        })
    }

    fn resource(&mut self, lib: u32, path: &str) -> usize {
        if let Some(&at) = self.resource_of.get(&lib) {
            return at;
        }
        let name = self.string(name::file_name(path));
        self.resources.push((lib as usize, name));
        self.resource_of.insert(lib, self.resources.len() - 1);
        self.resources.len() - 1
    }

    /// A frame of the record; `depth` counts how far it was folded into its caller.
    fn frame(&mut self, profile: &Profile, at: u32, depth: u32) -> usize {
        if let Some(&known) = self.frame_at.get(&(Some(at), depth as usize)) {
            return known;
        }
        let frame = &profile.frames[at as usize];
        let module = frame.module.and_then(|at| Some((at, profile.modules.get(at as usize)?.path.as_str())));
        let function = self.function(&name::of_frame(profile, frame), module, frame.file.as_deref());
        let row = (function, category(frame), address(frame), frame.line, depth);
        self.frames.push(row);
        self.frame_at.insert((Some(at), depth as usize), self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// A frame that is no code.
    fn mark(&mut self, text: &str) -> usize {
        let function = self.function(text, None, None);
        let next = self.frames.len();
        let frames = &mut self.frames;
        *self.frame_at.entry((None, function)).or_insert_with(|| {
            frames.push((function, WAITING, -1, None, 0));
            next
        })
    }

    fn stack(&mut self, under: Option<usize>, frame: usize) -> usize {
        let next = self.stacks.len();
        let stacks = &mut self.stacks;
        *self.stack_at.entry((under, frame)).or_insert_with(|| {
            stacks.push((under, frame));
            next
        })
    }

    /// A whole stack of the record; none when it has no frame.
    fn record(&mut self, profile: &Profile, stack: &Stack) -> Option<usize> {
        let (mut under, mut depth) = (None, 0);
        for &at in &stack.frames {
            depth = if profile.frames[at as usize].inlined { depth + 1 } else { 0 };
            let frame = self.frame(profile, at, depth);
            under = Some(self.stack(under, frame));
        }
        if let Some(mark) = wait_mark(stack) {
            let frame = self.mark(&mark);
            under = Some(self.stack(under, frame));
        }
        under
    }
}

fn category(frame: &Frame) -> usize {
    match frame.origin {
        Origin::User => USER,
        Origin::Kernel => KERNEL,
        Origin::Mark => OTHER,
    }
}

/// Addresses are relative to a file, and −1 without one.
fn address(frame: &Frame) -> i64 {
    let known = frame.module.and_then(|_| i64::try_from(frame.address).ok());
    known.filter(|_| frame.origin == Origin::User).unwrap_or(-1)
}

fn thread_json(profile: &Profile, thread: u32, stacks: &[&Stack]) -> Value {
    let of = &profile.threads[thread as usize];
    let mut tables = Tables::default();
    let rows: Vec<Option<usize>> = stacks.iter().map(|stack| tables.record(profile, stack)).collect();
    let stretches = stretches(profile, stacks, NS_PER_MS);
    let whole_ms = stretches.last().map_or(0.0, |last| last.from + last.weight);
    json!({
        "name": of.name,
        "isMainThread": of.pid == of.tid,
        "pid": of.pid.to_string(),
        "tid": of.tid,
        "processName": title(profile),
        "processType": "default",
        "processStartupTime": 0.0,
        "processShutdownTime": whole_ms,
        "registerTime": 0.0,
        "unregisterTime": whole_ms,
        "pausedRanges": [],
        "showMarkersInTimeline": false,
        "markers": empty(&["category", "data", "endTime", "name", "phase", "startTime"]),
        "samples": samples(profile, &stretches, &rows),
        "stackTable": {
            "length": tables.stacks.len(),
            "prefix": column(&tables.stacks, |row| row.0),
            "frame": column(&tables.stacks, |row| row.1),
        },
        "frameTable": frame_table(&tables),
        "funcTable": func_table(&tables),
        "resourceTable": {
            "length": tables.resources.len(),
            "lib": column(&tables.resources, |row| row.0),
            "name": column(&tables.resources, |row| row.1),
            "host": column(&tables.resources, |_| Value::Null),
            "type": column(&tables.resources, |_| 1),
        },
        "nativeSymbols": empty(&["address", "functionSize", "libIndex", "name"]),
        "stringArray": tables.strings,
    })
}

/// A sample of unknown length is a millisecond on the axis.
fn samples(profile: &Profile, stretches: &[Stretch], rows: &[Option<usize>]) -> Value {
    let kind = match profile.unit {
        Unit::Nanoseconds => "tracing-ms",
        Unit::Samples => "samples",
    };
    let before = std::iter::once(None).chain(stretches.iter().map(Some));
    let deltas: Vec<f64> = stretches
        .iter()
        .zip(before.clone())
        .map(|(stretch, before)| stretch.from - before.map_or(0.0, |before| before.from))
        .collect();
    // CPU time since the sample before: that one's, and off the CPU none of it.
    let used = |before: Option<&Stretch>| match (profile.kind, before) {
        (Kind::OnCpu, Some(before)) => (before.weight * 1e3).round(),
        _ => 0.0,
    };
    json!({
        "length": stretches.len(),
        "stack": column(stretches, |stretch| rows[stretch.stack]),
        "timeDeltas": deltas,
        "weight": column(stretches, |stretch| stretch.weight),
        "weightType": kind,
        "threadCPUDelta": before.take(stretches.len()).map(used).collect::<Vec<f64>>(),
    })
}

fn frame_table(tables: &Tables) -> Value {
    let frames = &tables.frames;
    json!({
        "length": frames.len(),
        "address": column(frames, |row| row.2),
        "inlineDepth": column(frames, |row| row.4),
        "category": column(frames, |row| row.1),
        "subcategory": column(frames, |_| 0),
        "func": column(frames, |row| row.0),
        "nativeSymbol": column(frames, |_| Value::Null),
        "innerWindowID": column(frames, |_| 0),
        "line": column(frames, |row| row.3),
        "column": column(frames, |_| Value::Null),
    })
}

fn func_table(tables: &Tables) -> Value {
    let functions = &tables.functions;
    // −1 is the format's "no resource".
    let resource = |at: Option<usize>| at.map_or(-1, |at| i64::try_from(at).unwrap_or(-1));
    json!({
        "length": functions.len(),
        "name": column(functions, |row| row.0),
        "isJS": column(functions, |_| false),
        "relevantForJS": column(functions, |_| false),
        "resource": column(functions, |row| resource(row.1)),
        "fileName": column(functions, |row| row.2),
        "lineNumber": column(functions, |_| Value::Null),
        "columnNumber": column(functions, |_| Value::Null),
    })
}

fn column<R, V: Into<Value>>(rows: &[R], cell: impl Fn(&R) -> V) -> Vec<Value> {
    rows.iter().map(|row| cell(row).into()).collect()
}

/// A table without rows.
fn empty(columns: &[&str]) -> Value {
    let mut table = json!({ "length": 0 });
    columns.iter().for_each(|column| table[*column] = json!([]));
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree::tests::{small, timed, waiting};

    fn read(profile: &Profile) -> Value {
        serde_json::from_slice(&bytes(profile)).unwrap()
    }

    fn at(table: &Value, column: &str, row: &Value) -> Value {
        table[column][row.as_u64().unwrap() as usize].clone()
    }

    /// Each sample's names from the root, and its weight.
    fn samples_of(thread: &Value) -> Vec<(Vec<Value>, f64)> {
        let names = |mut stack: Value| {
            let mut names = Vec::new();
            while !stack.is_null() {
                let frame = at(&thread["stackTable"], "frame", &stack);
                let function = at(&thread["frameTable"], "func", &frame);
                let name = at(&thread["funcTable"], "name", &function);
                names.push(at(thread, "stringArray", &name));
                stack = at(&thread["stackTable"], "prefix", &stack);
            }
            names.reverse();
            names
        };
        let samples = &thread["samples"];
        let stacks = samples["stack"].as_array().unwrap();
        let weights = samples["weight"].as_array().unwrap();
        stacks
            .iter()
            .cloned()
            .zip(weights)
            .map(|(stack, weight)| (names(stack), weight.as_f64().unwrap()))
            .collect()
    }

    #[test]
    fn every_stack_is_found_again_through_the_tables() {
        let file = read(&small());
        let wanted =
            |names: &[&str], weight: f64| (names.iter().map(|name| json!(name)).collect::<Vec<_>>(), weight);
        assert_eq!(
            samples_of(&file["threads"][0]),
            [
                wanted(&["main", "work"], 0.0006),
                wanted(&["main", "work", "sys_read"], 0.0003),
                wanted(&["main", "idle"], 0.0001)
            ]
        );
    }

    #[test]
    fn samples_stand_where_they_fell() {
        let file = read(&timed());
        let samples = &file["threads"][0]["samples"];
        let numbers = |column: &str| -> Vec<u64> {
            samples[column]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| (n.as_f64().unwrap() * 1e6).round() as u64)
                .collect()
        };
        // Fifty of one stack, fifty of the other, nothing until the third tenth, fifty again.
        assert_eq!(numbers("timeDeltas"), [0, 50, 150]);
        assert_eq!(numbers("weight"), [50, 50, 50]);
        let product = |file: &Value| file["meta"]["product"].as_str().unwrap().to_owned();
        assert!(
            !product(&file).contains("side by side") && product(&read(&small())).contains("side by side")
        );
    }

    #[test]
    fn all_columns_of_a_table_are_of_its_length() {
        for profile in [waiting(), timed()] {
            let file = read(&profile);
            let thread = &file["threads"][0];
            for table in [
                "samples",
                "stackTable",
                "frameTable",
                "funcTable",
                "resourceTable",
                "markers",
                "nativeSymbols",
            ] {
                let length = thread[table]["length"].as_u64().unwrap() as usize;
                for (name, column) in thread[table].as_object().unwrap() {
                    assert!(column.as_array().is_none_or(|rows| rows.len() == length), "{table}.{name}");
                }
            }
        }
        let file = read(&waiting());
        let thread = &file["threads"][0];
        assert!(samples_of(thread)[0].0.contains(&json!("[waits: lock]")));
    }

    #[test]
    fn a_build_id_is_turned_into_the_form_of_symbol_servers() {
        let id = breakpad_id("0123456789abcdef0123456789abcdef01234567");
        assert_eq!(id, "67452301AB89EFCD0123456789ABCDEF0");
        assert_eq!(breakpad_id("").len(), 33);
    }
}
