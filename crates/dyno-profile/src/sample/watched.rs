//! The target while it is watched: its threads and their names, its address spaces, and all stacks that were counted.
//!
//! The recorder hands it the kernel's records in the order of their times.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use dyno_sys::perf::{Inherit, Record, Regs, Sample};
use dyno_sys::{Pid, Tid, proc};

use crate::image::spaces::AddressSpaces;
use crate::sample::session::Session;
use crate::sample::short::Short;
use crate::sample::switches::Away;
use crate::stack::fold::{Folder, Taken};
use crate::unwind::{Cut, Ended, Unwinder, Walked};

/// What is known of the target while it is watched. What always holds:
///
/// - `alive` has no process without a thread: when it is empty the target is gone;
/// - what is kept of a process ends with it (`spaces`, the unwinder's memory): a machine's processes are without end;
/// - weights are counted once: of a sample, or where switches are sampled of the time that follows it (`away`).
pub(crate) struct Watched {
    pub(crate) spaces: AddressSpaces,
    pub(crate) unwinder: Unwinder,
    pub(crate) folder: Folder,
    /// Who is off the CPU since when; only where switches are sampled.
    pub(crate) away: Option<Away>,
    pub(crate) names: HashMap<Tid, String>,
    pub(crate) argv: HashMap<Pid, Vec<String>>,
    /// Threads by process that have not ended.
    pub(crate) alive: HashMap<Pid, HashSet<Tid>>,
    /// Events of the clock in all samples, and samples.
    pub(crate) period: (u64, u64),
    pub(crate) lost: u64,
    /// Time of threads that ended unseen.
    pub(crate) short: Short,
    pub(crate) throttled: u64,
    /// Room for the chains of one sample.
    kernel: Vec<u64>,
    user: Vec<u64>,
}

impl Watched {
    pub(crate) fn new(away: Option<Away>) -> Watched {
        Watched {
            spaces: AddressSpaces::new(),
            unwinder: Unwinder::new(),
            folder: Folder::default(),
            away,
            names: HashMap::new(),
            argv: HashMap::new(),
            alive: HashMap::new(),
            period: (0, 0),
            lost: 0,
            short: Short::default(),
            throttled: 0,
            kernel: Vec::new(),
            user: Vec::new(),
        }
    }

    /// Reads what is known of threads that live already.
    pub(crate) fn add_threads(&mut self, threads: &[(Pid, Tid)], now_ns: u64) {
        for (pid, tid) in threads {
            self.begins(*pid, *tid, now_ns);
            self.alive.entry(*pid).or_default().insert(*tid);
            assert!(*tid > 0 && *pid > 0, "the kernel numbers its tasks from one");
            self.spaces.read(*pid);
            self.name(*tid);
            self.learn_argv(*pid);
        }
    }

    /// The name of a thread, looked up once; later ones come as records.
    fn name(&mut self, tid: Tid) {
        if let Entry::Vacant(unnamed) = self.names.entry(tid) {
            // One that ended already has its process's name.
            if let Ok(name) = proc::name(tid) {
                unnamed.insert(name);
            }
        }
    }

    /// One that ended before it could be asked has the name of whom it came from.
    fn inherit_name(&mut self, tid: Tid, parent: Pid) {
        if let Some(name) = self.names.get(&parent).cloned() {
            self.names.entry(tid).or_insert(name);
        }
    }

    fn learn_argv(&mut self, pid: Pid) {
        if let Some(argv) = proc::command_line(pid).ok().filter(|argv| !argv.is_empty()) {
            self.argv.insert(pid, argv);
        }
    }

