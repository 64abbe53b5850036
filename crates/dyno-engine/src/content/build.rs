//! Makes images: reads each file once, finds or makes its encoded forms, and writes what has changed beside what has not
//! into a new image.
//!
//! `watch` calls it, in a thread or process that serves nobody. What an earlier image has is copied from there, so that a
//! change costs the looking, a copy, and the encoding of what is new.

use super::cache::{self, Cache, Kept, Sum};
use super::encode::{self, KEPT, SIBLINGS};
use super::error::ContentError;
use super::image::{Coded, Plain, Record, Span, Tagged, Writer};
use super::scan::{Scan, Seen, scan};
use super::settings::{Compress, Mount};
use crate::file::Facts;
use dyno_proto::file_path;
use dyno_proto::semantics::coding::Coding;
use dyno_sys::clock;
use dyno_sys::folder::Root;
use dyno_sys::memfd::Mapping;
use dyno_sys::resident::{self, Writers};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of files that are encoded before anything is served, or before a change is: a second or two at the slowest
/// encoder's half a megabyte per second and CPU. What is more is encoded while the files are served as they are.
pub(crate) const START_BYTES_MAX: u64 = 1 << 20;

/// Bytes of large files that are copied before anything is served, or before a change is: half a second from a slow disk.
/// The others are sent from where they are until they are copied.
const START_LARGE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of files that are encoded before it is looked again whether something has changed: the largest file that is
/// encoded, so that each step completes one at least. At the slowest encoder's speed that is twenty seconds of one CPU.
pub(crate) const STEP_BYTES_MAX: u64 = encode::BYTES_MAX;

/// A file that changes whenever it is read is left as it was, and looked at again.
const READS_MAX: usize = 3;

/// Longer than a tick of the kernel's clock, by which files are dated before Linux 6.13 (a hundredth of a second at most):
/// a file that was left alone for so long has another date when it changes again.
const TICK_NS: u64 = 20_000_000;

/// A large file that somebody has open for writing, or of which that is not known, is taken when it was left alone for so
/// long. A write is dated when it begins, and one that takes longer than this is not told from none.
const REST_NS: u64 = 1_000_000_000;

/// How often one build waits for a file to have been left alone: a second in all.
const WAITS_MAX: usize = 50;

/// Files above this are not read into memory as a whole, nor described by a digest.
const LARGE_BYTES_MIN: u64 = 1 << 20;

/// What is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Whole,
    /// Files that are being written, or were a moment ago, are to be looked at again.
    Unsettled,
    /// There is more to encode.
    More,
}

/// An image, and what is in it.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) image: File,
    pub(crate) files: usize,
    /// Files that could not be read.
    pub(crate) unread: usize,
}

/// Makes the images of one folder, one after the other.
pub(crate) struct Builder {
    pub(crate) mount: Mount,
    root: Root,
    cache: Option<Cache>,
    /// The files of the image before, and its bytes.
    known: HashMap<Vec<u8>, Known>,
    image: Option<Mapping>,
    seen: Vec<Seen>,
    progress: Progress,
    /// Whether a file is not as it is in the folder, since it was being written.
    is_behind: bool,
}

/// A file as the image before has it.
#[derive(Clone)]
struct Known {
    /// Its own, and those of the files that may hold encoded forms of it.
    facts: [Option<Facts>; 1 + SIBLINGS.len()],
    sum: Option<Sum>,
    record: Record,
    progress: Progress,
}

/// What a build has made.
struct Made {
    known: HashMap<Vec<u8>, Known>,
    image: File,
    is_behind: bool,
}

/// What came of taking a large file.
enum Taken {
    Content(Plain, Progress),
    /// It is being written.
    Moving,
    /// It is gone, not ours to read, or its disk fails.
    Unread,
}

/// What the threads of one build share.
struct Making<'b> {
    scan: &'b Scan,
    writer: Mutex<Writer>,
    /// Bytes that may still be encoded, and copied of large files.
    left: AtomicU64,
    large_left: AtomicU64,
    /// Forms in the image before, by what they encode.
    forms: HashMap<Sum, &'b Record>,
    /// How often it may still be waited for a file to be left alone.
    waits: AtomicUsize,
    is_behind: AtomicBool,
}

