//! pprof's `profile.proto`, gzipped, as `go tool pprof` and others read it.
//!
//! A sample holds a count and a time; thread, wait and what was waited for are labels. The message is written field by
//! field (Protocol Buffers encoding: a varint of number and wire type, then the value): seven small messages need no
//! code generator.

use std::collections::HashMap;
use std::io::Write;

use dyno_record::profile::{Frame, Kind, Module, Profile, Stack, Unit};
use flate2::Compression;
use flate2::write::GzEncoder;

use dyno_record::name;

/// The file.
pub fn bytes(profile: &Profile) -> Vec<u8> {
    let message = message(profile);
    let mut zip = GzEncoder::new(Vec::new(), Compression::default());
    zip.write_all(&message).expect("a Vec takes all");
    zip.finish().expect("a Vec takes all")
}

/// The strings that messages point at; the first is empty by the format's rule.
struct Strings {
    known: HashMap<String, u64>,
    all: Vec<String>,
}

impl Strings {
    fn new() -> Strings {
        Strings { known: HashMap::from([(String::new(), 0)]), all: vec![String::new()] }
    }

    fn at(&mut self, text: &str) -> u64 {
        if let Some(&at) = self.known.get(text) {
            return at;
        }
        let at = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), at);
        at
    }
}

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; zero is what a reader takes an absent one for.
    fn number(mut self, field: u64, value: u64) -> Message {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(mut self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0);
        self
    }

    /// Numbers one after the other under one head.
    fn packed(self, field: u64, values: impl IntoIterator<Item = u64>) -> Message {
        let mut inner = Message::default();
        values.into_iter().for_each(|value| inner.varint(value));
        self.message(field, &inner)
    }
}

fn message(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings::new();
    let mut out = Message::default();
    for kind in sample_types(profile, &mut strings) {
        out.bytes(1, &kind.0);
    }
    for stack in &profile.stacks {
        out.bytes(2, &sample(profile, stack, &mut strings).0);
    }
    for (at, (module, inside)) in profile.modules.iter().zip(inside(profile)).enumerate() {
        out.bytes(3, &mapping(at, module, inside, &mut strings).0);
    }
    for (at, frame) in profile.frames.iter().enumerate() {
        out.bytes(4, &location(at, frame).0);
        out.bytes(5, &function(profile, at, frame, &mut strings).0);
    }
    let mut out = described(profile, out, &mut strings);
    for text in &strings.all {
        out.bytes(6, text.as_bytes());
    }
    out.0
}

/// What each of a sample's two values counts.
fn sample_types(profile: &Profile, strings: &mut Strings) -> Vec<Message> {
    let (count, time) = match profile.kind {
        Kind::OnCpu => ("samples", "cpu"),
        Kind::OffCpu => ("waits", "off_cpu"),
    };
    let mut kinds = vec![value_type(count, "count", strings)];
    kinds.extend((profile.unit == Unit::Nanoseconds).then(|| value_type(time, "nanoseconds", strings)));
    kinds
}

fn value_type(kind: &str, unit: &str, strings: &mut Strings) -> Message {
    Message::default().number(1, strings.at(kind)).number(2, strings.at(unit))
}

fn sample(profile: &Profile, stack: &Stack, strings: &mut Strings) -> Message {
    // The leaf stands first; numbers of locations begin with one.
    let locations = stack.frames.iter().rev().map(|&frame| u64::from(frame) + 1);
    let values = match profile.unit {
        Unit::Nanoseconds => vec![stack.samples, stack.weight_ns],
        Unit::Samples => vec![stack.weight_ns],
    };
    let mut sample = Message::default().packed(1, locations).packed(2, values);
    if let Some(thread) = profile.threads.get(stack.thread as usize) {
        sample.bytes(3, &label("thread", &thread.name, strings).0);
        let tid = Message::default().number(1, strings.at("tid")).number(3, u64::from(thread.tid));
        sample.bytes(3, &tid.0);
    }
    if let Some(wait) = &stack.wait {
        sample.bytes(3, &label("wait", name::of_wait(wait.class), strings).0);
        let known = [("system_call", &wait.system_call), ("object", &wait.object)];
        for (key, text) in known {
            text.iter().for_each(|text| sample.bytes(3, &label(key, text, strings).0));
        }
    }
    sample
}

fn label(key: &str, text: &str, strings: &mut Strings) -> Message {
    Message::default().number(1, strings.at(key)).number(2, strings.at(text))
}

/// What is known of a file's frames.
#[derive(Debug, Clone, Copy, Default)]
struct Inside {
    last: u64,
    lines: bool,
    inlined: bool,
}

/// Of each module what its frames have.
fn inside(profile: &Profile) -> Vec<Inside> {
    let mut all = vec![Inside::default(); profile.modules.len()];
    for frame in &profile.frames {
        if let Some(inside) = frame.module.and_then(|module| all.get_mut(module as usize)) {
            inside.last = inside.last.max(frame.address);
            inside.lines |= frame.line.is_some();
            inside.inlined |= frame.inlined;
        }
    }
    all
}

/// A file; its addresses are those within it, so it is mapped from zero.
fn mapping(
    at: usize,
    module: &Module,
    Inside { last, lines, inlined }: Inside,
    strings: &mut Strings,
) -> Message {
    let id = module.build_id.as_deref().unwrap_or_default();
    Message::default()
        .number(1, at as u64 + 1)
        .number(3, last.saturating_add(1))
        .number(5, strings.at(&module.path))
        .number(6, strings.at(id))
        .number(7, 1)
        .number(8, u64::from(lines))
        .number(9, u64::from(lines))
        .number(10, u64::from(inlined))
}

