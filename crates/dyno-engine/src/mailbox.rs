//! A worker's mailbox: how other threads reach a worker that must not wait for them.
//!
//! A [`crate::later::Responder`] puts an answer in, a [`Waker`] says that a body has more or takes more. The queue is
//! crossbeam's `SegQueue`: lock-free, so that a thread that is stopped in the middle of a push holds up nobody. It has no
//! bound of its own; the worker bounds how many requests are outstanding, and each has at most two messages in it; what
//! was fetched is told once to each connection that awaits pages. A new table of content comes once per change of files.

use crate::answer::Answer;
use crate::table::Table;
use crossbeam_queue::SegQueue;
use dyno_sys::event::EventFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which request of which connection something is about. A connection that is gone, or has gone on, gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// The connection's token: its entry and generation.
    pub(crate) token: u64,
    /// Counts what was owed on this worker.
    pub(crate) serial: u32,
}

/// What a message says.
pub(crate) enum Message {
    /// The answer to a request that was to be answered later.
    Answer(Address, Box<Answer>),
    /// A body can go on: a source has more bytes, or an upload takes more.
    Ready(Address, Arc<AtomicBool>),
    /// So many bytes of what the connection of this token must send next are in memory; none where they cannot be read.
    Fetched(u64, u64),
    /// What the folder of this number has now.
    Table(usize, Arc<Table>),
}

/// The queue, and how the worker is woken.
pub(crate) struct Mailbox {
    queue: SegQueue<Message>,
    /// Whether the worker was woken and has not looked since.
    is_signalled: AtomicBool,
    /// `None` in a simulation, which looks by itself.
    wake: Option<EventFd>,
}

impl Mailbox {
    pub(crate) fn new(wake: Option<EventFd>) -> Arc<Mailbox> {
        Arc::new(Mailbox { queue: SegQueue::new(), is_signalled: AtomicBool::new(false), wake })
    }

    /// What the worker watches.
    pub(crate) fn event(&self) -> Option<&EventFd> {
        self.wake.as_ref()
    }

    /// Any thread: puts a message in, and wakes the worker unless it was woken already.
    pub(crate) fn put(&self, message: Message) {
        self.queue.push(message);
        self.signal();
    }

    /// The worker, when it was woken. Signals after this wake it again.
    pub(crate) fn open(&self) {
        if let Some(event) = &self.wake {
            event.clear();
        }
        // After the event is cleared and before the queue is read: a message put in between signals anew.
        self.is_signalled.store(false, Ordering::SeqCst);
    }

    /// The next message.
    pub(crate) fn take(&self) -> Option<Message> {
        self.queue.pop()
    }

    /// Wakes the worker, also for what it left in the queue itself.
    pub(crate) fn signal(&self) {
        if !self.is_signalled.swap(true, Ordering::SeqCst)
            && let Some(event) = &self.wake
        {
            event.signal();
        }
    }

    /// Whether there is something to take, for who looks without being woken.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn has_mail(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// Wakes a body that waits: a source that had nothing to send, or an upload that took no more. Any thread may use it.
///
/// ```
/// # use dyno_engine::*;
/// Server::new().route(Method::Get, "/", |_request, reply| reply.stream("text/plain", |waker: Waker| {
///     let (sender, lines) = std::sync::mpsc::channel::<String>();
///     std::thread::spawn(move || {
///         // Who listens no more is not sent anything.
///         let _ = sender.send("a line\n".to_owned());
///         drop(sender);
///         waker.wake();
///     });
///     move |out: &mut Vec<u8>| match lines.try_recv() {
///         Ok(line) => {
///             out.extend_from_slice(line.as_bytes());
///             Filled::More
///         }
///         Err(std::sync::mpsc::TryRecvError::Empty) => Filled::Wait,
///         Err(std::sync::mpsc::TryRecvError::Disconnected) => Filled::End,
///     }
/// }));
/// ```
#[derive(Clone)]
pub struct Waker {
    mailbox: Arc<Mailbox>,
    address: Address,
    /// Whether a message is on its way: more of them would say nothing new.
    is_waking: Arc<AtomicBool>,
}

impl Waker {
    pub(crate) fn new(mailbox: Arc<Mailbox>, address: Address) -> Waker {
        Waker { mailbox, address, is_waking: Arc::new(AtomicBool::new(false)) }
    }

    /// Has the worker ask the body again. It costs a system call only when the worker's mailbox was empty; nothing
    /// happens when the connection is gone.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// fn on_news(waiting: &[Waker]) {
    ///     waiting.iter().for_each(Waker::wake);
    /// }
    /// # on_news(&[]);
    /// ```
    pub fn wake(&self) {
        if !self.is_waking.swap(true, Ordering::SeqCst) {
            self.mailbox.put(Message::Ready(self.address, Arc::clone(&self.is_waking)));
        }
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Waker({:?})", self.address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HERE: Address = Address { token: 1, serial: 2 };

    #[test]
    fn a_waker_puts_one_message_in_until_it_was_heard() {
        let mailbox = Mailbox::new(None);
        let waker = Waker::new(Arc::clone(&mailbox), HERE);
        waker.wake();
        waker.wake();
        let Some(Message::Ready(address, is_waking)) = mailbox.take() else { panic!("no message") };
        assert_eq!(address, HERE);
        assert!(mailbox.take().is_none());
        is_waking.store(false, Ordering::SeqCst);
        waker.wake();
        assert!(mailbox.has_mail());
    }

    #[test]
    fn a_message_after_the_worker_has_looked_wakes_it_again() {
        let mailbox = Mailbox::new(Some(EventFd::new().unwrap()));
        let ready = |mailbox: &Mailbox| {
            let deadline_ns = 0;
            dyno_sys::socket::wait_readable(mailbox.event().unwrap(), deadline_ns).unwrap()
        };
        assert_eq!(ready(&mailbox), dyno_sys::socket::Ready::TimedOut);
        for _ in 0..2 {
            mailbox.put(Message::Answer(HERE, Box::new(Answer::empty())));
            mailbox.put(Message::Answer(HERE, Box::new(Answer::empty())));
            assert_eq!(ready(&mailbox), dyno_sys::socket::Ready::Yes);
            mailbox.open();
            assert!(mailbox.take().is_some() && mailbox.take().is_some());
            assert_eq!(ready(&mailbox), dyno_sys::socket::Ready::TimedOut);
        }
    }
}
