//! Records a profile: drains rings, keeps address spaces up to date, unwinds each sample, and writes the record.
//!
//! The binary calls [`record`], or [`Recorder`] where a program is to be started between opening and sampling. Ends when
//! the time is over, the target is gone, or `stop` is set; whatever was sampled until then is in the profile.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_record::profile::{self, Kind, Overhead, PROFILE_SCHEMA, Profile};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock::{mono_ns, process_cpu_ns, real_coarse_s};
use dyno_sys::perf::{Kernel, Record, STACK_BYTES_MAX, records};
use dyno_sys::{Pid, Tid, child, proc};

use crate::error::Error;
use crate::sample::hints::hints;
use crate::sample::options::{CallGraph, Event, Options, Target};
use crate::sample::session::{Session, process_of};
use crate::sample::switches::Away;
use crate::sample::watched::Watched;
use crate::stack::names::Names;
use crate::symbol::Symbols;
use crate::unwind::{by_words, causes};

/// The rings are looked at this often even when none is a quarter full: an end is noticed as late as that.
const ROUND_NS: u64 = 50_000_000;

/// A record is in its ring this long after its time at the latest: the kernel writes it right away, but a virtual CPU may
/// be taken away in between.
const SLACK_NS: u64 = 2_000_000;

/// Processes are asked this often whether they still live, for records of their ends that were lost.
const ALIVE_EVERY_NS: u64 = 1_000_000_000;

const NS_PER_S: f64 = 1e9;

/// Watches a target until the time is over, it ends, or `stop` is set (seen within a twentieth of a second).
///
/// # Errors
/// When nothing can be sampled; see [`Error`]. Once sampling has begun there is a profile, however short.
pub fn record(target: &Target, options: &Options, stop: &AtomicBool) -> Result<Profile, Error> {
    Recorder::open(target, options)?.record(stop)
}

/// Everything is open; nothing is sampled yet. While it samples `queue` has whole records in the order of their times;
/// none of them is older than what was taken in, but for records that came late.
pub struct Recorder {
    target: Target,
    options: Options,
    asked_hz: u64,
    session: Session,
    watched: Watched,
    queue: Vec<Queued>,
    hung_up: HashSet<usize>,
    next_look_ns: u64,
    /// The thread that is to be watched has ended; its process may live.
    is_thread_gone: bool,
}

/// A record that waits for older ones of other rings.
struct Queued {
    time_ns: u64,
    bytes: Rc<Vec<u8>>,
    range: Range<usize>,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Time,
    Stopped,
    TargetGone,
}

impl Recorder {
    /// Opens the events on a target.
    ///
    /// # Errors
    /// When the target is not there or may not be watched, or the machine cannot.
    pub fn open(target: &Target, options: &Options) -> Result<Recorder, Error> {
        may_be_watched(target)?;
        let asked_hz = options.frequency_hz;
        let options = Options {
            stack_bytes: options.stack_bytes.min(STACK_BYTES_MAX) & !7,
            frequency_hz: asked_hz.clamp(1, frequency_max()),
            ..options.clone()
        };
        assert!(
            options.stack_bytes <= STACK_BYTES_MAX && options.stack_bytes.is_multiple_of(8),
            "as perf wants it"
        );
        let session = Session::open(target, &options)?;
        let away = (options.event == Event::Switches).then(|| Away::new(options.min));
        Ok(Recorder {
            target: target.clone(),
            asked_hz,
            options,
            session,
            watched: Watched::new(away),
            queue: Vec::new(),
            hung_up: HashSet::new(),
            next_look_ns: mono_ns() + ALIVE_EVERY_NS,
            is_thread_gone: false,
        })
    }

