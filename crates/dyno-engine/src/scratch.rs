//! What a worker's replies are made in: the outbox, heads that are ready, header lines, and who may answer later.
//!
//! One per worker; a [`Reply`](crate::Reply) borrows it for the time of a handler. Its buffers are used again from
//! request to request.

use crate::asked::Asked;
use crate::error_log::{Errors, Level};
use crate::fault::{Fault, planted};
use crate::heads::Heads;
use crate::hosts::{Hosts, Own};
use crate::mailbox::{Address, Mailbox};
use crate::outbox::{Mark, Outbox};
use crate::stats::{Counts, Tally};
use crate::table::Site;
use dyno_proto::semantics::range::Parts;
use dyno_sys::clock;
use std::sync::Arc;

/// The Date is at most this stale: a quarter of a second past the turn of the second.
const DATE_NS: u64 = 250_000_000;

/// Everything that making a reply needs.
pub(crate) struct Scratch {
    pub(crate) out: Outbox,
    pub(crate) heads: Heads,
    pub(crate) tally: Tally,
    /// Header lines that the handler added to the reply in the making, each with its line end.
    pub(crate) own_fields: Vec<u8>,
    /// The media type of the reply in the making, when it is none of those that are prepared.
    pub(crate) media_name: String,
    /// Where a head is put together.
    pub(crate) head: Vec<u8>,
    /// Where a piece of a streamed body is made.
    pub(crate) piece: Vec<u8>,
    /// Where the reply in the making begins, and how it will be framed.
    pub(crate) mark: Mark,
    pub(crate) asked: Asked,
    pub(crate) owing: Owing,
    /// The folders that are served, host by host, those with longer prefixes first.
    pub(crate) sites: Vec<Site>,
    /// What is said of hosts, if anything is.
    pub(crate) hosts: Option<Arc<Hosts>>,
    /// The decoded path of the request at hand.
    pub(crate) name: Vec<u8>,
    /// The parts of the reply in the making, where it has several.
    pub(crate) parts: Parts,
    /// Where it is said what goes wrong.
    pub(crate) errors: Option<Errors>,
}

/// Who may answer later, and how many do.
pub(crate) struct Owing {
    pub(crate) mailbox: Arc<Mailbox>,
    /// The connection whose request is being answered.
    pub(crate) token: u64,
    /// Numbers what is owed.
    serial: u32,
    /// Requests that are answered later, bodies that are streamed and uploads, now.
    pub(crate) outstanding: usize,
    outstanding_max: usize,
    pub(crate) wait_ns: u64,
}

impl Owing {
    /// The address for one more, if there may be one more.
    pub(crate) fn reserve(&mut self) -> Option<Address> {
        if self.outstanding >= self.outstanding_max {
            return None;
        }
        self.serial = self.serial.wrapping_add(1);
        Some(Address { token: self.token, serial: self.serial })
    }

    /// It is owed now.
    pub(crate) fn take_on(&mut self) {
        self.outstanding += 1;
        debug_assert!(self.outstanding <= self.outstanding_max, "no more is owed than may be");
    }

    /// It is owed no more.
    pub(crate) fn release(&mut self) {
        debug_assert!(self.outstanding > 0, "what is released was owed");
        self.outstanding -= 1;
    }
}

impl Scratch {
    pub(crate) fn new(
        tally: Tally,
        mailbox: Arc<Mailbox>,
        outstanding_max: usize,
        wait_ns: u64,
        unix_s: u64,
    ) -> Scratch {
        let owing = Owing { mailbox, token: 0, serial: 0, outstanding: 0, outstanding_max, wait_ns };
        let out = Outbox::new();
        let mark = out.mark();
        Scratch {
            out,
            heads: Heads::new(unix_s),
            tally,
            own_fields: Vec::new(),
            media_name: String::new(),
            head: Vec::new(),
            piece: Vec::new(),
            mark,
            asked: Asked::LAST,
            owing,
            sites: Vec::new(),
            hosts: None,
            name: Vec::new(),
            parts: Parts::default(),
            errors: None,
        }
    }

    pub(crate) fn counts(&mut self) -> &mut Counts {
        &mut self.tally.counts
    }

    /// Formats the date when it may have changed; called once per loop turn.
    #[inline]
    pub(crate) fn turn(&mut self, now_ns: u64) {
        if now_ns >= self.heads.stale_ns {
            self.heads.stale_ns = now_ns + DATE_NS;
            let unix_s = clock::real_coarse_s();
            if unix_s != self.heads.unix_s {
                self.stamp(unix_s);
            }
        }
    }

    /// Formats the date for this second.
    pub(crate) fn stamp(&mut self, unix_s: u64) {
        self.heads.stamp(unix_s);
        self.tally.counts.dates_formatted += 1;
    }

    /// Says what goes wrong, where anybody wants to know.
    #[cold]
    pub(crate) fn complain(&mut self, level: Level, text: std::fmt::Arguments<'_>) {
        if let Some(errors) = &mut self.errors {
            errors.say(self.heads.unix_s, &self.heads.log_dates, level, text);
        }
    }

    /// A reply begins.
    #[inline]
    pub(crate) fn begin(&mut self, asked: Asked) {
        (self.mark, self.asked) = (self.out.mark(), asked);
        debug_assert!(self.own_fields.is_empty(), "the reply before has used its header lines");
    }

    /// The host of the request at hand.
    pub(crate) fn host(&self) -> Option<&Own> {
        self.hosts.as_deref().map(|hosts| hosts.own(self.asked.host))
    }

    /// Appends the header lines that the host's replies have.
    #[inline]
    pub(crate) fn put_host_lines(&mut self) {
        if let Some(hosts) = &self.hosts {
            hosts.own(self.asked.host).lines.put(&mut self.own_fields);
        }
    }

    /// The folder of that host, by its number, in which a decoded path is.
    pub(crate) fn site_of(&self, name: &[u8]) -> Option<usize> {
        let (first, sites) = match self.host() {
            Some(host) => (host.sites.start, &self.sites[host.sites.clone()]),
            None => (0, &self.sites[..]),
        };
        let found = match planted(Fault::ShortestPrefix) {
            true => sites.iter().rposition(|site| site.holds(name)),
            false => sites.iter().position(|site| site.holds(name)),
        };
        Some(first + found?)
    }

    /// Forgets the reply in the making.
    pub(crate) fn take_back(&mut self) {
        debug_assert!(
            self.mark <= self.out.mark(),
            "only what was added since the reply began is taken back"
        );
        self.out.take_back(self.mark);
        self.own_fields.clear();
    }
}
