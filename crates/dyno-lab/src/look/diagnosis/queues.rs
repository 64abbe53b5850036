//! The queues of the target's listeners, of TCP and of unix sockets, looked at often.
//!
//! A worker process has its own descriptor of a listener that all share: a queue is one by its inode. Of a unix listener the
//! kernel tells the queue by `unix_diag`; where that is not there, or the target sees another network than this program, the
//! table of unix sockets shows how long it is, and not how long it may be.

use std::collections::BTreeMap;

use dyno_record::observation::{Datagrams, Queue};
use dyno_sys::netlink::sock_diag::UnixQueues;
use dyno_sys::proc::{self, UnixListenerLine};
use dyno_sys::{Pid, child, connections};

/// Unix listeners that are looked at.
const UNIX_MAX: usize = 32;

/// What was seen of each.
#[derive(Default)]
pub(super) struct Queues {
    each: BTreeMap<u64, Queue>,
    /// What each had dropped when it was looked at first.
    dropped: BTreeMap<u64, u32>,
    unix: Vec<UnixListenerLine>,
    receivers: connections::Receivers,
    datagrams: Datagrams,
    /// Datagrams that had found no room at the last look at the same sockets.
    drops: Option<u64>,
    by: Option<By>,
    unlimited: Option<&'static str>,
}

/// How the queues of unix listeners are read.
enum By {
    Kernel(UnixQueues),
    Table,
}

impl Queues {
    /// Those of a process and its children. To find out how they can be read takes its own time, and no window's.
    pub(super) fn of(pid: Pid) -> Queues {
        let mut queues = Queues::default();
        queues.list(&proc::tree(pid));
        queues
    }

    /// Looks up anew which unix listeners and UDP sockets these processes hold.
    pub(super) fn list(&mut self, pids: &[Pid]) {
        let receivers = connections::Receivers::of(pids);
        if receivers != self.receivers {
            (self.receivers, self.drops) = (receivers, None);
        }
        self.unix = proc::unix_listeners(pids);
        self.unix.truncate(UNIX_MAX);
        if let (None, Some(first)) = (&self.by, pids.first().filter(|_| !self.unix.is_empty())) {
            self.by = Some(match opened(*first) {
                Ok(queues) => By::Kernel(queues),
                Err(why) => self.by_table(why),
            });
        }
    }

    fn by_table(&mut self, why: &'static str) -> By {
        self.unlimited = Some(why);
        By::Table
    }

