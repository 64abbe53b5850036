//! What a worker serves of folders: every file by its name, each in the codings that it is kept in, with its header lines
//! ready. Nothing in here is made, asked of the kernel or changed while requests are answered.
//!
//! `content` fills tables and puts a new one in an old one's place; it and `http1` read them. A table is never changed:
//! what replies still use of one that was replaced lives as long as they do.

use crate::file::{FilePart, Kind};
use crate::shared::Shared;
use dyno_proto::http1::encode;
use dyno_proto::semantics::coding::Coding;
use dyno_proto::{date, file_path};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a tag between its quotes: 32 digits of a digest, or two times of at most 25 digits and a length of 16.
pub(crate) const TAG_BYTES_MAX: usize = 68;

/// A folder in the space of paths.
#[derive(Debug)]
pub(crate) struct Site {
    /// What its paths begin with, decoded and without the first slash: nothing, or some names each with a slash.
    pub(crate) prefix: Box<[u8]>,
    /// The greatest `?maxage=` that is taken.
    pub(crate) maxage_max_s: u32,
    /// The coding that every client gets where a file is kept in it.
    pub(crate) forced: Option<Coding>,
    /// Where the prefix leads to when it is asked for without its slash.
    pub(crate) home: Entry,
    pub(crate) table: Arc<Table>,
}

impl Site {
    /// An empty one; `prefix` as it is kept.
    pub(crate) fn new(prefix: &[u8], maxage_max_s: u32, forced: Option<Coding>) -> Site {
        debug_assert!(prefix.is_empty() || prefix.ends_with(b"/"), "a prefix ends a name");
        let home = Entry::Moved(location(prefix));
        Site { prefix: prefix.into(), maxage_max_s, forced, home, table: Arc::default() }
    }

    /// Whether a decoded path is this site's: below its prefix, or the prefix without its slash.
    pub(crate) fn holds(&self, path: &[u8]) -> bool {
        path.starts_with(&self.prefix) || self.prefix.strip_suffix(b"/") == Some(path)
    }
}

/// Names and what stands under them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: HashMap<Box<[u8]>, Entry, BuildHasherDefault<NameHasher>>,
    variants: Vec<Variant>,
}

/// What stands under a name.
#[derive(Debug)]
pub(crate) enum Entry {
    File(Resource),
    /// A folder asked for without its slash: where it is, as a Location field has it.
    Moved(Box<[u8]>),
}

/// A file: its variants, and when it was modified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource {
    first: u32,
    count: u32,
    pub(crate) modified_s: u64,
}

/// A file in one coding.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) coding: Coding,
    pub(crate) body: Stored,
    /// The header lines, in an order in which every kind of reply takes a stretch of them: media type; coding and ranges;
    /// validators; length.
    lines: Box<[u8]>,
    type_end: u32,
    validators_start: u32,
    length_start: u32,
}

/// Where a variant's bytes are.
#[derive(Debug)]
pub(crate) enum Stored {
    Memory(Shared),
    File(FilePart),
}

/// What a variant's header lines say.
pub(crate) struct Told<'t> {
    pub(crate) media: &'t str,
    pub(crate) coding: Coding,
    /// Without quotes.
    pub(crate) tag: &'t str,
    pub(crate) modified_s: u64,
    pub(crate) varies: Varies,
}

/// Whether the reply depends on what the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Varies {
    Yes,
    No,
}

impl Table {
    /// How many descriptors its files hold open.
    pub(crate) fn descriptors(&self) -> usize {
        let own = |variant: &&Variant| matches!(&variant.body, Stored::File(file) if matches!(file.kind(), Kind::Open(_)));
        self.variants.iter().filter(own).count()
    }

