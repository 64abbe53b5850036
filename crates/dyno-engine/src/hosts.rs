//! Virtual hosts as workers know them, with what an operator says of all replies of one: redirects, header lines, error
//! pages.
//!
//! `host` makes them of what a user says; `name`, `redirect` and `lines` check it. Everything is made when a server starts:
//! a request finds its host by a look at a table, and header lines as bytes. A server of which nothing of this is asked has
//! no [`Hosts`], and its workers no branch for them. Nothing is read here, and no folder is known but by its number.

mod error;
mod lines;
mod name;
mod redirect;

use name::Names;
use std::ops::Range;

pub use error::HostError;
pub(crate) use lines::{Lines, Wanted};
pub(crate) use name::checked;
pub use redirect::Redirect;
pub(crate) use redirect::Redirects;

/// All hosts of a server, ready for requests.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    names: Names,
    /// The first one answers for every name that no other has.
    all: Vec<Own>,
}

/// One host.
#[derive(Debug)]
pub(crate) struct Own {
    /// Its first name; a star where it has none.
    pub(crate) name: Box<str>,
    /// Which of the server's folders are its own.
    pub(crate) sites: Range<usize>,
    pub(crate) redirects: Redirects,
    pub(crate) lines: Lines,
    /// Statuses and the names of the files that are sent with them, below the host's root.
    pub(crate) pages: Box<[(u16, Box<[u8]>)]>,
}

impl Own {
    /// The file that is sent with a status, if it has one.
    pub(crate) fn page(&self, status: u16) -> Option<&[u8]> {
        self.pages.iter().find(|(of, _)| *of == status).map(|(_, name)| &**name)
    }
}

impl Hosts {
    /// One more, with its checked names.
    pub(crate) fn add(&mut self, names: &[String], own: Own) -> Result<(), HostError> {
        let number = u16::try_from(self.all.len()).expect("whoever adds hosts bounds them far below");
        names.iter().try_for_each(|name| self.names.add(name, number))?;
        self.all.push(own);
        Ok(())
    }

    /// The number of the host that is asked; what no host is called is for the first.
    pub(crate) fn find(&self, host: Option<&[u8]>) -> u16 {
        self.names.find(host.unwrap_or_default()).unwrap_or(0)
    }

    /// A host by its number.
    pub(crate) fn own(&self, number: u16) -> &Own {
        &self.all[usize::from(number)]
    }
}