impl Builder {
    pub(crate) fn open(mount: Mount, uid: u32) -> Result<Builder, ContentError> {
        let refused = |source| ContentError::Folder { folder: mount.content.folder.clone(), source };
        let root = Root::open(&mount.content.folder).map_err(refused)?;
        let cache = match &mount.content.cache {
            Some(folder) => Some(
                Cache::open(folder, uid)
                    .map_err(|source| ContentError::Cache { folder: folder.clone(), source })?,
            ),
            None => None,
        };
        let (known, image, seen) = (HashMap::new(), None, Vec::new());
        Ok(Builder { mount, root, cache, known, image, seen, progress: Progress::More, is_behind: false })
    }

    /// What the folder has now. Its name may have come to mean another one.
    pub(crate) fn scan(&mut self) -> io::Result<Scan> {
        self.root = Root::open(&self.mount.content.folder)?;
        scan(&self.root)
    }

    /// Where a folder below the root is, for who watches it.
    pub(crate) fn with_folder<T>(&self, path: &[u8], then: impl FnOnce(&Path) -> T) -> io::Result<T> {
        let entry = self.root.entry(path)?;
        Ok(then(&entry.own_path()))
    }

    /// Whether everything is as it shall be.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether a file is not as it is in the folder, since it was being written.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// The image of what was seen, for which so many bytes may be encoded; `None` when it would be the one before.
    pub(crate) fn build(&mut self, scan: &Scan, encode_bytes_max: u64) -> io::Result<Option<Built>> {
        if self.image.is_some() && self.progress == Progress::Whole && self.seen == scan.files {
            return Ok(None);
        }
        let made = self.make(scan, encode_bytes_max)?;
        let encoded = made.known.values().map(|known| known.progress).max().unwrap_or(Progress::Whole);
        let settled = if made.is_behind { Progress::Unsettled } else { Progress::Whole };
        (self.progress, self.is_behind) = (encoded.max(settled), made.is_behind);
        self.image = Some(Mapping::of_sealed(&made.image)?);
        (self.known, self.seen) = (made.known, scan.files.clone());
        let files = self.known.len();
        Ok(Some(Built { image: made.image, files, unread: scan.files.len() - files }))
    }