    /// What stands under a name: decoded, below the site's prefix.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Entry> {
        self.names.get(name)
    }

    /// Every file by the name that it has itself.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&[u8], Resource)> {
        let files = self.names.iter().filter_map(|(name, entry)| match entry {
            Entry::File(file) => Some((&**name, *file)),
            Entry::Moved(_) => None,
        });
        // Folders are other names of their index.
        files.filter(|(name, _)| !name.is_empty() && !name.ends_with(b"/"))
    }

    /// The variants of a file with their numbers, the one that is preferred among equals first.
    pub(crate) fn variants(&self, of: Resource) -> impl Iterator<Item = (u32, &Variant)> + Clone {
        (of.first..of.first + of.count).map(|number| (number, self.variant(number)))
    }

    /// A variant by its number.
    pub(crate) fn variant(&self, number: u32) -> &Variant {
        &self.variants[number as usize]
    }

    /// Adds a file, whose variants are given by size, the smallest first. The later one of two under a name counts.
    pub(crate) fn add(&mut self, name: &[u8], modified_s: u64, variants: Vec<Variant>) {
        debug_assert!(!variants.is_empty(), "a file has at least one form");
        let first = u32::try_from(self.variants.len()).expect("names are bounded far below");
        let count = variants.len() as u32;
        self.variants.extend(variants);
        self.names.insert(name.into(), Entry::File(Resource { first, count, modified_s }));
    }

    /// Adds another name for a file that is there.
    pub(crate) fn add_name(&mut self, name: &[u8], of: &[u8]) {
        if let Some(Entry::File(file)) = self.names.get(of) {
            let file = *file;
            self.names.insert(name.into(), Entry::File(file));
        }
    }

    /// Leads from the name of a folder to the folder; `prefix` is its site's.
    pub(crate) fn add_moved(&mut self, folder: &[u8], prefix: &[u8]) {
        let location = location(&[prefix, folder, b"/"].concat());
        self.names.insert(folder.into(), Entry::Moved(location));
    }
}

impl Variant {
    pub(crate) fn new(told: &Told<'_>, body: Stored) -> Variant {
        debug_assert!(told.tag.len() <= TAG_BYTES_MAX, "a short tag: {}", told.tag);
        let mut lines = Vec::new();
        line(&mut lines, "Content-Type", told.media.as_bytes());
        let type_end = lines.len() as u32;
        if told.coding != Coding::Identity {
            line(&mut lines, "Content-Encoding", told.coding.name().as_bytes());
        }
        line(&mut lines, "Accept-Ranges", b"bytes");
        let validators_start = lines.len() as u32;
        line(&mut lines, "ETag", format!("\"{}\"", told.tag).as_bytes());
        line(&mut lines, "Last-Modified", &date::imf_fixdate(told.modified_s));
        if told.varies == Varies::Yes {
            line(&mut lines, "Vary", b"Accept-Encoding");
        }
        let length_start = lines.len() as u32;
        encode::content_length(&mut lines, body.bytes());
        Variant { coding: told.coding, body, lines: lines.into(), type_end, validators_start, length_start }
    }

    fn stretch(&self, range: Range<u32>) -> &[u8] {
        &self.lines[range.start as usize..range.end as usize]
    }

    /// All lines: of a reply with the whole.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The lines of a reply with one part: all but the length.
    pub(crate) fn lines_of_part(&self) -> &[u8] {
        self.stretch(0..self.length_start)
    }

    /// The lines of a reply with several parts: neither the length nor the media type, which each part has.
    pub(crate) fn lines_of_parts(&self) -> &[u8] {
        self.stretch(self.type_end..self.length_start)
    }

    /// The line with the media type.
    pub(crate) fn type_line(&self) -> &[u8] {
        self.stretch(0..self.type_end)
    }

    /// The line with the length.
    pub(crate) fn length_line(&self) -> &[u8] {
        self.stretch(self.length_start..self.lines.len() as u32)
    }

    /// The lines of a 304 (RFC 9110 §15.4.5).
    pub(crate) fn validators(&self) -> &[u8] {
        self.stretch(self.validators_start..self.length_start)
    }

    /// The entity tag with its quotes. It is strong.
    pub(crate) fn tag(&self) -> &[u8] {
        let line = &self.validators()[b"ETag: ".len()..];
        let end = line.iter().position(|&byte| byte == b'\r').unwrap_or(line.len());
        &line[..end]
    }
}

