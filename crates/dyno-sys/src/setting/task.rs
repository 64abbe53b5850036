//! A thread's CPUs and its place in line (`sched_setaffinity(2)`, `sched_setattr(2)`).

use super::kind::{Kind, not_exact};
use crate::Tid;
use crate::affinity::{self, CpuSet};
use crate::errno::{checked, checked_long};
use std::io;

pub(super) struct Affinity(pub(super) Tid);

impl Kind for Affinity {
    fn get(&self) -> io::Result<String> {
        affinity::of(self.0).map(|cpus| cpus.to_string())
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let cpus: CpuSet =
            value.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        affinity::set(self.0, &cpus)
    }

    fn same(&self, reads: &str, wanted: &str) -> bool {
        let parsed = |text: &str| text.parse::<CpuSet>().ok();
        parsed(reads).is_some_and(|reads| parsed(wanted) == Some(reads))
    }
}

pub(super) struct Scheduler(pub(super) Tid);

/// `struct sched_attr` as it was first; the kernel takes it for ever.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const POLICIES: [(u32, &str); 5] = [
    (libc::SCHED_OTHER as u32, "other"),
    (libc::SCHED_FIFO as u32, "fifo"),
    (libc::SCHED_RR as u32, "rr"),
    (libc::SCHED_BATCH as u32, "batch"),
    (libc::SCHED_IDLE as u32, "idle"),
];
/// `SCHED_FLAG_RESET_ON_FORK`, and the word for it.
const RESET: u64 = 1;
const RESET_WORD: &str = "reset-on-fork";

impl Kind for Scheduler {
    fn get(&self) -> io::Result<String> {
        let is = attributes(self.0)?;
        let name = POLICIES.iter().find(|(number, _)| *number == is.policy).map(|(_, name)| *name);
        let name = name.ok_or_else(|| not_exact("its class has deadlines, which are not put back here"))?;
        let place = match name {
            "fifo" | "rr" => format!("priority {}", is.priority),
            _ => format!("nice {}", is.nice),
        };
        let reset = if is.flags & RESET == 0 { String::new() } else { format!(" {RESET_WORD}") };
        Ok(format!("{name} {place}{reset}"))
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let wanted = parse(value).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let is = attributes(self.0)?;
        if (is.policy, is.flags & RESET) == (wanted.policy, wanted.flags) && wanted.priority == 0 {
            // This touches nothing but the place: a slice of time that somebody chose stays.
            // SAFETY: the call takes no pointer.
            let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, self.0.cast_unsigned(), wanted.nice) };
            return checked(set).map(|_| ());
        }
        // SAFETY: `wanted` is a whole `struct sched_attr` whose first field is its size, and lives through the call.
        checked_long(unsafe { libc::syscall(libc::SYS_sched_setattr, self.0, &raw const wanted, 0) })
            .map(|_| ())
    }
}

fn attributes(tid: Tid) -> io::Result<Attributes> {
    let (mut is, bytes) = (Attributes::default(), size_of::<Attributes>());
    // SAFETY: `is` is writable for `bytes` bytes, and lives through the call.
    checked_long(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut is, bytes, 0) })?;
    Ok(is)
}

fn parse(value: &str) -> Option<Attributes> {
    let mut words = value.split_whitespace();
    let name = words.next()?;
    let policy = POLICIES.iter().find(|(_, known)| *known == name)?.0;
    let mut wanted = Attributes { size: size_of::<Attributes>() as u32, policy, ..Attributes::default() };
    match (words.next()?, words.next()?) {
        ("nice", number) if !["fifo", "rr"].contains(&name) => wanted.nice = number.parse().ok()?,
        ("priority", number) if ["fifo", "rr"].contains(&name) => wanted.priority = number.parse().ok()?,
        _ => return None,
    }
    match words.next() {
        None => {}
        Some(RESET_WORD) => wanted.flags = RESET,
        Some(_) => return None,
    }
    words.next().is_none().then_some(wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::child;
    use crate::knob::KnobError;
    use crate::setting::{Setting, Task};
    use std::process::{Child, Command};

    /// A process that waits until it is killed.
    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("600").spawn().unwrap()
    }

    fn task(child: &Child) -> Task {
        let pid = child.id().cast_signed();
        Task::of(pid, pid).unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn cpus_and_place_of_a_thread_are_changed_and_put_back() {
        let child = sleeper();
        let (cpus, place) = (Setting::Affinity(task(&child)), Setting::Scheduler(task(&child)));
        let first = crate::affinity::allowed().iter().next().unwrap().to_string();
        let before = (cpus.read().unwrap(), place.read().unwrap());
        cpus.write(first.as_bytes()).unwrap();
        assert!(cpus.holds(first.as_bytes()).unwrap());
        for wanted in ["other nice 5", "batch nice 7", "idle nice 7"] {
            place.write(wanted.as_bytes()).unwrap();
            assert_eq!(place.read().unwrap(), wanted.as_bytes());
        }
        if crate::user::current().0 == 0 {
            place.write(b"fifo priority 3 reset-on-fork").unwrap();
            cpus.put_back(&before.0).unwrap();
            place.put_back(&before.1).unwrap();
            assert_eq!((cpus.read().unwrap(), place.read().unwrap()), before);
        }
        assert!(cpus.write(b"all of them").is_err() && place.write(b"fifo nice 3").is_err());
        end(child);
    }

    /// Planted fault: `missing` compares numbers alone; then another process is put in another place.
    #[test]
    fn a_thread_that_has_ended_and_a_later_one_of_its_number_are_gone() {
        let child = sleeper();
        let later = Task { started: task(&child).started + 1, ..task(&child) };
        assert!(matches!(Setting::Scheduler(later).write(b"other nice 9"), Err(KnobError::Gone { .. })));
        let ended = Setting::Scheduler(task(&child));
        assert_eq!(
            ended.read().unwrap(),
            Setting::Scheduler(Task::of(child::this(), task(&child).tid).unwrap()).read().unwrap()
        );
        end(child);
        assert!(matches!(ended.put_back(b"other nice 0"), Err(KnobError::Gone { .. })));
    }
}