    fn make(&self, scan: &Scan, encode_bytes_max: u64) -> io::Result<Made> {
        let making = self.making(scan, encode_bytes_max)?;
        let is_fresh = |seen: &Seen| !is_settled(&seen.facts, TICK_NS);
        if scan.files.iter().any(is_fresh) {
            // One wait for all that were just put there.
            clock::sleep_ns(TICK_NS);
        }
        let mut known = self.in_threads(&making)?;
        for seen in self.large(scan) {
            known.extend(self.large_file(seen, &making)?.map(|known| (seen.path.clone(), known)));
        }
        let mut records: Vec<Record> = known.values().map(|known| known.record.clone()).collect();
        records.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let is_behind = making.is_behind.into_inner();
        let writer = making.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Made { known, image: writer.finish(&records)?, is_behind })
    }

    fn making<'b>(&'b self, scan: &'b Scan, encode_bytes_max: u64) -> io::Result<Making<'b>> {
        // What was not tried for its media type would look like what was not worth it.
        let is_whole =
            |known: &&Known| known.progress == Progress::Whole && encode::is_worthwhile(&known.record.media);
        let forms =
            self.known.values().filter(is_whole).filter_map(|known| Some((known.sum?, &known.record)));
        let is_first = encode_bytes_max <= START_BYTES_MAX;
        Ok(Making {
            scan,
            writer: Mutex::new(Writer::new(self.mount.content.memory_bytes_max)?),
            left: AtomicU64::new(encode_bytes_max),
            large_left: AtomicU64::new(if is_first { START_LARGE_BYTES_MAX } else { u64::MAX }),
            forms: forms.collect(),
            waits: AtomicUsize::new(WAITS_MAX),
            is_behind: AtomicBool::new(false),
        })
    }

    /// Files that are not read into memory as a whole, the smallest first, so that as many as possible find room.
    fn large<'s>(&self, scan: &'s Scan) -> Vec<&'s Seen> {
        let mut large: Vec<&Seen> = scan.files.iter().filter(|seen| self.is_large(seen)).collect();
        large.sort_by_key(|seen| seen.facts.bytes);
        large
    }

    fn is_large(&self, seen: &Seen) -> bool {
        let is_encoded = encode::is_worthwhile(media(&seen.path)) && seen.facts.bytes <= encode::BYTES_MAX;
        seen.facts.bytes > LARGE_BYTES_MIN && !is_encoded
    }

    /// Every file, on every CPU.
    fn in_threads(&self, making: &Making<'_>) -> io::Result<HashMap<Vec<u8>, Known>> {
        let files = &making.scan.files;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            while let Some(seen) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.is_large(seen) {
                    continue;
                }
                made.extend(self.file(seen, making)?.map(|known| (seen.path.clone(), known)));
            }
            Ok::<_, io::Error>(made)
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len().max(1));
        if threads == 1 {
            return Ok(work()?.into_iter().collect());
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut all = HashMap::new();
            for thread in running {
                let made =
                    thread.join().map_err(|_| io::Error::other("a thread that reads files has panicked"))?;
                all.extend(made?);
            }
            Ok(all)
        })
    }

    /// One file; `None` when it is gone or cannot be read.
    fn file(&self, seen: &Seen, making: &Making<'_>) -> io::Result<Option<Known>> {
        let facts = making.facts(seen);
        if let Some(known) = self.known.get(&seen.path)
            && known.facts == facts
            && known.progress == Progress::Whole
            && let Some(record) = self.copied(&known.record, making)?
        {
            return Ok(Some(Known { record, ..known.clone() }));
        }
        let media = media(&seen.path);
        let read = match self.read(seen, making) {
            Ok(read) => read,
            Err(error) if is_denied(&error) => return Ok(None),
            // One file that its disk does not give must not keep all others from being served.
            Err(_) => None,
        };
        let Some((bytes, read)) = read else { return self.as_before(seen, making) };
        let sum = cache::sum(&bytes);
        let plain = making.add(&bytes, cache::tag(&sum))?.map_or(Plain::InFile(read), Plain::Here);
        let (coded, progress) = self.coded(seen, &bytes, &sum, making)?;
        let record = record(seen, with_charset(media, &bytes), plain, coded);
        Ok(Some(Known { facts, sum: Some(sum), record, progress }))
    }

    /// A large file: copied where there is room, so that nobody can change what is being sent; where there is none it stays
    /// where it is.
    fn large_file(&self, seen: &Seen, making: &Making<'_>) -> io::Result<Option<Known>> {
        let facts = making.facts(seen);
        let before = self.known.get(&seen.path).filter(|known| known.facts == facts);
        if let Some(known) = before
            && let Plain::Here(body) = &known.record.plain
            && let Some(body) = self.copy(body, making)?
        {
            let record = Record { plain: Plain::Here(body), ..known.record.clone() };
            return Ok(Some(Known { record, ..known.clone() }));
        }
        match self.taken(seen, making)? {
            Taken::Content(plain, progress) => {
                let record = record(seen, media(&seen.path).to_owned(), plain, Vec::new());
                Ok(Some(Known { facts, sum: None, record, progress }))
            }
            Taken::Moving => self.as_before(seen, making),
            Taken::Unread => Ok(None),
        }
    }

    /// The content of a file that is at rest. An error is the image's, not the file's.
    fn taken(&self, seen: &Seen, making: &Making<'_>) -> io::Result<Taken> {
        let opened = self.root.entry(&seen.path).and_then(|entry| entry.open());
        let Ok(file) = opened else { return Ok(Taken::Unread) };
        let Ok(facts) = making.left_alone(&file) else { return Ok(Taken::Unread) };
        let Some(facts) = facts.filter(|facts| !is_written(&file, facts)) else { return Ok(Taken::Moving) };
        let mut writer = making.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if !writer.has_room(facts.bytes) {
            return Ok(Taken::Content(Plain::InFile(facts), Progress::Whole));
        }
        if !take(&making.large_left, facts.bytes) {
            return Ok(Taken::Content(Plain::InFile(facts), Progress::More));
        }
        let taken = take_copy(&mut writer, &file, &facts)?;
        if !matches!(taken, Taken::Content(..)) {
            making.large_left.fetch_add(facts.bytes, Ordering::Relaxed);
        }
        Ok(taken)
    }

    /// A file that is being written is served as it was, if it was, and looked at again.
    fn as_before(&self, seen: &Seen, making: &Making<'_>) -> io::Result<Option<Known>> {
        making.is_behind.store(true, Ordering::Relaxed);
        let Some(known) = self.known.get(&seen.path) else { return Ok(None) };
        let Some(record) = self.copied(&known.record, making)? else { return Ok(None) };
        Ok(Some(Known { facts: Default::default(), record, ..known.clone() }))
    }

    /// What the image before has of a file, in this one; `None` when there is no room for it any more.
    fn copied(&self, record: &Record, making: &Making<'_>) -> io::Result<Option<Record>> {
        let plain = match &record.plain {
            Plain::Here(body) => match self.copy(body, making)? {
                Some(body) => Plain::Here(body),
                None => return Ok(None),
            },
            Plain::InFile(facts) => Plain::InFile(*facts),
        };
        let mut coded = Vec::new();
        for form in &record.coded {
            let body = self.copy(&form.body, making)?;
            coded.extend(body.map(|body| Coded { coding: form.coding.clone(), body }));
        }
        Ok(Some(Record { plain, coded, ..record.clone() }))
    }

    fn copy(&self, body: &Tagged, making: &Making<'_>) -> io::Result<Option<Tagged>> {
        making.add(self.bytes_of(body.span), body.tag.clone())
    }

    fn bytes_of(&self, span: Span) -> &[u8] {
        let image = self.image.as_ref().expect("what is known stands in an image");
        &image.as_ref()[span.range()]
    }

    /// A file's bytes, with what it was when they were read; `None` when it changes all the time.
    fn read(&self, seen: &Seen, making: &Making<'_>) -> io::Result<Option<(Vec<u8>, Facts)>> {
        let most = encode::BYTES_MAX.max(LARGE_BYTES_MIN);
        let mut bytes = Vec::new();
        for _ in 0..READS_MAX {
            bytes.clear();
            let file = self.root.entry(&seen.path)?.open()?;
            let Some(before) = making.left_alone(&file)? else { continue };
            (&file).take(most).read_to_end(&mut bytes)?;
            let is_same = before.still_hold(&Facts::of(&file.metadata()?));
            if is_same && before.bytes == bytes.len() as u64 {
                return Ok(Some((bytes, before)));
            }
        }
        Ok(None)
    }

    /// The encoded forms of a file, the smallest effort first: a file that holds one, the image before, the cache.
    fn coded(
        &self,
        seen: &Seen,
        plain: &[u8],
        sum: &Sum,
        making: &Making<'_>,
    ) -> io::Result<(Vec<Coded>, Progress)> {
        let (mut coded, mut progress) = (Vec::new(), Progress::Whole);
        // Asked once: a file of which some codings are made and some are not would be made anew with the next step.
        let mut may = None;
        let mut may_encode = || *may.get_or_insert_with(|| making.may_encode(plain.len()));
        for coding in KEPT {
            let form = match self.sibling(seen, coding, plain, making) {
                Some(form) => Some(form),
                None if !encode::is_made(coding) || !self.is_encoded(seen, plain) => None,
                None => match self.kept(coding, sum, making) {
                    Kept::Form(form) => Some(form),
                    Kept::NotWorthwhile => None,
                    Kept::Nothing if may_encode() => self.encoded(coding, plain, sum)?,
                    Kept::Nothing => {
                        progress = Progress::More;
                        None
                    }
                },
            };
            let Some(form) = form else { continue };
            let body = making.add(&form, cache::tag(&cache::sum(&form)))?;
            coded.extend(body.map(|body| Coded { coding: coding.name().to_owned(), body }));
        }
        Ok((coded, progress))
    }

    fn is_encoded(&self, seen: &Seen, plain: &[u8]) -> bool {
        self.mount.content.compress == Compress::Yes
            && plain.len() as u64 >= encode::BYTES_MIN
            && encode::is_worthwhile(media(&seen.path))
    }

    /// A file beside this one that holds it in a coding: believed only if it holds exactly that.
    fn sibling(&self, seen: &Seen, coding: Coding, plain: &[u8], making: &Making<'_>) -> Option<Vec<u8>> {
        let (_, ending) = SIBLINGS.iter().find(|(of, _)| *of == coding)?;
        let sibling = making.seen(&[&seen.path, *ending].concat())?;
        if sibling.facts.bytes >= plain.len() as u64 {
            return None;
        }
        let (form, _) = self.read(sibling, making).ok()??;
        encode::encodes(coding, &form, plain).then_some(form)
    }

    /// A form that was made before.
    fn kept(&self, coding: Coding, sum: &Sum, making: &Making<'_>) -> Kept {
        if let Some(record) = making.forms.get(sum) {
            let found = record.coded.iter().find(|form| form.coding() == Some(coding));
            return found
                .map_or(Kept::NotWorthwhile, |form| Kept::Form(self.bytes_of(form.body.span).to_vec()));
        }
        self.cache.as_ref().map_or(Kept::Nothing, |cache| cache.get(sum, coding))
    }

    fn encoded(&self, coding: Coding, plain: &[u8], sum: &Sum) -> io::Result<Option<Vec<u8>>> {
        let form = match encode::encode(coding, plain) {
            Ok(form) => encode::is_smaller(form.len(), plain.len()).then_some(form),
            // A file that this coding is not for.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            Err(error) => return Err(error),
        };
        if let Some(cache) = &self.cache {
            cache.put(sum, coding, form.as_deref());
        }
        Ok(form)
    }
}

