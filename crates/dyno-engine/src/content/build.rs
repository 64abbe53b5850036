//! Makes images: reads each file once, finds or makes its encoded forms, and writes what has changed beside what has not
//! into a new image.
//!
//! `watch` calls it, in a thread or process that serves nobody. What an earlier image has is copied from there, so that a
//! change costs the looking, a copy, and the encoding of what is new.

use super::cache::{self, Cache, Kept, Sum};
use super::encode::{self, KEPT, SIBLINGS};
use super::error::ContentError;
use super::image::{Coded, Plain, Record, Span, Tagged, Writer};
use super::scan::{Facts, Scan, Seen, scan};
use super::settings::{Compress, Mount};
use dyno_proto::file_path;
use dyno_proto::semantics::coding::Coding;
use dyno_sys::folder::Root;
use dyno_sys::memfd::Mapping;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of files that are encoded before anything is served, or before a change is: a second or two at the slowest
/// encoder's half a megabyte per second and CPU. What is more is encoded while the files are served as they are.
pub(crate) const START_BYTES_MAX: u64 = 1 << 20;

/// Bytes that are encoded before it is looked again whether something has changed: some ten seconds.
pub(crate) const STEP_BYTES_MAX: u64 = 8 << 20;

/// A file that changes whenever it is read is taken as it was read the last time.
const READS_MAX: usize = 3;

/// Whether there is more to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Whole,
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

/// What the threads of one build share.
struct Making<'b> {
    scan: &'b Scan,
    writer: Mutex<Writer>,
    /// Bytes that may still be encoded.
    left: AtomicU64,
    /// Forms in the image before, by what they encode.
    forms: HashMap<Sum, &'b Record>,
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
        Ok(Builder { mount, root, cache, known, image, seen, progress: Progress::More })
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

    /// Whether everything is encoded that shall be.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// The image of what was seen, for which so many bytes may be encoded; `None` when it would be the one before.
    pub(crate) fn build(&mut self, scan: &Scan, encode_bytes_max: u64) -> io::Result<Option<Built>> {
        if self.image.is_some() && self.progress == Progress::Whole && self.seen == scan.files {
            return Ok(None);
        }
        let (known, image) = self.make(scan, encode_bytes_max)?;
        let is_whole = known.values().all(|known| known.progress == Progress::Whole);
        self.progress = if is_whole { Progress::Whole } else { Progress::More };
        self.image = Some(Mapping::of_sealed(&image)?);
        (self.known, self.seen) = (known, scan.files.clone());
        let files = self.known.len();
        Ok(Some(Built { image, files, unread: scan.files.len() - files }))
    }

    fn make(&self, scan: &Scan, encode_bytes_max: u64) -> io::Result<(HashMap<Vec<u8>, Known>, File)> {
        // What was not tried for its media type would look like what was not worth it.
        let is_whole =
            |known: &&Known| known.progress == Progress::Whole && encode::is_worthwhile(&known.record.media);
        let forms =
            self.known.values().filter(is_whole).filter_map(|known| Some((known.sum?, &known.record)));
        let making = Making {
            scan,
            writer: Mutex::new(Writer::new(self.mount.content.memory_bytes_max)?),
            left: AtomicU64::new(encode_bytes_max),
            forms: forms.collect(),
        };
        let made = self.in_threads(&making)?;
        let mut records: Vec<Record> = made.values().map(|known| known.record.clone()).collect();
        records.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let writer = making.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((made, writer.finish(&records)?))
    }

    /// Every file, on every CPU.
    fn in_threads(&self, making: &Making<'_>) -> io::Result<HashMap<Vec<u8>, Known>> {
        let files = &making.scan.files;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            while let Some(seen) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
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
        {
            let record = self.copied(&known.record, making)?;
            return Ok(Some(Known { record, ..known.clone() }));
        }
        let media = media(&seen.path);
        let content = &self.mount.content;
        let is_encoded = encode::is_worthwhile(media) && seen.facts.bytes <= encode::BYTES_MAX;
        if seen.facts.bytes > content.sendfile_bytes && !is_encoded {
            let record = record(seen, media.to_owned(), Plain::InFile, Vec::new());
            return Ok(Some(Known { facts, sum: None, record, progress: Progress::Whole }));
        }
        let Ok(bytes) = self.read(seen) else { return Ok(None) };
        let sum = cache::sum(&bytes);
        let plain = if bytes.len() as u64 > content.sendfile_bytes {
            Plain::InFile
        } else {
            making.add(&bytes, cache::tag(&sum))?.map_or(Plain::InFile, Plain::Here)
        };
        let (coded, progress) = self.coded(seen, &bytes, &sum, making)?;
        let record = record(seen, with_charset(media, &bytes), plain, coded);
        Ok(Some(Known { facts, sum: Some(sum), record, progress }))
    }

    /// What the image before has of a file, in this one.
    fn copied(&self, record: &Record, making: &Making<'_>) -> io::Result<Record> {
        let plain = match &record.plain {
            Plain::Here(body) => self.copy(body, making)?.map_or(Plain::InFile, Plain::Here),
            Plain::InFile => Plain::InFile,
        };
        let mut coded = Vec::new();
        for form in &record.coded {
            let body = self.copy(&form.body, making)?;
            coded.extend(body.map(|body| Coded { coding: form.coding.clone(), body }));
        }
        Ok(Record { plain, coded, ..record.clone() })
    }

    fn copy(&self, body: &Tagged, making: &Making<'_>) -> io::Result<Option<Tagged>> {
        making.add(self.bytes_of(body.span), body.tag.clone())
    }

    fn bytes_of(&self, span: Span) -> &[u8] {
        let image = self.image.as_ref().expect("what is known stands in an image");
        &image.as_ref()[span.range()]
    }

    fn read(&self, seen: &Seen) -> io::Result<Vec<u8>> {
        let most = encode::BYTES_MAX.max(self.mount.content.sendfile_bytes);
        let mut bytes = Vec::new();
        for _ in 0..READS_MAX {
            bytes.clear();
            let file = self.root.entry(&seen.path)?.open()?;
            let before = Facts::of(&file.metadata()?);
            (&file).take(most).read_to_end(&mut bytes)?;
            if before == Facts::of(&file.metadata()?) && before.bytes == bytes.len() as u64 {
                break;
            }
        }
        Ok(bytes)
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
        for coding in KEPT {
            let form = match self.sibling(seen, coding, plain, making) {
                Some(form) => Some(form),
                None if !encode::is_made(coding) || !self.is_encoded(seen, plain) => None,
                None => match self.kept(coding, sum, making) {
                    Kept::Form(form) => Some(form),
                    Kept::NotWorthwhile => None,
                    Kept::Nothing if making.may_encode(plain.len()) => self.encoded(coding, plain, sum)?,
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
        let form = self.read(sibling).ok()?;
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
        let take = |left: u64| left.checked_sub(bytes as u64);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
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
