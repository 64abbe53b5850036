//! What a user says of hosts, and the making of it into what workers know.
//!
//! The library's `Server` and the supervisor call [`prepare`] once, when they start. Nothing is read here.

use crate::content::{Content, ContentError, Mount};
use crate::hosts::{HostError, Hosts, Own, Redirect, Redirects, Wanted, checked};
use dyno_proto::file_path;
use std::sync::Arc;

/// Hosts of one server: more is another kind of service, with certificates and tables of its own.
const HOSTS_MAX: usize = 10_000;

/// Whether the lines for safety are sent.
///
/// ```
/// # use dyno_engine::*;
/// let host = Host::any().security(Security::Preset);
/// # let _ = host;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// `X-Content-Type-Options: nosniff`, `Referrer-Policy: strict-origin-when-cross-origin`, `X-Frame-Options: SAMEORIGIN`
    /// and `Content-Security-Policy: frame-ancestors 'self'`, where [`Host::header`] says nothing else.
    Preset,
    /// Only what [`Host::header`] says.
    None,
}

/// A host of a server: the names by which it is asked for, its folders, and what is said with each of its replies.
///
/// Routes are the same for all hosts and come first; then come the redirects of the host, then its folders. What no host is
/// called is answered by [`Host::any`] and [`Server::content`](crate::Server::content), or else by the first host.
///
/// ```no_run
/// use dyno_engine::{Host, Redirect, Security, Server};
///
/// Server::new()
///     .listen("127.0.0.1:8080")
///     .host(
///         Host::new(["example.org"])?
///             .content("/", "sites/example")?
///             .security(Security::Preset)
///             .header("Cache-Control", "max-age=600")?
///             .error_page(404, "404.html")?,
///     )
///     .host(Host::new(["*.example.org"])?.redirect(Redirect::new("/*", "https://example.org/*", 301)?))
///     .run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a host answers when a server has it"]
pub struct Host {
    names: Vec<String>,
    mounts: Vec<Mount>,
    redirects: Vec<Redirect>,
    lines: Wanted,
    pages: Vec<(u16, Box<[u8]>)>,
}

impl Host {
    /// The host that answers for every name that no other host has.
    ///
    /// ```
    /// use dyno_engine::{Host, Redirect};
    ///
    /// // Whoever comes by another name is sent to the right one.
    /// let others = Host::any().redirect(Redirect::new("/*", "https://www.example.org/*", 308)?);
    /// # let _ = others;
    /// # Ok::<(), dyno_engine::HostError>(())
    /// ```
    pub fn any() -> Host {
        Host {
            names: Vec::new(),
            mounts: Vec::new(),
            redirects: Vec::new(),
            lines: Wanted::default(),
            pages: Vec::new(),
        }
    }

