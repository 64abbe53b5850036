//! Calls one by one, with their first argument and their answer: what a server does for a reply.
//!
//! An audit that measures asks for it, for a moment and a number of calls. Who they are made on is for the caller to find out.

use super::names;
use crate::Tid;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A call that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The thread that made it.
    pub tid: Tid,
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its first argument: a descriptor, for most.
    pub first: i32,
    /// What it answered: below zero an error's number.
    pub answer: i64,
}

/// Where in a call a target stands.
#[derive(Clone, Copy)]
pub(super) enum AtCall {
    Entry { number: u64, first: u64 },
    Exit { answer: i64 },
}

/// Calls so far.
pub(super) struct Watched {
    calls_max: usize,
    open: BTreeMap<Tid, (u64, u64)>,
    pub(super) seen: Vec<Seen>,
    ended: bool,
}

impl Watched {
    /// Nothing is kept where none are asked for.
    pub(super) fn of_at_most(calls_max: usize) -> Watched {
        Watched { calls_max, open: BTreeMap::new(), seen: Vec::new(), ended: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.calls_max > 0 && self.seen.len() >= self.calls_max
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.seen.clear();
    }

    /// What comes while targets are let go is no part of the answer.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn take(&mut self, tid: Tid, at: AtCall) {
        if self.calls_max == 0 || self.ended || self.is_full() {
            return;
        }
        match at {
            AtCall::Entry { number, first } => {
                self.open.insert(tid, (number, first));
            }
            AtCall::Exit { answer } => {
                // One whose entry was not seen was under way when the watching began.
                if let Some((number, first)) = self.open.remove(&tid) {
                    // A descriptor is the lower half of its argument.
                    self.seen.push(Seen { tid, name: names::name(number), first: first as i32, answer });
                }
            }
        }
    }
}