impl Stored {
    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Stored::Memory(bytes) => bytes.len() as u64,
            Stored::File(file) => file.len(),
        }
    }
}

/// A decoded path as a Location field has it.
fn location(path: &[u8]) -> Box<[u8]> {
    let mut location = Vec::new();
    file_path::encode(path, &mut location);
    debug_assert!(!location.starts_with(b"//"), "a location is a path here, and no other host's name");
    location.into()
}

fn line(lines: &mut Vec<u8>, name: &str, value: &[u8]) {
    encode::header(lines, name.as_bytes(), value)
        .expect("what is told is printable: tags, dates, media types");
}

/// Hashes names eight bytes at a time. It need not resist an attacker: the names in a table are the operator's, and
/// whoever asks for others only misses.
#[derive(Debug, Default)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        // The multiplier of Knuth's multiplicative hashing: 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mix = |word: u64| self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }

    /// The map takes its groups from the upper bits and its buckets from the lower: both must depend on every byte.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn variant(varies: Varies, coding: Coding) -> Variant {
        let told = Told { media: "text/css", coding, tag: "abc", modified_s: 784_111_777, varies };
        Variant::new(&told, Stored::Memory(Shared::from("12345")))
    }

    fn text(bytes: &[u8]) -> &str {
        str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_reply_takes_its_stretch_of_the_lines() {
        let variant = variant(Varies::Yes, Coding::Gzip);
        let dated = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        let (media, middle, end) = (
            "Content-Type: text/css\r\n",
            "Content-Encoding: gzip\r\nAccept-Ranges: bytes\r\n",
            "Content-Length: 5\r\n",
        );
        let validators = format!("ETag: \"abc\"\r\n{dated}Vary: Accept-Encoding\r\n");
        assert_eq!(text(variant.lines()), [media, middle, &validators, end].concat());
        assert_eq!(text(variant.lines_of_part()), [media, middle, &validators].concat());
        assert_eq!(text(variant.lines_of_parts()), [middle, &validators].concat());
        assert_eq!(text(variant.validators()), validators);
        assert_eq!((text(variant.type_line()), text(variant.tag())), (media, "\"abc\""));
    }

    #[test]
    fn what_does_not_vary_says_nothing_of_it() {
        let plain = variant(Varies::No, Coding::Identity);
        let lines = text(plain.lines());
        assert!(!lines.contains("Vary") && !lines.contains("Content-Encoding"), "{lines}");
    }

    #[test]
    fn names_are_found_and_folders_lead_on() {
        let mut table = Table::default();
        table.add(b"docs/index.html", 1, vec![variant(Varies::No, Coding::Identity)]);
        table.add_name(b"docs/", b"docs/index.html");
        table.add_name(b"no/", b"no/index.html");
        table.add_moved("do cs\u{e9}".as_bytes(), b"static/");
        let Some(Entry::File(file)) = table.find(b"docs/") else { panic!("a file") };
        assert_eq!(table.variants(*file).count(), 1);
        let Some(Entry::Moved(location)) = table.find("do cs\u{e9}".as_bytes()) else { panic!("a folder") };
        assert_eq!(text(location), "/static/do%20cs%C3%A9/");
        assert!(table.find(b"no/").is_none() && table.find(b"docs").is_none());
    }

    /// A hash that put similar names together would make a lookup slow.
    #[test]
    fn similar_names_have_different_hashes() {
        let hash = |name: &str| {
            let mut hasher = NameHasher::default();
            hasher.write(name.as_bytes());
            hasher.finish()
        };
        let names = (0..100_000).map(|number| format!("images/photo-{number}.jpg"));
        let all: std::collections::HashSet<u64> = names.map(|name| hash(&name) & 0xf_ffff).collect();
        // Of 100,000 in 1,048,576 places chance puts about 95,000 into places of their own.
        assert!(all.len() > 93_000, "{} places", all.len());
        assert_ne!(hash("a"), hash("a\0"));
    }
}
