//! The newest image of each folder that is served, and the process that makes them. Nothing here looks into an image.

use super::place::Place;
use crate::content::Mount;
use dyno_sys::socket::rights;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of a packet: the number of a folder, or a word and the reason why it cannot be served.
pub(super) const PACKET_BYTES_MAX: usize = 4_096;

/// What a reason begins with.
pub(super) const REFUSED: &str = "refused: ";

/// Images, and who makes them.
pub(super) struct Images {
    pub(super) mounts: Vec<Mount>,
    /// The newest of each folder.
    pub(super) newest: Vec<Option<OwnedFd>>,
    /// How many files are in it, and how many could not be read.
    pub(super) files: Vec<(usize, usize)>,
    /// Where new ones come in; its end tells the process that it is not needed any more.
    pub(super) channel: Option<OwnedFd>,
    pub(super) builder: Place,
}

/// What came in.
pub(super) enum Arrived {
    Image(usize),
    Refused(String),
    /// Nothing any more: the process is gone.
    End,
    NotYet,
}

impl Images {
    pub(super) fn new(mut mounts: Vec<Mount>) -> Images {
        Mount::sort(&mut mounts);
        let newest = mounts.iter().map(|_| None).collect();
        let files = mounts.iter().map(|_| (0, 0)).collect();
        Images { mounts, newest, files, channel: None, builder: Place::vacant() }
    }

    /// The next that has come.
    pub(super) fn take(&mut self) -> Arrived {
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
        let numbers: Vec<usize> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        match (&numbers[..], packet.fds.into_iter().next()) {
            (&[number, files, unread], Some(image)) if number < self.newest.len() => {
                self.newest[number] = Some(image);
                self.files[number] = (files, unread);
                Arrived::Image(number)
            }
            _ => Arrived::End,
        }
    }

    /// The newest image of each folder, for a worker that starts.
    pub(super) fn files(&self) -> io::Result<Vec<File>> {
        self.newest.iter().flatten().map(|image| image.try_clone().map(File::from)).collect()
    }
}
