//! From an image to a worker's table: header lines are written, large files opened, folders given their index.
//!
//! A worker calls it when it starts, and whoever hands it a new image; nothing in here is asked per request.

use super::error::ContentError;
use super::image::{self, Plain, Record, Span, Tagged};
use super::settings::Mount;
use crate::file::FilePart;
use crate::shared::Shared;
use crate::table::{Site, Stored, Table, Told, Variant, Varies};
use dyno_proto::file_path;
use dyno_proto::semantics::coding::Coding;
use dyno_sys::folder::Root;
use dyno_sys::memfd::Mapping;
use std::fs::File;
use std::sync::Arc;

/// The name that stands for its folder.
const INDEX: &[u8] = b"index.html";

/// One of so many descriptors may be a file's, while an old table and a new one are there together; the others are for
/// connections. Files that find none are not served.
const DESCRIPTORS_SHARE: usize = 4;

/// What a table's bodies are taken from.
struct Source<'m> {
    mount: &'m Mount,
    root: Root,
    memory: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// The same as a file, for `sendfile`.
    image: FilePart,
}

/// The sites of a worker.
pub(crate) fn sites<'m>(mounts: impl IntoIterator<Item = (&'m Mount, Arc<Table>)>) -> Vec<Site> {
    let site = |(mount, table): (&Mount, _)| {
        let Mount { prefix, content, .. } = mount;
        Site { table, ..Site::new(prefix, content.maxage_max_s, content.forced) }
    };
    mounts.into_iter().map(site).collect()
}

/// The table of an image.
pub(crate) fn table_of(image: File, mount: &Mount) -> Result<Table, ContentError> {
    let folder = || mount.content.folder.clone();
    let root = Root::open(&mount.content.folder)
        .map_err(|source| ContentError::Folder { folder: folder(), source })?;
    let of_image = |source| ContentError::Image { folder: folder(), source };
    let mapping = Mapping::of_sealed(&image).map_err(of_image)?;
    let records = image::records(mapping.as_ref()).map_err(of_image)?;
    let image = FilePart::sealed(Arc::new(image), mapping.as_ref().len() as u64);
    let source = Source { mount, root, memory: Arc::new(mapping), image };
    let mut table = Table::default();
    let (descriptors, _) = dyno_sys::proc::nofile();
    let mut files_left = usize::try_from(descriptors).unwrap_or(usize::MAX) / DESCRIPTORS_SHARE;
    for record in &records {
        if matches!(record.plain, Plain::InFile(_)) {
            let Some(left) = files_left.checked_sub(1) else { continue };
            files_left = left;
        }
        source.add(record, &mut table);
    }
    Ok(table)
}

impl Source<'_> {
    /// Adds a file, unless it cannot be opened any more or its name is none.
    fn add(&self, record: &Record, table: &mut Table) {
        let mut name = Vec::new();
        if file_path::decode(record.path.as_bytes(), &mut name).is_err() {
            return;
        }
        let varies = if record.coded.is_empty() || self.mount.content.forced.is_some() {
            Varies::No
        } else {
            Varies::Yes
        };
        let Some((plain, modified_s)) = self.plain(record, &name, varies) else { return };
        let coded = record
            .coded
            .iter()
            .filter_map(|coded| Some(self.variant(record, coded.coding()?, &coded.body, varies)));
        let mut variants: Vec<Variant> = coded.chain([plain]).collect();
        variants.sort_by_key(|variant| variant.body.bytes());
        table.add(&name, modified_s, variants);
        let Some(folder) = name.strip_suffix(INDEX) else { return };
        match folder.strip_suffix(b"/") {
            Some(bare) => {
                table.add_name(folder, &name);
                table.add_moved(bare, &self.mount.prefix);
            }
            None if folder.is_empty() => table.add_name(b"", &name),
            None => {}
        }
    }

    /// The file as it is, and when it was modified. One that stays where it is has a tag by its time, and is sent as long as
    /// it is what its builder saw: only who saw it at rest knows that nothing of it was half written. One that is something
    /// else by now would be promised and not sent.
    fn plain(&self, record: &Record, name: &[u8], varies: Varies) -> Option<(Variant, u64)> {
        let facts = match &record.plain {
            Plain::Here(body) => {
                return Some((self.variant(record, Coding::Identity, body, varies), record.modified_s));
            }
            Plain::InFile(facts) => *facts,
        };
        let file = FilePart::open(self.root.entry(name).ok()?.open().ok()?, facts);
        if !file.is_unchanged() {
            return None;
        }
        let (tag, modified_s) = (facts.tag(), record.modified_s);
        let told = Told { media: &record.media, coding: Coding::Identity, tag: &tag, modified_s, varies };
        Some((Variant::new(&told, Stored::File(file)), modified_s))
    }

    fn variant(&self, record: &Record, coding: Coding, body: &Tagged, varies: Varies) -> Variant {
        let Record { media, modified_s, .. } = record;
        let told = Told { media, coding, tag: &body.tag, modified_s: *modified_s, varies };
        Variant::new(&told, self.stored(body.span))
    }

    /// Large bodies leave by `sendfile` from the image, which is a file like any other to it.
    fn stored(&self, span: Span) -> Stored {
        let range = span.range();
        if span.bytes() > self.mount.content.sendfile_bytes {
            let part = self.image.part(range.start as u64..range.end as u64);
            return Stored::File(part.expect("the records of an image lie within it"));
        }
        let whole = Shared::from_arc(Arc::clone(&self.memory));
        Stored::Memory(whole.part(range).expect("the records of an image lie within it"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::content::Content;
    use crate::content::build::Builder;
    use std::fs;
    use std::io::Write;

    /// Red where the file is not looked at: each reply would promise it and be cut off.
    #[test]
    fn a_file_that_has_been_written_to_since_it_was_seen_is_not_in_the_table() {
        let folder = std::env::temp_dir().join(format!("dyno-load-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["rests.bin", "written.bin"] {
            fs::write(folder.join(name), vec![7; 2 << 20]).unwrap();
        }
        let content = Content::new(&folder).memory_bytes_max(10);
        let mount = Mount::new("/", content).unwrap();
        let mut builder = Builder::open(mount.clone(), dyno_sys::user::current().0).unwrap();
        let scan = builder.scan().unwrap();
        let image = builder.build(&scan, 0).unwrap().unwrap().image;
        let mut written = fs::OpenOptions::new().append(true).open(folder.join("written.bin")).unwrap();
        written.write_all(b"more").unwrap();
        let table = table_of(image, &mount).unwrap();
        assert!(table.find(b"rests.bin").is_some() && table.find(b"written.bin").is_none());
        fs::remove_dir_all(folder).unwrap();
    }
}
