//! What the goroutines of a Go program wait for, as far as locks and disks are concerned. The rules for those read it.
//!
//! A goroutine that waits for a mutex could work; one that waits for a channel, a timer or the network has nothing to do.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use dyno_record::observation;
use dyno_record::profile::{Profile, WaitClass};

use super::frames::leaf_first;
use super::names;
use super::waits::{OffCpu, ThreadTime};

/// Fewer that wait, on average, hold nothing up, however little is done besides.
pub(super) const WAITING_MIN: f64 = 0.1;

/// Where the reason is that of a lock and there is none: up to Go 1.23 who waits for goroutines to end tells it, and always who
/// waits inside the run-time for its collector (`runtime.semacquire`; a mutex comes by `sync.runtime_SemacquireMutex`).
const NO_MUTEX: &[&str] = &["sync.(*WaitGroup).Wait", COLLECTOR];
const COLLECTOR: &str = "runtime.semacquire";

/// Of the threads that are busy, those at a disk from which on a mutex is held for it.
const AT_DISK_MIN: f64 = 0.4;

/// Goroutines at mutexes, against those that do something.
pub(super) struct AtMutexes {
    /// Share of the goroutines that could work.
    pub(super) share: f64,
    /// How many waited, on average.
    pub(super) waiting: f64,
    /// Whether whoever holds the mutex waits for a disk.
    pub(super) behind_disk: bool,
    /// The program's function in which most waited.
    pub(super) place: Option<String>,
}

impl AtMutexes {
    pub(super) fn of(seen: &observation::Goroutines, off: Option<&OffCpu<'_>>) -> AtMutexes {
        let state = |name: &str| seen.states.get(name).copied().unwrap_or(0.0);
        let active = state("running") + state("runnable") + state("in a system call");
        let no_mutex = seen.mutexes_in.iter().filter(|(name, _)| names::is(name, NO_MUTEX));
        let waiting = (seen.at_mutexes - no_mutex.map(|(_, many)| many).sum::<f64>()).max(0.0);
        let share = if waiting >= WAITING_MIN { waiting / (waiting + active) } else { 0.0 };
        let own = seen.mutexes_in.iter().filter(|(name, _)| !names::is(name, RUN_TIME));
        let mut own: Vec<(&String, &f64)> = own.collect();
        // A server of the standard library lies below all that it serves: the program's own function says more.
        own.sort_by(|a, b| {
            (is_standard(a.0), b.1).partial_cmp(&(is_standard(b.0), a.1)).unwrap_or(Ordering::Equal)
        });
        let functions: BTreeSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        AtMutexes {
            share,
            waiting,
            behind_disk: off.is_some_and(|off| held_at_disk(off, &functions)),
            place: own.first().map(|(name, _)| (*name).clone()),
        }
    }
}

/// How many goroutines wait for the collector to let them go on, on average.
pub(super) fn at_collector(seen: &observation::Goroutines) -> f64 {
    seen.mutexes_in.get(COLLECTOR).copied().unwrap_or(0.0)
}

/// Whether a function is of Go's standard library, by the first part of its package's path.
fn is_standard(function: &str) -> bool {
    let end = function.find(['/', '.']).unwrap_or(function.len());
    STANDARD.contains(&&function[..end])
}

/// The folders of Go's standard library whose code may wait, or call who does.
const STANDARD: [&str; 36] = [
    "archive",
    "bufio",
    "bytes",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "hash",
    "html",
    "image",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "reflect",
    "regexp",
    "slices",
    "sort",
    "strconv",
    "strings",
    "testing",
    "text",
    "unique",
];

/// Go's own functions.
const RUN_TIME: &[&str] = &["runtime.*", "sync.*", "internal/*", "sync/*", "0x*"];

/// The disk is waited for in a function in which mutexes are waited for, and for much of the time in which anything is done.
fn held_at_disk(off: &OffCpu<'_>, functions: &BTreeSet<&str>) -> bool {
    let (disk, busy) = (off.sum(at_disk), off.sum(|time| time.run + time.disk));
    disk as f64 >= AT_DISK_MIN * busy as f64 && disk > 0 && waits_in(off.profile, functions)
}

fn at_disk(time: &ThreadTime) -> u64 {
    time.disk + time.syncing
}