fn location(at: usize, frame: &Frame) -> Message {
    let id = at as u64 + 1;
    let line = Message::default().number(1, id).number(2, frame.line.map_or(0, u64::from));
    let mapping = frame.module.map_or(0, |module| u64::from(module) + 1);
    Message::default().number(1, id).number(2, mapping).number(3, frame.address).message(4, &line)
}

fn function(profile: &Profile, at: usize, frame: &Frame, strings: &mut Strings) -> Message {
    let name = strings.at(&name::of_frame(profile, frame));
    let file = strings.at(frame.file.as_deref().unwrap_or_default());
    Message::default().number(1, at as u64 + 1).number(2, name).number(3, name).number(4, file)
}

/// When, how long, how often, and the command line.
fn described(profile: &Profile, out: Message, strings: &mut Strings) -> Message {
    const NS_PER_S: f64 = 1e9;
    let period =
        profile.sampling.frequency_hz.filter(|hz| *hz > 0.0).map(|hz| (NS_PER_S / hz).round() as u64);
    let mut comments = vec![strings.at(&profile.command.join(" "))];
    comments
        .extend(profile.requests.iter().map(|requests| strings.at(&format!("requests: {}", requests.count))));
    out.number(9, profile.started_unix_s.saturating_mul(1_000_000_000))
        .number(10, (profile.duration_s * NS_PER_S).max(0.0) as u64)
        .message(11, &value_type("cpu", "nanoseconds", strings))
        .number(12, period.unwrap_or(1))
        .packed(13, comments)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree::tests::{small, waiting};
    use std::io::Read;

    /// A field: its number, and its value or its bytes.
    type Field = (u64, u64, Vec<u8>);

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn fields(mut bytes: &[u8]) -> Vec<Field> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let head = varint(&mut bytes);
            let value = varint(&mut bytes);
            match head & 7 {
                0 => found.push((head >> 3, value, Vec::new())),
                2 => {
                    found.push((head >> 3, 0, bytes[..value as usize].to_vec()));
                    bytes = &bytes[value as usize..];
                }
                other => panic!("wire type {other}"),
            }
        }
        found
    }

    fn of(fields: &[Field], number: u64) -> Vec<Field> {
        fields.iter().filter(|field| field.0 == number).cloned().collect()
    }

    fn value(fields: &[Field], number: u64) -> u64 {
        of(fields, number).first().map_or(0, |field| field.1)
    }

    fn read(profile: &Profile) -> Vec<Field> {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes(profile)[..]).read_to_end(&mut plain).unwrap();
        fields(&plain)
    }

    /// Each sample as its names from the leaf, and its values.
    fn samples(file: &[Field]) -> Vec<(Vec<String>, Vec<u64>)> {
        let strings: Vec<String> =
            of(file, 6).into_iter().map(|field| String::from_utf8(field.2).unwrap()).collect();
        let function = |id: u64| {
            let all = of(file, 5);
            let found =
                all.iter().map(|field| fields(&field.2)).find(|fields| value(fields, 1) == id).unwrap();
            strings[value(&found, 2) as usize].clone()
        };
        let location = |id: u64| {
            let all = of(file, 4);
            let found =
                all.iter().map(|field| fields(&field.2)).find(|fields| value(fields, 1) == id).unwrap();
            function(value(&fields(&of(&found, 4)[0].2), 1))
        };
        let numbers = |bytes: &[u8]| {
            let (mut rest, mut found) = (bytes, Vec::new());
            while !rest.is_empty() {
                found.push(varint(&mut rest));
            }
            found
        };
        let sample = |field: Field| {
            let sample = fields(&field.2);
            let names = numbers(&of(&sample, 1)[0].2).into_iter().map(location).collect();
            (names, numbers(&of(&sample, 2)[0].2))
        };
        of(file, 2).into_iter().map(sample).collect()
    }

    #[test]
    fn every_stack_is_read_back_with_its_count_and_time() {
        let file = read(&small());
        let wanted = |names: &[&str], values: [u64; 2]| {
            (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), values.to_vec())
        };
        assert_eq!(
            samples(&file),
            [
                wanted(&["work", "main"], [60, 600]),
                wanted(&["sys_read", "work", "main"], [30, 300]),
                wanted(&["idle", "main"], [10, 100])
            ]
        );
    }

    #[test]
    fn the_first_string_is_empty_and_the_types_are_named() {
        let file = read(&waiting());
        let strings: Vec<Vec<u8>> = of(&file, 6).into_iter().map(|field| field.2).collect();
        assert!(strings[0].is_empty());
        let types: Vec<&[u8]> =
            of(&file, 1).iter().map(|field| &strings[value(&fields(&field.2), 1) as usize][..]).collect();
        assert_eq!(types, [b"waits".as_slice(), b"off_cpu"]);
        assert!(strings.contains(&b"lock".to_vec()), "the wait is a label");
    }

    #[test]
    fn numbers_of_any_size_survive() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut message = Message::default();
            message.varint(number);
            assert_eq!(varint(&mut &message.0[..]), number);
        }
    }
}
