//! Encoded forms kept on disk from start to start, by the digest of what they encode and the name of the encoder.
//!
//! `build` asks it. It is private: a folder of this user's that nobody else can write, or it is not used. What it holds is
//! not believed: an entry must be whole, by a digest of its own.

use super::encode::encoder;
use dyno_proto::semantics::coding::Coding;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a digest.
pub(crate) const DIGEST_BYTES: usize = 32;

/// What tells content from other content.
pub(crate) type Sum = [u8; DIGEST_BYTES];

/// An entry that holds nothing but its digest: the form is not worth keeping.
const NOT_WORTHWHILE: &[u8] = b"";

/// The digest of some bytes.
pub(crate) fn sum(bytes: &[u8]) -> Sum {
    Sha256::digest(bytes).into()
}

/// The first half of a digest in digits: what tags are made of.
pub(crate) fn tag(sum: &Sum) -> String {
    sum[..DIGEST_BYTES / 2].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder of encoded forms.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// What a cache knows of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Form(Vec<u8>),
    /// It was made once and was not worth keeping.
    NotWorthwhile,
    Nothing,
}

impl Cache {
    /// Uses the folder, which is made if it is not there.
    ///
    /// # Errors
    /// `PermissionDenied` when it is another user's or others can write to it.
    pub(crate) fn open(folder: &Path, uid: u32) -> io::Result<Cache> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let facts = fs::symlink_metadata(folder)?;
        if !facts.is_dir() || facts.uid() != uid || facts.mode() & 0o022 != 0 {
            let why = "the cache must be a folder of this user's that nobody else can write to";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Cache { folder: folder.to_owned() })
    }

    /// The form of this content in a coding.
    pub(crate) fn get(&self, of: &Sum, coding: Coding) -> Kept {
        let Ok(entry) = fs::read(self.path(of, coding)) else { return Kept::Nothing };
        match entry.split_last_chunk::<DIGEST_BYTES>() {
            Some((form, digest)) if sum(form) == *digest => match form {
                NOT_WORTHWHILE => Kept::NotWorthwhile,
                form => Kept::Form(form.to_vec()),
            },
            _ => Kept::Nothing,
        }
    }

    /// Keeps it; `None` is that it is not worth keeping. What cannot be kept is made again next time.
    pub(crate) fn put(&self, of: &Sum, coding: Coding, form: Option<&[u8]>) {
        let form = form.unwrap_or(NOT_WORTHWHILE);
        let path = self.path(of, coding);
        // Another process may write the same at the same time.
        let fresh = path.with_extension(std::process::id().to_string());
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
            file.write_all(form)?;
            file.write_all(&sum(form))?;
            fs::rename(&fresh, &path)
        };
        if write().is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }

    fn path(&self, of: &Sum, coding: Coding) -> PathBuf {
        let digits: String = of.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{digits}-{}", encoder(coding)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-cache-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn own_uid() -> u32 {
        fs::metadata("/proc/self").unwrap().uid()
    }

    #[test]
    fn what_is_kept_is_found_by_content_and_encoder() {
        let path = folder("kept");
        let cache = Cache::open(&path, own_uid()).unwrap();
        let (one, other) = (sum(b"one"), sum(b"other"));
        cache.put(&one, Coding::Br, Some(b"form"));
        cache.put(&one, Coding::Gzip, None);
        assert_eq!(cache.get(&one, Coding::Br), Kept::Form(b"form".to_vec()));
        assert_eq!(cache.get(&one, Coding::Gzip), Kept::NotWorthwhile);
        assert_eq!(cache.get(&one, Coding::Deflate), Kept::Nothing);
        assert_eq!(cache.get(&other, Coding::Br), Kept::Nothing);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn an_entry_that_is_cut_or_changed_is_none() {
        let path = folder("garbled");
        let cache = Cache::open(&path, own_uid()).unwrap();
        let of = sum(b"one");
        cache.put(&of, Coding::Br, Some(b"form"));
        let entry = cache.path(&of, Coding::Br);
        let whole = fs::read(&entry).unwrap();
        for at in 0..whole.len() {
            fs::write(&entry, &whole[..at]).unwrap();
            assert_eq!(cache.get(&of, Coding::Br), Kept::Nothing, "cut at {at}");
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&entry, changed).unwrap();
            assert_eq!(cache.get(&of, Coding::Br), Kept::Nothing, "changed at {at}");
        }
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let path = folder("open");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Cache::open(&path, own_uid()).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(Cache::open(&path, own_uid() + 1).is_err());
        assert!(Cache::open(&path, own_uid()).is_ok());
        fs::remove_dir_all(path).unwrap();
    }
}
