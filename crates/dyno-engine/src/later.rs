//! Answers that come later: a handler hands the request's answer to somebody else and its worker goes on.

use crate::answer::Answer;
use crate::mailbox::{Address, Mailbox, Message};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether an answer is waited for: its connection says so, whoever makes it asks.
#[derive(Debug, Default)]
pub(crate) struct Waited(AtomicU8);

const HALF: u8 = 1;
const OVER: u8 = 2;

impl Waited {
    /// The client sends no more; whether it reads is not known.
    pub(crate) fn client_has_closed(&self) {
        self.0.fetch_max(HALF, Ordering::Relaxed);
    }

    /// Nobody gets the answer any more.
    pub(crate) fn end(&self) {
        self.0.fetch_max(OVER, Ordering::Relaxed);
    }
}

/// The right to answer one request, from any thread, once. Dropped unanswered it answers 500.
///
/// ```
/// # use dyno_engine::*;
/// Server::new().route(Method::Get, "/", |_request, reply| reply.later(|responder: Responder| {
///     std::thread::spawn(move || responder.answer(Answer::text("from a thread\n")));
/// }));
/// ```
#[must_use = "whoever drops a responder answers 500"]
pub struct Responder {
    mailbox: Arc<Mailbox>,
    address: Address,
    waited: Arc<Waited>,
    is_used: bool,
}

impl Responder {
    pub(crate) fn new(mailbox: Arc<Mailbox>, address: Address, waited: Arc<Waited>) -> Responder {
        Responder { mailbox, address, waited, is_used: false }
    }

    /// Answers. It cannot fail: an answer for which nobody waits any more is dropped.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.later(|responder: Responder| {
    ///     std::thread::spawn(move || responder.answer(Answer::empty().status(204)));
    /// }));
    /// ```
    pub fn answer(mut self, answer: Answer) {
        self.put(answer);
    }

    /// Whether the client has gone, has closed its sending side, or has been told that it took too long: then the work may
    /// as well stop. An answer to a client that has closed its sending side only is still sent.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.later(|responder: Responder| {
    ///     std::thread::spawn(move || {
    ///         let sum: u64 = (0..1_000_000).take_while(|_| !responder.is_gone()).sum();
    ///         responder.answer(Answer::text(sum.to_string()));
    ///     });
    /// }));
    /// ```
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.waited.0.load(Ordering::Relaxed) >= HALF
    }

    /// Whether nobody can get an answer any more: the connection has ended, or the client has been told that it took too
    /// long. Work that has not begun need not begin.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |_request, reply| reply.later(|responder: Responder| {
    ///     std::thread::spawn(move || {
    ///         if !responder.is_over() {
    ///             responder.answer(Answer::text("still wanted\n"));
    ///         }
    ///     });
    /// }));
    /// ```
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waited.0.load(Ordering::Relaxed) >= OVER
    }

    fn put(&mut self, answer: Answer) {
        debug_assert!(!self.is_used, "a request is answered at most once");
        self.is_used = true;
        self.mailbox.put(Message::Answer(self.address, Box::new(answer)));
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_used {
            self.put(Answer::text("the request was not answered\n").status(500));
        }
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Responder({:?})", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(mailbox: &Mailbox) -> Option<u16> {
        mailbox.take().map(|message| match message {
            Message::Answer(_, answer) => answer.status,
            Message::Ready(..) | Message::Fetched(..) | Message::Table(..) => 0,
        })
    }

    #[test]
    fn a_request_is_answered_once_and_with_500_by_who_forgets_it() {
        let mailbox = Mailbox::new(None);
        let address = Address { token: 1, serial: 1 };
        let responder = || Responder::new(Arc::clone(&mailbox), address, Arc::default());
        responder().answer(Answer::text("here").status(201));
        assert_eq!((status(&mailbox), status(&mailbox)), (Some(201), None));
        drop(responder());
        assert_eq!((status(&mailbox), status(&mailbox)), (Some(500), None));
    }
}
