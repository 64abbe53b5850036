//! Tables made beside the loops that will use them: a table of twenty thousand files takes a tenth of a second to make and
//! some to free, for which no request must wait.
//!
//! A worker starts such a thread when the first new image comes, the library's server with the first image of all. It
//! works on what the loops leave of the CPU, and ends with whoever holds its [`Tables`].

use super::load::table_of;
use super::settings::Mount;
use crate::table::Table;
use dyno_sys::priority;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often it is looked whether an old table is still used: its user lets go of it between two turns.
const LOOK: Duration = Duration::from_millis(20);

/// Where images are handed in.
#[derive(Debug)]
pub(crate) struct Tables {
    images: Sender<(usize, File)>,
}

/// The thread's own.
struct Making<P> {
    mounts: Vec<Mount>,
    /// Kept, so that whoever gives one up for another has nothing to free.
    current: Vec<Arc<Table>>,
    old: Vec<Arc<Table>>,
    put: P,
}

impl Tables {
    /// Starts the thread. `current` are the tables in use; `put` takes a new one, by its folder's number.
    pub(crate) fn start<P>(mounts: Vec<Mount>, current: Vec<Arc<Table>>, put: P) -> io::Result<Tables>
    where
        P: Fn(usize, Arc<Table>) + Send + 'static,
    {
        assert_eq!(mounts.len(), current.len(), "each folder has its table");
        let (images, handed_in) = channel();
        let making = Making { mounts, current, old: Vec::new(), put };
        thread::Builder::new().name("dyno-tables".to_owned()).spawn(move || making.run(&handed_in))?;
        Ok(Tables { images })
    }

    /// Has a table made of an image, after those that were handed in before.
    pub(crate) fn make(&self, number: usize, image: File) {
        // A thread that has panicked makes no tables any more: what is there is served.
        let _ = self.images.send((number, image));
    }
}

impl<P: Fn(usize, Arc<Table>)> Making<P> {
    fn run(mut self, images: &Receiver<(usize, File)>) {
        priority::give_way();
        loop {
            let handed_in = match self.old.is_empty() {
                true => images.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => images.recv_timeout(LOOK),
            };
            match handed_in {
                Ok((number, image)) => self.make(number, image),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.old.retain(|table| Arc::strong_count(table) > 1);
        }
    }

    /// An image that cannot be used leaves the table where it is.
    fn make(&mut self, number: usize, image: File) {
        let Some(mount) = self.mounts.get(number) else { return };
        let Ok(table) = table_of(image, mount) else { return };
        let table = Arc::new(table);
        let old = std::mem::replace(&mut self.current[number], Arc::clone(&table));
        self.old.push(old);
        (self.put)(number, table);
    }
}