    /// Samples until the end, and names what was seen.
    ///
    /// # Errors
    /// When sampling cannot begin, or the kernel does not let us wait for it.
    pub fn record(mut self, stop: &AtomicBool) -> Result<Profile, Error> {
        let mut profile = self.head();
        let (begun_ns, cpu_ns) = (mono_ns(), own_cpu_ns());
        if self.options.event != Event::Switches {
            self.watched.folder.begin(begun_ns);
        }
        self.session.enable()?;
        // After the events: what is mapped from here on comes as a record.
        self.watched.add_threads(self.session.threads(), begun_ns);
        // Events of many threads take their time to be enabled: what was asked for begins when all of them are.
        let end = self.watch(mono_ns(), stop)?;
        self.session.disable();
        let wall_ns = mono_ns() - begun_ns;
        self.collect(u64::MAX);
        assert!(self.queue.is_empty(), "every record is in the profile");
        self.watched.end(begun_ns + wall_ns);
        profile.duration_s = wall_ns as f64 / NS_PER_S;
        let percent = |ns: u64| 100.0 * ns as f64 / wall_ns.max(1) as f64;
        profile.overhead = Overhead { profiler_percent: percent(own_cpu_ns() - cpu_ns), hook_percent: None };
        profile.cut_short = self.cut_short(end, profile.duration_s);
        let symbols = Symbols::knowing(self.watched.unwinder.compiled());
        self.finish(&mut profile, symbols);
        Ok(profile)
    }