fn waits_in(profile: &Profile, functions: &BTreeSet<&str>) -> bool {
    let at_disk = profile
        .stacks
        .iter()
        .filter(|stack| stack.wait.as_ref().is_some_and(|wait| wait.class == WaitClass::Disk));
    let mut frames = at_disk.flat_map(|stack| leaf_first(profile, stack));
    frames.any(|frame| functions.contains(frame.name.as_str()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use dyno_record::finding::Class;
    use dyno_record::observation::Goroutines;
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    fn goroutines(scene: Scene, at_mutexes: f64, running: f64) -> Scene {
        let states = [("sync.Mutex.Lock", at_mutexes), ("running", running), ("IO wait", 40.0)];
        let states = states.map(|(name, many)| (name.to_owned(), many));
        scene.with(|seen| {
            seen.goroutines = Some(Goroutines {
                looks: 50,
                states: BTreeMap::from(states),
                at_mutexes,
                mutexes_in: BTreeMap::from([("main.serve".to_owned(), at_mutexes)]),
                ..Goroutines::default()
            });
        })
    }

    #[test]
    fn goroutines_that_wait_for_a_mutex_contend_and_those_that_wait_for_requests_do_not() {
        let busy = || Scene::new(&[5.0, 5.0]).on("main.serve;main.count", 100);
        assert_eq!(goroutines(busy(), 7.0, 1.0).classes(), [Class::LockContention]);
        assert_eq!(goroutines(busy(), 0.1, 1.0).classes(), []);
        let place = goroutines(busy(), 7.0, 1.0).diagnosed().findings[0].next[0].code.clone();
        assert_eq!(place.as_deref(), Some("main.serve"));
    }

    /// Planted faults: who waits for goroutines to end counted as at a lock; no floor, so that a moment of an idle daemon is
    /// all of its time.
    #[test]
    fn goroutines_that_wait_for_others_to_end_and_moments_are_no_contention() {
        let idle = || Scene::new(&[0.2, 0.2]).on("main.tick", 100);
        let ends = goroutines(idle(), 1.0, 0.3).with(|seen| {
            let functions = &mut seen.goroutines.as_mut().unwrap().mutexes_in;
            functions.insert("sync.(*WaitGroup).Wait".to_owned(), 1.0);
        });
        assert_eq!(ends.classes(), []);
        assert_eq!(goroutines(idle(), 1.0, 0.3).classes(), [Class::LockContention]);
        assert_eq!(goroutines(idle(), 0.02, 0.02).classes(), []);
    }

    /// Planted faults: the run-time's own semaphore taken for a mutex; all that wait left out once some wait for the collector.
    #[test]
    fn who_waits_for_the_collector_waits_for_no_mutex() {
        let busy = || Scene::new(&[5.0, 5.0]).on("main.serve;main.count", 100);
        let collects = |many: f64| {
            goroutines(busy(), 7.0, 1.0).with(|seen| {
                let functions = &mut seen.goroutines.as_mut().unwrap().mutexes_in;
                functions.insert("runtime.semacquire".to_owned(), many);
            })
        };
        assert_eq!(collects(7.0).classes(), []);
        assert_eq!(collects(4.0).classes(), [Class::LockContention]);
    }

    /// Planted fault: the function that most stacks have, which is the server's.
    #[test]
    fn the_programs_own_function_is_told_before_the_standard_librarys() {
        let served =
            goroutines(Scene::new(&[5.0, 5.0]).on("main.serve;main.count", 100), 7.0, 1.0).with(|seen| {
                let functions = &mut seen.goroutines.as_mut().unwrap().mutexes_in;
                functions.insert("net/http.(*Server).Serve.gowrap3".to_owned(), 7.5);
                functions.insert("network.local/shop.(*Cart).add".to_owned(), 3.0);
            });
        assert_eq!(served.diagnosed().findings[0].next[0].code.as_deref(), Some("main.serve"));
    }

    /// Planted fault: the time of threads, which run other goroutines meanwhile, beside the number of those that wait.
    #[test]
    fn waits_of_goroutines_are_no_share_of_their_threads_time() {
        let busy = Scene::new(&[5.0, 5.0]).on("main.serve;main.count", 100);
        let said = goroutines(busy, 30.2, 1.0).diagnosed();
        let finding = &said.findings[0];
        assert_eq!(finding.summary, "97 % of the goroutines that could work wait for locks");
        let facts: Vec<&str> = finding.evidence.iter().map(|fact| fact.text.as_str()).collect();
        assert!(facts.iter().any(|fact| fact.starts_with("30.2 goroutines wait")), "{facts:?}");
        assert!(facts.iter().all(|fact| !fact.starts_with("0.0 %")), "{facts:?}");
    }

    /// A stripped Go program whose goroutines stand at a mutex: its threads wait for goroutines to run. Planted faults: the rules
    /// without `as_goroutines_show`, which say no; one that leaves notes as they are; one that also covers what was found.
    #[test]
    fn where_goroutines_could_not_be_read_locks_and_pools_are_not_seen_unless_something_else_shows_them() {
        let blind = |scene: Scene| scene.with(|seen| seen.goroutines = Some(Goroutines::default()));
        let asleep = Scene::new(&[1.0, 1.0]).on("main.serve;main.count", 100).off(
            1,
            WaitClass::Lock,
            "runtime.schedule;runtime.futex;futex_wait_[k]",
            9.0,
        );
        let unseen = |scene: Scene| -> Vec<String> {
            let said = scene.diagnosed();
            assert!(said.ruled_out.iter().all(|out| !OF_GOROUTINES.contains(&out.class)), "{said:#?}");
            said.not_looked_at.into_iter().map(|one| format!("{}: {}", one.what, one.why)).collect()
        };
        let of_both = OF_GOROUTINES.map(|class| format!("{class}: it needs what goroutines wait for"));
        let told = unseen(blind(asleep));
        assert!(of_both.iter().all(|one| told.contains(one)), "{told:?}");
        // Threads that sleep by a clock are seen; whether goroutines wait for them is not.
        let mut sleepers = Scene::new(&[0.05; 8]).on("run;work", 100);
        for tid in 1..=8 {
            sleepers = sleepers.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.9);
        }
        let said = blind(sleepers).diagnosed();
        assert!(said.notes.iter().any(|note| note.class == Class::PoolLimit), "{:?}", said.notes);
        assert!(said.not_looked_at.iter().any(|one| one.what == Class::PoolLimit.name()));
        // What spins inside the kernel needs no goroutine to be seen, and on full CPUs no sleeper holds anybody up.
        let full = || Scene::new(&[9.9, 9.9]);
        let spins = "main.serve;epoll_wait_[k];native_queued_spin_lock_slowpath_[k]";
        let found = blind(full().on("main.serve;main.count", 60).on(spins, 40));
        assert_eq!(found.classes(), [Class::LockContention]);
        let said = blind(full().on("main.serve;main.count", 100)).diagnosed();
        assert!(said.ruled_out.iter().any(|out| out.class == Class::PoolLimit), "{:?}", said.ruled_out);
    }

    const OF_GOROUTINES: [Class; 2] = [Class::LockContention, Class::PoolLimit];

    #[test]
    fn a_mutex_that_is_held_while_a_disk_is_waited_for_is_synchronous_io() {
        let held = |way: &str, run_s: f64, disk_s: f64| {
            let scene = Scene::new(&[run_s, run_s]).on("main.serve;main.count", 100);
            let scene = scene.off(1, WaitClass::Disk, &format!("{way};syscall.Fsync;do_fsync_[k]"), disk_s);
            goroutines(scene, 7.0, 0.2)
        };
        assert_eq!(held("main.serve;os.(*File).Sync", 0.5, 1.0).classes(), [Class::SyncIo]);
        // Planted faults: whoever was at a disk once holds it for that; so does who is there in another function.
        let is_held = |way: &str, disk_s: f64| {
            let scene = held(way, 3.0, disk_s);
            crate::facts::Facts::new(&scene.seen).at_mutexes.unwrap().behind_disk
        };
        let serve = "main.serve;os.(*File).Sync";
        assert_eq!([0.0, 3.9, 4.0].map(|disk_s| is_held(serve, disk_s)), [false, false, true]);
        assert!(!is_held("main.write;os.(*File).Sync", 4.0));
    }
}
