//! Images when they are needed: the first ones, those with everything encoded, and new ones when files change.
//!
//! The library runs it in a thread, the supervisor in a process of its own. An event of inotify says only that something
//! has changed: the folder is looked at anew, so that no change is lost and none is believed.

use super::build::{Builder, Built, Progress, START_BYTES_MAX, STEP_BYTES_MAX};
use super::error::ContentError;
use super::scan::Scan;
use super::settings::{Mount, Watch};
use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
use dyno_sys::inotify::{Changed, Watches};
use dyno_sys::{clock, priority, user};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// A change is served when nothing more has changed for so long: a program that copies a folder does not pause longer.
const QUIET_MS: i32 = 50;

/// It is served at last after so many such pauses, though changes go on: one second.
const QUIETS_MAX: u32 = 20;

/// How often a folder is looked at that cannot be watched: the kernel's limits for users are reached.
const LOOK_MS: i32 = 10_000;

/// Looks in a row at a folder in which new folders keep appearing, each of which must be watched first.
const LOOKS_MAX: usize = 8;

/// After a build it rests for so many times as long as that took, ten seconds at most: a file that is written all the time
/// must not keep a CPU busy.
const RESTS: u64 = 2;
const REST_NS_MAX: u64 = 10_000_000_000;

/// A failed build is tried again after this, and one that has found files that were being written.
const AGAIN_MS: i32 = 1_000;

/// How often a first image is made anew because files were being written, with a pause before each: one that somebody has
/// just put there, and left open, is taken at the second.
const FIRST_LOOKS: usize = 3;
const FIRST_PAUSE_NS: u64 = 600_000_000;

const STOP: u64 = u64::MAX;

/// Takes a new image of the folder of that number.
pub(crate) type Delivery<'d> = dyn FnMut(usize, Built) + 'd;

/// The builders of all folders, and who tells them of changes.
pub(crate) struct Builders {
    all: Vec<Watched>,
}

struct Watched {
    builder: Builder,
    watches: Option<Watches>,
    /// Whether every folder is watched.
    is_watched: bool,
    /// Whether it was told of a change since it was looked at.
    has_changed: bool,
}

