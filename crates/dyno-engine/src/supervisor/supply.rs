//! Folders that are served: a process of its own reads them and hands over images, which the supervisor passes on to the
//! workers without looking into them.
//!
//! The process gives up its rights as workers do before it opens anything. When it dies it is started anew, and the images
//! that there are go on being served.

use super::place::{FAILED, Life, OK, Place};
use super::{Event, Supervisor};
use crate::content::{Builders, ContentError, Mount};
use crate::error::{EngineError, refused};
use dyno_sys::child::{self, Wait};
use dyno_sys::clock;
use dyno_sys::signal::{self, Signal, SignalFd};
use dyno_sys::socket::{self, rights};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of a packet: the number of a folder, or a word and the reason why it cannot be served.
const PACKET_BYTES_MAX: usize = 4_096;

/// What a reason begins with.
const REFUSED: &str = "refused: ";

/// How often it is looked for a signal while folders are read for the first time.
const LOOK_NS: u64 = 50_000_000;

/// Images, and who makes them.
pub(super) struct Supply {
    pub(super) mounts: Vec<Mount>,
    /// The newest of each folder.
    pub(super) images: Vec<Option<OwnedFd>>,
    /// Where new ones come in; its end tells the process that it is not needed any more.
    pub(super) channel: Option<OwnedFd>,
    pub(super) builder: Place,
}

/// What came in.
enum Arrived {
    Image(usize),
    Refused(String),
    /// Nothing any more: the process is gone.
    End,
    NotYet,
}

impl Supply {
    pub(super) fn new(mut mounts: Vec<Mount>) -> Supply {
        Mount::sort(&mut mounts);
        let images = mounts.iter().map(|_| None).collect();
        Supply { mounts, images, channel: None, builder: Place::vacant() }
    }

    fn take(&mut self) -> Arrived {
        let Some(channel) = &self.channel else { return Arrived::NotYet };
        let packet = match rights::receive(channel.as_fd(), PACKET_BYTES_MAX) {
            Ok(packet) if !packet.bytes.is_empty() => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Arrived::NotYet,
            Ok(_) | Err(_) => return Arrived::End,
        };
        let text = String::from_utf8_lossy(&packet.bytes).into_owned();
        if let Some(why) = text.strip_prefix(REFUSED) {
            return Arrived::Refused(why.to_owned());
        }
        let number = text.parse().ok().filter(|number| *number < self.images.len());
        match (number, packet.fds.into_iter().next()) {
            (Some(number), Some(image)) => {
                self.images[number] = Some(image);
                Arrived::Image(number)
            }
            _ => Arrived::End,
        }
    }

    /// The newest image of each folder, for a worker that starts.
    pub(super) fn files(&self) -> io::Result<Vec<File>> {
        self.images.iter().flatten().map(|image| image.try_clone().map(File::from)).collect()
    }
}

impl Supervisor<'_> {
    /// Has the folders read; returns when there is an image of each.
    pub(super) fn start_supply(&mut self) -> Result<(), EngineError> {
        if self.supply.mounts.is_empty() {
            return Ok(());
        }
        self.start_builder()?;
        while self.supply.images.iter().any(Option::is_none) {
            let stopped = self.ears.as_ref().and_then(|ears| ears.signals.next());
            if stopped.is_some_and(|signal| matches!(signal, Signal::Term | Signal::Int)) {
                return Err(refused("read the folders to the end")(io::ErrorKind::Interrupted.into()));
            }
            match self.supply.take() {
                Arrived::Image(_) => {}
                Arrived::Refused(why) => return Err(ContentError::Builder { why }.into()),
                Arrived::End => {
                    let why = "the process that reads the folders has ended".to_owned();
                    return Err(ContentError::Builder { why }.into());
                }
                Arrived::NotYet => {
                    let Some(channel) = &self.supply.channel else { break };
                    let _ = socket::wait_readable(channel, clock::mono_ns() + LOOK_NS);
                }
            }
        }
        Ok(())
    }

    /// Forks the process that reads folders.
    pub(super) fn start_builder(&mut self) -> Result<(), EngineError> {
        assert!(self.supply.builder.pid().is_none(), "folders are read by one process");
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
        self.supply.channel = channel;
        self.supply.builder.life = Life::Running { pid, since_ns: clock::mono_ns(), orders: None };
        Ok(())
    }

    fn live_as_builder(&mut self, channel: &OwnedFd) -> i32 {
        let mounts = std::mem::take(&mut self.supply.mounts);
        self.leave_parent();
        // A copy of the log's end would keep its writer waiting.
        self.lines = None;
        // SIGINT comes to the whole terminal group; the end of the channel tells when it is over.
        let deaf = SignalFd::new(&[Signal::Int]);
        match (deaf, self.give_up_rights().and_then(|()| child::die_with_parent())) {
            (Ok(_deaf), Ok(())) => supply(&mounts, channel),
            _ => FAILED,
        }
    }

    /// Takes new images and passes them on.
    pub(super) fn on_supply(&mut self, on_event: &mut dyn FnMut(Event)) {
        loop {
            match self.supply.take() {
                Arrived::Image(number) => self.pass_on(number),
                Arrived::Refused(why) => on_event(Event::ContentStale { why }),
                Arrived::End => {
                    // Its death is told by a signal.
                    self.supply.channel = None;
                    return;
                }
                Arrived::NotYet => return,
            }
        }
    }

    fn pass_on(&self, number: usize) {
        let Some(image) = &self.supply.images[number] else { return };
        for place in &self.places {
            if let Life::Running { orders: Some(orders), .. } = &place.life {
                // A worker that takes nothing any more is about to end, and its successor starts with the newest.
                let _ = rights::send(orders.as_fd(), number.to_string().as_bytes(), &[image.as_fd()]);
            }
        }
    }

    /// Ends the process that reads folders, whatever it is at.
    pub(super) fn end_supply(&mut self) {
        self.supply.channel = None;
        if let Some(pid) = self.supply.builder.pid() {
            let _ = signal::kill(pid, Signal::Kill);
            let _ = child::wait(pid, Wait::Block);
        }
        self.supply.builder.life = Life::Vacant;
    }
}

/// The life of the process that reads folders.
fn supply(mounts: &[Mount], channel: &OwnedFd) -> i32 {
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
    let hand_over = |number: usize, image: File| {
        rights::send(channel.as_fd(), number.to_string().as_bytes(), &[image.as_fd()]).is_ok()
    };
    let mut builders = match Builders::open(mounts) {
        Ok(builders) => builders,
        Err(error) => return say(chain(&error)),
    };
    let first = match builders.first() {
        Ok(first) => first,
        Err(error) => return say(chain(&error)),
    };
    if !first.into_iter().enumerate().all(|(number, image)| hand_over(number, image)) {
        return FAILED;
    }
    let mut is_heard = true;
    let went_on = builders.run(channel, &mut |number, image| is_heard &= hand_over(number, image));
    if went_on.is_ok() && is_heard { OK } else { FAILED }
}