    fn watch(&mut self, from_ns: u64, stop: &AtomicBool) -> Result<End, Error> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = self.options.duration.map_or(u64::MAX, |time| from_ns.saturating_add(ns(time)));
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            if mono_ns() >= end_ns {
                return Ok(End::Time);
            }
            if self.is_gone() {
                return Ok(End::TargetGone);
            }
            let now_ns = mono_ns();
            self.session.wait(&mut self.hung_up, end_ns.min(now_ns + ROUND_NS))?;
            self.collect(mono_ns().saturating_sub(SLACK_NS));
        }
    }

    /// Whether no process that is watched is left.
    fn is_gone(&mut self) -> bool {
        if matches!(self.target, Target::Machine | Target::Cpus(_)) {
            return false;
        }
        if mono_ns() >= self.next_look_ns {
            self.next_look_ns = mono_ns() + ALIVE_EVERY_NS;
            self.watched.alive.retain(|pid, _| !proc::has_ended(*pid));
            if let Target::Thread(tid) = self.target {
                self.is_thread_gone = proc::has_thread_ended(tid);
            }
        }
        self.is_thread_gone || self.watched.alive.is_empty()
    }

    /// Empties the rings, and takes in what is older than `until_ns`: younger records of one ring may have older
    /// neighbours in another, which are not there yet.
    fn collect(&mut self, until_ns: u64) {
        self.watched.unwinder.forget_memory();
        let mut bytes = Vec::new();
        self.session.drain(&mut bytes);
        self.enqueue(Rc::new(bytes));
        self.queue.sort_by_key(|queued| queued.time_ns);
        let ready = self.queue.partition_point(|queued| queued.time_ns <= until_ns);
        assert!(until_ns < u64::MAX || ready == self.queue.len(), "in the end no record is left");
        let layout = self.session.layout();
        for queued in self.queue.drain(..ready) {
            if let Some(record) = Record::parse(&queued.bytes[queued.range], layout) {
                self.watched.take(&mut self.session, &record);
            }
        }
        debug_assert!(self.queue.is_sorted_by_key(|queued| queued.time_ns), "what waits is in order");
    }

    /// Only their times are read here: each record is parsed once, when its turn has come.
    fn enqueue(&mut self, bytes: Rc<Vec<u8>>) {
        let (layout, mut from) = (self.session.layout(), 0);
        for raw in records(&bytes) {
            let range = from..from + raw.len();
            from = range.end;
            assert!(from <= bytes.len(), "a record ends where its bytes do");
            if let Some(time_ns) = Record::time_of(raw, layout) {
                self.queue.push(Queued { time_ns, bytes: Rc::clone(&bytes), range });
            }
        }
    }

    /// What is known before it begins.
    fn head(&self) -> Profile {
        let pid = match self.target {
            Target::Thread(tid) => Some(process_of(tid).unwrap_or(tid)),
            _ => self.target.processes().first().copied(),
        };
        let scope = match self.target {
            Target::Process(_) | Target::Processes(_) | Target::Held(_) => "process",
            Target::Thread(_) => "thread",
            Target::Machine | Target::Cpus(_) => "machine",
        };
        Profile {
            schema: PROFILE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: real_coarse_s(),
            kind: if self.options.event == Event::Switches { Kind::OffCpu } else { Kind::OnCpu },
            target: profile::Target {
                pid: pid.map(i32::cast_unsigned),
                name: String::new(),
                argv: Vec::new(),
                scope: scope.to_owned(),
                also: Vec::new(),
            },
            // Machine, command and requests are the caller's to know.
            ..Profile::default()
        }
    }

    fn cut_short(&self, end: End, duration_s: f64) -> Option<String> {
        match end {
            End::Stopped => Some("interrupted".to_owned()),
            End::TargetGone if self.options.duration.is_some() => {
                Some(format!("the target ended after {duration_s:.1} s"))
            }
            End::TargetGone | End::Time => None,
        }
    }

    /// Names, and everything that is only known at the end.
    fn finish(self, profile: &mut Profile, symbols: Symbols) {
        let mut names_of_frames = Names::new(symbols);
        let Recorder { target, options, asked_hz, session, watched, .. } = self;
        let Watched { spaces, mut folder, away, names, argv, period, lost, throttled, short, .. } = watched;
        profile.thread_times = away.map_or_else(Vec::new, |away| away.times(&mut folder));
        let name =
            |pid: Pid, tid: Tid| names.get(&tid).or_else(|| names.get(&pid)).cloned().unwrap_or_default();
        let folded = folder.finish(&spaces, &mut names_of_frames, name, weight_ns(&options, period));
        if let Some(pid) = profile.target.pid.map(u32::cast_signed) {
            profile.target.name = names.get(&pid).cloned().unwrap_or_default();
            profile.target.argv = argv.get(&pid).cloned().unwrap_or_default();
            let other = |pid: &Pid| profile::Process {
                pid: pid.cast_unsigned(),
                name: names.get(pid).cloned().unwrap_or_default(),
                argv: argv.get(pid).cloned().unwrap_or_default(),
            };
            profile.target.also = target.processes().iter().skip(1).map(other).collect();
        } else {
            profile.target.name = match &target {
                Target::Cpus(cpus) => format!("CPU {}", cpus.iter().copied().collect::<CpuSet>()),
                _ => "machine".to_owned(),
            };
        }
        let with_kernel = session.sampling().kernel == Kernel::With;
        let event = options.event.name();
        profile.sampling = profile::Sampling {
            event: if with_kernel { event.to_owned() } else { format!("{event}:u") },
            frequency_hz: (options.event != Event::Switches).then_some(options.frequency_hz as f64),
            call_graph: call_graph(&options).to_owned(),
            samples: folded.samples,
            lost: lost.max(session.lost()),
            coarse: 0,
            truncated: folded.truncated,
            truncated_by: by_words(&folded.cuts),
        };
        debug_assert!(folded.truncated <= folded.samples);
        profile.threads = folded.threads;
        profile.modules = folded.written.modules;
        profile.frames = folded.written.frames;
        profile.stacks = folded.written.stacks;
        profile.slice_ns = folded.slice_ns;
        // Outside of the kernel only a part of the time makes samples: the rest is not unseen by chance.
        let unseen =
            if with_kernel { short.write(&names, weight_ns(&options, period), profile) } else { None };
        profile.warnings = warnings(profile, with_kernel, throttled, names_of_frames.symbols());
        profile.warnings.extend(unseen);
        profile.warnings.extend(hints(profile));
        if options.frequency_hz < asked_hz {
            let limited = format!(
                "sampled at {} Hz instead of {asked_hz}: kernel.perf_event_max_sample_rate",
                options.frequency_hz
            );
            profile.warnings.push(limited);
        }
    }
}

