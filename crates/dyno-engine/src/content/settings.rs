//! What a user says about a folder that is to be served, with the bounds that hold otherwise.

use super::encode::is_made;
use super::error::ContentError;
use dyno_proto::semantics::coding::Coding;
use std::path::{Path, PathBuf};

/// A year: what "for good" means to caches (RFC 9111 §1.2.2 allows more, and nobody keeps anything longer).
const MAXAGE_MAX_S: u32 = 31_536_000;

/// Bodies above this leave by `sendfile`. Where lending pages becomes cheaper than copying bytes depends on how many replies
/// are on their way and on what the host's allocator has at hand: runs of one machine have put it below 40 kB and above
/// 100 kB (docs/adr/0013-content-is-an-image.md). `cargo xtask bench content` has both ways beside each other.
const SENDFILE_BYTES: u64 = 100_000;

/// Bytes of all bodies in memory, where that is no more than an eighth of it: while a new image takes an old one's place
/// there are two. They are shared by all workers.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

fn memory_bytes_default() -> u64 {
    dyno_sys::proc::memory_limit_bytes().map_or(MEMORY_BYTES_MAX, |bytes| MEMORY_BYTES_MAX.min(bytes / 8))
}

/// Whether encoded forms are made.
///
/// ```
/// # use dyno_engine::*;
/// let content = Content::new("public").compress(Compress::No);
/// # let _ = content;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// gzip, deflate, br, and zstd where the library was built with it, where that makes a file smaller.
    Yes,
    /// Only `.gz`, `.br` and `.zst` files that are there are used.
    No,
}

/// Whether changes of files are served without a restart.
///
/// ```
/// # use dyno_engine::*;
/// let content = Content::new("public").watch(Watch::No);
/// # let _ = content;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// As soon as they have been noticed.
    Yes,
    /// What was there at the start is served.
    No,
}

/// A folder that is served; see [`Server::content`](crate::Server::content).
///
/// Files whose names begin with a dot are not served (but `/.well-known/` is), nor is anything outside the folder, though
/// a symbolic link leads there, nor what is no regular file.
///
/// ```
/// # use dyno_engine::*;
///
/// let content = Content::new("public").maxage_max_s(86_400).cache("/var/cache/site");
/// let server = Server::new().content("/", content);
/// # let _ = server;
/// ```
#[derive(Debug, Clone)]
pub struct Content {
    pub(crate) folder: PathBuf,
    pub(crate) compress: Compress,
    pub(crate) watch: Watch,
    pub(crate) maxage_max_s: u32,
    pub(crate) forced: Option<Coding>,
    pub(crate) sendfile_bytes: u64,
    pub(crate) memory_bytes_max: u64,
    pub(crate) cache: Option<PathBuf>,
}

/// A folder and the path under which it is served.
///
/// ```
/// # use dyno_engine::*;
///
/// let mount = Mount::new("/static", Content::new("public"))?;
/// let config = Config { content: vec![mount], ..Config::default() };
/// # let _ = config;
/// # Ok::<(), ContentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mount {
    /// As [`Site::prefix`](crate::table::Site) has it.
    pub(crate) prefix: Vec<u8>,
    /// Whose it is: the number of a host, 0 where there are none.
    pub(crate) host: u16,
    pub(crate) content: Content,
}

impl Content {
    /// The folder with the usual settings.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public");
    /// # let _ = content;
    /// ```
    pub fn new(folder: impl Into<PathBuf>) -> Content {
        Content {
            folder: folder.into(),
            compress: Compress::Yes,
            watch: Watch::Yes,
            maxage_max_s: MAXAGE_MAX_S,
            forced: None,
            sendfile_bytes: SENDFILE_BYTES,
            memory_bytes_max: memory_bytes_default(),
            cache: None,
        }
    }

    /// Which folder it is.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Content::new("public").folder(), std::path::Path::new("public"));
    /// ```
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether encoded forms are made; they are, unless told otherwise.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").compress(Compress::No);
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn compress(mut self, compress: Compress) -> Content {
        self.compress = compress;
        self
    }

    /// Whether changes are served without a restart; they are, unless told otherwise.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").watch(Watch::No);
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn watch(mut self, watch: Watch) -> Content {
        self.watch = watch;
        self
    }

    /// The greatest N of `?maxage=N`, with which a request asks for `Cache-Control: max-age=N`, in seconds. A greater one is
    /// answered with 400. A year unless told otherwise.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").maxage_max_s(3_600);
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn maxage_max_s(mut self, seconds: u32) -> Content {
        self.maxage_max_s = seconds;
        self
    }

