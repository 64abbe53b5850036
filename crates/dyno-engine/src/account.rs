//! What replies weigh: how many bytes each file's reply has, head line by head line, before anything is served.
//!
//! `dyno serve --bytes-report` calls [`account`]. Folders are read and encoded as for serving, here and now; no socket is
//! opened. What the network adds is not known here.

use crate::content::{Builders, Mount, sites, table_of};
use crate::error::EngineError;
use crate::heads::Heads;
use crate::host::{self, Host};
use crate::table::{Site, Variant};
use dyno_proto::file_path;
use dyno_proto::http1::encode;
use std::sync::Arc;

/// The reply to a plain GET of one file, from a client that takes every coding.
///
/// ```no_run
/// use dyno_engine::{Content, Mount, account};
///
/// let replies = account(vec![Mount::new("/", Content::new("public"))?], Vec::new())?;
/// let sum: u64 = replies.iter().map(|reply| reply.head_bytes() + reply.body_bytes).sum();
/// println!("{} files, {sum} bytes", replies.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyBytes {
    /// The first name of the file's host; `*` for that which answers for every name.
    pub host: String,
    /// The path to ask for, escaped.
    pub path: String,
    /// The coding in which it is sent.
    pub coding: &'static str,
    /// The lines of the head with their line ends, in their order: the name of a field, and the line's bytes. The status line
    /// is called `HTTP/1.1`, the empty line at the end has no name.
    pub lines: Vec<(String, u64)>,
    /// Bytes of the body as it is sent.
    pub body_bytes: u64,
    /// Bytes of the file as it is.
    pub file_bytes: u64,
}

impl ReplyBytes {
    /// Bytes of the whole head.
    ///
    /// ```
    /// # use dyno_engine::ReplyBytes;
    /// # let lines = vec![("HTTP/1.1".to_owned(), 17), (String::new(), 2)];
    /// # let (host, path) = ("*".to_owned(), "/".to_owned());
    /// let reply = ReplyBytes { host, path, coding: "br", lines, body_bytes: 5, file_bytes: 9 };
    /// assert_eq!(reply.head_bytes(), 19);
    /// ```
    #[must_use]
    pub fn head_bytes(&self) -> u64 {
        self.lines.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The replies of all files that would be served, by host and path. It takes as long as reading and encoding them does.
///
/// ```no_run
/// # use dyno_engine::{Mount, account};
/// assert!(account(vec![Mount::new("/", "no such folder")?], Vec::new()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`EngineError`] when a folder cannot be read, or hosts contradict each other.
pub fn account(content: Vec<Mount>, hosts: Vec<Host>) -> Result<Vec<ReplyBytes>, EngineError> {
    let (mounts, hosts) = host::prepare(content, hosts)?;
    let mut tables = Vec::new();
    if !mounts.is_empty() {
        for (built, mount) in Builders::open(&mounts)?.whole()?.into_iter().zip(&mounts) {
            tables.push(Arc::new(table_of(built.image, mount)?));
        }
    }
    let mut replies = Vec::new();
    for (site, mount) in sites(mounts.iter().zip(tables)).iter().zip(&mounts) {
        let own = hosts.as_deref().map(|hosts| hosts.own(mount.host));
        let mut lines = Vec::new();
        if let Some(own) = own {
            own.lines.put(&mut lines);
        }
        of_site(site, own.map_or("*", |own| &own.name), &lines, &mut replies);
    }
    replies.sort_by(|one, other| (&one.host, &one.path).cmp(&(&other.host, &other.path)));
    Ok(replies)
}

fn of_site(site: &Site, host: &str, host_lines: &[u8], replies: &mut Vec<ReplyBytes>) {
    let heads = Heads::new(0);
    for (name, file) in site.table.files() {
        let variants = || site.table.variants(file).map(|(_, variant)| variant);
        let forced = variants().find(|variant| Some(variant.coding) == site.forced);
        // The smallest is the first.
        let Some(variant) = forced.or_else(|| variants().next()) else { continue };
        let mut path = Vec::new();
        file_path::encode(&[&site.prefix, name].concat(), &mut path);
        replies.push(ReplyBytes {
            host: host.to_owned(),
            path: String::from_utf8_lossy(&path).into_owned(),
            coding: variant.coding.name(),
            lines: lines_of(&heads, variant, host_lines),
            body_bytes: variant.body.bytes(),
            file_bytes: variants().map(|variant| variant.body.bytes()).max().unwrap_or(0),
        });
    }
}

/// The head as `http1` puts it together for such a reply.
fn lines_of(heads: &Heads, variant: &Variant, host_lines: &[u8]) -> Vec<(String, u64)> {
    let mut head = Vec::new();
    heads.begin(&mut head, 200);
    head.extend_from_slice(variant.lines());
    head.extend_from_slice(host_lines);
    encode::head_end(&mut head);
    let name = |line: &[u8]| {
        let end = line.iter().position(|byte| b": \r".contains(byte)).unwrap_or(line.len());
        String::from_utf8_lossy(&line[..end]).into_owned()
    };
    head.split_inclusive(|&byte| byte == b'\n').map(|line| (name(line), line.len() as u64)).collect()
}