    pub(crate) fn take(&mut self, session: &mut Session, record: &Record<'_>) {
        match record {
            Record::Sample(sample) if session.counts(sample) => self.sample(sample),
            Record::Sample(_) => {}
            Record::Mmap(mmap) => self.spaces.mmap(mmap),
            Record::Comm(comm) => {
                self.names.insert(comm.tid, String::from_utf8_lossy(comm.name).into_owned());
                if comm.exec {
                    self.spaces.exec(comm.pid);
                    self.unwinder.forget_process(comm.pid);
                    self.learn_argv(comm.pid);
                }
            }
            Record::Fork(task) => {
                self.spaces.fork(task.pid, task.parent);
                // Where children are not followed their ends are not reported either.
                if session.sampling().inherit == Inherit::Children {
                    self.alive.entry(task.pid).or_default().insert(task.tid);
                }
                let before = self.names.remove(&task.tid).unwrap_or_default();
                self.short.settle(task.tid, &before);
                self.short.begins(task.pid, task.tid);
                self.name(task.tid);
                self.inherit_name(task.tid, task.parent);
                self.begins(task.pid, task.tid, task.time_ns);
            }
            Record::Switch(switch) => {
                if let Some(away) = &mut self.away {
                    away.switched(switch, &mut self.folder);
                }
            }
            Record::Exit(task) => {
                if let Some(away) = &mut self.away {
                    away.ended(task, &mut self.folder);
                }
                session.ended(task.tid);
                if session.sampling().inherit == Inherit::Children {
                    self.ended(task.pid, task.tid);
                } else if task.pid == task.tid && proc::has_ended(task.pid) {
                    // With the whole machine watched no threads are counted, since there is no last one to wait for; what is kept
                    // of a process goes with it, or memory would grow with each.
                    self.forget(task.pid);
                }
            }
            Record::Counted(counted) => self.short.told(counted.tid, counted.events),
            Record::Lost(lost) => self.lost += lost.count,
            Record::Throttle { .. } => self.throttled += 1,
        }
    }

    fn ended(&mut self, pid: Pid, tid: Tid) {
        let Some(threads) = self.alive.get_mut(&pid) else { return };
        threads.remove(&tid);
        if threads.is_empty() {
            self.alive.remove(&pid);
            self.forget(pid);
        }
        debug_assert!(
            self.alive.values().all(|threads| !threads.is_empty()),
            "no process lives without a thread"
        );
    }

    fn forget(&mut self, pid: Pid) {
        self.spaces.exit(pid);
        self.unwinder.forget_process(pid);
    }

    fn begins(&mut self, pid: Pid, tid: Tid, now_ns: u64) {
        if let Some(away) = &mut self.away {
            away.begins(pid, tid, now_ns);
        }
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self, now_ns: u64) {
        if let Some(away) = &mut self.away {
            away.end(now_ns, &mut self.folder);
            assert!(away.is_over(), "every thread's last stretch is counted");
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        self.period.0 += sample.period;
        self.period.1 += 1;
        self.short.sampled(sample.tid, sample.period);
        self.name(sample.tid);
        self.kernel.clear();
        self.kernel.extend(sample.kernel_chain());
        self.user.clear();
        self.user.extend(sample.user_chain());
        let user = self.walk(sample);
        let (pid, tid) = (sample.pid, sample.tid);
        let taken = Taken { pid, tid, kernel: &self.kernel, user: user.as_ref() };
        let key = self.folder.key(&mut self.spaces, &taken);
        match &mut self.away {
            Some(away) => away.leaves(sample.tid, key),
            None => self.folder.count_at(key, sample.period, sample.time_ns),
        }
    }

    /// The user's side of a sample; none in a thread of the kernel.
    fn walk(&mut self, sample: &Sample<'_>) -> Option<Walked> {
        match &sample.regs {
            Regs::Wide(regs) => {
                Some(self.unwinder.unwind(&mut self.spaces, sample.pid, regs, sample.stack, &self.user))
            }
            _ if !self.user.is_empty() => {
                Some(self.unwinder.chained(&mut self.spaces, sample.pid, &self.user))
            }
            Regs::Narrow { ip } => Some(Walked { addresses: vec![*ip], ended: Ended::Cut(Cut::Narrow) }),
            Regs::None => None,
        }
    }
}
