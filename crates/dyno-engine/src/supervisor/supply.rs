//! Folders that are served: a process of its own reads them and hands over images, which the supervisor passes on to the
//! workers without looking into them.
//!
//! The process gives up its rights as workers do before it opens anything. When it dies it is started anew, and the images
//! that there are go on being served.

use super::images::{Arrived, PACKET_BYTES_MAX, REFUSED};
use super::place::{FAILED, Life, OK};
use super::{Event, Supervisor};
use crate::content::{Builders, Built, ContentError, Mount};
use crate::error::{EngineError, refused};
use crate::sandbox::{Kind, Sandbox};
use dyno_sys::child::{self, Wait};
use dyno_sys::clock;
use dyno_sys::signal::{self, Signal};
use dyno_sys::socket::{self, rights};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// How often it is looked for an order while folders are read for the first time.
const LOOK_NS: u64 = 50_000_000;

impl Supervisor<'_> {
    /// Has the folders read; returns when there is an image of each.
    pub(super) fn start_supply(&mut self) -> Result<(), EngineError> {
        if self.images.mounts.is_empty() {
            return Ok(());
        }
        self.start_builder()?;
        while self.images.newest.iter().any(Option::is_none) {
            if self.order().is_some() {
                return Err(refused("read the folders to the end")(io::ErrorKind::Interrupted.into()));
            }
            match self.images.take() {
                Arrived::Image(_) => {}
                Arrived::Refused(why) => return Err(ContentError::Builder { why }.into()),
                Arrived::End => {
                    let why = "the process that reads the folders has ended".to_owned();
                    return Err(ContentError::Builder { why }.into());
                }
                Arrived::NotYet => {
                    let Some(channel) = &self.images.channel else { break };
                    let _ = socket::wait_readable(channel, clock::mono_ns() + LOOK_NS);
                }
            }
        }
        Ok(())
    }

    /// Forks the process that reads folders.
    pub(super) fn start_builder(&mut self) -> Result<(), EngineError> {
        assert!(self.images.builder.pid().is_none(), "folders are read by one process");
        let (ours, theirs) = socket::pair().map_err(refused("open a channel"))?;
        let mut channel = Some(ours);
        let pid = child::fork(|| {
            drop(channel.take());
            self.live_as_builder(&theirs)
        });
        let pid = pid.map_err(refused("fork the process that reads folders"))?;
        if let (Some(ears), Some(channel)) = (&self.ears, &channel) {
            ears.watch_supply(channel).map_err(refused("watch a channel"))?;
        }
        self.images.channel = channel;
        self.images.builder.life = Life::Running { pid, since_ns: clock::mono_ns(), orders: None };
        Ok(())
    }

    fn live_as_builder(&mut self, channel: &OwnedFd) -> i32 {
        let mounts = std::mem::take(&mut self.images.mounts);
        self.leave_parent();
        // A copy of the log's end would keep its writer waiting.
        self.logs.leave_all();
        self.leave_error_log();
        // SIGINT, which comes to the whole terminal group, is blocked here as in the parent; the end of the channel tells when
        // it is over.
        match self.give_up_rights().and_then(|()| child::die_with_parent()) {
            Ok(()) => supply(&mounts, channel, self.config.sandbox),
            Err(_) => FAILED,
        }
    }

    /// Takes new images and passes them on.
    pub(super) fn on_supply(&mut self, on_event: &mut dyn FnMut(Event)) {
        loop {
            match self.images.take() {
                Arrived::Image(number) => self.pass_on(number),
                Arrived::Refused(why) => on_event(Event::ContentStale { why }),
                Arrived::End => {
                    // Its death is told by a signal.
                    self.images.channel = None;
                    return;
                }
                Arrived::NotYet => return,
            }
        }
    }

    /// What was read of the folders at the start.
    pub(super) fn tell_supply(&self, on_event: &mut dyn FnMut(Event)) {
        for (mount, (files, unread)) in self.images.mounts.iter().zip(&self.images.files) {
            let folder = mount.folder().to_owned();
            on_event(Event::Content { folder, files: *files, unread: *unread });
        }
    }

    fn pass_on(&self, number: usize) {
        let Some(image) = &self.images.newest[number] else { return };
        for place in &self.places {
            if let Life::Running { orders: Some(orders), .. } = &place.life {
                // A worker that takes nothing any more is about to end, and its successor starts with the newest.
                let _ = rights::send(orders.as_fd(), number.to_string().as_bytes(), &[image.as_fd()]);
            }
        }
    }

    /// Ends the process that reads folders, whatever it is at.
    pub(super) fn end_supply(&mut self) {
        self.images.channel = None;
        if let Some(pid) = self.images.builder.pid() {
            let _ = signal::kill(pid, Signal::Kill);
            let _ = child::wait(pid, Wait::Block);
        }
        self.images.builder.life = Life::Vacant;
    }
}

/// The life of the process that reads folders.
fn supply(mounts: &[Mount], channel: &OwnedFd, sandbox: Sandbox) -> i32 {
    let say = |why: String| {
        let mut text = format!("{REFUSED}{why}");
        text.truncate(text.floor_char_boundary(PACKET_BYTES_MAX));
        let _ = rights::send(channel.as_fd(), text.as_bytes(), &[]);
        FAILED
    };
    let chain = |error: &ContentError| {
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        format!("{error}{}", source.unwrap_or_default())
    };
    let hand_over = |number: usize, built: Built| {
        let text = format!("{number} {} {}", built.files, built.unread);
        rights::send(channel.as_fd(), text.as_bytes(), &[built.image.as_fd()]).is_ok()
    };
    let mut builders = match Builders::open(mounts) {
        Ok(builders) => builders,
        Err(error) => return say(chain(&error)),
    };
    // The folders are open and the cache is there; nothing of theirs was read yet.
    if let Err(error) = sandbox.enter(Kind::Builder, mounts) {
        return say(error.to_string());
    }
    let first = match builders.first() {
        Ok(first) => first,
        Err(error) => return say(chain(&error)),
    };
    if !first.into_iter().enumerate().all(|(number, image)| hand_over(number, image)) {
        return FAILED;
    }
    let mut is_heard = true;
    let went_on = builders.run(channel, &mut |number, built| is_heard &= hand_over(number, built));
    if went_on.is_ok() && is_heard { OK } else { FAILED }
}