    /// The host of these names: `example.org`, `*.example.org` for all below it, `192.0.2.1`, `[2001:db8::1]`; without a
    /// port, in any case. A name as it stands goes before one with a star.
    ///
    /// ```
    /// use dyno_engine::Host;
    ///
    /// assert!(Host::new(["example.org", "*.example.org"]).is_ok());
    /// assert!(Host::new(["example.org:80"]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`HostError::Name`] for what is no name; a host needs one.
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Host, HostError> {
        let names: Vec<String> =
            names.into_iter().map(|name| checked(name.as_ref())).collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Err(HostError::Name { name: String::new(), why: "a host has a name" });
        }
        Ok(Host { names, ..Host::any() })
    }

    /// Serves the files of a folder under `path`, as [`Server::content`](crate::Server::content) does.
    ///
    /// ```
    /// use dyno_engine::{Content, Host};
    ///
    /// let host = Host::new(["example.org"])?.content("/", Content::new("public").maxage_max_s(3_600))?;
    /// # let _ = host;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ContentError::Path`] when the path is not `/` or some plain names between slashes.
    pub fn content(mut self, path: &str, content: impl Into<Content>) -> Result<Host, ContentError> {
        self.mounts.push(Mount::new(path, content)?);
        Ok(self)
    }

    /// Adds a redirect, which goes before the host's files.
    ///
    /// ```
    /// use dyno_engine::{Host, Redirect};
    ///
    /// let host = Host::new(["example.org"])?.redirect(Redirect::new("/feed", "/feed.xml", 302)?);
    /// # let _ = host;
    /// # Ok::<(), dyno_engine::HostError>(())
    /// ```
    pub fn redirect(mut self, redirect: Redirect) -> Host {
        self.redirects.push(redirect);
        self
    }

    /// Says whether the lines for safety are sent; they are not, unless told so.
    ///
    /// ```
    /// use dyno_engine::{Host, Security};
    ///
    /// // With a policy of its own, and without X-Frame-Options, which that says already.
    /// let host = Host::any()
    ///     .security(Security::Preset)
    ///     .header("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")?
    ///     .header("X-Frame-Options", "")?;
    /// # let _ = host;
    /// # Ok::<(), dyno_engine::HostError>(())
    /// ```
    pub fn security(mut self, security: Security) -> Host {
        if security == Security::Preset {
            self.lines.with_preset();
        }
        self
    }

    /// Sends this line with every reply of the host, whatever its status; of a handler's reply that has such a line, the
    /// handler's is sent. An empty value takes a line of [`Security::Preset`] away.
    ///
    /// ```
    /// use dyno_engine::Host;
    ///
    /// assert!(Host::any().header("X-Robots-Tag", "noindex").is_ok());
    /// assert!(Host::any().header("X-Bad", "a\r\nSet-Cookie: b").is_err());
    /// ```
    ///
    /// # Errors
    /// [`HostError::Header`] for a line that cannot be sent, that each reply has of its own, or that is told twice.
    pub fn header(mut self, name: &str, value: &str) -> Result<Host, HostError> {
        self.lines.add(name, value)?;
        Ok(self)
    }

    /// Sends a file of the host's folders with a reply of this status, 400 to 599, where the engine would say the status in
    /// words. What a handler answers stays as it is. The file is sent as it is, not encoded; while it is not there, the
    /// engine's words are sent.
    ///
    /// ```
    /// use dyno_engine::Host;
    ///
    /// let host = Host::new(["example.org"])?.content("/", "public")?.error_page(404, "errors/404.html")?;
    /// # let _ = host;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HostError::ErrorPage`] for another status, one that has its page, or a name that no file has.
    pub fn error_page(mut self, status: u16, file: &str) -> Result<Host, HostError> {
        let refused = |why| Err(HostError::ErrorPage { status, page: file.to_owned(), why });
        if !(400..=599).contains(&status) {
            return refused("errors are 400 to 599");
        }
        let name = file.strip_prefix('/').unwrap_or(file);
        if !file_path::is_served(name.as_bytes()) {
            return refused("it is the name of a file below the root, none of whose parts begins with a dot");
        }
        if self.pages.iter().any(|(of, _)| *of == status) {
            return refused("the status has a page already");
        }
        self.pages.push((status, name.as_bytes().into()));
        Ok(self)
    }
}

/// What a server is made of: its folders in the order in which workers have them, and its hosts, if any were told.
pub(crate) type Prepared = (Vec<Mount>, Option<Arc<Hosts>>);

/// Of the folders of whatever host, and of hosts. A host without names has those folders too; without such a host, and
/// without such folders, the first host answers for every name that is nobody's.
///
/// # Errors
/// [`HostError`] where hosts contradict each other.
pub(crate) fn prepare(content: Vec<Mount>, hosts: Vec<Host>) -> Result<Prepared, HostError> {
    if hosts.is_empty() {
        return Ok((sorted(content), None));
    }
    if hosts.len() > HOSTS_MAX {
        return Err(HostError::TooMany { hosts: hosts.len(), most: HOSTS_MAX });
    }
    let (mut nameless, named): (Vec<Host>, Vec<Host>) =
        hosts.into_iter().partition(|host| host.names.is_empty());
    if nameless.len() > 1 {
        return Err(HostError::Nameless);
    }
    let default = nameless.pop().or_else(|| (!content.is_empty()).then(Host::any));
    let mut all: Vec<Host> = default.into_iter().chain(named).collect();
    all[0].mounts.extend(content);
    let (mut ready, mut mounts) = (Hosts::default(), Vec::new());
    for (number, host) in all.into_iter().enumerate() {
        let of = u16::try_from(number).expect("there are no more than HOSTS_MAX");
        let Host { names, mounts: folders, redirects, lines, pages } = host;
        let sites = mounts.len()..mounts.len() + folders.len();
        mounts.extend(folders.into_iter().map(|mount| mount.of_host(of)));
        let (redirects, lines, pages) = (Redirects::of(redirects)?, lines.made(), pages.into());
        let name = names.first().map_or("*", String::as_str).into();
        ready.add(&names, Own { name, sites, redirects, lines, pages })?;
    }
    // Hosts stay in their order, so that each one's folders stay where they were counted.
    Ok((sorted(mounts), Some(Arc::new(ready))))
}

