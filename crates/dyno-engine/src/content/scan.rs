//! A look at a folder: which files it has now, and what tells one state of a file from another. Nothing is opened but
//! folders.
//!
//! `build` calls it. Hidden names, what is no regular file, and what leads out of the root are passed over.

use crate::file::Facts;
use dyno_proto::file_path::is_served;
use dyno_sys::folder::Root;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Files of one folder: more are a disk, not a site, and a table of them would take a gigabyte.
const FILES_MAX: usize = 1_000_000;

/// Folders below one another; links can make them look endless.
const DEPTH_MAX: usize = 64;

/// Folders in all.
const FOLDERS_MAX: usize = 100_000;

/// What was seen.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// By name, in their order.
    pub(crate) files: Vec<Seen>,
    /// All that were looked at, the root as an empty name.
    pub(crate) folders: Vec<Vec<u8>>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: Vec<u8>,
    pub(crate) facts: Facts,
}

/// Looks at everything below the root.
///
/// # Errors
/// When the root itself cannot be read. What cannot be read below it is passed over.
pub(crate) fn scan(root: &Root) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut above = Vec::new();
    scan_folder(root, Vec::new(), &mut above, &mut scan)?;
    scan.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(scan)
}

fn scan_folder(root: &Root, path: Vec<u8>, above: &mut Vec<(u64, u64)>, scan: &mut Scan) -> io::Result<()> {
    let entry = root.entry(&path)?;
    let identity = (entry.facts().dev(), entry.facts().ino());
    // A link to a folder above would go round for ever.
    if above.contains(&identity) || above.len() >= DEPTH_MAX || scan.folders.len() >= FOLDERS_MAX {
        return Ok(());
    }
    let names = entry.names(FILES_MAX - scan.files.len())?;
    drop(entry);
    above.push(identity);
    for name in names {
        let path = if path.is_empty() { name } else { [&path[..], b"/", &name].concat() };
        if is_served(&path) {
            // What is gone or closed to us meanwhile is not there.
            let _ = scan_name(root, path, above, scan);
        }
    }
    above.pop();
    scan.folders.push(path);
    Ok(())
}

fn scan_name(root: &Root, path: Vec<u8>, above: &mut Vec<(u64, u64)>, scan: &mut Scan) -> io::Result<()> {
    let entry = root.entry(&path)?;
    let facts = entry.facts();
    if facts.is_dir() {
        return scan_folder(root, path, above, scan);
    }
    if facts.is_file() && scan.files.len() < FILES_MAX {
        scan.files.push(Seen { facts: Facts::of(facts), path });
    }
    Ok(())
}