impl Making<'_> {
    /// What a file is that was not written to for a tick, so that it has another date when it changes again; `None` for one
    /// that was.
    fn left_alone(&self, file: &File) -> io::Result<Option<Facts>> {
        let facts = Facts::of(&file.metadata()?);
        if is_settled(&facts, TICK_NS) {
            return Ok(Some(facts));
        }
        let take = |left: usize| left.checked_sub(1);
        if self.waits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Ok(None);
        }
        clock::sleep_ns(TICK_NS);
        let is_same = facts.still_hold(&Facts::of(&file.metadata()?));
        Ok(is_same.then_some(facts))
    }

    fn seen(&self, path: &[u8]) -> Option<&Seen> {
        let files = &self.scan.files;
        files.binary_search_by(|seen| seen.path.as_slice().cmp(path)).ok().map(|at| &files[at])
    }

    fn facts(&self, seen: &Seen) -> [Option<Facts>; 1 + SIBLINGS.len()] {
        let beside = |ending: &[u8]| Some(self.seen(&[&seen.path, ending].concat())?.facts);
        [Some(seen.facts), beside(SIBLINGS[0].1), beside(SIBLINGS[1].1), beside(SIBLINGS[2].1)]
    }

    fn add(&self, bytes: &[u8], tag: String) -> io::Result<Option<Tagged>> {
        let span = self.writer.lock().unwrap_or_else(PoisonError::into_inner).add(bytes)?;
        Ok(span.map(|span| Tagged { tag, span }))
    }

    fn may_encode(&self, bytes: usize) -> bool {
        take(&self.left, bytes as u64)
    }
}