/// Host by host, and in each the longer paths first.
fn sorted(mut mounts: Vec<Mount>) -> Vec<Mount> {
    Mount::sort(&mut mounts);
    mounts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_error_page_is_a_file_below_the_root() {
        let page = |status, file| Host::any().error_page(status, file);
        assert!(page(404, "404.html").is_ok() && page(599, "/errors/x.html").is_ok());
        for (status, file) in
            [(200, "x"), (304, "x"), (600, "x"), (404, ""), (404, "../x"), (404, ".x"), (404, "a//b")]
        {
            assert!(page(status, file).is_err(), "{status} {file}");
        }
        assert!(page(404, "a").unwrap().error_page(404, "b").is_err());
    }

    fn host(names: &[&str], folder: &str) -> Host {
        Host::new(names).unwrap().content("/", folder).unwrap()
    }

    fn mount(path: &str) -> Mount {
        Mount::new(path, "plain").unwrap()
    }

    #[test]
    fn without_hosts_there_is_nothing_to_ask() {
        let (mounts, hosts) = prepare(vec![mount("/"), mount("/deep")], Vec::new()).unwrap();
        assert!(hosts.is_none());
        assert_eq!(mounts.iter().map(|mount| &mount.prefix[..]).collect::<Vec<_>>(), [&b"deep/"[..], b""]);
    }

    #[test]
    fn the_first_host_answers_for_names_that_are_nobodys() {
        let (_, hosts) = prepare(Vec::new(), vec![host(&["a.org"], "a"), host(&["b.org"], "b")]).unwrap();
        let hosts = hosts.unwrap();
        assert_eq!((hosts.find(Some(b"b.org:80")), hosts.find(Some(b"c.org")), hosts.find(None)), (1, 0, 0));
    }

    #[test]
    fn folders_of_no_host_answer_for_names_that_are_nobodys() {
        let hosts = vec![host(&["a.org"], "a").content("/x", "x").unwrap(), host(&["b.org"], "b")];
        let (mounts, hosts) = prepare(vec![mount("/"), mount("/deep")], hosts).unwrap();
        let hosts = hosts.unwrap();
        let folders = |number: u16| {
            let own = &mounts[hosts.own(number).sites.clone()];
            own.iter().map(|mount| mount.folder().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!((hosts.find(Some(b"a.org")), hosts.find(Some(b"z"))), (1, 0));
        assert_eq!(folders(0), ["plain", "plain"]);
        assert_eq!((folders(1), folders(2)), (vec!["x".to_owned(), "a".to_owned()], vec!["b".to_owned()]));
    }

    #[test]
    fn hosts_that_contradict_each_other_are_refused() {
        let twice = prepare(Vec::new(), vec![host(&["a.org"], "a"), host(&["A.org"], "b")]);
        assert!(matches!(twice, Err(HostError::NameTwice { .. })), "{twice:?}");
        let nameless = prepare(Vec::new(), vec![Host::any(), Host::any()]);
        assert!(matches!(nameless, Err(HostError::Nameless)));
        let same = host(&["a.org"], "a")
            .redirect(Redirect::new("/a", "/b", 301).unwrap())
            .redirect(Redirect::new("/a", "/c", 301).unwrap());
        assert!(matches!(prepare(Vec::new(), vec![same]), Err(HostError::Redirect { .. })));
    }
}