    /// Sends every file that is kept in this coding in it, whatever a client accepts: for clients that are known. `gzip`,
    /// `deflate`, `br`, and `zstd` where the library was built with it; `None` when it is none of them.
    ///
    /// ```
    /// # use dyno_engine::*;
    ///
    /// assert!(Content::new("public").force_encoding("deflate").is_some());
    /// assert!(Content::new("public").force_encoding("compress").is_none());
    /// ```
    #[must_use]
    pub fn force_encoding(mut self, name: &str) -> Option<Content> {
        self.forced = Coding::of_name(name.as_bytes()).filter(|coding| is_made(*coding));
        self.forced.is_some().then_some(self)
    }

    /// Bodies above this many bytes leave by `sendfile`; 100,000 unless told otherwise.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").sendfile_bytes(1 << 20);
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn sendfile_bytes(mut self, bytes: u64) -> Content {
        self.sendfile_bytes = bytes;
        self
    }

    /// Bytes of all bodies that are kept in memory, at most; what does not fit stays in its file and is not encoded.
    /// 256 MiB or an eighth of the memory unless told otherwise, whichever is less.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").memory_bytes_max(64 << 20);
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: u64) -> Content {
        self.memory_bytes_max = bytes;
        self
    }

    /// Divides what may be kept in memory among so many folders that are served by one server.
    ///
    /// ```
    /// use dyno_engine::Content;
    ///
    /// let folders = ["a", "b"].map(|name| Content::new(name).memory_bytes_max(64 << 20).memory_divided_by(2));
    /// # let _ = folders;
    /// ```
    #[must_use]
    pub fn memory_divided_by(mut self, folders: usize) -> Content {
        self.memory_bytes_max /= folders.max(1) as u64;
        self
    }

    /// A folder in which encoded forms are kept from start to start. It is made if it is not there, and must be this
    /// user's alone.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let content = Content::new("public").cache("/var/cache/site");
    /// # let _ = content;
    /// ```
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Content {
        self.cache = Some(folder.into());
        self
    }
}

impl<P: Into<PathBuf>> From<P> for Content {
    fn from(folder: P) -> Content {
        Content::new(folder)
    }
}

impl Mount {
    /// Serves the folder's files under `path`: `/` for all of the server, `/static` for a part of it. Routes come first.
    ///
    /// ```
    /// # use dyno_engine::*;
    ///
    /// assert!(Mount::new("/static", Content::new("public")).is_ok());
    /// assert!(Mount::new("/../etc", Content::new("public")).is_err());
    /// ```
    ///
    /// # Errors
    /// [`ContentError::Path`] when the path is not `/` or some plain names between slashes.
    pub fn new(path: &str, content: impl Into<Content>) -> Result<Mount, ContentError> {
        let refused = || ContentError::Path { path: path.to_owned() };
        let content = content.into();
        let names = path.strip_prefix('/').ok_or_else(refused)?.trim_end_matches('/');
        if names.is_empty() {
            return Ok(Mount { prefix: Vec::new(), host: 0, content });
        }
        if !dyno_proto::file_path::is_served(names.as_bytes()) || names.contains(['?', '#', '%']) {
            return Err(refused());
        }
        Ok(Mount { prefix: format!("{names}/").into_bytes(), host: 0, content })
    }

    /// Which folder it is.
    ///
    /// ```
    /// # use dyno_engine::*;
    ///
    /// let mount = Mount::new("/", Content::new("public"))?;
    /// assert_eq!(mount.folder(), std::path::Path::new("public"));
    /// # Ok::<(), ContentError>(())
    /// ```
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.content.folder()
    }

    /// The same for a host.
    pub(crate) fn of_host(self, host: u16) -> Mount {
        Mount { host, ..self }
    }

    /// Host by host. Longer paths come first: a request belongs to the longest that it begins with.
    pub(crate) fn sort(mounts: &mut [Mount]) {
        mounts.sort_by_key(|mount| (mount.host, std::cmp::Reverse(mount.prefix.len())));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_mount_is_some_plain_names() {
        for (path, prefix) in [("/", ""), ("/static", "static/"), ("/static/", "static/"), ("/a/b/", "a/b/")]
        {
            assert_eq!(Mount::new(path, Content::new("x")).unwrap().prefix, prefix.as_bytes());
        }
        for path in ["", "static", "/a//b", "/../a", "/.git", "/a%20b", "/a?b"] {
            assert!(Mount::new(path, Content::new("x")).is_err(), "{path}");
        }
    }

    #[test]
    fn only_a_coding_that_is_made_can_be_forced() {
        assert_eq!(Content::new("x").force_encoding("deflate").unwrap().forced, Some(Coding::Deflate));
        assert!(Content::new("x").force_encoding("identity").is_none());
        assert_eq!(Content::new("x").force_encoding("zstd").is_some(), cfg!(feature = "zstd"));
    }
}