/// Whether there were so many left, which there are no more.
fn take(left: &AtomicU64, bytes: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

/// Copies a file that was so when it was opened.
fn take_copy(writer: &mut Writer, file: &File, facts: &Facts) -> io::Result<Taken> {
    let span = writer.add_file(file, facts.bytes)?;
    // Who has written meanwhile has changed its date, unless it is still at its first write.
    let is_same =
        !is_written(file, facts) && file.metadata().is_ok_and(|now| facts.still_hold(&Facts::of(&now)));
    match span {
        Some(span) if is_same => {
            Ok(Taken::Content(Plain::Here(Tagged { tag: facts.tag(), span }), Progress::Whole))
        }
        Some(span) => {
            writer.take_back(span)?;
            Ok(Taken::Moving)
        }
        // It is as long as it was, and its bytes do not come.
        None if is_same => Ok(Taken::Unread),
        None => Ok(Taken::Moving),
    }
}

/// Whether somebody may be writing to a file.
fn is_written(file: &File, facts: &Facts) -> bool {
    resident::writers(file) != Writers::None && !is_settled(facts, REST_NS)
}

/// Whether a file is gone, or not ours to read: another look would see the same.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Whether nothing of a file has changed for so long.
fn is_settled(facts: &Facts, rest_ns: u64) -> bool {
    let changed_ago_ns = i128::from(clock::real_ns()) - facts.changed_ns();
    // A date in the future is one of a clock that was set back since.
    changed_ago_ns >= i128::from(rest_ns) || changed_ago_ns < -i128::from(REST_NS)
}

fn record(seen: &Seen, media: String, plain: Plain, coded: Vec<Coded>) -> Record {
    let mut path = Vec::new();
    file_path::encode(&seen.path, &mut path);
    let path = String::from_utf8(path).expect("an escaped path is ASCII");
    let modified_s = u64::try_from(seen.facts.modified_s).unwrap_or(0);
    Record { path, media, modified_s, plain, coded }
}

/// By the ending of the name.
fn media(path: &[u8]) -> &'static str {
    let guess = mime_guess::from_path(Path::new(OsStr::from_bytes(path)));
    guess.first_raw().unwrap_or("application/octet-stream")
}

/// Texts say that they are UTF-8 where they are.
fn with_charset(media: &str, bytes: &[u8]) -> String {
    let is_utf8 = media.starts_with("text/") && str::from_utf8(bytes).is_ok();
    if is_utf8 { format!("{media}; charset=utf-8") } else { media.to_owned() }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