    /// Why limits are not known, where they are not.
    pub(super) fn unlimited(&self) -> Option<&'static str> {
        self.unlimited
    }

    /// Looks at all UDP sockets once: how many there are, and in how many of them datagrams wait.
    pub(super) fn look_at_datagrams(&mut self, pid: Pid) -> (usize, u64) {
        if self.receivers.is_empty() {
            return (0, 0);
        }
        let now = self.receivers.look(pid);
        self.datagrams.sockets = self.receivers.len() as u64;
        self.datagrams.looks += 1;
        self.datagrams.looks_waiting += u64::from(now.waiting > 0);
        self.datagrams.dropped += now.drops.saturating_sub(self.drops.unwrap_or(now.drops));
        self.drops = Some(now.drops);
        (self.receivers.len(), now.waiting as u64)
    }

    /// What was seen of its UDP sockets.
    pub(super) fn datagrams(&self) -> Option<Datagrams> {
        (self.datagrams.looks > 0).then_some(self.datagrams)
    }

    /// Looks at all unix listeners once: how many there are, and how many connections wait in all.
    pub(super) fn look(&mut self, pid: Pid) -> (usize, u64) {
        let unix = std::mem::take(&mut self.unix);
        let table = if matches!(self.by, Some(By::Table)) { proc::unix_table(pid) } else { String::new() };
        let mut all = 0;
        for line in &unix {
            let Some((waiting, backlog)) = self.of_unix(line, &table) else { continue };
            self.take(line.inode, || line.name.clone(), waiting, backlog);
            all += u64::from(waiting);
        }
        let listeners = unix.len();
        self.unix = unix;
        (listeners, all)
    }

    fn of_unix(&mut self, line: &UnixListenerLine, table: &str) -> Option<(u32, Option<u32>)> {
        match self.by.as_mut()? {
            By::Table => Some((proc::unix_waiting(table, &line.name), None)),
            // One that was closed meanwhile is no longer there.
            By::Kernel(queues) => {
                let queue = queues.of(u32::try_from(line.inode).ok()?).ok()?;
                Some((queue.waiting, Some(queue.backlog)))
            }
        }
    }

    /// Counts a look at a listener.
    pub(super) fn take(
        &mut self,
        inode: u64,
        local: impl FnOnce() -> String,
        waiting: u32,
        backlog: Option<u32>,
    ) {
        let new = || Queue { local: local(), ..Queue::default() };
        let queue = self.each.entry(inode).or_insert_with(new);
        queue.looks += 1;
        queue.looks_waiting += u64::from(waiting > 0);
        queue.waiting += u64::from(waiting);
        queue.most = queue.most.max(waiting.into());
        queue.backlog = backlog;
    }

    /// What a listener that was looked at has dropped since it was made.
    pub(super) fn take_dropped(&mut self, inode: u64, dropped: u32) {
        let first = *self.dropped.entry(inode).or_insert(dropped);
        if let Some(queue) = self.each.get_mut(&inode) {
            queue.dropped = dropped.wrapping_sub(first).into();
        }
    }

    /// All of them, that in which most waited first.
    pub(super) fn finish(self) -> Vec<Queue> {
        let mut all: Vec<Queue> = self.each.into_values().collect();
        all.sort_by_key(|queue| std::cmp::Reverse(queue.waiting));
        all
    }
}

/// Ready to ask the kernel for the queues of what `pid` holds, or why it is not asked.
fn opened(pid: Pid) -> Result<UnixQueues, &'static str> {
    if !proc::same_network(pid, child::this()) {
        return Err("it sees another network than this program, and /proc/net/unix has no limits");
    }
    if !connections::has_unix_part() {
        return Err("the kernel's part unix_diag is not loaded, and /proc/net/unix has no limits");
    }
    UnixQueues::open().map_err(|_refused| "netlink is refused, and /proc/net/unix has no limits")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    /// Planted faults: all that was dropped since it was made; each look's drops are the whole.
    #[test]
    fn what_a_listener_drops_is_counted_from_the_first_look_on() {
        let mut queues = Queues::default();
        for dropped in [70, 72, 75] {
            queues.take(1, || "0.0.0.0:80".to_owned(), 0, Some(8));
            queues.take_dropped(1, dropped);
        }
        assert_eq!(queues.finish().remove(0).dropped, 5);
    }

    /// Planted fault: the table counts every connection that bears the listener's name, accepted ones too.
    #[test]
    fn a_unix_listeners_queue_is_the_same_whoever_tells_it() {
        let name = format!("dyno-lab-{}-queue", std::process::id());
        let at = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&at).unwrap();
        let _clients = [(); 3].map(|()| UnixStream::connect_addr(&at).unwrap());
        let _accepted = listener.accept().unwrap();
        let me = child::this();
        let seen = |by_table: bool| {
            let mut queues = Queues::of(me);
            if by_table {
                queues.by = Some(queues.by_table("a test"));
            }
            queues.unix.retain(|line| line.name == format!("@{name}"));
            assert_eq!(queues.look(me), (1, 2));
            queues.finish().remove(0)
        };
        let (told, shown) = (seen(false), seen(true));
        assert_eq!((shown.waiting, shown.looks_waiting, shown.most, shown.backlog), (2, 1, 2, None));
        assert_eq!(Queue { backlog: None, ..told }, shown);
    }
}