/// Refuses what cannot be watched before the kernel does, in better words.
fn may_be_watched(target: &Target) -> Result<(), Error> {
    match target {
        Target::Thread(tid) => is_there(*tid),
        // It waits for us, and is there.
        Target::Held(_) => Ok(()),
        Target::Cpus(cpus) => are_there(cpus),
        _ => target.processes().iter().try_for_each(|pid| is_there(*pid)),
    }
}

fn are_there(cpus: &[usize]) -> Result<(), Error> {
    let online = affinity::online();
    match cpus.iter().find(|cpu| !online.contains(**cpu)) {
        None => Ok(()),
        Some(&cpu) => Err(Error::NoCpu { cpu, online: online.to_string() }),
    }
}

fn is_there(pid: Pid) -> Result<(), Error> {
    if process_of(pid) == Some(child::this()) {
        return Err(Error::Own { pid });
    }
    match proc::stat(pid) {
        Err(_) => Err(Error::NoProcess { pid }),
        Ok(_) if proc::has_ended(pid) => Err(Error::Zombie { pid }),
        Ok(_) => Ok(()),
    }
}

/// The most samples per second that the kernel takes; it lowers this itself when sampling costs too much.
pub(crate) fn frequency_max() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX).max(1)
}

fn own_cpu_ns() -> u64 {
    process_cpu_ns(child::this()).unwrap_or(0)
}

/// What one event of the clock is worth. The CPU clock counts nanoseconds; cycles are made time by the frequency that was
/// asked for.
fn weight_ns(options: &Options, (events, samples): (u64, u64)) -> f64 {
    match options.event {
        // The CPU clock counts nanoseconds, and so do we where threads are off the CPU.
        Event::CpuClock | Event::Switches => 1.0,
        Event::Cycles => samples as f64 * NS_PER_S / options.frequency_hz as f64 / events.max(1) as f64,
    }
}

fn call_graph(options: &Options) -> &'static str {
    match options.call_graph {
        CallGraph::Auto => "auto",
        CallGraph::Dwarf => "dwarf",
        CallGraph::FramePointers => "fp",
    }
}

/// What changes how the figures are to be read.
fn warnings(profile: &Profile, with_kernel: bool, throttled: u64, symbols: &mut Symbols) -> Vec<String> {
    let mut warnings = Vec::new();
    let sampling = &profile.sampling;
    if !with_kernel {
        warnings.push("time in the kernel is not in it: sampling that needs CAP_PERFMON, or kernel.perf_event_paranoid 1".to_owned());
    } else if !symbols.kernel_has_names() {
        warnings.push("the kernel's functions have no names: /proc/kallsyms hides addresses from this user (kernel.kptr_restrict)".to_owned());
    }
    let share = |part: u64| 100.0 * part as f64 / (sampling.samples + sampling.lost).max(1) as f64;
    if sampling.lost > 0 {
        warnings.push(format!(
            "{} samples ({:.1} %) were lost: the rings were full",
            sampling.lost,
            share(sampling.lost)
        ));
    }
    if share(sampling.truncated) >= TRUNCATED_PERCENT {
        warnings.push(format!(
            "{:.1} % of the stacks end before their thread's start: {}",
            share(sampling.truncated),
            causes(&sampling.truncated_by)
        ));
    }
    if throttled > 0 {
        warnings.push(format!("the kernel paused sampling {throttled} times: it took too much of a CPU (kernel.perf_cpu_time_max_percent)"));
    }
    if sampling.samples == 0 && profile.total_ns() == 0 {
        warnings.push("no samples: the target used less CPU time than one sample takes, or none".to_owned());
    }
    warnings.extend(symbols.notes().iter().cloned());
    warnings
}

/// Fewer truncated stacks change no picture.
const TRUNCATED_PERCENT: f64 = 2.0;

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod golden;