impl Builders {
    /// Opens the folders.
    pub(crate) fn open(mounts: &[Mount]) -> Result<Builders, ContentError> {
        let (uid, _) = user::current();
        let open = |mount: &Mount| {
            let builder = Builder::open(mount.clone(), uid)?;
            let watches = match mount.content.watch {
                Watch::Yes => Watches::new().ok(),
                Watch::No => None,
            };
            Ok(Watched { builder, watches, is_watched: false, has_changed: false })
        };
        Ok(Builders { all: mounts.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// The first image of each folder: what is soon made.
    pub(crate) fn first(&mut self) -> Result<Vec<Built>, ContentError> {
        self.images(START_BYTES_MAX)
    }

    /// An image of each folder in which all is encoded that shall be.
    pub(crate) fn whole(&mut self) -> Result<Vec<Built>, ContentError> {
        self.images(u64::MAX)
    }

    fn images(&mut self, encode_bytes_max: u64) -> Result<Vec<Built>, ContentError> {
        let first = |watched: &mut Watched| {
            let built = watched.first(encode_bytes_max);
            let folder = watched.builder.mount.content.folder.clone();
            built.map_err(|source| ContentError::Folder { folder, source })
        };
        self.all.iter_mut().map(first).collect()
    }

    /// Goes on until `stop` can be read or is at its end.
    pub(crate) fn run(mut self, stop: impl AsFd, deliver: &mut Delivery<'_>) -> io::Result<()> {
        // What is encoded from here on is encoded while requests are answered.
        priority::give_way();
        let epoll = Epoll::new()?;
        epoll.add(stop, STOP, Interest::READ)?;
        for (number, watched) in self.all.iter().enumerate() {
            if let Some(watches) = &watched.watches {
                epoll.add(watches, number as u64, Interest::READ)?;
            }
        }
        let mut events = Events::with_capacity(16);
        loop {
            let began_ns = clock::mono_ns();
            let timeout = self.work(deliver);
            let ended_ns = clock::mono_ns();
            let rested_ns = ended_ns + ((ended_ns - began_ns) * RESTS).min(REST_NS_MAX);
            if self.wait(&epoll, &mut events, timeout)? == Stop::Now {
                return Ok(());
            }
            // More is likely to follow at once.
            for _ in 0..QUIETS_MAX {
                if !self.all.iter().any(|watched| watched.has_changed) {
                    break;
                }
                let before = self.take_changes();
                let stop = self.wait(&epoll, &mut events, Timeout::Millis(QUIET_MS))?;
                if stop == Stop::Now {
                    return Ok(());
                }
                let is_quiet = !self.all.iter().any(|watched| watched.has_changed);
                self.all.iter_mut().zip(before).for_each(|(watched, had)| watched.has_changed |= had);
                if is_quiet {
                    break;
                }
            }
            while let Some(left_ns) = self.rest_ns(rested_ns) {
                let timeout = Timeout::Millis(i32::try_from(left_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX));
                if self.wait(&epoll, &mut events, timeout)? == Stop::Now {
                    return Ok(());
                }
            }
        }
    }

    /// How long to rest yet before a change is looked at.
    fn rest_ns(&self, rested_ns: u64) -> Option<u64> {
        let has_changed = self.all.iter().any(|watched| watched.has_changed);
        let left_ns = rested_ns.saturating_sub(clock::mono_ns());
        (has_changed && left_ns > 0).then_some(left_ns)
    }

    fn take_changes(&mut self) -> Vec<bool> {
        self.all.iter_mut().map(|watched| std::mem::take(&mut watched.has_changed)).collect()
    }

    /// Builds what is to be built, a step of it at most, and says how long to wait for events.
    fn work(&mut self, deliver: &mut Delivery<'_>) -> Timeout {
        let mut timeout_ms: Option<i32> = None;
        for (number, watched) in self.all.iter_mut().enumerate() {
            let began_ns = clock::mono_ns();
            let again_ms = match watched.turn() {
                Ok(image) => {
                    image.into_iter().for_each(|image| deliver(number, image));
                    watched.again_ms(clock::mono_ns() - began_ns)
                }
                // Whatever else is to be done: what fails at once would fail all the time.
                Err(_) => Some(AGAIN_MS),
            };
            let look_ms = watched.is_blind().then_some(LOOK_MS);
            timeout_ms = [timeout_ms, again_ms, look_ms].into_iter().flatten().min();
        }
        timeout_ms.map_or(Timeout::Forever, Timeout::Millis)
    }

    fn wait(&mut self, epoll: &Epoll, events: &mut Events, timeout: Timeout) -> io::Result<Stop> {
        for event in epoll.wait(events, timeout)? {
            if event.token() == STOP {
                return Ok(Stop::Now);
            }
            let watched = &mut self.all[event.token() as usize];
            let changed = watched.watches.as_ref().map_or(Changed::No, Watches::take);
            watched.has_changed |= changed == Changed::Yes;
        }
        Ok(Stop::No)
    }
}

#[derive(PartialEq, Eq)]
enum Stop {
    Now,
    No,
}

impl Watched {
    fn first(&mut self, encode_bytes_max: u64) -> io::Result<Built> {
        let mut newest = None;
        for look in 0..FIRST_LOOKS {
            if look > 0 {
                clock::sleep_ns(FIRST_PAUSE_NS);
            }
            newest = self.build(encode_bytes_max)?.or(newest);
            if !self.builder.is_behind() {
                break;
            }
        }
        newest.ok_or_else(|| io::Error::other("a first image has none before it"))
    }

    /// What has changed, or else a step of what is left to do.
    fn turn(&mut self) -> io::Result<Option<Built>> {
        if std::mem::take(&mut self.has_changed) || self.is_blind() {
            let built = self.build(START_BYTES_MAX);
            // What could not be looked at is looked at again.
            self.has_changed |= built.is_err();
            return built;
        }
        match self.builder.progress() {
            Progress::Whole => Ok(None),
            Progress::Unsettled | Progress::More => self.build(STEP_BYTES_MAX),
        }
    }

    /// When there is more to do after a turn that took so long, if nothing changes.
    fn again_ms(&self, took_ns: u64) -> Option<i32> {
        match self.builder.progress() {
            Progress::More => Some(0),
            // Without being watched nothing is looked at again.
            Progress::Unsettled if self.watches.is_some() => {
                let rest_ms = took_ns * RESTS / 1_000_000;
                Some(AGAIN_MS.max(i32::try_from(rest_ms).unwrap_or(i32::MAX)))
            }
            Progress::Unsettled | Progress::Whole => None,
        }
    }

    /// Whether changes that nobody tells of are to be noticed.
    fn is_blind(&self) -> bool {
        self.watches.is_some() && !self.is_watched
    }

    fn build(&mut self, encode_bytes_max: u64) -> io::Result<Option<Built>> {
        let scan = self.look()?;
        self.builder.build(&scan, encode_bytes_max)
    }

    /// Looks at the folder and sees to it that all that was seen is watched: what changes afterwards is told.
    fn look(&mut self) -> io::Result<Scan> {
        if let Some(watches) = &mut self.watches {
            let folder = &self.builder.mount.content.folder;
            if let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                // Who may not look there learns of another folder under this name when something else changes.
                let _ = watches.add_name(parent, name);
            }
        }
        let mut scan = self.builder.scan()?;
        let Some(watches) = &mut self.watches else { return Ok(scan) };
        for _ in 0..LOOKS_MAX {
            self.is_watched = scan.folders.iter().all(|folder| {
                let added = self.builder.with_folder(folder, |path| watches.add(path));
                // A folder that is gone meanwhile was told of by the one that it was in.
                !matches!(added, Ok(Err(_)))
            });
            let again = self.builder.scan()?;
            let is_same = again.folders == scan.folders;
            scan = again;
            if is_same {
                break;
            }
        }
        Ok(scan)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::content::Content;
    use std::fs;

    /// Red where what is left to do is tried again at once: a CPU would be busy for as long as the folder is away.
    #[test]
    fn what_fails_is_tried_again_after_a_rest() {
        let folder = std::env::temp_dir().join(format!("dyno-watch-{}", std::process::id()));
        let text = "more than is encoded before anything is served\n".repeat(50_000);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.txt"), text).unwrap();
        let content = Content::new(&folder).watch(Watch::No);
        let mut builders = Builders::open(&[Mount::new("/", content).unwrap()]).unwrap();
        builders.first().unwrap();
        assert_eq!(builders.all[0].builder.progress(), Progress::More);
        let away = folder.with_extension("away");
        fs::rename(&folder, &away).unwrap();
        let nobody: &mut Delivery<'_> = &mut |_, _| panic!("there is no image of what is not there");
        assert_eq!(builders.work(nobody), Timeout::Millis(AGAIN_MS), "a step");
        builders.all[0].has_changed = true;
        assert_eq!(builders.work(nobody), Timeout::Millis(AGAIN_MS), "a change");
        assert!(builders.all[0].has_changed, "which is still to be looked at");
        fs::rename(&away, &folder).unwrap();
        let mut delivered = 0;
        for _ in 0..3 {
            builders.work(&mut |_, _| delivered += 1);
        }
        assert_eq!((builders.all[0].builder.progress(), delivered), (Progress::Whole, 2));
        fs::remove_dir_all(folder).unwrap();
    }
}
